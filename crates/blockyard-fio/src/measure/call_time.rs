//! The time of calls that write through the page cache, and of their syncs, by its owner.
//!
//! A [`CallClock`] runs from the start of a call until the job has its result, and at each instant
//! one [`CallPart`] owns the time. So the parts of a call add up to its latency.

use blockyard::time::{Duration, Instant};

/// The owner of a part of a call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// Computing: copying to the page cache, submitting bios; and ready without a processor.
    InMemory,
    /// Waiting for a page to be read of which the call writes a part.
    PageRead,
    /// Pausing, because the job dirties pages faster than the disk writes them.
    Throttled,
    /// Waiting for the writeback of pages that the call syncs.
    Writeback,
    /// Waiting for the flush of the disk's cache.
    Flush,
    /// Waiting for a commit of the file system's journal.
    Journal,
    /// Done, but the job has not taken the result.
    NotReaped,
}

impl CallPart {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::InMemory,
        Self::PageRead,
        Self::Throttled,
        Self::Writeback,
        Self::Flush,
        Self::Journal,
        Self::NotReaped,
    ];
}

/// The times of calls, added up, and the pages that they had to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// The number of calls.
    pub calls: u64,
    /// The number of pages that were read because a call wrote a part of them.
    pub page_reads: u64,
    parts: [Duration; CallPart::ALL.len()],
}

impl CallTimes {
    /// Returns the time that `part` owns.
    #[must_use]
    pub const fn of(&self, part: CallPart) -> Duration {
        self.parts[part as usize]
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Adds `other` so many `times`.
    #[inline]
    pub fn add_times(&mut self, other: &Self, times: u64) {
        self.calls += other.calls * times;
        self.page_reads += other.page_reads * times;
        for (mine, others) in self.parts.iter_mut().zip(&other.parts) {
            *mine += Duration::from_ns(others.as_ns() * times);
        }
    }
}

/// The clock of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallClock {
    part: CallPart,
    since: Instant,
    times: CallTimes,
}

impl CallClock {
    /// Starts the clock of a call at `now`, in memory.
    #[must_use]
    pub fn start(now: Instant) -> Self {
        let times = CallTimes { calls: 1, ..CallTimes::default() };
        Self { part: CallPart::InMemory, since: now, times }
    }

    /// Gives the time from `now` on to `part`.
    ///
    /// # Panics
    ///
    /// In builds with debug assertions, if `now` is before the last change.
    pub fn turn(&mut self, part: CallPart, now: Instant) {
        debug_assert!(self.since <= now, "a clock that shows {} goes back to {now}", self.since);
        self.times.parts[self.part as usize] += now.since(self.since);
        self.since = now;
        self.part = part;
    }

    /// Counts a page that is read because the call writes a part of it.
    pub const fn read_page(&mut self) {
        self.times.page_reads += 1;
    }

    /// Stops the clock at `now`. Returns the times of the call.
    #[must_use]
    pub fn stop(mut self, now: Instant) -> CallTimes {
        self.turn(CallPart::NotReaped, now);
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call from 100 to 190 ns: it copies for 10 ns, pauses for 50, copies for 5, and waits for
    /// its job for 25.
    #[test]
    fn each_nanosecond_of_a_call_has_one_owner() {
        let at = Instant::from_ns;
        let mut clock = CallClock::start(at(100));
        clock.turn(CallPart::Throttled, at(110));
        clock.turn(CallPart::InMemory, at(160));
        clock.read_page();
        clock.turn(CallPart::NotReaped, at(165));
        let times = clock.stop(at(190));
        let parts = CallPart::ALL.map(|part| times.of(part).as_ns());
        assert_eq!(parts, [15, 0, 50, 0, 0, 0, 25]);
        let mut both = times;
        both.add(&times);
        assert_eq!((both.calls, both.page_reads), (2, 2));
        assert_eq!(both.of(CallPart::Throttled), Duration::from_ns(100));
    }
}
