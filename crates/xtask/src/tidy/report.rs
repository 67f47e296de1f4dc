//! The step `tidy`, which prints what the tests of this crate check.

use crate::console::{Outcome, fail};
use crate::tidy::{count, modules, rules, tree};

/// `tidy [circles|rules]`: prints lines, functions and assertions of each crate, without tests, or every circular
/// dependency, or every fault of the rules.
///
/// # Errors
///
/// If the argument is another word.
pub fn tidy(arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        None => print_counts(),
        Some("circles") => {
            let circles =
                tree::crates().into_iter().flat_map(|name| modules::circles(&tree::modules(&name)));
            circles.for_each(|circle| print!("{circle}"));
        }
        Some("rules") => rules::rules().faults().iter().for_each(|fault| println!("{fault}")),
        Some(other) => return fail(format!("unknown argument {other:?}: circles, rules, or none")),
    }
    Ok(())
}

fn print_counts() {
    println!(
        "{:<20}{:>8}{:>11}{:>12}{:>10}{:>9}",
        "crate", "lines", "functions", "assertions", "per 1000", "circles"
    );
    let mut lines = 0;
    for name in tree::crates() {
        let files = tree::modules(&name);
        let counts = count::count(&files);
        let density = counts.assertions * 1000 / counts.functions.max(1);
        let circles = modules::circles(&files).len();
        let (functions, assertions) = (counts.functions, counts.assertions);
        println!(
            "{name:<20}{:>8}{functions:>11}{assertions:>12}{density:>10}{circles:>9}",
            counts.lines
        );
        lines += counts.lines;
    }
    println!("{lines} lines, {} rules", rules::rules().declared.len());
}
