//! Direct commands of the command queue engine.

use super::*;
use crate::command::state::CardState;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostError, Part};
use crate::exchange::{Cause, Failure};
use crate::register::ext_csd::index::FLUSH_CACHE;

const LIMIT: Duration = Duration::from_ms(50);

fn flush() -> Command {
    Command::switch(SwitchAccess::WriteByte, FLUSH_CACHE, 1)
}

/// A bench with two tasks of 1 ms each in the engine, and the number of MMC requests and tasks so
/// far.
fn with_tasks() -> (Bench, usize) {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.script().engine.access.extend([(0, us(1000)), (100, us(1000))]);
    bench.reads(2);
    bench.until(Instant::ZERO + us(500));
    let before = bench.spans().len();
    (bench, before)
}

fn send(bench: &mut Bench) -> Result<(), NotDirect> {
    let now = bench.now;
    bench.mmc().direct(&flush(), LIMIT, now)
}

#[test]
fn a_direct_command_keeps_its_place_between_tasks() {
    let (mut bench, _) = with_tasks();
    assert_eq!(send(&mut bench), Ok(()));
    assert_eq!(send(&mut bench), Err(NotDirect), "one direct command at a time");
    bench.submit([Bio::read(200, 8, 2)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    let order: Vec<_> = bench.spans()[2..].iter().map(|span| span.sector).collect();
    assert_eq!(order, [Some(0), Some(100), None, Some(200)]);
    assert_eq!(send(&mut bench), Err(NotDirect), "the sender has not fetched the last result");
    assert!(matches!(bench.mmc().next_direct(), Some(DirectEnd::Done(_))));
    assert_eq!(bench.mmc().next_direct(), None, "the end is returned once");
    assert_eq!(send(&mut bench), Ok(()));
    assert_eq!(bench.mmc().idle(), Idle::NotYet, "a direct command, but no request");
    bench.until(bench.now + us(1000));
    assert_eq!(bench.mmc().idle(), Idle::Yes);
}

#[test]
fn a_direct_command_is_refused_without_an_engine_that_is_on_and_takes_it() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    assert_eq!(send(&mut bench), Err(NotDirect), "the engine is off");
    let (mut bench, _) = with_tasks();
    bench.script().capabilities.queue_engine_direct = false;
    assert_eq!(send(&mut bench), Err(NotDirect), "the engine supports no direct commands");
    let (mut bench, before) = with_tasks();
    bench.script().engine.deaf.push_back(true);
    bench.script().faults.insert(before, Fault::Error(Part::Data, HostError::Timeout, 0));
    bench.until(Instant::ZERO + Duration::from_ms(3));
    assert_eq!(bench.mmc().idle(), Idle::Halted);
    assert_eq!(send(&mut bench), Err(NotDirect), "the engine is in recovery");
    let mut bench = Bench::new(HostPolicy::new(Pipeline::BlkMqWait, BusyDetect::Hardware));
    assert_eq!(send(&mut bench), Err(NotDirect), "no engine");
    assert_eq!(bench.mmc().next_direct(), None);
}

#[test]
fn the_engine_stays_on_until_a_direct_command_has_ended() {
    let (mut bench, before) = with_tasks();
    assert_eq!(send(&mut bench), Ok(()));
    let now = bench.now;
    bench.mmc().disable(now);
    bench.until(now + Duration::from_ms(10));
    assert!(!bench.mmc().is_enabled());
    assert!(matches!(bench.mmc().next_direct(), Some(DirectEnd::Done(_))));
    let flushed = bench.spans()[before + 2].to;
    assert!(bench.script().engine.disables[0] >= flushed);
}

#[test]
fn a_direct_command_fails_alone_or_is_cleared_with_the_tasks() {
    let error = CardStatus(CardStatus::new(CardState::Transfer, true).0 | CardStatus::ERROR);
    let command = Part::Command;
    let late = failed_direct(Part::Data, Cause::Host(HostError::Timeout));
    for (after, fault, expected, recovers) in [
        (
            2,
            Fault::Error(command, HostError::Damaged, 0),
            failed_direct(command, Cause::Host(HostError::Damaged)),
            true,
        ),
        (
            2,
            Fault::Bits(command, CardStatus::ERROR),
            failed_direct(command, Cause::Card(error)),
            false,
        ),
        (2, Fault::Silence, late, true),
        (1, Fault::Error(Part::Data, HostError::Timeout, 0), Some(DirectEnd::Cleared), true),
    ] {
        let (mut bench, before) = with_tasks();
        bench.script().faults.insert(before + after, fault);
        assert_eq!(send(&mut bench), Ok(()));
        bench.until(Instant::ZERO + LIMIT + Duration::from_ms(20));
        bench.settle();
        bench.all_ended_with(Status::Ok, 2);
        assert_eq!(bench.mmc().next_direct(), expected, "{fault:?}");
        assert_eq!(bench.script().engine.clears.len(), usize::from(recovers), "{fault:?}");
    }
}

fn failed_direct(part: Part, cause: Cause) -> Option<DirectEnd> {
    Some(DirectEnd::Failed(Failure { part, cause }))
}

/// The first direct command after a write confirms the write, so the failure of the next one is its
/// own.
#[test]
fn a_good_response_to_a_direct_command_confirms_the_write_before() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.writes(1);
    bench.settle();
    let next = bench.spans().len();
    bench.script().faults.insert(next + 1, Fault::Bits(Part::Command, CardStatus::ERROR));
    for is_good in [true, false] {
        assert_eq!(send(&mut bench), Ok(()));
        bench.until(bench.now + LIMIT);
        let end = bench.mmc().next_direct().expect("end of a direct command");
        assert_eq!(matches!(end, DirectEnd::Done(_)), is_good, "{end:?}");
    }
    assert_eq!(bench.mmc().counts().lost_writes, 0);
}

/// The card is still busy with a direct command that has taken too long. The discard that waits has
/// its own time.
#[test]
fn an_operation_that_waits_does_not_end_with_a_direct_command_that_is_late() {
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.writes(1);
    bench.settle();
    bench.script().busy = LIMIT + Duration::from_ms(10);
    assert_eq!(send(&mut bench), Ok(()));
    bench.submit([Bio::new(Op::Discard, 0, 1024, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!(bench.script().resets, 0);
    assert!(matches!(bench.mmc().next_direct(), Some(DirectEnd::Failed(_))));
}

#[test]
fn an_exception_in_a_direct_response_is_counted() {
    let (mut bench, before) = with_tasks();
    bench
        .script()
        .faults
        .insert(before + 2, Fault::Bits(Part::Command, CardStatus::EXCEPTION_EVENT));
    assert_eq!(send(&mut bench), Ok(()));
    bench.until(bench.now + LIMIT);
    bench.settle();
    assert_eq!(bench.mmc().counts(), Counts { exceptions: 1, ..Counts::default() });
    assert!(matches!(bench.mmc().next_direct(), Some(DirectEnd::Done(_))));
}

#[test]
fn a_direct_command_ends_when_the_card_is_removed() {
    let (mut bench, _) = with_tasks();
    assert_eq!(send(&mut bench), Ok(()));
    bench.pull_out();
    bench.settle();
    let gone = Failure { part: Part::Command, cause: Cause::Gone };
    assert_eq!(bench.mmc().next_direct(), Some(DirectEnd::Failed(gone)));
    assert_eq!(send(&mut bench), Err(NotDirect));
}
