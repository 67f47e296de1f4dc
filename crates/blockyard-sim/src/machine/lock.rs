//! A model of a lock. Processors get it in the order in which they ask, and hold it while their work lasts.

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

/// The state of one lock.
#[derive(Debug, Default)]
pub struct Lock {
    free_at: Instant,
    waiters: VecDeque<CpuId>,
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

    /// Keeps the lock taken from `now` for `hold`.
    pub fn hold(&mut self, now: Instant, hold: Duration) {
        debug_assert!(
            self.free_at <= now,
            "a lock held until {} must not be taken at {now}",
            self.free_at
        );
        self.free_at = now + hold;
    }

    /// Grants the free lock to the processor that has waited longest.
    pub fn grant(&mut self) -> Option<CpuId> {
        self.waiters.pop_front()
    }

    /// Returns when to call [`Self::grant`] again; `None` if no processor waits.
    #[must_use]
    pub fn next_grant(&self) -> Option<Instant> {
        (!self.waiters.is_empty()).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [lock-before-work]
    #[test]
    fn processors_get_the_lock_in_turn_and_not_before_it_is_free() {
        let (at, ns) = (Instant::from_ns, Duration::from_ns);
        let mut lock = Lock::default();
        assert_eq!(lock.ask(CpuId(0), at(10)), Ask::Granted);
        lock.hold(at(10), ns(30));
        assert_eq!(lock.ask(CpuId(1), at(20)), Ask::Wait(Some(at(40))));
        assert_eq!(lock.ask(CpuId(2), at(25)), Ask::Wait(None));
        assert_eq!((lock.grant(), lock.next_grant()), (Some(CpuId(1)), Some(at(40))));
        lock.hold(at(40), ns(5));
        assert_eq!(lock.next_grant(), Some(at(45)));
        assert_eq!((lock.grant(), lock.next_grant()), (Some(CpuId(2)), None));
    }
}
