//! The layers between the queue of a disk and its data.
//!
//! ```text
//! queue ─► faults ─► rates ─► delay ─► model ─► memory, file
//! ```
//!
//! Layers keep their own counts, so one lane serves a disk that has any.

use super::Medium;
use super::live::{Behaviour, Live, Timing};
use blockyard::bio::Op;
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::layer::fault::{Action, FaultRule, Faulty};
use blockyard::layer::rate::{Limited, Rates};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::tag::TagSetConfig;
use blockyard::unit::QueueId;
use blockyard_std::parts::clock;
use core::ops::Range;
use std::sync::Arc;

/// The layers between the queue of a disk and its data.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The model that the disk behaves like.
    pub model: Option<Arc<dyn Behaviour>>,
    /// The delay added to each request.
    pub delay: Option<Extra>,
    /// The limits on bytes and requests per second. With [`Rates::NONE`] there are none until an operator sets them;
    /// with `None` none can be set.
    pub rates: Option<Rates>,
    /// The fault rules. A rule that cannot fire on the disk is refused when the disk is opened. So are rules for torn
    /// and misdirected writes: a served disk keeps all of a write or nothing. With an empty list there are none until an
    /// operator sets them; with `None` none can be set.
    pub faults: Option<Vec<FaultRule>>,
    /// The seed of random delays and faults.
    pub seed: u64,
}

impl Default for Layers {
    fn default() -> Self {
        Self { model: None, delay: None, rates: None, faults: None, seed: 1 }
    }
}

impl Layers {
    /// Keeps a change that the running disk has taken, for a disk that takes its place.
    pub(crate) fn keep(&mut self, change: Change) {
        match change {
            Change::Rates(rates) => self.rates = Some(rates),
            Change::Delay(delay) => self.delay = Some(delay),
            Change::Faults(rules) => self.faults = Some(rules),
        }
    }
}

/// A change of the layers of a running disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Limits for the requests that come from now on and those that wait.
    Rates(Rates),
    /// A delay for the requests that come from now on and those that wait.
    Delay(Extra),
    /// Fault rules for the requests that come from now on, which are possible ([`impossible_fault`]).
    Faults(Vec<FaultRule>),
}

const SENT: [Op; 5] = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes];

fn is_about(rule: &FaultRule, op: Op) -> bool {
    (rule.when.ops.is_empty() || rule.when.ops.contains(&op))
        && (op == Op::Write || !rule.then.is_of_writes())
        && (op != Op::Flush || rule.when.sectors.is_none()) // a flush has no sectors
}

/// Returns whether clients of a disk with `limits` send requests of `op`.
fn is_sent(op: Op, limits: &Limits, read_only: bool) -> bool {
    match op {
        Op::Read | Op::Flush => true,
        op => !read_only && limits.max_sectors_of(op) > 0,
    }
}

/// Returns the name of the first of `rules` that cannot fire on a disk with `limits` or cannot be obeyed, and the reason.
pub(super) fn impossible_fault<'a>(
    rules: &'a [FaultRule],
    limits: &Limits,
    read_only: bool,
) -> Option<(&'a str, &'static str)> {
    rules.iter().find_map(|rule| Some((rule.name.as_str(), impossible(rule, limits, read_only)?)))
}

/// Returns the reason why `rule` cannot fire on a disk with `limits` or cannot be obeyed, if there is one.
fn impossible(rule: &FaultRule, limits: &Limits, read_only: bool) -> Option<&'static str> {
    if matches!(rule.then, Action::TearWrite(_) | Action::MisdirectWrite(_)) {
        return Some(
            "torn and misdirected writes are for simulations; a disk that is served can lose a write or fail it",
        );
    }
    if !SENT.iter().any(|op| is_sent(*op, limits, read_only) && is_about(rule, *op)) {
        return Some("no request of a client to this disk can match its op");
    }
    if rule
        .when
        .sectors
        .as_ref()
        .is_some_and(|at| at.is_empty() || at.start >= limits.capacity_sectors)
    {
        return Some("its sectors are beyond the end of the disk");
    }
    if rule.when.during.as_ref().is_some_and(Range::is_empty) {
        return Some("its time is empty");
    }
    if rule.when.queue.is_some_and(|queue| queue != QueueId(0)) {
        return Some(
            "it is for another disk: a rule of a served disk needs `disk = 0` or no `disk`",
        );
    }
    None
}

impl Layers {
    /// Returns whether there are no layers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.model.is_none()
            && self.delay.is_none()
            && self.rates.is_none()
            && self.faults.is_none()
    }

    /// Returns whether a rule may match flushes, which must then reach the layers even if the medium has no cache.
    pub(super) fn wants_flushes(&self) -> bool {
        self.faults.is_some()
    }

    /// Stacks the layers on `medium`, for a queue with `tags`. `timing` counts how well the machine keeps up with the
    /// model.
    pub(super) fn over(&self, medium: Medium, timing: &Arc<Timing>, tags: &TagSetConfig) -> Medium {
        let mut medium = medium;
        let draws = Prng::new(self.seed);
        if let Some(model) = &self.model {
            let live = Live::new(medium, &**model, Arc::clone(timing));
            medium = Medium::Live(Box::new(live));
        }
        if let Some(extra) = self.delay {
            medium = Medium::Delayed(Box::new(Delayed::new(medium, extra, draws.fork(1), tags)));
        }
        if let Some(rates) = self.rates {
            medium = Medium::Rated(Box::new(Limited::new(medium, rates, tags)));
        }
        if let Some(rules) = &self.faults {
            let mut faulty = Faulty::new(medium, Vec::new(), draws.fork(2), tags);
            faulty.set_rules(rules.clone(), clock::now());
            medium = Medium::Faulty(Box::new(faulty));
        }
        medium
    }
}
