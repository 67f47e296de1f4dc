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
/// A CMD13 that reports a page which could not be programmed.
const PAGE_FAILED: Fault = Fault::Bits(Part::Command, CardStatus::ERROR);

/// Returns a bench whose transfers stay open, on `target`. A page that is not full is programmed
/// when its transfer is closed, and the card is busy for no time.
fn bench(pipeline: Pipeline, target: Target) -> Bench {
    let policy = HostPolicy {
        open_limit: Some(Duration::from_ms(5)),
        ..HostPolicy::new(pipeline, BusyDetect::Hardware)
    };
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
