//! A lane's counters of one disk: a sink of the core's trace events, which also passes them to a watcher.
//!
//! A lane keeps counters only if the server can be queried for them or has a watcher. The counters are in the lane's
//! own memory, 5 KiB for each disk, and the lane sends a copy on demand. So a query delays requests only by that copy, of
//! at most [`DISKS_PER_REPORT`] disks in a turn of the lane.
//!
//! Times are those of the lane's clock, which is read once per turn. A request that a disk in memory
//! handles within one turn therefore takes no time.

use crate::observation::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::request::Request;
use blockyard::stats::{Distribution, StageStats};
use blockyard::time::Instant;
use blockyard::trace::{Action, Event, Sink};

/// The maximum number of disks whose counters a lane copies in one turn.
pub(crate) const DISKS_PER_REPORT: usize = 16;

/// The first bucket of [`Times`] has the values below this power of two, in nanoseconds: about 1 µs.
const FIRST_POWER: u32 = 10;
/// The last power of two that ends a bucket: about 34 s. Larger values are in a bucket of their own.
const LAST_POWER: u32 = 35;
const BUCKETS: usize = (LAST_POWER - FIRST_POWER) as usize + 2;

/// Times in nanoseconds, in a bucket for each power of two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    buckets: [u64; BUCKETS],
    pub(crate) sum: u128,
}

impl Times {
    /// Returns the number of recorded values.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns each power of two that ends a bucket, with the number of values below it.
    pub(crate) fn below(&self) -> impl Iterator<Item = (u32, u64)> {
        let counts = self.buckets.iter().scan(0, |below, count| {
            *below += count;
            Some(*below)
        });
        (FIRST_POWER..=LAST_POWER).zip(counts)
    }
}

impl Distribution for Times {
    #[inline]
    fn record(&mut self, value: u64) {
        // 1023 has ten bits and is in the first bucket; 1024 has eleven and is in the second.
        let bits = u64::BITS - value.leading_zeros();
        self.buckets[(bits.clamp(FIRST_POWER, LAST_POWER + 1) - FIRST_POWER) as usize] += 1;
        self.sum += u128::from(value);
    }

    fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
        self.sum += other.sum;
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The kinds of request that node_exporter distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Discard,
    Flush,
}

impl Kind {
    fn of(op: Op) -> Self {
        match op {
            Op::Read | Op::DriverIn => Self::Read,
            Op::Write | Op::WriteZeroes | Op::DriverOut => Self::Write,
            Op::Discard | Op::SecureErase => Self::Discard,
            Op::Flush => Self::Flush,
        }
    }
}

/// Completed requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) sectors: u64,
    /// The total time in nanoseconds from submission to completion; for flushes, from issue to completion.
    pub(crate) ns: u128,
    /// Bios or requests that were merged into others.
    pub(crate) merged: u64,
}

/// The counters of one disk, for one lane or for all lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) stages: StageStats<Times>,
    done: [Done; 4],
    pub(crate) issued: u64,
    /// The time in nanoseconds with at least one request in the driver.
    pub(crate) busy_ns: u128,
    /// The sum of the times in nanoseconds that all requests were in the driver.
    pub(crate) weighted_ns: u128,
    /// The maximum number of turns between the arrival of a request and its answer.
    pub(crate) turns_max: u64,
    /// The last instant that `busy_ns` and `weighted_ns` cover.
    changed: Instant,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self { stages: StageStats::watching(1, 1), ..Self::default() }
    }

    pub(crate) fn done(&self, kind: Kind) -> &Done {
        &self.done[kind as usize]
    }

    /// Returns the counters as of `now`, with the busy times extended to it.
    pub(crate) fn at(&self, now: Instant) -> Self {
        let mut counts = self.clone();
        counts.pass(now);
        counts
    }

    /// Adds the counters of another lane for the same disk.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.stages.merge(&other.stages);
        for (to, from) in self.done.iter_mut().zip(&other.done) {
            to.requests += from.requests;
            to.sectors += from.sectors;
            to.ns += from.ns;
            to.merged += from.merged;
        }
        self.issued += other.issued;
        self.busy_ns += other.busy_ns;
        self.weighted_ns += other.weighted_ns;
        self.turns_max = self.turns_max.max(other.turns_max);
    }

    fn pass(&mut self, now: Instant) {
        if self.issued > 0 {
            let ns = u128::from(now.since(self.changed).as_ns());
            self.busy_ns += ns;
            self.weighted_ns += ns * u128::from(self.issued);
        }
        self.changed = now;
    }

    fn completed(&mut self, request: &Request, at: Instant) {
        let done = &mut self.done[Kind::of(request.op) as usize];
        let from = match request.op {
            Op::Flush => request.times.issued,
            _ => request.times.queued,
        };
        done.requests += 1;
        done.sectors += u64::from(request.sectors);
        done.ns += u128::from(at.since(from).as_ns());
    }
}

impl Sink for Counts {
    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        self.stages.event(event);
        match (event.action, event.request) {
            (Action::Issue, _) => {
                self.pass(event.at);
                self.issued += 1;
            }
            (Action::Requeue, _) => {
                self.pass(event.at);
                self.issued = self.issued.saturating_sub(1);
            }
            (Action::Complete(_), Some((_, request))) => {
                self.pass(event.at);
                self.issued = self.issued.saturating_sub(1);
                self.completed(request, event.at);
            }
            (Action::BackMerge | Action::FrontMerge | Action::Join, _) => {
                self.done[Kind::of(event.op) as usize].merged += 1;
            }
            _ => {}
        }
    }
}

/// A sink that counts the events and passes them to the watcher, or ignores them if it is `None`.
#[derive(Debug, Default)]
pub(crate) struct Meter(pub(crate) Option<Box<Metered>>);

/// The counters of a disk and the watcher of its events.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) counts: Counts,
    /// The number of the disk, and the watcher of all disks of the lane.
    pub(crate) watcher: Option<(u16, LaneWatcher)>,
}

impl Sink for Meter {
    #[inline]
    fn listens(&self) -> bool {
        self.0.is_some()
    }

    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        if let Some(metered) = &mut self.0 {
            metered.counts.event(event);
            if let Some((disk, watcher)) = &metered.watcher {
                watcher.tell(*disk, event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_the_values_below_its_power_of_two() {
        let mut times = Times::default();
        for value in [0, 127, 1023, 1024, 2047, 2048, (1 << 35) - 1, 1 << 35, u64::MAX] {
            times.record(value);
        }
        let below: Vec<_> = times.below().collect();
        assert_eq!((below.len(), below[..3].to_vec()), (26, vec![(10, 3), (11, 5), (12, 6)]));
        assert_eq!((below[24], below[25], times.count()), ((34, 6), (35, 7), 9));
        let mut twice = times.clone();
        twice.merge(&times);
        assert_eq!((twice.count(), twice.sum), (18, 2 * times.sum));
        twice.clear();
        assert_eq!((twice.count(), twice.sum), (0, 0));
    }
}
