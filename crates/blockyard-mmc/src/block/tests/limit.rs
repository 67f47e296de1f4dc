//! The time for which the card may keep the controller waiting, for each kind of MMC request.

use super::*;
use crate::command::Opcode;
use crate::controller::{HostError, Part};

const READ: Duration = Duration::from_ms(7);
const WRITE: Duration = Duration::from_ms(70);
const SWITCH: Duration = Duration::from_ms(30);

fn target() -> Target {
    Target { read_limit: READ, write_limit: WRITE, switch_limit: SWITCH, ..emmc_by_host() }
}

fn bench(pipeline: Pipeline) -> Bench {
    let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, target(), policy)
}

/// Returns the limits of all MMC requests with `opcode`, each once.
fn limits(bench: &Bench, opcode: Opcode) -> Vec<Duration> {
    let of = bench.spans().iter().filter(|span| span.command == opcode);
    let mut limits: Vec<_> = of.map(|span| span.limit).collect();
    limits.dedup();
    limits
}

#[test]
fn a_transfer_has_the_cards_limit_for_its_direction() {
    let mut bench = bench(Pipeline::Serial);
    let dies = Fault::Error(Part::Data, HostError::Timeout, 0);
    bench.script().faults.insert(2, dies);
    bench.submit([Bio::read(0, 8, 0), Bio::write(100, 8, 1), Bio::write(300, 8, 2)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    assert_eq!(limits(&bench, Opcode::ReadMultiple), [READ]);
    assert_eq!(limits(&bench, Opcode::WriteMultiple), [WRITE]);
    assert_eq!(limits(&bench, Opcode::StopTransmission), [WRITE], "the card is busy after CMD12");
    assert_eq!(limits(&bench, Opcode::SendStatus), [Duration::ZERO], "no wait");
}

#[test]
fn a_command_after_which_the_card_works_has_the_limit_of_that_work() {
    let mut bench = bench(Pipeline::Cqe);
    bench.submit([Bio::write(0, 8, 0)]);
    bench.script().level = 2;
    bench.settle();
    assert_eq!(limits(&bench, Opcode::SendStatus), [Duration::ZERO], "no wait");
    // The queue is turned on, and off for background operations. EXT_CSD is read like data.
    let switches = limits(&bench, Opcode::Switch);
    assert_eq!(switches, [SWITCH, crate::card::time::BKOPS]);
    assert_eq!(limits(&bench, Opcode::SendExtCsd), [READ]);
}

/// The card works although its response came damaged. It gets the time of that work, and ten
/// seconds at least.
#[test]
fn a_card_whose_response_was_damaged_is_waited_for_as_long_as_its_work_may_take() {
    let flush = Bio::new(Op::Flush, 0, 0, 0);
    let discard = Bio::new(Op::Discard, 100, 1000, 0); // two groups of 1.5 s
    for (bio, first, takes, ends) in [
        (flush, 0, 29, Status::Ok),
        (flush, 0, 31, Status::IoError),
        (discard, 2, 2, Status::Ok),
        (discard, 2, 9, Status::Timeout), // tried again, it takes longer than its 3 s
        (discard, 2, 11, Status::IoError),
    ] {
        let mut bench = bench(Pipeline::Serial);
        bench.script().switch_busy = Duration::from_secs(takes);
        bench.script().erase_busy = Duration::from_secs(takes);
        bench.script().faults.insert(first, Fault::Garbled(Part::Command));
        bench.submit([bio]);
        bench.settle();
        assert_eq!(bench.ended[&0], ends, "{bio:?} for {takes} s");
        let erases = bench.spans().iter().filter(|span| span.limit > Duration::ZERO).count();
        let waited = matches!((bio.op, takes), (Op::Flush, 29) | (Op::Discard, 2 | 9));
        assert_eq!(erases, if waited { 2 } else { 1 }, "{bio:?} for {takes} s");
    }
}

/// No event tells of the flush. The time that the card has had by then counts.
#[test]
fn a_card_whose_response_was_lost_gets_no_more_time_than_its_work_may_take() {
    for (takes, ends, flushes) in [(20, Status::Ok, 2), (45, Status::Timeout, 1)] {
        let mut bench = bench(Pipeline::Serial);
        bench.script().switch_busy = Duration::from_secs(takes);
        bench.script().faults.insert(0, Fault::Lost(Part::Command));
        bench.submit([Bio::new(Op::Flush, 0, 0, 0)]);
        bench.settle();
        assert_eq!((bench.ended[&0], bench.script().log.len()), (ends, flushes), "{takes} s");
        assert!(bench.now < Instant::ZERO + Duration::from_secs(51));
        assert_eq!(bench.now < Instant::ZERO + Duration::from_secs(31), flushes == 1);
    }
}

#[test]
fn only_the_last_command_of_an_erase_has_a_limit() {
    let mut bench = bench(Pipeline::Serial);
    bench.submit([Bio::new(Op::Discard, 100, 1000, 0)]);
    bench.settle();
    for begin in [Opcode::MmcEraseStart, Opcode::MmcEraseEnd] {
        assert_eq!(limits(&bench, begin), [Duration::ZERO]);
    }
    assert!(limits(&bench, Opcode::Erase)[0] > Duration::ZERO);
    // Nor does the host ask whether the card is ready before.
    let sent: Vec<_> = bench.spans().iter().map(|span| span.command).collect();
    let begin = [Opcode::MmcEraseStart, Opcode::MmcEraseEnd, Opcode::Erase, Opcode::SendStatus];
    assert_eq!(sent, begin);
}
