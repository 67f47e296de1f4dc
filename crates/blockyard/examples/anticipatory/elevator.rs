//! An elevator that idles: after the end of a read it waits for the next read of the same process.
//!
//! A process that reads block after block submits its next read when the last one has ended. A disk that serves
//! another process in that moment moves its head away and back, some 8 ms each time, while the next read would have
//! come after 0.1 ms. So the process whose read went last is served alone: while its reads are in the device, and for
//! up to [`WAIT`] after they have ended ([idling-bounded]), requests of others are held back.
//!
//! A bio may join one of the last eight requests if its own process began that one. After [`PASSES_MAX`] reads in a
//! row that have passed over an older request, the oldest one goes ([elevator-starves-none]).

use blockyard::bio::Submitter;
use blockyard::elevator::{Ctx, Elevator, Place};
use blockyard::end_index::candidate;
use blockyard::limits::Limits;
use blockyard::merge::{Candidate, Extent, Merge};
use blockyard::request::{List, Request, Requests, State};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, RequestId};

/// The time that a process has for its next read: 2 ms.
pub(crate) const WAIT: Duration = Duration::from_ms(2);
const LOOK_BACK: usize = 8;
const PASSES_MAX: u32 = 16;

/// The elevator. Its list links the requests themselves, so it needs no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Anticipatory {
    /// All held requests, in the order of arrival.
    held: List,
    /// The process whose read went last, unless another request went since.
    served: Option<Submitter>,
    /// The end of the wait for its next read, once the device is idle.
    until: Instant,
    /// Requests that were dispatched and have not finished.
    unfinished: u32,
    /// Reads in a row that have passed over the oldest request.
    passes: u32,
}

impl Anticipatory {
    /// Returns the oldest held read of `submitter`.
    fn oldest_read(&self, requests: &Requests, submitter: Submitter) -> Option<RequestId> {
        let newest_first = self.held.iter_back(requests);
        newest_first
            .filter(|id| requests[*id].submitter == submitter && requests[*id].op.is_read())
            .last()
    }

    /// Takes the request that has waited longest. If it is a read, its process is the one to serve.
    fn take_oldest(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.held.pop_front(requests)?;
        self.served = requests[id].op.is_read().then_some(requests[id].submitter);
        self.passes = 0;
        Some(id)
    }

    /// Takes the next request to send, unless a read of the process that is served may still come.
    fn take_next(&mut self, requests: &mut Requests, now: Instant) -> Option<RequestId> {
        let Some(served) = self.served.filter(|_| self.passes < PASSES_MAX) else {
            return self.take_oldest(requests);
        };
        match self.oldest_read(requests, served) {
            Some(id) if self.held.first() == Some(id) => self.take_oldest(requests),
            Some(id) => {
                self.passes += 1;
                self.held.remove(requests, id);
                Some(id)
            }
            None if self.unfinished > 0 || now < self.until => None,
            None => self.take_oldest(requests),
        }
    }
}

impl Elevator for Anticipatory {
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        _ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let newest_first = self.held.iter_back(requests).take(LOOK_BACK);
        newest_first
            .filter(|id| requests[*id].submitter == other.submitter)
            .find_map(|id| candidate(requests, limits, id, other, fronts))
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
        match place {
            Place::Head => {
                self.held.push_front(requests, id);
                self.served = None; // a request that came back goes before all others, also expected ones
            }
            Place::Sorted => self.held.push_back(requests, id),
        }
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        _hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        let id = self.take_next(requests, now)?;
        self.unfinished += 1;
        Some(id)
    }

    /// The end of the wait. While requests are in the device, their ends decide when it begins.
    fn poll_at(&self, _hctx: HctxId) -> Option<Instant> {
        (self.unfinished == 0).then_some(self.until)
    }

    fn len(&self) -> u32 {
        self.held.len()
    }

    /// Expects the next read of the process that is served if its read has ended. Nothing is expected after a
    /// request that came back.
    fn finished(&mut self, _id: RequestId, request: &Request, now: Instant) {
        self.unfinished -= 1;
        let has_ended = request.op.is_read() && request.state() == State::Complete;
        if has_ended && self.served == Some(request.submitter) {
            self.until = now + WAIT;
        }
    }
}
