//! A drive as a family.

use super::evidence::{self, DriveLimit};
use super::figures::DriveFigures;
use super::profile::{DriveProfile, TABLES, bases, drive};
use super::{Drive, DriveReport, tables};
use crate::charges::Resource;
use crate::compare::{BusiestDisk, RunLoad, RunTotals};
use crate::family::{Explained, FamilyProfile, Limit, NoHost, Queues, RunFigures, Setup};
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use crate::tables::FigureTable;
use blockyard::limits::Limits;
use blockyard::time::Instant;
use blockyard_mmc::policy::HostPolicy;
use core::convert::Infallible;

impl FamilyProfile for DriveProfile {
    type Model = Drive;
    type Figures = DriveFigures;
    type Limit = DriveLimit;

    const TABLES: &'static [&'static str] = &TABLES;
    const SIGN_WORDS: &'static str = "a drive's front end";

    fn bases() -> Vec<(&'static str, &'static str)> {
        bases()
    }

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        drive(top)
    }

    fn kind(&self) -> &'static str {
        self.front.kind()
    }

    fn disk_condition(&self) -> &'static str {
        self.front.disk_condition()
    }

    fn queues(&self, _host: Option<HostPolicy>) -> Queues {
        Queues {
            hctxs: self.front.hw_queues(),
            depth: self.front.depth(),
            disks: self.disks,
            own_tags: true,
            shared: self.front.shares_depth(),
            scsi_depth: self.front.is_scsi().then(|| self.front.depth()),
        }
    }

    fn with_disks(self, disks: u16) -> Option<Self> {
        (disks <= self.front.disks_max()).then_some(Self { disks, ..self })
    }

    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        Ok(Drive::new(*self, &setup))
    }

    fn tables(&self) -> Vec<&'static str> {
        vec![self.front.table(), self.medium.table()]
    }

    fn usual_limits(&self, of_any: Limits) -> Limits {
        Limits { rotational: self.medium.rotates(), ..of_any }
    }

    fn write_cache(&self, _fua: bool) -> bool {
        self.medium.write_cache()
    }

    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        self.medium.check(top, limits)
    }

    fn commands_max(&self) -> Option<u32> {
        let is_one = self.front.hw_queues() == 1 || self.front.shares_depth();
        is_one.then(|| u32::from(self.front.depth()) * u32::from(self.disks))
    }

    fn is_explained_by_commands(&self) -> bool {
        true
    }

    fn limit(&self, figures: Option<&DriveFigures>, load: &RunLoad) -> Option<Limit<DriveLimit>> {
        evidence::limit(self, figures?, load)
    }
}

impl RunFigures for DriveFigures {
    type Model = Drive;
    type Report = DriveReport;
    type Evidence = Infallible;

    fn report(model: &Drive, _now: Instant) -> DriveReport {
        model.report()
    }

    fn of(report: &DriveReport, totals: &RunTotals) -> Option<Self> {
        Self::new(report, totals)
    }

    fn tables(runs: &[&Self]) -> Vec<FigureTable> {
        tables::tables(runs)
    }
}

impl Explained for DriveFigures {
    fn busiest_disk(&self) -> Option<BusiestDisk> {
        self.disk
    }

    fn at_busiest_disk(&self) -> Option<f64> {
        Some(self.at_device)
    }

    fn resources(&self, _load: &RunLoad) -> Vec<Resource> {
        evidence::resources(self)
    }
}
