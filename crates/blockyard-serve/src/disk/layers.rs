//! What may lie between the queue of a disk and where its data is kept.
//!
//! ```text
//! queue ─► faults ─► rates ─► delay ─► model ─► memory, file
//! ```
//!
//! Layers count for themselves, so a disk with any of them is served by one lane.

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
use std::sync::Arc;

/// What lies between the queue of a disk and where its data is kept.
#[derive(Clone, Debug)]
pub struct Layers {
    /// What the disk behaves as.
    pub model: Option<Arc<dyn Behaviour>>,
    /// How much longer requests take.
    pub delay: Option<Extra>,
    /// How fast they may be.
    pub rates: Rates,
    /// What goes wrong. A rule that cannot fire on the disk is refused at the start, and so are torn and misdirected
    /// writes: of a write, all or nothing is kept.
    pub faults: Vec<FaultRule>,
    /// Draws what varies.
    pub seed: u64,
}

impl Default for Layers {
    fn default() -> Self {
        Self { model: None, delay: None, rates: Rates::NONE, faults: Vec::new(), seed: 1 }
    }
}

/// The requests that clients can send.
const SENT: [Op; 5] = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes];

/// Whether `rule` can match a request of `op`.
fn is_about(rule: &FaultRule, op: Op) -> bool {
    (rule.when.ops.is_empty() || rule.when.ops.contains(&op))
        && (op == Op::Write || !rule.then.is_of_writes())
        && (op != Op::Flush || rule.when.sectors.is_none()) // a flush has no sectors
}

/// Why `rule` cannot fire on a disk with `limits`, or cannot be obeyed.
fn impossible(rule: &FaultRule, limits: &Limits, read_only: bool) -> Option<&'static str> {
    if matches!(rule.then, Action::TearWrite(_) | Action::MisdirectWrite(_)) {
        return Some(
            "torn and misdirected writes are for simulations; a disk that is served can lose a write or fail it",
        );
    }
    let is_sent = |op: &Op| match op {
        Op::Read | Op::Flush => true,
        op => !read_only && limits.max_sectors_of(*op) > 0,
    };
    if !SENT.iter().filter(|op| is_sent(op)).any(|op| is_about(rule, *op)) {
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
    if rule.when.queue.is_some_and(|queue| queue != QueueId(0)) {
        return Some(
            "it is for another disk: a rule of a served disk needs `disk = 0` or no `disk`",
        );
    }
    None
}

impl Layers {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.model.is_none()
            && self.delay.is_none()
            && self.rates == Rates::NONE
            && self.faults.is_empty()
    }

    /// A rule that a disk with these limits cannot obey, and the reason.
    pub(super) fn impossible_fault(
        &self,
        limits: &Limits,
        read_only: bool,
    ) -> Option<(&str, &'static str)> {
        let refused = |rule: &'_ FaultRule| impossible(rule, limits, read_only);
        self.faults.iter().find_map(|rule| Some((rule.name.as_str(), refused(rule)?)))
    }

    /// Whether flushes have to reach the layers, even if the medium has no cache: a rule is about them.
    pub(super) fn wants_flushes(&self) -> bool {
        self.faults.iter().any(|rule| is_about(rule, Op::Flush))
    }

    /// These over `medium`, on a queue with `tags`; how well the model is kept up with goes to `timing`.
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
        if self.rates.bytes_per_s.is_some() || self.rates.requests_per_s.is_some() {
            medium = Medium::Rated(Box::new(Limited::new(medium, self.rates, tags)));
        }
        if !self.faults.is_empty() {
            let faulty = Faulty::new(medium, self.faults.clone(), draws.fork(2), tags);
            medium = Medium::Faulty(Box::new(faulty));
        }
        medium
    }
}
