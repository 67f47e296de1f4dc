//! Flushes that an engine sends as direct commands.

use super::exclusive::{FLUSH, bench, sent};
use super::*;
use crate::command::state::CardState;
use crate::command::status::Status as CardStatus;
use crate::command::{Opcode, Response};
use crate::controller::{HostError, Part};
use crate::engine::EngineEvent;

/// The commands of a flush through an engine with two tasks before it: the queue stays on.
#[test]
fn a_flush_is_a_direct_command_if_the_engine_takes_it() {
    for direct in [true, false] {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().capabilities.queue_engine_direct = direct;
        bench.writes(2);
        bench.settle();
        let before = bench.spans().len();
        bench.submit([FLUSH, Bio::read(500, 8, 901)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
        assert!(bench.script().is_durable(0));
        let commands: Vec<_> = bench.spans()[before..].iter().map(|span| span.command).collect();
        let switch = Opcode::Switch;
        let status = Opcode::SendStatus;
        let expected = match direct {
            true => vec![switch, status, Opcode::ExecuteRead],
            // Queue off, the flush, queue on.
            false => vec![switch, status, switch, status, switch, status, Opcode::ExecuteRead],
        };
        assert_eq!(commands, expected);
        assert_eq!(bench.script().engine.disables.len(), usize::from(!direct));
    }
}

/// If the direct command of a flush or the CMD13 after it fails, the flush starts again without the
/// engine.
#[test]
fn a_flush_that_fails_as_a_direct_command_is_done_without_the_engine() {
    let said = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
    let lost = Fault::Error(Part::Command, HostError::Timeout, 0);
    for fault in [said, lost, Fault::Silence] {
        for at in 0..2 {
            let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            // A failure reported here is not reported in the response to the flush.
            bench.submit([Bio::read(100, 8, 1)]);
            bench.settle();
            let next = bench.spans().len();
            bench.script().faults.insert(next + at, fault);
            bench.submit([FLUSH]);
            bench.settle();
            bench.all_ended_with(Status::Ok, 3);
            assert!(bench.script().is_durable(0), "{fault:?} at {at}");
            assert!(!bench.script().engine.disables.is_empty(), "{fault:?} at {at}");
            let flushes = sent(&mut bench).len();
            assert!(flushes > 0 && flushes <= 2, "{fault:?} at {at}: {flushes}");
        }
    }
}

/// A direct flush that exceeds its time limit is not retried: the card is
/// reset, and the flush ends.
#[test]
fn a_direct_flush_ends_at_its_limit() {
    let seconds = Duration::from_secs;
    for (takes, status, resets) in [(seconds(29), Status::Ok, 0), (seconds(33), Status::Timeout, 1)]
    {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.writes(1);
        bench.settle();
        bench.script().busy = takes;
        let before = count_switches(&bench);
        bench.submit([FLUSH]);
        bench.settle();
        assert_eq!((bench.ended[&900], bench.script().resets), (status, resets), "{takes:?}");
        assert!(
            bench.now < Instant::ZERO + seconds(30) + us(20_000),
            "an overdue operation is not tried again"
        );
        assert!(count_switches(&bench) <= before + 1, "the flush was sent again");
        // The reset loses the cache's content, which one more flush reports
        // ([reset-loss-fails-flush]).
        bench.script().busy = us(100);
        bench.submit([Bio { cookie: 901, ..FLUSH }, Bio::read(500, 8, 1)]);
        bench.settle();
        bench.submit([Bio { cookie: 902, ..FLUSH }]);
        bench.settle();
        let second = if resets > 0 { Status::IoError } else { Status::Ok };
        let ended = [1, 901, 902].map(|cookie| bench.ended[&cookie]);
        assert_eq!(ended, [Status::Ok, second, Status::Ok], "{takes:?}");
    }
}

fn count_switches(bench: &Bench) -> usize {
    bench.spans().iter().filter(|span| span.command == Opcode::Switch).count()
}

/// The card becomes ready with a direct flush shortly after the limit. From then on it is not the
/// flush that keeps it busy, but what the recovery asks for, and the flush is repeated.
#[test]
fn a_direct_flush_that_is_done_soon_after_its_limit_is_repeated_without_a_reset() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Status));
    bench.writes(1);
    bench.settle();
    bench.submit([Bio::read(100, 8, 1)]); // the card confirms the write
    bench.settle();
    bench.script().busy = Duration::from_secs(30) + us(3000);
    bench.script().queue_busy = us(1000);
    bench.submit([FLUSH]);
    bench.settle();
    assert_eq!((bench.ended[&900], bench.script().resets), (Status::Ok, 0));
    assert!(bench.count(ActKind::DiscardTasks) == 1 && sent(&mut bench).len() == 2);
}

/// The status after a direct flush says that the card is still at it.
#[test]
fn a_direct_flush_is_done_only_when_the_card_is_ready() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.reads(1);
    bench.settle();
    bench.submit([FLUSH]);
    while bench
        .mmc()
        .slots
        .iter()
        .all(|slot| (slot.stage, slot.commands_done) != (Stage::Direct, 1))
    {
        bench.until(bench.now + us(1));
    }
    let busy = Response::Short(CardStatus::new(CardState::Programming, false).0);
    bench.interrupt(HostEvent::Engine(EngineEvent::DirectDone(busy)));
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!(sent(&mut bench).len(), 2, "it is repeated without the engine");
}

/// The card does not come back from the reset that ends a direct flush.
#[test]
fn a_late_direct_flush_of_a_card_that_does_not_survive_its_reset_ends_once() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.writes(1);
    bench.settle();
    bench.script().busy = Duration::from_secs(33);
    bench.script().dies_at_reset = true;
    bench.submit([FLUSH]);
    bench.settle();
    assert_eq!((bench.ended[&900], bench.script().resets), (Status::Gone, 1));
}

/// [retries-bounded]: the direct command is the first try.
#[test]
fn a_flush_that_always_fails_is_tried_as_often_with_an_engine_as_without() {
    let refused = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
    let mut faults = BTreeMap::new();
    let mut bench = loop {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().faults = faults.clone();
        bench.reads(1);
        bench.settle();
        bench.submit([FLUSH]);
        bench.settle();
        // The card refuses the last flush, too: the status after it says so.
        let of_queue = bench.mmc().target.switch_limit;
        let last = bench
            .spans()
            .iter()
            .rposition(|span| span.command == Opcode::Switch && span.limit != of_queue)
            .expect("flush");
        if faults.insert(last + 1, refused).is_some() {
            break bench;
        }
    };
    assert_eq!(bench.ended[&900], Status::IoError);
    assert_eq!(sent(&mut bench).len(), 1 + usize::from(RETRIES_MAX));
}

/// A write is reported, and the response to the direct flush after it has `bits`, which also
/// concern the write. This flush and the next one fail, and the third succeeds.
pub(super) fn direct_flush_with_response(bits: u32) -> Bench {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.writes(1);
    bench.settle();
    let next = bench.spans().len();
    bench.script().faults.insert(next, Fault::Bits(Part::Command, bits));
    bench.until(bench.now + us(1));
    bench.submit([FLUSH]);
    bench.settle();
    for cookie in 901..903 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [0, 900, 901, 902].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::Ok, Status::IoError, Status::IoError, Status::Ok]);
    bench
}

/// The response to a direct flush reports that the flush was refused and that the write before it
/// failed. The host acts on both.
#[test]
fn a_refused_direct_flush_does_not_hide_a_late_write_error() {
    let mut bench = direct_flush_with_response(CardStatus::ERROR | CardStatus::SWITCH_ERROR);
    let counts = bench.mmc().counts();
    assert_eq!((counts.lost_writes, counts.failures), (1, 1));
    assert!(
        !bench.script().engine.disables.is_empty(),
        "the flush is sent again without the engine"
    );
}
