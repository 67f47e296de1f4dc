//! A small program with faults behind their switches, compiled and run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};
use xtask::mutants::copy::Program;
use xtask::mutants::fault::faults;
use xtask::mutants::plant::{plant, switch};
use xtask::mutants::run::{Outcome, measure, tests};

const SOURCE: &str = "
fn tested(a: u8) -> bool { a < 4 }
fn run_only(a: u8) -> bool { a > 5 }
fn never_run(a: u8) -> bool { a == 6 }

#[test]
fn four_is_not_below_four() {
    run_only(4);
    assert!(!tested(4));
}
";

#[test]
fn only_what_a_test_asserts_is_caught() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("an_untested_fault_survives");
    fs::create_dir_all(&folder).expect("folder");
    let found = faults("small.rs", SOURCE);
    let numbered: Vec<_> = found.iter().enumerate().collect();
    let (text, _) = plant(SOURCE, &numbered);
    let source = folder.join("small.rs");
    let path = folder.join("small");
    fs::write(&source, text + &switch(found.len())).expect("source");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .args(["--test", "--edition=2024", "--cap-lints=allow", "-o"])
        .args([&path, &source])
        .status();
    assert!(compiled.expect("rustc").success(), "the planted source compiles");

    let program = Program { path, folder };
    let names = tests(&program);
    assert_eq!(names, ["four_is_not_below_four"]);
    let measured = measure(&program, &names[0]);
    let mut outcomes = BTreeMap::new();
    for (number, fault) in numbered {
        let outcome = measured.reached.contains(&number).then(|| measured.with(number));
        outcomes.insert((fault.before.as_str(), fault.after.as_str()), outcome);
    }
    let expected = [
        (("a < 4", "a <= 4"), Some(Outcome::Failed)),
        (("4", "5"), Some(Outcome::Failed)),
        (("a > 5", "a >= 5"), Some(Outcome::Passed)),
        (("5", "6"), Some(Outcome::Passed)),
        (("a == 6", "a != 6"), None),
        (("6", "7"), None),
    ];
    assert_eq!(outcomes, BTreeMap::from(expected));
}
