//! A model of what only one processor has at a time. Processors get it in the order in which they ask, and hold it while
//! their work lasts.
//!
//! A piece of work has all acquisitions of a lock at its begin, in one go: the lock is held for as long as by all of them
//! together, and the processor waits once.

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
    /// The time for which the lock was held.
    pub held: Duration,
    /// The time that processors waited for the lock.
    pub waited: Duration,
    /// The longest wait of a piece of work.
    pub longest_wait: Duration,
}

/// The state of one lock.
#[derive(Debug, Default)]
pub struct Lock {
    free_at: Instant,
    waiters: VecDeque<CpuId>,
    counts: LockCounts,
}

impl Lock {
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

    /// Takes the lock at `now`, or as soon as it is free, before all waiters. Returns how long the processor waits.
    /// A processor that was granted the lock does not wait.
    pub fn take(&mut self, now: Instant, hold: Hold) -> Duration {
        debug_assert!(hold.acquisitions > 0 || hold.time == Duration::ZERO, "{hold:?}");
        let begin = self.free_at.max(now);
        self.free_at = begin + hold.time;
        self.counts.acquisitions += u64::from(hold.acquisitions);
        self.counts.held += hold.time;
        let wait = begin.since(now);
        self.note_wait(wait);
        wait
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

    /// [lock-before-work]
    #[test]
    fn processors_get_the_lock_in_turn_and_not_before_it_is_free() {
        let mut lock = Lock::default();
        assert_eq!(lock.ask(CpuId(0), at(10)), Ask::Granted);
        assert_eq!(lock.take(at(10), hold(1, 30)), ns(0));
        assert_eq!(lock.ask(CpuId(1), at(20)), Ask::Wait(Some(at(40))));
        assert_eq!(lock.ask(CpuId(2), at(25)), Ask::Wait(None));
        assert_eq!((lock.grant(at(40)), lock.next_grant()), (Some(CpuId(1)), Some(at(40))));
        assert_eq!(lock.take(at(40), hold(1, 5)), ns(0));
        assert_eq!(lock.next_grant(), Some(at(45)));
        assert_eq!((lock.grant(at(45)), lock.next_grant()), (Some(CpuId(2)), None));
    }

    #[test]
    fn work_that_has_not_asked_waits_until_the_lock_is_free_and_others_wait_for_it() {
        let mut lock = Lock::default();
        lock.take(at(0), hold(1, 100));
        assert_eq!(lock.ask(CpuId(1), at(50)), Ask::Wait(Some(at(100))));
        assert_eq!(lock.take(at(60), hold(2, 20)), ns(40));
        assert_eq!((lock.grant(at(100)), lock.next_grant()), (None, Some(at(120))));
        assert_eq!(lock.grant(at(120)), Some(CpuId(1)));
        lock.note_wait(ns(70));
        let counts =
            LockCounts { acquisitions: 3, held: ns(120), waited: ns(110), longest_wait: ns(70) };
        assert_eq!(lock.counts(), counts);
        lock.forget();
        assert_eq!((lock.counts(), lock.next_grant()), (LockCounts::default(), None));
    }
}
