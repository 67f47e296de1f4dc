//! Every step of the table, one after the other.

use super::steps_of_all;
use crate::command::Run;
use crate::console::{Outcome, fail};
use std::env::temp_dir;
use std::time::Instant;
use std::{fs, process};

/// `all [--skip STEP]...`
pub(super) fn all(arguments: &[String]) -> Outcome {
    let skipped = skipped(arguments)?;
    let start = Instant::now();
    // The steps append a line for each check that did not run.
    let unchecked = temp_dir().join(format!("blockyard-unchecked-{}", process::id()));
    fs::write(&unchecked, "").expect("list of checks that did not run");
    let mut failed = vec![];
    let mut times = vec![];
    for step in steps_of_all().filter(|step| !skipped.contains(step)) {
        println!("\n==== {step}");
        let begun = Instant::now();
        // In a process of its own: a panic ends only the step.
        let passes =
            Run::new("./ci.sh").arg(step).env("BLOCKYARD_CI_UNCHECKED", &unchecked).succeeds();
        if !passes {
            failed.push(step);
        }
        let word = if passes { "ok    " } else { "FAILED" };
        let line = format!("{step:<9} {word}  {:4} s", begun.elapsed().as_secs());
        println!("==== {line}");
        times.push(line);
    }
    println!("\n==== total {} s", start.elapsed().as_secs());
    times.iter().for_each(|line| println!("{line}"));
    let lines = fs::read_to_string(&unchecked).expect("list of checks that did not run");
    lines.lines().for_each(|line| println!("not checked: {line}"));
    fs::remove_file(&unchecked).expect("list of checks that did not run");
    if failed.is_empty() { Ok(()) } else { fail(format!("failed: {}", failed.join(" "))) }
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
        let Some(step) = steps_of_all().find(|step| step == name) else {
            return fail(format!("there is no step {name}"));
        };
        skipped.push(step);
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
