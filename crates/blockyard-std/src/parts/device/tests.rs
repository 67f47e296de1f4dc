//! Every call of `Driver` and `Device` passes through [`Limited`], and [`AtOnce`] answers each one.

use super::at_once::{AtOnce, CarryOut};
use super::completions::completion;
use super::limited::{Limited, SharedDepth};
use crate::parts::depth::Depth;
use blockyard::bio::Bio;
use blockyard::device::recorder::Recorder;
use blockyard::driver::{Accept, Device, Issue, TimedOut};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use std::sync::{Arc, Mutex};

/// A device that records each call, and finishes each request at once.
type Probe = Recorder<Box<dyn Fn(&'static str)>>;

/// Makes every call on `device` for the request that a queue issues, in an order that a core may
/// choose. Reports each call to `made`.
struct EveryCall<D, F> {
    device: D,
    made: F,
}

impl<D: Device, F: FnMut(&'static str)> CarryOut for EveryCall<D, F> {
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
        let Self { device, made } = self;
        let queue = issue.queue;
        let hctx = issue.hctx;
        let tag = issue.tag;
        let now = issue.now;
        let budget = device.take_budget(queue).expect("budget of an idle device");
        made("take_budget");
        device.prepare(issue);
        made("prepare");
        device.unprepare(issue);
        made("unprepare");
        assert_eq!(device.queue_rq(issue), Accept::Queued);
        made("queue_rq");
        device.commit(queue, hctx, now);
        made("commit");
        assert_eq!(device.timed_out(queue, hctx, tag, issue.request(), now), TimedOut::Reset);
        made("timed_out");
        assert_eq!(device.poll_at(), Some(Instant::ZERO), "the instant of a finished request");
        made("poll_at");
        let finished = device.next_finished(now);
        assert_eq!(finished, Some(completion(issue, Status::Ok)));
        made("next_finished");
        assert_eq!(device.poll_at(), None, "the instant of a device with nothing in flight");
        made("poll_at");
        device.finish(queue, hctx, tag, issue.request());
        made("finish");
        device.return_budget(queue, budget);
        made("return_budget");
        Status::Ok
    }
}

/// Makes every call on `device` for one read, which must succeed.
fn make_every_call(device: impl Device, made: impl FnMut(&'static str)) {
    let device = AtOnce::new(EveryCall { device, made });
    let mut host = Host::new(device, (), TagSetConfig::single(1));
    let config = QueueConfig::new(1, 1, Limits::new(64), Policies::NONE);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    queue.submit(&mut host, CpuId(0), Bio::read(0, 8, 0), Instant::ZERO).expect("an idle queue");
    queue.turn(&mut host, Instant::ZERO);
    let ended = queue.next_ended().expect("a read at a device that finishes at once");
    assert_eq!(ended.status, Status::Ok);
}

/// Returns the calls that `layer` does not pass to the device below it.
fn calls_not_passed_on<D: Device>(layer: impl FnOnce(Probe) -> D) -> Vec<&'static str> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let below = Arc::clone(&calls);
    let layer = layer(Recorder::new(
        Box::new(move |call| below.lock().expect("no call panics").push(call)),
        0,
    ));
    let mut swallowed = Vec::new();
    make_every_call(layer, |call| {
        let passed: Vec<_> = calls.lock().expect("no call panics").drain(..).collect();
        if !passed.contains(&call) {
            swallowed.push(call);
        }
    });
    swallowed
}

/// The depth is the budget, so the device below is not asked for any.
#[test]
fn a_depth_passes_on_every_call_except_budget() {
    for has_budget in [true, false] {
        let depth = Depth::new(2, 4096, 1);
        let shared = Arc::new(SharedDepth { depth, bells: Vec::new() });
        assert_eq!(
            calls_not_passed_on(|below| Limited::new(below, Arc::clone(&shared), 0, has_budget)),
            ["take_budget", "return_budget"]
        );
        assert!((0..2).all(|taken| shared.depth.take_request(0, taken)), "requests given back");
        assert!(shared.depth.take_bytes(0, 4096), "bytes given back");
    }
}

#[test]
fn a_device_that_finishes_at_once_answers_every_call() {
    struct Counted(u32);
    impl CarryOut for &mut Counted {
        fn carry_out(&mut self, _: &Issue<'_>) -> Status {
            self.0 += 1;
            Status::Ok
        }
    }
    let mut counted = Counted(0);
    let mut calls = 0;
    make_every_call(AtOnce::new(&mut counted), |_| calls += 1);
    assert_eq!((counted.0, calls), (1, 11));
}
