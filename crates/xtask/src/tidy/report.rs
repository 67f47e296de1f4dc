//! The step `tidy`, which prints what the tests of this crate check.

use crate::console::{Outcome, fail};
use crate::tidy::count::Counts;
use crate::tidy::ratchet::Table;
use crate::tidy::{architecture, count, modules, rules, style, tree};

/// `tidy`: prints lines, functions and assertions of each crate, without tests. `tidy circles`
/// prints every circular dependency, `tidy rules` every fault of the named rules, and `tidy style
/// [PART]` every violation of style in a crate or folder, or in all. `tidy lower` writes the table
/// of the latter's numbers after they have fallen, and `tidy architecture` the rows of modules in
/// docs/ARCHITECTURE.md.
///
/// # Errors
///
/// If the argument is another word, or if a number has risen.
pub(crate) fn tidy(arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        None => print_counts(),
        Some("circles") => {
            let circles =
                tree::crates().into_iter().flat_map(|name| modules::circles(&tree::modules(&name)));
            circles.for_each(|circle| print!("{circle}"));
        }
        Some("rules") => rules::rules().faults().iter().for_each(|fault| println!("{fault}")),
        Some("style") => print_violations(arguments.get(1)),
        Some("lower") => return Table::count(&style::violations()).lower(),
        Some("architecture") => return architecture::write(),
        Some(other) => {
            return fail(format!(
                "unknown argument {other:?}: circles, rules, style, lower or architecture"
            ));
        }
    }
    Ok(())
}

/// Prints the violations of style in `part`, or in all parts.
fn print_violations(part: Option<&String>) {
    let violations = style::violations();
    for violation in violations.iter().filter(|one| part.is_none_or(|part| one.part == *part)) {
        println!("{}: {}: {}", violation.at, violation.rule.name(), violation.text);
    }
}

fn print_counts() {
    println!(
        "{:<20}{:>8}{:>11}{:>12}{:>10}{:>9}",
        "crate", "lines", "functions", "assertions", "per 1000", "circles"
    );
    let mut all_lines = 0;
    for name in tree::crates() {
        let files = tree::modules(&name);
        let counts = count::count(&files);
        let density = counts.assertions * 1000 / counts.functions.max(1);
        let circles = modules::circles(&files).len();
        let Counts { lines, functions, assertions } = counts;
        println!("{name:<20}{lines:>8}{functions:>11}{assertions:>12}{density:>10}{circles:>9}",);
        all_lines += lines;
    }
    println!("{all_lines} lines, {} rules", rules::rules().declared.len());
}
