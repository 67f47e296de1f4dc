//! The swarm: one seed draws a whole system, its workload and its faults, and checkers watch the
//! run.
//!
//! ```sh
//! BLOCKYARD_SWARM_SEEDS=5000 cargo test --release -p blockyard-sim --test swarm
//! BLOCKYARD_SWARM_SEED=123 cargo test --release -p blockyard-sim --test swarm -- --nocapture
//! ```
#![expect(clippy::tests_outside_test_module, reason = "the whole crate is a test")]

#[path = "../../blockyard/examples/anticipatory/elevator.rs"]
mod anticipatory;
#[path = "swarm/canary.rs"]
mod canary;
#[path = "swarm/check/mod.rs"]
mod check;
#[path = "swarm/device.rs"]
mod device;
#[path = "swarm/draw/mod.rs"]
mod draw;
#[path = "swarm/flaw.rs"]
mod flaw;
#[path = "swarm/machine/mod.rs"]
mod machine;
#[path = "../../blockyard/examples/reads_first/elevator.rs"]
mod reads_first;
#[path = "swarm/recorder.rs"]
mod recorder;
#[path = "swarm/soak.rs"]
mod soak;
#[path = "swarm/submitter.rs"]
mod submitter;
#[path = "swarm/tally.rs"]
mod tally;
#[path = "swarm/total.rs"]
mod total;

use blockyard::prng::Prng;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use draw::Plan;
use flaw::Flaw;
use machine::{Machine, Summary};
use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Once;
use total::Total;

thread_local! {
    /// Whether [`run`] catches and reports a panic of this thread, which need not be printed then.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs one seed. An error is the message of the checker.
fn run(seed: u64, plan: Plan, flaw: Option<Flaw>) -> Result<Summary, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                usual(panic);
            }
        }));
    });
    CAUGHT.set(true);
    let ended = catch_unwind(AssertUnwindSafe(|| Machine::new(seed, plan, flaw).run()));
    CAUGHT.set(false);
    ended.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned())
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// Returns a fresh seed.
fn fresh_seed() -> u64 {
    use core::hash::BuildHasher;
    use std::hash::RandomState;
    RandomState::new().hash_one(0) >> 32
}

/// Seeds that once failed, in addition to those that always run. A change of the draws empties the
/// list.
const ONCE_FAILED: &[u64] = &[];

/// Returns the seeds of this run.
fn seeds() -> Vec<u64> {
    if let Some(seed) = number("BLOCKYARD_SWARM_SEED") {
        return vec![seed];
    }
    let count = number("BLOCKYARD_SWARM_SEEDS").unwrap_or(300);
    let fresh = fresh_seed();
    println!("fresh seed {fresh}");
    (0..count).chain(ONCE_FAILED.iter().copied()).chain([fresh]).collect()
}

fn replay(seed: u64) -> String {
    format!(
        "BLOCKYARD_SWARM_SEED={seed} cargo test --release -p blockyard-sim --test swarm \
         -- --nocapture"
    )
}

#[test]
fn every_bio_ends_once_nothing_leaks_and_nothing_starves() {
    let seeds = seeds();
    let mut total = Total::default();
    let mut failed = Vec::new();
    for &seed in &seeds {
        let plan = Plan::new(seed);
        match run(seed, plan.clone(), None) {
            Ok(summary) => total.add(&summary),
            Err(what) => {
                if failed.is_empty() {
                    println!("seed {seed}: {what}\n{plan:#?}");
                }
                failed.push((seed, what));
            }
        }
    }
    println!("{total}");
    for (seed, what) in &failed {
        println!("seed {seed}: {what}\n  {}", replay(*seed));
    }
    assert!(failed.is_empty(), "{} of {} seeds failed", failed.len(), seeds.len());
}

/// [idling-bounded]: an elevator that holds requests back while the device is idle loses none of
/// them, because its queue names the instant at which it is to run. Where the caller forgets these
/// instants, bios wait for nothing.
#[test]
fn an_elevator_that_idles_leaves_no_bio_waiting() {
    let mut withheld = 0;
    let mut stuck = 0;
    for seed in 0..100 {
        let plan = Plan::new(seed).with_idling();
        match run(seed, plan.clone(), None) {
            Ok(summary) => withheld += summary.tally.withheld,
            Err(what) => panic!("seed {seed}: {what}\n{plan:#?}"),
        }
        let forgetful = run(seed, plan, Some(Flaw::ForgetPolls));
        stuck += u32::from(forgetful.is_err_and(|what| what.starts_with("[no-lost-wake-up]")));
    }
    println!("{withheld} runs got nothing; without polls {stuck} of 100 systems stop");
    assert!(withheld > 100 && stuck > 50, "{withheld} runs got nothing, {stuck} systems stop");
}

/// The same of bfq, which is asked by a timer and at the completions that it names: it never gives
/// nothing for ever, holds the device for a bounded time, and keeps every other rule.
/// [no-lost-wake-up], [idling-bounded]
#[test]
fn bfq_leaves_no_bio_waiting() {
    let mut withheld = 0;
    let mut stuck = 0;
    for seed in 0..300 {
        let plan = Plan::new(seed).with_bfq(&mut Prng::new(seed));
        match run(seed, plan.clone(), None) {
            Ok(summary) => withheld += summary.tally.withheld,
            Err(what) => panic!("seed {seed}: {what}\n{plan:#?}"),
        }
        let forgetful = run(seed, plan, Some(Flaw::ForgetPolls));
        stuck += u32::from(forgetful.is_err_and(|what| what.starts_with("[no-lost-wake-up]")));
    }
    println!("{withheld} runs got nothing; without polls {stuck} of 300 systems stop");
    assert!(withheld > 100 && stuck > 100, "{withheld} runs got nothing, {stuck} systems stop");
}

/// Under bfq, queues and groups that have requests all the time get their shares, and budgets and
/// waits are kept. A group whose weight bfq does not know starves, and a device that is held for
/// too long is found. (Tests of the core break the other rules.) [service-near-share],
/// [class-starves-none], [budget-kept], [idling-bounded]
#[test]
fn bfq_gives_queues_and_groups_their_shares() {
    let flaws = [(Flaw::ForgetGroup, "[class-starves-none]"), (Flaw::IdleOn, "[idling-bounded]")];
    let mut caught = [0; 2];
    for seed in 0..10 {
        let plan = Plan::new(seed).with_shares(&mut Prng::new(seed));
        if let Err(what) = run(seed, plan.clone(), None) {
            panic!("seed {seed}: {what}\n{plan:#?}");
        }
        for ((flaw, rule), caught) in flaws.iter().zip(&mut caught) {
            let flawed = run(seed, plan.clone(), Some(*flaw));
            *caught += u32::from(flawed.is_err_and(|what| what.starts_with(rule)));
        }
    }
    println!("{flaws:?} were caught in {caught:?} of 10 systems");
    assert!(caught[0] >= 2 && caught[1] >= 8, "{flaws:?}: {caught:?} of 10");
}

#[test]
fn a_seed_decides_everything() {
    for seed in seeds().into_iter().take(100) {
        fn hash(seed: u64) -> Result<tally::Hash, String> {
            run(seed, Plan::new(seed), None).map(|summary| summary.tally.hash)
        }
        assert_eq!(hash(seed), hash(seed), "[determinism] {}", replay(seed));
    }
}
