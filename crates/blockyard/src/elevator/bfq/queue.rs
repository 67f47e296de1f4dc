//! A queue: the requests of one process, or of several that cooperate, or of all asynchronous
//! submitters of one priority.
//!
//! Requests are sorted by sector, and in a list by arrival. One of them is the next to go: the
//! nearest one ahead of the last, unless one behind it is nearer even at its penalty; or, once in
//! a slot, the oldest one if its deadline has passed.

use super::entity::Raise;
use super::scheduler::IDLE_CLASS;
use super::ticks::tick_of;
use super::{Bfq, Held};
use crate::bio::{IoPrio, PrioClass};
use crate::elevator::sector_tree::SectorTree;
use crate::request::List;
use crate::time::{Duration, Instant};
use crate::unit::RequestId;

/// Sectors between two requests from which on the second one is a seek.
pub(super) const SEEK: u64 = 800;
/// Sectors of a request that is no seek on a device without moving parts, however far it is.
const LARGE: u32 = 64;
/// Of the last 32 requests, the seeks from which on a queue is one of random I/O.
const SEEKS: u32 = 20;
/// How long after its deadline a request may still be passed by others.
const FAR_BEHIND: Duration = Duration::from_secs(10);
/// The sum of samples that an estimate of think time needs. A sample adds 32, and the sum decays by
/// an eighth with each: the third one reaches it.
const THINK_SAMPLES: u64 = 81;
/// The level of a process that has asked for none.
const DEFAULT_LEVEL: u8 = 4;
/// The time without requests after which a process counts as one that starts.
pub(super) const MIN_IDLE: Duration = Duration::from_ms(2000);
/// The levels of a class.
pub(super) const LEVELS: usize = 8;
/// The weight of a process of the default priority; only the queues of such processes are raised.
pub const DEFAULT_WEIGHT: u32 = 40;

/// Returns the index of the class, and the level, of a priority.
pub(super) const fn class_and_level(prio: IoPrio) -> (usize, usize) {
    match (prio.class, prio.level) {
        (PrioClass::RealTime, level) => (0, clamped(level)),
        (PrioClass::None, _) => (1, DEFAULT_LEVEL as usize),
        (PrioClass::BestEffort, level) => (1, clamped(level)),
        (PrioClass::Idle, _) => (IDLE_CLASS, LEVELS - 1),
    }
}

const fn clamped(level: u8) -> usize {
    if level as usize >= LEVELS { LEVELS - 1 } else { level as usize }
}

/// Returns the weight of a level: 80 for level 0, 10 for level 7.
pub(super) const fn weight_of_level(level: usize) -> u32 {
    match level {
        0 => 80,
        1 => 70,
        2 => 60,
        3 => 50,
        4 => 40,
        5 => 30,
        6 => 20,
        _ => 10,
    }
}

/// Whether `span` has passed since `at` in the tick that began at `tick`; `None` lies before all
/// times.
pub(super) fn has_passed(at: Option<Instant>, span: Duration, tick: Instant) -> bool {
    at.is_none_or(|at| at + span < tick)
}

/// Properties of a queue that are true or false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// It is of requests that somebody waits for.
    pub(super) const SYNC: Self = Self(1);
    /// It is in service, empty, and the device is held for it.
    pub(super) const WAITED_FOR: Self = Self(1 << 1);
    /// Its slot ended before its budget: it keeps the rest if its next request comes soon.
    pub(super) const KEEPS_BUDGET: Self = Self(1 << 2);
    /// In this slot the deadline of its oldest request has been looked at.
    pub(super) const FIFO_SEEN: Self = Self(1 << 3);
    /// Its process thinks only a short time before its next request.
    pub(super) const QUICK: Self = Self(1 << 4);
    /// Its process does I/O most of the time.
    pub(super) const IO_BOUND: Self = Self(1 << 5);
    /// It was created in a large burst.
    pub(super) const IN_LARGE_BURST: Self = Self(1 << 6);
    /// It is on the list of the current burst.
    pub(super) const IN_BURST: Self = Self(1 << 7);
    /// Others were merged into it.
    pub(super) const SHARED: Self = Self(1 << 8);
    /// It is to be split, because it has become one of random I/O.
    pub(super) const SPLIT: Self = Self(1 << 9);
    /// Its next soft real-time start is to be computed when its last request has ended.
    pub(super) const SOFT_REAL_TIME_DUE: Self = Self(1 << 10);
    /// It has never been busy.
    pub(super) const NEW: Self = Self(1 << 11);
    /// It is counted among the queues of its group that have requests.
    pub(super) const PENDING: Self = Self(1 << 12);

    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(super) const fn put(&mut self, mark: Self, is_set: bool) {
        self.0 = if is_set { self.0 | mark.0 } else { self.0 & !mark.0 };
    }
}

/// How long a process thinks between the end of a request and its next one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Think {
    pub(super) last_end: Instant,
    total_ns: u64,
    samples: u64,
    mean_ns: u64,
}

impl Think {
    /// Returns the estimate of a process whose queue is created at `now`. The end of the last
    /// request counts as 1 ns later if the clock stands until the first request
    /// ([`plug_stops_clock`](crate::policy::BfqTunables::plug_stops_clock)).
    pub(super) const fn new(now: Instant, plug_stops_clock: bool) -> Self {
        let last_end = Instant::from_ns(now.as_ns() + plug_stops_clock as u64);
        Self { last_end, total_ns: 0, samples: 0, mean_ns: 0 }
    }

    /// Returns the ns since the end of the last request. If that lies ahead, they are those of a
    /// 64-bit counter that has wrapped around, as in Linux.
    const fn elapsed_ns(&self, now: Instant) -> u64 {
        now.as_ns().wrapping_sub(self.last_end.as_ns())
    }

    /// Adds a time of thinking, at most twice `slice_idle`, to a mean that decays by an eighth.
    pub(super) fn sample(&mut self, slice_idle: Duration, now: Instant) {
        let most = 2 * slice_idle.as_ns();
        let elapsed = self.elapsed_ns(now).min(most);
        self.samples = (7 * self.samples + 256) / 8;
        self.total_ns = (7 * self.total_ns + 256 * elapsed) / 8;
        self.mean_ns = (self.total_ns + 128) / self.samples;
    }

    /// Whether the mean is known to be longer than half of `slice_idle`.
    pub(super) const fn is_long(&self, slice_idle: Duration) -> bool {
        self.samples >= THINK_SAMPLES && self.mean_ns > slice_idle.as_ns() / 2
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) marks: Marks,
    /// Held requests by sector.
    pub(super) sorted: SectorTree,
    /// The same requests by arrival.
    pub(super) fifo: List,
    /// The one that goes next.
    pub(super) next: Option<RequestId>,
    /// Requests that are held, or dispatched and not finished.
    pub(super) requests: u32,
    /// Requests that are dispatched and not finished.
    pub(super) dispatched: u32,
    /// The processes that submit into it, or will after a merge.
    pub(super) owners: u32,
    /// The one process that submits into it.
    pub(super) process: Option<usize>,
    /// The queue that it is about to be merged into.
    pub(super) heir: Option<usize>,
    pub(super) max_budget: u32,
    /// The end of its slot; after the slot, when it became idle. `None`: before all times.
    pub(super) timeout: Option<Instant>,
    pub(super) think: Think,
    /// The last 32 requests, the newest at bit 0: 1 for a seek.
    pub(super) seeks: u32,
    /// The end of the request that came last.
    pub(super) last_end: u64,
    pub(super) created: Instant,
    /// When it was split from another queue; `None`: never.
    pub(super) split: Option<Instant>,
    /// The beginning of the window in which [`Marks::IO_BOUND`] is judged, and the time in it in
    /// which the queue was idle.
    pub(super) io_since: Instant,
    pub(super) idle_ns: u64,
    /// Sectors served since it last became busy, and when the first of them was.
    pub(super) served: u32,
    pub(super) first_served: Instant,
    pub(super) last_busy: Instant,
    // Raising.
    pub(super) raised_as: Raise,
    pub(super) raised_for: Duration,
    /// When raising began or last ended.
    pub(super) raised_at: Instant,
    /// When the interactive raising began that a soft real-time one has replaced.
    pub(super) raised_before: Option<Instant>,
    /// Sectors served since it was raised.
    pub(super) raised_service: u32,
    /// The earliest instant at which a first request makes it soft real-time.
    pub(super) soft_start: Instant,
    // Injection.
    pub(super) inject_limit: u32,
    /// The time in which a request was served with nothing injected; 0: unknown.
    pub(super) service_ns: u64,
    pub(super) limit_changed: Instant,
    /// The queue whose completions let this one go on.
    pub(super) waker: Option<usize>,
    pub(super) waker_to_be: Option<usize>,
    pub(super) wakings: u32,
    pub(super) waking_since: Instant,
    /// The queues that this one wakes, and the order of this one among those of its waker.
    pub(super) woken: u32,
    pub(super) woken_turn: u64,
}

impl Queue {
    /// Returns an empty queue.
    pub(super) fn new(is_sync: bool, is_idle_class: bool, max_budget: u32, now: Instant) -> Self {
        let tick = tick_of(now);
        let mut marks = Marks::IO_BOUND;
        marks.put(Marks::SYNC, is_sync);
        marks.put(Marks::NEW, is_sync);
        marks.put(Marks::QUICK, is_sync && !is_idle_class);
        Self {
            marks,
            sorted: SectorTree::new(),
            fifo: List::new(),
            next: None,
            requests: 0,
            dispatched: 0,
            owners: 0,
            process: None,
            heir: None,
            max_budget,
            timeout: None,
            think: Think::new(now, false),
            seeks: 1,
            last_end: 0,
            created: tick,
            split: None,
            io_since: now,
            idle_ns: 0,
            served: 0,
            first_served: tick,
            last_busy: tick,
            raised_as: Raise::No,
            raised_for: Duration::ZERO,
            raised_at: tick,
            raised_before: None,
            raised_service: 0,
            soft_start: tick,
            inject_limit: 0,
            service_ns: 0,
            limit_changed: tick,
            waker: None,
            waker_to_be: None,
            wakings: 0,
            waking_since: now,
            woken: 0,
            woken_turn: 0,
        }
    }

    pub(super) const fn is(&self, mark: Marks) -> bool {
        self.marks.has(mark)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Whether its I/O is random.
    pub(super) const fn is_seeky(&self) -> bool {
        self.seeks.count_ones() >= SEEKS
    }

    /// Whether each of its last requests was a seek.
    pub(super) const fn is_all_seeks(&self) -> bool {
        self.seeks == u32::MAX
    }
}

impl Bfq {
    /// Whether a request is a seek from sector `last`; 0 is no place.
    pub(super) const fn is_seek(&self, last: u64, sector: u64, sectors: u32) -> bool {
        last != 0 && sector.abs_diff(last) > SEEK && (self.rotational || sectors < LARGE)
    }

    /// Whether a request is so large that a device without moving parts is busy with it alone.
    pub(super) const fn is_large(sectors: u32) -> bool {
        sectors >= LARGE
    }

    /// Returns the one of two requests that goes first after one that ended at `last`: synchronous
    /// ones first, then metadata, then the nearer one.
    pub(super) fn choose(
        &self,
        one: Option<RequestId>,
        other: Option<RequestId>,
        last: u64,
    ) -> Option<RequestId> {
        let Some(first) = one else { return other };
        let Some(second) = other else { return one };
        let a = &self.held[first.index()];
        let b = &self.held[second.index()];
        if a.is_sync != b.is_sync {
            return if a.is_sync { one } else { other };
        }
        if a.is_meta != b.is_meta {
            return if a.is_meta { one } else { other };
        }
        let distances = [a, b].map(|held| self.distance(held, last));
        let takes_first = match distances {
            [Some(near), Some(far)] if near != far => near < far,
            // Equally near: one lies behind, and the one ahead goes.
            [Some(_), Some(_)] => a.sector >= b.sector,
            // Both are too far behind: the lower one, from which the head moves on.
            [None, None] => a.sector <= b.sector,
            [near, _] => near.is_some(),
        };
        if takes_first { one } else { other }
    }

    /// Returns the sectors from `last` to `to`; those behind count by the penalty, and requests
    /// farther behind than `back_seek_max` are out of reach.
    fn distance(&self, to: &Held, last: u64) -> Option<u64> {
        if to.sector >= last {
            return Some(to.sector - last);
        }
        let behind = last - to.sector;
        let reach = 2 * u64::from(self.tunables.back_seek_max);
        (behind <= reach).then(|| behind.saturating_mul(self.tunables.back_seek_penalty.into()))
    }

    /// Returns the request of `queue` that goes after `last`, which is still there.
    pub(super) fn next_after(&mut self, queue: usize, last: RequestId) -> Option<RequestId> {
        debug_assert_eq!(self.held[last.index()].queue as usize, queue, "{last:?}");
        if let Some(expired) = self.take_expired(queue, last) {
            return Some(expired);
        }
        let of = &self.queues[queue];
        let sector = self.held[last.index()].sector;
        let lower = of.sorted.ahead_of(&self.nodes, last);
        let higher = of.sorted.behind(&self.nodes, last).or_else(|| {
            // With nothing higher, the lowest one is as good as any.
            of.sorted.first(&self.nodes).filter(|first| *first != last)
        });
        self.choose(higher, lower, sector)
    }

    /// Returns the oldest request of `queue` if its deadline has passed, at most once in a slot.
    fn take_expired(&mut self, queue: usize, last: RequestId) -> Option<RequestId> {
        let of = &mut self.queues[queue];
        if of.is(Marks::FIFO_SEEN) {
            return None;
        }
        of.marks.put(Marks::FIFO_SEEN, true);
        let oldest = of.fifo.first()?;
        let expired = self.held[oldest.index()].deadline <= self.now;
        (oldest != last && expired).then_some(oldest)
    }

    /// Lets the oldest request of `queue` go next if it is far behind its deadline: requests that
    /// came later and were nearer have passed it in every slot.
    pub(super) fn rescue_oldest(&mut self, queue: usize) {
        let of = &mut self.queues[queue];
        if let Some(oldest) = of.fifo.first()
            && self.held[oldest.index()].deadline + FAR_BEHIND <= self.now
        {
            of.next = Some(oldest);
        }
    }

    /// Notes a request of `sectors` at `sector` among the seeks of `queue`.
    pub(super) fn note_seek(&mut self, queue: usize, sector: u64, sectors: u32) {
        let is_seek = self.is_seek(self.queues[queue].last_end, sector, sectors);
        let of = &mut self.queues[queue];
        of.seeks = of.seeks << 1 | u32::from(is_seek);
    }

    /// Notes the time that the process of `queue` thought before a request.
    pub(super) fn note_think_time(&mut self, queue: usize) {
        let slice_idle = self.tunables.slice_idle;
        let of = &mut self.queues[queue];
        if of.dispatched == 0 && !self.scheduler.of(queue).is_busy {
            of.think.sample(slice_idle, self.now);
        }
    }

    /// Judges whether the process of `queue` thinks only a short time.
    pub(super) fn judge_think_time(&mut self, queue: usize) {
        let slice_idle = self.tunables.slice_idle;
        let tick = self.tick();
        let of = &mut self.queues[queue];
        let is_idle_class = self.scheduler.of(queue).class == IDLE_CLASS;
        let split_lately = !has_passed(of.split, MIN_IDLE, tick);
        if !of.is(Marks::SYNC) || is_idle_class || slice_idle == Duration::ZERO || split_lately {
            return;
        }
        let is_quick = !of.think.is_long(slice_idle);
        let has_changed = is_quick != of.is(Marks::QUICK);
        of.marks.put(Marks::QUICK, is_quick);
        let settled = of.limit_changed + Duration::from_ms(100) <= tick;
        if has_changed && of.service_ns == 0 && (settled || !is_quick) {
            self.reset_inject_limit(queue);
        }
    }

    /// Judges whether the process of `queue` does I/O most of the time: it was without I/O for less
    /// than a fifth.
    pub(super) fn judge_io_bound(&mut self, queue: usize) {
        let now = self.now;
        let of = &mut self.queues[queue];
        let total = now.since(of.io_since).as_ns();
        if of.is_empty() && of.dispatched == 0 {
            of.idle_ns = of.idle_ns.wrapping_add(of.think.elapsed_ns(now));
        }
        if of.is(Marks::NEW) {
            return;
        }
        of.marks.put(Marks::IO_BOUND, of.idle_ns.wrapping_mul(5) <= total);
        // A window of 200 ms; then its newer half stays.
        if total > Duration::from_ms(200).as_ns() {
            of.io_since = Instant::from_ns(now.as_ns() - total / 2);
            of.idle_ns /= 2;
        }
    }
}
