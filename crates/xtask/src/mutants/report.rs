//! The step `mutants`, which plants random faults and prints those that no test catches.

use crate::console::{Failure, Outcome, fail};
use crate::mutants::area::{AREAS, sample, survivors_max};
use crate::mutants::copy::Copy;
use crate::mutants::equivalent::Equivalents;
use crate::mutants::run::Outcome as TestOutcome;
use crate::mutants::session::{STAGES, Session, Verdict};
use crate::project::target;
use crate::tidy::tree;
use blockyard::prng::Prng;
use std::fs;

/// The default number of faults.
const FAULTS: u64 = 20;
/// The default seed.
const SEED: u64 = 1;

/// `mutants [N] [SEED] [AREA]`: plants N random faults, in all areas or in one, and runs the tests.
///
/// # Errors
///
/// If an argument is wrong, or if the tests miss too many faults of an area.
pub(crate) fn mutants(arguments: &[String]) -> Outcome {
    let faults = number_at(arguments, 0, FAULTS)?;
    let faults = usize::try_from(faults).map_err(|_| Failure("too many faults".into()))?;
    let seed = number_at(arguments, 1, SEED)?;
    let areas = areas_of(arguments.get(2).map(String::as_str))?;
    if plant_and_test(faults.div_ceil(areas.len()), seed, &areas) {
        Ok(())
    } else {
        fail("the tests miss too many faults")
    }
}

/// The argument at `index`, or `usual` without it.
fn number_at(arguments: &[String], index: usize, usual: u64) -> Outcome<u64> {
    let Some(text) = arguments.get(index) else { return Ok(usual) };
    text.parse().map_err(|_| Failure(format!("not a number: {text}")))
}

/// The indices of all areas, or of the one with a name.
fn areas_of(name: Option<&str>) -> Outcome<Vec<usize>> {
    let is_chosen = |at: &usize| name.is_none_or(|name| AREAS[*at].name == name);
    let areas: Vec<_> = (0..AREAS.len()).filter(is_chosen).collect();
    if areas.is_empty() {
        return fail(format!("no such area; there are {}", AREAS.map(|area| area.name).join(", ")));
    }
    Ok(areas)
}

/// Plants `wanted` faults in each of `areas`, and runs the tests; returns whether they catch enough
/// in each area.
fn plant_and_test(wanted: usize, seed: u64, areas: &[usize]) -> bool {
    let list = fs::read_to_string(tree::root().join("crates/xtask/equivalent.txt"));
    let known = Equivalents::parse(&list.expect("list of equivalent faults")).expect("valid list");
    let random = Prng::new(seed);
    let mut samples = vec![];
    let mut equivalent = vec![];
    for &at in areas {
        let faults = AREAS[at].faults();
        println!("{}: {wanted} of {} faults, seed {seed}", AREAS[at].name, faults.len());
        // Some more, in the place of those that do not compile.
        let count = wanted + wanted / 6 + 2;
        let (drawn, skipped) = sample(faults, count, &mut random.fork(at as u64), &known);
        samples.push((at, drawn));
        equivalent.push(skipped);
    }
    let mut session = Session::new(Copy::new(&target().join("mutants")), samples, wanted);
    (0..STAGES.len()).for_each(|stage| session.stage(stage));
    report(&session, areas, &equivalent)
}

/// Prints the survivors and a table; returns whether the tests catch enough in each area.
fn report(session: &Session, areas: &[usize], equivalent: &[usize]) -> bool {
    for one in session.candidates.iter().filter(|one| one.verdict == Verdict::Alive) {
        let reached = if one.reached { "" } else { ", reached by no test" };
        println!(
            "\nsurvivor at {}:{}{reached}\n{}",
            one.fault.file,
            one.fault.line,
            one.fault.block()
        );
    }
    print!("{:10}{:>9}", "area", "sampled");
    STAGES.iter().for_each(|stage| print!("{stage:>12}"));
    println!("{:>8}{:>11}{:>22}", "hung", "survivors", "equivalents skipped");
    let mut enough = true;
    for (&at, equivalent) in areas.iter().zip(equivalent) {
        let area = &AREAS[at];
        let candidates = session.candidates.iter().filter(|one| one.area == at);
        let verdicts: Vec<Verdict> = candidates.map(|one| one.verdict).collect();
        let survivors = count(&verdicts, |one| one == Verdict::Alive);
        let sampled = survivors + count(&verdicts, |one| matches!(one, Verdict::Caught(..)));
        print!("{:10}{sampled:>9}", area.name);
        for stage in 0..STAGES.len() {
            let caught =
                count(&verdicts, |one| matches!(one, Verdict::Caught(at, _) if at == stage));
            print!("{caught:>12}");
        }
        let hung = count(&verdicts, |one| matches!(one, Verdict::Caught(_, TestOutcome::Hung)));
        println!("{hung:>8}{survivors:>11}{equivalent:>22}");
        enough &= survivors <= survivors_max(sampled);
    }
    enough
}

/// The number of verdicts that `matches` takes.
fn count(verdicts: &[Verdict], matches: impl Fn(Verdict) -> bool) -> usize {
    verdicts.iter().filter(|verdict| matches(**verdict)).count()
}
