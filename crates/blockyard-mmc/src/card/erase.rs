//! Erasing ranges: which way serves which purpose, and the three commands of it.

use super::erase_time::EraseTime;
use super::{Card, CardKind};
use crate::command::erase::{MmcErase, SdErase};
use crate::command::{Addressing, Command};
use crate::register::csd::Classes;
use crate::register::ext_csd::SecureFeatures;
use blockyard::time::Duration;

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
            Erase::Mmc(_) => self.data_sector_sectors(),
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

    /// How `by` works on this card; `None` where it is of the other standard.
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

/// A way to erase, as one card has it: the ranges it takes, the commands, how long they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseWay {
    by: Erase,
    addressing: Addressing,
    unit_sectors: u32,
    time: EraseTime,
}

impl EraseWay {
    /// The largest range within the one given, first sector and sectors, that is made of whole
    /// [units](Card::erase_unit_sectors); `None` where there is none.
    #[must_use]
    pub fn whole_units(&self, sector: u64, sectors: u64) -> Option<(u64, u64)> {
        let unit = u64::from(self.unit_sectors);
        let first = sector.checked_next_multiple_of(unit)?;
        let end = sector.checked_add(sectors)? / unit * unit;
        end.checked_sub(first).filter(|&sectors| sectors > 0).map(|sectors| (first, sectors))
    }

    /// The commands that erase `sectors` sectors from `sector` on: first, last, go. `None` where the
    /// range is empty, has an address that does not fit, or is not made of whole
    /// [units](Card::erase_unit_sectors).
    #[must_use]
    pub fn commands(&self, sector: u64, sectors: u64) -> Option<[Command; 3]> {
        if self.whole_units(sector, sectors)? != (sector, sectors) {
            return None;
        }
        let start = self.addressing.argument(sector)?;
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

    /// What decides which ranges it takes.
    pub(crate) const fn ranges(&self) -> (Erase, u32) {
        (self.by, self.unit_sectors)
    }

    /// The limit of busy after the erase of a range.
    #[must_use]
    pub fn limit(&self, sector: u64, sectors: u64) -> Duration {
        self.time.limit(sector, sectors)
    }
}
