//! Events of the command queue engine, in each of its states.

use super::*;
use crate::block::slot::Slot;
use crate::block::tasks::mark::Mark;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, Response};
use crate::controller::{HostError, Part};
use crate::engine::{EngineEvent, TaskSet};
use crate::exchange::Failure;

/// CMD44, which announces a task, and CMD46, which moves the data of one.
const ANNOUNCE: u8 = 44;
const EXECUTE: u8 = 46;
const DIRECT: EngineEvent = EngineEvent::DirectDone(Response::Short(0x900));

fn failed(tasks: u32) -> EngineEvent {
    EngineEvent::Failed { tasks: TaskSet(tasks), part: Part::Data, error: HostError::Memory }
}

fn responded(command: u8, tasks: u32, status: u32) -> EngineEvent {
    EngineEvent::Responded { command, tasks: TaskSet(tasks), status: CardStatus(status) }
}

/// Four tasks in slots 0 to 3, a write and three reads, of which the card makes no data ready.
fn on() -> Bench {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    let never = Duration::from_secs(1000);
    bench.script().engine.access.extend((0..4).map(|at| (100 * at, never)));
    bench.submit([Bio::write(0, 8, 0)]);
    bench.submit((1..4).map(|at| Bio::read(100 * at, 8, at)));
    bench.until(Instant::ZERO + us(900));
    let tasks = bench.mmc().cqe.as_ref().unwrap();
    assert!(tasks.is_on() && tasks.tasks.iter().count() == 4);
    bench
}

/// The same, while the engine halts after the task in slot 3 has failed.
fn halting() -> Bench {
    let mut bench = on();
    bench.script().engine.deaf.push_back(true);
    bench.interrupt(HostEvent::Engine(failed(0b1000)));
    let now = bench.now;
    bench.until(now + us(20));
    assert!(bench.mmc().cqe.as_ref().unwrap().is_recovering());
    bench
}

/// The engine is being turned on.
fn switching() -> Bench {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.script().queue_busy = us(5000);
    bench.reads(4);
    bench.until(Instant::ZERO + us(900));
    let cqe = bench.mmc().cqe.as_ref().unwrap();
    assert!(!cqe.is_on() && !cqe.is_off() && !cqe.is_recovering());
    bench
}

/// The engine is being turned off, and the card has not responded since the last write.
fn leaving() -> Bench {
    let mut bench = off();
    bench.writes(4);
    bench.settle();
    let now = bench.now;
    bench.mmc().disable(now);
    bench.until(now + us(3));
    let cqe = bench.mmc().cqe.as_ref().unwrap();
    assert!(!cqe.is_on() && !cqe.is_off() && !cqe.is_recovering());
    assert!(bench.mmc().has_unconfirmed_write());
    bench
}

fn off() -> Bench {
    Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware))
}

fn marks(bench: &mut Bench) -> Vec<char> {
    bench.mmc().slots[..4].iter().map(mark_letter).collect()
}

fn mark_letter(slot: &Slot) -> char {
    match slot.mark {
        Mark::None => '-',
        Mark::Done => 'd',
        Mark::Failed(_) => 'f',
    }
}

#[test]
fn an_event_that_the_engine_cannot_report_now_is_counted_as_a_stray_and_changes_nothing() {
    let exception = CardStatus::EXCEPTION_EVENT;
    for (state, name, strays) in [
        (
            off as fn() -> Bench,
            "off",
            vec![task_done(0), DIRECT, failed(1), responded(EXECUTE, 1, exception)],
        ),
        (
            switching,
            "switching",
            vec![
                task_done(0),
                DIRECT,
                failed(0),
                failed(1),
                responded(ANNOUNCE, 1, CardStatus::ILLEGAL_COMMAND),
                EngineEvent::Halted,
                EngineEvent::Cleared,
            ],
        ),
        (leaving, "leaving", vec![task_done(0), responded(EXECUTE, 1, CardStatus::ERROR)]),
        (
            on,
            "on",
            vec![
                task_done(9),
                DIRECT,
                responded(EXECUTE, 1, 0),
                EngineEvent::Halted,
                EngineEvent::Cleared,
            ],
        ),
        (halting, "halting", vec![task_done(9), DIRECT, EngineEvent::Cleared]),
    ] {
        for event in strays {
            let mut bench = state();
            let before = (bench.mmc().counts(), marks(&mut bench));
            bench.interrupt(HostEvent::Engine(event));
            let counts = Counts { strays: before.0.strays + 1, ..before.0 };
            let after = (bench.mmc().counts(), marks(&mut bench));
            assert_eq!(after, (counts, before.1), "{event:?} while {name}");
        }
    }
}

#[test]
fn a_failure_marks_whom_it_names_and_otherwise_the_oldest() {
    let error = CardStatus::ILLEGAL_COMMAND;
    for (event, marked) in [
        (failed(0), "f---"),
        (failed(0b0001), "f---"),
        (failed(0b0110), "-ff-"),
        // Slot 9 has no task.
        (failed(1 << 9), "f---"),
        (failed(1 << 9 | 0b0100), "--f-"),
        // The bit speaks of the command itself, so the write is not under suspicion.
        (responded(ANNOUNCE, 0b0100, error), "--f-"),
        (responded(EXECUTE, 0b0100, error), "--f-"),
        (responded(EXECUTE, 0, error), "f---"),
        // The bit may speak of work before: of the write, unless its own task is under way.
        (responded(ANNOUNCE, 0b0100, CardStatus::ERROR), "f---"),
        (responded(EXECUTE, 0b0100, CardStatus::ERROR), "--f-"),
    ] {
        let mut bench = on();
        bench.interrupt(HostEvent::Engine(event));
        assert_eq!(marks(&mut bench).iter().collect::<String>(), marked, "{event:?}");
        let failures = marked.matches('f').count();
        assert_eq!(
            (bench.mmc().counts().failures, bench.mmc().counts().strays),
            (failures as u64, 0)
        );
        bench.script().engine.access.clear();
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
    }
}

/// The task in slot 0 is marked where it is named, even if another one is older.
#[test]
fn a_named_task_in_the_first_slot_is_marked_although_it_is_not_the_oldest() {
    let mut bench = off();
    let never = Duration::from_secs(1000);
    bench.script().engine.access.extend([(100, never), (200, never)]);
    bench.reads(2);
    bench.until(Instant::ZERO + us(900));
    bench.submit((2..40).map(|at| Bio::read(100 * at, 8, at)));
    bench.script().engine.access.extend((3..40).map(|at| (100 * at, never)));
    bench.until(bench.now + us(5000));
    let order: Vec<_> = bench.mmc().cqe.as_ref().unwrap().tasks.iter().collect();
    assert!(order[0] != SlotId(0) && order.contains(&SlotId(0)), "{order:?}");
    bench.interrupt(HostEvent::Engine(failed(1)));
    assert!(matches!(bench.mmc().slots[0].mark, Mark::Failed(_)));
    assert!(matches!(bench.mmc().slots[order[0].index()].mark, Mark::None));
}

/// A direct command that is under way but not named has not failed.
#[test]
fn a_failure_without_a_name_is_not_the_direct_commands() {
    for (names, marked) in [(0, "f---"), (1 << 31, "----")] {
        let mut bench = on();
        let now = bench.now;
        let command = Command::discard_queue();
        bench.mmc().direct(&command, Duration::from_secs(1), now).unwrap();
        bench.interrupt(HostEvent::Engine(failed(names)));
        assert_eq!(marks(&mut bench).iter().collect::<String>(), marked, "{names:#x}");
        let end = bench.mmc().next_direct();
        assert_eq!(matches!(end, Some(DirectEnd::Failed(Failure { .. }))), names != 0);
    }
}

/// An exception is counted once, and is no failure. It is nothing to a command that nobody sent.
#[test]
fn an_exception_is_counted_where_a_response_was_awaited() {
    let exception = CardStatus::EXCEPTION_EVENT;
    let direct = EngineEvent::DirectDone(Response::Short(0x900 | exception));
    for (event, counts) in [
        (responded(EXECUTE, 1, exception), Counts { exceptions: 1, ..Counts::default() }),
        (direct, Counts { strays: 1, ..Counts::default() }),
    ] {
        let mut bench = on();
        bench.interrupt(HostEvent::Engine(event));
        assert_eq!((bench.mmc().counts(), marks(&mut bench)), (counts, vec!['-'; 4]));
    }
}

/// [suspect-tasks-redone]: a report of an earlier failure takes back what was believed in this
/// recovery.
#[test]
fn tasks_done_in_a_recovery_are_doubted_after_a_report_of_earlier_work() {
    let mut bench = halting();
    bench.interrupt(HostEvent::Engine(task_done(1)));
    assert_eq!(marks(&mut bench), ['-', 'd', '-', 'f']);
    let strays = bench.mmc().counts().strays;
    bench.interrupt(HostEvent::Engine(responded(ANNOUNCE, 0, CardStatus::ERROR)));
    assert_eq!(marks(&mut bench), ['f', '-', '-', 'f']);
    bench.interrupt(HostEvent::Engine(task_done(2)));
    assert_eq!(marks(&mut bench), ['f', '-', '-', 'f'], "nor is a later one believed");
    assert_eq!(bench.mmc().counts().strays, strays);
}

/// The card responds to the recovery after the write is done, so a later report is not about that
/// write.
#[test]
fn a_write_done_in_a_recovery_is_confirmed_by_it() {
    let mut bench = halting();
    bench.interrupt(HostEvent::Engine(task_done(0)));
    while !bench.mmc().cqe.as_ref().is_some_and(|cqe| cqe.is_on() && cqe.tasks.iter().count() == 3)
        || bench.ended.is_empty()
    {
        bench.until(bench.now + us(10));
    }
    bench.interrupt(HostEvent::Engine(responded(EXECUTE, 0b0010, CardStatus::ERROR)));
    let counts = bench.mmc().counts();
    assert_eq!((counts.lost_writes, counts.doubtful_writes, counts.failures), (0, 0, 2));
}

/// A task may take [`TASK_LIMIT`], to the instant.
#[test]
fn a_task_is_late_when_its_time_is_over() {
    let mut bench = on();
    let since: Vec<_> = bench.mmc().slots[..4].iter().map(|slot| slot.since).collect();
    assert!(since.is_sorted_by(|a, b| a < b), "{since:?}");
    for late in 1..4 {
        let mut bench = on();
        let limit = since[late - 1] + TASK_LIMIT;
        bench.mmc().tick(Instant::from_ns(limit.as_ns().min((since[0] + TASK_LIMIT).as_ns()) - 1));
        assert_eq!(marks(&mut bench), ['-'; 4]);
        bench.mmc().tick(limit);
        let expected: Vec<_> = (0..4).map(|at| if at < late { 'f' } else { '-' }).collect();
        assert_eq!(marks(&mut bench), expected);
    }
    // A call about something else notices it, too.
    let mut bench = on();
    let command = Command::discard_queue();
    let sent = bench.mmc().direct(&command, Duration::from_secs(1), since[0] + TASK_LIMIT);
    assert_eq!(sent, Err(NotDirect), "the engine is in recovery");
}

#[test]
fn no_direct_command_is_taken_while_an_operation_waits() {
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.script().engine.access.insert(0, Duration::from_secs(1));
    bench.reads(1);
    bench.until(Instant::ZERO + us(900));
    bench.submit([Bio::new(Op::Discard, 100, 1000, 9)]);
    bench.until(bench.now + us(100));
    let now = bench.now;
    assert!(bench.mmc().exclusive.is_some(), "the discard waits for the task");
    let command = Command::discard_queue();
    assert_eq!(bench.mmc().direct(&command, Duration::from_secs(1), now), Err(NotDirect));
}
