//! A lock as a resource: granted in the order it was asked for, held for as long as the work that
//! holds it says.

use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use std::collections::VecDeque;

/// What a processor that asks for a lock is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// It has the lock.
    Granted,
    /// It spins. The lock is next free at this instant, where that has not been said to an earlier
    /// waiter.
    Wait(Option<Instant>),
}

/// One lock.
#[derive(Debug, Default)]
pub struct Lock {
    free_at: Instant,
    waiters: VecDeque<CpuId>,
}

impl Lock {
    /// `cpu` wants the lock at `now`.
    pub fn ask(&mut self, cpu: CpuId, now: Instant) -> Ask {
        if self.waiters.is_empty() && self.free_at <= now {
            return Ask::Granted;
        }
        let first = self.waiters.is_empty();
        self.waiters.push_back(cpu);
        Ask::Wait(first.then_some(self.free_at))
    }

    /// The holder keeps it from `now` for `hold`.
    pub fn hold(&mut self, now: Instant, hold: Duration) {
        self.free_at = now + hold;
    }

    /// The lock is free: who has waited longest gets it.
    pub fn grant(&mut self) -> Option<CpuId> {
        self.waiters.pop_front()
    }

    /// When to call [`Self::grant`] again, while somebody waits.
    #[must_use]
    pub fn next_grant(&self) -> Option<Instant> {
        (!self.waiters.is_empty()).then_some(self.free_at)
    }
}
