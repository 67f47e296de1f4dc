//! A device for tests that records which calls reach it, and a check that no layer swallows one.

use super::Model;
use super::activity::Activity;
use blockyard::bio::Bio;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::request::{Bios, Request, Requests};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{Budget, CpuId, DriverTag, HctxId, QueueId, RequestId};
use core::cell::RefCell;

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);
const TAG: DriverTag = DriverTag(0);
const NOW: Instant = Instant::from_ns(1000);

/// Completes each request at once, and records the calls made on it.
#[derive(Debug, Default)]
pub struct Probe {
    calls: RefCell<Vec<&'static str>>,
    finished: Option<Finished>,
    pub(super) activity: Activity,
}

impl Probe {
    fn record(&self, call: &'static str) {
        self.calls.borrow_mut().push(call);
    }
}

impl Driver for Probe {
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

impl Device for Probe {
    fn next_finished(&mut self, _: Instant) -> Option<Finished> {
        self.record("next_finished");
        self.finished.take()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.record("poll_at");
        None
    }
}

/// Makes every call of [`Driver`] and [`Device`] on `device`, whose model is a [`Probe`], in an order that
/// a core may choose. Returns the calls that did not reach the probe.
pub(super) fn swallowed<D: Device>(
    mut device: D,
    model: impl Fn(&D) -> &Model,
) -> Vec<&'static str> {
    let (mut requests, mut bios) = (Requests::new(1), Bios::new(1));
    let bio = bios.take(Bio::read(0, 8, 0)).expect("room for one bio");
    requests.start(RequestId(0), &bios, bio, CpuId(0), HCTX, NOW);
    let mut swallowed = Vec::new();
    let mut expect = |device: &D, call| {
        let Model::Probe(probe) = model(device) else { panic!("{:?} is no probe", model(device)) };
        if !probe.calls.borrow_mut().drain(..).any(|seen| seen == call) {
            swallowed.push(call);
        }
    };

    let budget = device.take_budget(QUEUE);
    expect(&device, "take_budget");
    let issue = Issue::new(HCTX, TAG, NOW, RequestId(0), &requests, &bios);
    let issue = Issue { budget, last: false, ..issue };
    device.prepare(&issue);
    expect(&device, "prepare");
    device.unprepare(&issue);
    expect(&device, "unprepare");
    device.prepare(&issue);
    assert_eq!(device.queue_rq(&issue), Accept::Queued);
    expect(&device, "queue_rq");
    device.commit(QUEUE, HCTX, NOW);
    expect(&device, "commit");
    let answer = device.timed_out(QUEUE, HCTX, TAG, &requests[RequestId(0)], NOW);
    assert_eq!(answer, TimedOut::Reset);
    expect(&device, "timed_out");
    let _ = device.poll_at();
    assert!(device.next_finished(NOW).is_some(), "the completion passes up");
    device.finish(QUEUE, HCTX, TAG, &requests[RequestId(0)]);
    expect(&device, "finish");
    device.return_budget(QUEUE, Budget(7));
    expect(&device, "return_budget");
    swallowed
}

mod tests {
    use super::*;
    use crate::data::medium::Media;
    use crate::device::stack::{Layering, Stack};
    use crate::profile::{FaultRules, MmcFaults};
    use blockyard::layer::checked::Terms;
    use blockyard::limits::Limits;
    use blockyard::policy::{Dispatch, Policies};
    use blockyard::prng::Prng;
    use blockyard::request_queue::QueueConfig;
    use blockyard::tag::TagSetConfig;

    const TAGS: TagSetConfig = TagSetConfig::single(4);
    const NONE: [&str; 0] = [];

    fn probe() -> Model {
        Model::Probe(Probe::default())
    }

    #[test]
    fn a_model_swallows_no_call() {
        assert_eq!(swallowed(probe(), |model| model), NONE);
    }

    #[test]
    fn a_stack_swallows_no_call_whatever_its_layers_are() {
        let policies = Policies { dispatch: Dispatch::Budget, ..Policies::NONE };
        let limits = Limits::new(64);
        let terms = [Terms::of(&QueueConfig::new(1, 1, limits, policies), &TAGS)];
        let rules = FaultRules { name: String::new(), rules: Vec::new(), mmc: MmcFaults::default() };
        for (has_media, has_faults, is_checked) in
            (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
        {
            let layers = Layering {
                media: has_media.then(|| Media::new([&limits], &TAGS, Prng::new(1))),
                faults: has_faults.then_some(&rules),
                draws: Prng::new(1),
                terms: is_checked.then_some(&terms[..]),
            };
            let missing = swallowed(Stack::new(probe(), layers, &TAGS), Stack::model);
            assert_eq!(missing, NONE, "{has_media} {has_faults} {is_checked}");
        }
    }
}
