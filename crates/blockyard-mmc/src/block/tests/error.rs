//! Errors at each part, what is tried again, what is kept, what ends.

use super::*;
use crate::command::Opcode;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

const PARTS: [Part; 5] = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];

#[test]
fn every_policy_survives_an_error_at_any_part_of_any_transaction() {
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

/// The transfers of a request that fails in the same way each time, its resets, and its end.
fn hopeless(bio: Bio, fault: Fault) -> (Vec<Opcode>, u32, Status) {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    bench.script().bad_sector = Some((bio.sector + 2, Some(fault), Some(fault)));
    bench.submit([bio]);
    bench.settle();
    let transfers = bench.spans().iter().filter(|span| span.sector.is_some());
    let commands = transfers.map(|span| span.command).collect();
    let status = bench.ended[&bio.cookie];
    (commands, bench.script().resets, status)
}

#[test]
fn a_command_that_fails_is_tried_five_times_again_and_the_last_time_after_a_reset() {
    let fault = Fault::Error(Part::Command, HostError::Timeout, 0);
    let (commands, resets, status) = hopeless(Bio::write(0, 8, 0), fault);
    assert_eq!(commands, [Opcode::WriteMultiple; 6]);
    assert_eq!((resets, status), (1, Status::Timeout));
}

#[test]
fn an_error_of_the_data_leaves_two_tries() {
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    let (commands, resets, status) = hopeless(Bio::write(0, 8, 0), fault);
    assert_eq!(commands, [Opcode::WriteMultiple; 3]);
    assert_eq!((resets, status), (1, Status::IoError));
}

#[test]
fn a_read_that_fails_is_read_by_sectors_up_to_the_bad_one() {
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    let (commands, resets, status) = hopeless(Bio::read(0, 8, 0), fault);
    let mut expected = vec![Opcode::ReadMultiple; 3];
    expected.extend([Opcode::ReadSingle; 2 + 2]);
    assert_eq!((commands, resets, status), (expected, 1, Status::IoError));

    let ecc = Fault::Bits(Part::Command, CardStatus::CARD_ECC_FAILED);
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    bench.submit([Bio::read(2, 1, 0)]);
    bench.script().bad_sector = Some((2, None, Some(ecc)));
    bench.settle();
    let reads = bench.spans().iter().filter(|span| span.sector.is_some()).count();
    assert_eq!((bench.ended[&0], reads), (Status::Medium, 6), "a sector that the card disowns");
}

#[test]
fn a_read_of_which_each_sector_can_be_read_alone_succeeds() {
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
fn what_the_card_disowns_is_read_again_whenever_it_says_so() {
    // In the response to the stop, and to the question after an error of the bus.
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
fn each_sector_that_is_read_alone_has_its_own_tries() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
    let fault = Fault::Error(Part::Data, HostError::Timeout, 0);
    bench.script().bad_sector = Some((5, Some(fault), None));
    bench.script().flaky = Some(Vec::new());
    bench.submit([Bio::read(0, 8, 0)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    let singles = bench.spans().iter().filter(|span| span.command == Opcode::ReadSingle);
    assert_eq!(singles.count(), 16, "each once in vain");
}

#[test]
fn a_card_that_stays_busy_for_ever_is_reset_and_its_write_given_up_in_bounded_time() {
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
fn a_card_that_does_not_answer_three_questions_is_reset() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
    bench.script().mute = true;
    bench.script().faults.insert(0, Fault::Error(Part::Data, HostError::Timeout, 0));
    bench.reads(1);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    assert_eq!((bench.count(ActKind::SendStatus), bench.script().resets), (3, 1));
}

/// The swarm of the simulator found this: a card says once that a page could not be programmed. Its answer to
/// CMD13 came damaged, or its interrupt was lost, the next said that all was well, and so did the host.
#[test]
fn a_write_is_sent_again_if_the_answer_that_may_have_said_it_failed_got_lost() {
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
fn blocks_that_were_read_are_not_read_again_and_a_write_begins_again() {
    for (bio, expected) in [(Bio::read(0, 8, 0), 5), (Bio::write(0, 8, 0), 8)] {
        let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
        bench.script().faults.insert(0, Fault::Error(Part::Data, HostError::Damaged, 3));
        bench.submit([bio]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        let starts: Vec<_> = bench.did.iter().filter(|did| did.kind == ActKind::Start).collect();
        assert_eq!(starts.len(), 2);
        // CMD23, the command, the data: see `scripted`.
        let last = *bench.spans().last().unwrap();
        let busy = if bio.op == blockyard::bio::Op::Write { 100 } else { 0 };
        assert_eq!(last.to.since(last.from), us(2 + 2 + 20 * expected + busy));
    }
}

#[test]
fn a_write_that_the_card_reports_as_failed_afterwards_is_written_again() {
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

/// Of a page that could not be programmed the card speaks in its next response, once.
#[test]
fn what_a_card_says_late_of_a_write_is_not_the_next_requests_failure() {
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
        // One at a time: the first was reported before. Else it was not, and can still be told.
        let first = if lost_writes { Status::Ok } else { Status::IoError };
        assert_eq!((bench.ended[&0], counts.lost_writes), (first, u64::from(lost_writes)));
    }
    // Who asks hears in time, and the next request speaks for itself.
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    bench.script().busy = us(1);
    bench.script().faults.insert(2, is_late);
    bench.submit([Bio::write(0, 8, 0), Bio::write(100, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((bench.mmc().counts().failures, bench.mmc().counts().lost_writes), (1, 0));
}

#[test]
fn a_lost_interrupt_costs_ten_seconds_and_no_request() {
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
fn a_card_that_is_pulled_out_ends_everything_once_whenever_that_is() {
    for policy in every_policy() {
        for at in 0..40 {
            let mut bench = Bench::new(policy);
            bench.submit(mixture(at, 10));
            bench.until(Instant::ZERO + us(37 * at));
            bench.pull_out();
            bench.settle();
            assert_eq!(bench.ended.len(), 10);
            let gone = Instant::ZERO + us(37 * at);
            let for_nothing = |did: &&Did| {
                did.from > gone && matches!(did.kind, ActKind::Prepare | ActKind::Start)
            };
            assert_eq!(bench.did.iter().find(for_nothing), None, "{policy:?} at {at}");
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
fn a_card_that_does_not_survive_its_reset_is_gone() {
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
fn what_a_read_has_brought_before_a_bad_sector_is_done() {
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

/// A card whose own sectors are of 4 KiB; the script refuses parts of them.
fn with_large_sectors(pipeline: Pipeline) -> Bench {
    let target = Target { unit_sectors: 8, ..CARD };
    let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, target, policy)
}

#[test]
fn of_sectors_of_4_kib_whole_ones_are_transferred_wherever_the_bus_fails() {
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
fn a_read_that_fails_is_read_by_the_cards_own_sectors_up_to_the_bad_one() {
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
