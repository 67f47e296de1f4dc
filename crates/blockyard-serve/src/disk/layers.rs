//! What may lie between the queue of a disk and where its data is kept.
//!
//! ```text
//! queue ─► faults ─► rates ─► delay ─► model ─► memory, file
//! ```
//!
//! Layers count for themselves, so a disk with any of them is served by one lane.

use super::Medium;
use super::live::{Behaviour, Live, Timing};
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::layer::fault::{Action, FaultRule, Faulty};
use blockyard::layer::rate::{Limited, Rates};
use blockyard::prng::Prng;
use blockyard::tag::TagSetConfig;
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
    /// What goes wrong. Of what is written all or nothing is kept: torn and misdirected writes are
    /// refused at the start.
    pub faults: Vec<FaultRule>,
    /// Draws what varies.
    pub seed: u64,
}

impl Default for Layers {
    fn default() -> Self {
        Self { model: None, delay: None, rates: Rates::NONE, faults: Vec::new(), seed: 1 }
    }
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

    /// The name of a rule that no disk here can obey.
    pub(super) fn impossible_fault(&self) -> Option<&str> {
        let cannot = |rule: &&FaultRule| {
            matches!(rule.then, Action::TearWrite(_) | Action::MisdirectWrite(_))
        };
        self.faults.iter().find(cannot).map(|rule| rule.name.as_str())
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
