//! mq-deadline: sorted batches, bounded by deadlines.
//!
//! [`Deadline`] keeps one order for the whole queue, whichever hardware queue asks. Each priority
//! class and direction has a tree by start sector and a FIFO by arrival. Requests go in batches of
//! one direction by ascending sector; between batches the head of the FIFO goes if its deadline has
//! passed. With one class this is also the elevator of 2017, and the legacy one before it.
//!
//! The head list goes first, before all classes; with [`HeadLists::ByClass`] each class has its
//! own, and it goes first within the class. Requests on it do not merge and belong to no batch.
//! Flushes, which have no sector, go to its end; [`Place::Head`] is its front.
//!
//! # The order
//!
//! - While more than one class has work (queued or in flight), a request that is not real-time and
//!   has waited [`DeadlineTunables::prio_aging_expire`] goes first.
//! - Otherwise classes go in order: a lower class only while the higher ones have nothing queued or
//!   in flight. So [`Deadline::dispatch`] may withhold a request until a completion
//!   ([work-is-given]).
//! - A batch continues, up to [`DeadlineTunables::fifo_batch`] requests, with the next request of
//!   its direction that starts at or after the start of the request sent last.
//! - A new batch is one of reads, unless writes wait that [`DeadlineTunables::writes_starved`] new
//!   batches have passed over.
//! - A new batch begins with the head of the FIFO if the head has expired, or if no request starts
//!   at or after the position of the direction; otherwise with the next request there. Deadlines
//!   are checked only here.
//! - When two requests are joined, the earlier arrival stays, and with it the deadline and the
//!   place in the FIFO.
//!
//! While there are always reads, the first write to wait sees at most the rest of the current batch
//! and `writes_starved` further ones, `fifo_batch` × (`writes_starved` + 1) - 1 requests in all; 47
//! by default.

mod class;

use self::class::{Class, Order};
use super::{Ctx, Elevator, Place};
use crate::bio::{IoPrio, Op, PrioClass};
use crate::end_index::{EndIndex, candidate};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::policy::{DeadlineTunables, HeadLists, Merges};
use crate::request::{List, Request, Requests};
use crate::sector_hash::HashNodes;
use crate::time::Instant;
use crate::unit::{HctxId, RequestId};
use alloc::vec::Vec;

/// The mq-deadline elevator.
#[derive(Debug)]
pub struct Deadline {
    tunables: DeadlineTunables,
    merges: Merges,
    /// Requests that go before all classes, with [`HeadLists::One`].
    head: List,
    /// One, or one for each [`PrioClass`] in order.
    classes: Vec<Class>,
    /// When each request was inserted.
    arrived: Vec<Instant>,
    order: Order,
    ends: EndIndex,
    end_nodes: HashNodes,
    /// A request that came when none was held. It is in its FIFO, and in no index until a search or
    /// another request comes: most leave before.
    lone: Option<RequestId>,
    len: u32,
}

impl Deadline {
    /// Returns an elevator for a queue of `capacity` requests.
    #[must_use]
    pub fn new(capacity: usize, tunables: DeadlineTunables) -> Self {
        Self {
            tunables,
            merges: Merges::All,
            head: List::new(),
            classes: alloc::vec![Class::new(); classes(&tunables)],
            arrived: alloc::vec![Instant::ZERO; capacity],
            order: Order::new(capacity),
            ends: EndIndex::new(capacity),
            end_nodes: HashNodes::new(capacity),
            lone: None,
            len: 0,
        }
    }

    /// The heap that an elevator for `capacity` requests takes in a box, in bytes.
    pub(crate) fn heap(capacity: usize, tunables: &DeadlineTunables) -> usize {
        size_of::<Self>()
            + classes(tunables) * size_of::<Class>()
            + capacity * size_of::<Instant>()
            + Order::heap(capacity)
            + EndIndex::heap(capacity)
            + HashNodes::heap(capacity)
    }

    /// Returns the elevator with another choice of the requests that others may join.
    #[must_use]
    pub fn merging(self, merges: Merges) -> Self {
        Self { merges, ..self }
    }

    fn class_of(&self, prio: IoPrio) -> usize {
        match prio.class {
            _ if !self.tunables.classes => 0,
            PrioClass::RealTime => 0,
            PrioClass::BestEffort | PrioClass::None => 1,
            PrioClass::Idle => 2,
        }
    }

    /// Returns the request that goes next, and its class. `None`: none is held, or a class has to
    /// wait for another.
    fn next(&mut self, now: Instant) -> Option<(usize, RequestId)> {
        let classes = self.classes.iter().enumerate();
        let mut busy = classes.filter_map(|(at, class)| class.has_work().then_some(at));
        let first = busy.next()?;
        // With work in one class only, nothing can age: no other class goes before it.
        let is_alone = busy.next().is_none();
        if !is_alone && let Some(aged) = self.next_aged(now) {
            return Some(aged);
        }
        // `first` may have no queued request: its last ones are in flight, and lower classes wait
        // for them.
        Some((first, self.classes[first].next(&self.arrived, &self.tunables, now)?))
    }

    /// Returns a request that has aged ([elevator-starves-none]).
    fn next_aged(&self, now: Instant) -> Option<(usize, RequestId)> {
        let lower = self.classes.iter().enumerate().skip(1);
        lower
            .filter_map(|(at, class)| Some((at, class.oldest_head(&self.arrived)?)))
            .find(|(_, id)| now >= self.arrived[id.index()] + self.tunables.prio_aging_expire)
    }

    /// Files the lone request, because somebody searches or another request comes.
    fn file_lone(&mut self, requests: &Requests) {
        if let Some(id) = self.lone.take() {
            self.file(id, &requests[id].extent());
        }
    }

    /// Files `id`, which its side has seen.
    fn file(&mut self, id: RequestId, rq: &Extent) {
        let class = self.class_of(rq.prio);
        self.classes[class].side_mut(rq.op).file(&mut self.order, id, rq.sector);
        if rq.is_mergeable() {
            self.ends.insert(&mut self.end_nodes, id, rq.end_sector());
        }
    }
}

impl Elevator for Deadline {
    /// Tries the request filed last for every kind of merge, then, unless [`Merges`] says
    /// otherwise, back merges by the hash, then front merges by another hash, unless
    /// [`DeadlineTunables::front_merges`] is off.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        _ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        self.file_lone(requests);
        if self.merges != Merges::All {
            return self
                .ends
                .last()
                .and_then(|last| candidate(requests, limits, last, other, fronts));
        }
        let found = self.ends.find_merge(&self.end_nodes, requests, limits, other, fronts);
        if found.is_some() || !(fronts && self.tunables.front_merges) {
            return found;
        }
        self.order
            .starting_at(other.end_sector())
            .find_map(|id| candidate(requests, limits, id, other, true))
    }

    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        debug_assert!(self.lone.is_none(), "[joins-only-what-fits]: the search has filed all");
        let rq = &requests[id];
        // A front merge moves the start, by which requests are sorted; every other merge leaves it
        // in place.
        if merge == Merge::Front {
            let class = self.class_of(rq.prio);
            let side = self.classes[class].side_mut(rq.op);
            side.remove_from_order(&mut self.order, id);
            side.sort(&mut self.order, id, rq.sector);
        }
        self.ends.refile(&mut self.end_nodes, id, rq.end_sector());
    }

    /// Returns the first of the requests of the same op; ranges of a discard have no neighbour.
    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId> {
        let rq = &requests[id];
        match merge {
            // The hash of starts has all classes; requests of two classes never join.
            Merge::Back => self.order.starting_at(rq.end_sector()).find(|other| {
                let other = &requests[*other];
                other.op == rq.op && self.class_of(other.prio) == self.class_of(rq.prio)
            }),
            Merge::Front => {
                let mut ending_here = self.ends.ending_at(&self.end_nodes, rq.sector);
                ending_here.find(|other| requests[*other].op == rq.op)
            }
            Merge::Discard => None,
        }
    }

    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId) {
        let Request { op, prio, .. } = requests[kept];
        let class = self.class_of(prio);
        let class = &mut self.classes[class];
        class.unfinished -= 1;
        let side = class.side_mut(op);
        // Whichever came first had the earlier deadline, and the submitter of its bios counts on
        // that.
        if self.arrived[absorbed.index()] < self.arrived[kept.index()] {
            side.fifo.remove(requests, kept);
            side.fifo.replace(requests, absorbed, kept);
            self.arrived[kept.index()] = self.arrived[absorbed.index()];
        } else {
            side.fifo.remove(requests, absorbed);
        }
        side.remove_from_order(&mut self.order, absorbed);
        self.ends.remove(&mut self.end_nodes, absorbed);
        self.len -= 1;
    }

    fn unmergeable(&mut self, _requests: &Requests, id: RequestId) {
        self.ends.remove(&mut self.end_nodes, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.file_lone(requests);
        let rq = requests[id].extent();
        let class = self.class_of(rq.prio);
        let class = &mut self.classes[class];
        class.unfinished += 1;
        let head = match self.tunables.heads {
            HeadLists::One => &mut self.head,
            HeadLists::ByClass => &mut class.head,
        };
        match place {
            Place::Head => head.push_front(requests, id),
            // A flush has no sector by which to sort it.
            Place::Sorted if rq.op == Op::Flush => head.push_back(requests, id),
            Place::Sorted => {
                let side = class.side_mut(rq.op);
                side.fifo.push_back(requests, id);
                side.note_arrival(&self.order, id, rq.sector);
                // At depth 1, each request comes alone and leaves before the next: it needs no tree
                // and no hash.
                if self.len == 0 {
                    self.lone = Some(id);
                } else {
                    self.file(id, &rq);
                }
            }
        }
        self.arrived[id.index()] = now;
        self.len += 1;
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        _hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        if let Some(id) = self.head.pop_front(requests) {
            self.len -= 1;
            return Some(id);
        }
        let (at, id) = self.next(now)?;
        let class = &mut self.classes[at];
        self.len -= 1;
        if class.head.first() == Some(id) {
            class.head.remove(requests, id);
            return Some(id);
        }
        let Request { op, sector, .. } = requests[id];
        let side = class.side_mut(op);
        side.fifo.remove(requests, id);
        // The lone request is in its FIFO alone; all others are also in the tree and the hash.
        if self.lone.take_if(|lone| *lone == id).is_some() {
            side.send_lone(sector);
        } else {
            side.send(&mut self.order, id);
            self.ends.remove(&mut self.end_nodes, id);
        }
        Some(id)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn finished(&mut self, _id: RequestId, request: &Request, _now: Instant) {
        let class = self.class_of(request.prio);
        let class = &mut self.classes[class];
        let in_flight = class.unfinished > class.queued();
        assert!(in_flight, "[one-finished-per-dispatch]: finished more often than dispatched");
        class.unfinished -= 1;
    }

    /// At least one, so that asynchronous requests are never shut out.
    fn async_depth(&self, depth: u32) -> u32 {
        self.tunables.async_depth.map_or(depth, |most| most.min(depth).max(1))
    }
}

/// The number of classes that are kept apart.
const fn classes(tunables: &DeadlineTunables) -> usize {
    if tunables.classes { 3 } else { 1 }
}

#[cfg(test)]
mod tests;
