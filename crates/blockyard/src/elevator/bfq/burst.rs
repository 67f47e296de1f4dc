//! Bursts: many queues created at nearly the same time, as services of a system or processes of a
//! large job do it. They want throughput, so they are not raised.
//!
//! Queues that are created within 180 ms of each other, in one group, make a burst. With the
//! eighth one it is large, and all queues of it are marked.

use super::Bfq;
use super::queue::{Marks, has_passed};
use super::ticks::in_ticks;
use crate::time::{Duration, Instant};

/// The most time between two queues of a burst.
pub(super) const INTERVAL: Duration = Duration::from_ms(180);
/// The queues of a large burst.
const LARGE: u32 = 8;
/// A queue that was split off is not new for as long: 3 ticks.
const AFTER_SPLIT: Duration = in_ticks(Duration::from_ms(10));
/// The idle time after which a queue no longer belongs to a burst.
const FORGOTTEN: Duration = Duration::from_ms(10_000);

/// The current burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Queues in it, until it is large.
    pub(super) size: u32,
    pub(super) is_large: bool,
    last: Option<Instant>,
    level: usize,
}

impl Bfq {
    /// Adds `queue`, which was just created, to the current burst, or begins another one.
    pub(super) fn join_burst(&mut self, queue: usize) {
        let of = &self.queues[queue];
        let is_known = of.is(Marks::IN_BURST) || of.is(Marks::IN_LARGE_BURST);
        if is_known || of.split.is_some_and(|split| split + AFTER_SPLIT >= self.tick()) {
            return;
        }
        let level = self.scheduler.of(queue).level;
        if has_passed(self.burst.last, INTERVAL, self.tick()) || level != self.burst.level {
            self.begin_burst(queue, level);
        } else if self.burst.is_large {
            self.queues[queue].marks.put(Marks::IN_LARGE_BURST, true);
        } else {
            self.add_to_burst(queue);
        }
        self.burst.last = Some(self.tick());
    }

    fn begin_burst(&mut self, queue: usize, level: usize) {
        self.queues.iter_mut().for_each(|of| of.marks.put(Marks::IN_BURST, false));
        self.burst.is_large = false;
        self.burst.level = level;
        // Beside busy queues a single new one is no beginning.
        let begins = self.scheduler.busy() == 0;
        self.burst.size = u32::from(begins);
        self.queues[queue].marks.put(Marks::IN_BURST, begins);
    }

    fn add_to_burst(&mut self, queue: usize) {
        self.burst.size += 1;
        if self.burst.size < LARGE {
            self.queues[queue].marks.put(Marks::IN_BURST, true);
            return;
        }
        self.burst.is_large = true;
        self.queues[queue].marks.put(Marks::IN_BURST, true);
        for of in self.queues.iter_mut().filter(|of| of.is(Marks::IN_BURST)) {
            of.marks.put(Marks::IN_BURST, false);
            of.marks.put(Marks::IN_LARGE_BURST, true);
        }
    }

    /// Forgets that `queue` belonged to a burst, if it has been idle for 10 s since.
    pub(super) fn forget_burst(&mut self, queue: usize) {
        let was_long_idle = self.was_idle_for_long(queue);
        let tick = self.tick();
        let of = &mut self.queues[queue];
        if !of.is(Marks::NEW) && was_long_idle && has_passed(of.timeout, FORGOTTEN, tick) {
            of.marks.put(Marks::IN_BURST, false);
            of.marks.put(Marks::IN_LARGE_BURST, false);
        }
        of.marks.put(Marks::NEW, false);
    }
}
