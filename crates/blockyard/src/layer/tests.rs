//! Every call of `Driver` and `Device` passes through every layer.

use super::checked::{Checked, Terms};
use super::delay::{Delayed, Extra};
use super::fault::Faulty;
use super::rate::{Limited, Rates};
use super::trace::{Call, CallSink, Ring, Traced};
use crate::device::recorder::{self, Recorder};
use crate::driver::{Device, Driver};
use crate::limits::Limits;
use crate::policy::{Dispatch, Policies};
use crate::prng::Prng;
use crate::request_queue::QueueConfig;
use crate::tag::TagSetConfig;
use crate::time::Duration;
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
    let draws = || Prng::new(1);
    let none = Vec::<&str>::new();

    assert_eq!(swallowed(|below| Checked::new(below, Vec::from([terms]), &TAGS)), none);
    let extra = Extra::fixed(Duration::ZERO);
    assert_eq!(swallowed(|below| Delayed::new(below, extra, draws(), &TAGS)), none);
    assert_eq!(swallowed(|below| Limited::new(below, Rates::NONE, &TAGS)), none);
    assert_eq!(swallowed(|below| Faulty::new(below, Vec::new(), draws(), &TAGS)), none);
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
