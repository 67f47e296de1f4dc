//! Reads first, then everything else; each in the order of arrival.
//!
//! A bio may join one of the last eight requests of its list. After 16 reads in a row that have
//! passed over another request, that one goes ([elevator-starves-none]).

use blockyard::elevator::{Ctx, Elevator, Place};
use blockyard::end_index::candidate;
use blockyard::limits::Limits;
use blockyard::merge::{Candidate, Extent, Merge};
use blockyard::request::{List, Request, Requests};
use blockyard::time::Instant;
use blockyard::unit::{HctxId, RequestId};

const LOOK_BACK: usize = 8;
const PASSES_MAX: u32 = 16;

/// The elevator. Its lists link the requests themselves, so it needs no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct ReadsFirst {
    reads: List,
    others: List,
    /// Reads in a row that have passed over a waiting request.
    passes: u32,
}

impl Elevator for ReadsFirst {
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        _ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let list = if other.op.is_read() { &self.reads } else { &self.others };
        let mut newest = list.iter_back(requests).take(LOOK_BACK);
        newest.find_map(|id| candidate(requests, limits, id, other, fronts))
    }

    /// A merge changes no place.
    fn merged(&mut self, _requests: &Requests, _id: RequestId, _merge: Merge) {}

    /// Requests do not join each other.
    fn neighbour(&self, _requests: &Requests, _id: RequestId, _merge: Merge) -> Option<RequestId> {
        None
    }

    fn joined(&mut self, _requests: &mut Requests, _kept: RequestId, _absorbed: RequestId) {
        unreachable!("no neighbour is named");
    }

    /// There is no index from which a full request would have to go.
    fn unmergeable(&mut self, _requests: &Requests, _id: RequestId) {}

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, _now: Instant) {
        let list = if requests[id].op.is_read() { &mut self.reads } else { &mut self.others };
        match place {
            Place::Head => list.push_front(requests, id),
            Place::Sorted => list.push_back(requests, id),
        }
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        _hctx: HctxId,
        _now: Instant,
    ) -> Option<RequestId> {
        let passes_over = !self.reads.is_empty() && !self.others.is_empty();
        if passes_over && self.passes < PASSES_MAX {
            self.passes += 1;
            return self.reads.pop_front(requests);
        }
        self.passes = 0;
        self.others.pop_front(requests).or_else(|| self.reads.pop_front(requests))
    }

    fn len(&self) -> u32 {
        self.reads.len() + self.others.len()
    }

    /// Nothing is counted.
    fn finished(&mut self, _id: RequestId, _request: &Request, _now: Instant) {}
}
