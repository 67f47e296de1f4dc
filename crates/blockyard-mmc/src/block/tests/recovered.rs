//! The recovery of the command queue engine: a failure at each step, and how the tasks end.

use super::*;
use crate::block::tasks::mark::Mark;
use crate::command::Opcode;
use crate::command::queue::TaskId;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};
use crate::engine::{EngineEvent, TaskSet};

use ActKind::{
    ClearTasks, DiscardTasks, EnableEngine, HaltEngine, Reset, RestartEngine, SendStatus, SendStop,
    SwitchQueue,
};

/// The number of the first MMC request or task after the two that turn the queue on.
const FIRST: usize = 2;

const TURNED_ON: [ActKind; 3] = [SwitchQueue, SendStatus, EnableEngine];

/// The first transfer fails with `fault` while other tasks are in the engine. Tasks are ready after
/// 1 ms.
fn failing(fault: Fault) -> Bench {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.script().faults.insert(FIRST, fault);
    bench.script().engine.access.extend((0..DEPTH).map(|at| (100 * u64::from(at), us(1000))));
    bench
}

const fn error(part: Part) -> Fault {
    Fault::Error(part, HostError::Timeout, 0)
}

/// Returns the engine's acts since it was turned on, without [`ActKind::HandleStatus`].
fn recovery(bench: &Bench) -> Vec<Did> {
    bench
        .did
        .iter()
        .filter(|did| did.sector == ENGINE && did.kind != ActKind::HandleStatus)
        .skip(TURNED_ON.len())
        .copied()
        .collect()
}

fn kinds(bench: &Bench) -> Vec<ActKind> {
    recovery(bench).iter().map(|did| did.kind).collect()
}

/// Returns how often the request at `sector` was given to the engine.
fn starts(bench: &Bench, sector: u64) -> usize {
    bench.did.iter().filter(|did| (did.kind, did.sector) == (ActKind::Start, sector)).count()
}

const BY_THE_BOOK: [ActKind; 8] = [
    HaltEngine,
    SendStatus,
    SendStop,
    SendStatus,
    DiscardTasks,
    SendStatus,
    HaltEngine,
    ClearTasks,
];

#[test]
fn after_a_data_error_of_one_task_all_tasks_are_tried_again() {
    for bios in [Bio::read as fn(u64, u32, u64) -> Bio, Bio::write] {
        let mut bench = failing(error(Part::Data));
        bench.submit((0..8).map(|at| bios(100 * at, 8, at)));
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        assert_eq!(kinds(&bench), BY_THE_BOOK);
        assert!(recovery(&bench).iter().all(|did| did.context == Context::Deferred));
        let again: Vec<_> = (0..8).map(|at| starts(&bench, 100 * at)).collect();
        assert_eq!(again, [2; 8]);
        let tasks = bench.script().engine.tasks.iter().map(|task| task.address);
        let expected = (0..8).chain(0..8).map(|at| 100 * at);
        assert!(tasks.eq(expected), "the tasks should keep their order");
        let counts = Counts { failures: 1, ..Counts::default() };
        assert_eq!(bench.mmc().counts(), counts, "one task has failed");
    }
}

#[test]
fn no_stop_is_sent_to_a_card_that_transfers_nothing() {
    for part in [Part::Announce, Part::Command, Part::Stop, Part::Busy] {
        let mut bench = failing(error(part));
        bench.writes(4);
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
        let expected: Vec<_> = BY_THE_BOOK.into_iter().filter(|act| *act != SendStop).collect();
        let asks_once = [&expected[..1], &expected[2..]].concat();
        assert_eq!(kinds(&bench), asks_once, "{part:?}");
    }
}

/// Returns the time from the end of the act at `before` to the start of the next one.
fn pause(bench: &Bench, before: usize) -> Duration {
    let acts = recovery(bench);
    acts[before + 1].from.since(acts[before].to)
}

/// [halt-frees-bus].
#[test]
fn an_engine_that_does_not_halt_in_time_loses_the_bus_and_is_restarted() {
    let halts = [HaltEngine, SendStatus, SendStop, SendStatus, DiscardTasks, SendStatus];
    let last = [HaltEngine, ClearTasks];
    let restarts = [HaltEngine, ClearTasks, RestartEngine];
    for (deaf, end) in [
        ([true, false, false], &last[..]),
        ([false, true, false], &restarts[..]),
        ([false, false, true], &restarts[..]),
        ([false, true, true], &restarts[..]),
        ([true, true, true], &restarts[..]),
    ] {
        let mut bench = failing(error(Part::Data));
        bench.script().engine.deaf.extend(deaf);
        bench.reads(8);
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        assert_eq!(kinds(&bench), [&halts[..], end].concat(), "{deaf:?}");
        let limits = [(0, HALT_LIMIT), (6, LAST_HALT_LIMIT), (7, CLEAR_LIMIT)];
        for ((step, limit), deaf) in limits.into_iter().zip(deaf) {
            if deaf {
                assert_eq!(pause(&bench, step), limit);
            } else if step + 1 < kinds(&bench).len() {
                assert!(pause(&bench, step) < us(10));
            }
        }
        assert_eq!(bench.script().resets, 0);
    }
}

#[test]
fn the_recovery_survives_a_failure_of_any_of_its_commands() {
    let bits = [CardStatus::ERROR, CardStatus::ILLEGAL_COMMAND, CardStatus::SWITCH_ERROR];
    let faults = [Part::Command, Part::Busy].map(error).into_iter();
    let faults = faults.chain(bits.map(|bits| Fault::Bits(Part::Command, bits)));
    for fault in faults {
        for at in 0..5 {
            for first in [Part::Data, Part::Command] {
                let mut bench = failing(error(first));
                bench.script().faults.insert(FIRST + 1 + at, fault);
                bench.submit(mixture(at as u64, 20));
                bench.settle();
                bench.all_ended_with(Status::Ok, 20);
            }
        }
    }
}

#[test]
fn a_card_that_ignores_a_recovery_command_is_reset_and_its_queue_turned_on_again() {
    let data = [HaltEngine, SendStatus, SendStop, SendStatus, DiscardTasks];
    // No response comes from that command on. Repeated and unanswered commands count: three times
    // in all.
    for (step, more) in [(1, 2), (2, 1), (4, 1)] {
        let mut bench = failing(error(Part::Data));
        let silent = FIRST + step..=FIRST + step + more;
        bench.script().faults.extend(silent.map(|at| (at, error(Part::Command))));
        bench.reads(8);
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        let asked = vec![SendStatus; more];
        let expected = [&data[..=step], &asked, &[Reset], &TURNED_ON].concat();
        assert_eq!(kinds(&bench), expected, "{step}");
        assert_eq!((bench.script().resets, bench.script().engine.clears.len()), (1, 0));
    }
}

#[test]
fn a_card_that_stays_busy_is_reset_after_the_limit() {
    let mut bench = failing(error(Part::Data));
    bench.script().busy = Duration::from_secs(100);
    bench.writes(1);
    let transfer = Instant::ZERO + Duration::from_secs(101);
    bench.until(transfer);
    bench.script().busy = us(10);
    bench.settle();
    assert_eq!(bench.script().resets, 1);
    bench.all_ended_with(Status::Ok, 1);
    let reset = bench.the(Reset, ENGINE).from;
    let stopped = bench.the(SendStop, ENGINE).to;
    let took = reset.since(stopped);
    assert!(took >= BUSY_LIMIT && took < BUSY_LIMIT + LONGEST_PAUSE + us(100), "{took:?}");
}

#[test]
fn tasks_done_during_a_recovery_end_after_it_and_are_not_repeated() {
    // The engine does not halt, and runs the other tasks until it loses the bus.
    let mut bench = failing(error(Part::Busy));
    bench.script().engine.deaf.push_back(true);
    bench.reads(8);
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    let cleared = bench.the(ClearTasks, ENGINE).to;
    let halted = recovery(&bench)[0].from;
    for sector in (1..8).map(|at| 100 * at) {
        let span = bench.span(sector);
        assert!(span.to > halted && span.to < halted + HALT_LIMIT, "{span:?}");
        assert!(bench.the(ActKind::Post, sector).from >= cleared);
        assert_eq!(starts(&bench, sector), 1);
    }
    assert_eq!(starts(&bench, 0), 2);
}

/// Eight reads are all repeated and succeed.
fn go_over_twice(bench: &mut Bench) {
    bench.reads(8);
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    let again: Vec<_> = (0..8).map(|at| starts(bench, 100 * at)).collect();
    assert_eq!(again, [2; 8]);
    assert_eq!(bench.mmc().counts().failures, 1, "only the first task should count as failed");
}

/// A lost response to the engine may have reported a failure ([suspect-tasks-redone]).
#[test]
fn tasks_done_during_a_recovery_are_repeated_if_a_response_got_lost() {
    for lost in [HostError::Damaged, HostError::Timeout] {
        let mut bench = failing(Fault::Error(Part::Command, lost, 0));
        bench.script().engine.deaf.push_back(true);
        go_over_twice(&mut bench);
    }
}

#[test]
fn tasks_done_during_a_recovery_are_repeated_if_the_card_reports_a_failure() {
    // Seven other tasks are done before CMD13, CMD48 and CMD13 follow.
    for says in 8..11 {
        let mut bench = failing(error(Part::Command));
        bench.script().engine.deaf.push_back(true);
        let says_so = Fault::Bits(Part::Command, CardStatus::ERROR);
        bench.script().faults.insert(FIRST + says, says_so);
        go_over_twice(&mut bench);
    }
}

/// Returns the tries of a one-sector read and of a write whose transfers always fail with `fault`,
/// the resets, and the final statuses.
fn fail_every_try(bio: Bio, fault: Fault) -> (Vec<u16>, u32, Status) {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.script().bad_sector =
        Some((bio.sector + u64::from(bio.sectors) - 1, Some(fault), Some(fault)));
    bench.submit([bio]);
    bench.settle();
    let tasks = bench.script().engine.tasks.iter().map(|task| task.parameters.blocks).collect();
    (tasks, bench.script().resets, bench.ended[&bio.cookie])
}

#[test]
fn a_task_that_always_fails_is_tried_as_often_as_a_transfer() {
    let ecc = Fault::Bits(Part::Command, CardStatus::CARD_ECC_FAILED);
    for (bio, fault, tasks, status) in [
        (Bio::write(0, 8, 0), error(Part::Command), vec![8; 6], Status::Timeout),
        (Bio::write(0, 8, 0), error(Part::Data), vec![8; 3], Status::Timeout),
        (Bio::write(0, 8, 0), ecc, vec![8; 6], Status::Medium),
        (Bio::read(0, 1, 0), ecc, vec![1; 6], Status::Medium),
        // The read continues by sectors up to the bad one, the last.
        (Bio::read(0, 4, 0), error(Part::Data), [vec![4; 3], vec![1; 5]].concat(), Status::Timeout),
    ] {
        assert_eq!(fail_every_try(bio, fault), (tasks, 1, status), "{bio:?} {fault:?}");
    }
}

#[test]
fn a_failure_without_a_task_is_the_oldest_tasks() {
    for part in [Part::Announce, Part::Stop] {
        let bio = Bio::write(0, 8, 0);
        let (tasks, resets, status) = fail_every_try(bio, error(part));
        let tries = if part == Part::Announce { 6 } else { 3 };
        assert_eq!((tasks.len(), resets, status), (tries, 1, Status::Timeout), "{part:?}");
    }
    // The first task that fails is not the oldest. The oldest is marked and loses a try.
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.script().engine.access.insert(0, us(5000));
    let fault = error(Part::Announce);
    bench.script().bad_sector = Some((101, Some(fault), Some(fault)));
    bench.writes(3);
    bench.settle();
    assert_eq!((bench.ended[&0], bench.ended[&2]), (Status::Timeout, Status::Ok));
    assert_eq!(bench.ended[&1], Status::Timeout, "once it is the oldest");
}

#[test]
fn a_failure_marks_each_task_that_it_names() {
    let mut bench = failing(Fault::Drift);
    bench.reads(4);
    bench.until(Instant::ZERO + us(500));
    let tasks = TaskSet(0b1010);
    let part = Part::Data;
    let error = HostError::Memory;
    bench.interrupt(HostEvent::Engine(EngineEvent::Failed { tasks, part, error }));
    assert_eq!(bench.mmc().counts().failures, 2);
    let retries: Vec<_> = bench.mmc().slots[..4].iter().map(|slot| slot.retries).collect();
    assert_eq!(retries, [0; 4]);
    bench.until(Instant::ZERO + us(900));
    let retries: Vec<_> = bench.mmc().slots[..4].iter().map(|slot| slot.retries).collect();
    assert_eq!(retries, [0, 4, 0, 4], "[retries-bounded]: two tries are left, less this one");
    bench.settle();
    bench.all_ended_with(Status::Ok, 4);
}

#[test]
fn the_first_mark_of_a_task_counts() {
    let mut bench = failing(Fault::Drift);
    bench.script().engine.deaf.push_back(true);
    bench.reads(4);
    bench.until(Instant::ZERO + us(500));
    let events = [fails_in_memory(1), task_done(1), task_done(2), fails_in_memory(2)];
    events.map(HostEvent::Engine).into_iter().for_each(|event| bench.interrupt(event));
    let marks: Vec<_> = bench.mmc().slots[1..3].iter().map(|slot| slot.mark).collect();
    assert!(matches!(marks[..], [Mark::Failed(_), Mark::Done]), "{marks:?}");
    let counts = Counts { failures: 1, strays: 1, ..Counts::default() };
    assert_eq!(bench.mmc().counts(), counts);
}

fn fails_in_memory(number: u8) -> EngineEvent {
    EngineEvent::Failed {
        tasks: TaskSet::of(TaskId::new(number)),
        part: Part::Data,
        error: HostError::Memory,
    }
}

#[test]
fn a_task_that_takes_too_long_is_a_failure() {
    let mut bench = failing(Fault::Silence);
    bench.reads(3);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    assert_eq!(kinds(&bench), BY_THE_BOOK);
    let started = bench.did.iter().find(|did| did.kind == ActKind::Start).unwrap().to;
    assert_eq!(recovery(&bench)[0].from, started + TASK_LIMIT);
    assert_eq!(bench.mmc().counts().failures, 1, "the other tasks have time left");
}

#[test]
fn an_exception_alone_is_counted_and_is_no_failure() {
    let mut bench = failing(Fault::Bits(Part::Command, CardStatus::EXCEPTION_EVENT));
    bench.reads(8);
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    assert_eq!(bench.mmc().counts(), Counts { exceptions: 1, ..Counts::default() });
    assert_eq!(kinds(&bench), []);
    let both = CardStatus::EXCEPTION_EVENT | CardStatus::ERROR;
    let mut bench = failing(Fault::Bits(Part::Command, both));
    bench.reads(8);
    bench.settle();
    let counts = Counts { exceptions: 1, failures: 1, ..Counts::default() };
    assert_eq!(bench.mmc().counts(), counts);
}

#[test]
fn damaged_data_has_the_bus_tuned_before_the_next_try() {
    let mut bench = failing(Fault::Error(Part::Data, HostError::Damaged, 0));
    bench.script().tuned = true;
    bench.reads(8);
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    let off = [ActKind::DisableEngine, SwitchQueue, SendStatus, ActKind::Retune];
    assert_eq!(kinds(&bench), [&BY_THE_BOOK[..], &off, &TURNED_ON].concat());
}

#[test]
fn no_request_is_accepted_or_queued_during_a_recovery_of_the_engine() {
    let mut bench = failing(error(Part::Data));
    // The first task fails while others are prepared, and the engine does not obey for a long time.
    bench.script().engine.deaf.extend([true, true, true]);
    bench.script().engine.access.insert(0, us(0));
    bench.reads(6);
    bench.until(Instant::ZERO + Duration::from_ms(4));
    assert_eq!(bench.mmc().idle(), Idle::Halted);
    bench.submit((6..8).map(|at| Bio::read(100 * at, 8, at)));
    bench.until(Instant::ZERO + Duration::from_ms(5));
    assert_eq!(
        (bench.mmc().idle(), bench.mmc().slots_in_use),
        (Idle::Halted, 6),
        "two wait outside"
    );
    let ready = bench.mmc().slots.iter().filter(|slot| slot.stage == Stage::Ready).count();
    assert!(ready > 0, "some requests were prepared meanwhile");
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    let recovered = recovery(&bench);
    let from = recovered[0].from;
    let to = recovered.last().unwrap().to;
    assert_eq!(
        bench
            .did
            .iter()
            .find(|did| did.kind == ActKind::Start && did.from >= from && did.from < to),
        None
    );
}

#[test]
fn removing_the_card_at_any_step_ends_every_request_once() {
    let mut seen = std::collections::BTreeSet::new();
    let mut whole = failing_until_reset();
    whole.settle();
    // At the start, in the middle and at the end of every act.
    let acts = whole.did.iter().filter(|did| did.sector == ENGINE);
    let instants: Vec<_> = acts
        .flat_map(|did| {
            let from = did.from.as_ns();
            let to = did.to.as_ns();
            [from, u64::midpoint(from, to), to, to + 1000].map(|at| (did.kind, at))
        })
        .collect();
    for (kind, at) in instants {
        let mut bench = failing_until_reset();
        bench.until(Instant::from_ns(at));
        let ended = bench.ended.len();
        bench.pull_out();
        let pulled = bench.now;
        bench.settle();
        assert_eq!(bench.ended.len(), 30);
        let gone = bench.ended.values().filter(|status| **status == Status::Gone).count();
        assert!(gone > 0 && gone <= 30 - ended, "{kind:?} at {at}");
        assert_eq!(
            bench.did.iter().find(|did| {
                did.from > pulled && !matches!(did.kind, ActKind::Post | ActKind::Complete)
            }),
            None,
            "{kind:?} at {at}"
        );
        seen.insert(kind);
    }
    let steps = [
        HaltEngine,
        SendStatus,
        SendStop,
        DiscardTasks,
        ClearTasks,
        RestartEngine,
        Reset,
        SwitchQueue,
        EnableEngine,
        ActKind::DisableEngine,
        ActKind::Retune,
    ];
    assert!(steps.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}

fn failing_until_reset() -> Bench {
    let mut bench = failing(error(Part::Data));
    bench.script().tuned = true;
    bench.script().engine.deaf.extend([true, true, true]);
    // A later recovery's CMD48 gets no response, which leads to a reset.
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    bench.script().bad_sector = Some((301, Some(fault), None));
    bench.submit(mixture(9, 30));
    bench
}

#[test]
fn a_card_that_does_not_survive_the_engines_reset_counts_as_removed() {
    let mut bench = failing(error(Part::Data));
    bench.script().dies_at_reset = true;
    bench.script().faults.extend((1..40).map(|at| (FIRST + at, error(Part::Command))));
    bench.reads(12);
    bench.settle();
    bench.all_ended_with(Status::Gone, 12);
    assert_eq!(bench.script().resets, 1);
    let sent = bench.spans().iter().filter(|span| span.command == Opcode::ManageTasks).count();
    assert_eq!(sent, 0);
}

#[test]
fn a_lost_response_to_a_command_for_the_engine_costs_ten_seconds_but_no_request() {
    for at in 1..6 {
        let mut bench = failing(error(Part::Data));
        bench.script().faults.insert(FIRST + at, Fault::Silence);
        bench.reads(8);
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        let took = bench.now.since(Instant::ZERO);
        assert!(took >= REQUEST_LIMIT, "{at}: {took:?}");
    }
}
