//! Runs fresh seeds without end.

use crate::draw::Plan;
use crate::total::Total;
use crate::{fresh_seed, number, replay, run};
use core::time::Duration;
use std::time::Instant;

/// The interval of progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Runs for the number of seconds in `BLOCKYARD_SWARM_SOAK`, or until a seed fails. 0 means without
/// a limit. Does nothing if the variable is not set.
#[test]
fn fresh_seeds_pass_for_the_requested_time() {
    let Some(seconds) = number("BLOCKYARD_SWARM_SOAK") else { return };
    let began = Instant::now();
    let mut reported = began;
    let mut total = Total::default();
    let first = fresh_seed();
    println!("fresh seeds from {first} on");
    for seed in first.. {
        let plan = Plan::new(seed);
        match run(seed, plan.clone(), None) {
            Ok(summary) => total.add(&summary),
            Err(what) => {
                panic!("seed {seed}: {what}\n{plan:#?}\nseed {seed}: {what}\n  {}", replay(seed))
            }
        }
        let is_over = seconds > 0 && began.elapsed() >= Duration::from_secs(seconds);
        if is_over || reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let rate = total.seeds() / began.elapsed().as_secs().max(1);
            println!("{} s, {rate} seeds a second; {total}", began.elapsed().as_secs());
        }
        if is_over {
            return;
        }
    }
}
