//! Counts: what BFQ has done, and what it cost, for whoever reads them after a run.

use super::process::GROUPS;
use super::{Bfq, Idled, Raised, Slots};
use crate::time::{Duration, Instant};

/// What was done since the elevator was made, or since its counts were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Slots by why they ended.
    pub slots: Slots,
    /// The budgets of these slots, in sectors.
    pub budgets: u64,
    /// The sectors that were charged to these budgets.
    pub charged: u64,
    /// Waits of the device.
    pub idled: Idled,
    /// Raised queues.
    pub raised: Raised,
    /// Requests that were served beside the queue in service.
    pub injected: u64,
    /// Queues that were merged into others.
    pub merged: u64,
    /// Shared queues that were split.
    pub split: u64,
    /// The service of each group, in the order in which they came. The first one is the root.
    pub groups: [GroupService; GROUPS + 1],
}

/// The service of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupService {
    /// Its number: see [`Submitter::group`](crate::bio::Submitter::group). The root is 0, as is a
    /// place that no group has taken.
    pub group: u32,
    /// Sectors of synchronous requests that were dispatched.
    pub sync_sectors: u64,
    /// Sectors of asynchronous requests that were dispatched.
    pub async_sectors: u64,
}

impl Counts {
    /// Adds the counts of another queue.
    pub fn add(&mut self, other: &Self) {
        self.slots.add(&other.slots);
        self.budgets += other.budgets;
        self.charged += other.charged;
        self.idled.add(&other.idled);
        self.raised.add(&other.raised);
        self.injected += other.injected;
        self.merged += other.merged;
        self.split += other.split;
        for (at, of) in other.groups.iter().enumerate() {
            // The root is first; group 0 elsewhere is a free place.
            let own = self.groups.iter_mut().enumerate();
            let mut places = own.skip(usize::from(at > 0)).map(|(_, place)| place);
            let place = places.find(|place| place.group == of.group || place.group == 0);
            let Some(place) = place.filter(|_| at == 0 || of.group > 0) else { continue };
            place.group = of.group;
            place.sync_sectors += of.sync_sectors;
            place.async_sectors += of.async_sectors;
        }
    }
}

impl Bfq {
    /// Returns what was done so far, up to the last call.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for (of, group) in counts.groups.iter_mut().zip(&self.groups) {
            of.group = group.number;
        }
        counts
    }

    /// Begins to count from `now` on, with the wait that is under way.
    pub(super) fn count_from(&mut self, now: Instant) {
        self.pass_time(now);
        self.counts = Counts::default();
        self.counts.idled.waits = u64::from(self.idle_until.is_some());
        self.counted_until = now;
    }

    /// Counts the time since the last call, up to `until`, in which nothing has changed.
    pub(super) fn count_time(&mut self, until: Instant) {
        debug_assert!(until >= self.counted_until, "time is counted once");
        let span = until.since(self.counted_until);
        self.counted_until = until;
        if self.scheduler.raised > 0 {
            self.counts.raised.time += span;
        }
        if self.idle_until.is_some() {
            self.counts.idled.time += span;
            let withholds = self.in_driver == 0 && self.len > 0;
            self.counts.idled.withheld += if withholds { span } else { Duration::ZERO };
        }
    }

    /// Counts the dispatch of a request of a queue in the group of `level`.
    pub(super) fn count_service(&mut self, level: usize, sectors: u32, is_sync: bool) {
        debug_assert!(level < self.groups.len(), "level {level} has no group");
        let of = &mut self.counts.groups[level];
        if is_sync {
            of.sync_sectors += u64::from(sectors);
        } else {
            of.async_sectors += u64::from(sectors);
        }
    }
}
