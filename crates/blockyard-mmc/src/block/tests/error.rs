//! Errors at each part of a request: which parts are retried, which data is kept, and how requests
//! end.

use super::*;
use crate::command::Opcode;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

const PARTS: [Part; 5] = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];

#[test]
fn every_policy_survives_an_error_at_any_part_of_any_mmc_request() {
    for policy in every_policy() {
        for part in PARTS {
            for at in 0..8 {
                let mut bench = Bench::new(policy);
                bench.script().faults.insert(at, Fault::Error(part, HostError::Timeout, 0));
                bench.submit(mixture(1, 8));
                bench.settle();
                bench.all_ended_with(Status::Ok, 8);
            }
        }
    }
}

/// Returns the transfers, the resets and the end of a request that fails in the same way each time.
fn fail_every_try(bio: Bio, fault: Fault) -> (Vec<Opcode>, u32, Status) {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    bench.script().bad_sector = Some((bio.sector + 2, Some(fault), Some(fault)));
    bench.submit([bio]);
    bench.settle();
    let transfers = bench.spans().iter().filter(|span| span.sector.is_some());
    let commands = transfers.map(|span| span.command).collect();
    let status = bench.ended[&bio.cookie];
    (commands, bench.script().resets, status)
}

/// [retries-bounded].
#[test]
fn a_failed_command_is_retried_five_times_with_a_reset_before_the_last() {
    let fault = Fault::Error(Part::Command, HostError::Timeout, 0);
    let (commands, resets, status) = fail_every_try(Bio::write(0, 8, 0), fault);
    assert_eq!(commands, [Opcode::WriteMultiple; 6]);
    assert_eq!((resets, status), (1, Status::Timeout));
}

#[test]
fn a_data_error_leaves_two_tries() {
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    let (commands, resets, status) = fail_every_try(Bio::write(0, 8, 0), fault);
    assert_eq!(commands, [Opcode::WriteMultiple; 3]);
    assert_eq!((resets, status), (1, Status::IoError));
}

#[test]
fn a_failed_read_is_read_by_sectors_up_to_the_bad_one() {
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    let (commands, resets, status) = fail_every_try(Bio::read(0, 8, 0), fault);
    let mut expected = vec![Opcode::ReadMultiple; 3];
    expected.extend([Opcode::ReadSingle; 2 + 2]);
    assert_eq!((commands, resets, status), (expected, 1, Status::IoError));

    let ecc = Fault::Bits(Part::Command, CardStatus::CARD_ECC_FAILED);
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    bench.submit([Bio::read(2, 1, 0)]);
    bench.script().bad_sector = Some((2, None, Some(ecc)));
    bench.settle();
    let reads = bench.spans().iter().filter(|span| span.sector.is_some()).count();
    assert_eq!(
        (bench.ended[&0], reads),
        (Status::Medium, 6),
        "a sector that the card cannot correct"
    );
}

#[test]
fn a_read_succeeds_if_each_sector_can_be_read_alone() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    bench.script().bad_sector = Some((5, Some(fault), None));
    bench.submit([Bio::read(0, 8, 0), Bio::read(100, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    let singles = bench.spans().iter().filter(|span| span.command == Opcode::ReadSingle);
    assert_eq!(singles.count(), 8);
}

#[test]
fn blocks_of_a_read_that_the_card_reports_as_failed_are_read_again() {
    // [only-good-blocks-count]: the card reports the failure in the response to CMD12, or to CMD13
    // after an error of the bus.
    let stop = [(0, Fault::Bits(Part::Stop, CardStatus::ERROR))];
    let question = [
        (0, Fault::Error(Part::Stop, HostError::Damaged, 0)),
        (1, Fault::Bits(Part::Command, CardStatus::CC_ERROR)),
    ];
    for (faults, commands) in [(&stop[..], 2), (&question[..], 2), (&question[..1], 1)] {
        let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Status);
        let mut bench = Bench::new(HostPolicy { close_ended: false, ..policy });
        bench.script().faults.extend(faults.iter().copied());
        bench.reads(1);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        let reads = bench.spans().iter().filter(|span| span.command == Opcode::ReadMultiple);
        assert_eq!(reads.count(), commands, "{faults:?}");
    }
}

#[test]
fn each_sector_read_alone_has_its_own_tries() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    let fault = Fault::Error(Part::Data, HostError::Timeout, 0);
    bench.script().bad_sector = Some((5, Some(fault), None));
    bench.script().flaky = Some(Vec::new());
    bench.submit([Bio::read(0, 8, 0)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    let singles = bench.spans().iter().filter(|span| span.command == Opcode::ReadSingle);
    assert_eq!(singles.count(), 16, "each sector fails once");
}

#[test]
fn a_card_that_stays_busy_is_reset_and_its_write_given_up_in_bounded_time() {
    for busy in [BusyDetect::Status, BusyDetect::Line] {
        let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, busy));
        bench.script().busy = Duration::from_secs(1000);
        bench.writes(1);
        bench.settle();
        bench.all_ended_with(Status::Timeout, 1);
        let tries = 1 + u64::from(RETRIES_MAX);
        let limit = Duration::from_ns(tries * BUSY_LIMIT.as_ns());
        assert!(bench.now >= Instant::ZERO + limit, "{}", bench.now);
        assert!(bench.now < Instant::ZERO + limit + Duration::from_secs(1), "{}", bench.now);
    }
}

#[test]
fn a_card_that_ignores_three_status_commands_is_reset() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
    bench.script().mute = true;
    bench.script().faults.insert(0, Fault::Error(Part::Data, HostError::Timeout, 0));
    bench.reads(1);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    assert_eq!((bench.count(ActKind::SendStatus), bench.script().resets), (3, 1));
}

/// Found by the simulator's swarm: a card reports only once that a page could not be programmed. If
/// that response to CMD13 was damaged or its interrupt was lost, the next response was good and the
/// host reported success.
#[test]
fn a_write_is_repeated_if_the_response_to_its_status_command_got_lost() {
    for error in [HostError::Damaged, HostError::Timeout] {
        let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
        bench.script().faults.insert(1, Fault::Error(Part::Command, error, 0));
        bench.writes(1);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        assert_eq!(bench.count(ActKind::Start), 2, "{error:?}");
    }
}

#[test]
fn good_blocks_are_not_read_again_and_a_write_begins_again() {
    for (bio, expected) in [(Bio::read(0, 8, 0), 5), (Bio::write(0, 8, 0), 8)] {
        let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
        bench.script().faults.insert(0, Fault::Error(Part::Data, HostError::Damaged, 3));
        bench.submit([bio]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        let starts: Vec<_> = bench.did.iter().filter(|did| did.kind == ActKind::Start).collect();
        assert_eq!(starts.len(), 2);
        // CMD23, the command and the data; see `scripted`.
        let last = *bench.spans().last().unwrap();
        let busy = if bio.op == blockyard::bio::Op::Write { 100 } else { 0 };
        assert_eq!(last.to.since(last.from), us(2 + 2 + 20 * expected + busy));
    }
}

#[test]
fn a_write_that_fails_after_its_data_is_written_again() {
    for (part, bits, failures) in
        [(Part::Command, CardStatus::ERROR, 1), (Part::Command, CardStatus::EXCEPTION_EVENT, 0)]
    {
        let mut bench = Bench::new(HostPolicy::new(Pipeline::BlkMqWait, BusyDetect::Status));
        bench.script().busy = us(1);
        bench.script().faults.insert(1, Fault::Bits(part, bits));
        bench.writes(1);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        let writes = bench.spans().iter().filter(|span| span.sector.is_some()).count();
        let counts = bench.mmc().counts();
        assert_eq!((writes, counts.failures), (1 + failures, failures as u64));
        assert_eq!(counts.exceptions, u64::from(bits == CardStatus::EXCEPTION_EVENT));
    }
}

/// A card reports a page that could not be programmed once, in its next response
/// ([late-error-is-the-writes]).
#[test]
fn a_late_write_error_is_not_a_failure_of_the_next_request() {
    let is_late = Fault::Bits(Part::Announce, CardStatus::ERROR);
    for (pipeline, lost_writes) in
        [(Pipeline::Serial, true), (Pipeline::Hsq(HsqPolicy::TODAY), false)]
    {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        bench.script().faults.insert(1, is_late);
        bench.submit([Bio::write(0, 8, 0), Bio::write(100, 8, 1)]);
        bench.settle();
        let writes = bench.spans().iter().filter(|span| span.sector.is_some()).count();
        let counts = bench.mmc().counts();
        assert_eq!(
            (writes, bench.ended[&1]),
            (2, Status::Ok),
            "{pipeline:?}: the next is innocent"
        );
        // If one request runs at a time, the first write was reported before. Otherwise it ends
        // with an error.
        let first = if lost_writes { Status::Ok } else { Status::IoError };
        assert_eq!((bench.ended[&0], counts.lost_writes), (first, u64::from(lost_writes)));
    }
    // With CMD13 after each write, the failure is known in time.
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    bench.script().busy = us(1);
    bench.script().faults.insert(2, is_late);
    bench.submit([Bio::write(0, 8, 0), Bio::write(100, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((bench.mmc().counts().failures, bench.mmc().counts().lost_writes), (1, 0));
}

#[test]
fn a_lost_interrupt_costs_ten_seconds_but_no_request() {
    for pipeline in one_by_one() {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        bench.script().faults.insert(3, Fault::Silence);
        bench.reads(8);
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        assert!(bench.now >= Instant::ZERO + REQUEST_LIMIT);
        assert!(bench.now < Instant::ZERO + REQUEST_LIMIT + Duration::from_ms(10));
    }
}

#[test]
fn removing_the_card_at_any_time_ends_every_request_once() {
    for policy in every_policy() {
        for at in 0..40 {
            let mut bench = Bench::new(policy);
            bench.submit(mixture(at, 10));
            bench.until(Instant::ZERO + us(37 * at));
            bench.pull_out();
            bench.settle();
            assert_eq!(bench.ended.len(), 10);
            let gone = Instant::ZERO + us(37 * at);
            assert_eq!(
                bench.did.iter().find(|did| {
                    did.from > gone && matches!(did.kind, ActKind::Prepare | ActKind::Start)
                }),
                None,
                "{policy:?} at {at}"
            );
            assert!(bench.ended.values().any(|status| *status == Status::Gone) || at > 20);
        }
        let mut bench = Bench::new(policy);
        bench.script().faults.insert(2, Fault::Gone);
        bench.submit(mixture(1, 10));
        bench.settle();
        assert_eq!(bench.ended.len(), 10);
    }
}

#[test]
fn a_card_that_does_not_survive_its_reset_counts_as_removed() {
    for pipeline in EVERY_PIPELINE {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        bench.script().dies_at_reset = true;
        let fault = Fault::Error(Part::Command, HostError::Timeout, 0);
        bench.script().bad_sector = Some((302, Some(fault), None));
        bench.reads(10);
        bench.settle();
        assert_eq!(bench.ended.len(), 10);
        assert_eq!((bench.ended[&0], bench.ended[&3]), (Status::Ok, Status::Gone));
        assert_eq!(bench.ended[&9], Status::Gone);
        let reset = bench.did.iter().find(|did| did.kind == ActKind::Reset).unwrap().to;
        assert_eq!(
            bench.did.iter().find(|did| did.kind == ActKind::Start && did.from >= reset),
            None,
            "{pipeline:?}: a start for no card"
        );
    }
}

#[test]
fn stray_events_are_counted_and_change_nothing() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    bench.interrupt(HostEvent::DataDone);
    bench.reads(2);
    bench.until(Instant::ZERO + us(60));
    bench.interrupt(HostEvent::BusyReleased);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!(bench.mmc().counts().strays, 2);
}

#[test]
fn the_good_part_of_a_failed_read_is_reported_as_done() {
    let damaged = Fault::Error(Part::Data, HostError::Damaged, 0);
    let ecc = Fault::Bits(Part::Command, CardStatus::CARD_ECC_FAILED);
    for (bounce, write, alone, expected) in [
        (Bounce::None, false, damaged, Outcome::Partial { sectors: 5, status: Status::IoError }),
        (Bounce::None, false, ecc, Outcome::Partial { sectors: 5, status: Status::Medium }),
        (Bounce::Async, false, damaged, Outcome::Done(Status::IoError)),
        (Bounce::None, true, damaged, Outcome::Done(Status::IoError)),
    ] {
        let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
        let mut controller = Scripted::new(policy.transfer, policy.busy);
        controller.bounces = (bounce != Bounce::None).then_some(bounce);
        let mut bench = Bench::on(controller, HostPolicy { bounce, ..policy });
        bench.script().bad_sector = Some((105, Some(damaged), Some(alone)));
        bench.submit([if write { Bio::write(100, 8, 0) } else { Bio::read(100, 8, 0) }]);
        bench.settle();
        assert_eq!(bench.outcomes, [expected]);
        assert_ne!(bench.ended[&0], Status::Ok);
    }
}

/// A card with native 4 KiB sectors. The script refuses partial ones.
fn with_large_sectors(pipeline: Pipeline) -> Bench {
    let target = Target { unit_sectors: 8, ..CARD };
    let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, target, policy)
}

#[test]
fn only_whole_4_kib_sectors_are_transferred_wherever_the_bus_fails() {
    for pipeline in one_by_one() {
        for blocks in 0..24 {
            let mut bench = with_large_sectors(pipeline);
            let fault = Fault::Error(Part::Data, HostError::Damaged, blocks);
            bench.script().faults.insert(0, fault);
            bench.submit([Bio::read(800, 24, 0), Bio::write(1600, 24, 1)]);
            bench.settle();
            bench.all_ended_with(Status::Ok, 2);
        }
    }
}

#[test]
fn a_failed_read_is_read_by_the_cards_own_sectors_up_to_the_bad_one() {
    let damaged = Some(Fault::Error(Part::Data, HostError::Damaged, 0));
    for pipeline in EVERY_PIPELINE {
        let mut bench = with_large_sectors(pipeline);
        bench.script().bad_sector = Some((819, damaged, damaged));
        bench.submit([Bio::read(800, 32, 0)]);
        bench.settle();
        let expected = Outcome::Partial { sectors: 16, status: Status::IoError };
        assert_eq!(bench.outcomes, [expected], "{pipeline:?}");
    }
}

/// [no-intake-in-recovery]. Nothing but the request itself tells the driver that the time is over.
#[test]
fn a_request_that_comes_when_another_is_overdue_waits_for_the_recovery() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    bench.script().faults.insert(0, Fault::Silence);
    bench.reads(1);
    bench.until(Instant::ZERO + us(100));
    assert_eq!((bench.mmc().slots_in_use, bench.spans().len()), (1, 1));
    let now = bench.now + REQUEST_LIMIT;
    bench.queue.submit(&mut bench.host, CpuId(0), Bio::read(100, 8, 1), now).unwrap();
    while let Some(run) = bench.queue.next_run(&mut bench.host, now) {
        let _ = bench.queue.run(&mut bench.host, run.hctx, now);
    }
    assert_eq!((bench.mmc().slots_in_use, bench.mmc().counts().failures), (1, 1));
    bench.now = now;
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
}
