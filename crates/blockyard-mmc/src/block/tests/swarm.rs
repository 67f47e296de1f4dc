//! Under any policy, faults and overlap of acts, each request ends once and with the right status
//! ([one-claim-on-bus], [one-act-per-request], [memory-prepared-once], [exclusive-waits-for-idle]).

use super::*;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostError, Part};
use crate::policy::Packed;
use blockyard::policy::Dispatch;

/// Returns `bio` or a random replacement.
fn any_op(prng: &mut Prng, bio: Bio) -> Bio {
    let Bio { sector, sectors, cookie, .. } = bio;
    match prng.below(10) {
        0 => Bio::new(Op::Flush, 0, 0, cookie),
        1 => Bio::new(Op::Discard, sector, sectors, cookie),
        2 => Bio::new(Op::WriteZeroes, sector, sectors, cookie),
        3 => Bio::new(Op::SecureErase, sector, sectors, cookie),
        4 => Bio::write(sector, sectors, cookie).with_flags(Flags::FUA),
        5 => Bio::write(sector, sectors, cookie).with_flags(Flags::PREFLUSH),
        _ => bio,
    }
}

fn fault(prng: &mut Prng) -> Fault {
    let parts = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];
    let part = prng.pick(&parts);
    match prng.below(9) {
        8 => Fault::Drift,
        0 => Fault::Bits(part, CardStatus::ERROR),
        1 => Fault::Bits(part, CardStatus::EXCEPTION_EVENT),
        2 => Fault::Silence,
        3 | 4 => Fault::Error(part, HostError::Damaged, 0),
        _ => Fault::Error(part, HostError::Timeout, 0),
    }
}

/// The sums over a swarm.
#[derive(Default)]
struct Tally {
    failures: u64,
    bkops_starts: u64,
    interrupts: u64,
    packs: usize,
    /// Sanitizes that succeeded.
    sanitized: u64,
    nothing_open: u64,
}

/// Requests a sanitize repeatedly, until one is accepted or many tries have failed. Returns how
/// many were accepted.
fn sanitize(bench: &mut Bench, mut prng: Prng) -> usize {
    let wanted = prng.below(3);
    (0..wanted).filter(|_| sanitize_once(bench, &mut prng)).count()
}

fn sanitize_once(bench: &mut Bench, prng: &mut Prng) -> bool {
    (0..50).any(|_| {
        bench.until(bench.now + us(prng.below(500)));
        let now = bench.now;
        bench.mmc().sanitize(now).is_ok()
    })
}

/// Plays the scenario of each seed, and checks that every request ends once.
fn swarm(policies: &[HostPolicy], seeds: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut prng = Prng::new(seed);
        let (mut bench, plain) = random_bench(policies, &mut prng);
        randomise_card(&mut bench, &mut prng);
        insert_faults(&mut bench, &mut prng);
        let bios: Vec<_> = if plain {
            mixture(seed, 50).collect()
        } else {
            mixture(seed, 50).map(|bio| any_op(&mut prng, bio)).collect()
        };
        if prng.below(2) == 0 {
            bench.script().bad_entry = Some((100 * prng.below(50), prng.below(2) == 0));
        }
        bench.submit(bios.iter().copied());
        let sanitizes = sanitize(&mut bench, prng.fork(2));
        bench.settle();
        let sanitized = bench.mmc().next_sanitized();
        assert_eq!(
            sanitized.is_some(),
            sanitizes > 0,
            "seed {seed}: a sanitize that begins also ends"
        );
        if sanitized == Some(Status::Ok) {
            let command = Command::switch(SwitchAccess::WriteByte, index::SANITIZE_START, 1);
            assert!(bench.script().log.contains(&command), "seed {seed}: the command was not sent");
            tally.sanitized += 1;
        }
        assert_eq!(bench.ended.len(), 50, "seed {seed}");
        tally.add(&mut bench);
        // A successful request has moved all its blocks.
        for (bio, status) in bios.iter().zip(bench.ended.clone().into_values()) {
            if status == Status::Ok && matches!(bio.op, Op::Read | Op::Write) {
                let moved = bench.script().well.get(&bio.sector).copied();
                assert_eq!(moved, Some(bio.sectors), "seed {seed}: {bio:?}");
            }
        }
    }
    tally
}

/// Returns a bench with one of `policies`, a card and a queue, and whether the card is plain: reads
/// and writes only.
fn random_bench(policies: &[HostPolicy], prng: &mut Prng) -> (Bench, bool) {
    let mut policy = prng.pick(policies);
    policy.packed = prng.pick(&[Packed::Off, Packed::Write, Packed::ReadWrite]);
    let without_budget = Policies { dispatch: Dispatch::DrainAll, ..Policies::NONE };
    let designs = [Policies::NONE, Policies::mq_deadline(), without_budget];
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let mut target = prng.pick(&[CARD, emmc(), emmc_by_host()]);
    let is_beside = policy.lone_read == LoneRead::BesideAccess;
    if target == CARD || policy.pipeline == Pipeline::Cqe || is_beside {
        policy.packed = Packed::Off;
    }
    let plain = target == CARD;
    let most = prng.pick(&[2, 5, 63]);
    target.packed_writes = most;
    target.packed_reads = most;
    (Bench::with(prng.pick(&designs), controller, target, policy), plain)
}

/// Draws the times of the card, and what it refuses.
fn randomise_card(bench: &mut Bench, prng: &mut Prng) {
    bench.script().switch_busy = us(prng.pick(&[0, 10, 5000, 40_000_000]));
    bench.script().level = prng.pick(&[0, 2, 3]);
    // Endless background operations end quickly here, or the run would take forever.
    let takes = [(0, 10), (0, 50_000), (0, 200_000_000), (2, 10_000)];
    let (after, busy) = prng.pick(&takes);
    bench.script().level_after = after;
    bench.script().bkops_busy = us(busy);
    bench.script().interrupt_busy = us(prng.pick(&[10, 40_000, 90_000]));
    bench.script().erase_busy = us(prng.pick(&[0, 10, 5000, 40_000_000]));
    bench.jitter = (prng.below(2) == 0).then(|| prng.fork(1));
    bench.depth = bench.depth.min(1 + u32::try_from(prng.below(20)).unwrap());
    bench.script().busy = us(prng.pick(&[0, 10, 300, 20_000]));
    bench.script().refusals = u32::try_from(prng.below(5)).unwrap();
    bench.script().tuned = prng.below(2) == 0;
    bench.script().deaf = u32::try_from(prng.below(3)).unwrap();
    bench.script().dies_at_reset = prng.below(8) == 0;
    let late = (0..50).filter(|_| prng.below(3) == 0).collect::<Vec<u64>>();
    let access = late.into_iter().map(|at| (100 * at, us(prng.below(4000))));
    bench.script().engine.access.extend(access);
    let deaf = prng.pick(&[2, 4, 100]);
    bench.script().engine.deaf.extend((0..60).map(|_| prng.below(deaf) == 0));
}

/// Draws a fault for some of the first 300 transactions; in a fifth of the scenarios, the card is
/// removed.
fn insert_faults(bench: &mut Bench, prng: &mut Prng) {
    let rate = prng.pick(&[2, 5, 20, 1000]);
    for at in 0..300 {
        if prng.below(rate) == 0 {
            let fault = fault(prng);
            bench.script().faults.insert(at, fault);
        }
    }
    if prng.below(5) == 0 {
        let at = usize::try_from(prng.below(60)).unwrap();
        bench.script().faults.insert(at, Fault::Gone);
    }
}

impl Tally {
    fn add(&mut self, bench: &mut Bench) {
        let counts = bench.mmc().counts();
        self.failures += counts.failures;
        self.packs += bench.spans().iter().filter(|span| span.requests > 1).count();
        self.bkops_starts += counts.bkops_starts;
        self.interrupts += counts.bkops_interrupts;
        self.nothing_open += bench.nothing_open;
    }
}

#[test]
fn every_request_ends_once_under_any_fault() {
    // The last seed found a write that was reported between a flush that reported its loss and a
    // flush that did not.
    let policies: Vec<_> = every_policy()
        .into_iter()
        .filter(|policy| policy.lone_read == LoneRead::BeforeCommand)
        .collect();
    let tally = swarm(&policies, (0..900).chain([14_656]));
    let Tally { failures, bkops_starts, interrupts, packs, nothing_open, sanitized } = tally;
    assert!(sanitized > 50, "{sanitized} sanitizes");
    assert!(nothing_open > 100_000, "found nothing to do {nothing_open} times");
    assert!(failures > 1000, "{failures} failures are too few to mean much");
    assert!(packs > 500, "{packs} packs");
    assert!(
        bkops_starts > 500 && interrupts > 10,
        "{bkops_starts} bkops_starts, {interrupts} interrupted"
    );
}

#[test]
fn every_read_prepared_beside_its_access_ends_once_under_any_fault() {
    let policies: Vec<_> = every_policy()
        .into_iter()
        .filter(|policy| policy.lone_read == LoneRead::BesideAccess)
        .collect();
    let Tally { failures, nothing_open, .. } = swarm(&policies, 0..300);
    assert!(nothing_open > 10_000, "found nothing to do {nothing_open} times");
    assert!(failures > 300, "{failures} failures are too few to mean much");
}

#[test]
fn every_task_ends_once_under_any_fault() {
    let tally = swarm(&EVERY_BUSY.map(|busy| HostPolicy::new(Pipeline::Cqe, busy)), 0..600);
    let Tally { failures, bkops_starts, interrupts, nothing_open, sanitized, .. } = tally;
    assert!(sanitized > 20, "{sanitized} sanitizes");
    assert!(nothing_open > 10_000, "found nothing to do {nothing_open} times");
    assert!(failures > 1000, "{failures} failures are too few to mean much");
    assert!(
        bkops_starts > 300 && interrupts > 10,
        "{bkops_starts} bkops_starts, {interrupts} interrupted"
    );
}
