//! Raising: the weight of queues of interactive and soft real-time processes is raised for a time.
//!
//! A queue is interactive when its first request comes after it has been idle for 2 s: a program
//! starts. Its weight is raised 30 times for as long as the largest known program takes to start on
//! a device of this peak rate, 3 to 25 s, but for at most 120 000 sectors.
//!
//! A queue is soft real-time when its requests come no faster than 7000 sectors in a second, as
//! those of a player do. Its weight is raised 3000 times, for 300 ms after each request that comes
//! in time.

use super::Bfq;
use super::entity::Raise;
use super::peak_rate::reference;
use super::queue::{DEFAULT_WEIGHT, MIN_IDLE, Marks, Queue, has_passed};
use super::ticks::whole_ticks;
use crate::time::Duration;

/// The factor of interactive queues.
const INTERACTIVE: u32 = 30;
/// The factor of soft real-time queues.
const SOFT_REAL_TIME: u32 = INTERACTIVE * 100;
/// The time for which a soft real-time queue is raised.
const SOFT_REAL_TIME_FOR: Duration = Duration::from_ms(300);
/// The time after its last raising in which an asynchronous queue is not raised again.
const MIN_BETWEEN_ASYNC: Duration = Duration::from_ms(500);
/// The most sectors in a second of a soft real-time queue.
const SOFT_REAL_TIME_RATE: u64 = 7000;
/// The most sectors for which an interactive queue stays raised.
const MOST_SERVICE: u32 = 120_000;
/// The time in which large programs start on the reference devices.
const START_UP: [Duration; 2] = [Duration::from_ms(2500), Duration::from_ms(7000)];
const SHORTEST: Duration = Duration::from_ms(3000);
const LONGEST: Duration = Duration::from_ms(25_000);
/// What a request may be late without being out of time for a soft real-time queue: 4 ticks.
const GRACE: Duration = Duration::from_ms(16);

/// How often queues were raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raised {
    /// As interactive ones.
    pub interactive: u64,
    /// As soft real-time ones.
    pub soft_real_time: u64,
    /// The time in which a queue with requests was raised.
    pub time: Duration,
}

impl Raised {
    pub(super) fn add(&mut self, other: &Self) {
        self.interactive += other.interactive;
        self.soft_real_time += other.soft_real_time;
        self.time += other.time;
    }
}

/// What the first request of a queue that was idle says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) is_interactive: bool,
    is_soft: bool,
    in_burst: bool,
    /// Whether it is raised, or is to be.
    deserves: bool,
}

impl Bfq {
    /// Returns the time for which interactive queues are raised: for a disk of 70 MiB/s 10.5 s.
    fn interactive_time(&self) -> Duration {
        let start_up = START_UP[usize::from(self.rotational)].as_ns();
        let time = u64::from(reference(self.rotational)) * start_up / u64::from(self.rate.rate());
        whole_ticks(Duration::from_ns(time.clamp(SHORTEST.as_ns(), LONGEST.as_ns())))
    }

    /// Judges the first request of `queue`, which was idle. `is_own`: the queue is of one process,
    /// or was merged for good.
    pub(super) fn judge_arrival(&self, queue: usize, is_own: bool) -> Arrival {
        let of = &self.queues[queue];
        let entity = self.scheduler.of(queue);
        let in_burst = of.is(Marks::IN_LARGE_BURST);
        let has_default_weight = entity.asked_weight == DEFAULT_WEIGHT;
        let is_soft = !of.is_all_seeks()
            && !in_burst
            && of.soft_start < self.tick()
            && of.dispatched == 0
            && has_default_weight;
        let is_interactive = !in_burst && self.was_idle_for_long(queue) && has_default_weight;
        let deserves = self.tunables.low_latency
            && (entity.raise > 1 || (of.is(Marks::SYNC) && is_own && (is_interactive || is_soft)));
        Arrival { is_interactive, is_soft, in_burst, deserves }
    }

    /// Whether `queue` has been idle for 2 s.
    pub(super) fn was_idle_for_long(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        of.dispatched == 0 && has_passed(of.timeout, MIN_IDLE, self.tick())
    }

    /// Raises `queue`, which was idle, or ends its raising, by its first request.
    pub(super) fn raise_on_arrival(&mut self, queue: usize, arrival: Arrival) {
        // A queue that was split off keeps for a while what it had before the merge.
        if !self.tunables.low_latency
            || !has_passed(self.queues[queue].split, MIN_IDLE, self.tick())
        {
            return;
        }
        let was_raised = self.scheduler.of(queue).raise > 1;
        if !was_raised && arrival.deserves {
            if arrival.is_interactive {
                self.queues[queue].raised_service = 0;
                self.raise_interactive(queue);
            } else {
                self.queues[queue].raised_before = None;
                self.raise_soft(queue);
            }
            let least = self.budgets.smallest();
            let entity = self.scheduler.of_mut(queue);
            entity.budget = entity.budget.min(2 * least);
        } else if was_raised && arrival.is_interactive {
            self.raise_interactive(queue);
        } else if was_raised && arrival.in_burst {
            self.lower(queue);
        } else if was_raised && arrival.is_soft {
            if self.queues[queue].raised_as != Raise::SoftRealTime {
                self.queues[queue].raised_before = Some(self.queues[queue].raised_at);
                self.raise_soft(queue);
            }
            self.queues[queue].raised_at = self.tick();
        }
    }

    fn raise_interactive(&mut self, queue: usize) {
        let raised_for = self.interactive_time();
        let of = &mut self.queues[queue];
        of.raised_as = Raise::Interactive;
        of.raised_for = raised_for;
        self.scheduler.set_raise(queue, INTERACTIVE);
        self.counts.raised.interactive += 1;
    }

    fn raise_soft(&mut self, queue: usize) {
        let of = &mut self.queues[queue];
        of.raised_as = Raise::SoftRealTime;
        of.raised_for = SOFT_REAL_TIME_FOR;
        self.scheduler.set_raise(queue, SOFT_REAL_TIME);
        self.counts.raised.soft_real_time += 1;
    }

    fn lower(&mut self, queue: usize) {
        self.queues[queue].raised_as = Raise::No;
        self.queues[queue].raised_for = Duration::ZERO;
        self.scheduler.set_raise(queue, 1);
    }

    /// Raises `queue`, which is busy and not raised, for an asynchronous request if its last
    /// raising ended long ago.
    pub(super) fn raise_async(&mut self, queue: usize) {
        if self.tunables.low_latency
            && self.queues[queue].raised_at + MIN_BETWEEN_ASYNC < self.tick()
        {
            self.raise_interactive(queue);
        }
    }

    /// Returns a raising as it was saved before a merge to `queue`, unless its time has passed.
    pub(super) fn resume_raising(&mut self, queue: usize, raise: u32) {
        let of = &self.queues[queue];
        let is_over = of.is(Marks::IN_LARGE_BURST) || of.raised_at + of.raised_for < self.tick();
        let may_go_on = of.raised_as == Raise::SoftRealTime && !of.is(Marks::IN_LARGE_BURST);
        if raise == 1 || !is_over {
            self.scheduler.set_raise(queue, raise);
        } else if may_go_on && self.interactive_time_is_left(queue) {
            self.raise_interactive_again(queue);
        } else {
            self.lower(queue);
        }
    }

    /// Whether the interactive raising that a soft real-time one replaced would go on.
    fn interactive_time_is_left(&self, queue: usize) -> bool {
        !has_passed(self.queues[queue].raised_before, self.interactive_time(), self.tick())
    }

    fn raise_interactive_again(&mut self, queue: usize) {
        let raised_before = self.queues[queue].raised_before;
        self.raise_interactive(queue);
        self.queues[queue].raised_at = raised_before.unwrap_or(self.tick());
    }

    fn end_raising(&mut self, queue: usize) {
        if self.queues[queue].raised_as != Raise::SoftRealTime {
            self.queues[queue].soft_start = self.tick();
        }
        self.queues[queue].raised_at = self.tick();
        self.lower(queue);
    }

    /// Ends the raising of `queue`, of which a request was just dispatched, if its time is over.
    pub(super) fn update_raising(&mut self, queue: usize) {
        if self.scheduler.of(queue).raise > 1 {
            let of = &self.queues[queue];
            let is_over = of.raised_at + of.raised_for < self.tick();
            if of.is(Marks::IN_LARGE_BURST) {
                self.end_raising(queue);
            } else if is_over && of.raised_as == Raise::SoftRealTime {
                self.end_soft_raising(queue);
            } else if is_over {
                self.end_raising(queue);
            }
            let of = &self.queues[queue];
            if of.raised_as == Raise::Interactive && of.raised_service > MOST_SERVICE {
                self.end_raising(queue);
            }
        }
        let entity = self.scheduler.of(queue);
        if (entity.weight > entity.own_weight) != (entity.raise > 1) {
            self.scheduler.update_weight(queue, false);
        }
    }

    /// Ends a soft real-time raising: an interactive one that it replaced goes on.
    fn end_soft_raising(&mut self, queue: usize) {
        if self.interactive_time_is_left(queue) {
            self.raise_interactive_again(queue);
        } else {
            self.end_raising(queue);
        }
    }

    /// Ends the raising of a soft real-time queue that turns out to be one of random I/O.
    pub(super) fn doubt_soft_real_time(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.raised_as == Raise::SoftRealTime && of.is_all_seeks() {
            self.end_soft_raising(queue);
        }
    }

    /// A soft real-time queue that waited for its slot does not lose that time.
    pub(super) fn prolong_soft_real_time(&mut self, queue: usize) {
        let tick = self.tick();
        let of = &mut self.queues[queue];
        let was_idle = of.timeout.is_none_or(|timeout| timeout < tick);
        if of.raised_as != Raise::SoftRealTime || of.raised_at >= tick || !was_idle {
            return;
        }
        of.raised_at = match of.timeout {
            Some(idle_since) if idle_since > of.raised_at => of.raised_at + tick.since(idle_since),
            _ => tick,
        };
    }

    /// Computes when a first request makes `queue`, which has become empty, soft real-time.
    pub(super) fn set_soft_start(&mut self, queue: usize) {
        let earliest = self.tick() + whole_ticks(self.tunables.slice_idle) + GRACE;
        let of = &mut self.queues[queue];
        let at_rate = u64::from(of.served) * 1_000_000_000 / SOFT_REAL_TIME_RATE;
        let by_service = of.last_busy + whole_ticks(Duration::from_ns(at_rate));
        of.soft_start = of.soft_start.max(by_service).max(earliest);
    }

    /// Notes for raising that a slot of `queue` ends.
    pub(super) fn note_soft_real_time_at_end(&mut self, queue: usize, is_raised: bool) {
        if !self.tunables.low_latency {
            return;
        }
        if !is_raised {
            self.queues[queue].raised_at = self.tick();
        }
        if self.queues[queue].is_empty() {
            if self.queues[queue].dispatched == 0 {
                self.set_soft_start(queue);
            } else {
                self.queues[queue].marks.put(Marks::SOFT_REAL_TIME_DUE, true);
            }
        }
    }

    /// Notes for raising that a request of `queue` has ended.
    pub(super) fn note_soft_real_time_at_completion(&mut self, queue: usize) {
        let of = &self.queues[queue];
        let is_interactive = self.scheduler.of(queue).raise == INTERACTIVE;
        if of.is(Marks::SOFT_REAL_TIME_DUE)
            && of.dispatched == 0
            && of.is_empty()
            && !is_interactive
        {
            self.set_soft_start(queue);
        }
    }

    /// Notes for raising that a request of `queue` has come. `was_raised`: before it.
    pub(super) fn note_raising_at_arrival(
        &mut self,
        queue: usize,
        was_raised: bool,
        is_interactive: bool,
    ) {
        let is_raised = self.scheduler.of(queue).raise > 1;
        if self.tunables.low_latency && (!was_raised || !is_raised || is_interactive) {
            self.queues[queue].raised_at = self.tick();
        }
    }

    /// Hands the raising of `queue`, which is merged into `heir`, over to it.
    pub(super) fn hand_over_raising(&mut self, queue: usize, heir: usize) {
        let raise = self.scheduler.of(queue).raise;
        if raise == 1 {
            return;
        }
        if self.scheduler.of(heir).raise == 1 {
            let Queue { raised_as, raised_for, raised_at, raised_before, .. } = self.queues[queue];
            let to = &mut self.queues[heir];
            to.raised_as = raised_as;
            to.raised_for = raised_for;
            to.raised_at = raised_at;
            to.raised_before = raised_before;
            self.scheduler.set_raise(heir, raise);
        }
        self.lower(queue);
    }

    /// Returns the raising that a queue has which is merged before its first request: as for an
    /// interactive one.
    pub(super) fn raising_of_new(&self) -> (u32, Duration) {
        (INTERACTIVE, self.interactive_time())
    }
}
