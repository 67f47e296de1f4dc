//! The last write whose success the card has not confirmed.

use crate::controller::SlotId;

/// The last write, while the card has not responded to anything since. See
/// [`late_error`](super::late_error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnconfirmedWrite {
    /// No write is unconfirmed.
    None,
    /// The write is done, and its request is still in its slot.
    Held(SlotId),
    /// The write has been reported as done.
    Reported,
}
