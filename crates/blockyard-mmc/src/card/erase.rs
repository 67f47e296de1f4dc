//! Erasing ranges: which way serves which purpose, and the three commands of an erase.

use super::erase_time::EraseTime;
use super::{Card, CardKind};
use crate::command::erase::{MmcErase, SdErase};
use crate::command::{Addressing, Command};
use crate::register::csd::Classes;
use crate::register::ext_csd::SecureFeatures;
use blockyard::time::Duration;

/// The preferred erase size of an SD card that does not state its allocation unit: 4 MiB.
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
    /// Returns how content that is no longer needed is discarded: by discard if the card has it, or
    /// trim, or erase; `None` if the card erases nothing.
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

    /// Returns how any range is made to read as zeroes without writing them; `None` if the card
    /// cannot.
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
        // An erase on an old SD card covers whole erase sectors.
        (self.csd.classes.has(Classes::ERASE) && self.erase_unit_sectors(by) == 1).then_some(by)
    }

    /// Returns how any range is erased with every copy of it: mark, then trim; `None` if the card
    /// cannot, or only by [`Self::sanitize`].
    #[must_use]
    pub fn secure_erase_by(&self) -> Option<[Erase; 2]> {
        let features = SecureFeatures::SECURE_ERASE | SecureFeatures::TRIM;
        self.ext_csd()
            .is_some_and(|ext_csd| ext_csd.secure_features().has(features))
            .then_some([Erase::Mmc(MmcErase::SecureTrimMark), Erase::Mmc(MmcErase::SecureTrim)])
    }

    /// Returns whether everything that was ever discarded can be erased at once.
    #[must_use]
    pub fn sanitize(&self) -> bool {
        self.ext_csd().is_some_and(|ext| ext.secure_features().has(SecureFeatures::SANITIZE))
    }

    /// Returns the unit of an erase by `by`, in sectors: starts and lengths must be multiples of
    /// it.
    #[must_use]
    pub fn erase_unit_sectors(&self, by: Erase) -> u32 {
        match by {
            Erase::Mmc(by) if by.by_groups() => self.erase_group_sectors(),
            Erase::Mmc(_) => self.data_sector_sectors(),
            Erase::Sd(_) => self.csd.erase_sectors,
        }
    }

    /// Returns the erase group in force: eMMC's high-capacity group if it is on, otherwise the
    /// CSD's.
    pub(super) fn erase_group_sectors(&self) -> u32 {
        self.ext_csd()
            .filter(|ext_csd| ext_csd.erase_group_on())
            .and_then(|ext_csd| u32::try_from(ext_csd.erase_group_sectors()).ok())
            .filter(|&sectors| sectors != 0)
            .unwrap_or(self.csd.erase_sectors)
    }

    /// Returns the size, in sectors, in which the card erases best: eMMC's erase group, SD's
    /// allocation unit, or 4 MiB for an SD card that does not state it.
    #[must_use]
    pub(crate) fn preferred_erase_sectors(&self) -> u32 {
        match &self.kind {
            CardKind::Mmc { .. } => self.erase_group_sectors(),
            CardKind::Sd { ssr, .. } => ssr.allocation_unit_sectors.unwrap_or(SD_ERASE_SECTORS),
        }
    }

    /// Returns how `by` works on this card; `None` if `by` is of the other standard.
    #[must_use]
    pub fn erase_way(&self, by: Erase) -> Option<EraseWay> {
        let fits = matches!(
            (by, &self.kind),
            (Erase::Mmc(_), CardKind::Mmc { .. }) | (Erase::Sd(_), CardKind::Sd { .. })
        );
        fits.then(|| EraseWay {
            by,
            addressing: self.addressing,
            unit_sectors: self.erase_unit_sectors(by),
            time: self.erase_time(by),
        })
    }
}

/// A way to erase on one card: the ranges it takes, its commands, and how long they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseWay {
    by: Erase,
    addressing: Addressing,
    unit_sectors: u32,
    time: EraseTime,
}

impl EraseWay {
    /// Returns the largest range (first sector, sectors) within the given one that consists of
    /// whole [units](Card::erase_unit_sectors); `None` if there is none.
    #[must_use]
    pub fn whole_units(&self, sector: u64, sectors: u64) -> Option<(u64, u64)> {
        let unit = u64::from(self.unit_sectors);
        let first = sector.checked_next_multiple_of(unit)?;
        let end = sector.checked_add(sectors)? / unit * unit;
        end.checked_sub(first).filter(|&sectors| sectors > 0).map(|sectors| (first, sectors))
    }

    /// Returns the commands that erase `sectors` sectors from `sector` on: first, last, go. `None`
    /// if the range is empty, has an address that does not fit, or does not consist of whole
    /// [units](Card::erase_unit_sectors).
    #[must_use]
    pub fn commands(&self, sector: u64, sectors: u64) -> Option<[Command; 3]> {
        if self.whole_units(sector, sectors)? != (sector, sectors) {
            return None;
        }
        let start = self.addressing.argument(sector)?;
        debug_assert!(sectors > 0, "whole units are not empty");
        let end = self.addressing.argument(sector + (sectors - 1))?;
        Some(match self.by {
            Erase::Mmc(by) => [
                Command::mmc_erase_start(start),
                Command::mmc_erase_end(end),
                Command::mmc_erase(by),
            ],
            Erase::Sd(by) => {
                [Command::sd_erase_start(start), Command::sd_erase_end(end), Command::sd_erase(by)]
            }
        })
    }

    /// Returns what decides which ranges it takes.
    pub(crate) const fn ranges(&self) -> (Erase, u32) {
        (self.by, self.unit_sectors)
    }

    /// Returns how long the card may be busy after the erase of a range.
    #[must_use]
    pub fn limit(&self, sector: u64, sectors: u64) -> Duration {
        self.time.limit(sector, sectors)
    }
}
