//! Prints lines, functions and assertions of each crate, without tests; with `circles` or `rules` as
//! argument, every circular dependency, or every fault of the rules. `architecture` writes the rows of docs/ARCHITECTURE.md.

use blockyard_tidy::{architecture, count, modules, rules, tree};

fn main() {
    match std::env::args().nth(1).as_deref() {
        None => print_counts(),
        Some("circles") => {
            let circles =
                tree::crates().into_iter().flat_map(|name| modules::circles(&tree::modules(&name)));
            circles.for_each(|circle| print!("{circle}"));
        }
        Some("rules") => rules::rules().faults().iter().for_each(|fault| println!("{fault}")),
        Some("architecture") => {
            let file = tree::root().join(architecture::DOCUMENT);
            let text = std::fs::read_to_string(&file).expect("the document");
            let text = architecture::updated(&text, &tree::root());
            std::fs::write(&file, text).expect("the document can be written");
        }
        Some(other) => {
            eprintln!("unknown argument {other:?}: circles, rules, architecture, or none");
            std::process::exit(2);
        }
    }
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
