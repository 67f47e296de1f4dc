//! For each checker, a flaw that this checker must catch.

use crate::draw::{Pattern, Plan};
use crate::flaw::Flaw;
use crate::run;
use blockyard::bio::Op;
use blockyard::policy::{DeadlineTunables, Dispatch, ElevatorKind, SchedDepth};
use blockyard::time::Duration;

/// The checkers that may catch each flaw. The first one must catch it at some seed.
const CANARIES: &[(Flaw, &[&str])] = &[
    (Flaw::ForgetRun, &["[no-lost-wake-up]"]),
    (Flaw::ForgetThrottled, &["[no-lost-wake-up]"]),
    (Flaw::ForgetPolls, &["[no-lost-wake-up]", "[asked-each-timeout]"]),
    (Flaw::LoseCompletion, &["[no-lost-wake-up]"]),
    (Flaw::CompleteTwice, &["[bio-ends-once]"]),
    (Flaw::EndTwice, &["[bio-ends-once]"]),
    (Flaw::HideError, &["[bio-ends-once]"]),
    (Flaw::HideFlushError, &["[bio-ends-once]", "[durability]"]),
    (
        Flaw::PretendEnd,
        &[
            "[budget-given-back]",
            "[tag-only-in-driver]",
            "[asked-each-timeout]",
            "[no-lost-wake-up]",
            "[cover]",
            "[bio-ends-once]",
            "[first-end-wins]",
            "[nothing-left-over]",
        ],
    ),
    (Flaw::StopEarly, &["[nothing-left-over]"]),
    (Flaw::KeepBudget, &["[budget-given-back]", "[no-lost-wake-up]"]),
    (Flaw::DropCommit, &["[last-or-commit]"]),
    (Flaw::PrepareTwice, &["[prepared-until-undone]"]),
    (Flaw::ShiftPiece, &["[cover]"]),
    (Flaw::DuplicateRequest, &["[cover]"]),
    (Flaw::LoseRequest, &["[cover]", "[flush-waits-for-data]"]),
    (Flaw::MixOps, &["[merged-sides-agree]"]),
    (Flaw::WrongLimits, &["[limits-kept]"]),
    (Flaw::Spin, &["[spin]"]),
    (Flaw::EmptyPromise, &["[busy-promise-kept]"]),
    (Flaw::FlushTwice, &["[one-flush-at-a-time]"]),
    (Flaw::HideDataEnd, &["[flush-waits-for-data]"]),
    (Flaw::LateFlush, &["[flush-held-bounded]", "[flush-waits-for-data]", "[one-flush-at-a-time]"]),
    (Flaw::DenyFua, &["[steps-from-flags]"]),
    (Flaw::LoseWrites, &["[data]", "[durability]"]),
    (Flaw::LyingCache, &["[durability]"]),
    (Flaw::AskEarly, &["[asked-each-timeout]"]),
    (Flaw::AskLate, &["[asked-each-timeout]"]),
    (Flaw::StrayHits, &["[first-end-wins]"]),
    (Flaw::ForgetFreeze, &["[frozen-admits-none]"]),
    (Flaw::ForgetQuiesce, &["[quiesced-sends-none]"]),
    (Flaw::PullOverLeftovers, &["[dispatch-list-first]"]),
    (Flaw::KeepTags, &["[tag-only-in-driver]", "[elevator-starves-none]"]),
    (Flaw::HideDirect, &["[direct-requests-first]", "[dispatch-list-first]"]),
    (Flaw::HideSchedule, &["[no-overtaking-staged]"]),
    (Flaw::DoubleTags, &["[tags-shared-fairly]", "[tag-only-in-driver]"]),
];

/// The number of seeds tried for each flaw. A flaw may find no chance to strike at a given seed.
const SEEDS: u64 = 100;
/// The number of seeds tried for a flaw that has found no chance at the first ones.
const SEEDS_MAX: u64 = 2000;

#[test]
fn each_flaw_is_caught_by_its_checker() {
    let mut wrong = Vec::new();
    for (flaw, checkers) in CANARIES {
        let mut caught = 0;
        for seed in 0..SEEDS_MAX {
            if seed >= SEEDS && caught > 0 {
                break;
            }
            let Err(what) = run(seed, Plan::new(seed), Some(*flaw)) else { continue };
            let said = what.trim_start_matches("assertion `left == right` failed: ");
            match checkers.iter().position(|name| said.starts_with(name)) {
                Some(by) => caught += u64::from(by == 0),
                None => wrong.push(format!("{flaw:?} at seed {seed}: {what}")),
            }
        }
        println!("{flaw:?}: {} at {caught} of {SEEDS} seeds or more", checkers[0]);
        if caught == 0 {
            wrong.push(format!("{flaw:?} was not caught"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_outside_influence_is_caught_by_the_hash() {
    fn hash() -> Result<crate::tally::Hash, String> {
        let flaw = Some(Flaw::OutsideInfluence);
        run(1, Plan::new(1), flaw).map(|summary| summary.tally.hash)
    }
    assert_ne!(hash(), hash());
}

/// Tunables with which an elevator never lets writes pass a stream of reads. The queue gets these,
/// while the checker uses those of the plan.
#[test]
fn an_elevator_that_starves_writes_is_caught_by_its_bound() {
    let plan = reads_against_a_write();
    assert!(run(1, plan.clone(), None).is_ok(), "the plan without the flaw should starve no bio");
    let what = run(1, plan, Some(Flaw::StarveWrites)).expect_err("the write waits for all reads");
    assert!(what.starts_with("[elevator-starves-none]"), "{what}");
}

/// The bound of every elevator has an effect: a much slower device exceeds it.
#[test]
fn a_slow_device_breaks_the_bound_of_every_elevator() {
    let mut left = vec!["none", "mq-deadline", "kyber", "reads first"];
    for seed in 0..2 * SEEDS {
        let plan = Plan::new(seed);
        let name = match plan.queues[0].policies.elevator {
            ElevatorKind::None => "none",
            ElevatorKind::Deadline(_) => "mq-deadline",
            ElevatorKind::Kyber(_) => "kyber",
            ElevatorKind::Bfq(_) => "bfq",
            ElevatorKind::Adios(_) => "adios",
            ElevatorKind::Other => "reads first",
        };
        if plan.queues.len() > 1 || !left.contains(&name) {
            continue;
        }
        match run(seed, plan, Some(Flaw::SlowDevice)) {
            Err(what) if what.starts_with("[elevator-starves-none]") => {
                left.retain(|other| *other != name)
            }
            Err(what) => panic!("seed {seed}: {what}"),
            Ok(_) => {} // a bound so generous that no bio comes near it
        }
    }
    assert!(left.is_empty(), "no bound of {left:?} was broken");
}

/// Returns a plan with two slots, many reads in flight, and an occasional write.
fn reads_against_a_write() -> Plan {
    let mut plan = Plan::new(1);
    plan.queues.truncate(1);
    plan.tags.queues = 1;
    plan.tags.hctxs = 1;
    plan.tags.depth = 2;
    plan.tags.reserved = 0;
    plan.device.queue_depth = 2;
    plan.device.host_depth = 2;
    plan.device.service_max = Duration::from_us(20);
    plan.faults.clear();
    plan.device.no_budget = 0;
    plan.device.empty_promises = 0;
    plan.device.stuck = 0;
    plan.device.again_prepared = 0;
    plan.pauses.clear();
    plan.run_delay_max = Duration::ZERO;
    let queue = &mut plan.queues[0];
    queue.map = blockyard::hardware_queue::QueueMap::even(1, 1);
    queue.max_bios = 4096;
    queue.limits = blockyard::limits::Limits::new(1 << 16);
    queue.policies = blockyard::policy::Policies {
        dispatch: Dispatch::Budget,
        sched_depth: SchedDepth::Fixed(16),
        elevator: ElevatorKind::Deadline(DeadlineTunables {
            read_expire: Duration::from_us(100),
            write_expire: Duration::from_us(100),
            prio_aging_expire: Duration::ZERO,
            writes_starved: 1,
            fifo_batch: 1,
            ..DeadlineTunables::default()
        }),
        ..blockyard::policy::Policies::NONE
    };
    let mut reader = plan.submitters[0].clone();
    reader.cpu = blockyard::unit::CpuId(0);
    reader.queue = blockyard::unit::QueueId(0);
    reader.depth = 12;
    reader.bios = [0, 20_000];
    reader.batch = 1;
    reader.plugs = false;
    reader.plug_hold_max = Duration::ZERO;
    reader.think_max = Duration::ZERO;
    reader.pattern = Pattern::Anywhere;
    reader.ops = vec![Op::Read];
    reader.sectors_max = 8;
    reader.flags_one_in = 0;
    reader.durable_one_in = 0;
    reader.reserved_one_in = 0;
    reader.prio_one_in = 0;
    reader.zone = (0, 1 << 15);
    let mut writer = reader.clone();
    writer.depth = 1;
    writer.bios = [0, 2];
    writer.ops = vec![Op::Write];
    plan.submitters = vec![reader, writer];
    plan
}
