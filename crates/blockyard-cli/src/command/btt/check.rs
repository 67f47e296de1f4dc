//! `btt check` and `btt repair`: find damage in a BTT and repair it.

use core::time::Duration;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;

use blockyard_btt::Container;
use blockyard_btt::check::{Finding, Problem, Report, Severity};
use blockyard_btt::find::find;
use blockyard_btt::info_block::InfoError;
use blockyard_pmem::Image;

use super::{checked, failed, identify, is_unlaid, look_at, name, unusable};
use crate::cli::{Check, ContainerName, Inspected, Repair};
use crate::message::{Failure, warning};
use crate::progress::{share, show_share};

/// The number of findings of each severity that `repair` prints.
const FINDINGS: usize = 100;
/// The number of checks of an image in use, the time between two, and the compared findings of each
/// severity.
const LOOKS: usize = 8;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
const KEPT: usize = 10_000;
/// The lanes of Linux's driver on a machine with any number of processors: `ND_MAX_LANES` in
/// drivers/nvdimm/nd.h of Linux 6.12.
const LANES_OF_LINUX: u32 = 256;

pub(super) fn check(args: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let (image, in_use) = look_at(&args.inspected)?;
    if is_unlaid(&image, file, out)? {
        return Ok(());
    }
    if in_use {
        return check_in_use(args, &image, out);
    }
    let (report, _) = checked(&image, args.findings).map_err(|error| failed(file, error))?;
    refuse_other_files(&args.inspected, &report)?;
    warn_of_few_free_blocks(file, &image);
    tell(file, &report, out)?;
    verdict(&report)
}

/// Warns of arenas that a new Linux refuses: its driver has 256 lanes, and each needs a free block
/// of its own. A pool of libpmemblk is not Linux's.
fn warn_of_few_free_blocks(file: &Path, image: &Image) {
    // A BTT that cannot be found is damaged, and the findings say so.
    let Ok(arenas) = find(&image.memory, image.container, image.own_uuid) else { return };
    for (number, arena) in arenas.iter().enumerate() {
        let free = arena.info.layout.nfree;
        if image.container != Container::Pool && free < LANES_OF_LINUX {
            let file = file.display();
            warning(&format!(
                "{file}: arena {number} has {free} free blocks, fewer than the {LANES_OF_LINUX} lanes \
                 of Linux: Linux from 7.4, and stable kernels, refuse this"
            ));
        }
    }
}

/// Fails if nothing in the file looks like a BTT: in no container is there an info block or its
/// copy, damaged or not. A --container asserts that there was one.
fn refuse_other_files(args: &Inspected, report: &Report) -> Result<(), Failure> {
    if args.container.is_some() || report.container != Container::Namespace || !is_bare(report) {
        return Ok(());
    }
    let labelled = Inspected { container: Some(ContainerName::Labelled), ..args.clone() };
    let other = identify(&labelled, true).ok().and_then(|image| checked(&image, 1).ok());
    if other.is_some_and(|(other, _)| !is_bare(&other)) {
        return Ok(());
    }
    let words = "no BTT: there is no info block, and no copy of one; if the file had a BTT, say in which --container";
    Err(unusable(&args.file, words))
}

/// Whether a check found neither an info block nor anything like one.
fn is_bare(report: &Report) -> bool {
    const NONE: InfoError = InfoError::Signature;
    let is_missing = |finding: &Finding| {
        matches!(finding.problem, Problem::NoInfo { first: NONE, copy: NONE } | Problem::TooSmall)
    };
    report.arenas == 0 && report.findings().iter().all(is_missing)
}

/// Checks an image that another process writes. A write in progress can look like damage. Real
/// damage persists, so only findings of every check count.
fn check_in_use(args: &Check, image: &Image, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let mut lasting: Option<Vec<Finding>> = None;
    for _ in 0..LOOKS {
        let (report, _) = checked(image, KEPT).map_err(|error| failed(file, error))?;
        let found = report.findings();
        match &mut lasting {
            Some(lasting) => lasting.retain(|finding| found.contains(finding)),
            None => lasting = Some(found.to_vec()),
        }
        if lasting.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
        sleep(BETWEEN_LOOKS);
    }
    let lasting = lasting.unwrap_or_default();
    for finding in lasting.iter().take(args.findings) {
        writeln!(out, "{finding}")?;
    }
    let worst = lasting.iter().map(|finding| finding.severity).max();
    let worst = worst.filter(|worst| *worst != Severity::Note);
    let word = worst.map_or("clean".to_owned(), |worst| worst.to_string());
    let file = file.display();
    let container = name(image.container);
    let count = lasting.len();
    writeln!(out, "{file}: {word}: {container}, in use, findings that lasted: {count}")?;
    out.flush()?;
    exit_of(worst)
}

pub(super) fn repair(args: &Repair, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &args.inspected.file;
    let image = identify(&args.inspected, !args.yes)?;
    if is_unlaid(&image, file, out)? {
        return Ok(());
    }
    let (before, mut plan) = checked(&image, FINDINGS).map_err(|error| failed(file, error))?;
    refuse_other_files(&args.inspected, &before)?;
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
    let line = share();
    let mut done = 0;
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

/// Prints the findings, with the worst last.
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
    let file = file.display();
    let container = name(*container);
    writeln!(out, "{file}: {worst}: {container}, arenas: {arenas}, sectors: {sectors}")?;
    if report.at_risk() > 0 {
        writeln!(out, "{file}: findings with data at risk: {}", report.at_risk())?;
    }
    Ok(out.flush()?)
}

fn verdict(report: &Report) -> Result<(), Failure> {
    exit_of(report.worst())
}

fn exit_of(worst: Option<Severity>) -> Result<(), Failure> {
    match worst {
        None | Some(Severity::Note) => Ok(()),
        Some(Severity::Repairable) => Err(Failure::Verdict(3)),
        Some(Severity::Broken) => Err(Failure::Verdict(4)),
    }
}
