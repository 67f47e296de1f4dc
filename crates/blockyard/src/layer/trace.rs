//! [`Traced`]: tells a sink of every call at the driver's seam.
//!
//! The [`trace`](crate::trace) of the core is what a request queue does; this is what a driver
//! sees and says, wherever in a stack it stands. [`Ring`] keeps the last calls in bounded memory.

use crate::bio::Op;
use crate::driver::{Accept, DataEffect, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::request::Request;
use crate::time::Instant;
use crate::unit::{Budget, DriverTag, HctxId, QueueId};
use alloc::collections::VecDeque;

/// A call that has returned, and its result.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// [`Driver::take_budget`].
    TakeBudget(QueueId, Option<Budget>),
    /// [`Driver::return_budget`].
    ReturnBudget(QueueId, Budget),
    /// [`Driver::prepare`].
    Prepare(&'a Issue<'a>),
    /// [`Driver::unprepare`].
    Unprepare(&'a Issue<'a>),
    /// [`Driver::queue_rq`].
    Queue(&'a Issue<'a>, Accept),
    /// [`Driver::commit`].
    Commit(QueueId, HctxId, Instant),
    /// [`Driver::finish`].
    Finish(QueueId, HctxId, DriverTag, &'a Request),
    /// [`Driver::timed_out`].
    TimedOut(QueueId, HctxId, DriverTag, Instant, TimedOut),
    /// A [`Device::next_finished`] that returned a request.
    Finished(Finished, Instant),
}

/// Receives calls.
pub trait CallSink {
    /// A call has returned.
    fn call(&mut self, call: &Call<'_>);
}

/// The trace layer.
#[derive(Clone, Debug)]
pub struct Traced<D, S> {
    /// The device whose calls are recorded.
    pub below: D,
    /// The receiver of the calls.
    pub sink: S,
}

impl<D: Driver, S: CallSink> Driver for Traced<D, S> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        let budget = self.below.take_budget(queue);
        self.sink.call(&Call::TakeBudget(queue, budget));
        budget
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.below.return_budget(queue, budget);
        self.sink.call(&Call::ReturnBudget(queue, budget));
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        self.below.prepare(issue);
        self.sink.call(&Call::Prepare(issue));
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        self.below.unprepare(issue);
        self.sink.call(&Call::Unprepare(issue));
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.below.queue_rq(issue);
        self.sink.call(&Call::Queue(issue, answer));
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.below.commit(queue, hctx, now);
        self.sink.call(&Call::Commit(queue, hctx, now));
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.below.finish(queue, hctx, tag, request);
        self.sink.call(&Call::Finish(queue, hctx, tag, request));
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        let answer = self.below.timed_out(queue, hctx, tag, request, now);
        self.sink.call(&Call::TimedOut(queue, hctx, tag, now, answer));
        answer
    }
}

impl<D: Device, S: CallSink> Device for Traced<D, S> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let finished = self.below.next_finished(now)?;
        self.sink.call(&Call::Finished(finished, now));
        Some(finished)
    }

    crate::pass_on!(below: poll_at);
}

/// The meaning of a call about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The request was prepared.
    Prepared,
    /// Its preparation was undone.
    Unprepared,
    /// It was offered with this effect on its data, and this was the answer.
    Offered(DataEffect, Accept),
    /// It was cleaned up.
    CleanedUp,
    /// It timed out, and this was the answer.
    TimedOut(TimedOut),
    /// It was reported as finished.
    Named(Outcome),
}

/// A call about a request, as a [`Ring`] keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of the last call that had one.
    pub at: Instant,
    /// The request's queue.
    pub queue: QueueId,
    /// Its hardware queue.
    pub hctx: HctxId,
    /// Its driver tag.
    pub tag: DriverTag,
    /// Op, first sector and sectors, if the call has them.
    pub range: Option<(Op, u64, u32)>,
    /// What happened.
    pub step: Step,
}

/// Keeps the last calls about requests; calls about permits and runs are not kept.
#[derive(Clone, Debug)]
pub struct Ring {
    records: VecDeque<Record>,
    len_max: usize,
    now: Instant,
    dropped: u64,
}

impl Ring {
    /// Returns a ring of the last `len_max` calls, with all memory reserved.
    #[must_use]
    pub fn new(len_max: usize) -> Self {
        let records = VecDeque::with_capacity(len_max);
        Self { records, len_max, now: Instant::ZERO, dropped: 0 }
    }

    /// Returns the kept calls, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// Returns how many calls were dropped for later ones.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Record {
    fn of_issue(issue: &Issue<'_>, step: Step) -> Self {
        Self {
            at: issue.now,
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            range: range_of(issue.request()),
            step,
        }
    }
}

/// Returns the operation, first sector and number of sectors of `request`.
const fn range_of(request: &Request) -> Option<(Op, u64, u32)> {
    Some((request.op, request.sector, request.sectors))
}

impl CallSink for Ring {
    fn call(&mut self, call: &Call<'_>) {
        let record = match *call {
            Call::Prepare(issue) => Record::of_issue(issue, Step::Prepared),
            Call::Unprepare(issue) => Record::of_issue(issue, Step::Unprepared),
            Call::Queue(issue, answer) => {
                Record::of_issue(issue, Step::Offered(issue.effect(), answer))
            }
            // The call has no time of its own; it comes with the completion that was recorded last.
            Call::Finish(queue, hctx, tag, request) => {
                let range = range_of(request);
                Record { at: self.now, queue, hctx, tag, range, step: Step::CleanedUp }
            }
            Call::TimedOut(queue, hctx, tag, at, answer) => {
                Record { at, queue, hctx, tag, range: None, step: Step::TimedOut(answer) }
            }
            Call::Finished(Finished { queue, hctx, tag, outcome }, at) => {
                Record { at, queue, hctx, tag, range: None, step: Step::Named(outcome) }
            }
            Call::TakeBudget(..) | Call::ReturnBudget(..) | Call::Commit(..) => return,
        };
        self.now = record.at;
        if self.records.len() == self.len_max {
            self.dropped += 1;
            if self.records.pop_front().is_none() {
                return; // a ring of length 0
            }
        }
        self.records.push_back(record);
        debug_assert!(self.records.len() <= self.len_max, "a ring of {}", self.len_max);
    }
}
