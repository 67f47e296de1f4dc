//! The clocks of a task's writes through the page cache, and of its syncs.

use blockyard::time::Instant;
use blockyard_fio::measure::call_time::{CallClock, CallPart, CallTimes};

/// The clocks of the calls whose results the job has not taken, by slot. There are at most as many
/// as the job's depth, and the last one is nearly always asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    running: Vec<(u32, CallClock)>,
    /// The times of the call whose clock was stopped last.
    stopped: Option<CallTimes>,
}

impl Clocks {
    /// Starts the clock of the call of `slot` at `now`.
    pub(crate) fn start(&mut self, slot: u32, now: Instant) {
        debug_assert!(self.find(slot).is_none(), "slot {slot} has a clock");
        self.running.push((slot, CallClock::start(now)));
    }

    fn find(&mut self, slot: u32) -> Option<&mut CallClock> {
        let found = self.running.iter_mut().rev().find(|(of, _)| *of == slot);
        found.map(|(_, clock)| clock)
    }

    /// Gives the time of the call of `slot` from `now` on to `part`. A read has no clock.
    pub(crate) fn turn(&mut self, slot: u32, part: CallPart, now: Instant) {
        if let Some(clock) = self.find(slot) {
            clock.turn(part, now);
        }
    }

    /// Counts a page that is read because the call of `slot` writes a part of it.
    pub(super) fn read_page(&mut self, slot: u32) {
        if let Some(clock) = self.find(slot) {
            clock.read_page();
        }
    }

    /// Stops the clock of the call of `slot` at `now`. A read has none.
    pub(crate) fn stop(&mut self, slot: u32, now: Instant) {
        let at = self.running.iter().rposition(|(of, _)| *of == slot);
        self.stopped = at.map(|at| self.running.swap_remove(at).1.stop(now));
    }

    /// Whether there is one clock alone: that of a call that ran in memory from `begun` until
    /// `now`.
    pub(super) fn is_only_in_memory(&self, begun: Instant, now: Instant) -> bool {
        matches!(&self.running[..], [(_, clock)] if *clock == in_memory(begun, now))
    }

    /// Makes the only clock that of the call of `slot` that ran in memory from `begun` until
    /// `ended`.
    pub(super) fn redo_in_memory(&mut self, slot: u32, begun: Instant, ended: Instant) {
        self.running[0] = (slot, in_memory(begun, ended));
    }

    /// Returns the times of the call whose clock was stopped last.
    pub(crate) const fn take_stopped(&mut self) -> Option<CallTimes> {
        self.stopped.take()
    }
}

/// Returns the clock of a call that ran in memory from `begun` until `ended`.
fn in_memory(begun: Instant, ended: Instant) -> CallClock {
    let mut clock = CallClock::start(begun);
    clock.turn(CallPart::NotReaped, ended);
    clock
}
