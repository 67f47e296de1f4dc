//! The states of a card, and which commands are legal in each (JESD84-B51 6.14; SD 4.8).
//!
//! The table itself is beside the opcodes, in [`opcode`](super::opcode).

use super::data::Direction;

/// Where a card is. Those from [`Self::Idle`] to [`Self::Disconnect`] have the numbers that
/// CURRENT_STATE of the status gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardState {
    /// After power-up or CMD0.
    Idle,
    /// Powered up and ready to say who it is.
    Ready,
    /// Said who it is, has no address yet.
    Identification,
    /// Has an address, is not selected.
    StandBy,
    /// Selected, and without anything to do.
    Transfer,
    /// Sends data.
    Data,
    /// Receives data.
    Receive,
    /// Busy with what it received or was told.
    Programming,
    /// As [`Self::Programming`], and not selected.
    Disconnect,
    /// eMMC: asleep.
    Sleep,
    /// Silent until power-up.
    Inactive,
}

impl CardState {
    /// Every state.
    pub const ALL: [Self; 11] = [
        Self::Idle,
        Self::Ready,
        Self::Identification,
        Self::StandBy,
        Self::Transfer,
        Self::Data,
        Self::Receive,
        Self::Programming,
        Self::Disconnect,
        Self::Sleep,
        Self::Inactive,
    ];

    /// CURRENT_STATE of the status. A card that sleeps or is inactive sends no status; its numbers
    /// here are eMMC's, 10, and one that nobody has, 15.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Sleep => 10,
            Self::Inactive => 15,
            _ => self as u32,
        }
    }

    /// The state that CURRENT_STATE names; `None` where a host of ours never brings a card to.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0..=8 => Some(Self::ALL[number as usize]),
            10 => Some(Self::Sleep),
            _ => None,
        }
    }

    /// The direction of the transfer that it is at, which CMD12 ends.
    #[must_use]
    pub const fn transfers(self) -> Option<Direction> {
        match self {
            Self::Data => Some(Direction::Read),
            Self::Receive => Some(Direction::Write),
            _ => None,
        }
    }

    /// The state after the last block of a transfer: a card that sent is done, one that received is
    /// busy. Other states stay. An open-ended transfer has no last block: it ends with CMD12.
    #[must_use]
    pub const fn after_data(self) -> Self {
        match self {
            Self::Data => Self::Transfer,
            Self::Receive => Self::Programming,
            other => other,
        }
    }

    /// The state after busy. Other states than the busy ones stay.
    #[must_use]
    pub const fn after_busy(self) -> Self {
        match self {
            Self::Programming => Self::Transfer,
            Self::Disconnect => Self::StandBy,
            other => other,
        }
    }
}

/// eMMC's command queue, as far as it decides what is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Off, as after power-up and always on SD.
    Off,
    /// On, without a task.
    Empty,
    /// On, with tasks.
    Busy,
}
