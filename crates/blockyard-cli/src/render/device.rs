//! The further tables of an answer: the MMC host, persistent memory and drives; injected faults and verified data.

use blockyard_sim::answer::Outcome;

use super::{drive, faults, mmc, pmem, verified};

/// An outcome with its name; a single run has none.
pub(crate) type Named<'a> = (Option<&'a str>, &'a Outcome);

/// Returns what the MMC hosts, memories or drives did, in lines of at most `width`. The text is empty if there are none.
pub(crate) fn hosts(outcomes: &[Named<'_>], width: usize) -> String {
    let hosts = outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.mmc.as_ref()?)));
    let memories =
        outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.pmem.as_ref()?)));
    let drives = outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.drive.as_ref()?)));
    mmc::text(&hosts.collect::<Vec<_>>(), width)
        + &pmem::text(&memories.collect::<Vec<_>>(), width)
        + &drive::text(&drives.collect::<Vec<_>>(), width)
}

/// Returns what became of injected faults and what verification found, in lines of at most `width`. The text is empty if
/// neither was asked for.
pub(crate) fn findings(outcomes: &[Named<'_>], width: usize) -> String {
    let mut text = String::new();
    let rules = outcomes.iter().filter_map(|(name, of)| Some((*name, of.faults.as_deref()?)));
    if let Some(rules) = faults::table("design", rules) {
        text += &format!("\nFaults, of requests offered to the device:\n{rules:width$}");
    }
    for (name, of) in outcomes {
        let Some(found) = &of.verified else { continue };
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        text += &format!("\n{name}{}", verified::text(found));
    }
    text
}
