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
use super::turn::Turn;
use crate::driver::Driver;
use crate::request::{State, Step, Steps, data_flags};
use crate::status::Status;
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
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    /// Begins the sequence of a request with steps, which has its tag. Returns whether the request
    /// is to be staged like any other, because data is its first step.
    pub(super) fn begin_sequence(&mut self, id: RequestId) -> bool {
        debug_assert!(
            !self.queue.requests[id].steps.is_empty(),
            "sequence of request {} without steps",
            id.0
        );
        let rq = &mut self.queue.requests[id];
        rq.flags = data_flags(rq.op, rq.flags, &self.queue.limits);
        let hctx = rq.hctx;
        // A write with only FUA is staged like any other, and is followed by its flush.
        if rq.steps.next() == Step::Data {
            self.queue.hctxs[hctx.index()].flush.data_began();
            return true;
        }
        self.await_flush(id);
        self.begin_flush(hctx);
        false
    }

    fn await_flush(&mut self, id: RequestId) {
        debug_assert_eq!(
            self.queue.requests[id].steps.next(),
            Step::Flush,
            "[steps-from-flags]: request {}",
            id.0
        );
        self.queue.requests[id].times.awaited = self.now;
        let flush = &mut self.queue.hctxs[self.queue.requests[id].hctx.index()].flush;
        flush.wait(&mut self.queue.requests, id, self.now);
    }

    /// Begins a flush for the requests that wait, if one may begin ([one-flush-at-a-time]).
    pub(super) fn begin_flush(&mut self, hctx: HctxId) {
        let state = &mut self.queue.hctxs[hctx.index()];
        let Some(first) = state.flush.begin(self.now) else {
            // Data that is under way holds it back for 5 s at most; the timer asks again then.
            if let Some(until) = state.flush.held_until() {
                self.queue.arm_timer(until);
            }
            return;
        };
        let flush = self.queue.flush_of(hctx);
        self.queue.requests.start_flush(flush, first, self.now);
        self.queue.held += 1;
        // Without an elevator there is no tag for the flush command but that of a request which waits for it.
        if let Some(tag) = self.queue.requests[first].driver_tag.take() {
            self.queue.requests[flush].driver_tag = Some(tag);
            self.host.tags.reassign(hctx, tag, flush);
        }
        self.queue.requests[flush].times.scheduled = self.now;
        self.queue.hctxs[hctx.index()].direct.push_front(&mut self.queue.requests, flush);
        self.queue.runs.mark(hctx, true);
    }

    /// Ends the flush command `flush`: the requests that it covered continue, or fail with it.
    pub(super) fn flush_ended(&mut self, flush: RequestId, status: Status) {
        debug_assert!(self.queue.is_flush(flush), "request {} is a flush command", flush.0);
        let hctx = self.queue.requests[flush].hctx;
        self.queue.requests[flush].state = State::Idle;
        self.queue.held -= 1;
        let mut covered = self.queue.hctxs[hctx.index()].flush.end();
        debug_assert!(!covered.is_empty(), "[flush-covers-earlier]: a flush covers a request");
        // The borrowed tag goes back before the requests continue: the first one may be sent with it.
        let lent = self.queue.requests[flush].driver_tag.take();
        if let (Some(tag), Some(first)) = (lent, covered.first()) {
            self.queue.requests[first].driver_tag = Some(tag);
            self.host.tags.reassign(hctx, tag, first);
        }
        while let Some(id) = covered.pop_front(&mut self.queue.requests) {
            self.step_ended(id, status);
        }
        self.begin_flush(hctx);
    }

    /// Ends the data step of `id`.
    pub(super) fn data_ended(&mut self, id: RequestId, status: Status) {
        debug_assert_eq!(
            self.queue.requests[id].steps.next(),
            Step::Data,
            "[steps-from-flags]: request {}",
            id.0
        );
        let hctx = self.queue.requests[id].hctx;
        self.queue.hctxs[hctx.index()].flush.data_ended();
        let rq = &mut self.queue.requests[id];
        // After a failure no flush follows: its bios end with the failure.
        let left = if status == Status::Ok { rq.steps.taken() } else { Steps::NONE };
        if left.is_empty() {
            self.end_bios(id, status);
        } else {
            rq.steps = left;
            rq.state = State::Staged;
            self.await_flush(id);
        }
        self.begin_flush(hctx);
    }

    /// Ends the flush step that `id` waited for.
    fn step_ended(&mut self, id: RequestId, status: Status) {
        debug_assert_eq!(
            self.queue.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let rq = &mut self.queue.requests[id];
        rq.times.flushed += self.now.since(rq.times.awaited);
        rq.steps = if status == Status::Ok { rq.steps.taken() } else { Steps::NONE };
        let hctx = rq.hctx;
        if rq.steps.is_empty() {
            rq.state = State::Complete;
            self.emit(Action::SequenceEnd(status), id);
            self.end_bios(id, status);
        } else {
            // Only data follows a flush, and its merges are behind it: it bypasses the elevator.
            self.queue.hctxs[hctx.index()].flush.data_began();
            self.bypass_elevator(id);
            self.queue.runs.mark(hctx, true);
        }
    }
}
