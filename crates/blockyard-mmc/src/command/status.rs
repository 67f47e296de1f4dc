//! The card's status, 32 bits in every R1 (JESD84-B51 6.13; SD 4.10.1).

use super::state::CardState;
use core::fmt;

/// A card's status.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl Status {
    /// The address was beyond the end.
    pub const OUT_OF_RANGE: u32 = 1 << 31;
    /// The address was not a multiple of the block length.
    pub const ADDRESS_MISALIGN: u32 = 1 << 30;
    /// The block length was not allowed, or did not match the data.
    pub(crate) const BLOCK_LEN_ERROR: u32 = 1 << 29;
    /// The commands of an erase came in the wrong order.
    pub const ERASE_SEQ_ERROR: u32 = 1 << 28;
    /// The range of the erase was not allowed.
    pub const ERASE_PARAM: u32 = 1 << 27;
    /// The write went to a protected block.
    pub(crate) const WP_VIOLATION: u32 = 1 << 26;
    /// The card is locked. Not an error.
    pub(crate) const CARD_IS_LOCKED: u32 = 1 << 25;
    /// Locking or unlocking failed.
    pub(crate) const LOCK_UNLOCK_FAILED: u32 = 1 << 24;
    /// The command before this one came with a wrong CRC.
    pub(crate) const COM_CRC_ERROR: u32 = 1 << 23;
    /// The command before this one was not legal in the card's state.
    pub const ILLEGAL_COMMAND: u32 = 1 << 22;
    /// The card could not correct what it read.
    pub(crate) const CARD_ECC_FAILED: u32 = 1 << 21;
    /// The card's controller failed.
    pub(crate) const CC_ERROR: u32 = 1 << 20;
    /// The card failed for a reason that it does not state.
    pub const ERROR: u32 = 1 << 19;
    /// CID or CSD was written twice, or wrongly.
    pub(crate) const CSD_OVERWRITE: u32 = 1 << 16;
    /// The erase left out protected blocks.
    pub(crate) const WP_ERASE_SKIP: u32 = 1 << 15;
    /// Another command came, and the card has forgotten the erase that had begun. Not an error.
    pub const ERASE_RESET: u32 = 1 << 13;
    /// The card's buffer is empty: it takes data, and is not busy.
    pub const READY_FOR_DATA: u32 = 1 << 8;
    /// eMMC: the last switch failed.
    pub const SWITCH_ERROR: u32 = 1 << 7;
    /// eMMC: an exception; EXT_CSD byte 54 says which. Not an error.
    pub const EXCEPTION_EVENT: u32 = 1 << 6;
    /// The card takes the next command for an application command.
    pub const APP_CMD: u32 = 1 << 5;

    /// Every bit that means failure, on either standard.
    pub(crate) const ERRORS: u32 = Self::OUT_OF_RANGE
        | Self::ADDRESS_MISALIGN
        | Self::BLOCK_LEN_ERROR
        | Self::ERASE_SEQ_ERROR
        | Self::ERASE_PARAM
        | Self::WP_VIOLATION
        | Self::LOCK_UNLOCK_FAILED
        | Self::COM_CRC_ERROR
        | Self::ILLEGAL_COMMAND
        | Self::CARD_ECC_FAILED
        | Self::CC_ERROR
        | Self::ERROR
        | Self::CSD_OVERWRITE
        | Self::WP_ERASE_SKIP
        | Self::SWITCH_ERROR;

    /// Bits that may speak of work after the previous response: the card could not program a page.
    pub const OF_WORK_BEFORE: u32 = Self::ERROR | Self::CC_ERROR;

    /// Returns whether any of `bits` is set.
    #[must_use]
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// Returns the bits that mean failure; 0 if there is none.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.0 & Self::ERRORS
    }

    /// Returns CURRENT_STATE, bits 12:9: the card's state when the command came, before the command
    /// took effect. `None` for a number that neither standard has.
    #[must_use]
    pub const fn state(self) -> Option<CardState> {
        CardState::from_number(self.0 >> 9 & 0xf)
    }

    /// Returns whether the card is selected, idle and has room: a host waits for this after busy.
    #[must_use]
    pub fn is_ready(self) -> bool {
        self.has(Self::READY_FOR_DATA) && self.state() == Some(CardState::Transfer)
    }

    /// A status without errors.
    #[must_use]
    pub const fn new(state: CardState, ready: bool) -> Self {
        let ready = if ready { Self::READY_FOR_DATA } else { 0 };
        Self(state.number() << 9 | ready)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#010x})", self.0)
    }
}

/// Which bits are errors.
const _: () = {
    assert!(Status::OF_WORK_BEFORE & !Status::ERRORS == 0, "failures of earlier work are errors");
    assert!(Status::EXCEPTION_EVENT & Status::ERRORS == 0, "an exception is no error");
    assert!(Status::CARD_IS_LOCKED & Status::ERRORS == 0, "a locked card is no error");
    assert!(Status::ERRORS & 0x1f00 == 0, "state and readiness are no errors");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_statuses_are_read_correctly() {
        // 0x900: transfer, ready. 0xe00: programming, busy. 0x980: a switch refused.
        assert!(Status(0x900).is_ready() && Status(0x900).errors() == 0);
        assert_eq!(Status(0xe00).state(), Some(CardState::Programming));
        assert!(!Status(0xe00).is_ready());
        assert_eq!(Status(0x980).errors(), Status::SWITCH_ERROR);
        // An exception and a locked card are no errors; a command that was illegal is.
        assert_eq!(Status(0x0200_0940).errors(), 0);
        assert!(Status(0x0940).has(Status::EXCEPTION_EVENT));
        assert_eq!(Status(0x0040_0900).errors(), Status::ILLEGAL_COMMAND);
        assert_eq!(Status(0xf << 9).state(), None);
        assert_eq!(Status::new(CardState::Transfer, true), Status(0x900));
        assert_eq!(Status::new(CardState::Programming, false), Status(0xe00));
    }
}
