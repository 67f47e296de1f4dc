//! mq-bfq: budget fair queueing, which serves one process at a time.
//!
//! [`Bfq`] has a queue for the synchronous requests of each process, and one for the asynchronous
//! requests of each group and priority. B-WF2Q+ chooses the queue in service, so that each gets
//! sectors in proportion to its weight. The modules follow the theory:
//!
//! - `tree`, `entity`, `scheduler`: the service trees, and who is served next
//! - `queue`: the requests of a process, and which of them goes next
//! - `budget`: how much a queue is served in a slot
//! - `idling`: holding the device for the process in service
//! - `raising`, `burst`: raised weights of interactive and soft real-time processes
//! - `cooperators`: queues of processes whose I/O is interleaved, merged and split
//! - `injection`: requests of others while the queue in service has none
//! - `peak_rate`: what the device can transfer
//! - `process`, `owners`: whose queue is which
//! - `counts`: what was done, for reports
//! - `audited`, `shares`: the theory as checks, for tests and simulations
//! - `arrival`, `service`: what happens when a request comes, goes and ends
//! - `ticks`: the clock of slots and of raising
//!
//! Sources: Valente and Checconi, "High throughput disk scheduling with fair bandwidth
//! distribution", IEEE Transactions on Computers 59 (2010); Valente and Avanzini, "Evolution of the
//! BFQ storage-I/O scheduler" (2015); Linux's documentation of BFQ. Constants and the order of
//! decisions are those of Linux 6.12, but for what is listed below.
//!
//! While requests of the process in service are in the device, those of others are held back if the
//! device is to be held for that process; under `strict_guarantees` all are, while any is in the
//! device ([work-is-given]).
//!
//! # What is not as in Linux
//!
//! - A tick takes 4 ms, everywhere. In Linux that is so with 250 ticks in a second.
//! - A process ends if somebody says so: see `process`. A priority is that of the last request. A
//!   bio without one is of best effort, level 4, as of a process of nice 0 in Linux.
//! - Groups have one level, and the weight 100 unless [`Elevator::weigh_group`] gives them another
//!   one. Group 0 is the root, which has no weight: its processes stand beside the groups, each
//!   with the weight of its own priority. Of the other groups the first [`GROUPS_MAX`] have shares
//!   of their own, and later ones count as group 0. A process is known by its number and its group.
//! - There is one actuator.
//! - Scheduler tags are limited for asynchronous requests only. Linux limits synchronous writes to
//!   three quarters of them, and each queue and group to its share by weight.
//! - In its queue, a request that has waited 10 s longer than its deadline goes first. In Linux new
//!   requests may pass it again and again ([elevator-starves-none]).

mod arrival;
mod audited;
mod budget;
mod burst;
mod cooperators;
mod counts;
mod entity;
mod idling;
mod injection;
mod owners;
mod peak_rate;
mod process;
mod queue;
mod raising;
mod scheduler;
mod service;
mod shares;
mod ticks;
mod tree;

pub use self::audited::Audited;
pub use self::budget::{Expiry, Slots};
pub use self::counts::{Counts, GroupService};
pub use self::idling::Idled;
pub use self::process::GROUPS as GROUPS_MAX;
pub use self::queue::DEFAULT_WEIGHT;
pub use self::raising::Raised;

use self::budget::{Budgets, DEFAULT_MAX};
use self::burst::Burst;
use self::injection::Injection;
use self::peak_rate::{PeakRate, Queueing};
use self::process::{GROUPS, Group, Processes, level_of};
use self::queue::Queue;
use self::scheduler::Scheduler;
use self::ticks::in_ticks;
use super::sector_tree::SectorNodes;
use super::{AfterFinish, Ctx, Elevator, IDLE_MAX, Place};
use crate::bio::{Flags, Op, Submitter};
use crate::end_index::{EndIndex, candidate};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::policy::{BfqTunables, Merges};
use crate::request::{List, Request, Requests};
use crate::sector_hash::HashNodes;
use crate::time::{Duration, Instant};
use crate::unit::{HctxId, RequestId};
use alloc::vec::Vec;

/// The default of [`BfqTunables::slice_idle`].
const SLICE_IDLE: Duration = Duration::from_ms(8);
/// A time of thinking that is as good as none.
const MIN_THINK: Duration = Duration::from_ms(2);
/// Requests smaller than this many sectors are small.
const SMALL: u32 = 32;
/// Silent processes that are remembered at least.
const SILENT: usize = 32;
/// Stands for no queue: a flush has none.
const NO_QUEUE: u32 = u32::MAX;

/// What is kept of a request that is held, or dispatched and not finished.
#[derive(Clone, Copy, Debug)]
struct Held {
    queue: u32,
    process: u32,
    sector: u64,
    sectors: u32,
    is_sync: bool,
    is_meta: bool,
    deadline: Instant,
}

/// The BFQ elevator.
#[derive(Debug)]
pub struct Bfq {
    tunables: BfqTunables,
    merges_kind: Merges,
    rotational: bool,
    /// The instant of the call.
    now: Instant,
    /// The beginning of its tick.
    tick: Instant,
    /// Flushes, and requests that came back.
    head: List,
    held: Vec<Held>,
    nodes: SectorNodes,
    ends: EndIndex,
    end_nodes: HashNodes,
    queues: Vec<Queue>,
    /// Where the search for a free queue begins.
    free_from: usize,
    scheduler: Scheduler,
    processes: Processes,
    /// The root, then the others.
    groups: Vec<Group>,
    /// Groups with requests that are held, or dispatched and not finished.
    groups_pending: u32,
    /// For each level, the queue that was created last.
    newest_created: [Option<usize>; GROUPS + 1],
    serving: Option<usize>,
    /// The end of the last request of the queue in service, and of any; 0: none.
    in_service_end: u64,
    last_end: u64,
    len: u32,
    in_driver: u32,
    /// While the device is held for the queue in service: since when, and until when.
    idled_since: Instant,
    idle_until: Option<Instant>,
    /// Whether the device is held for the queue whose request finished last, or will be.
    holds_for_last: bool,
    /// The queue whose request ended last, unless it is shared.
    last_completed: Option<usize>,
    /// The hardware queue of the request that finished last.
    finished_on: HctxId,
    budgets: Budgets,
    rate: PeakRate,
    queueing: Queueing,
    burst: Burst,
    injection: Injection,
    counts: Counts,
    /// Until when time is counted.
    counted_until: Instant,
}

impl Bfq {
    /// Returns an elevator for a queue of `capacity` requests, over a device that rotates or not.
    ///
    /// # Panics
    ///
    /// Panics if `tunables.back_seek_penalty` or `tunables.timeout_sync` is 0.
    #[must_use]
    pub fn new(capacity: usize, rotational: bool, tunables: BfqTunables) -> Self {
        assert!(tunables.back_seek_penalty > 0, "a request behind is not nearer than one ahead");
        assert!(tunables.timeout_sync > Duration::ZERO, "a slot of no time");
        let queues = Self::queue_count(capacity);
        let mut groups = Vec::with_capacity(GROUPS + 1);
        level_of(&mut groups, 0);
        let most = if tunables.max_budget == 0 { DEFAULT_MAX } else { tunables.max_budget };
        let slice_idle = tunables.slice_idle.min(IDLE_MAX);
        // Strict guarantees need idling: Linux sets at least its default.
        let slice_idle =
            if tunables.strict_guarantees { slice_idle.max(SLICE_IDLE) } else { slice_idle };
        let nothing = Held {
            queue: NO_QUEUE,
            process: 0,
            sector: 0,
            sectors: 0,
            is_sync: false,
            is_meta: false,
            deadline: Instant::ZERO,
        };
        Self {
            tunables: BfqTunables {
                slice_idle,
                timeout_sync: in_ticks(tunables.timeout_sync),
                ..tunables
            },
            merges_kind: Merges::All,
            rotational,
            now: Instant::ZERO,
            tick: Instant::ZERO,
            head: List::new(),
            held: alloc::vec![nothing; capacity],
            nodes: SectorNodes::new(capacity),
            ends: EndIndex::new(capacity),
            end_nodes: HashNodes::new(capacity),
            // One that was never used counts as synchronous: see `Self::create`.
            queues: alloc::vec![Queue::new(true, false, 0, Instant::ZERO); queues],
            free_from: 0,
            scheduler: Scheduler::new(queues, GROUPS),
            processes: Processes::new(capacity + SILENT),
            groups,
            groups_pending: 0,
            newest_created: [None; GROUPS + 1],
            serving: None,
            in_service_end: 0,
            last_end: 0,
            len: 0,
            in_driver: 0,
            idled_since: Instant::ZERO,
            idle_until: None,
            holds_for_last: false,
            last_completed: None,
            finished_on: HctxId(0),
            budgets: Budgets::new(most),
            rate: PeakRate::new(rotational),
            queueing: Queueing::new(),
            burst: Burst::default(),
            injection: Injection::default(),
            counts: Counts::default(),
            counted_until: Instant::ZERO,
        }
    }

    /// Returns the elevator with another choice of the requests that others may join.
    #[must_use]
    pub fn merging(self, merges: Merges) -> Self {
        Self { merges_kind: merges, ..self }
    }

    /// A queue for each process, one for each request but that for which a queue is wanted, the one
    /// in service, and one to spare. Every other one makes room: see `Self::make_free`.
    const fn queue_count(capacity: usize) -> usize {
        2 * capacity + SILENT + 1
    }

    /// The heap that an elevator for `capacity` requests takes in a box, in bytes.
    pub(crate) fn heap(capacity: usize) -> usize {
        let queues = Self::queue_count(capacity);
        size_of::<Self>()
            + capacity * size_of::<Held>()
            + SectorNodes::heap(capacity)
            + EndIndex::heap(capacity)
            + HashNodes::heap(capacity)
            + queues * size_of::<Queue>()
            + Scheduler::heap(queues, GROUPS)
            + Processes::heap(capacity + SILENT)
            + (GROUPS + 1) * size_of::<Group>()
    }

    /// Notes what is to be known of `id`.
    fn keep(&mut self, rq: &Request, id: RequestId, process: usize, queue: usize) {
        let expire = if rq.is_sync() {
            self.tunables.fifo_expire_sync
        } else {
            self.tunables.fifo_expire_async
        };
        self.held[id.index()] = Held {
            queue: index(queue),
            process: index(process),
            sector: rq.sector,
            sectors: rq.sectors,
            is_sync: rq.is_sync(),
            is_meta: rq.flags.contains(Flags::META),
            deadline: self.now + expire,
        };
    }

    /// Whether `id` is a request of `queue`.
    fn is_held_by(&self, id: RequestId, queue: usize) -> bool {
        self.held[id.index()].queue as usize == queue
    }

    /// Returns the queue of a bio, if it has one already: merged, if that is planned.
    fn queue_of_bio(&mut self, bio: &Extent) -> Option<usize> {
        let process = self.processes.find(bio.submitter)?;
        if !bio.flags.is_sync(bio.op) {
            return self.processes.of(process).last_async;
        }
        // A merge is planned when a request comes, as no time is known here.
        let queue = self.processes.of(process).sync?;
        Some(self.merge_into_heirs(queue, process))
    }
}

/// Returns an index in 32 bits; there are fewer queues and processes.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NO_QUEUE)
}

impl Elevator for Bfq {
    /// A bio joins only a request of its own queue: the one that grew last, or came first if that
    /// one has gone (Linux's `last_merge`); unless [`Merges`] says otherwise, one that it continues
    /// or that continues it. A request that is about to be inserted joins one of any queue.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        _ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        if self.len == 0 {
            return None;
        }
        if !fronts {
            return self.ends.find_merge(&self.end_nodes, requests, limits, other, false);
        }
        let queue = self.queue_of_bio(other)?;
        let last = self.ends.last().filter(|id| self.is_held_by(*id, queue));
        let last = last.and_then(|id| candidate(requests, limits, id, other, true));
        if last.is_some() || self.merges_kind != Merges::All {
            return last;
        }
        let ending = self.ends.ending_at(&self.end_nodes, other.sector);
        let mut own = ending.filter(|id| self.is_held_by(*id, queue));
        if let Some(found) = own.find_map(|id| candidate(requests, limits, id, other, true)) {
            return Some(found);
        }
        let behind = self.queues[queue].sorted.next_at_or_after(&self.nodes, other.end_sector())?;
        // Any two discards fit a device with ranges, however far one is from the other.
        let continues = requests[behind].sector == other.end_sector();
        if continues && self.end_nodes.is_filed(behind) {
            candidate(requests, limits, behind, other, true)
        } else {
            None
        }
    }

    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        let rq = &requests[id];
        let held = &mut self.held[id.index()];
        held.sector = rq.sector;
        held.sectors = rq.sectors;
        let queue = held.queue as usize;
        if merge == Merge::Front {
            let of = &mut self.queues[queue];
            of.sorted.remove(&mut self.nodes, id);
            of.sorted.insert(&mut self.nodes, id, rq.sector);
        }
        self.ends.refile(&mut self.end_nodes, id, rq.end_sector());
    }

    /// Returns a request of the same queue.
    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId> {
        let rq = &requests[id];
        let of = &self.queues[self.held[id.index()].queue as usize];
        match merge {
            Merge::Back => {
                let behind = of.sorted.behind(&self.nodes, id)?;
                (requests[behind].sector == rq.end_sector()).then_some(behind)
            }
            Merge::Front => {
                let before = of.sorted.ahead_of(&self.nodes, id)?;
                (requests[before].end_sector() == rq.sector).then_some(before)
            }
            Merge::Discard => None,
        }
    }

    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId) {
        let Held { queue, process, deadline, .. } = self.held[absorbed.index()];
        debug_assert_eq!(queue, self.held[kept.index()].queue, "neighbours are of one queue");
        let queue = queue as usize;
        let of = &mut self.queues[queue];
        if deadline < self.held[kept.index()].deadline {
            of.fifo.remove(requests, kept);
            of.fifo.replace(requests, absorbed, kept);
            self.held[kept.index()].deadline = deadline;
            // `remove` takes it from the list again.
            of.fifo.push_back(requests, absorbed);
        }
        if of.next == Some(absorbed) {
            of.next = Some(kept);
        }
        of.requests -= 1;
        self.processes.of_mut(process as usize).requests -= 1;
        self.remove(requests, queue, absorbed);
    }

    fn unmergeable(&mut self, _requests: &Requests, id: RequestId) {
        self.ends.remove(&mut self.end_nodes, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.pass_time(now);
        self.len += 1;
        if requests[id].op == Op::Flush {
            self.held[id.index()].queue = NO_QUEUE;
            match place {
                Place::Head => self.head.push_front(requests, id),
                Place::Sorted => self.head.push_back(requests, id),
            }
            return;
        }
        let (process, queue) = self.assign(requests, id);
        match place {
            Place::Head => {
                self.keep(&requests[id], id, process, queue);
                self.head.push_front(requests, id);
            }
            Place::Sorted => self.insert_sorted(requests, id, process, queue),
        }
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        _hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        self.pass_time(now);
        if let Some(id) = self.head.pop_front(requests) {
            self.len -= 1;
            let queue = self.held[id.index()].queue;
            if queue != NO_QUEUE {
                self.queues[queue as usize].dispatched += 1;
                self.in_driver += 1;
            }
            return Some(id);
        }
        if self.len == 0 || (self.tunables.strict_guarantees && self.in_driver > 0) {
            return None;
        }
        let queue = self.select()?;
        self.take(requests, queue)
    }

    /// The end of the wait for the process in service.
    fn poll_at(&self, _hctx: HctxId) -> Option<Instant> {
        self.idle_until
    }

    fn ask_again_at(&self, now: Instant) -> Option<Instant> {
        Some(ticks::asked_again(now))
    }

    /// It is asked if the device has nothing to do, unless this is now held for the process whose
    /// request has finished. So the completion at which a wait begins injects nothing, and that of
    /// an injected request may inject another one.
    fn after_finish(&self) -> AfterFinish {
        // A request that came back goes in any case.
        let asks_now =
            !self.head.is_empty() || (self.len > 0 && self.in_driver == 0 && !self.holds_for_last);
        AfterFinish { asks_on: self.finished_on, asks_now, idles_until: self.idle_until }
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn finished(&mut self, id: RequestId, request: &Request, now: Instant) {
        self.pass_time(now);
        self.finished_on = request.hctx;
        let Held { queue, process, .. } = self.held[id.index()];
        if queue == NO_QUEUE {
            return;
        }
        let queue = queue as usize;
        let dispatched = self.queues[queue].dispatched;
        assert!(dispatched > 0, "[one-finished-per-dispatch]: finished more often than dispatched");
        self.end_trial(queue, id);
        self.completed(queue);
        self.queues[queue].requests -= 1;
        self.processes.of_mut(process as usize).requests -= 1;
    }

    /// In Linux, a process that ends gives up its queue: if that is in service, another one is, and
    /// the device is not held for the one that has gone.
    fn submitter_ended(&mut self, submitter: Submitter, now: Instant) -> bool {
        self.pass_time(now);
        let Some(process) = self.processes.find(submitter) else { return false };
        let of = self.processes.of(process);
        if of.requests > 0 {
            return false; // read-ahead, or what others have sent for it
        }
        let was_served = of.sync.is_some() && of.sync == self.serving;
        self.let_go(process);
        self.processes.of_mut(process).forget();
        was_served && self.len > 0
    }

    fn bfq_counts(&self) -> Option<Counts> {
        Some(self.counts())
    }

    fn reset_counts(&mut self, now: Instant) {
        self.count_from(now);
    }

    /// The weight is used from the next time on at which the group gets requests or a slot of it
    /// ends.
    fn weigh_group(&mut self, group: u32, weight: u32) -> bool {
        let level = level_of(&mut self.groups, group);
        self.scheduler.weigh_level(level, weight)
    }

    /// Half of the scheduler tags of [`BfqTunables::async_depth`], three sixteenths while a queue
    /// is raised; at least one.
    fn async_depth(&self, depth: u32) -> u32 {
        let all = self.tunables.async_depth.map_or(depth, |most| most.min(depth));
        let limit = if self.scheduler.raised > 0 { all * 3 / 16 } else { all / 2 };
        limit.max(1)
    }
}

#[cfg(test)]
mod tests;
