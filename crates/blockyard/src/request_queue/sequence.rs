//! The way round: moves requests that need flushes from step to step.
//!
//! ```text
//! enter ─► flush ─► data ─► flush ─► end        [steps-from-flags] says which steps there are
//!           │ └──────────────┘│
//!           └─ one flush command serves all that wait ─┘
//! ```
//!
//! The rules are those of [`flush`](crate::flush). The flush command of a hardware queue is a request of
//! its own, numbered behind those that have tags. Without an elevator it goes under the driver tag of
//! the first request that it serves, which lends its tag meanwhile.

use super::RequestQueue;
use super::number::request_id;
use crate::driver::Driver;
use crate::host::Host;
use crate::request::{State, Step, Steps, data_flags};
use crate::status::Status;
use crate::time::Instant;
use crate::trace::{Action, Sink};
use crate::unit::{HctxId, RequestId};

impl RequestQueue {
    /// Whether `id` is the flush command of a hardware queue.
    pub(super) fn is_flush(&self, id: RequestId) -> bool {
        id.index() >= self.requests.capacity() - self.hctxs.len()
    }

    fn flush_of(&self, hctx: HctxId) -> RequestId {
        request_id(self.requests.capacity() - self.hctxs.len() + hctx.index())
    }

    /// Whether the driver tag of `id` is lent to the flush command.
    pub(super) fn lends_tag(&self, id: RequestId) -> bool {
        let flush = &self.hctxs[self.requests[id].hctx.index()].flush;
        self.keeps_driver_tag() && flush.first_covered() == Some(id)
    }

    /// Begins the sequence of a request with steps, which has its tag. Returns whether the request
    /// is to be staged like any other, because data is its first step.
    pub(super) fn begin_sequence<D, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        now: Instant,
    ) -> bool {
        debug_assert!(
            !self.requests[id].steps.is_empty(),
            "sequence of request {} without steps",
            id.0
        );
        let rq = &mut self.requests[id];
        rq.flags = data_flags(rq.op, rq.flags, &self.limits);
        let hctx = rq.hctx;
        if rq.steps.next() == Step::Data {
            self.hctxs[hctx.index()].flush.data_began();
            return true;
        }
        self.await_flush(id, now);
        self.begin_flush(host, hctx, now);
        false
    }

    fn await_flush(&mut self, id: RequestId, now: Instant) {
        debug_assert_eq!(
            self.requests[id].steps.next(),
            Step::Flush,
            "[steps-from-flags]: request {}",
            id.0
        );
        self.requests[id].times.awaited = now;
        let flush = &mut self.hctxs[self.requests[id].hctx.index()].flush;
        flush.wait(&mut self.requests, id, now);
    }

    /// Begins a flush for the requests that wait, if one may begin ([one-flush-at-a-time]).
    pub(super) fn begin_flush<D, S>(&mut self, host: &mut Host<D, S>, hctx: HctxId, now: Instant) {
        let state = &mut self.hctxs[hctx.index()];
        let Some(first) = state.flush.begin(now) else {
            if let Some(until) = state.flush.held_until() {
                self.arm_timer(until);
            }
            return;
        };
        let flush = self.flush_of(hctx);
        self.requests.start_flush(flush, first, now);
        self.held += 1;
        if let Some(tag) = self.requests[first].driver_tag.take() {
            self.requests[flush].driver_tag = Some(tag);
            host.tags.reassign(hctx, tag, flush);
        }
        self.requests[flush].times.scheduled = now;
        self.hctxs[hctx.index()].direct.push_front(&mut self.requests, flush);
        self.runs.mark(hctx, true);
    }

    /// Ends the flush command `flush`: the requests that it covered continue, or fail with it
    /// ([failed-flush-fails-all]).
    pub(super) fn flush_ended<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        flush: RequestId,
        status: Status,
        now: Instant,
    ) {
        debug_assert!(self.is_flush(flush), "request {} is a flush command", flush.0);
        let hctx = self.requests[flush].hctx;
        self.requests[flush].state = State::Idle;
        self.held -= 1;
        let mut covered = self.hctxs[hctx.index()].flush.end();
        debug_assert!(!covered.is_empty(), "[flush-covers-earlier]: a flush covers a request");
        let lent = self.requests[flush].driver_tag.take();
        if let (Some(tag), Some(first)) = (lent, covered.first()) {
            self.requests[first].driver_tag = Some(tag);
            host.tags.reassign(hctx, tag, first);
        }
        while let Some(id) = covered.pop_front(&mut self.requests) {
            self.step_ended(host, id, status, now);
        }
        self.begin_flush(host, hctx, now);
    }

    /// Ends the data step of `id`.
    pub(super) fn data_ended<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        status: Status,
        now: Instant,
    ) {
        debug_assert_eq!(
            self.requests[id].steps.next(),
            Step::Data,
            "[steps-from-flags]: request {}",
            id.0
        );
        let hctx = self.requests[id].hctx;
        self.hctxs[hctx.index()].flush.data_ended();
        let rq = &mut self.requests[id];
        let left = if status == Status::Ok { rq.steps.taken() } else { Steps::NONE };
        if left.is_empty() {
            self.end_bios(host, id, status);
        } else {
            rq.steps = left;
            rq.state = State::Staged;
            rq.prepared = false;
            rq.times.scheduled = Instant::ZERO;
            rq.times.issued = Instant::ZERO;
            self.await_flush(id, now);
        }
        self.begin_flush(host, hctx, now);
    }

    /// Ends the flush step that `id` waited for.
    fn step_ended<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        id: RequestId,
        status: Status,
        now: Instant,
    ) {
        debug_assert_eq!(
            self.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let rq = &mut self.requests[id];
        rq.times.flushed += now.since(rq.times.awaited);
        rq.steps = if status == Status::Ok { rq.steps.taken() } else { Steps::NONE };
        let hctx = rq.hctx;
        if rq.steps.is_empty() {
            rq.state = State::Complete;
            self.emit(host, now, Action::SequenceEnd(status), id);
            self.end_bios(host, id, status);
        } else {
            // Only data follows a flush.
            self.hctxs[hctx.index()].flush.data_began();
            self.bypass_elevator(id, now);
            self.runs.mark(hctx, true);
        }
    }
}
