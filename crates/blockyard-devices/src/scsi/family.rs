//! A SCSI host as a family.

use super::Hba;
use super::evidence::{self, HbaLimit};
use super::profile::{HbaProfile, hba};
use crate::compare::RunLoad;
use crate::family::{FamilyProfile, Limit, NoHost, Queues, Setup};
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use blockyard_mmc::policy::HostPolicy;
use core::convert::Infallible;

impl FamilyProfile for HbaProfile {
    type Model = Hba;
    type Figures = Infallible;
    type Limit = HbaLimit;

    const TABLES: &'static [&'static str] = &["hba"];
    const SIGN_WORDS: &'static str = "`[hba]`";

    fn bases() -> Vec<(&'static str, &'static str)> {
        vec![("hba", "srp")]
    }

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        hba(top)
    }

    fn kind(&self) -> &'static str {
        "a SCSI host"
    }

    fn disk_condition(&self) -> &'static str {
        r#"KERNEL=="sd[a-z]*""#
    }

    fn queues(&self, _host: Option<HostPolicy>) -> Queues {
        Queues {
            hctxs: self.hw_queues,
            depth: self.can_queue,
            disks: self.luns,
            own_tags: false,
            shared: false,
            scsi_depth: Some(self.cmd_per_lun),
        }
    }

    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        Ok(Hba::new(*self, setup.hctxs, setup.cache, setup.draws))
    }

    fn with_disks(self, disks: u16) -> Option<Self> {
        Some(Self { luns: disks, ..self })
    }

    fn commands_max(&self) -> Option<u32> {
        Some(u32::from(self.cmd_per_lun) * u32::from(self.luns))
    }

    fn is_explained_by_commands(&self) -> bool {
        true
    }

    fn limit(&self, _figures: Option<&Infallible>, load: &RunLoad) -> Option<Limit<HbaLimit>> {
        evidence::limit(self, load).map(Limit::Part)
    }
}
