//! The runs of a queue's hardware queues that are still to come.
//!
//! A run that stops while there is work leaves one of three things behind, and the [`RunList`]
//! keeps two of them: a *restart mark*, which the next completion of the queue honours, or a *retry
//! instant*, at which the hardware queue runs although nothing completed. (The third is a
//! registration with the [host](crate::host).) A hardware queue that is to run now is *marked* and
//! waits in the order of the marks.
//!
//! Under budget a completion frees room for one request, so it gives one hardware queue with the
//! restart mark its turn. A run that leaves room passes the turn on, once round at most. What an
//! elevator withholds from all of them is not asked for again and again: once the requests that it
//! gave have used the room of the completions, no turn is passed on in search of more.
//!
//! An elevator may say at which completions it is to be asked. Its hardware queues then have no
//! restart mark because of it, but a retry instant, which belongs to the run by a worker: it stays
//! while a submitter runs the hardware queue, and goes when a run is left to a worker. Such an
//! elevator keeps one order, so one hardware queue asks for all: the one whose completion gave a
//! reason to ask, or began the wait that has ended. Those with the restart mark, which have
//! leftovers, run beside it.
//!
//! The rule [no-lost-wake-up] is declared in [`hardware_queue`](crate::hardware_queue).

use super::number::{hctx_id, index32};
use crate::elevator::AfterFinish;
use crate::hardware_queue::{Bits, Run};
use crate::time::Instant;
use crate::unit::HctxId;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What one hardware queue waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Marked to run: whether the run may be left to a worker.
    marked: Option<bool>,
    /// Run again at this instant.
    retry_at: Option<Instant>,
}

/// Restart marks, retry instants and marked runs of all hardware queues of a request queue.
#[derive(Debug)]
pub(super) struct RunList {
    entries: Vec<Entry>,
    /// How often a turn can be passed on to another hardware queue: their number less one.
    others: u32,
    /// Hardware queues with the restart mark.
    restarts: Bits,
    /// Where the search for the next restart mark begins.
    next_restart: usize,
    /// How often the turn that the last completion gave may still be passed on.
    turns: u32,
    /// Completions that found somebody waiting, less the requests that an elevator has given since.
    unused: u32,
    /// Hardware queues with a retry instant, and one more while the elevator is noted to idle.
    timed: u32,
    /// The earliest retry instant; [`Instant::MAX`] if there is none.
    first_retry: Instant,
    /// Marked hardware queues, in the order of the marks.
    marked: VecDeque<HctxId>,
    /// Whether the elevator says at which completions it is to be asked.
    paced: bool,
    /// Until when such an elevator idles. [`Instant::MAX`]: it does not.
    idles_until: Instant,
    /// Which hardware queue asks it then.
    idles_for: HctxId,
}

impl RunList {
    /// An empty list for `count` hardware queues. `paced`: whether the elevator says at which
    /// completions it is to be asked. Reserves all its memory.
    pub(super) fn new(count: usize, paced: bool) -> Self {
        assert!(count > 0 && u16::try_from(count).is_ok(), "{count} hardware queues");
        Self {
            entries: alloc::vec![Entry::default(); count],
            others: index32(count) - 1,
            restarts: Bits::new(count),
            next_restart: 0,
            turns: 0,
            unused: 0,
            timed: 0,
            first_retry: Instant::MAX,
            marked: VecDeque::with_capacity(count),
            paced,
            idles_until: Instant::MAX,
            idles_for: HctxId(0),
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) const fn heap(count: usize) -> usize {
        count * (size_of::<Entry>() + size_of::<HctxId>()) + Bits::heap(count)
    }

    /// Marks `hctx` to run; `deferred` if a worker may run it. A second mark only makes a deferred
    /// run an immediate one.
    pub(super) fn mark(&mut self, hctx: HctxId, deferred: bool) {
        if self.timed != 0 && self.paced && deferred {
            self.forget_retry(hctx);
        }
        match &mut self.entries[hctx.index()].marked {
            Some(marked) => *marked &= deferred,
            marked => {
                *marked = Some(deferred);
                debug_assert!(self.marked.len() < self.entries.len(), "{hctx:?} is marked twice");
                self.marked.push_back(hctx);
            }
        }
    }

    /// Marks every hardware queue for a deferred run.
    pub(super) fn mark_all(&mut self) {
        for at in 0..self.entries.len() {
            self.mark(hctx_id(at), true);
        }
    }

    /// The hardware queue that was marked first; it is no longer marked.
    pub(super) fn next(&mut self) -> Option<Run> {
        let hctx = self.marked.pop_front()?;
        let deferred = self.entries[hctx.index()].marked.take();
        Some(Run { hctx, deferred: deferred.expect("a listed hardware queue is marked") })
    }

    /// Whether the elevator says at which completions it is to be asked.
    pub(super) const fn is_paced(&self) -> bool {
        self.paced
    }

    /// Whether such an elevator idles, as far as was noted.
    pub(super) fn is_idling(&self) -> bool {
        self.idles_until < Instant::MAX
    }

    /// Notes until when such an elevator idles. If that is news at `now`, `hctx` asks it then.
    pub(super) fn idle_until(&mut self, hctx: HctxId, at: Option<Instant>, now: Instant) {
        debug_assert!(self.paced, "the retry instant of a hardware queue says that");
        let until = at.unwrap_or(Instant::MAX);
        if until == self.idles_until {
            return;
        }
        // The wait before may end now: the elevator knows, but its run is not marked yet. With
        // another request in the device, nothing else asks.
        if self.idles_until <= now {
            self.ask(self.idles_for);
        }
        self.timed -= u32::from(self.is_idling());
        self.idles_until = until;
        self.idles_for = hctx;
        self.timed += u32::from(self.is_idling());
    }

    /// Asks such an elevator if `then` says so, and at the end of its wait. That may be over at
    /// `now`, if the elevator was not asked since.
    pub(super) fn follow(&mut self, then: AfterFinish, now: Instant) {
        let AfterFinish { asks_on, asks_now, idles_until } = then;
        if asks_now {
            self.ask(asks_on);
        }
        self.idle_until(asks_on, idles_until.filter(|at| *at > now), now);
    }

    /// Marks `hctx`, which is to ask the elevator for all of them, and those with the restart mark.
    fn ask(&mut self, hctx: HctxId) {
        debug_assert!(self.paced, "{hctx:?} asks for all of an elevator that keeps them apart");
        self.mark(hctx, true);
        self.restart_all();
    }

    /// A run of `hctx` begins. It answers the restart mark and, unless that is of a worker's run,
    /// the retry instant.
    pub(super) fn begin_run(&mut self, hctx: HctxId) {
        assert!(
            hctx.index() < self.entries.len(),
            "{hctx:?} is not a hardware queue of this queue"
        );
        self.restarts.remove(hctx.index());
        // Mostly none has one.
        if self.timed != 0 && !self.paced {
            self.forget_retry(hctx);
        }
    }

    #[cold]
    fn forget_retry(&mut self, hctx: HctxId) {
        let Some(at) = self.entries[hctx.index()].retry_at.take() else { return };
        debug_assert!(self.timed > 0, "the retry instant of {hctx:?} was not counted");
        self.timed -= 1;
        if at == self.first_retry {
            self.find_first_retry();
        }
    }

    fn find_first_retry(&mut self) {
        let is_idling = u32::from(self.is_idling());
        // Mostly there was one.
        self.first_retry = if self.timed == is_idling {
            Instant::MAX
        } else {
            self.entries.iter().filter_map(|entry| entry.retry_at).min().unwrap_or(Instant::MAX)
        };
    }

    /// Sets the restart mark of `hctx`: the next completion runs it.
    pub(super) fn restart_on_completion(&mut self, hctx: HctxId) {
        self.restarts.insert(hctx.index());
    }

    /// Runs `hctx` at `at`, or at its retry instant if it has one.
    pub(super) fn retry_at(&mut self, hctx: HctxId, at: Instant) {
        let retry_at = &mut self.entries[hctx.index()].retry_at;
        if retry_at.is_none() {
            *retry_at = Some(at);
            self.timed += 1;
            self.first_retry = self.first_retry.min(at);
        }
    }

    /// Runs `hctx` at `at`, or at its retry instant if that is earlier.
    pub(super) fn retry_by(&mut self, hctx: HctxId, at: Instant) {
        let is_late = self.entries[hctx.index()].retry_at.is_some_and(|before| at < before);
        if is_late {
            self.forget_retry(hctx);
        }
        self.retry_at(hctx, at);
        debug_assert!(self.first_retry <= at, "{hctx:?} runs at {at} at the latest");
    }

    /// Marks the hardware queues whose retry instant has come, and the one that asks the elevator
    /// if it no longer idles.
    #[inline]
    pub(super) fn mark_due(&mut self, now: Instant) {
        if self.timed != 0 && self.first_due() <= now {
            self.mark_timed(now);
        }
    }

    fn first_due(&self) -> Instant {
        self.first_retry.min(self.idles_until)
    }

    #[cold]
    fn mark_timed(&mut self, now: Instant) {
        if self.first_retry <= now {
            for at in 0..self.entries.len() {
                if self.entries[at].retry_at.take_if(|due| *due <= now).is_some() {
                    self.timed -= 1;
                    self.turns = self.others + 1; // no completion gave this run its turn
                    self.mark(hctx_id(at), true);
                }
            }
            self.find_first_retry();
        }
        if self.idles_until <= now {
            self.idle_until(self.idles_for, None, now);
        }
    }

    /// The earliest retry instant, or the end of the elevator's idling.
    pub(super) fn poll_at(&self) -> Option<Instant> {
        (self.timed != 0).then(|| self.first_due())
    }

    /// A completion gives one hardware queue with the restart mark its turn.
    #[inline(always)]
    pub(super) fn give_turn(&mut self) {
        if self.restarts.is_empty() {
            // Nobody waits. A run that leaves room may still pass the turn to all others.
            self.turns = self.others;
            self.unused = 0;
        } else {
            self.turns = self.others + 1;
            self.unused += 1;
            self.pass_turn();
        }
    }

    /// Notes that an elevator gave `count` requests, which use the room of as many completions.
    pub(super) fn use_room(&mut self, count: u32) {
        self.unused = self.unused.saturating_sub(count);
    }

    /// Whether completions left room that no request has used since.
    pub(super) const fn has_room(&self) -> bool {
        self.unused > 0
    }

    /// Passes the turn on, once round at most.
    #[inline(always)]
    pub(super) fn pass_turn(&mut self) {
        let Some(left) = self.turns.checked_sub(1) else { return };
        self.turns = left;
        if let Some(at) = self.restarts.next_wrapping(self.next_restart) {
            self.next_restart = (at + 1) % self.entries.len();
            self.restarts.remove(at);
            self.mark(hctx_id(at), true);
        }
    }

    /// Marks every hardware queue with the restart mark. Each call begins with another one, so that
    /// none is always last.
    pub(super) fn restart_all(&mut self) {
        self.next_restart = (self.next_restart + 1) % self.entries.len();
        while let Some(at) = self.restarts.next_wrapping(self.next_restart) {
            self.restarts.remove(at);
            self.mark(hctx_id(at), true);
        }
    }

    /// Makes the counts wrong, for a test that [`Self::self_check`] is called.
    #[cfg(test)]
    pub(super) const fn miscount(&mut self) {
        self.timed += 1;
    }

    /// Checks that the counts and lists agree.
    ///
    /// # Panics
    ///
    /// Panics if they do not.
    pub(super) fn self_check(&self) {
        let retries = self.entries.iter().filter(|entry| entry.retry_at.is_some()).count();
        let timed = retries + usize::from(self.is_idling());
        assert_eq!(timed, self.timed as usize, "hardware queues with a retry instant");
        let first = self.entries.iter().filter_map(|entry| entry.retry_at).min();
        assert_eq!(first.unwrap_or(Instant::MAX), self.first_retry, "the earliest retry instant");
        let marked = self.entries.iter().filter(|entry| entry.marked.is_some()).count();
        assert_eq!(marked, self.marked.len(), "marked hardware queues are listed once each");
        for hctx in &self.marked {
            assert!(
                self.entries[hctx.index()].marked.is_some(),
                "{hctx:?} is listed and not marked"
            );
        }
        assert!(self.next_restart < self.entries.len(), "the search starts at a hardware queue");
        assert!(self.turns <= self.others + 1, "a turn is passed on once round at most");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run answers the restart mark and the retry instant that were set before it.
    #[test]
    fn a_run_that_has_begun_is_not_asked_for_again() {
        let mut runs = RunList::new(2, false);
        let h0 = HctxId(0);
        let begun: [Cause; 2] = [RunList::give_turn, RunList::restart_all];
        for restart in begun {
            runs.restart_on_completion(h0);
            runs.begin_run(h0);
            restart(&mut runs);
            assert_eq!(runs.next(), None, "nobody waits for a completion");
        }
        runs.retry_at(h0, Instant::from_ns(5));
        runs.begin_run(h0);
        runs.mark_due(Instant::from_ns(5));
        assert_eq!((runs.poll_at(), runs.next()), (None, None));
    }

    /// Something that asks for a run.
    type Cause = fn(&mut RunList);

    /// Only a submitter runs a hardware queue itself: what a completion, the clock or the end of a
    /// pause asks for is left to a worker.
    #[test]
    fn a_run_that_no_submitter_asked_for_is_deferred() {
        let mut runs = RunList::new(1, false);
        let h0 = HctxId(0);
        let causes: [(&str, Cause); 4] = [
            ("a turn", |runs| {
                runs.restart_on_completion(HctxId(0));
                runs.give_turn();
            }),
            ("a restart of all", |runs| {
                runs.restart_on_completion(HctxId(0));
                runs.restart_all();
            }),
            ("a retry", |runs| {
                runs.retry_at(HctxId(0), Instant::from_ns(5));
                runs.mark_due(Instant::from_ns(5));
            }),
            ("the end of a pause", RunList::mark_all),
        ];
        for (cause, ask) in causes {
            ask(&mut runs);
            assert_eq!(runs.next(), Some(Run { hctx: h0, deferred: true }), "{cause}");
            assert_eq!(runs.next(), None, "{cause}");
        }
        for (marks, deferred) in
            [([true, true], true), ([true, false], false), ([false, true], false)]
        {
            marks.into_iter().for_each(|mark| runs.mark(h0, mark));
            assert_eq!(runs.next(), Some(Run { hctx: h0, deferred }), "{marks:?}");
            assert_eq!(runs.next(), None, "one run answers both marks");
        }
    }

    /// A hardware queue runs at its first retry instant, whatever comes later.
    #[test]
    fn a_retry_comes_at_its_first_instant_and_once() {
        let at = Instant::from_ns;
        let mut runs = RunList::new(2, false);
        runs.retry_at(HctxId(1), at(7));
        runs.retry_at(HctxId(1), at(9));
        runs.retry_at(HctxId(0), at(8));
        assert_eq!(runs.poll_at(), Some(at(7)));
        runs.mark_due(at(6));
        assert_eq!(runs.next(), None, "not before");
        runs.mark_due(at(7));
        assert_eq!(runs.next().map(|run| run.hctx), Some(HctxId(1)));
        assert_eq!((runs.next(), runs.poll_at()), (None, Some(at(8))));
        runs.mark_due(at(20));
        assert_eq!(runs.next().map(|run| run.hctx), Some(HctxId(0)));
        assert_eq!((runs.next(), runs.poll_at()), (None, None));
    }

    /// Under a paced elevator, the retry instant belongs to the run by a worker. It is not that of
    /// the end of the idling, at which one hardware queue asks for all.
    #[test]
    fn a_retry_of_a_paced_elevator_outlasts_a_run_by_a_submitter() {
        let at = Instant::from_ns;
        let mut runs = RunList::new(2, true);
        runs.retry_at(HctxId(1), at(8));
        runs.mark(HctxId(1), false);
        assert_eq!(runs.next(), Some(Run { hctx: HctxId(1), deferred: false }));
        runs.begin_run(HctxId(1));
        runs.retry_at(HctxId(1), at(12));
        assert_eq!(runs.poll_at(), Some(at(8)), "a submitter's run changes nothing");
        runs.mark(HctxId(1), true);
        assert_eq!(runs.poll_at(), None, "a worker's run comes at once instead");
        let _ = runs.next();
        runs.begin_run(HctxId(1));
        runs.retry_at(HctxId(1), at(12));
        runs.idle_until(HctxId(0), Some(at(9)), at(1));
        runs.idle_until(HctxId(1), Some(at(9)), at(1)); // no news
        assert_eq!(runs.poll_at(), Some(at(9)));
        runs.mark_due(at(9));
        assert_eq!(runs.next(), Some(Run { hctx: HctxId(0), deferred: true }));
        assert_eq!((runs.next(), runs.poll_at()), (None, Some(at(12))));
        runs.idle_until(HctxId(0), Some(at(20)), at(9));
        runs.idle_until(HctxId(0), None, at(10));
        assert_eq!(runs.poll_at(), Some(at(12)), "the request came for which it idled");
    }

    /// One hardware queue asks a paced elevator for all: of four, that is the third. The second one
    /// has leftovers, which no other one sends.
    #[test]
    fn one_hardware_queue_asks_a_paced_elevator() {
        let mut runs = RunList::new(4, true);
        let until = Instant::from_ns(9);
        let asked: [fn(&mut RunList, Instant); 3] = [
            |runs, _| runs.ask(HctxId(2)),
            |runs, until| {
                runs.idle_until(HctxId(2), Some(until), Instant::ZERO);
                runs.mark_due(until);
            },
            |runs, until| {
                runs.idle_until(HctxId(2), Some(until), Instant::ZERO);
                runs.idle_until(HctxId(0), None, until);
            },
        ];
        for ask in asked {
            runs.restart_on_completion(HctxId(1));
            ask(&mut runs, until);
            let named: Vec<_> = core::iter::from_fn(|| runs.next()).map(|run| run.hctx.0).collect();
            assert_eq!(named, [2, 1]);
        }
    }

    /// The elevator is to be asked again at 8, but a resource that was exhausted at 2 may be there
    /// again at 5. One that may be there at 11 changes nothing.
    #[test]
    fn the_earlier_retry_of_a_resource_counts() {
        let at = Instant::from_ns;
        for paced in [false, true] {
            let mut runs = RunList::new(2, paced);
            runs.retry_at(HctxId(0), at(8));
            runs.retry_by(HctxId(0), at(11));
            assert_eq!(runs.poll_at(), Some(at(8)));
            runs.retry_by(HctxId(0), at(5));
            runs.retry_by(HctxId(1), at(6));
            assert_eq!(runs.poll_at(), Some(at(5)));
            runs.mark_due(at(5));
            assert_eq!(runs.next().map(|run| run.hctx), Some(HctxId(0)));
            assert_eq!((runs.next(), runs.poll_at()), (None, Some(at(6))));
            runs.self_check();
        }
    }

    /// All wait again as soon as they were named.
    #[test]
    fn turns_and_restarts_go_round() {
        let mut runs = RunList::new(4, false);
        let mut named = Vec::new();
        for _ in 0..8 {
            (0..4).for_each(|at| runs.restart_on_completion(HctxId(at)));
            runs.give_turn();
            named.extend(core::iter::from_fn(|| runs.next()).map(|run| run.hctx.0));
        }
        assert_eq!(named, [0, 1, 2, 3, 0, 1, 2, 3]);
        for first in [1, 2, 3, 0] {
            (0..4).for_each(|at| runs.restart_on_completion(HctxId(at)));
            runs.restart_all();
            let named = core::iter::from_fn(|| runs.next()).map(|run| run.hctx.0);
            assert!(named.eq((0..4).map(|at| (first + at) % 4)), "hardware queue {first} first");
        }
    }
}
