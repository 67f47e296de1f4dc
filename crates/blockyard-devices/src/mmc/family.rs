//! An eMMC device or SD card behind its host, as a family.

use super::host::MmcHost;
use super::profile::{MmcProfile, mmc};
use crate::family::{FamilyProfile, NoHost, Queues, Setup};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use blockyard::limits::Limits;
use blockyard_mmc::policy::{HostPolicy, Pipeline};

impl FamilyProfile for MmcProfile {
    type Model = MmcHost;

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
}
