//! A device for tests that records which calls reach it, and a check that no layer swallows one.

use super::Model;
use super::activity::Activity;
use blockyard::bio::Bio;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{Dispatch, Policies};
use blockyard::request::Request;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{Budget, CpuId, DriverTag, HctxId, QueueId};
use core::cell::RefCell;

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

/// Makes every call of [`Driver`] and [`Device`] on the device below, with the first request that it is
/// offered, in an order that a core may choose. Fails the request then.
struct Caller<'a, D> {
    below: D,
    model: &'a dyn Fn(&D) -> &Model,
    swallowed: Vec<&'static str>,
}

impl<D: Device> Caller<'_, D> {
    /// Notes `call` if it did not reach the probe.
    fn expect(&mut self, call: &'static str) {
        let model = (self.model)(&self.below);
        let Model::Probe(probe) = model else { panic!("{model:?} is no probe") };
        if !probe.calls.borrow_mut().drain(..).any(|seen| seen == call) {
            self.swallowed.push(call);
        }
    }
}

impl<D: Device> Driver for Caller<'_, D> {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let (queue, hctx, tag, now) = (issue.queue, issue.hctx, issue.tag, issue.now);
        let budget = self.below.take_budget(queue);
        self.expect("take_budget");
        let mut issue = *issue;
        (issue.budget, issue.last) = (budget, false);
        let issue = &issue;
        self.below.prepare(issue);
        self.expect("prepare");
        self.below.unprepare(issue);
        self.expect("unprepare");
        self.below.prepare(issue);
        assert_eq!(self.below.queue_rq(issue), Accept::Queued);
        self.expect("queue_rq");
        self.below.commit(queue, hctx, now);
        self.expect("commit");
        let answer = self.below.timed_out(queue, hctx, tag, issue.request(), now);
        assert_eq!(answer, TimedOut::Reset);
        self.expect("timed_out");
        let _ = self.below.poll_at();
        assert!(self.below.next_finished(now).is_some(), "the completion passes up");
        self.below.finish(queue, hctx, tag, issue.request());
        self.expect("finish");
        self.below.return_budget(queue, Budget(7));
        self.expect("return_budget");
        Accept::Failed(Status::IoError)
    }
}

const TAGS: TagSetConfig = TagSetConfig::single(4);

/// A queue whose design takes budget.
fn queue_config() -> QueueConfig {
    let policies = Policies { dispatch: Dispatch::Budget, ..Policies::NONE };
    QueueConfig::new(1, 1, Limits::new(64), policies)
}

/// Makes every call on `device`, whose model is a [`Probe`]. Returns the calls that did not reach it.
pub(super) fn swallowed<D: Device>(device: D, model: impl Fn(&D) -> &Model) -> Vec<&'static str> {
    let caller = Caller { below: device, model: &model, swallowed: Vec::new() };
    let mut host = Host::new(caller, (), TAGS);
    let mut queue = RequestQueue::new(QueueId(0), queue_config(), &host);
    let now = Instant::from_ns(1000);
    queue.submit(&mut host, CpuId(0), Bio::read(0, 8, 0), now).expect("the queue is empty");
    while let Some(run) = queue.next_run(&mut host, now) {
        let _ = queue.run(&mut host, run.hctx, now);
    }
    assert_eq!(queue.next_ended().map(|ended| ended.status), Some(Status::IoError));
    host.driver.swallowed
}

mod tests {
    use super::*;
    use crate::data::medium::Media;
    use crate::device::stack::{Layering, Stack};
    use crate::profile::{FaultRules, MmcFaults};
    use blockyard::layer::checked::Terms;
    use blockyard::prng::Prng;

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
        let terms = [Terms::of(&queue_config(), &TAGS)];
        let rules =
            FaultRules { name: String::new(), rules: Vec::new(), mmc: MmcFaults::default() };
        for bits in 0..8 {
            let (has_media, has_faults, is_checked) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            let media = || Media::new([&terms[0].limits], &TAGS, Prng::new(1));
            let layers = Layering {
                media: has_media.then(media),
                faults: has_faults.then_some(&rules),
                draws: Prng::new(1),
                terms: is_checked.then_some(&terms[..]),
            };
            let missing = swallowed(Stack::new(probe(), layers, &TAGS), Stack::model);
            assert_eq!(missing, NONE, "{has_media} {has_faults} {is_checked}");
        }
    }
}
