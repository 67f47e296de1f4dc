//! The further tables of an answer: the MMC host, persistent memory and drives; injected faults and
//! verified data.

use blockyard_answer::Outcome;

use super::{drive, faults, mmc, pmem, verified};

/// An outcome with its name; a single run has none.
pub(crate) type Named<'a> = (Option<&'a str>, &'a Outcome);

/// Returns what the MMC hosts, memories or drives did, in lines of at most `width`. The text is
/// empty if there are none.
pub(crate) fn hosts(outcomes: &[Named<'_>], width: usize) -> String {
    let hosts =
        outcomes.iter().filter_map(|(name, of)| Some((*name, of.figures.family.mmc.as_ref()?)));
    // A row needs a name: that of a single run is its design's.
    let all = outcomes.iter().map(|(_, of)| (of.name.as_str(), &of.figures));
    let memories =
        all.clone().filter_map(|(name, figures)| Some((name, figures.family.pmem.as_ref()?)));
    let drives = all.filter_map(|(name, figures)| Some((name, figures.family.drive.as_ref()?)));
    mmc::text(&hosts.collect::<Vec<_>>(), width)
        + &pmem::text(&memories.collect::<Vec<_>>(), width)
        + &drive::text(&drives.collect::<Vec<_>>(), width)
}

/// Returns what became of injected faults and what verification found, in lines of at most `width`.
/// The text is empty if neither was asked for.
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

#[cfg(test)]
mod tests {
    use blockyard_answer::{DriveFigures, FamilyFigures, Figures, LoadFigures};

    use super::super::samples;
    use super::*;

    #[test]
    fn a_single_run_is_named_by_its_design() {
        let drive = DriveFigures {
            commands_per_doorbell: 1.0,
            interrupts_per_command: 1.0,
            controller_percent: 10.0,
            link_percent: 20.0,
            medium_percent: 30.0,
            medium: vec![("seeks", 7)],
            engine_percent: 0.0,
            at_device: 1.0,
            disk: None,
            load: LoadFigures::default(),
        };
        let figures = Figures {
            family: FamilyFigures { drive: Some(drive), ..FamilyFigures::default() },
            ..samples::figures(100.0)
        };
        let outcome = Outcome { figures, ..samples::outcome("mq-none", 100.0, 1.0) };
        let text = hosts(&[(None, &outcome)], 80);
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("mq-none ")).collect();
        assert!(rows.len() == 2 && rows[1].ends_with(" 7"), "{text}");
    }
}
