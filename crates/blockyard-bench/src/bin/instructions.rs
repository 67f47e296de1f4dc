//! Instructions per I/O, counted by valgrind's callgrind.
//!
//! Each case is run twice under callgrind, with [`FEW`] and with twice as many I/Os. The difference
//! of the two counts divided by [`FEW`] is what an I/O costs: construction, start and exit of the
//! program are in both counts and cancel. The result is the same on every run of one binary.
//!
//! Without arguments it prints a table, starting itself under `valgrind`, which must be installed;
//! with a case and a count it does that many I/Os, which is what callgrind counts.

use blockyard::policy::Policies;
use blockyard_bench::IoLoop;
use core::error::Error;
use std::process::Command;

const FEW: u64 = 20_000;
/// Sequential writes that become one request.
const BATCH: u32 = 8;

/// What is done for each I/O, or batch of them.
type Step = fn(&mut IoLoop);

struct Case {
    name: &'static str,
    policies: fn() -> Policies,
    /// Requests that wait in the elevator.
    held: u32,
    step: Step,
    ios_per_step: u32,
}

const NONE: fn() -> Policies = || Policies::NONE;

const CASES: [Case; 9] = [
    random_reads("none/random-read", NONE, 0),
    random_reads("mq-deadline/random-read", Policies::mq_deadline, 0),
    random_reads("mq-deadline/random-read/32-held", Policies::mq_deadline, 32),
    random_reads("mq-deadline/random-read/4096-held", Policies::mq_deadline, 4096),
    random_reads("kyber/random-read", Policies::mq_kyber, 0),
    random_reads("kyber/random-read/32-held", Policies::mq_kyber, 32),
    sequential_writes("none/sequential-write", NONE),
    sequential_writes("mq-deadline/sequential-write", Policies::mq_deadline),
    sequential_writes("kyber/sequential-write", Policies::mq_kyber),
];

const fn random_reads(name: &'static str, policies: fn() -> Policies, held: u32) -> Case {
    Case { name, policies, held, step: IoLoop::random_read, ios_per_step: 1 }
}

const fn sequential_writes(name: &'static str, policies: fn() -> Policies) -> Case {
    let step: Step = |io| io.sequential_writes(BATCH);
    Case { name, policies, held: 0, step, ios_per_step: BATCH }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => print_table(),
        [name, count] => {
            let case = CASES.iter().find(|case| case.name == name).ok_or("no such case")?;
            perform(case, count.parse()?);
            Ok(())
        }
        _ => Err("usage: instructions [CASE COUNT]".into()),
    }
}

fn perform(case: &Case, ios: u64) {
    let mut io = IoLoop::new((case.policies)(), case.held);
    for _ in 0..ios / u64::from(case.ios_per_step) {
        (case.step)(&mut io);
    }
}

fn print_table() -> Result<(), Box<dyn Error>> {
    println!("{:<36}{:>12}", "case", "instr/io");
    for case in &CASES {
        let more = count(case, 2 * FEW)? - count(case, FEW)?;
        println!("{:<36}{:>12}", case.name, more.div_ceil(FEW));
    }
    Ok(())
}

/// The instructions of a whole run.
fn count(case: &Case, ios: u64) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([case.name, &ios.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find_map(|line| line.split("Collected : ").nth(1));
    let line = line.ok_or_else(|| format!("callgrind counted nothing: {report}"))?;
    Ok(line.trim().parse()?)
}
