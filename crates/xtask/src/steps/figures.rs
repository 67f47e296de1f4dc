//! Benchmarks, once or for figures.

use crate::command::Run;
use crate::console::{Outcome, fail, report_unchecked, say};
use crate::install::{has, need_compiler, want};
use crate::project::{BENCHES, Target, check_listed, target};

/// The argument with which a benchmark runs once and quickly (criterion and divan both take it).
const BENCH_QUICK: &str = "--test";
/// The exit code of `bench/instructions.sh` if another compiler made the committed counts.
const OTHER_COMPILER: i32 = 2;

/// `bench`
pub(super) fn bench(_: &[String]) -> Outcome {
    check_listed("benches", "*", &BENCHES)?;
    if BENCHES.is_empty() {
        report_unchecked("benchmarks: none is listed");
        return Ok(());
    }
    need_compiler()?;
    want("valgrind", &["valgrind"])?;
    for Target { package, name } in BENCHES {
        let bench = Run::new("cargo bench --locked --profile swift -p").arg(package);
        bench.arg("--bench").arg(name).arg("--").arg(BENCH_QUICK).check()?;
    }
    if has("valgrind") {
        say("instructions of the core for an I/O");
        check_instructions()?;
    }
    say("the core beside fio's null engine");
    want("fio", &["fio"])?;
    let run = "cargo run --locked --profile swift -p blockyard-bench --bin";
    if has("fio") {
        Run::new(run).words("core -- 1 20").check()?;
    }
    say("BTT and raw memory side by side");
    Run::new(run).words("btt -- --bytes 67108864 --turns 1 --ms 20").check()
}

/// Compares the core's instruction counts with the committed ones.
fn check_instructions() -> Outcome {
    match Run::new("bench/instructions.sh").code() {
        0 => Ok(()),
        OTHER_COMPILER => {
            report_unchecked(
                "instruction counts: another compiler made those of bench/instructions.txt",
            );
            Ok(())
        }
        _ => fail("the core takes more instructions than committed"),
    }
}

/// A program of the benchmarks, as users build it.
fn bin(words: &str) -> Run {
    Run::new("cargo run --locked --quiet --release -p blockyard-bench --bin").words(words)
}

/// `figures`
pub(super) fn figures(_: &[String]) -> Outcome {
    need_compiler()?;
    for program in ["valgrind", "fio", "nbdkit"] {
        want(program, &[program])?;
    }
    if has("fio") {
        say("the core in ns for an I/O, relative to fio's null engine");
        bin("core").check()?;
        say("our server on a file, relative to fio's io_uring");
        Run::new("bench/peers.sh file").arg(target().join("disk")).check()?;
    }
    if has("valgrind") {
        say("instructions for an I/O");
        bin("instructions").check()?;
    }
    say("the simulator, thousand I/Os per second");
    bin("simulator 5").check()?;
    say("BTT, as shares of a raw copy");
    bin("btt -- --ms 400").check()?;
    say("NBD servers, relative to a bare loop");
    Run::new("bench/peers.sh --short --ms 1000").check()?;
    say("our server as its load grows");
    Run::new("bench/peers.sh scale --turns 3 --ms 1000").check()
}
