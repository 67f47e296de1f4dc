//! A device for tests that records the calls made on it, and a check that no layer swallows a call.

use crate::bio::Bio;
use crate::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::request::{Bios, Request, Requests};
use crate::status::Status;
use crate::time::Instant;
use crate::unit::{Budget, CpuId, DriverTag, HctxId, QueueId, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

const BUDGET: Budget = Budget(7);

/// Passes the name of each call made on it to `F`, and completes each request immediately.
pub struct Recorder<F> {
    record: F,
    /// The number of requests that are still to be failed when they are offered.
    refusals: u32,
    finished: VecDeque<Finished>,
}

impl<F: Fn(&'static str)> Recorder<F> {
    /// Returns a device that fails the first `refusals` requests, and calls `record` with the name
    /// of each call of [`Driver`] and [`Device`].
    pub const fn new(record: F, refusals: u32) -> Self {
        Self { record, refusals, finished: VecDeque::new() }
    }
}

impl<F> fmt::Debug for Recorder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("finished", &self.finished).finish_non_exhaustive()
    }
}

impl<F: Fn(&'static str)> Driver for Recorder<F> {
    fn take_budget(&mut self, _: QueueId) -> Option<Budget> {
        (self.record)("take_budget");
        Some(BUDGET)
    }

    fn return_budget(&mut self, _: QueueId, budget: Budget) {
        assert_eq!(budget, BUDGET, "the budget that take_budget gave");
        (self.record)("return_budget");
    }

    fn prepare(&mut self, _: &Issue<'_>) {
        (self.record)("prepare");
    }

    fn unprepare(&mut self, _: &Issue<'_>) {
        (self.record)("unprepare");
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        (self.record)("queue_rq");
        if let Some(refusals) = self.refusals.checked_sub(1) {
            self.refusals = refusals;
            return Accept::Failed(Status::IoError);
        }
        self.finished.push_back(Finished {
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            outcome: Outcome::Done(Status::Ok),
        });
        Accept::Queued
    }

    fn commit(&mut self, _: QueueId, _: HctxId, _: Instant) {
        (self.record)("commit");
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        (self.record)("timed_out");
        TimedOut::Reset
    }

    fn finish(&mut self, _: QueueId, _: HctxId, _: DriverTag, _: &Request) {
        (self.record)("finish");
    }
}

impl<F: Fn(&'static str)> Device for Recorder<F> {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        (self.record)("next_finished");
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        (self.record)("poll_at");
        (!self.finished.is_empty()).then_some(Instant::ZERO)
    }
}

/// Makes every call of [`Driver`] and [`Device`] on `layer`, in an order that a core may choose,
/// for one read of 4 KiB by queue 0 with driver tag 0. Returns the calls that do not reach the
/// [`Recorder`] below. `take_calls` returns the calls that were recorded since it was last called.
///
/// # Panics
///
/// Panics if an answer of the recorder does not pass up.
pub fn swallowed(
    mut layer: impl Device,
    mut take_calls: impl FnMut() -> Vec<&'static str>,
) -> Vec<&'static str> {
    const QUEUE: QueueId = QueueId(0);
    const HCTX: HctxId = HctxId(0);
    const TAG: DriverTag = DriverTag(0);
    const NOW: Instant = Instant::from_ns(1000);
    const READ: Bio = Bio::read(0, 8, 0);

    let mut requests = Requests::new(1);
    let mut bios = Bios::new(1);
    let bio = bios.take(READ).expect("room for one bio");
    requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HCTX, NOW);
    let request = &requests[RequestId(0)];
    let mut swallowed = Vec::new();
    let mut expect = |call| {
        if !take_calls().contains(&call) {
            swallowed.push(call);
        }
    };

    let budget = layer.take_budget(QUEUE);
    expect("take_budget");
    let issue = Issue::new(HCTX, TAG, NOW, RequestId(0), &requests, &bios);
    let issue = Issue { budget, ..issue };
    layer.prepare(&issue);
    expect("prepare");
    layer.unprepare(&issue);
    expect("unprepare");
    layer.prepare(&issue);
    expect("prepare");
    assert_eq!(layer.queue_rq(&issue), Accept::Queued, "the recorder's answer passes up");
    expect("queue_rq");
    layer.commit(QUEUE, HCTX, NOW);
    expect("commit");
    let answer = layer.timed_out(QUEUE, HCTX, TAG, request, NOW);
    assert_eq!(answer, TimedOut::Reset, "the recorder's answer passes up");
    expect("timed_out");
    let _ = layer.poll_at(); // a model may act by other means
    expect("poll_at");
    assert!(layer.next_finished(NOW).is_some(), "the completion passes up");
    expect("next_finished");
    layer.finish(QUEUE, HCTX, TAG, request);
    expect("finish");
    layer.return_budget(QUEUE, BUDGET);
    expect("return_budget");
    swallowed
}
