//! Runs of tests, with a fault or without.

use crate::mutants::copy::Program;
use core::time::Duration;
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;
use std::{env, fs, process, thread};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every test passed.
    Passed,
    /// A test failed.
    Failed,
    /// The time was over.
    Hung,
}

/// A test, with what a run without a fault shows of it.
pub struct Measured {
    program: Program,
    /// Its name.
    pub test: String,
    /// How long it runs.
    pub time: Duration,
    /// The faults that it reaches.
    pub reached: BTreeSet<usize>,
}

/// The seeds of each swarm.
const SWARM_SEEDS: &str = "100";
/// The random cases of property tests are the same in every run.
const CASES_SEED: &str = "1";
/// A fault must not take the memory of other programs.
const MEMORY_KIB: u32 = 8 << 20;

/// The names of a program's tests.
#[must_use]
pub fn tests(program: &Program) -> Vec<String> {
    let listed = command(program, "").args(["--list", "--format=terse"]).output();
    let listed = String::from_utf8(listed.expect("test program").stdout).expect("names in UTF-8");
    listed.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect()
}

/// Runs a test without a fault, and records what it reaches.
///
/// # Panics
///
/// Panics if the test fails.
#[must_use]
pub fn measure(program: &Program, test: &str) -> Measured {
    let record = program.path.with_extension(test.replace("::", "-"));
    fs::write(&record, "").expect("record");
    let start = Instant::now();
    let outcome =
        run(program, test, record.to_str().expect("path in UTF-8"), Duration::from_secs(3600));
    assert_eq!(outcome, Outcome::Passed, "{test} of {program:?} without a fault");
    let reached = fs::read_to_string(&record).expect("record");
    let reached = reached.lines().map(|line| line.trim().parse().expect("number of a fault"));
    let measured = Measured {
        program: program.clone(),
        test: test.to_owned(),
        time: start.elapsed(),
        reached: reached.collect(),
    };
    fs::remove_file(record).expect("removal of the record");
    measured
}

impl Measured {
    /// Runs the test with a fault, for at most twelve times its usual time, and at least 20 s:
    /// other steps may have become busy since.
    #[must_use]
    pub fn with(&self, fault: usize) -> Outcome {
        let limit = (self.time * 12).max(Duration::from_secs(20));
        run(&self.program, &self.test, &fault.to_string(), limit)
    }
}

/// A command that runs a program as cargo does.
fn command(program: &Program, fault: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"")])
        .arg(&program.path)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("BLOCKYARD_FAULT", fault)
        .env("BLOCKYARD_SWARM_SEEDS", SWARM_SEEDS)
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("PROPTEST_RNG_SEED", CASES_SEED)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn run(program: &Program, test: &str, fault: &str, limit: Duration) -> Outcome {
    // Programs that run at the same time do not see each other's files, and leave none.
    let name = format!("xtask-mutants-{}-{:?}", process::id(), thread::current().id());
    let files = env::temp_dir().join(name);
    fs::create_dir_all(&files).expect("folder for temporary files");
    let mut command = command(program, fault);
    command.args(["--exact", test]).env("TMPDIR", &files).stdout(Stdio::null());
    let outcome = watch(command.spawn().expect("test program"), limit);
    let _ = fs::remove_dir_all(&files);
    outcome
}

/// Waits for the end of a program or of the time.
fn watch(mut child: Child, limit: Duration) -> Outcome {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("state of a test program") {
            return if status.success() { Outcome::Passed } else { Outcome::Failed };
        }
        if start.elapsed() > limit {
            child.kill().expect("end of a test program");
            child.wait().expect("end of a test program");
            return Outcome::Hung;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Calls `work` for each item, as many at a time as there are processors; returns the results in
/// order.
pub fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(vec![]);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("queue").next();
                    let Some((at, item)) = next else { return };
                    let result = work(item);
                    results.lock().expect("results").push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("results");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
