//! Why one design does more than another: which factor differs, and the counters behind it.
//!
//! It knows no design: the same counters would give the same explanation. `difference` compares two
//! designs, `bottleneck` says what limits one, `depth`, `host`, `medium` and `pmem` add what
//! queues, MMC hosts, the media of drives and persistent memory have of their own, `jobs` has the
//! reason of each job, `evidence` is the data, and `text` writes it as sentences.

mod bottleneck;
mod depth;
mod difference;
mod evidence;
mod host;
mod jobs;
mod medium;
mod pmem;
mod run;
mod text;

#[cfg(test)]
mod tests;

pub use jobs::JobReason;

pub(super) use bottleneck::bottleneck;
pub(super) use jobs::reasons;

pub use evidence::{
    Bottleneck, CpuUse, Evidence, Explanation, Factor, FrontPart, IdlePart, IdleTime, LongestStage,
    MediumCause, MediumLimit, Pair, PartTime, TransferPeriod,
};

use crate::outcome::Outcome;
use blockyard_devices::profile::Device;

impl Explanation {
    /// Why `outcomes`, of one job on `device`, differ.
    ///
    /// # Panics
    ///
    /// If there is no outcome.
    #[must_use]
    pub fn of(device: &Device, outcomes: &[Outcome]) -> Self {
        if let [first, second, ..] = outcomes
            && outcomes.iter().any(Outcome::is_partial)
        {
            return Self::partial(&first.name, &second.name);
        }
        let runs = outcomes.iter().map(|outcome| (outcome.name.as_str(), &outcome.figures));
        difference::explain(device, &runs.collect::<Vec<_>>())
    }

    /// Explains nothing, because one of the runs was interrupted.
    fn partial(first: &str, second: &str) -> Self {
        Self {
            low: first.to_owned(),
            high: Some(second.to_owned()),
            factor: Factor::Partial,
            share: f64::NAN,
            evidence: Vec::new(),
        }
    }
}
