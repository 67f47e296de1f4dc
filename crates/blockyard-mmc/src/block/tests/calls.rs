//! What each call of the driver does at once: it lets time pass, and says what an act moves.

use super::*;
use crate::block::claim::Watch;
use crate::controller::{HostError, Part};
use crate::policy::Packed;
use blockyard::unit::{Budget, QueueId};

type Call = fn(&mut Bench, Instant);

/// Each call may be the first that notices that a time limit is over.
#[test]
fn every_call_gives_up_what_is_overdue() {
    let calls: [(&str, Call); 5] = [
        ("begin", |bench, now| assert_eq!(bench.mmc().begin(Context::Interrupt, now), None)),
        ("finish", |bench, now| {
            let (act, ..) = bench.running[0].take().expect("second request being prepared");
            bench.mmc().finish(act, now);
        }),
        ("interrupt", |bench, now| bench.mmc().interrupt(HostEvent::BusyReleased, now)),
        ("next_finished", |bench, now| assert!(bench.mmc().next_finished(now).is_none())),
        ("sanitize", |bench, now| {
            assert_eq!(bench.mmc().sanitize(now), Err(NoSanitize::NotSupported));
        }),
    ];
    for (name, call) in calls {
        for (early, failures) in [(1, 0), (0, 1)] {
            let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
            let mut bench = Bench::new(policy);
            bench.script().faults.insert(0, Fault::Silence);
            bench.reads(2);
            bench.until(Instant::ZERO + us(80));
            let limit = bench.spans()[0].from + REQUEST_LIMIT;
            call(&mut bench, Instant::ZERO + Duration::from_ns(limit.as_ns() - early));
            assert_eq!(bench.mmc().counts().failures, failures, "{name}, {early} ns early");
        }
    }
}

/// The bytes of each act of `kind`, in order, with the first sector of its request.
fn bytes_of(bench: &Bench, kind: ActKind) -> Vec<(u64, u32)> {
    let acts = bench.did.iter().filter(|did| did.kind == kind);
    acts.map(|did| (did.sector, did.bytes)).collect()
}

#[test]
fn an_act_tells_the_bytes_of_its_request_or_transfer() {
    // A read that fails after 3 sectors goes on behind them.
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
    bench.script().faults.insert(0, Fault::Error(Part::Data, HostError::Damaged, 3));
    bench.reads(1);
    bench.settle();
    assert_eq!(bytes_of(&bench, ActKind::Start), [(0, 8 * 512), (0, 5 * 512)]);
    assert_eq!(bytes_of(&bench, ActKind::Complete), [(0, 8 * 512)]);
    // A pack starts with the bytes of all its requests.
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let policy = HostPolicy { packed: Packed::Write, ..policy };
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let target = Target { packed_writes: 8, ..emmc_by_host() };
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.writes(20);
    bench.settle();
    let starts = bytes_of(&bench, ActKind::Start);
    let transfers = bench.spans().iter().filter(|span| span.requests > 0);
    let expected: Vec<_> = transfers
        .map(|span| (span.sector.unwrap(), u32::try_from(span.requests).unwrap() * 8 * 512))
        .collect();
    assert_eq!(starts, expected);
    assert!(starts.iter().any(|(_, bytes)| *bytes == 8 * 8 * 512), "{starts:?}");
    // An operation moves nothing, nor does an act of the engine.
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.submit([Bio::read(500, 8, 0), Bio::new(Op::Discard, 1000, 64, 1)]);
    bench.settle();
    let mut idle = bench.did.iter().filter(|did| did.sector != 500);
    assert!(idle.clone().count() > 4 && idle.all(|did| did.bytes == 0), "{:?}", bench.did);
    assert_eq!(bytes_of(&bench, ActKind::Prepare), [(500, 8 * 512)]);
}

/// [one-act-per-request].
#[test]
fn a_step_that_has_begun_is_not_due_again() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    bench.writes(1);
    let mut steps = 0;
    while !bench.queue.is_empty() || bench.did.is_empty() {
        let next = bench.turn();
        let now = bench.now;
        if let Some((act, ..)) = &bench.running[0] {
            let is_step = matches!(act.kind(), ActKind::SendStatus | ActKind::HandleStatus);
            steps += u32::from(is_step);
            assert!(!bench.mmc().pending(Context::Thread, now));
        } else if bench.script().next_event().is_none() {
            let due = bench.mmc().poll_at().is_none();
            assert!(due || !bench.mmc().pending(Context::Thread, now));
        }
        bench.now = next.unwrap_or(now);
    }
    assert!(steps > 1, "{steps} steps of the bus");
    bench.settle();
}

#[test]
fn a_busy_card_is_looked_at_again_until_its_limit() {
    let limit = Instant::ZERO + us(100);
    let mut watch = Watch::until(limit);
    assert_eq!(watch.again(at_ns(99_999)), Some(at_ns(99_999 + FIRST_PAUSE.as_ns())));
    assert_eq!(watch.again(limit), None);
}

fn at_ns(ns: u64) -> Instant {
    Instant::ZERO + Duration::from_ns(ns)
}

#[test]
fn budgets_are_as_many_as_admitted_requests_and_all_alike() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Status));
    let mmc = bench.mmc();
    let budgets: Vec<_> = (0..3).map(|_| mmc.take_budget(QueueId(0))).collect();
    assert_eq!(budgets, [Some(Budget(0)), Some(Budget(0)), None]);
    mmc.return_budget(QueueId(0), Budget(0));
    assert_eq!(mmc.take_budget(QueueId(0)), Some(Budget(0)));
}

/// The queue refuses such requests, unless it has another idea of the card.
#[test]
fn part_of_a_sector_or_an_operation_beyond_the_addresses_is_refused() {
    let end = 1_u64 << 32;
    for (bio, unit, status) in [
        (Bio::read(8, 8, 0), 8, Status::Ok),
        (Bio::read(4, 8, 0), 8, Status::NotSupported),
        (Bio::read(8, 4, 0), 8, Status::NotSupported),
        (Bio::read(4, 4, 0), 8, Status::NotSupported),
        (long_erase(Op::WriteZeroes, end - 1024), 1, Status::Ok),
        (long_erase(Op::WriteZeroes, end - 1023), 1, Status::NotSupported),
        (long_erase(Op::Discard, end - 1024), 1, Status::Ok),
        (long_erase(Op::Discard, end - 1023), 1, Status::NotSupported),
    ] {
        let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Status);
        let controller = Scripted::new(policy.transfer, policy.busy);
        let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
        bench.mmc().target.unit_sectors = unit;
        bench.script().target.unit_sectors = unit;
        bench.submit([bio]);
        bench.settle();
        assert_eq!(bench.ended[&0], status, "{bio:?}");
    }
}

fn long_erase(op: Op, sector: u64) -> Bio {
    Bio::new(op, sector, 1024, 0)
}

/// Only a discard may leave out what it was asked to erase. The card's own sectors have 4 KiB.
#[test]
fn an_erase_of_a_part_of_a_sector_is_refused_and_a_discard_leaves_the_part_out() {
    let card = crate::card::tests::emmc(emmc_5_1(), &[index::DATA_SECTOR_SIZE]);
    for (op, sector, status, erased) in [
        (Op::SecureErase, 80, Status::Ok, &[80, 87][..]),
        (Op::SecureErase, 84, Status::NotSupported, &[]),
        (Op::Discard, 80, Status::Ok, &[80, 87]),
        (Op::Discard, 84, Status::Ok, &[]),
    ] {
        let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Status);
        let controller = Scripted::new(policy.transfer, policy.busy);
        let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
        let target = Target::of(&card, bench.script().capabilities());
        (bench.mmc().target, bench.script().target) = (target, target);
        bench.submit([Bio::new(op, sector, 8, 0)]);
        bench.settle();
        assert_eq!(bench.ended[&0], status, "{op:?} at {sector}");
        let ends: Vec<_> = bench.script().log.iter().map(|command| command.argument).collect();
        assert_eq!(&ends[..ends.len().min(2)], erased, "{op:?} at {sector}");
    }
}

/// What a card reports of urgent background operations says nothing of the pack before.
#[test]
fn a_pack_that_went_well_is_done_although_background_operations_are_urgent() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let policy = HostPolicy { packed: Packed::Write, ..policy };
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let target = Target { packed_writes: 8, ..emmc_by_host() };
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.writes(20);
    bench.script().level = 2;
    bench.settle();
    bench.all_ended_with(Status::Ok, 20);
    let requests: usize = bench.spans().iter().map(|span| span.requests).sum();
    assert_eq!((requests, bench.mmc().counts().bkops_starts > 0), (20, true));
}

#[test]
fn another_sanitize_forgets_how_the_last_one_ended() {
    let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    assert_eq!(bench.mmc().sanitize(Instant::ZERO), Ok(()));
    bench.settle();
    let now = bench.now;
    assert_eq!(bench.mmc().sanitize(now), Ok(()));
    assert_eq!(bench.mmc().next_sanitized(), None);
    bench.settle();
    assert_eq!(bench.mmc().next_sanitized(), Some(Status::Ok));
    bench.pull_out();
    let now = bench.now;
    assert_eq!(bench.mmc().sanitize(now), Err(NoSanitize::Gone));
}
