//! How long a card may take for what, before a host gives up.
//!
//! What the card or its standard states is used as stated. For what neither states, the constants
//! of this module stand in; they are the ones that Linux grants.

use super::erase::Erase;
use super::erase_time::{EraseTime, times};
use super::{Card, CardKind};
use crate::command::erase::{MmcErase, SdErase};
use crate::register::ext_csd::ExtCsd;
use blockyard::time::Duration;

/// Granted for a switch where EXT_CSD does not say.
pub const SWITCH: Duration = Duration::from_ms(500);
/// Granted for a flush of the cache: no standard limits it.
pub const FLUSH: Duration = Duration::from_secs(30);
/// Granted for a sanitize: no standard limits it.
pub const SANITIZE: Duration = Duration::from_secs(240);
/// Granted for background operations, before they are interrupted: no standard limits them.
pub const BKOPS: Duration = Duration::from_secs(120);
/// Granted for leaving what an interrupt (HPI) interrupts, where EXT_CSD does not say.
pub const INTERRUPT: Duration = Duration::from_ms(100);
/// SD 4.6.2.1: a read of a card above 2 GB, and the most of any SD card.
pub const SD_READ: Duration = Duration::from_ms(100);
/// SD 4.6.2.2: a write of a card above 2 GB, and the most of any card up to 32 GB.
pub const SD_WRITE: Duration = Duration::from_ms(250);
/// SD 4.6.2.2: a write of a card above 32 GB.
pub const SDXC_WRITE: Duration = Duration::from_ms(500);
/// SD 4.14: an erase of one block of a card that does not tell, and any discard.
pub const SD_ERASE: Duration = Duration::from_ms(250);

impl Card {
    /// The limit of the time before a block that is read.
    ///
    /// Of what the CSD says is typical, eMMC may take 10 times as long, and an SD card up to 2 GB
    /// 100 times, but no longer than [`SD_READ`]; SD cards above that have the latter.
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

    /// The limit of busy after a block that is written: as [`Self::read_limit`], times the factor
    /// that the CSD states, with [`SD_WRITE`] or [`SDXC_WRITE`].
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

    /// Whether it is a card of at most 2 GB, whose CSD states its times.
    fn sectors_by_bytes(&self) -> bool {
        self.addressing == crate::command::Addressing::Bytes
    }

    /// TAAC, and NSAC at the present clock.
    fn typical_access(&self) -> Duration {
        self.csd.read_access.span + self.mode.time(u64::from(self.csd.read_access.clocks))
    }

    /// The limit of a switch (CMD6) without a limit of its own.
    #[must_use]
    pub fn switch_limit(&self) -> Duration {
        self.ext_csd().and_then(ExtCsd::generic_switch_time).unwrap_or(SWITCH)
    }

    /// The limit of a switch that changes the partition.
    #[must_use]
    pub fn partition_switch_limit(&self) -> Duration {
        self.ext_csd()
            .and_then(ExtCsd::partition_switch_time)
            .unwrap_or_else(|| self.switch_limit())
    }

    /// The limit of leaving what an interrupt (HPI) interrupts.
    #[must_use]
    pub fn interrupt_limit(&self) -> Duration {
        self.ext_csd().and_then(ExtCsd::out_of_interrupt_time).unwrap_or(INTERRUPT)
    }

    /// The limit of a flush of the cache.
    #[must_use]
    pub const fn flush_limit(&self) -> Duration {
        FLUSH
    }

    /// How long busy after an erase may be.
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

    /// What EXT_CSD grants a group; a write's time where it grants nothing.
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
        let told = self.ssr().and_then(|ssr| ssr.erase.zip(ssr.allocation_unit_sectors));
        match told {
            Some((timing, unit_sectors)) => EraseTime::Told { unit_sectors, timing },
            None => EraseTime::Each { unit_sectors: 1, time: SD_ERASE },
        }
    }
}
