//! The further tables of an answer: the figures of the device's family; injected faults and
//! verified data.

use blockyard_answer::{FamilyFigures, Outcome};

use super::buffered::{self, Buffered};
use super::table::Table;
use super::wrap::wrapped;
use super::{faults, verified};

#[cfg(test)]
pub(super) mod tests;

/// An outcome with its name; a single run has none.
pub(crate) type Named<'a> = (Option<&'a str>, &'a Outcome);

/// Returns what the family of the device adds to runs on it, in lines of at most `width`. The text
/// is empty if it adds nothing.
pub(crate) fn hosts(outcomes: &[Named<'_>], width: usize) -> String {
    if let [(None, alone)] = outcomes
        && let Some(lines) = alone.figures.family.own().lines()
    {
        return lines;
    }
    let figures: Vec<_> = outcomes.iter().map(|(_, of)| &of.figures.family).collect();
    let mut text = String::new();
    for of_family in FamilyFigures::tables(&figures) {
        let mut table = Table::of_words(&["design"]);
        // A row needs a name: that of a single run is its design's.
        outcomes.iter().for_each(|(name, of)| table.row([name.unwrap_or(&of.name).to_owned()]));
        for (name, cells) in of_family.columns {
            table.column(&name, cells.into_iter());
        }
        text += &format!("\n{}\n{table:width$}", wrapped(of_family.caption, width));
    }
    text
}

/// Returns what buffered writes did, what became of injected faults and what verification found, in
/// lines of at most `width`. The text is empty if there were none and neither was asked for.
pub(crate) fn findings(outcomes: &[Named<'_>], width: usize) -> String {
    let writes: Vec<_> = outcomes.iter().filter_map(|(_, of)| Buffered::of(of)).collect();
    let mut text = buffered::text(&writes, width);
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
