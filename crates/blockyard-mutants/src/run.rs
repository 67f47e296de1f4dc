//! Runs of test programs, with a fault or without.

use crate::copy::Program;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
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

/// A program with what a run without a fault shows of it.
pub struct Measured {
    /// The program.
    pub program: Program,
    /// How long it runs.
    pub time: Duration,
    /// The faults that it reaches.
    pub reached: BTreeSet<usize>,
}

/// The seeds of each swarm.
const SWARM_SEEDS: &str = "300";

/// Runs a program without a fault, and records what it reaches.
///
/// # Panics
///
/// Panics if a test fails.
#[must_use]
pub fn measure(program: &Program) -> Measured {
    let record = program.path.with_extension("reached");
    fs::write(&record, "").expect("record");
    let start = Instant::now();
    let outcome = run(program, record.to_str().expect("path in UTF-8"), Duration::from_secs(3600));
    let (name, package) = (&program.name, &program.package);
    assert_eq!(outcome, Outcome::Passed, "{name} of {package} fails without a fault");
    let reached = fs::read_to_string(&record).expect("record");
    let reached = reached.lines().map(|line| line.trim().parse().expect("number of a fault"));
    Measured { program: program.clone(), time: start.elapsed(), reached: reached.collect() }
}

impl Measured {
    /// Runs the program with a fault, for at most six times its usual time and at least 20 s.
    #[must_use]
    pub fn with(&self, fault: usize) -> Outcome {
        run(&self.program, &fault.to_string(), (self.time * 6).max(Duration::from_secs(20)))
    }
}

fn run(program: &Program, fault: &str, limit: Duration) -> Outcome {
    // Programs that run at the same time do not see each other's files, and leave none.
    let name = format!("blockyard-mutants-{}-{:?}", process::id(), thread::current().id());
    let files = env::temp_dir().join(name);
    fs::create_dir_all(&files).expect("folder for temporary files");
    let child = Command::new(&program.path)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("BLOCKYARD_FAULT", fault)
        .env("BLOCKYARD_SWARM_SEEDS", SWARM_SEEDS)
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("RUST_TEST_THREADS", "1")
        .env("TMPDIR", &files)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("test program");
    let outcome = watch(child, limit);
    let _ = fs::remove_dir_all(&files);
    outcome
}

/// Waits for the end of a program, its first failing test, or the end of the time.
fn watch(mut child: Child, limit: Duration) -> Outcome {
    let failed = Arc::new(AtomicBool::new(false));
    let output = BufReader::new(child.stdout.take().expect("piped output"));
    let seen = Arc::clone(&failed);
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            seen.fetch_or(line.ends_with("... FAILED"), Ordering::Relaxed);
        }
    });
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("state of a test program") {
            return if status.success() { Outcome::Passed } else { Outcome::Failed };
        }
        let failed = failed.load(Ordering::Relaxed);
        if failed || start.elapsed() > limit {
            child.kill().expect("end of a test program");
            child.wait().expect("end of a test program");
            return if failed { Outcome::Failed } else { Outcome::Hung };
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Calls `work` for each item, as many at a time as there are processors; returns the results in order.
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
