//! An eMMC device or SD card behind its host, as a family.

use super::evidence::{self, MmcEvidence, MmcLimit};
use super::figures::HostFigures;
use super::host::{HostReport, MmcHost};
use super::profile::{MmcProfile, mmc};
use super::tables;
use crate::charges::Resource;
use crate::compare::{RunLoad, RunTotals};
use crate::family::{Explained, FamilyProfile, NoHost, Queues, RunFigures, Setup};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::tables::FigureTable;
use blockyard::limits::Limits;
use blockyard::time::Instant;
use blockyard_mmc::policy::{HostPolicy, Pipeline};

impl FamilyProfile for MmcProfile {
    type Model = MmcHost;
    type Figures = HostFigures;
    type Limit = MmcLimit;

    const TABLES: &'static [&'static str] = &["card", "host"];
    const SIGNS: &'static [&'static str] = &["card"];
    const SIGN_WORDS: &'static str = "`[card]`";

    fn bases() -> Vec<(&'static str, &'static str)> {
        vec![("card", "emmc-hs400"), ("host", "emmc-hs400")]
    }

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        mmc(top)
    }

    fn kind(&self) -> &'static str {
        if self.card.is_emmc() { "an eMMC device" } else { "an SD card" }
    }

    fn disk_condition(&self) -> &'static str {
        // Not `mmcblk0boot0` or `mmcblk0rpmb`, which are disks, too.
        match self.card.is_emmc() {
            true => r#"KERNEL=="mmcblk[0-9]|mmcblk[0-9][0-9]", ATTRS{type}=="MMC""#,
            false => r#"KERNEL=="mmcblk[0-9]|mmcblk[0-9][0-9]", ATTRS{type}=="SD""#,
        }
    }

    fn queues(&self, host: Option<HostPolicy>) -> Queues {
        Queues {
            hctxs: 1,
            depth: self.tags(host),
            disks: 1,
            own_tags: false,
            shared: false,
            scsi_depth: None,
        }
    }

    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        let usual = HostPolicy::new(Pipeline::BlkMqWait, self.host.busy_detect);
        let policy = setup.host.unwrap_or(usual);
        let profile = if setup.unmaps { *self } else { self.without_unmapping() };
        let profile = profile.with_sd_cache(setup.sd_cache);
        MmcHost::new(&profile, policy, setup.limits.capacity_sectors, setup.draws)
            .map_err(|why| NoHost { policy, why })
    }

    fn usual_limits(&self, of_any: Limits) -> Limits {
        Limits { fua: self.has_reliable_writes(), ..of_any }
    }

    fn write_cache(&self, fua: bool) -> bool {
        self.has_write_cache(fua)
    }

    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        self.agrees(limits).map_err(|words| top.wrong("limits", Problem::Contradiction(words)))
    }

    fn last_limit(&self, figures: Option<&HostFigures>, load: &RunLoad) -> Option<MmcLimit> {
        evidence::limit(figures?, load)
    }
}

impl RunFigures for HostFigures {
    type Model = MmcHost;
    type Report = HostReport;
    type Evidence = MmcEvidence;

    fn report(model: &MmcHost, now: Instant) -> HostReport {
        model.report(now)
    }

    fn of(report: &HostReport, totals: &RunTotals) -> Option<Self> {
        Some(Self::new(report, totals))
    }

    fn tables(runs: &[&Self]) -> Vec<FigureTable> {
        tables::tables(runs)
    }

    fn command_rates(&self, high: &Self) -> Option<MmcEvidence> {
        Some(MmcEvidence::TransferPeriod(evidence::transfer_period(self, high)))
    }

    fn idle_times(&self, names: [&str; 2], high: &Self) -> Option<MmcEvidence> {
        let (low, high) = evidence::idle((names[0], self), (names[1], high))?;
        Some(MmcEvidence::IdleBetweenTransfers { low, high })
    }
}

impl Explained for HostFigures {
    fn lines(&self) -> Option<String> {
        Some(tables::lines(self))
    }

    fn resources(&self, load: &RunLoad) -> Vec<Resource> {
        evidence::resources(load)
    }
}
