//! Erasing ranges: which way serves which purpose, and the three commands of it.

use super::{Card, CardKind};
use crate::mmc::command::Command;
use crate::mmc::command::erase::{MmcErase, SdErase};
use crate::mmc::register::csd::Classes;
use crate::mmc::register::ext_csd::{ExtCsd, SecureFeatures};

/// What is preferred on an SD card that does not tell its allocation unit: 4 MiB.
const SD_ERASE_SECTORS: u32 = 4 << 11;

/// A way to erase, by the card's standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// On eMMC.
    Mmc(MmcErase),
    /// On SD.
    Sd(SdErase),
}

impl Card {
    /// How content that is no longer needed is given up: discard where the card has it, else trim,
    /// else erase; `None`: the card erases nothing.
    #[must_use]
    pub fn discard_by(&self) -> Option<Erase> {
        if !self.csd.classes.has(Classes::ERASE) {
            return None;
        }
        Some(match &self.kind {
            CardKind::Sd { ssr, .. } if ssr.discard => Erase::Sd(SdErase::Discard),
            CardKind::Sd { .. } => Erase::Sd(SdErase::Erase),
            CardKind::Mmc { ext_csd } => Erase::Mmc(match ext_csd {
                Some(ext_csd) if ext_csd.discard() => MmcErase::Discard,
                Some(ext_csd) if ext_csd.secure_features().has(SecureFeatures::TRIM) => {
                    MmcErase::Trim
                }
                _ => MmcErase::Erase,
            }),
        })
    }

    /// How any range is made to read as zeroes without writing them; `None`: not at all.
    #[must_use]
    pub fn zero_by(&self) -> Option<Erase> {
        let by = match &self.kind {
            CardKind::Sd { scr, .. } if !scr.erased_reads_as_ones => Erase::Sd(SdErase::Erase),
            CardKind::Mmc { ext_csd: Some(ext_csd) }
                if ext_csd.secure_features().has(SecureFeatures::TRIM)
                    && !ext_csd.erased_reads_as_ones() =>
            {
                Erase::Mmc(MmcErase::Trim)
            }
            _ => return None,
        };
        // On an old SD card an erase takes away whole erase sectors.
        (self.csd.classes.has(Classes::ERASE) && self.erase_unit_sectors(by) == 1).then_some(by)
    }

    /// How any range is erased so that nothing of it is left: mark, then trim; `None`: the card
    /// cannot, or does it by [`Self::sanitize`] only.
    #[must_use]
    pub fn secure_erase_by(&self) -> Option<[Erase; 2]> {
        let features = SecureFeatures::SECURE_ERASE | SecureFeatures::TRIM;
        self.ext_csd()
            .is_some_and(|ext_csd| ext_csd.secure_features().has(features))
            .then_some([Erase::Mmc(MmcErase::SecureTrimMark), Erase::Mmc(MmcErase::SecureTrim)])
    }

    /// Whether everything that was ever discarded can be wiped at once.
    #[must_use]
    pub fn sanitize(&self) -> bool {
        self.ext_csd().is_some_and(|ext| ext.secure_features().has(SecureFeatures::SANITIZE))
    }

    /// What an erase by `by` is made of, in sectors: starts and lengths must be multiples of it.
    #[must_use]
    pub fn erase_unit_sectors(&self, by: Erase) -> u32 {
        match by {
            Erase::Mmc(by) if by.by_groups() => self.erase_group_sectors(),
            Erase::Mmc(_) => self.ext_csd().map_or(1, ExtCsd::data_sector_sectors),
            Erase::Sd(_) => self.csd.erase_sectors,
        }
    }

    /// The erase group in force: eMMC's high-capacity one where it is on, else the CSD's.
    pub(super) fn erase_group_sectors(&self) -> u32 {
        self.ext_csd()
            .filter(|ext_csd| ext_csd.erase_group_on())
            .and_then(|ext_csd| u32::try_from(ext_csd.erase_group_sectors()).ok())
            .filter(|&sectors| sectors > 0)
            .unwrap_or(self.csd.erase_sectors)
    }

    /// The size, in sectors, in which the card erases best: eMMC's erase group, SD's allocation
    /// unit, and 4 MiB on an SD card that does not tell.
    #[must_use]
    pub fn preferred_erase_sectors(&self) -> u32 {
        match &self.kind {
            CardKind::Mmc { .. } => self.erase_group_sectors(),
            CardKind::Sd { ssr, .. } => ssr.allocation_unit_sectors.unwrap_or(SD_ERASE_SECTORS),
        }
    }

    /// The commands that erase `sectors` sectors from `sector` on: first, last, go. `None` where the
    /// range is empty, has an address that does not fit, or is not made of whole
    /// [units](Self::erase_unit_sectors), or where `by` is of the other standard.
    #[must_use]
    pub fn erase_commands(&self, by: Erase, sector: u64, sectors: u64) -> Option<[Command; 3]> {
        let unit = u64::from(self.erase_unit_sectors(by));
        if sectors == 0 || !sector.is_multiple_of(unit) || !sectors.is_multiple_of(unit) {
            return None;
        }
        let start = self.addressing.argument(sector)?;
        let end = self.addressing.argument(sector.checked_add(sectors - 1)?)?;
        match (by, &self.kind) {
            (Erase::Mmc(by), CardKind::Mmc { .. }) => Some([
                Command::mmc_erase_start(start),
                Command::mmc_erase_end(end),
                Command::mmc_erase(by),
            ]),
            (Erase::Sd(by), CardKind::Sd { .. }) => Some([
                Command::sd_erase_start(start),
                Command::sd_erase_end(end),
                Command::sd_erase(by),
            ]),
            _ => None,
        }
    }
}
