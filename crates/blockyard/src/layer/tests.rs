//! Every call of `Driver` and `Device` passes through every layer.

use super::checked::{Checked, Terms};
use super::delay::{Delayed, Extra};
use super::fault::{Action, FaultRule, Faulty, Turns, When};
use super::rate::{Limited, Rates};
use super::trace::{Call, CallSink, Ring, Traced};
use crate::bio::Bio;
use crate::device::null::NullDevice;
use crate::device::recorder::{self, Recorder};
use crate::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::host::Host;
use crate::limits::Limits;
use crate::policy::{Dispatch, Policies};
use crate::prng::Prng;
use crate::request::{Bios, Request, Requests};
use crate::request_queue::{QueueConfig, RequestQueue};
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};
use crate::unit::{Budget, CpuId, DriverTag, HctxId, QueueId, RequestId};
use alloc::boxed::Box;
use alloc::rc::Rc;
use core::cell::RefCell;
use std::vec::Vec;

const TAGS: TagSetConfig = TagSetConfig::single(4);

type Below = Recorder<Box<dyn Fn(&'static str)>>;

/// Returns the calls that `layer` swallows.
fn swallowed<D: Device>(layer: impl FnOnce(Below) -> D) -> Vec<&'static str> {
    let calls = Rc::<RefCell<Vec<_>>>::default();
    let log = Rc::clone(&calls);
    let below = Recorder::new(Box::new(move |call| log.borrow_mut().push(call)) as Box<_>, 0);
    recorder::swallowed(layer(below), || calls.take())
}

#[test]
fn no_layer_swallows_a_call() {
    let policies = Policies { dispatch: Dispatch::Budget, ..Policies::NONE };
    let terms = Terms::of(&QueueConfig::new(1, 1, Limits::new(64), policies), &TAGS);
    let none = Vec::<&str>::new();

    assert_eq!(swallowed(|below| Checked::new(below, Vec::from([terms]), &TAGS)), none);
    let extra = Extra::fixed(Duration::ZERO);
    assert_eq!(swallowed(|below| Delayed::new(below, extra, Prng::new(1), &TAGS)), none);
    assert_eq!(swallowed(|below| Limited::new(below, Rates::NONE, &TAGS)), none);
    assert_eq!(swallowed(|below| Faulty::new(below, Vec::new(), Prng::new(1), &TAGS)), none);
    assert_eq!(swallowed(|below| Traced { below, sink: Ring::new(16) }), none);
    assert_eq!(swallowed(Either::One), none);
}

/// Collects the names of calls.
struct Names(Rc<RefCell<Vec<&'static str>>>);

impl CallSink for Names {
    fn call(&mut self, call: &Call<'_>) {
        self.0.borrow_mut().push(match call {
            Call::TakeBudget(..) => "take_budget",
            Call::ReturnBudget(..) => "return_budget",
            Call::Prepare(..) => "prepare",
            Call::Unprepare(..) => "unprepare",
            Call::Queue(..) => "queue_rq",
            Call::Commit(..) => "commit",
            Call::Finish(..) => "finish",
            Call::TimedOut(..) => "timed_out",
            Call::Finished(..) => "next_finished",
        });
    }
}

#[test]
fn a_trace_has_every_call() {
    let names = Rc::default();
    let _ = swallowed(|below| Traced { below, sink: Names(Rc::clone(&names)) });
    let mut names = names.take();
    names.sort_unstable();
    names.dedup();
    let all = ["commit", "finish", "next_finished", "prepare", "queue_rq", "return_budget"];
    assert_eq!(names, [&all[..], &["take_budget", "timed_out", "unprepare"]].concat());
}

/// A recorder that has nothing to report does not ask to be polled.
#[test]
fn a_recorder_asks_to_be_polled_while_a_completion_waits() {
    assert_eq!(Recorder::new(|_| (), 0).poll_at(), None);
}

/// A device of one of several kinds.
enum Either<D> {
    One(D),
    #[expect(dead_code, reason = "the other kind shows that each variant gets an arm")]
    Other(Box<D>),
}

impl<D: Driver> Driver for Either<D> {
    crate::pass_on!(Self::{One, Other}: take_budget, return_budget, prepare, unprepare, queue_rq);
    crate::pass_on!(Self::{One, Other}: commit, timed_out, finish);
}

impl<D: Device> Device for Either<D> {
    crate::pass_on!(Self::{One, Other}: next_finished, poll_at);
}

/// A layer that keeps one call to itself, so that the test above is known to notice.
struct Keeps<D> {
    below: D,
    call: &'static str,
    accepted: Option<Finished>,
}

impl<D: Driver> Driver for Keeps<D> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        (self.call != "take_budget").then(|| self.below.take_budget(queue))?
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        if self.call != "return_budget" {
            self.below.return_budget(queue, budget);
        }
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        if self.call != "prepare" {
            self.below.prepare(issue);
        }
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        if self.call != "unprepare" {
            self.below.unprepare(issue);
        }
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let queue = issue.queue;
        let hctx = issue.hctx;
        let tag = issue.tag;
        let outcome = Outcome::Done(Status::Ok);
        self.accepted = Some(Finished { queue, hctx, tag, outcome });
        if self.call == "queue_rq" { Accept::Queued } else { self.below.queue_rq(issue) }
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        if self.call != "commit" {
            self.below.commit(queue, hctx, now);
        }
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        if self.call == "timed_out" {
            return TimedOut::Reset;
        }
        self.below.timed_out(queue, hctx, tag, request, now)
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        if self.call != "finish" {
            self.below.finish(queue, hctx, tag, request);
        }
    }
}

impl<D: Device> Device for Keeps<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let below = (self.call != "next_finished").then(|| self.below.next_finished(now));
        below.flatten().or_else(|| self.accepted.take())
    }

    fn poll_at(&self) -> Option<Instant> {
        if self.call == "poll_at" { Some(Instant::ZERO) } else { self.below.poll_at() }
            .or(Some(Instant::ZERO))
    }
}

#[test]
fn a_layer_that_swallows_a_call_is_noticed() {
    let once = ["take_budget", "unprepare", "queue_rq", "commit", "timed_out", "poll_at"];
    for call in once.into_iter().chain(["next_finished", "finish", "return_budget"]) {
        assert_eq!(swallowed(|below| Keeps { below, call, accepted: None }), [call]);
    }
    let twice = swallowed(|below| Keeps { below, call: "prepare", accepted: None });
    assert_eq!(
        twice,
        ["prepare", "prepare"],
        "once before it is undone, and once before the offer"
    );
}

/// Offers a request to a fault layer over a recorder, with the rule `then` for every request.
fn offered(then: Action, last: bool) -> (Accept, Vec<&'static str>) {
    let calls = Rc::<RefCell<Vec<_>>>::default();
    let log = Rc::clone(&calls);
    let below = Recorder::new(move |call| log.borrow_mut().push(call), 0);
    let rule = FaultRule { name: "x".into(), when: When::default(), then };
    let mut faulty = Faulty::new(below, Vec::from([rule]), Prng::new(1), &TAGS);
    let mut requests = Requests::new(1);
    let mut bios = Bios::new(1);
    let bio = bios.take(Bio::read(0, 8, 0)).expect("room");
    requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HctxId(0), Instant::ZERO);
    let issue = Issue::new(HctxId(0), DriverTag(0), Instant::ZERO, RequestId(0), &requests, &bios);
    (faulty.queue_rq(&Issue { last, ..issue }), calls.take())
}

/// Accepts every request, and gives it back prepared when it times out.
struct GivesBack;

impl Driver for GivesBack {
    crate::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, _: &Issue<'_>) -> Accept {
        Accept::Queued
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        TimedOut::Ended(Outcome::AgainPrepared)
    }
}

/// Nothing is in flight any more whose completion would make room ([busy-promise-kept]).
#[test]
fn a_request_given_back_on_time_out_is_no_reason_to_be_full() {
    let when = When { turns: Turns::Between(2, 3), ..When::default() };
    let rule = FaultRule { name: "full".into(), when, then: Action::Busy(Busy::Device) };
    let mut faulty = Faulty::new(GivesBack, Vec::from([rule]), Prng::new(1), &TAGS);
    let mut requests = Requests::new(1);
    let mut bios = Bios::new(1);
    let bio = bios.take(Bio::read(0, 8, 0)).expect("room");
    requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HctxId(0), Instant::ZERO);
    let hctx = HctxId(0);
    let tag = DriverTag(0);
    let issue = Issue::new(hctx, tag, Instant::ZERO, RequestId(0), &requests, &bios);
    assert_eq!(faulty.queue_rq(&issue), Accept::Queued);
    assert_eq!(faulty.queue_rq(&issue), Accept::Busy(Busy::Device));
    let _ = faulty.timed_out(QueueId(0), hctx, tag, issue.request(), Instant::ZERO);
    assert_eq!(faulty.queue_rq(&issue), Accept::Busy(Busy::Resource));
}

/// The device below does not see the request that would have ended its run ([last-or-commit]).
#[test]
fn a_fault_that_swallows_the_last_request_ends_the_run_below() {
    let fail = Action::Fail(Status::Medium);
    assert_eq!(offered(fail, true), (Accept::Failed(Status::Medium), Vec::from(["commit"])));
    assert_eq!(offered(fail, false), (Accept::Failed(Status::Medium), Vec::new()));
}

/// Checks [let-go-ends-held]: a completion that a layer holds or has lost passes up as an error,
/// and later ones pass up as they come.
#[test]
fn layers_that_let_go_end_what_they_hold() {
    let hour = Duration::from_secs(3600);
    let delayed = Delayed::new(NullDevice::new(1, 4), Extra::fixed(hour), Prng::new(1), &TAGS);
    ends_when_let_go(delayed, |layer, _| layer.let_go());
    let rates = Rates { requests_per_s: Some(1), ..Rates::NONE };
    let limited = Limited::new(NullDevice::new(1, 4), rates, &TAGS);
    ends_when_let_go(limited, |layer, _| layer.let_go());
    for then in [Action::Delay(hour), Action::Lose, Action::TimeOut] {
        let rules = Vec::from([FaultRule { name: "x".into(), when: When::default(), then }]);
        let faulty = Faulty::new(NullDevice::new(1, 4), rules, Prng::new(1), &TAGS);
        ends_when_let_go(faulty, |layer, now| layer.let_go(now));
    }
}

fn ends_when_let_go<D: Device>(layer: D, let_go: impl FnOnce(&mut D, Instant)) {
    let now = Instant::from_ns(1);
    let mut host = Host::new(layer, (), TAGS);
    let config = QueueConfig::new(1, 1, Limits::new(64), Policies::NONE);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    queue.submit(&mut host, CpuId(0), Bio::read(0, 8, 0), now).expect("bio within the limits");
    queue.turn(&mut host, now);
    assert!(queue.next_ended().is_none(), "the layer holds it");
    let_go(&mut host.driver, now);
    queue.turn(&mut host, now);
    assert_eq!(queue.next_ended().map(|ended| ended.status), Some(Status::IoError));
    queue.submit(&mut host, CpuId(0), Bio::read(32, 8, 0), now).expect("bio within the limits");
    queue.turn(&mut host, now);
    assert_eq!(queue.next_ended().map(|ended| ended.status), Some(Status::Ok), "none is held");
}
