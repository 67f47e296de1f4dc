//! The transfer that stays open. See [`left_open`](super::left_open).

use crate::command::Direction;
use blockyard::time::Instant;

/// A transfer that has not been stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenTransfer {
    pub(super) direction: Direction,
    /// The sector at which a request continues it.
    pub(super) next: u64,
    /// The instant from which on it is closed if no request has continued it.
    pub(super) until: Instant,
    /// CMD12 is on its way, or the card is busy after it.
    pub(super) is_closing: bool,
    /// More than the last write of it is unconfirmed.
    pub(super) has_earlier_writes: bool,
}
