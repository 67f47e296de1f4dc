//! The moves of which identification is made.

use super::step::Failure;
use crate::command::{Command, Rca};
use crate::mode::{Mode, SignalVoltage};
use blockyard::time::Duration;

/// The RCA that eMMC devices are given: any but 0, the default, and 1, the device's own.
pub(super) const MMC_RCA: Rca = Rca(2);

/// CMD8's pattern, as SD 4.3.13 recommends.
pub(super) const PATTERN: u8 = 0xaa;

/// One thing to do.
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
    /// As [`Self::Switch`], and the device may refuse it.
    Setting(u16, u8),
    /// As [`Self::Check`], of a [`Self::Setting`].
    CheckSetting,
    /// EXT_CSD once more, in its new mode: is it the same? (I5)
    Reread,
}

impl Move {
    /// Whether the card can do without it (I4).
    pub(super) const fn is_optional(self) -> bool {
        matches!(self, Self::Setting(..) | Self::CheckSetting)
    }

    /// Whether it may be done again after `problem` (I2). CMD11 may not: the card may have heard it.
    /// A status says only once that a switch failed.
    pub(super) const fn is_repeatable(self, problem: Failure) -> bool {
        match problem {
            Failure::Bus { .. } => {
                !matches!(self, Self::VoltageSwitch | Self::Voltage(_) | Self::Tune(_))
            }
            Failure::Card { .. } => !matches!(self, Self::Check | Self::CheckSetting),
            _ => false,
        }
    }
}

/// What was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The whole move.
    Move,
    /// CMD55, which goes before its command.
    Prefix,
}
