//! mq-adios: deadlines by learned latencies, in batches that fit a time.
//!
//! [`Adios`] predicts how long each request will take, and learns from how long it took. It keeps
//! requests by deadline, and moves as many at a time into a batch as are predicted to end within a
//! window. The modules:
//!
//! - `kind`: the kinds of requests; each has a model, a target latency and a limit
//! - `buckets`, `model`: from latencies to a base and a slope
//! - `trees`: requests by deadline, and the choice between reads and the rest
//! - `batch`: two batches, of which one is given out
//!
//! It follows release 3.1.9 of ADIOS (February 2026, for Linux 6.12, 6.18 and 6.19), by its public
//! description and the rules and defaults that its source has. Where both differ, the source
//! counts: the description has a read priority of 7 and a ratio of 25 %, the source 8 and 20 %.
//!
//! # The order
//!
//! - Requests that came back go first, and flushes, one after the other.
//! - Until a read and a write of at most 4 KiB have ended, all others follow, first in, first out,
//!   and nothing merges. With reads alone it stays like this.
//! - From then on, a write with [`Flags::SYNC`] has the deadline at which it was submitted. All
//!   others, reads too, have [`AdiosTunables::lat_target_read`] or that of their kind more, and
//!   their predicted latency. `trees` has the choice between reads and the rest.
//! - The second batch is filled when it is empty, and either the first one is, too, or the
//!   predictions of all requests between the trees and their end are less than
//!   [`AdiosTunables::bq_refill_below_ratio`] of the window. It takes the request that goes next,
//!   and more while all those predictions together stay within the window, and each kind within its
//!   limit. A request of a kind without a model is the first of its batch.
//! - A batch gives out reads, then writes, discards and others; with [`AdiosBatchOrder::Sweep`], on
//!   a rotational disk, first the synchronous writes, then the others by sector from the end that
//!   is nearer to the head.
//! - A discard is a barrier: it and all that come behind it wait until everything before it has
//!   gone. With [`AdiosDiscards::Sorted`] it is a request as others.
//!
//! # Learning
//!
//! A request took the time since the end of the one before, if one was under way then, or else
//! since its start in the device. An end of a kind without a model is not noted: a read ends at 1
//! ms beside a write of zeroes, which ends at 2 ms, and a write that ends alone at 300 ms took 299
//! ms. On a rotational disk a request counts by the number of bits of the distance from the end of
//! the request before, and once more. 100 ms after the first of them, the models are updated;
//! nothing could tell the difference between that instant and the next call, in which it is done.
//!
//! # What is not as in ADIOS 3.1.9
//!
//! - Its text lets requests that came back go before all others, its code lets the first in, first
//!   out list go before them where both have some. Here they go first ([`Place::Head`]).
//! - Requests that it puts into the trees behind a barrier may merge there.
//! - A request that came back counts as under way once, not twice.
//! - Where a turn of one side costs less than 1 ns it costs 1 ns ([elevator-starves-none]).
//! - Times are exact, not in ticks.
//! - Linux's processors share its models, but each has buckets of its own, which an update joins.
//!
//! No recording of it was compared: no distribution that Blockyard records has it.

mod batch;
mod buckets;
mod kind;
mod model;
mod trees;

use self::batch::Pages;
use self::kind::{KINDS, Kind};
use self::model::Model;
use self::trees::{Side, Trees};
use super::{Ctx, Elevator, Place};
use crate::bio::{Flags, Op};
use crate::end_index::{EndIndex, candidate};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::policy::{AdiosBatchOrder, AdiosDiscards, AdiosModel, AdiosTunables, Merges};
use crate::request::{List, Request, Requests, State};
use crate::sector_hash::HashNodes;
use crate::time::{Duration, Instant};
use crate::unit::{HctxId, RequestId, SECTOR_BYTES};
use alloc::vec::Vec;

/// The default of [`AdiosTunables::global_latency_window`].
const WINDOW: Duration = Duration::from_ms(16);
const WINDOW_ROTATIONAL: Duration = Duration::from_ms(22);
/// How long after a first latency the models are updated.
const UPDATE_AFTER: Duration = Duration::from_ms(100);

/// What is kept of a request that is held, or dispatched and not finished.
#[derive(Clone, Copy, Debug)]
struct Held {
    deadline: Instant,
    predicted_ns: u64,
    /// Its size when it came: it is measured by that, whatever joins it.
    bytes: u32,
}

/// The requests between the trees, or the list before them, and their end.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    count: u32,
    predicted_ns: u64,
}

/// The ADIOS elevator.
#[derive(Debug)]
pub struct Adios {
    tunables: AdiosTunables,
    merges: Merges,
    rotational: bool,
    window_ns: u64,
    refill_below_ns: u64,
    targets: [Duration; KINDS],
    limits: [u32; KINDS],
    models: Vec<Model>,
    /// When the models are to be updated.
    due: Option<Instant>,
    /// Whether the trees are in use: reads and writes have a model.
    is_stable: bool,
    /// Requests that came back, and flushes.
    head: List,
    /// Requests that go before the batches, first in, first out.
    first: List,
    /// A barrier, and what has come since.
    barred: List,
    held: Vec<Held>,
    trees: Trees,
    ends: EndIndex,
    end_nodes: HashNodes,
    pages: Pages,
    /// Whether the sweep of the batch in front goes backwards.
    backwards: bool,
    /// The end of the request that was dispatched last.
    head_sector: u64,
    under_way: UnderWay,
    /// When a request ended last, if others were under way then.
    ended: Option<Instant>,
    /// The end of that request in sectors; 0: not known.
    ended_sector: u64,
    len: u32,
}

impl Adios {
    /// Returns an elevator for a queue of `capacity` requests, over a device that rotates or not.
    ///
    /// # Panics
    ///
    /// Panics if `tunables.read_priority` is not from -20 to 19, or `tunables.shrink_resist` not
    /// from 1 to 3.
    #[must_use]
    pub fn new(capacity: usize, rotational: bool, tunables: AdiosTunables) -> Self {
        let AdiosTunables { lat_target_read, lat_target_write, lat_target_discard, .. } = tunables;
        let AdiosTunables { batch_limit_read, batch_limit_write, batch_limit_discard, .. } =
            tunables;
        let AdiosTunables { lat_model_read, lat_model_write, lat_model_discard, .. } = tunables;
        assert!((1..=3).contains(&tunables.shrink_resist), "a model forgets a half to an eighth");
        let usual = if rotational { WINDOW_ROTATIONAL } else { WINDOW };
        let window_ns = tunables.global_latency_window.unwrap_or(usual).as_ns();
        let ratio = u64::from(tunables.bq_refill_below_ratio);
        let models = [lat_model_read, lat_model_write, lat_model_discard, AdiosModel::UNKNOWN];
        let models: Vec<_> = models.iter().map(|known| Model::new(*known, &tunables)).collect();
        let nothing = Held { deadline: Instant::ZERO, predicted_ns: 0, bytes: 0 };
        Self {
            tunables,
            merges: Merges::All,
            rotational,
            window_ns,
            refill_below_ns: window_ns.saturating_mul(ratio) / 100,
            targets: [lat_target_read, lat_target_write, lat_target_discard, Duration::ZERO],
            limits: [batch_limit_read, batch_limit_write, batch_limit_discard, 1],
            is_stable: models[Kind::Read.index()].is_known()
                && models[Kind::Write.index()].is_known(),
            models,
            due: None,
            head: List::new(),
            first: List::new(),
            barred: List::new(),
            held: alloc::vec![nothing; capacity],
            trees: Trees::new(capacity, tunables.read_priority),
            ends: EndIndex::new(capacity),
            end_nodes: HashNodes::new(capacity),
            pages: Pages::new(),
            backwards: false,
            head_sector: 0,
            under_way: UnderWay::default(),
            ended: None,
            ended_sector: 0,
            len: 0,
        }
    }

    /// Returns the elevator with another choice of the requests that others may join.
    #[must_use]
    pub fn merging(self, merges: Merges) -> Self {
        Self { merges, ..self }
    }

    /// The heap that an elevator for `capacity` requests takes in a box, in bytes.
    pub(crate) fn heap(capacity: usize) -> usize {
        size_of::<Self>()
            + KINDS * size_of::<Model>()
            + capacity * size_of::<Held>()
            + Trees::heap(capacity)
            + EndIndex::heap(capacity)
            + HashNodes::heap(capacity)
    }

    /// Updates the models if their instant has come.
    fn pass_time(&mut self, now: Instant) {
        if let Some(at) = self.due.take_if(|due| *due <= now) {
            self.models.iter_mut().for_each(|model| model.update(at));
        }
    }

    /// Puts `id` behind those that go before the batches.
    fn put_first(&mut self, requests: &mut Requests, id: RequestId) {
        self.set_out(id);
        self.first.push_back(requests, id);
    }

    /// Counts `id` as under way.
    fn set_out(&mut self, id: RequestId) {
        self.under_way.count += 1;
        self.under_way.predicted_ns += self.held[id.index()].predicted_ns;
    }

    /// Files `id` by its deadline.
    fn file(&mut self, requests: &Requests, id: RequestId) {
        let rq = requests[id].extent();
        self.trees.insert(Side::of(rq.op.is_read()), id, self.held[id.index()].deadline);
        if rq.is_mergeable() {
            self.ends.insert(&mut self.end_nodes, id, rq.end_sector());
        }
    }

    /// Whether a request of this kind is a barrier.
    fn is_barrier(&self, op: Op) -> bool {
        op == Op::Discard && self.tunables.discards == AdiosDiscards::Barriers
    }

    /// Returns the deadline of a request.
    fn deadline(&self, rq: &Request, predicted_ns: u64) -> Instant {
        let submitted = rq.times.queued;
        // Linux marks direct writes as synchronous, but neither direct nor buffered reads.
        if is_waited_for(rq) {
            return submitted;
        }
        let target = submitted + self.targets[Kind::of(rq.op).index()];
        if self.tunables.fixed_order { target } else { target + Duration::from_ns(predicted_ns) }
    }

    /// Fills the batch behind.
    fn fill(&mut self, requests: &mut Requests) {
        let order =
            if self.rotational { self.tunables.batch_order } else { AdiosBatchOrder::Kinds };
        debug_assert!(self.pages.back().is_empty(), "a batch that has not gone");
        self.pages.back_mut().order = order;
        let mut counts = [0; KINDS];
        while let Some(next) = self.trees.next(&self.held) {
            let rq = &requests[next.id];
            let kind = Kind::of(rq.op);
            let is_waited_for = is_waited_for(rq);
            let predicted_ns = self.held[next.id.index()].predicted_ns;
            let is_full = !self.models[kind.index()].is_known()
                || counts[kind.index()] >= self.limits[kind.index()]
                || self.under_way.predicted_ns.saturating_add(predicted_ns) > self.window_ns;
            if is_full && counts != [0; KINDS] {
                break;
            }
            self.trees.take(next, predicted_ns);
            self.ends.remove(&mut self.end_nodes, next.id);
            self.set_out(next.id);
            counts[kind.index()] += 1;
            self.pages.back_mut().push(requests, next.id, kind, is_waited_for);
        }
        // ADIOS counts the writes of the batch here, not the requests to be sorted.
        if order == AdiosBatchOrder::Sweep && counts[Kind::Write.index()] > 1 {
            self.sort_back(requests);
        }
    }

    /// Sorts the batch behind by sector.
    fn sort_back(&mut self, requests: &mut Requests) {
        self.trees.sort_list(requests, self.pages.back_mut().swept_mut());
    }

    /// Takes the next request of the batches.
    fn take_of_batch(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let under_way_ns = self.under_way.predicted_ns;
        let is_empty = self.pages.front().is_empty();
        let has_room = is_empty || under_way_ns == 0 || under_way_ns < self.refill_below_ns;
        if self.pages.back().is_empty() && has_room && !self.trees.is_empty() {
            self.fill(requests);
        }
        if is_empty && !self.pages.back().is_empty() {
            self.pages.flip();
            self.choose_direction(requests);
        }
        self.pages.front_mut().pop(requests, self.backwards)
    }

    /// Chooses the direction of the sweep.
    fn choose_direction(&mut self, requests: &Requests) {
        self.backwards = self.pages.front().is_swept_backwards(requests, self.head_sector);
    }

    /// Lets the barrier go, and what is behind it up to the next one into the trees.
    fn pass_barrier(&mut self, requests: &mut Requests) {
        let Some(barrier) = self.barred.pop_front(requests) else { return };
        self.put_first(requests, barrier);
        while let Some(id) = self.barred.first().filter(|id| !self.is_barrier(requests[*id].op)) {
            self.barred.remove(requests, id);
            self.file(requests, id);
        }
    }

    /// Takes the next request.
    fn take(&mut self, requests: &mut Requests) -> Option<RequestId> {
        if let Some(id) = self.head.pop_front(requests) {
            return Some(id);
        }
        loop {
            if let Some(id) = self.first.pop_front(requests) {
                if self.first.is_empty() {
                    self.choose_direction(requests);
                }
                return Some(id);
            }
            if let Some(id) = self.take_of_batch(requests) {
                return Some(id);
            }
            if self.barred.is_empty() {
                return None;
            }
            self.pass_barrier(requests);
        }
    }

    /// Learns from `request`, which took the device so long.
    fn learn(&mut self, held: Held, request: &Request, took: Duration, now: Instant) {
        if held.bytes == 0 || took > self.tunables.lat_model_latency_limit {
            return;
        }
        let mut weight = 1;
        if self.rotational {
            if self.ended_sector > 0 {
                weight = 65 - u64::from(request.sector.abs_diff(self.ended_sector).leading_zeros());
            }
            self.ended_sector = request.end_sector();
        }
        let model = &mut self.models[Kind::of(request.op).index()];
        model.learn(held.bytes, took.as_ns(), held.predicted_ns, weight, now);
        self.due.get_or_insert(now + UPDATE_AFTER);
    }
}

/// Whether the deadline of a request is the instant at which it was submitted.
fn is_waited_for(rq: &Request) -> bool {
    !rq.op.is_read() && rq.flags.contains(Flags::SYNC)
}

impl Elevator for Adios {
    /// Tries the request filed last for every kind of merge, then, unless [`Merges`] says
    /// otherwise, back merges by the hash. Behind a barrier nothing merges.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        _ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        if !self.barred.is_empty() {
            return None;
        }
        if self.merges != Merges::All {
            return self
                .ends
                .last()
                .and_then(|last| candidate(requests, limits, last, other, fronts));
        }
        self.ends.find_merge(&self.end_nodes, requests, limits, other, fronts)
    }

    /// The deadline stays; the request goes behind the others of its step.
    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        debug_assert!(
            !self.trees.is_empty(),
            "[joins-only-what-fits]: only the trees are searched"
        );
        let rq = &requests[id];
        if merge != Merge::Discard {
            let side = Side::of(rq.op.is_read());
            self.trees.remove(side, id);
            self.trees.insert(side, id, self.held[id.index()].deadline);
        }
        self.ends.refile(&mut self.end_nodes, id, rq.end_sector());
    }

    /// Names none: ADIOS keeps no order by sector.
    fn neighbour(&self, _requests: &Requests, _id: RequestId, _merge: Merge) -> Option<RequestId> {
        None
    }

    fn joined(&mut self, _requests: &mut Requests, _kept: RequestId, _absorbed: RequestId) {
        unreachable!("[joins-only-what-fits]: no request is named as a neighbour");
    }

    fn unmergeable(&mut self, _requests: &Requests, id: RequestId) {
        self.ends.remove(&mut self.end_nodes, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.pass_time(now);
        self.len += 1;
        let rq = &requests[id];
        // Linux puts flushes past every elevator.
        if rq.op == Op::Flush {
            return self.head.push_back(requests, id);
        }
        let bytes = rq.sectors.saturating_mul(SECTOR_BYTES);
        let predicted_ns = self.models[Kind::of(rq.op).index()].predict_ns(bytes);
        let deadline = self.deadline(rq, predicted_ns);
        let bars = self.is_barrier(rq.op) || !self.barred.is_empty();
        self.held[id.index()] = Held { deadline, predicted_ns, bytes };
        match place {
            Place::Head => {
                self.set_out(id);
                self.head.push_front(requests, id);
            }
            Place::Sorted if !self.is_stable => {
                self.put_first(requests, id);
                self.is_stable = self.models[Kind::Read.index()].is_known()
                    && self.models[Kind::Write.index()].is_known();
            }
            Place::Sorted if bars => self.barred.push_back(requests, id),
            Place::Sorted => self.file(requests, id),
        }
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        _hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        self.pass_time(now);
        let Some(id) = self.take(requests) else {
            debug_assert!(self.len == 0, "[work-is-given]: {} are held", self.len);
            return None;
        };
        self.len -= 1;
        if requests[id].op != Op::Flush {
            self.head_sector = requests[id].end_sector();
        }
        Some(id)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn finished(&mut self, id: RequestId, request: &Request, now: Instant) {
        self.pass_time(now);
        if request.op == Op::Flush {
            return;
        }
        let held = self.held[id.index()];
        assert!(
            self.under_way.count > 0,
            "[one-finished-per-dispatch]: finished more often than dispatched"
        );
        self.under_way.count -= 1;
        self.under_way.predicted_ns -= held.predicted_ns;
        let times = &request.times;
        // A request that came back, or that the driver failed without starting it, teaches nothing.
        if request.state() != State::Complete {
            return;
        }
        if Kind::of(request.op) == Kind::Other {
            self.ended_sector = 0;
            return;
        }
        let ended = (self.under_way.count > 0).then_some(now);
        let before = core::mem::replace(&mut self.ended, ended);
        if times.issued >= times.scheduled {
            self.learn(held, request, now.since(before.unwrap_or(times.issued)), now);
        }
    }
}

#[cfg(test)]
mod tests;
