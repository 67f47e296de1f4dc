//! kyber: latency targets, kept by a bound on each kind of request in flight.
//!
//! [`Kyber`] sorts nothing. It divides requests into domains and gives each domain a number of
//! tokens for the whole queue. A request leaves the elevator with a token and gives it back when it
//! completes. When latencies miss their targets, domains that do well get fewer tokens, so that the
//! others find a shorter queue in the device.
//!
//! Domains are reads, writes, discards and others; with [`KyberAdjust::Steps`] they are reads,
//! synchronous writes and others. The domain of a request never changes while it is held. Only
//! requests that the driver has completed are measured. `percentiles` and `steps` turn latencies
//! into depths, at an instant that the module in use names. There is no timer: the first
//! [`Kyber::dispatch`] or [`Kyber::finished`] from that instant on adjusts the depths from the
//! earlier measurements, and nothing that could tell the difference happens in between.
//!
//! # Lists and turns
//!
//! A request waits in a list of its domain and software queue. A bio joins one of the last eight
//! there; requests do not join each other. When a domain of a hardware queue has a token and
//! nothing else to send, all these lists are emptied, in the order of the software queues, into one
//! list, from which requests go first in, first out, and in which nothing merges. [`Place::Head`]
//! is the front of that list. With [`KyberStaging::Together`], the domains share the list of a
//! software queue, and a domain that has nothing else to send empties those of all domains, once in
//! each [`Kyber::dispatch`], even if it has no token.
//!
//! A hardware queue continues with one domain for one batch of requests (reads 16, writes 8,
//! discards and others 1; with steps others 8), while the domain has work and tokens. Then the next
//! domain that has both takes its turn, round and round. So while its domain has tokens, a request
//! is passed in its hardware queue only by those of its domain that left the software queues before
//! it and, before each of them and before itself, by at most one batch of every other domain: 25
//! requests by default.
//!
//! # Rules
//!
//! - **[token-per-request]** A request goes only with a token of its domain; [`Kyber::dispatch`]
//!   gives none if no domain with work has a token left, until a completion ([work-is-given]).
//!   While more tokens are out than a reduced depth allows, none is given. Hardware queues take
//!   tokens as they are run.
//! - **[depth-within-bounds]** Depths are at least 1 and at most the value of the tunables, where
//!   they begin.
//!
//! One thing differs from Linux. Its tokens are numbered, so that after a cut one with a low number
//! may be given although too many are out ([token-per-request]).

mod adjust;
mod domain;
mod percentiles;
mod steps;

use self::adjust::{Adjust, Took};
use self::domain::{DOMAINS, Domain, Tokens};
use self::percentiles::Percentiles;
use self::steps::Steps;
use super::{Ctx, Elevator, Place};
use crate::end_index::candidate;
use crate::hardware_queue::{Bits, QueueMap};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::policy::{KyberAdjust, KyberStaging, KyberTunables, SwqMerge};
use crate::request::{List, Request, Requests, State};
use crate::sector_hash::HashNodes;
use crate::software_queue::SoftwareQueue;
use crate::time::Instant;
use crate::unit::{HctxId, RequestId};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How a bio joins a request that has not left its software queue.
const STAGED_MERGE: SwqMerge = SwqMerge::Last8;

/// The requests that one hardware queue has to send.
#[derive(Debug)]
struct Lane {
    /// Requests that have left the software queues, by domain.
    lists: [List; DOMAINS],
    /// Which software queues hold requests of each domain; with [`KyberStaging::Together`], those
    /// of all domains are at the first.
    pending: [Bits; DOMAINS],
    /// The domain whose turn it is, and how many requests of its batch have gone.
    turn: Domain,
    batched: u32,
    /// Requests held in all lists.
    len: u32,
}

impl Lane {
    /// Returns the lane of a hardware queue with `ctxs` possible software queues.
    fn new(ctxs: usize) -> Self {
        Self {
            lists: [List::new(); DOMAINS],
            pending: core::array::from_fn(|_| Bits::new(ctxs)),
            turn: Domain::Read,
            batched: 0,
            len: 0,
        }
    }
}

/// The kyber elevator.
#[derive(Debug)]
pub struct Kyber {
    kind: KyberAdjust,
    staging: KyberStaging,
    async_depth: Option<u32>,
    map: QueueMap,
    /// One for each kind of map, processor and domain, of which [`KyberStaging::Together`] uses the
    /// first.
    staged: Vec<[SoftwareQueue; DOMAINS]>,
    /// Unused by software queues that look at the last eight, but required by their calls.
    nodes: HashNodes,
    lanes: Vec<Lane>,
    /// A request that came when none was held. It is on no list until another comes: most leave
    /// before.
    lone: Option<RequestId>,
    tokens: [Tokens; DOMAINS],
    adjust: Box<dyn Adjust + Send>,
    /// When depths are to be adjusted.
    due: Option<Instant>,
    len: u32,
}

impl Kyber {
    /// Returns an elevator for a queue with this `map`.
    ///
    /// # Panics
    ///
    /// Panics if a depth is 0.
    #[must_use]
    pub fn new(map: &QueueMap, tunables: KyberTunables) -> Self {
        let KyberTunables { read_depth, write_depth, discard_depth, other_depth, .. } = tunables;
        let ctxs = map.ctxs();
        Self {
            kind: tunables.adjust,
            staging: tunables.staging,
            async_depth: tunables.async_depth,
            map: map.clone(),
            staged: (0..ctxs)
                .map(|_| core::array::from_fn(|_| SoftwareQueue::new(STAGED_MERGE)))
                .collect(),
            nodes: HashNodes::new(0),
            lanes: (0..map.hctxs()).map(|_| Lane::new(ctxs)).collect(),
            lone: None,
            tokens: [read_depth, write_depth, discard_depth, other_depth].map(Tokens::new),
            adjust: match tunables.adjust {
                KyberAdjust::Percentiles => Box::new(Percentiles::new(&tunables)),
                KyberAdjust::Steps => Box::new(Steps::new(&tunables)),
            },
            due: None,
            len: 0,
        }
    }

    /// The heap that an elevator for a queue with this `map` takes in a box, in bytes.
    pub(crate) fn heap(map: &QueueMap, tunables: &KyberTunables) -> usize {
        let ctxs = map.ctxs();
        let staged = size_of::<SoftwareQueue>() + SoftwareQueue::heap(STAGED_MERGE);
        let lane = size_of::<Lane>() + DOMAINS * Bits::heap(ctxs);
        let adjust = match tunables.adjust {
            KyberAdjust::Percentiles => size_of::<Percentiles>(),
            KyberAdjust::Steps => size_of::<Steps>(),
        };
        size_of::<Self>() + map.heap() + ctxs * DOMAINS * staged + map.hctxs() * lane + adjust
    }

    fn domain_of(&self, request: &Request) -> Domain {
        Domain::of(self.kind, request.op, request.flags)
    }

    /// Returns the index of the lists of a software queue.
    fn staged_at(&self, ctx: Ctx) -> usize {
        self.map.kind_serving(ctx.cpu, ctx.hctx) * self.map.default.len() + ctx.cpu.index()
    }

    /// Adjusts depths if their instant has come.
    fn adjust_if_due(&mut self, now: Instant) {
        while let Some(at) = self.due.take_if(|due| *due <= now) {
            self.due = self.adjust.adjust(at, &mut self.tokens);
        }
    }

    /// Returns the index of the list in which requests of `domain` wait in a software queue.
    const fn shelf_of(&self, domain: Domain) -> usize {
        match self.staging {
            KyberStaging::ByDomain => domain.index(),
            KyberStaging::Together => 0,
        }
    }

    /// Puts `id` into the list of its domain and software queue.
    fn stage_request(&mut self, requests: &mut Requests, id: RequestId) {
        let rq = &requests[id];
        let at = self.staged_at(Ctx::of(rq));
        let shelf = self.shelf_of(self.domain_of(rq));
        self.lanes[rq.hctx.index()].pending[shelf].insert(at);
        self.staged[at][shelf].insert(&mut self.nodes, requests, id);
    }

    /// Takes the lone request, with a token, if there are both: what [`Self::take_of_domain`] does
    /// in the turn of its domain.
    fn take_lone(&mut self, requests: &Requests, hctx: HctxId) -> Option<RequestId> {
        let id = self.lone.filter(|id| requests[*id].hctx == hctx)?;
        let domain = self.domain_of(&requests[id]);
        if !self.tokens[domain.index()].take() {
            return None;
        }
        self.lone = None;
        self.len -= 1;
        let lane = &mut self.lanes[hctx.index()];
        lane.len -= 1;
        // What `dispatch` does with the turn: a full batch of the same domain begins another one.
        let continues = lane.turn == domain && lane.batched < domain.batch(self.kind);
        lane.batched = if continues { lane.batched + 1 } else { 1 };
        lane.turn = domain;
        Some(id)
    }

    /// Takes the next request of `domain`, with a token ([token-per-request]), if there are both
    /// ([dispatched-once]). `emptied`: this call of [`Self::dispatch`] has emptied all software
    /// queues.
    fn take_of_domain(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        domain: Domain,
        emptied: &mut bool,
    ) -> Option<RequestId> {
        let at = domain.index();
        let lane = &self.lanes[hctx.index()];
        let has_staged = match self.staging {
            KyberStaging::ByDomain => !lane.pending[at].is_empty(),
            // Linux 4.12 to 4.17 emptied the shared lists before it looked for a token, and once in
            // a dispatch.
            KyberStaging::Together => {
                if lane.lists[at].is_empty() && !core::mem::replace(emptied, true) {
                    self.empty_together(requests, hctx);
                }
                false
            }
        };
        let has_work = has_staged || !self.lanes[hctx.index()].lists[at].is_empty();
        if !has_work || !self.tokens[at].take() {
            return None;
        }
        let lane = &mut self.lanes[hctx.index()];
        let list = &mut lane.lists[at];
        // Requests stay in their software queues, where bios can join them, until the list has run
        // dry.
        if list.is_empty() {
            let pending = &mut lane.pending[at];
            while let Some(ctx) = pending.next_wrapping(0) {
                self.staged[ctx][at].drain_into(&mut self.nodes, requests, list);
                pending.remove(ctx);
            }
        }
        debug_assert!(
            0 < lane.len && lane.len <= self.len,
            "{} requests, {} in all",
            lane.len,
            self.len
        );
        lane.len -= 1;
        self.len -= 1;
        list.pop_front(requests)
    }

    /// Moves what waits in the software queues of `hctx` to the lists of all domains.
    fn empty_together(&mut self, requests: &mut Requests, hctx: HctxId) {
        let mut all = List::new();
        let lane = &mut self.lanes[hctx.index()];
        let [shared, ..] = &mut lane.pending;
        while let Some(ctx) = shared.next_wrapping(0) {
            self.staged[ctx][0].drain_into(&mut self.nodes, requests, &mut all);
            shared.remove(ctx);
        }
        while let Some(id) = all.pop_front(requests) {
            let domain = Domain::of(self.kind, requests[id].op, requests[id].flags);
            lane.lists[domain.index()].push_back(requests, id);
        }
    }
}

impl Elevator for Kyber {
    /// Tries the last eight that `ctx` has staged in the domain.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        if !fronts {
            return None; // `other` is a request, and requests do not join each other
        }
        let domain = Domain::of(self.kind, other.op, other.flags);
        if let Some(lone) = self.lone {
            let rq = &requests[lone];
            // On a list, a bio would only see requests of its own software queue and domain.
            let is_there = Ctx::of(rq) == ctx && self.domain_of(rq) == domain;
            return if is_there { candidate(requests, limits, lone, other, true) } else { None };
        }
        let queue = &self.staged[self.staged_at(ctx)][self.shelf_of(domain)];
        queue.find_merge(&self.nodes, requests, limits, other)
    }

    /// Does nothing: a merge changes no place, and there is no index.
    fn merged(&mut self, _requests: &Requests, _id: RequestId, _merge: Merge) {}

    /// Returns `None`: requests do not join each other.
    fn neighbour(&self, _requests: &Requests, _id: RequestId, _merge: Merge) -> Option<RequestId> {
        None
    }

    fn joined(&mut self, _requests: &mut Requests, _kept: RequestId, _absorbed: RequestId) {
        unreachable!("kyber names no neighbour");
    }

    /// Does nothing: there is no index.
    fn unmergeable(&mut self, _requests: &Requests, _id: RequestId) {}

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, _now: Instant) {
        if let Some(lone) = self.lone.take() {
            self.stage_request(requests, lone);
        }
        let hctx = requests[id].hctx.index();
        match place {
            Place::Head => {
                let domain = self.domain_of(&requests[id]);
                self.lanes[hctx].lists[domain.index()].push_front(requests, id);
            }
            Place::Sorted if self.len == 0 && self.staging == KyberStaging::ByDomain => {
                self.lone = Some(id);
            }
            Place::Sorted => self.stage_request(requests, id),
        }
        self.lanes[hctx].len += 1;
        self.len += 1;
    }

    /// Returns a request of `hctx`.
    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        self.adjust_if_due(now);
        if let Some(id) = self.take_lone(requests, hctx) {
            return Some(id);
        }
        let Lane { turn, batched, .. } = self.lanes[hctx.index()];
        let mut emptied = false;
        // The domain whose turn it is continues its batch; otherwise, or if it has nothing to send
        // or no token, the others are tried in order, itself last.
        if batched < turn.batch(self.kind)
            && let Some(id) = self.take_of_domain(requests, hctx, turn, &mut emptied)
        {
            self.lanes[hctx.index()].batched += 1;
            return Some(id);
        }
        for turn in turn.round() {
            if let Some(id) = self.take_of_domain(requests, hctx, turn, &mut emptied) {
                let lane = &mut self.lanes[hctx.index()];
                lane.turn = turn;
                lane.batched = 1;
                return Some(id);
            }
        }
        // No domain has both work and a token. The turn stays, and its domain may have a whole
        // batch next time.
        self.lanes[hctx.index()].batched = 0;
        None
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        self.lanes[hctx.index()].len > 0
    }

    fn finished(&mut self, _id: RequestId, request: &Request, now: Instant) {
        self.adjust_if_due(now);
        let domain = self.domain_of(request);
        debug_assert!(request.state() != State::Idle, "an idle request has no token");
        self.tokens[domain.index()].put();
        let times = &request.times;
        // [one-finished-per-dispatch]: a request that came back, or that the driver failed without
        // starting it, is not measured.
        if request.state() == State::Complete && times.issued >= times.scheduled {
            let took = Took { total: now.since(times.queued), device: now.since(times.issued) };
            self.adjust.completed(domain, took, now, &mut self.due);
        }
    }

    /// Three quarters, so that synchronous requests find a tag, unless
    /// [`KyberTunables::async_depth`] says otherwise; at least one.
    fn async_depth(&self, depth: u32) -> u32 {
        let usual = depth - depth.div_ceil(4);
        self.async_depth.map_or(usual, |most| most.min(depth)).max(1)
    }
}

#[cfg(test)]
mod tests;
