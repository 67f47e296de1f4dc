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

#[test]
fn only_the_last_command_of_an_erase_has_a_limit() {
    let mut bench = bench(Pipeline::Serial);
    bench.submit([Bio::new(Op::Discard, 100, 1000, 0)]);
    bench.settle();
    for begin in [Opcode::MmcEraseStart, Opcode::MmcEraseEnd] {
        assert_eq!(limits(&bench, begin), [Duration::ZERO]);
    }
    assert!(limits(&bench, Opcode::Erase)[0] > Duration::ZERO);
}
