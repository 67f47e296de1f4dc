//! The share of TLS handshakes in the time of a lane.
//!
//! A handshake takes a signature of the server's key. With RSA and 4096 bits this is the time of
//! hundreds of reads (5 ms on common processors), and everybody who can connect can ask for one.
//!
//! So handshakes get a tenth. A lane takes at most one step of a handshake in a turn. While it also
//! ends requests (one in the last [`RECENT`]), it lets nine times the processor time of a step pass
//! before the next one: 45 ms after one of 5 ms. Clients take steps in the order in which they
//! asked.

use crate::lane::numbers::Numbers;
use blockyard::time::{Duration, Instant};
use blockyard_std::parts::clock;

/// The time after the end of a request for which others count as having requests.
const RECENT: Duration = Duration::from_ms(100);
/// The time between two steps, as a multiple of the processor time of the first: handshakes get one
/// part of ten.
const PAUSES: u64 = 9;

/// The handshakes of one lane. See the [module](self).
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// Doors that wait for a step.
    waiting: Numbers,
    /// Whether the door that is called may take a step.
    may_step: bool,
    /// The earliest instant of the next step, if requests end.
    next_at: Instant,
    /// The instant until which others count as having requests.
    busy_until: Instant,
}

impl Default for Handshakes {
    fn default() -> Self {
        let past = Instant::ZERO;
        Self { waiting: Numbers::default(), may_step: false, next_at: past, busy_until: past }
    }
}

impl Handshakes {
    /// Notes that requests have ended at `now`.
    pub(crate) fn note_ended_requests(&mut self, now: Instant) {
        self.busy_until = now + RECENT;
    }

    /// Returns when to call [`Self::next_door`], if a door waits.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.next_at.min(self.busy_until))
    }

    /// Returns the door that may take a step now, if one waits and it is time. The lane calls the
    /// door before [`Self::revoke_step`].
    pub(crate) fn next_door(&mut self, now: Instant) -> Option<u32> {
        // Without requests in the last 100 ms, nobody has to be protected, and the next step may
        // follow in the next turn.
        self.may_step = self.poll_at()? <= now;
        self.may_step.then(|| self.waiting.pop_first())?
    }

    /// Takes back what [`Self::next_door`] permitted.
    pub(crate) fn revoke_step(&mut self) {
        self.may_step = false;
    }

    /// Calls `step` if `door` may take a step. Otherwise lists the door for a later turn and
    /// returns `None`.
    pub(crate) fn take_step<T>(
        &mut self,
        door: u32,
        now: Instant,
        step: impl FnOnce() -> T,
    ) -> Option<T> {
        if !core::mem::take(&mut self.may_step) {
            self.waiting.insert(door);
            return None;
        }
        let before = clock::processor_time();
        let stepped = step();
        let took = clock::processor_time() - before;
        // A step of 5 ms makes the next one wait for 45 ms after its end: 50 ms after its begin.
        let share = Duration::from_ns(took.as_ns().saturating_mul(PAUSES + 1));
        self.next_at = self.next_at.max(now + share);
        Some(stepped)
    }

    /// Forgets a door that is closed.
    pub(crate) fn remove_door(&mut self, door: u32) {
        self.waiting.remove(door);
    }
}
