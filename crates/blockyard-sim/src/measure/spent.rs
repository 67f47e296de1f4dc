//! What job instances spend their time on: computing, or waiting, and for what.

use blockyard::time::{Duration, Instant};

/// Times of instances, added up. What is left of their lives they were ready and had no processor,
/// or spun for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// From the begin of measuring to the end.
    pub alive: Duration,
    /// Computing between I/Os (`thinktime_spin`).
    pub thinking: Duration,
    /// Computing in calls: what a job does to have its I/Os done, and polling.
    pub in_calls: Duration,
    /// Asleep because it wants to be: its think time or its rate, or records of a trace say so.
    pub pausing: Duration,
    /// Asleep until I/Os end, or a tag is free, and until it runs again.
    pub waiting: Duration,
}

impl Spent {
    /// What is left of the lives.
    #[must_use]
    pub fn ready(&self) -> Duration {
        let known = [self.thinking, self.in_calls, self.pausing, self.waiting];
        let known = known.into_iter().fold(Duration::ZERO, |sum, part| sum + part);
        Duration::from_ns(self.alive.as_ns().saturating_sub(known.as_ns()))
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.alive += other.alive;
        self.thinking += other.thinking;
        self.in_calls += other.in_calls;
        self.pausing += other.pausing;
        self.waiting += other.waiting;
    }

    /// An instance that is measured from `measured_from` on slept for `rest`, until `now`.
    pub fn rested(&mut self, rest: Rest, measured_from: Instant, now: Instant) {
        let from = rest.since.max(measured_from);
        match rest.until {
            Some(due) => self.pausing += due.min(now).since(from.min(due.min(now))),
            None => self.waiting += now.since(from.min(now)),
        }
    }
}

/// A sleep of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// When it began.
    pub since: Instant,
    /// Until when it was meant to go on; `None`: until an I/O ends or a tag is free.
    pub until: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_counts_from_when_measuring_began() {
        let at = Instant::from_ns;
        let mut spent = Spent::default();
        let waits = Rest { since: at(100), until: None };
        spent.rested(waits, at(0), at(130));
        spent.rested(waits, at(120), at(130));
        spent.rested(waits, at(200), at(130));
        assert_eq!(spent.waiting, Duration::from_ns(30 + 10));
        // Woken by its alarm at 150 it runs at 160; woken by something else it runs at 140.
        let pauses = Rest { since: at(100), until: Some(at(150)) };
        spent.rested(pauses, at(0), at(160));
        spent.rested(pauses, at(0), at(140));
        spent.rested(pauses, at(155), at(160));
        assert_eq!(spent.pausing, Duration::from_ns(50 + 40));
        spent.alive = Duration::from_ns(200);
        assert_eq!(spent.ready(), Duration::from_ns(200 - 40 - 90));
    }
}
