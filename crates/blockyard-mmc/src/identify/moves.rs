//! The moves of which identification consists.

use super::step::Failure;
use crate::command::{Command, Rca};
use crate::mode::{Mode, SignalVoltage};
use crate::register::extension::ExtensionPlace;
use blockyard::time::Duration;

/// The RCA of eMMC devices: any but 0, the default, and 1, the device's own choice.
pub(super) const MMC_RCA: Rca = Rca(2);

/// CMD8's pattern, as SD 4.3.13 recommends.
pub(super) const PATTERN: u8 = 0xaa;

/// One move of identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Power(bool),
    Wait(Duration),
    Drive(Mode),
    Voltage(SignalVoltage),
    Tune(Command),
    GoIdle,
    /// CMD8: is it SD of 2.00 or later?
    IfCond,
    /// CMD5: is it SDIO?
    IoCond,
    /// ACMD41 until ready.
    SdReady {
        tries: u8,
    },
    /// CMD1 without voltages: is it eMMC?
    MmcThere,
    /// CMD1 until ready.
    MmcReady {
        tries: u8,
    },
    /// CMD11.
    VoltageSwitch,
    Cid,
    /// CMD3 of SD.
    AskRca,
    /// CMD3 of eMMC.
    GiveRca,
    Csd,
    Select,
    BlockLen,
    Scr,
    Ssr,
    /// CMD48: the general information, which lists the extension registers.
    Extensions,
    /// CMD48: the performance enhancement register.
    Performance(ExtensionPlace),
    /// CMD49: the cache is turned on.
    CacheOn {
        place: ExtensionPlace,
        tries: u8,
    },
    /// CMD13, after a [`Self::CacheOn`] that failed: does the card still wait for data?
    AskAfterCacheOn {
        place: ExtensionPlace,
        tries: u8,
    },
    /// CMD12: the data of CMD49 does not come.
    StopSetting,
    /// CMD48: the same register again, after [`Self::CacheOn`].
    PerformanceAgain(ExtensionPlace),
    /// CMD6 of SD, mode 0.
    Functions,
    /// ACMD6 of SD.
    FourLanes,
    /// CMD6 of SD, mode 1, access mode.
    AccessMode(u8),
    ExtCsd,
    /// CMD6 of eMMC.
    Switch(u16, u8),
    /// CMD13: did the switch happen?
    Check,
    /// Like [`Self::Switch`], but the device may refuse it.
    Setting(u16, u8),
    /// Like [`Self::Check`], for a [`Self::Setting`].
    CheckSetting,
    /// EXT_CSD is read again in the new mode, and must be the same.
    Reread,
}

impl Move {
    /// Returns whether identification can continue without this move.
    pub(super) const fn is_optional(self) -> bool {
        matches!(
            self,
            Self::Setting(..) | Self::CheckSetting | Self::Extensions | Self::Performance(_)
        )
    }

    /// Returns whether the move may be repeated after `problem`. CMD11 may not: the
    /// card may have received it. A status reports only once that a switch failed. After CMD49 the
    /// card is asked first.
    pub(super) const fn is_repeatable(self, problem: Failure) -> bool {
        match problem {
            Failure::Bus { .. } => !matches!(
                self,
                Self::VoltageSwitch | Self::Voltage(_) | Self::Tune(_) | Self::CacheOn { .. }
            ),
            Failure::Card { .. } => {
                !matches!(self, Self::Check | Self::CheckSetting | Self::CacheOn { .. })
            }
            _ => false,
        }
    }

    /// Returns whether the state of the cache is unknown if this move fails.
    pub(super) const fn decides_cache(self) -> bool {
        matches!(self, Self::AskAfterCacheOn { .. } | Self::StopSetting | Self::PerformanceAgain(_))
    }
}

/// The part of a move that an answer has completed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The whole move.
    Move,
    /// CMD55, which comes before the move's command.
    Prefix,
}
