//! The core's time for a 4 KiB random read, beside fio's null engine in the same turn.
//!
//! `cargo run --release -p blockyard-bench --bin core [TURNS [MILLISECONDS]]`
//!
//! fio's time includes its clock, its latencies and its map of random offsets; ours has none of them.
//! In each turn fio and each scheduler run for MILLISECONDS (default 1000), one after the other, with 32 requests in
//! flight. The table has the median of TURNS turns (default 5), with the least and the most.
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use blockyard::policy::Policies;
use blockyard_bench::turns::Turns;
use blockyard_bench::{IoLoop, fio};
use core::error::Error;
use core::time::Duration;
use std::time::Instant;

/// The I/Os between two looks at the clock.
const BATCH: u32 = 10_000;

type Scheduler = (&'static str, fn() -> Policies);

const SCHEDULERS: [Scheduler; 3] = [
    ("none", || Policies::NONE),
    ("mq-deadline", Policies::mq_deadline),
    ("kyber", Policies::mq_kyber),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let turns = number(5)?;
    let time = Duration::from_millis(number(1000)?);
    let mut fios = Turns::default();
    let mut ours = SCHEDULERS.map(|_| Turns::default());
    for _ in 0..turns {
        fios.push(1e6 / fio::random_reads("null", "null", time)?);
        for ((_, policies), times) in SCHEDULERS.iter().zip(&mut ours) {
            times.push(nanoseconds(policies(), time));
        }
    }
    println!(
        "| 4 KiB random read | ns | of fio's |\n|---|--:|--:|\n| fio's null engine | {fios:.0} | |"
    );
    for ((name, _), times) in SCHEDULERS.iter().zip(&ours) {
        println!("| `{name}` | {times:.0} | {} |", times.relative_to(&fios));
    }
    Ok(())
}

/// Nanoseconds for one I/O.
fn nanoseconds(policies: Policies, time: Duration) -> f64 {
    let mut io = IoLoop::new(policies, 0);
    let begun = Instant::now();
    let mut ios = 0.0;
    while begun.elapsed() < time {
        (0..BATCH).for_each(|_| io.random_read());
        ios += f64::from(BATCH);
    }
    begun.elapsed().as_secs_f64() * 1e9 / ios
}
