//! The time limits of a card, after which a host gives up.
//!
//! Limits that the card or its standard states are used as stated. For other limits the constants
//! of this module stand in. They are the ones that Linux grants.

use super::erase::Erase;
use super::erase_time::{EraseTime, times};
use super::{Card, CardKind};
use crate::command::erase::{MmcErase, SdErase};
use crate::register::ext_csd::ExtCsd;
use blockyard::time::Duration;

/// The limit of a switch if EXT_CSD does not state one.
pub(crate) const SWITCH: Duration = Duration::from_ms(500);
/// SD 5.7.2.5: the limit of a write of an extension register.
pub const EXTENSION_WRITE: Duration = Duration::from_secs(1);
/// The limit of a flush of the cache: no standard states one.
pub const FLUSH: Duration = Duration::from_secs(30);
/// The limit of a sanitize: no standard states one.
pub const SANITIZE: Duration = Duration::from_secs(240);
/// The time after which background operations are interrupted: no standard states a limit.
pub(crate) const BKOPS: Duration = Duration::from_secs(120);
/// The time that the card may take to stop after an interrupt (HPI), if EXT_CSD does not state it.
pub(crate) const INTERRUPT: Duration = Duration::from_ms(100);
/// SD 4.6.2.1: the limit of a read of a card above 2 GB, and the largest limit of any SD card.
pub const SD_READ: Duration = Duration::from_ms(100);
/// SD 4.6.2.2: the limit of a write of a card above 2 GB, and the largest limit of any card up to
/// 32 GB.
pub const SD_WRITE: Duration = Duration::from_ms(250);
/// SD 4.6.2.2: the limit of a write of a card above 32 GB.
pub const SDXC_WRITE: Duration = Duration::from_ms(500);
/// SD 4.14: the limit of an erase of one block if the card states none, and of any discard.
pub(crate) const SD_ERASE: Duration = Duration::from_ms(250);

const _: () =
    assert!(SD_READ.as_ns() <= SD_WRITE.as_ns() && SD_WRITE.as_ns() <= SDXC_WRITE.as_ns());
const _: () = assert!(INTERRUPT.as_ns() < SWITCH.as_ns() && SWITCH.as_ns() < FLUSH.as_ns());

impl Card {
    /// Returns the longest time before a block that is read.
    ///
    /// Relative to the typical time in the CSD, eMMC may take 10 times as long, and an SD card up
    /// to 2 GB 100 times as long, but no longer than [`SD_READ`]. Larger SD cards have [`SD_READ`].
    #[must_use]
    pub fn read_limit(&self) -> Duration {
        match &self.kind {
            CardKind::Mmc { .. } => times(self.typical_access(), 10),
            CardKind::Sd { .. } if self.sectors_by_bytes() => {
                times(self.typical_access(), 100).min(SD_READ)
            }
            CardKind::Sd { .. } => SD_READ,
        }
    }

    /// Returns the longest busy time after a block that is written: as [`Self::read_limit`], times
    /// the factor in the CSD, with [`SD_WRITE`] or [`SDXC_WRITE`].
    #[must_use]
    pub fn write_limit(&self) -> Duration {
        let factor = u64::from(self.csd.write_factor);
        match &self.kind {
            CardKind::Mmc { .. } => times(self.typical_access(), 10 * factor),
            CardKind::Sd { .. } if self.sectors_by_bytes() => {
                times(self.typical_access(), 100 * factor).min(SD_WRITE)
            }
            CardKind::Sd { .. } if self.is_sdxc() => SDXC_WRITE,
            CardKind::Sd { .. } => SD_WRITE,
        }
    }

    /// Returns whether the card has at most 2 GB, so that its CSD states its times.
    fn sectors_by_bytes(&self) -> bool {
        self.addressing == crate::command::Addressing::Bytes
    }

    /// Returns TAAC plus NSAC at the present clock.
    fn typical_access(&self) -> Duration {
        self.csd.read_access.span + self.mode.time(u64::from(self.csd.read_access.clocks))
    }

    /// Returns the limit of a switch (CMD6) without a limit of its own.
    #[must_use]
    pub fn switch_limit(&self) -> Duration {
        self.ext_csd().and_then(ExtCsd::generic_switch_time).unwrap_or(SWITCH)
    }

    /// Returns the time that the card may take to stop after an interrupt (HPI).
    #[must_use]
    pub fn interrupt_limit(&self) -> Duration {
        self.ext_csd().and_then(ExtCsd::out_of_interrupt_time).unwrap_or(INTERRUPT)
    }

    /// Returns how long the card may be busy after an erase.
    pub(super) fn erase_time(&self, by: Erase) -> EraseTime {
        match by {
            Erase::Mmc(by) => EraseTime::Each {
                unit_sectors: self.erase_group_sectors(),
                time: self.group_time(by),
            },
            Erase::Sd(SdErase::Discard) => EraseTime::Fixed(SD_ERASE),
            Erase::Sd(SdErase::Erase) => self.sd_erase_time(),
            Erase::Sd(SdErase::Full) => {
                EraseTime::Fixed(self.sd_erase_time().limit(0, self.sectors))
            }
        }
    }

    /// Returns the time that EXT_CSD grants for a group; a write's time if it states none.
    fn group_time(&self, by: MmcErase) -> Duration {
        let stated = self.ext_csd().and_then(|ext_csd| match by {
            MmcErase::Erase => ext_csd.erase_group_time().filter(|_| ext_csd.erase_group_on()),
            MmcErase::Trim | MmcErase::Discard => ext_csd.trim_time(),
            MmcErase::SecureErase => ext_csd.secure_erase_time(),
            MmcErase::SecureTrimMark | MmcErase::SecureTrim => ext_csd.secure_trim_time(),
        });
        stated.unwrap_or_else(|| self.write_limit())
    }

    fn sd_erase_time(&self) -> EraseTime {
        let stated = self.ssr().and_then(|ssr| ssr.erase.zip(ssr.allocation_unit_sectors));
        match stated {
            Some((timing, unit_sectors)) => EraseTime::Stated { unit_sectors, timing },
            None => EraseTime::Each { unit_sectors: 1, time: SD_ERASE },
        }
    }
}
