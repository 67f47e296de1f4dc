//! The kinds of operations that have the card to themselves.

use crate::card::erase::EraseWay;
use crate::target::Target;
use blockyard::bio::Op;

/// The kind of an exclusive operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Flushes the cache.
    Flush,
    /// Discards a range.
    Discard,
    /// Makes a range read as zeroes.
    WriteZeroes,
    /// Erases a range with every copy of it.
    SecureErase,
    /// Erases everything that was ever discarded, with every copy of it.
    Sanitize,
    /// Runs background operations, if they are urgent. See [`background`](super::background).
    Background,
    /// Closes a transfer that no request continues. See [`left_open`](super::left_open).
    CloseTransfer,
}

impl Operation {
    /// Returns the operation that `op` is on `target`; `None` where `target` has no such operation.
    pub(super) fn of(op: Op, target: &Target) -> Option<Self> {
        let operation = match op {
            Op::Flush => return Some(Self::Flush),
            Op::Discard => Self::Discard,
            Op::WriteZeroes => Self::WriteZeroes,
            Op::SecureErase => Self::SecureErase,
            Op::Read | Op::Write | Op::DriverIn | Op::DriverOut => return None,
        };
        (!operation.erases(target).is_empty()).then_some(operation)
    }

    /// Returns the erases of which the operation consists on `target`.
    pub(super) fn erases(self, target: &Target) -> &[EraseWay] {
        match self {
            Self::Flush | Self::Sanitize | Self::Background | Self::CloseTransfer => &[],
            Self::Discard => target.discard.as_slice(),
            Self::WriteZeroes => target.write_zeroes.as_slice(),
            Self::SecureErase => target.secure_erase.as_ref().map_or(&[], |ways| ways),
        }
    }
}
