//! The front end of a drive: what the host sees of it.

use crate::medium::Access;
use blockyard::time::{Duration, Instant};
use core::fmt::Debug;

/// The times for which parts of a front end were in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontUse {
    /// The controller, or the host's thread that stands for one.
    pub controller: Duration,
    /// The link, in the direction that was used for longer.
    pub link: Duration,
}

/// A front end.
pub(super) trait Front: Debug + Send {
    /// Takes room for a command. Returns whether there was room.
    fn admit(&mut self, access: Access) -> bool {
        let _ = access;
        true
    }

    /// Gives the room of a command back.
    fn release(&mut self, access: Access) {
        let _ = access;
    }

    /// Returns whether it takes a doorbell at `now` to let the drive know of commands.
    fn needs_doorbell(&self, now: Instant) -> bool {
        let _ = now;
        true
    }

    /// Takes a command of which the controller learns at `now`. Returns when the medium can begin.
    fn send(&mut self, access: Access, now: Instant) -> Instant;

    /// Answers a command with which the medium is done at `now`. Returns when the host has the answer.
    fn answer(&mut self, access: Access, now: Instant) -> Instant;

    /// Returns what was in use since the last call of [`Self::forget`].
    fn used(&self) -> FrontUse;

    /// Starts measuring use again.
    fn forget(&mut self);
}
