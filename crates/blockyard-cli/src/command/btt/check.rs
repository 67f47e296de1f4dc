//! `btt check` and `btt repair`: find damage in a BTT, and repair it.

use std::io::Write;
use std::path::Path;

use blockyard_btt::check::{Report, Severity};

use super::{checked, failed, identify, is_unlaid, name};
use crate::cli::{Check, Repair};
use crate::message::Failure;
use crate::progress::{share, show_share};

/// How many findings of each severity `repair` prints.
const FINDINGS: usize = 100;

pub(super) fn check(args: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let image = identify(&args.inspected, true)?;
    if is_unlaid(&image, file, out)? {
        return Ok(());
    }
    let (report, _) = checked(&image, args.findings).map_err(|error| failed(file, error))?;
    tell(file, &report, out)?;
    verdict(&report)
}

pub(super) fn repair(args: &Repair, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let image = identify(&args.inspected, !args.yes)?;
    if is_unlaid(&image, file, out)? {
        return Ok(());
    }
    let (before, mut plan) = checked(&image, FINDINGS).map_err(|error| failed(file, error))?;
    if args.unmark {
        plan.clear_error_marks();
    }
    for step in plan.steps() {
        writeln!(out, "{step}")?;
    }
    if args.dry_run {
        tell(file, &before, out)?;
        return verdict(&before);
    }
    let (line, mut done) = (share(), 0);
    let of = plan.steps().len() as u64;
    let applied = plan.apply(&image.memory, &mut || {
        done += 1;
        show_share(&line, "repairing", done, of);
    });
    drop(line);
    applied.map_err(|error| failed(file, error))?;
    let (after, _) = checked(&image, FINDINGS).map_err(|error| failed(file, error))?;
    tell(file, &after, out)?;
    verdict(&after)
}

/// Prints the findings, the worst last.
fn tell(file: &Path, report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    for severity in [Severity::Note, Severity::Repairable, Severity::Broken] {
        let found = report.findings().iter().filter(|finding| finding.severity == severity);
        let mut told = 0;
        for finding in found {
            writeln!(out, "{finding}")?;
            told += 1;
        }
        let more = report.count(severity) - told;
        if more > 0 {
            writeln!(out, "{severity}: {more} more")?;
        }
    }
    let worst = report.worst().map_or("clean".to_owned(), |worst| worst.to_string());
    let Report { container, arenas, sectors, .. } = report;
    let (file, container) = (file.display(), name(*container));
    writeln!(out, "{file}: {worst}: {container}, arenas: {arenas}, sectors: {sectors}")?;
    if report.at_risk() > 0 {
        writeln!(out, "{file}: findings with data at risk: {}", report.at_risk())?;
    }
    Ok(out.flush()?)
}

fn verdict(report: &Report) -> Result<(), Failure> {
    match report.worst() {
        None | Some(Severity::Note) => Ok(()),
        Some(Severity::Repairable) => Err(Failure::Verdict(3)),
        Some(Severity::Broken) => Err(Failure::Verdict(4)),
    }
}
