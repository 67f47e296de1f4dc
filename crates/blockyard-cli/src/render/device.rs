//! The further tables of an answer: the MMC host, persistent memory, injected faults, and verified data.

use blockyard_sim::answer::Outcome;

use super::{faults, mmc, pmem, verified};

/// Returns the tables of each outcome with its name, or of a single unnamed run. The text is empty if there are none.
pub(crate) fn text(outcomes: &[(Option<&str>, &Outcome)]) -> String {
    let hosts = outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.mmc.as_ref()?)));
    let memories =
        outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.pmem.as_ref()?)));
    let mut text = mmc::text(&hosts.collect::<Vec<_>>());
    text += &pmem::text(&memories.collect::<Vec<_>>());
    let rules = outcomes.iter().filter_map(|(name, of)| Some((*name, of.faults.as_deref()?)));
    if let Some(rules) = faults::table("design", rules) {
        text += &format!("\nFaults, of requests offered to the device:\n{rules}");
    }
    for (name, of) in outcomes {
        let Some(found) = &of.verified else { continue };
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        text += &format!("\n{name}{}", verified::text(found));
    }
    text
}
