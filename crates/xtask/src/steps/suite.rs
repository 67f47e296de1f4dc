//! The tests of all packages.

use crate::command::Run;
use crate::console::{Outcome, fail, in_ci, report_unchecked, say};
use crate::install::{want, want_perfetto};
use core::fmt;
use std::collections::BTreeSet;
use std::env::temp_dir;
use std::path::Path;
use std::{env, fs, process};

/// The programs that tests compare Blockyard with, and the Debian packages that have them.
const PEERS: [(&str, &[&str]); 12] = [
    ("fio", &["fio"]),
    ("strace", &["strace"]),
    ("valgrind", &["valgrind"]),
    ("blkparse", &["blktrace"]),
    ("nbdcopy", &["libnbd-bin"]),
    ("nbdsh", &["python3-libnbd"]),
    ("fusermount3", &["fuse3"]),
    ("mkfs.ext4", &["e2fsprogs"]),
    ("qemu-io", &["qemu-utils"]),
    ("promtool", &["prometheus"]),
    ("script", &["bsdutils"]),
    ("pmempool", &["pmdk-tools", "libpmemblk1"]),
];

/// `test`
pub(super) fn test(_: &[String]) -> Outcome {
    for (command, packages) in PEERS {
        want(command, packages)?;
    }
    let perfetto = want_perfetto()?;
    // The tests append a line for each check that they cannot run here.
    let not_checked = temp_dir().join(format!("blockyard-not-checked-{}", process::id()));
    fs::write(&not_checked, "").expect("list of checks that did not run");
    let mut log = vec![];
    let passes = run_all(&not_checked, perfetto.as_deref(), &mut log);
    let lines = fs::read_to_string(&not_checked).expect("list of checks that did not run");
    let lines: BTreeSet<&str> = lines.lines().map(str::trim).collect();
    lines.into_iter().for_each(report_unchecked);
    fs::remove_file(&not_checked).expect("list of checks that did not run");
    let log = String::from_utf8_lossy(&log);
    print_failures(&log);
    let tally = Tally::of(&log);
    // The last line, which `.ci/run` repeats.
    println!("{tally}");
    if !passes || tally.failed > 0 {
        return fail("tests failed");
    }
    if tally.passed == 0 {
        return fail("no test ran");
    }
    Ok(())
}

/// Runs the tests and adds their output to `log`; returns whether all pass. A failure does not stop
/// the others.
fn run_all(not_checked: &Path, perfetto: Option<&Path>, log: &mut Vec<u8>) -> bool {
    let mut flags = env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.push(" --cfg loom");
    let workspace = cargo_test(not_checked, perfetto).words("--workspace --no-fail-fast");
    let mut passes = workspace.logged(log);
    for (subject, targets) in MODELS {
        say(subject);
        let model = cargo_test(not_checked, perfetto).words("--profile swift -p").words(targets);
        passes &= model.env("RUSTFLAGS", &flags).logged(log);
    }
    passes
}

/// The tests that a model checker runs, each with its subject.
const MODELS: [(&str, &str); 2] = [
    (
        "the depth that lanes share, in every order of their threads",
        "blockyard-std --test depth_model",
    ),
    (
        "readers and writers of a BTT, in every order that memory permits",
        "blockyard-btt --test versions_model --test readers_model",
    ),
];

/// A run of tests. In CI a test program that hangs is ended, with the programs that it started, and
/// the others still run. At a terminal, such a test would not get Ctrl-C.
fn cargo_test(not_checked: &Path, perfetto: Option<&Path>) -> Run {
    let mut test = Run::new("cargo").env("BLOCKYARD_NOT_CHECKED", not_checked);
    if let Some(perfetto) = perfetto {
        test = test.env("BLOCKYARD_PERFETTO", perfetto);
    }
    if in_ci() {
        test = test.arg("--config").arg("target.'cfg(unix)'.runner = 'timeout -s KILL 20m'");
    }
    test.words("test --locked")
}

/// Prints the tests that failed.
fn print_failures(log: &str) {
    for line in log.lines() {
        let is_test = line.starts_with("test ") && line.ends_with(" FAILED");
        if is_test || line.starts_with("error: test failed") {
            println!("{line}");
        }
    }
}

/// The sum of all of cargo's lines `test result:`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// Adds up lines such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...`.
    fn of(log: &str) -> Self {
        let mut tally = Self::default();
        for line in log.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            tally.passed += number_in(&words, 1);
            tally.failed += number_in(&words, 3);
            tally.skipped += number_in(&words, 5);
        }
        tally
    }
}

/// The number at `index`, or 0 if there is none.
fn number_in(words: &[&str], index: usize) -> u64 {
    words.get(index).and_then(|word| word.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_adds_up_the_results_of_all_programs() {
        let log = "running 4 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result of another kind\n\
            test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out\n";
        let tally = Tally::of(log);
        assert_eq!(tally, Tally { passed: 13, failed: 2, skipped: 1 });
        assert_eq!(tally.to_string(), "13 passed, 2 failed, 1 skipped");
        assert_eq!(Tally::of("error: could not compile"), Tally::default());
    }
}
