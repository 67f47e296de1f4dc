//! The time of job instances by use: computing, and waiting by cause.

use blockyard::time::{Duration, Instant};

/// Times of instances, added up. In the rest of their lives the instances were ready without a
/// processor, or spun for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// From the start of measuring to the end.
    pub alive: Duration,
    /// Computing between I/Os (`thinktime_spin`).
    pub thinking: Duration,
    /// Computing in calls, for the job's I/Os and for polling.
    pub in_calls: Duration,
    /// Asleep by choice, for a think time, a rate or the pace of a trace.
    pub pausing: Duration,
    /// The part of `pausing` of instances that keep to a rate, or to the pace of a trace.
    pub paced: Duration,
    /// Asleep until I/Os end or a tag is free, and then until the instance runs again.
    pub waiting: Duration,
}

impl Spent {
    /// Returns the rest of the lives.
    #[must_use]
    pub fn ready(&self) -> Duration {
        debug_assert!(self.paced <= self.pausing, "who keeps a pace pauses: {self:?}");
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
        self.paced += other.paced;
        self.waiting += other.waiting;
    }

    /// Counts that an instance, measured from `measured_from` on, slept for `rest` until `now`.
    pub fn rested(&mut self, rest: Rest, measured_from: Instant, now: Instant) {
        let from = rest.since.max(measured_from);
        match rest.until {
            Some(due) => {
                let pause = due.min(now).since(from.min(due.min(now)));
                self.pausing += pause;
                self.paced += if rest.paced { pause } else { Duration::ZERO };
            }
            None => self.waiting += now.since(from.min(now)),
        }
    }
}

/// A sleep of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The start of the sleep.
    pub since: Instant,
    /// The intended end of the sleep; `None`: until an I/O ends or a tag is free.
    pub until: Option<Instant>,
    /// Whether the instance keeps to a rate, or to the pace of a trace.
    pub paced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_counts_from_when_measuring_began() {
        let at = Instant::from_ns;
        let mut spent = Spent::default();
        let waits = Rest { since: at(100), until: None, paced: false };
        spent.rested(waits, at(0), at(130));
        spent.rested(waits, at(120), at(130));
        spent.rested(waits, at(200), at(130));
        assert_eq!(spent.waiting, Duration::from_ns(30 + 10));
        // The instance runs at 160 if its alarm wakes it at 150, and at 140 if something else wakes
        // it.
        let pauses = Rest { since: at(100), until: Some(at(150)), paced: false };
        spent.rested(pauses, at(0), at(160));
        spent.rested(pauses, at(0), at(140));
        spent.rested(pauses, at(155), at(160));
        assert_eq!((spent.pausing, spent.paced), (Duration::from_ns(50 + 40), Duration::ZERO));
        spent.rested(Rest { paced: true, ..pauses }, at(140), at(160));
        assert_eq!(
            (spent.pausing, spent.paced),
            (Duration::from_ns(90 + 10), Duration::from_ns(10))
        );
        spent.alive = Duration::from_ns(200);
        assert_eq!(spent.ready(), Duration::from_ns(200 - 40 - 100));
    }
}
