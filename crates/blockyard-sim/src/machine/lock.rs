//! A model of what only one processor has at a time: a lock with the data that it guards, or a word that processors change.
//! Processors get it in the order in which they ask, and hold it while their work lasts.
//!
//! A piece of work makes all acquisitions of a lock in one go: the lock is held for as long as by all of them together, and
//! the processor waits once. A piece of work takes one lock after another. A lock serves pieces of work in the order of
//! their begins, without a gap.
//!
//! # Rules
//!
//! - **[lock-moves-between-processors]** An acquisition takes longer if another processor had the lock before: cache lines
//!   move. That is so for the first acquisition of a piece of work if its processor was not the last one, and for all others
//!   while another processor wants the lock.

use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use std::collections::VecDeque;

/// The answer to a processor that requests a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The processor has the lock.
    Granted,
    /// The processor spins. The first waiter also gets the instant at which the lock is free.
    Wait(Option<Instant>),
}

/// The use that a piece of work makes of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// The number of acquisitions.
    pub acquisitions: u32,
    /// The time for which they hold the lock together.
    pub time: Duration,
}

/// The use that was made of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCounts {
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// The acquisitions for which cache lines moved.
    pub moves: u64,
    /// The time for which the lock was held, with those moves.
    pub held: Duration,
    /// The time that processors waited for the lock.
    pub waited: Duration,
    /// The longest wait of a piece of work.
    pub longest_wait: Duration,
}

/// The time that a piece of work spends for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Until the processor has the lock.
    pub wait: Duration,
    /// Until it gives the lock back.
    pub held: Duration,
}

/// The state of one lock.
#[derive(Clone, Debug, Default)]
pub struct Contended {
    free_at: Instant,
    /// The processor that had the lock last.
    last: Option<CpuId>,
    waiters: VecDeque<CpuId>,
    counts: LockCounts,
}

impl Contended {
    /// Requests the lock for `cpu` at `now`.
    pub fn ask(&mut self, cpu: CpuId, now: Instant) -> Ask {
        debug_assert!(!self.waiters.contains(&cpu), "{cpu:?} already waits for the lock");
        if self.waiters.is_empty() && self.free_at <= now {
            return Ask::Granted;
        }
        let first = self.waiters.is_empty();
        self.waiters.push_back(cpu);
        Ask::Wait(first.then_some(self.free_at))
    }

    /// Takes the lock for work of `cpu` that began at `now`, or as soon as it is free, before all waiters. A processor that
    /// was granted the lock does not wait. `busy` is how long the work has waited for other locks or held them: it has
    /// waited for this one too meanwhile. `transfer` is the time of a move between processors
    /// ([lock-moves-between-processors]).
    pub fn take(
        &mut self,
        cpu: CpuId,
        now: Instant,
        busy: Duration,
        hold: Hold,
        transfer: Duration,
    ) -> Taken {
        debug_assert!(hold.acquisitions > 0, "{cpu:?} uses a lock without an acquisition");
        let begin = self.free_at.max(now);
        let first = u32::from(self.last.is_some_and(|last| last != cpu));
        let wait = begin.since(begin.min(now + busy));
        let is_wanted = wait > Duration::ZERO || !self.waiters.is_empty();
        let moves = first + if is_wanted { hold.acquisitions - 1 } else { 0 };
        let held = hold.time + Duration::from_ns(transfer.as_ns() * u64::from(moves));
        self.free_at = begin + held;
        self.last = Some(cpu);
        self.counts.acquisitions += u64::from(hold.acquisitions);
        self.counts.moves += u64::from(moves);
        self.counts.held += held;
        self.note_wait(wait);
        Taken { wait, held }
    }

    /// Grants the lock, if it is free at `now`, to the processor that has waited longest.
    pub fn grant(&mut self, now: Instant) -> Option<CpuId> {
        if self.free_at > now { None } else { self.waiters.pop_front() }
    }

    /// Counts a `wait` that has ended.
    pub fn note_wait(&mut self, wait: Duration) {
        self.counts.waited += wait;
        self.counts.longest_wait = self.counts.longest_wait.max(wait);
    }

    /// Returns when to call [`Self::grant`] again; `None` if no processor waits.
    #[must_use]
    pub fn next_grant(&self) -> Option<Instant> {
        (!self.waiters.is_empty()).then_some(self.free_at)
    }

    /// Returns the counts.
    #[must_use]
    pub const fn counts(&self) -> LockCounts {
        self.counts
    }

    /// Resets the counts.
    pub fn forget(&mut self) {
        self.counts = LockCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    const fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    const fn hold(acquisitions: u32, time_ns: u64) -> Hold {
        Hold { acquisitions, time: ns(time_ns) }
    }

    /// Takes a lock whose moves are free. Returns the wait and the time held, in nanoseconds.
    fn take(lock: &mut Contended, cpu: u16, now: u64, hold: Hold) -> (u64, u64) {
        let Taken { wait, held } = lock.take(CpuId(cpu), at(now), ns(0), hold, ns(0));
        (wait.as_ns(), held.as_ns())
    }

    /// [lock-before-work]
    #[test]
    fn processors_get_the_lock_in_turn_and_not_before_it_is_free() {
        let mut lock = Contended::default();
        assert_eq!(lock.ask(CpuId(0), at(10)), Ask::Granted);
        assert_eq!(take(&mut lock, 0, 10, hold(1, 30)), (0, 30));
        assert_eq!(lock.ask(CpuId(1), at(20)), Ask::Wait(Some(at(40))));
        assert_eq!(lock.ask(CpuId(2), at(25)), Ask::Wait(None));
        assert_eq!((lock.grant(at(40)), lock.next_grant()), (Some(CpuId(1)), Some(at(40))));
        assert_eq!(take(&mut lock, 1, 40, hold(1, 5)), (0, 5));
        assert_eq!(lock.next_grant(), Some(at(45)));
        assert_eq!((lock.grant(at(45)), lock.next_grant()), (Some(CpuId(2)), None));
    }

    #[test]
    fn work_that_has_not_asked_waits_until_the_lock_is_free_and_others_wait_for_it() {
        let mut lock = Contended::default();
        take(&mut lock, 0, 0, hold(1, 100));
        assert_eq!(lock.ask(CpuId(1), at(50)), Ask::Wait(Some(at(100))));
        assert_eq!(take(&mut lock, 0, 60, hold(2, 20)), (40, 20));
        assert_eq!((lock.grant(at(100)), lock.next_grant()), (None, Some(at(120))));
        assert_eq!(lock.grant(at(120)), Some(CpuId(1)));
        lock.note_wait(ns(70));
        let counts = LockCounts {
            acquisitions: 3,
            moves: 1,
            held: ns(120),
            waited: ns(110),
            longest_wait: ns(70),
        };
        assert_eq!(lock.counts(), counts);
        lock.forget();
        assert_eq!((lock.counts(), lock.next_grant()), (LockCounts::default(), None));
    }

    /// Work that takes two locks, each taken for 100 ns more, waits for 100 ns and not for 200.
    #[test]
    fn a_processor_that_waits_for_one_lock_does_not_wait_for_another_at_the_same_time() {
        let (mut first, mut second) = (Contended::default(), Contended::default());
        take(&mut first, 0, 0, hold(1, 100));
        take(&mut second, 0, 0, hold(1, 100));
        let mut busy = ns(0);
        let waits = [&mut first, &mut second].map(|lock| {
            let taken = lock.take(CpuId(1), at(0), busy, hold(1, 10), ns(0));
            busy += taken.wait + taken.held;
            taken.wait.as_ns()
        });
        assert_eq!((waits, busy), ([100, 0], ns(120)));
    }

    /// [lock-moves-between-processors]
    #[test]
    fn cache_lines_move_when_another_processor_had_the_lock_or_wants_it() {
        let mut lock = Contended::default();
        let held = |lock: &mut Contended, cpu, now| {
            lock.take(CpuId(cpu), at(now), ns(0), hold(3, 100), ns(7)).held.as_ns()
        };
        assert_eq!([held(&mut lock, 0, 0), held(&mut lock, 0, 200)], [100, 100]);
        assert_eq!(held(&mut lock, 1, 300), 107);
        assert_eq!(lock.ask(CpuId(0), at(310)), Ask::Wait(Some(at(407))));
        assert_eq!(held(&mut lock, 1, 407), 114);
        assert_eq!(lock.counts().moves, 3);
    }
}
