//! The device families that others ask for by name: a model's MMC host, its drive, its persistent
//! memory.

use crate::families::Model;
use crate::fronts::Drive;
use crate::mmc::host::MmcHost;
use crate::pmem::Pmem;

impl Model {
    /// Returns the MMC host, if this device is one.
    #[must_use]
    pub fn mmc(&self) -> Option<&MmcHost> {
        match self {
            Self::Mmc(mmc) => Some(mmc),
            _ => None,
        }
    }

    /// As [`Self::mmc`].
    pub fn mmc_mut(&mut self) -> Option<&mut MmcHost> {
        match self {
            Self::Mmc(mmc) => Some(mmc),
            _ => None,
        }
    }

    /// Returns the drive, if this device is one.
    #[must_use]
    pub fn drive(&self) -> Option<&Drive> {
        match self {
            Self::Drive(drive) => Some(drive),
            _ => None,
        }
    }

    /// Returns the persistent memory, if this device is one.
    #[must_use]
    pub fn pmem(&self) -> Option<&Pmem> {
        match self {
            Self::Pmem(pmem) => Some(pmem),
            _ => None,
        }
    }
}
