//! Why one design does more than another: which factor differs, and the counters behind it.
//!
//! It knows no design: the same counters would give the same explanation. Nor does it know a family
//! of devices: their limits and their evidence come from
//! [`DeviceModel`](blockyard_devices::profile::DeviceModel). `difference` compares two designs,
//! `bottleneck` says what limits one, `depth` judges the depth of its queue, `jobs` has the reason
//! of each job, `evidence` is the data, and `text` writes it as sentences.

mod bottleneck;
mod depth;
mod difference;
mod evidence;
mod jobs;
mod text;

#[cfg(test)]
mod tests;

pub use jobs::JobReason;

pub(super) use bottleneck::{bottleneck, load};
pub(super) use jobs::reasons;

pub use evidence::{Bottleneck, CpuUse, Evidence, Explanation, Factor, LongestStage};

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
        Self::of_each(&vec![device; outcomes.len()], outcomes)
    }

    /// Why `outcomes` of one job differ, each on the device at its place in `devices`.
    pub(super) fn of_each(devices: &[&Device], outcomes: &[Outcome]) -> Self {
        debug_assert_eq!(devices.len(), outcomes.len(), "a device for each outcome");
        if let [first, second, ..] = outcomes
            && outcomes.iter().any(Outcome::is_partial)
        {
            return Self::partial(&first.name, &second.name);
        }
        let runs = outcomes.iter().zip(devices);
        let runs = runs.map(|(of, device)| (of.name.as_str(), &of.figures, *device));
        difference::explain(&runs.collect::<Vec<_>>())
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
