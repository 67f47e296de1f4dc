//! What a simulation drives: a model, and the layers over it.

use super::Model;
use crate::profile::FaultRules;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, TimedOut};
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::fault::Faulty;
use blockyard::prng::Prng;
use blockyard::request::Request;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};

/// A model and its layers.
///
/// The combinations that there are, rather than layers behind pointers: a run without layers pays
/// one comparison for each call.
#[derive(Debug)]
pub enum Stack {
    /// The model alone.
    Bare(Model),
    /// With faults.
    Faulty(Box<Faulty<Model>>),
    /// With faults, should there be rules, and with the contract checked above and below them.
    Checked(Box<Checked<Faulty<Checked<Model>>>>),
}

/// How often a rule of a fault file was met, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCount {
    /// The rule's name.
    pub name: String,
    /// Offers that it matched.
    pub matched: u64,
    /// Of those, on which it fired.
    pub fired: u64,
}

impl Stack {
    /// `model` with the faults of `rules`; `draws` is their chance.
    #[must_use]
    pub fn new(model: Model, rules: Option<&FaultRules>, draws: Prng, tags: &TagSetConfig) -> Self {
        let Some(rules) = rules else { return Self::Bare(model) };
        Self::Faulty(Box::new(Faulty::new(model, rules.rules.clone(), draws, tags)))
    }

    /// As [`Self::new`], with every call held against the contract, for queues of these `terms`.
    #[must_use]
    pub fn checked(
        model: Model,
        rules: Option<&FaultRules>,
        draws: Prng,
        tags: &TagSetConfig,
        terms: &[Terms],
    ) -> Self {
        let rules = rules.map_or_else(Vec::new, |rules| rules.rules.clone());
        let model = Checked::new(model, terms.to_vec(), tags);
        let faulty = Faulty::new(model, rules, draws, tags);
        Self::Checked(Box::new(Checked::new(faulty, terms.to_vec(), tags)))
    }

    /// The model at the bottom.
    #[must_use]
    pub fn model(&self) -> &Model {
        match self {
            Self::Bare(model) => model,
            Self::Faulty(faulty) => &faulty.below,
            Self::Checked(checked) => &checked.below.below.below,
        }
    }

    /// As [`Self::model`].
    pub fn model_mut(&mut self) -> &mut Model {
        match self {
            Self::Bare(model) => model,
            Self::Faulty(faulty) => &mut faulty.below,
            Self::Checked(checked) => &mut checked.below.below.below,
        }
    }

    /// How often each rule was met, in the order of the file.
    #[must_use]
    pub fn fault_counts(&self) -> Vec<FaultCount> {
        let counts = |(rule, count): (&blockyard::layer::fault::FaultRule, _)| {
            let blockyard::layer::fault::Count { matched, fired } = count;
            FaultCount { name: rule.name.clone(), matched, fired }
        };
        match self {
            Self::Bare(_) => Vec::new(),
            Self::Faulty(faulty) => faulty.counts().map(counts).collect(),
            Self::Checked(checked) => checked.below.counts().map(counts).collect(),
        }
    }

    /// Completions that rules lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match self {
            Self::Bare(_) => 0,
            Self::Faulty(faulty) => faulty.lost(),
            Self::Checked(checked) => checked.below.lost(),
        }
    }

    /// A piece of work has been done: no run is open (D2).
    pub fn call_ended(&self) {
        if let Self::Checked(checked) = self {
            checked.call_ended();
            checked.below.below.call_ended();
        }
    }
}

/// Passes a call to the device that there is.
macro_rules! each {
    ($stack:expr, $device:ident => $call:expr) => {
        match $stack {
            Self::Bare($device) => $call,
            Self::Faulty($device) => $call,
            Self::Checked($device) => $call,
        }
    };
}

impl Driver for Stack {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        each!(self, device => device.take_budget(queue))
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        each!(self, device => device.return_budget(queue, budget));
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        each!(self, device => device.prepare(issue));
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        each!(self, device => device.unprepare(issue));
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        each!(self, device => device.queue_rq(issue))
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        each!(self, device => device.commit(queue, hctx, now));
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        each!(self, device => device.finish(queue, hctx, tag, request));
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        each!(self, device => device.timed_out(queue, hctx, tag, request, now))
    }
}

impl Device for Stack {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        each!(self, device => device.next_finished(now))
    }

    fn poll_at(&self) -> Option<Instant> {
        each!(self, device => device.poll_at())
    }
}
