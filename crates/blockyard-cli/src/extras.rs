//! What an answer tells beside its figures: what an MMC host did, what persistent memory was used for, faults that were injected, data that
//! was verified.

use core::fmt::Write as _;

use blockyard_sim::simulate::{Conditions, Report};
use blockyard_sim::why::{HostFigures, PmemFigures};
use serde::Serialize;

use crate::faults::{self, FaultRow};
use crate::message::Failure;
use crate::mmc::{self, MmcRow};
use crate::pmem::{self, PmemRow};
use crate::verify::VerifiedRow;

/// The first is there where the device is an MMC host's, the second where it is persistent memory, each other
/// one where it was asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Extras {
    /// What the host did with its bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mmc: Option<MmcRow>,
    /// What processors spent I/Os on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pmem: Option<PmemRow>,
    /// How often each rule was met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) faults: Option<Vec<FaultRow>>,
    /// What was found on the media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<VerifiedRow>,
}

impl Extras {
    /// Those of `report`, which a run under `conditions` gave.
    pub(crate) fn of(report: &Report, conditions: &Conditions<'_>) -> Self {
        Self {
            mmc: HostFigures::of(report).map(MmcRow::from),
            pmem: PmemFigures::of(report).map(PmemRow::from),
            faults: conditions.faults.map(|_| faults::rows(&report.faults)),
            verified: report.verified.as_ref().map(VerifiedRow::from),
        }
    }
}

/// For people, those of each design, or of a single run that names none; empty where there are none.
pub(crate) fn text<'a>(of: impl Iterator<Item = (Option<&'a str>, &'a Extras)> + Clone) -> String {
    let hosts = of.clone().filter_map(|(name, extras)| Some((name, extras.mmc.as_ref()?)));
    let mut text = mmc::text(hosts);
    let memories = of.clone().filter_map(|(name, extras)| Some((name, extras.pmem.as_ref()?)));
    text += &pmem::text(memories);
    let rules = of.clone().filter_map(|(name, extras)| Some((name, extras.faults.as_deref()?)));
    if let Some(rules) = faults::table("design", rules) {
        write!(text, "\nFaults, of requests offered to the device:\n{rules}")
            .expect("a string takes everything");
    }
    for (name, extras) in of {
        let Some(verified) = &extras.verified else { continue };
        let of = name.map(|name| format!("{name}: ")).unwrap_or_default();
        write!(text, "\n{of}{}", verified.text()).expect("a string takes everything");
    }
    text
}

/// A run is no success where something is wrong on the media.
pub(crate) fn verdict<'a>(all: impl IntoIterator<Item = &'a Extras>) -> Result<(), Failure> {
    let wrong = { all.into_iter() }.filter_map(|extras| extras.verified.as_ref());
    match wrong.map(VerifiedRow::violation_count).sum::<u64>() {
        0 => Ok(()),
        count => Err(Failure::Run(format!(
            "the device does not hold what it ought to: {count} places are wrong"
        ))),
    }
}
