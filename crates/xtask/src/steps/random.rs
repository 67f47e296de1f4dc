//! Steps that draw: swarms, crashes, power cuts and fuzz targets.

use super::{fresh_seed, number_of};
use crate::command::Run;
use crate::console::{Outcome, fail, report_unchecked, say};
use crate::install::need_cpp_compiler;
use crate::project::{SWARMS, Target, check_listed, glob};
use std::fs;
use std::path::Path;

/// The default number of swarm seeds.
const SWARM_SEEDS: u64 = 4000;
/// The default run time of each fuzz target, in seconds.
const FUZZ_SECONDS: u64 = 10;
/// The default number of power cuts for each kind of disk.
const POWER_CUTS: u64 = 20_000;
/// The exit code of `timeout` when the time is over.
const TIME_OVER: i32 = 124;

/// `swarm [SEEDS]`
pub(super) fn swarm(arguments: &[String]) -> Outcome {
    let seeds = number_of(arguments, SWARM_SEEDS, "seeds")?;
    check_listed("tests", "swarm*", &SWARMS)?;
    if SWARMS.is_empty() {
        report_unchecked("the swarm: none is listed");
        return Ok(());
    }
    for Target { package, name } in SWARMS {
        let test = || {
            let test = Run::new("cargo test --locked --profile swift -p").arg(package);
            test.arg("--test").arg(name).words("-- --nocapture")
        };
        say(&format!("{package}:{name}, {seeds} fixed seeds"));
        test().env("BLOCKYARD_SWARM_SEEDS", seeds.to_string()).check()?;
        let fresh = fresh_seed();
        say(&format!("{package}:{name}, fresh seed {fresh}"));
        test().env("BLOCKYARD_SWARM_SEED", fresh.to_string()).check()?;
    }
    Ok(())
}

/// `soak [SECONDS]`: without a number, until a failure or Ctrl-C.
pub(super) fn soak(arguments: &[String]) -> Outcome {
    let seconds = number_of(arguments, 0, "seconds")?;
    soak_btt(seconds)?;
    for Target { package, name } in SWARMS {
        say(&format!("{package}:{name}, fresh seeds"));
        let test = Run::new("cargo test --locked --release -p").arg(package).arg("--test");
        let test = test.arg(name).words("-- --nocapture fresh_seeds_pass");
        test.env("BLOCKYARD_SWARM_SOAK", seconds.to_string()).check()?;
    }
    Ok(())
}

/// Explores BTT crashes within wider bounds, until all are visited or the time is over.
fn soak_btt(seconds: u64) -> Outcome {
    let test =
        "cargo test --locked --release -p blockyard-btt --test every_crash_leaves_old_or_new";
    let mut words = vec![];
    let limit = format!("timeout {seconds}");
    if seconds > 0 {
        words.push(limit.as_str());
    }
    // The explored threads take turns, which is several times faster on one processor.
    if Run::new("taskset -c 0 true").probe() {
        words.push("taskset -c 0");
    }
    words.extend([test, "-- --nocapture"]);
    Run::new(test).arg("--no-run").check()?;
    say("BTT crashes, with at least two preemptions each");
    match Run::new(&words.join(" ")).env("BLOCKYARD_BTT_PREEMPTIONS", "2").code() {
        0 | TIME_OVER => Ok(()),
        code => fail(format!("the exploration of BTT crashes: exit code {code}")),
    }
}

/// `power [CUTS]`
pub(super) fn power(arguments: &[String]) -> Outcome {
    let cuts = number_of(arguments, POWER_CUTS, "cuts")?;
    Run::new(
        "cargo test --locked -p blockyard-cli --test a_power_cut_loses_nothing_that_was_flushed",
    )
    .words("-- --nocapture --test-threads 1")
    .env("BLOCKYARD_CUTS_SEED", fresh_seed().to_string())
    .env("BLOCKYARD_CUTS", cuts.to_string())
    .check()
}

/// The first inputs of each fuzz target. A new target needs a line here.
const FUZZ_INPUTS: [(&str, &[&str]); 14] = [
    ("core_operations", &["crates/blockyard/tests/operations/found/*"]),
    ("job_file", &["crates/blockyard-fio/tests/jobs/*/*.fio"]),
    ("fault_rules", &["examples/faults.toml", "crates/blockyard-devices/tests/faults/*.toml"]),
    ("profile", &["crates/blockyard-devices/profiles/*/*.toml"]),
    ("trace", &["examples/traces/database.*"]),
    ("mmc_registers", &["crates/blockyard-mmc/tests/registers/seeds/*"]),
    ("btt_image", &["crates/blockyard-btt/tests/images/seeds/*"]),
    ("nbd_server", &["crates/blockyard-wire/tests/nbd/seeds/*"]),
    ("http_question", &["crates/blockyard-serve/tests/http/seeds/*"]),
    ("pool_set", &["crates/blockyard-pmem/tests/pool_sets/*.set"]),
    ("control_line", &["crates/blockyard-serve/tests/control/seeds/*"]),
    (
        "serve_config",
        &["examples/systemd/blockyard.toml", "crates/blockyard-cli/tests/serve_config/*.toml"],
    ),
    ("goal", &["crates/blockyard-answer/tests/goals/*"]),
    ("saved_answer", &["crates/blockyard-cli/tests/saved_answers/*.json"]),
];

/// Copies the first inputs of a fuzz target to its corpus.
fn seed_corpus(name: &str) -> Outcome {
    let Some((_, patterns)) = FUZZ_INPUTS.iter().find(|(target, _)| *target == name) else {
        return fail(format!("fuzz target {name} has no first inputs: add a line to FUZZ_INPUTS"));
    };
    let corpus = Path::new("fuzz/corpus").join(name);
    fs::create_dir_all(&corpus).expect("corpus of a fuzz target");
    for pattern in *patterns {
        let inputs = glob(pattern);
        if inputs.is_empty() {
            return fail(format!("fuzz target {name}: there is no {pattern}"));
        }
        for input in inputs {
            let file = corpus.join(input.file_name().expect("name of an input"));
            fs::copy(&input, file).expect("copy of an input to the corpus");
        }
    }
    Ok(())
}

/// `fuzz [SECONDS]`
pub(super) fn fuzz(arguments: &[String]) -> Outcome {
    let seconds = number_of(arguments, FUZZ_SECONDS, "seconds")?;
    need_cpp_compiler()?;
    if !Run::new("cargo fuzz --version").probe() {
        Run::new("cargo install cargo-fuzz --locked --debug").check()?;
    }
    let has_nightly = Run::new("cargo +nightly --version").probe();
    if !has_nightly {
        let version = Run::new("rustc --version").output()?;
        say(&format!(
            "nightly Rust is missing: fuzzing with {} and unstable options allowed",
            version.trim_end()
        ));
    }
    for file in glob("fuzz/fuzz_targets/*.rs") {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        seed_corpus(&name)?;
        let cargo = if has_nightly {
            Run::new("cargo +nightly")
        } else {
            Run::new("cargo").env("RUSTC_BOOTSTRAP", "1")
        };
        // Optimised in full, the targets take twice as long to build as to run.
        cargo
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .words("fuzz run")
            .arg(&*name)
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .words("-timeout=10 -verbosity=0 -print_funcs=0 -print_final_stats=1")
            .check()?;
    }
    Ok(())
}
