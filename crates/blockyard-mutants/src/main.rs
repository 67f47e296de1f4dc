//! `blockyard-mutants [N] [SEED] [AREA]`: plants N random faults, in all areas or in one, and prints those
//! that no test catches.

use blockyard::prng::Prng;
use blockyard_mutants::area::{AREAS, sample, survivors_max};
use blockyard_mutants::copy::Copy;
use blockyard_mutants::equivalent::Equivalents;
use blockyard_mutants::run::Outcome;
use blockyard_mutants::session::{STAGES, Session, Verdict};
use blockyard_tidy::tree;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    match arguments() {
        Ok((count, seed, areas)) => mutants(count.div_ceil(areas.len()), seed, &areas),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The number of faults, the seed, and the indices of the areas.
fn arguments() -> Result<(usize, u64, Vec<usize>), String> {
    let number = |nth, usual| match env::args().nth(nth) {
        None => Ok(usual),
        Some(text) => text.parse::<u64>().map_err(|_| format!("not a number: {text}")),
    };
    let count = usize::try_from(number(1, 20)?).map_err(|_| "too many faults".to_owned())?;
    let named = env::args().nth(3);
    let chosen = |at: &usize| named.as_ref().is_none_or(|name| AREAS[*at].name == name);
    let areas: Vec<_> = (0..AREAS.len()).filter(chosen).collect();
    if areas.is_empty() {
        return Err(format!("no such area; there are {}", AREAS.map(|area| area.name).join(", ")));
    }
    Ok((count, number(2, 1)?, areas))
}

/// Plants `wanted` faults in each of `areas`, and runs the tests.
fn mutants(wanted: usize, seed: u64, areas: &[usize]) -> ExitCode {
    let list = fs::read_to_string(tree::root().join("crates/blockyard-mutants/equivalent.txt"));
    let known = Equivalents::parse(&list.expect("list of equivalent faults")).expect("valid list");
    let random = Prng::new(seed);
    let (mut samples, mut equivalent) = (vec![], vec![]);
    for &at in areas {
        let faults = AREAS[at].faults();
        println!("{}: {wanted} of {} faults, seed {seed}", AREAS[at].name, faults.len());
        // Some more, in the place of those that do not compile.
        let count = wanted + wanted / 6 + 2;
        let (drawn, skipped) = sample(faults, count, &mut random.fork(at as u64), &known);
        samples.push((at, drawn));
        equivalent.push(skipped);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(tree::root().join("target"), PathBuf::from);
    let mut session = Session::new(Copy::new(&target.join("mutants")), samples, wanted);
    (0..STAGES.len()).for_each(|stage| session.stage(stage));
    if report(&session, areas, &equivalent) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
        let verdicts =
            session.candidates.iter().filter(|one| one.area == at).map(|one| one.verdict);
        let count = |matches: &dyn Fn(Verdict) -> bool| {
            verdicts.clone().filter(|one| matches(*one)).count()
        };
        let survivors = count(&|one| one == Verdict::Alive);
        let sampled = survivors + count(&|one| matches!(one, Verdict::Caught(..)));
        print!("{:10}{sampled:>9}", area.name);
        for stage in 0..STAGES.len() {
            print!("{:>12}", count(&|one| matches!(one, Verdict::Caught(at, _) if at == stage)));
        }
        let hung = count(&|one| matches!(one, Verdict::Caught(_, Outcome::Hung)));
        println!("{hung:>8}{survivors:>11}{equivalent:>22}");
        enough &= survivors <= survivors_max(sampled);
    }
    enough
}
