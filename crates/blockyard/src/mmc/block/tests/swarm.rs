//! Any policy, any faults, acts that meet in any way: each request ends once, and rightly.

use super::*;
use crate::mmc::command::status::Status as CardStatus;
use crate::mmc::controller::{HostError, Part};
use crate::policy::Dispatch;

fn pick<T: Copy>(prng: &mut Prng, from: &[T]) -> T {
    from[usize::try_from(prng.below(from.len() as u64)).unwrap()]
}

fn fault(prng: &mut Prng) -> Fault {
    let parts = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];
    let part = pick(prng, &parts);
    match prng.below(9) {
        8 => Fault::Drift,
        0 => Fault::Bits(part, CardStatus::ERROR),
        1 => Fault::Bits(part, CardStatus::EXCEPTION_EVENT),
        2 => Fault::Silence,
        3 | 4 => Fault::Error(part, HostError::Damaged, 0),
        _ => Fault::Error(part, HostError::Timeout, 0),
    }
}

#[test]
fn whatever_goes_wrong_every_request_ends_once() {
    let policies = every_policy();
    let mut failures = 0;
    for seed in 0..600 {
        let mut prng = Prng::new(seed);
        let policy = pick(&mut prng, &policies);
        let without_budget = Policies { dispatch: Dispatch::DrainAll, ..Policies::NONE };
        let designs = [Policies::NONE, Policies::mq_deadline(), without_budget];
        let controller = Scripted::new(policy.transfer, policy.busy);
        let mut bench = Bench::under(pick(&mut prng, &designs), controller, policy);
        bench.jitter = (prng.below(2) == 0).then(|| prng.fork(1));
        bench.depth = 1 + u32::try_from(prng.below(20)).unwrap();
        bench.script().busy = us(pick(&mut prng, &[0, 10, 300, 20_000]));
        bench.script().refusals = u32::try_from(prng.below(5)).unwrap();
        bench.script().tuned = prng.below(2) == 0;
        bench.script().deaf = u32::try_from(prng.below(3)).unwrap();
        bench.script().dies_at_reset = prng.below(8) == 0;
        let rate = pick(&mut prng, &[2, 5, 20, 1000]);
        for at in 0..300 {
            if prng.below(rate) == 0 {
                let fault = fault(&mut prng);
                bench.script().faults.insert(at, fault);
            }
        }
        if prng.below(5) == 0 {
            let at = usize::try_from(prng.below(60)).unwrap();
            bench.script().faults.insert(at, Fault::Gone);
        }
        bench.submit(mixture(seed, 50));
        bench.settle();
        assert_eq!(bench.ended.len(), 50, "seed {seed}");
        failures += bench.mmc().counts().failures;
        // Whoever says that all is well has moved all of it.
        for (bio, status) in mixture(seed, 50).zip(bench.ended.clone().into_values()) {
            if status == Status::Ok {
                let moved = bench.script().well.get(&bio.sector).copied();
                assert_eq!(moved, Some(bio.sectors), "seed {seed}: {bio:?}");
            }
        }
    }
    assert!(failures > 1000, "{failures} failures are too few to mean much");
}
