//! Failures of transfers that stay open between requests, and the flushes that report them.

use super::exclusive::FLUSH;
use super::*;
use crate::command::Opcode;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

/// The sectors of a write of 4 KiB.
const SECTORS: u32 = 8;
/// A write that fails on the bus.
const DAMAGED: Fault = Fault::Error(Part::Data, HostError::Damaged, 0);
/// A command that the card does not get.
const UNHEARD: Fault = Fault::Error(Part::Command, HostError::Timeout, 0);
/// A CMD13 that reports a page which could not be programmed.
const PAGE_FAILED: Fault = Fault::Bits(Part::Command, CardStatus::ERROR);

/// Returns a bench whose transfers stay open, on `target`. A page that is not full is programmed
/// when its transfer is closed, and the card is busy for no time.
fn bench(pipeline: Pipeline, target: Target) -> Bench {
    bench_with(pipeline, BusyDetect::Hardware, target)
}

/// Returns the same bench on a host that finds the end of busy by `busy`.
fn bench_with(pipeline: Pipeline, busy: BusyDetect, target: Target) -> Bench {
    let policy =
        HostPolicy { open_limit: Some(Duration::from_ms(5)), ..HostPolicy::new(pipeline, busy) };
    let mut controller = Scripted::new(policy.transfer, policy.busy);
    controller.capabilities.keeps_open = true;
    controller.busy = us(0);
    Bench::with(Policies::NONE, controller, target, policy)
}

/// Returns the write of 4 KiB with this number, from 1. They follow each other.
fn write(number: u64) -> Bio {
    Bio::write(u64::from(SECTORS) * (number - 1), SECTORS, number)
}

/// Submits `bios`, and runs for 3 ms.
fn submit_for_3_ms(bench: &mut Bench, bios: impl IntoIterator<Item = Bio>) {
    bench.submit(bios);
    bench.until(bench.now + us(3000));
}

/// Sends three flushes, one after the other. Returns how they end.
fn flushes(bench: &mut Bench) -> [Status; 3] {
    [910, 911, 912].map(|cookie| {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
        bench.ended[&cookie]
    })
}

/// Returns the commands that were sent, from the request with this number on.
fn commands_from(bench: &Bench, first: usize) -> Vec<Opcode> {
    bench.spans()[first..].iter().map(|span| span.command).collect()
}

/// Writes 1 to 5, of 4 KiB, have been reported and are in a page of 32 KiB. Write 6 is damaged on
/// the bus. CMD12 of the recovery closes the page, which cannot be programmed, and the CMD13 after
/// it says so. Write 6 is repeated and good; the five before it are lost
/// ([late-write-error-fails-flush]).
#[test]
fn a_page_that_a_recovery_closes_and_that_fails_is_lost() {
    for pipeline in one_by_one() {
        let mut bench = bench(pipeline, emmc());
        submit_for_3_ms(&mut bench, (1..=5).map(write));
        assert_eq!(bench.ended.len(), 5, "{pipeline:?}");
        assert_eq!(bench.spans().len(), 5, "{pipeline:?}: one transfer, five parts");
        bench.script().faults.extend([(5, DAMAGED), (8, PAGE_FAILED)]);
        submit_for_3_ms(&mut bench, [write(6)]);
        let recovery = [Opcode::SendStatus, Opcode::StopTransmission, Opcode::SendStatus];
        assert_eq!(commands_from(&bench, 6)[..3], recovery, "{pipeline:?}");
        assert_eq!(bench.ended[&6], Status::Ok, "{pipeline:?}: it was written again");
        assert_eq!(flushes(&mut bench), [Status::IoError, Status::Ok, Status::Ok], "{pipeline:?}");
        assert_eq!(bench.mmc().counts().lost_writes, 1, "{pipeline:?}");
    }
}

/// Writes 1 to 7 have been reported, and write 8 completes their page and has not been. Write 9 is
/// damaged on the bus, and the first CMD13 after it says that a page failed. So 8 ends with an
/// error, and the seven that were reported are lost.
#[test]
fn the_reported_writes_of_a_failed_page_are_lost_with_the_one_that_is_held() {
    let mut seen = 0;
    for pipeline in one_by_one() {
        let mut bench = bench(pipeline, emmc());
        submit_for_3_ms(&mut bench, (1..=7).map(write));
        assert_eq!((bench.ended.len(), bench.spans().len()), (7, 7), "{pipeline:?}");
        bench.script().faults.extend([(8, DAMAGED), (9, PAGE_FAILED)]);
        submit_for_3_ms(&mut bench, [write(8), write(9)]);
        if bench.ended[&8] == Status::Ok {
            continue; // this pipeline reports each write before the next one is on the bus
        }
        seen += 1;
        assert_eq!(bench.ended[&9], Status::Ok, "{pipeline:?}: it was written again");
        assert_eq!(flushes(&mut bench), [Status::IoError, Status::Ok, Status::Ok], "{pipeline:?}");
        assert_eq!(bench.mmc().counts().lost_writes, 1, "{pipeline:?}");
    }
    assert!(seen > 0, "no pipeline holds a write while the next one is on the bus");
}

/// The card's cache is off. A write that failed on the bus is repeated with a transfer of its own,
/// and the controller finds the end of busy, so no response follows. A flush asks the card
/// ([flush-closes-transfer]). It and the next one fail if the write is lost
/// ([late-write-error-fails-flush]).
#[test]
fn a_flush_without_a_cache_asks_about_a_write_that_no_response_confirms() {
    for pipeline in one_by_one() {
        for (fault, expected) in [
            (None, [Status::Ok; 3]),
            (Some(PAGE_FAILED), [Status::IoError, Status::IoError, Status::Ok]),
        ] {
            let mut bench = bench(pipeline, CARD);
            bench.script().faults.insert(0, DAMAGED);
            submit_for_3_ms(&mut bench, [write(1)]);
            assert_eq!(bench.ended[&1], Status::Ok, "{pipeline:?}");
            let next = bench.spans().len();
            bench.script().faults.extend(fault.map(|fault| (next, fault)));
            assert_eq!(flushes(&mut bench), expected, "{pipeline:?}");
            assert_eq!(commands_from(&bench, next), [Opcode::SendStatus], "{pipeline:?}");
            let lost = u64::from(fault.is_some());
            assert_eq!(bench.mmc().counts().lost_writes, lost, "{pipeline:?}");
        }
    }
}

/// A write whose transfer stays open has ended well, and the card asks for background operations. A
/// command before them, CMD12 or the read of EXT_CSD (CMD8), gets no answer. If a response of the
/// recovery says that a page failed, the write ends with an error ([failure-told-in-recovery]).
/// Otherwise it is in doubt ([doubtful-write-fails-flush]).
#[test]
fn a_write_whose_close_before_background_operations_fails_ends_with_an_error() {
    let unanswered = Fault::Lost(Part::Command);
    for (unheard, told) in [
        ((1, UNHEARD), Some(2)),    // CMD13 finds the transfer open
        ((1, UNHEARD), Some(4)),    // CMD13 after the CMD12 of the recovery
        ((1, unanswered), Some(2)), // the card has obeyed CMD12
        ((2, UNHEARD), Some(3)),    // CMD13 after CMD8
        ((1, UNHEARD), None),
        ((2, UNHEARD), None),
    ] {
        for pipeline in one_by_one() {
            let case = format!("{pipeline:?} {unheard:?} {told:?}");
            let mut bench = bench(pipeline, emmc_by_host());
            bench.script().level = 2;
            bench.script().faults.extend([unheard]);
            bench.script().faults.extend(told.map(|at| (at, PAGE_FAILED)));
            bench.submit([write(1)]);
            bench.settle();
            assert_eq!(commands_from(&bench, 1)[0], Opcode::StopTransmission, "{case}");
            let is_told = told.is_some();
            let ended = if is_told { Status::IoError } else { Status::Ok };
            assert_eq!(bench.ended[&1], ended, "{case}");
            bench.script().level = 0;
            let first = if is_told { Status::Ok } else { Status::IoError };
            assert_eq!(flushes(&mut bench), [first, Status::Ok, Status::Ok], "{case}");
            let counts = bench.mmc().counts();
            assert_eq!(
                (counts.lost_writes, counts.doubtful_writes),
                (0, u64::from(!is_told)),
                "{case}"
            );
        }
    }
}

/// A read closes the transfer of a write. The card does not get CMD12, and says in response to the
/// CMD13 of the recovery that a page failed. The write ends with an error if it has not been
/// reported, and is lost otherwise ([late-write-error-fails-flush]). The read is repeated.
#[test]
fn a_failed_write_before_a_read_whose_cmd12_gets_lost_is_told_of() {
    let mut held = 0;
    for pipeline in one_by_one() {
        let mut bench = bench(pipeline, emmc());
        bench.script().faults.extend([(1, UNHEARD), (2, PAGE_FAILED)]);
        submit_for_3_ms(&mut bench, [write(1), Bio::read(5000, SECTORS, 2)]);
        let sent = [Opcode::StopTransmission, Opcode::SendStatus, Opcode::StopTransmission];
        assert_eq!(commands_from(&bench, 1)[..3], sent, "{pipeline:?}");
        let is_held = bench.ended[&1] != Status::Ok;
        held += u32::from(is_held);
        assert_eq!(bench.ended[&2], Status::Ok, "{pipeline:?}");
        let first = if is_held { Status::Ok } else { Status::IoError };
        assert_eq!(flushes(&mut bench), [first, Status::Ok, Status::Ok], "{pipeline:?}");
        let counts = bench.mmc().counts();
        let lost = u64::from(!is_held);
        assert_eq!((counts.lost_writes, counts.doubtful_writes), (lost, 0), "{pipeline:?}");
    }
    assert!(held > 0, "no pipeline holds a write while the next request is on the bus");
}

/// A card is busy beyond its limit with the page that CMD12 closes before background operations.
/// It is reset, and nobody knows what became of the write: it has ended well, and is not repeated.
#[test]
fn a_write_whose_close_takes_too_long_is_in_doubt() {
    for pipeline in one_by_one().filter(|pipeline| !matches!(pipeline, Pipeline::Hsq(_))) {
        for busy in [BusyDetect::Line, BusyDetect::Status] {
            let mut bench = bench_with(pipeline, busy, emmc_by_host());
            bench.script().level = 2;
            bench.script().busy = Duration::from_secs(100);
            bench.submit([write(1)]);
            bench.until(Instant::ZERO + Duration::from_secs(5));
            bench.script().busy = us(0);
            bench.script().level = 0;
            bench.settle();
            bench.all_ended_with(Status::Ok, 1);
            let expected = [Status::IoError, Status::Ok, Status::Ok];
            assert_eq!(flushes(&mut bench), expected, "{pipeline:?} {busy:?}");
            let counts = bench.mmc().counts();
            assert_eq!((counts.resets, counts.doubtful_writes), (1, 1), "{pipeline:?} {busy:?}");
        }
    }
}

/// A transfer is closed after 5 ms without a request, and the card is busy for 500 us. Three reads
/// come meanwhile. The close was none of the queue's requests, so the first that came goes first.
#[test]
fn a_queue_that_walks_tags_skips_no_request_behind_the_close_of_a_transfer() {
    for order in [HsqOrder::Fifo, HsqOrder::TagWalk] {
        let limit = HsqLimit::Fixed(5);
        let mut bench = bench(Pipeline::Hsq(HsqPolicy { order, limit, ..HsqPolicy::V8 }), CARD);
        bench.script().busy = us(500);
        submit_for_3_ms(&mut bench, [write(1)]);
        let is_closing = bench.spans()[0].to + us(5200);
        bench.until(is_closing);
        assert_eq!(commands_from(&bench, 1), [Opcode::StopTransmission], "{order:?}");
        let sectors = [1000, 2000, 3000];
        bench.submit(sectors.map(|sector| Bio::read(sector, SECTORS, sector)));
        bench.settle();
        let went: Vec<_> = bench.spans()[2..].iter().filter_map(|span| span.sector).collect();
        assert_eq!(went, sectors, "{order:?}");
    }
}
