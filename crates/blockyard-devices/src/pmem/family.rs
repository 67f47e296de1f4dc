//! Persistent memory as a family.

use super::evidence::{PmemEvidence, cpu_parts, cpu_time};
use super::figures::PmemFigures;
use super::profile::{PmemProfile, TAGS, agrees, pmem};
use super::{Pmem, PmemReport, tables};
use crate::compare::RunTotals;
use crate::family::{Explained, FamilyProfile, NoHost, Queues, RunFigures, Setup};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::tables::FigureTable;
use blockyard::limits::Limits;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::policy::HostPolicy;
use core::convert::Infallible;

impl FamilyProfile for PmemProfile {
    type Model = Pmem;
    type Figures = PmemFigures;
    type Limit = Infallible;

    const TABLES: &'static [&'static str] = &["pmem"];
    const SIGN_WORDS: &'static str = "`[pmem]`";

    fn bases() -> Vec<(&'static str, &'static str)> {
        vec![("pmem", "pmem-dram")]
    }

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        pmem(top)
    }

    fn kind(&self) -> &'static str {
        "persistent memory"
    }

    fn disk_condition(&self) -> &'static str {
        r#"KERNEL=="pmem[0-9]*""#
    }

    fn queues(&self, _host: Option<HostPolicy>) -> Queues {
        Queues { hctxs: 1, depth: TAGS, disks: 1, own_tags: false, shared: false, scsi_depth: None }
    }

    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        let bytes = setup.limits.capacity_sectors * u64::from(SECTOR_BYTES);
        Ok(Pmem::new(*self, setup.btt, bytes, setup.cpus))
    }

    fn usual_limits(&self, of_any: Limits) -> Limits {
        // The processor copies any amount.
        Limits { max_sectors: u32::MAX, max_segments: u16::MAX, ..of_any }
    }

    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        agrees(limits).map_err(|words| top.wrong("limits", Problem::Contradiction(words)))
    }
}

impl RunFigures for PmemFigures {
    type Model = Pmem;
    type Report = PmemReport;
    type Evidence = PmemEvidence;

    fn report(model: &Pmem, _now: Instant) -> PmemReport {
        model.report()
    }

    fn of(report: &PmemReport, totals: &RunTotals) -> Option<Self> {
        Some(Self::new(report, totals))
    }

    fn tables(runs: &[&Self]) -> Vec<FigureTable> {
        tables::tables(runs)
    }

    fn whole_difference(&self, high: &Self) -> Option<PmemEvidence> {
        Some(PmemEvidence::CpuTime(cpu_time(self, high)))
    }

    fn time_in_calls(&self, design: &str) -> Option<PmemEvidence> {
        Some(PmemEvidence::CpuParts(cpu_parts(design, self)))
    }
}

impl Explained for PmemFigures {
    fn in_calls_ns(&self) -> f64 {
        self.parts_ns.in_memory()
    }
}
