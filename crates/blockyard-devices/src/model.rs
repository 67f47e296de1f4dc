//! The device family that others ask for by name: a model's MMC host, whose driver has threads.

use crate::families::Model;
use crate::mmc::host::MmcHost;

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
}
