//! The check of the invariants finds what violates them.

use super::*;
use crate::block::slot::Memory;
use core::panic::AssertUnwindSafe;
use std::boxed::Box;
use std::panic::catch_unwind;

/// Two reads under way, the first on the bus and the second ready.
fn reading() -> Bench {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    bench.reads(2);
    bench.until(Instant::ZERO + us(120));
    let stages = [0, 1].map(|at: usize| bench.mmc().slots[at].stage);
    assert_eq!(stages, [Stage::OnBus, Stage::Ready]);
    bench
}

/// A discard on the bus.
fn discarding() -> Bench {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.submit([Bio::new(Op::Discard, 100, 1000, 0)]);
    bench.until(Instant::ZERO + us(20));
    assert_eq!(bench.mmc().slots[0].stage, Stage::OnBus);
    bench
}

/// Returns what the check says once `change` has violated an invariant.
fn broken_rule(mut bench: Bench, change: fn(&mut Mmc<Scripted>)) -> String {
    bench.mmc().self_check();
    change(bench.mmc());
    let said = catch_unwind(AssertUnwindSafe(|| bench.mmc().self_check()));
    let said: Box<_> = said.expect_err("a violated invariant should be found");
    said.downcast_ref::<String>().cloned().unwrap_or_else(|| {
        String::from(*said.downcast_ref::<&str>().expect("message of an assertion"))
    })
}

#[test]
fn the_check_names_the_invariant_that_is_violated() {
    for (bench, change, expected) in [
        (reading as fn() -> Bench, (|mmc| mmc.bus = None) as fn(&mut Mmc<_>), "[one-claim-on-bus]"),
        (reading, |mmc| mmc.slots[1].stage = Stage::Fresh, "[one-act-per-request]: Fresh"),
        (reading, |mmc| mmc.slots[1].stage = Stage::Ended, "[one-act-per-request]: Ended"),
        (reading, |mmc| mmc.slots[1].stage = Stage::Posted, "[one-act-per-request]: Posted"),
        (reading, |mmc| mmc.slots[1].stage = Stage::Preparing, "[one-act-per-request]: ready"),
        (reading, |mmc| mmc.slots_in_use += 1, "slots in use"),
        (reading, |mmc| mmc.exclusive = Some(SlotId(1)), "operations under way"),
        (reading, |mmc| mmc.slots[0].done = 9, "9 of 8 sectors done"),
        (
            reading,
            |mmc| {
                mmc.ready.clear();
                mmc.slots[1].stage = Stage::Completing;
                assert_eq!(mmc.slots[1].memory, Memory::Prepared);
            },
            "[memory-prepared-once]",
        ),
        (discarding, |mmc| mmc.exclusive = None, "operations under way"),
        (
            discarding,
            |mmc| {
                mmc.slots[1].stage = Stage::Preparing;
                mmc.slots_in_use += 1;
            },
            "[exclusive-waits-for-idle]",
        ),
    ] {
        let said = broken_rule(bench(), change);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
