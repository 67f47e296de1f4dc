//! The states of a card (JESD84-B51 6.14; SD 4.8).
//!
//! [`legal`](super::legal) says which commands are legal in each.

use super::data::Direction;

/// The state of a card. Those from [`Self::Idle`] to [`Self::Disconnect`] have the numbers of
/// CURRENT_STATE in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardState {
    /// After power-up or CMD0.
    Idle,
    /// Powered up and ready to be identified.
    Ready,
    /// Identified, without an address.
    Identification,
    /// Has an address, and is not selected.
    StandBy,
    /// Selected, and not doing anything.
    Transfer,
    /// Sends data.
    Data,
    /// Receives data.
    Receive,
    /// Busy with the data or the command that it received.
    Programming,
    /// Like [`Self::Programming`], and not selected.
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

    /// Returns CURRENT_STATE of the status. A card that sleeps or is inactive sends no status; the
    /// numbers here are eMMC's, 10, and one that no state has, 15.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Sleep => 10,
            Self::Inactive => 15,
            _ => self as u32,
        }
    }

    /// Returns the state that CURRENT_STATE names; `None` for a state into which no host brings a
    /// card.
    #[must_use]
    pub(crate) const fn from_number(number: u32) -> Option<Self> {
        match number {
            0..=8 => Some(Self::ALL[number as usize]),
            10 => Some(Self::Sleep),
            _ => None,
        }
    }

    /// Returns the direction of the transfer that the card is at, which CMD12 ends.
    #[must_use]
    pub const fn transfers(self) -> Option<Direction> {
        match self {
            Self::Data => Some(Direction::Read),
            Self::Receive => Some(Direction::Write),
            _ => None,
        }
    }

    /// Returns the state after the last block of a transfer: a card that sent is done, one that
    /// received is busy. Other states stay. An open-ended transfer has no last block: CMD12 ends
    /// it.
    #[must_use]
    pub const fn after_data(self) -> Self {
        match self {
            Self::Data => Self::Transfer,
            Self::Receive => Self::Programming,
            other => other,
        }
    }

    /// Returns the state after busy. States without busy stay.
    #[must_use]
    pub const fn after_busy(self) -> Self {
        match self {
            Self::Programming => Self::Transfer,
            Self::Disconnect => Self::StandBy,
            other => other,
        }
    }
}

/// The part of the command queue that decides what is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Off, as after power-up.
    Off,
    /// On, without a task.
    Empty,
    /// On, with tasks.
    Busy,
}

/// The numbers of states survive the way through a status.
const _: () = {
    let mut at = 0;
    while at < 10 {
        let state = CardState::ALL[at];
        assert!(state.number() < 16, "CURRENT_STATE has 4 bits");
        assert!(
            matches!(CardState::from_number(state.number()), Some(back) if back as u8 == state as u8)
        );
        at += 1;
    }
};
