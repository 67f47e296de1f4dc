//! Every step of the table, one after the other; those that only compile and compute, in a second
//! lane at the same time.

use super::{Step, steps_of_all};
use crate::command::Run;
use crate::console::{Outcome, fail};
use std::env::temp_dir;
use std::path::Path;
use std::time::Instant;
use std::{fs, process, thread};

/// A step that has ended.
struct Ended {
    name: &'static str,
    passes: bool,
    /// Its line in the table of times.
    line: String,
}

/// `all [--skip STEP]...`
pub(super) fn all(arguments: &[String]) -> Outcome {
    let skipped = skipped(arguments)?;
    let start = Instant::now();
    // The steps append a line for each check that did not run.
    let unchecked = temp_dir().join(format!("blockyard-unchecked-{}", process::id()));
    fs::write(&unchecked, "").expect("list of checks that did not run");
    let steps: Vec<&Step> = steps_of_all().filter(|step| !skipped.contains(&step.name)).collect();
    let ended = run_in_two_lanes(&steps, &unchecked);
    println!("\n==== total {} s", start.elapsed().as_secs());
    ended.iter().for_each(|step| println!("{}", step.line));
    let lines = fs::read_to_string(&unchecked).expect("list of checks that did not run");
    lines.lines().for_each(|line| println!("not checked: {line}"));
    fs::remove_file(&unchecked).expect("list of checks that did not run");
    let failed: Vec<_> = ended.iter().filter(|step| !step.passes).map(|step| step.name).collect();
    if failed.is_empty() { Ok(()) } else { fail(format!("failed: {}", failed.join(" "))) }
}

/// Runs the steps that only compute in a second lane; prints its output after that of the others.
fn run_in_two_lanes(steps: &[&Step], unchecked: &Path) -> Vec<Ended> {
    let (others, first): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| step.in_second_lane);
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let collected = |command: Run| {
                let (code, output) = command.collect();
                (code == 0, output)
            };
            others.iter().map(|step| timed(step, unchecked, collected)).collect::<Vec<_>>()
        });
        let mut all = vec![];
        for step in first {
            println!("\n==== {}", step.name);
            let (step, ()) = timed(step, unchecked, |command| (command.succeeds(), ()));
            println!("==== {}", step.line);
            all.push(step);
        }
        for (step, output) in second.join().expect("second lane") {
            println!("\n==== {}\n{output}==== {}", step.name, step.line);
            all.push(step);
        }
        all
    })
}

/// Lets `run` run the command of a step, in a process of its own: a panic ends only the step. It
/// returns whether the step passes, and its output if nobody has seen that.
fn timed<T>(step: &Step, unchecked: &Path, run: impl Fn(Run) -> (bool, T)) -> (Ended, T) {
    let begun = Instant::now();
    let command = Run::new("./ci.sh").arg(step.name).env("BLOCKYARD_CI_UNCHECKED", unchecked);
    let (passes, output) = run(command);
    let word = if passes { "ok    " } else { "FAILED" };
    let line = format!("{:<12} {word}  {:4} s", step.name, begun.elapsed().as_secs());
    (Ended { name: step.name, passes, line }, output)
}

/// The steps that the arguments leave out.
fn skipped(arguments: &[String]) -> Outcome<Vec<&'static str>> {
    let mut skipped = vec![];
    for pair in arguments.chunks(2) {
        let [option, name] = pair else {
            return fail(format!("unknown argument {}: all takes --skip STEP", pair[0]));
        };
        if option != "--skip" {
            return fail(format!("unknown argument {option}: all takes --skip STEP"));
        }
        let Some(step) = steps_of_all().find(|step| step.name == name) else {
            return fail(format!("there is no step {name}"));
        };
        skipped.push(step.name);
    }
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(words: &str) -> Outcome<Vec<&'static str>> {
        let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        skipped(&arguments)
    }

    #[test]
    fn only_steps_of_all_can_be_skipped() {
        assert_eq!(skip(""), Ok(vec![]));
        assert_eq!(skip("--skip test --skip lint"), Ok(vec!["test", "lint"]));
        assert!(skip("--skip soak").is_err(), "it is no part of all");
        assert!(skip("--skip").is_err(), "without a step");
        assert!(skip("test lint").is_err(), "without the option");
    }
}
