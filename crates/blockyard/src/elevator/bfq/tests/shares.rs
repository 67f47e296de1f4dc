//! Shares: what B-WF2Q+ guarantees, and that a scheduler that breaks it is caught.

use super::*;
use crate::elevator::bfq::shares::{Account, check_shares};
use crate::prng::Prng;
use alloc::string::String;

/// How a scheduler is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drive {
    Sound,
    /// An entity is told nothing of the service of every other slot.
    LosesService,
    /// Entity 0 is served half as much again as its budget.
    FavoursOne,
    /// The weights of groups are not told.
    ForgetsGroups,
}

/// Serves 2 to 8 queues of random weights and budgets, all of which always have requests. Returns
/// the first broken rule.
fn serve_all(seed: u64, drive: Drive) -> Result<(), String> {
    let mut prng = Prng::new(seed);
    let count = prng.pick(&[2, 3, 5, 8]);
    let mut scheduler = Scheduler::new(count, 1);
    let mut accounts = Vec::new();
    for queue in 0..count {
        let weight = prng.pick(&[1, 10, 40, 80, 1000]);
        scheduler.renew(queue, 0, 1, weight);
        scheduler.of_mut(queue).budget = prng.pick(&[8, 100, 1024]);
        scheduler.activate(queue, false, false, Instant::ZERO);
        scheduler.set_busy(queue, true);
        let budget = u64::from(scheduler.of(queue).budget);
        accounts.push(Account { weight: weight.into(), served: 0, budget });
    }
    let mut last_slot = std::vec![0; count];
    for slot in 1..3000 {
        let queue = scheduler.take_next(Instant::ZERO).expect("all are active");
        last_slot[queue] = slot;
        let budget = scheduler.of(queue).budget;
        let used = if prng.below(3) == 0 { 1 + budget / 2 } else { budget };
        let extra = if drive == Drive::FavoursOne && queue == 0 { used / 2 } else { 0 };
        if drive != Drive::LosesService || slot % 2 == 0 {
            scheduler.served(queue, used);
        }
        accounts[queue].served += u64::from(used + extra);
        check_shares(&accounts, 1)?;
        let next = prng.pick(&[8, 100, 1024]);
        scheduler.of_mut(queue).budget = next;
        accounts[queue].budget = accounts[queue].budget.max(next.into());
        scheduler.activate(queue, false, true, Instant::ZERO);
        scheduler.leave_service(queue);
        scheduler.of_mut(queue).service = 0;
    }
    // [class-starves-none]: a queue of weight 1 beside seven of 1000 waits for at most its own
    // budget of 1024 × 7000 sectors, in slots of 5 at least.
    match last_slot.iter().position(|last| *last == 0) {
        Some(at) if accounts[at].weight >= 40 => Err(std::format!("[class-starves-none] {at}")),
        _ => Ok(()),
    }
}

#[test]
fn service_stays_near_its_share() {
    for seed in 0..300 {
        assert_eq!(serve_all(seed, Drive::Sound), Ok(()), "seed {seed}");
    }
}

/// Serves 2 to 4 groups of random weights, with 1 to 3 queues each, all of which always have
/// requests. Returns the first broken rule: of groups, or of the queues of one group.
fn serve_groups(seed: u64, drive: Drive) -> Result<(), String> {
    let mut prng = Prng::new(seed);
    let groups = prng.pick(&[2, 3, 4]);
    let each = prng.pick(&[1, 2, 3]);
    let mut scheduler = Scheduler::new(groups * each, groups);
    let mut of_groups = Vec::new();
    let mut of_queues = Vec::new();
    for group in 0..groups {
        let weight = prng.pick(&[1, 50, 100, 200, 1000]);
        if drive != Drive::ForgetsGroups {
            assert!(scheduler.weigh_level(group + 1, weight));
        }
        of_groups.push(Account { weight: weight.into(), served: 0, budget: 0 });
        for queue in group * each..(group + 1) * each {
            let weight = prng.pick(&[10, 40, 80]);
            let budget = prng.pick(&[8, 100, 1024]);
            scheduler.renew(queue, group + 1, 1, weight);
            scheduler.of_mut(queue).budget = budget;
            scheduler.activate(queue, false, false, Instant::ZERO);
            scheduler.set_busy(queue, true);
            of_queues.push(Account { weight: weight.into(), served: 0, budget: budget.into() });
        }
        let budgets = of_queues[group * each..].iter().map(|of| of.budget);
        of_groups[group].budget = budgets.max().unwrap_or(0);
    }
    for slot in 0..3000 {
        let queue = scheduler.take_next(Instant::ZERO).expect("all are active");
        let group = queue / each;
        let budget = scheduler.of(queue).budget;
        let used = if prng.below(3) == 0 { 1 + budget / 2 } else { budget };
        let extra = if drive == Drive::FavoursOne && group == 0 { used / 2 } else { 0 };
        if drive != Drive::LosesService || slot % 2 == 0 {
            scheduler.served(queue, used);
        }
        of_queues[queue].served += u64::from(used + extra);
        of_groups[group].served += u64::from(used + extra);
        check_shares(&of_groups, 1)?;
        check_shares(&of_queues[group * each..(group + 1) * each], 1)?;
        let next = prng.pick(&[8, 100, 1024]);
        scheduler.of_mut(queue).budget = next;
        for of in [&mut of_queues[queue], &mut of_groups[group]] {
            of.budget = of.budget.max(next.into());
        }
        scheduler.activate(queue, false, true, Instant::ZERO);
        scheduler.leave_service(queue);
        scheduler.of_mut(queue).service = 0;
        scheduler.clear_service_above(queue);
    }
    Ok(())
}

#[test]
fn service_of_groups_stays_near_their_shares() {
    for seed in 0..300 {
        assert_eq!(serve_groups(seed, Drive::Sound), Ok(()), "seed {seed}");
    }
}

/// The canaries of the check across groups.
#[test]
fn a_scheduler_that_serves_a_group_too_much_is_caught() {
    for drive in [Drive::LosesService, Drive::FavoursOne, Drive::ForgetsGroups] {
        let caught = (0..300).filter(|seed| serve_groups(*seed, drive).is_err()).count();
        assert!(caught > 100, "{drive:?}: {caught} of 300 seeds");
    }
}

/// Readers of a disk that all read without a pause, by the group that each is in, and the share of
/// each. Groups 1 and 2 have weights of 100 and 200: one and two thirds. In group 2,
/// levels 4 and 0 have weights of 40 and 80. A process of the root stands beside the groups: of 40
/// beside 100 and 200, it gets 40 of 340.
#[test]
fn groups_get_sectors_by_their_weights() {
    let best_effort = [4, 0].map(|level| IoPrio { class: PrioClass::BestEffort, level });
    let two: &[(u32, usize)] = &[(1, 0), (2, 0)];
    for (of_group, shares, whole) in [
        (two, [1, 2, 0], 3),
        (&[(1, 0), (2, 0), (2, 1)], [3, 2, 4], 9),
        (&[(1, 0), (2, 0), (0, 0)], [100, 200, 40], 340),
    ] {
        let readers = (0..).zip(of_group).map(|(process, (group, prio))| Reader {
            group: *group,
            prio: best_effort[*prio],
            ..Reader::new(process + 1)
        });
        let mut rig = Rig::new(true, plain(), readers.collect());
        assert!(rig.bfq.weigh_group(1, 100) && rig.bfq.weigh_group(2, 200));
        rig.run(at_ms(120_000));
        let served: Vec<_> = (1..=3).map(|process| rig.sectors_of(process)).collect();
        let all: u64 = served.iter().sum();
        // 120 s at 64 sectors in a millisecond, without a pause.
        assert!(all >= 64 * 119_800, "{served:?} sectors");
        let mut of_groups = [0; 3];
        for ((group, _), served) in of_group.iter().zip(&served) {
            of_groups[*group as usize] += served;
        }
        let counted = rig.bfq.counts().groups.map(|of| (of.group, of.sync_sectors));
        assert_eq!(counted[..3], [(0, of_groups[0]), (1, of_groups[1]), (2, of_groups[2])]);
        rig.bfq.reset_counts(rig.now);
        assert_eq!(rig.bfq.counts().groups[1].sync_sectors, 0);
        assert_eq!(rig.bfq.counts().slots.all(), 0);
        for (served, share) in served.iter().zip(shares) {
            let fair = all * share / whole;
            assert!(served.abs_diff(fair) <= 3 * 16_384, "{served} sectors, {fair} are fair");
        }
    }
}

fn service(group: u32, sync_sectors: u64) -> GroupService {
    GroupService { group, sync_sectors, async_sectors: 1 }
}

/// Two queues saw groups 7 and 9 in another order.
#[test]
fn the_counts_of_two_queues_add_up_by_group() {
    let mut one = Counts::default();
    let mut other = Counts::default();
    one.groups[..2].copy_from_slice(&[service(0, 1), service(7, 10)]);
    other.groups[..3].copy_from_slice(&[service(0, 2), service(9, 20), service(7, 30)]);
    one.add(&other);
    let sums = one.groups.map(|of| (of.group, of.sync_sectors, of.async_sectors));
    assert_eq!(sums[..4], [(0, 3, 2), (7, 40, 2), (9, 20, 1), (0, 0, 0)]);
}

/// Group 0 is the root. Of further groups 15 can be weighed; the sixteenth counts as of the root.
#[test]
fn the_root_and_groups_beyond_the_fifteenth_have_no_weight() {
    let mut bfq = Bfq::new(CAPACITY, true, plain());
    let weighed: Vec<_> = (0..=17).filter(|group| bfq.weigh_group(*group, 500)).collect();
    assert_eq!(weighed, (1..=15).collect::<Vec<_>>());
    assert!(bfq.weigh_group(15, 1000), "again");
}

/// The canaries of the check.
#[test]
fn a_scheduler_that_serves_too_much_is_caught() {
    for drive in [Drive::LosesService, Drive::FavoursOne] {
        let caught = (0..300).filter(|seed| serve_all(*seed, drive).is_err()).count();
        assert!(caught > 100, "{drive:?}: {caught} of 300 seeds");
    }
}

/// Levels 4 and 0 of real time have weights of 40 and 80. Of two sequential readers each has its
/// share within three budgets of 16384 sectors, where the device is held for both: a disk, and any
/// device with strict guarantees.
#[test]
fn readers_get_sectors_by_their_weights() {
    let prios = [4, 0].map(|level| IoPrio { class: PrioClass::RealTime, level });
    for rotational in [false, true] {
        let readers = std::vec![
            Reader { prio: prios[0], ..Reader::new(1) },
            Reader { prio: prios[1], ..Reader::new(2) },
        ];
        let tunables = BfqTunables { strict_guarantees: !rotational, ..plain() };
        let mut rig = Rig::new(rotational, tunables, readers);
        rig.run(at_ms(60_000));
        let [light, heavy] = [1, 2].map(|process| rig.sectors_of(process));
        // 60 s at 64 sectors in a millisecond, without a pause.
        assert!(light + heavy >= 64 * 59_900, "{light} and {heavy} sectors");
        assert!(heavy.abs_diff(2 * light) <= 3 * 16_384, "{light} and {heavy} sectors");
    }
}
