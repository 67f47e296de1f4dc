//! Every call of `Driver` and `Device` passes through every layer.

use super::checked::{Checked, Terms};
use super::delay::{Delayed, Extra};
use super::fault::Faulty;
use super::rate::{Limited, Rates};
use super::trace::{Ring, Traced};
use crate::bio::Bio;
use crate::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::limits::Limits;
use crate::policy::{Dispatch, Policies};
use crate::prng::Prng;
use crate::request::{Bios, Request, Requests};
use crate::request_queue::QueueConfig;
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};
use crate::unit::{Budget, CpuId, DriverTag, HctxId, QueueId, RequestId};
use alloc::rc::Rc;
use core::cell::RefCell;
use std::vec::Vec;

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);
const TAG: DriverTag = DriverTag(0);
const NOW: Instant = Instant::from_ns(1000);

type Calls = Rc<RefCell<Vec<&'static str>>>;

/// A device that records which calls reach it.
struct Recorder {
    calls: Calls,
    finished: Option<Finished>,
}

impl Recorder {
    fn record(&self, call: &'static str) {
        self.calls.borrow_mut().push(call);
    }
}

impl Driver for Recorder {
    fn take_budget(&mut self, _: QueueId) -> Option<Budget> {
        self.record("take_budget");
        Some(Budget(7))
    }

    fn return_budget(&mut self, _: QueueId, budget: Budget) {
        assert_eq!(budget, Budget(7));
        self.record("return_budget");
    }

    fn prepare(&mut self, _: &Issue<'_>) {
        self.record("prepare");
    }

    fn unprepare(&mut self, _: &Issue<'_>) {
        self.record("unprepare");
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.record("queue_rq");
        let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
        self.finished = Some(Finished { queue, hctx, tag, outcome: Outcome::Done(Status::Ok) });
        Accept::Queued
    }

    fn commit(&mut self, _: QueueId, _: HctxId, _: Instant) {
        self.record("commit");
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        self.record("timed_out");
        TimedOut::Reset
    }

    fn finish(&mut self, _: QueueId, _: HctxId, _: DriverTag, _: &Request) {
        self.record("finish");
    }
}

impl Device for Recorder {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        self.record("next_finished");
        self.finished.take()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.record("poll_at");
        None
    }
}

const TAGS: TagSetConfig = TagSetConfig::single(4);

/// Makes every call on `layer` over a [`Recorder`], in an order that a core may choose, and returns
/// the calls that the layer swallows.
fn swallowed<D: Device>(layer: impl FnOnce(Recorder) -> D) -> Vec<&'static str> {
    let calls = Calls::default();
    let mut layer = layer(Recorder { calls: Rc::clone(&calls), finished: None });
    let (mut requests, mut bios) = (Requests::new(1), Bios::new(1));
    let bio = bios.take(Bio::read(0, 8, 0)).expect("room for one bio");
    requests.start(RequestId(0), &bios, bio, CpuId(0), HCTX, NOW);
    let mut swallowed = Vec::new();
    let mut expect = |call| {
        if !calls.borrow_mut().drain(..).any(|seen| seen == call) {
            swallowed.push(call);
        }
    };

    let budget = layer.take_budget(QUEUE);
    expect("take_budget");
    let issue = Issue::new(HCTX, TAG, NOW, RequestId(0), &requests, &bios);
    let issue = Issue { budget, last: false, ..issue };
    layer.prepare(&issue);
    expect("prepare");
    layer.unprepare(&issue);
    expect("unprepare");
    layer.prepare(&issue);
    expect("prepare");
    assert_eq!(layer.queue_rq(&issue), Accept::Queued);
    expect("queue_rq");
    layer.commit(QUEUE, HCTX, NOW);
    expect("commit");
    let answer = layer.timed_out(QUEUE, HCTX, TAG, &requests[RequestId(0)], NOW);
    assert_eq!(answer, TimedOut::Reset);
    expect("timed_out");
    let _ = layer.poll_at();
    expect("poll_at");
    assert!(layer.next_finished(NOW).is_some(), "the completion passes up");
    expect("next_finished");
    layer.finish(QUEUE, HCTX, TAG, &requests[RequestId(0)]);
    expect("finish");
    layer.return_budget(QUEUE, Budget(7));
    expect("return_budget");
    swallowed
}

#[test]
fn no_layer_swallows_a_call() {
    let policies = Policies { dispatch: Dispatch::Budget, ..Policies::NONE };
    let terms = Terms::of(&QueueConfig::new(1, 1, Limits::new(64), policies), &TAGS);
    let draws = || Prng::new(1);
    let none = Vec::<&str>::new();

    assert_eq!(swallowed(|below| Checked::new(below, Vec::from([terms]), &TAGS)), none);
    let extra = Extra::fixed(Duration::ZERO);
    assert_eq!(swallowed(|below| Delayed::new(below, extra, draws(), &TAGS)), none);
    assert_eq!(swallowed(|below| Limited::new(below, Rates::NONE, &TAGS)), none);
    assert_eq!(swallowed(|below| Faulty::new(below, Vec::new(), draws(), &TAGS)), none);
    assert_eq!(swallowed(|below| Traced { below, sink: Ring::new(16) }), none);
}

/// A layer that keeps `commit` to itself, so that the test above is known to notice.
struct KeepsCommit<D> {
    below: D,
}

impl<D: Driver> Driver for KeepsCommit<D> {
    crate::leaf_calls!(commit);
    crate::pass_on!(below: take_budget, return_budget, prepare, unprepare, queue_rq, timed_out, finish);
}

impl<D: Device> Device for KeepsCommit<D> {
    crate::pass_on!(below: next_finished, poll_at);
}

#[test]
fn a_layer_that_swallows_a_call_is_noticed() {
    assert_eq!(swallowed(|below| KeepsCommit { below }), ["commit"]);
}
