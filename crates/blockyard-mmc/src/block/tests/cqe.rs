//! The command queue engine: how it is turned on and off, and what runs in parallel
//! ([engine-owns-bus]).

use super::*;
use crate::command::Opcode;
use crate::command::queue::TaskId;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};
use crate::engine::{EngineEvent, TaskSet};
use blockyard::bio::{IoPrio, PrioClass};

fn cqe() -> Bench {
    Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware))
}

fn at(us: u64) -> Instant {
    Instant::ZERO + super::us(us)
}

/// The acts for the engine itself, without [`ActKind::HandleStatus`].
fn of_engine(bench: &Bench) -> Vec<ActKind> {
    bench
        .did
        .iter()
        .filter(|did| did.sector == ENGINE && did.kind != ActKind::HandleStatus)
        .map(|did| did.kind)
        .collect()
}

const TURNED_ON: [ActKind; 3] = [ActKind::SwitchQueue, ActKind::SendStatus, ActKind::EnableEngine];
const TURNED_OFF: [ActKind; 3] =
    [ActKind::DisableEngine, ActKind::SwitchQueue, ActKind::SendStatus];

#[test]
fn a_pause_begins_when_deferred_work_has_found_the_card_busy() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Status));
    bench.script().queue_busy = us(500);
    bench.reads(1);
    bench.settle();
    let seen: Vec<_> = acts_of_engine(&bench, ActKind::HandleStatus).map(|did| did.to).collect();
    let asked: Vec<_> =
        acts_of_engine(&bench, ActKind::SendStatus).skip(1).map(|did| did.from).collect();
    let pauses: Vec<_> = asked.iter().zip(&seen).map(|(to, from)| to.since(*from)).collect();
    assert!(pauses.starts_with(&[us(32), us(64)]), "{pauses:?}");
}

fn acts_of_engine(bench: &Bench, kind: ActKind) -> impl Iterator<Item = &Did> {
    bench.did.iter().filter(move |did| (did.kind, did.sector) == (kind, ENGINE))
}

#[test]
fn tasks_wait_for_the_card_in_parallel_and_for_the_bus_in_turn() {
    let mut bench = cqe();
    bench.script().engine.access.extend((0..8).map(|sector: u64| (100 * sector, us(1000))));
    bench.reads(8);
    bench.settle();
    bench.all_ended_with(Status::Ok, 8);
    // Prepare 50, start 5. The queue is turned on during the second preparation.
    for (sector, from) in [(0, 100), (100, 105), (200, 160), (300, 215), (700, 435)] {
        assert_eq!(bench.the(ActKind::Start, sector).from, at(from), "{sector}");
    }
    // Two commands of 2 us and 1000 us until data is ready; then a command and 8 blocks of 20 us
    // for each task.
    for task in 0..8 {
        let from = 1109 + 162 * task;
        let to = 1109 + 162 * (task + 1);
        let span = bench.span(100 * task);
        assert_eq!((span.from, span.to), (at(from), at(to)));
        let cleanup = bench.the(ActKind::Post, 100 * task);
        assert_eq!((cleanup.from, cleanup.context), (at(to), Context::Deferred));
    }
    assert_eq!(bench.script().engine.most_held, 8);
}

#[test]
fn the_depth_is_the_lesser_of_card_and_host_and_at_most_31_with_direct_commands() {
    for (card, host, direct, expected) in [
        (8, 32, true, 8),
        (32, 4, true, 4),
        (32, 32, true, 31),
        (32, 32, false, 32),
        (31, 32, false, 31),
        (1, 32, true, 1),
    ] {
        let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Status);
        let mut controller = Scripted::new(Transfer::Dma, BusyDetect::Status);
        controller.capabilities.queue_engine_depth = host;
        controller.capabilities.queue_engine_direct = direct;
        let target = Target { queue_depth: card, ..CARD };
        let mut bench = Bench::over(Policies::NONE, Mmc::new(controller, target, policy).unwrap());
        bench
            .script()
            .engine
            .access
            .extend((0..100).map(|sector: u64| (100 * sector, Duration::from_ms(10))));
        bench.reads(100);
        bench.settle();
        bench.all_ended_with(Status::Ok, 100);
        let most = (bench.script().engine.most_held, usize::from(bench.most_held));
        assert_eq!(most, (expected, expected), "{card} and {host}");
    }
}

#[test]
fn a_pipeline_without_a_queue_on_both_sides_is_refused() {
    assert_eq!(refusal(8, 8, Transfer::Dma, false), None);
    assert_eq!(refusal(8, 1, Transfer::Dma, false), None);
    assert_eq!(refusal(8, 8, Transfer::Dma, true), Some(Unsupported::NoEngine));
    assert_eq!(refusal(0, 8, Transfer::Dma, false), Some(Unsupported::NoCardQueue));
    assert_eq!(refusal(8, 0, Transfer::Dma, false), Some(Unsupported::NoEngine));
    assert_eq!(refusal(8, 8, Transfer::Pio, false), Some(Unsupported::EngineCopiesNothing));
}

fn refusal(card: u8, host: u8, transfer: Transfer, engineless: bool) -> Option<Unsupported> {
    let mut controller = Scripted::new(transfer, BusyDetect::Status);
    controller.capabilities.queue_engine_depth = host;
    controller.engineless = engineless;
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Status);
    let target = Target { queue_depth: card, ..CARD };
    Mmc::new(controller, target, HostPolicy { transfer, ..policy }).err()
}

#[test]
fn tasks_end_in_the_order_in_which_their_data_is_ready() {
    let mut bench = cqe();
    bench.script().engine.access.extend([(0, us(4000)), (100, us(8000)), (200, us(2000))]);
    bench.reads(6);
    bench.settle();
    bench.all_ended_with(Status::Ok, 6);
    let completed = bench.did.iter().filter(|did| did.kind == ActKind::Complete);
    let order: Vec<_> = completed.map(|did| did.sector).collect();
    assert_eq!(order, [300, 400, 500, 200, 0, 100]);
}

#[test]
fn only_queue_commands_are_sent_while_the_queue_is_on() {
    let mut bench = cqe();
    bench.submit(mixture(2, 200));
    bench.settle();
    bench.all_ended_with(Status::Ok, 200);
    let indices: Vec<_> = bench.script().commands.keys().copied().collect();
    assert_eq!(indices, [6, 13, 44, 45, 46, 47]);
    assert_eq!(of_engine(&bench), TURNED_ON, "the engine is turned on once");
    assert_eq!(bench.mmc().counts(), Counts::default());
}

#[test]
fn a_task_has_the_parameters_of_its_request() {
    let mut bench = cqe();
    bench.script().unit = 512;
    bench.mmc().target.addressing = Addressing::Bytes;
    let urgent = IoPrio { class: PrioClass::RealTime, level: 3 };
    bench.submit([Bio::write(100, 16, 0), Bio::read(200, 1, 1).with_prio(urgent)]);
    bench.settle();
    let tasks = bench.script().engine.tasks.clone();
    let said: Vec<_> = tasks
        .iter()
        .map(|task| (task.address, task.parameters.blocks, task.parameters.high_priority))
        .collect();
    assert_eq!(said, [(51_200, 16, false), (102_400, 1, true)]);
}

#[test]
fn a_disabled_host_turns_the_engine_off_once_idle_and_on_at_the_next_request() {
    let mut bench = cqe();
    bench.reads(3);
    bench.until(at(200));
    let now = bench.now;
    bench.mmc().disable(now);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    assert!(bench.mmc().is_enabled(), "the engine still has the bus");
    bench.until(now + Duration::from_ms(5));
    assert!(!bench.mmc().is_enabled());
    assert_eq!(of_engine(&bench), [TURNED_ON, TURNED_OFF].concat());
    bench.mmc().enable().unwrap();
    bench.until(now + Duration::from_ms(10));
    assert_eq!(of_engine(&bench).len(), 6, "no request needs the engine yet");
    bench.submit([Bio::read(9000, 8, 9)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 4);
    assert_eq!(of_engine(&bench), [TURNED_ON, TURNED_OFF, TURNED_ON].concat());
}

#[test]
fn a_host_that_is_busy_for_half_a_second_stays_enabled_with_its_engine_on() {
    let mut bench = cqe();
    bench.script().engine.access.insert(0, Duration::from_ms(700));
    bench.reads(1);
    bench.until(at(200));
    let now = bench.now;
    bench.mmc().disable(now);
    bench.until(now + DISABLE_LIMIT + us(1));
    assert_eq!(bench.mmc().power, Power::On);
    bench.settle();
    assert_eq!(of_engine(&bench), TURNED_ON);
}

#[test]
fn a_drifted_bus_is_tuned_between_the_last_task_and_the_next() {
    let mut bench = cqe();
    bench.script().tuned = true;
    bench.script().engine.access.insert(500, us(3000));
    // The first transfer comes after CMD6 and CMD13.
    bench.script().faults.insert(2, Fault::Drift);
    bench.reads(12);
    bench.settle();
    bench.all_ended_with(Status::Ok, 12);
    let expected = [&TURNED_ON[..], &TURNED_OFF, &[ActKind::Retune], &TURNED_ON].concat();
    assert_eq!(of_engine(&bench), expected);
    let retune = bench.the(ActKind::Retune, ENGINE);
    let drift = bench.span(0).to;
    assert_eq!(
        bench
            .did
            .iter()
            .find(|did| did.kind == ActKind::Start && did.from > drift && did.from < retune.to),
        None
    );
    for task in 0..12 {
        let span = bench.span(100 * task);
        assert!(span.to <= retune.from || span.from >= retune.to, "{span:?}");
    }
    assert_eq!(bench.script().retunes, 1);
}

#[test]
fn an_idle_engine_stays_on_when_the_bus_drifts() {
    let mut bench = cqe();
    bench.script().tuned = true;
    bench.reads(1);
    bench.settle();
    bench.interrupt(HostEvent::RetuneNeeded);
    bench.until(at(100_000));
    assert_eq!(of_engine(&bench), TURNED_ON);
}

#[test]
fn unexpected_events_are_counted_as_stray() {
    let mut bench = cqe();
    bench.interrupt(HostEvent::Engine(task_done(0)));
    assert_eq!(bench.mmc().counts().strays, 1, "the engine is off");
    bench.script().engine.access.insert(0, us(3000));
    bench.reads(1);
    bench.until(at(500));
    for event in [EngineEvent::Halted, EngineEvent::Cleared] {
        bench.interrupt(HostEvent::Engine(event));
    }
    // An event of another task, of a task above the depth, and of a host without an engine.
    [1, 20, 31]
        .into_iter()
        .for_each(|number| bench.interrupt(HostEvent::Engine(task_done(number))));
    bench.interrupt(HostEvent::DataDone);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    bench.interrupt(HostEvent::Engine(task_done(0)));
    assert_eq!(bench.mmc().counts(), Counts { strays: 8, ..Counts::default() });

    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
    bench.interrupt(HostEvent::Engine(task_done(0)));
    assert_eq!(bench.mmc().counts().strays, 1, "there is no engine");
}

#[test]
fn a_queue_that_cannot_be_turned_on_fails_requests_in_bounded_time() {
    for fault in [
        Fault::Error(Part::Command, HostError::Timeout, 0),
        Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR),
    ] {
        let mut bench = cqe();
        bench.script().faults.extend((0..100_000).map(|at| (at, fault)));
        bench.reads(2);
        bench.settle();
        let expected = match fault {
            Fault::Bits(..) => Status::IoError,
            _ => Status::Timeout,
        };
        bench.all_ended_with(expected, 2);
        // Each request is tried six times, and a read then sector by sector.
        assert_eq!(bench.script().resets, 2 * (6 + 2));
        assert!(bench.script().engine.tasks.is_empty());
    }
}

#[test]
fn a_late_error_is_not_a_failure_of_the_task_whose_command_reports_it() {
    // [late-error-is-the-writes]: the first write is reported and lost, or the engine still has it
    // and writes it again. A response during a transfer may be about any write that has started, so
    // the first write is in doubt.
    for (when, opcode, (lost_writes, doubtful_writes), failures, transfers) in [
        (1500, Opcode::ExecuteWrite, (1, 0), 0, 3),
        (1500, Opcode::QueueTaskAddress, (0, 1), 1, 3),
        (250, Opcode::QueueTaskAddress, (0, 0), 1, 4),
    ] {
        let mut bench = cqe();
        bench.script().engine.access.extend([(100, us(3000)), (200, us(3000))]);
        bench.submit([0, 1, 2].map(|at| Bio::write(100 * at, 8, at)));
        bench.until(at(when));
        assert_eq!(bench.ended.contains_key(&0), when > 1000);
        bench.interrupt(HostEvent::Engine(EngineEvent::Responded {
            command: opcode.index(),
            tasks: TaskSet::of(TaskId::new(1)),
            status: CardStatus(CardStatus::ERROR),
        }));
        bench.settle();
        bench.all_ended_with(Status::Ok, 3);
        let counts = bench.mmc().counts();
        let writes = bench.spans().iter().filter(|span| span.sector.is_some()).count();
        let came = ((counts.lost_writes, counts.doubtful_writes), counts.failures, writes);
        assert_eq!(
            came,
            ((lost_writes, doubtful_writes), failures, transfers),
            "{opcode} at {when} us"
        );
    }
}

#[test]
fn an_exception_in_a_response_to_the_driver_of_the_engine_is_counted() {
    for at in 0..2 {
        let mut bench = cqe();
        bench.script().faults.insert(at, Fault::Bits(Part::Command, CardStatus::EXCEPTION_EVENT));
        bench.reads(1);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        assert_eq!(bench.mmc().counts(), Counts { exceptions: 1, ..Counts::default() });
    }
}

/// The first response after a write may be the one to the command that turns the queue off
/// ([late-error-is-the-writes]). Without such a write, the same bits say that the switch failed.
#[test]
fn a_late_error_reported_to_a_switch_of_the_queue_is_the_writes() {
    let late = Fault::Bits(Part::Command, CardStatus::ERROR);
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.writes(1);
    bench.settle();
    let next = bench.spans().len();
    bench.script().faults.insert(next, late);
    bench.until(bench.now + us(1));
    bench.submit([Bio::new(Op::Discard, 0, 1024, 1)]);
    bench.settle();
    assert_eq!(bench.spans()[next].command, Opcode::Switch);
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((bench.mmc().counts().lost_writes, bench.script().resets), (1, 0));
    // The status after the queue was turned on.
    let mut bench = cqe();
    bench.script().faults.insert(1, late);
    bench.reads(1);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    assert_eq!((bench.mmc().counts().failures, bench.script().resets), (1, 1));
}

/// The bus drifts at every transfer and at the command that turns the queue on. Each tuning lets
/// one task run.
#[test]
fn a_bus_that_always_drifts_does_not_starve_tasks() {
    let mut bench = cqe();
    bench.script().tuned = true;
    bench.script().faults.extend((0..1000).map(|at| (at, Fault::Drift)));
    bench.reads(4);
    bench.settle();
    bench.all_ended_with(Status::Ok, 4);
    assert!((1..=5).contains(&bench.script().retunes), "{}", bench.script().retunes);
}

/// During a recovery the card reports that it refused a queue command. That does not concern the
/// write reported before; bits for earlier work do ([late-error-is-the-writes]).
#[test]
fn only_bits_for_earlier_work_concern_a_write_before_a_recovery() {
    let illegal = CardStatus::ILLEGAL_COMMAND;
    let error = CardStatus::ERROR;
    let read = Bio::read(500, 8, 9);
    let write = Bio::write(500, 8, 9);
    for (bits, next_bio, lost_writes, doubtful_writes) in [
        (illegal, read, 0, 0),
        (error, read, 1, 0),
        // The bits may also be about this write, so it is repeated.
        (error, write, 0, 1),
    ] {
        let mut bench = cqe();
        bench.writes(1);
        bench.settle();
        let next = bench.spans().len();
        let late = Fault::Error(Part::Data, HostError::Timeout, 0);
        bench.script().faults.extend([(next, late), (next + 1, Fault::Bits(Part::Command, bits))]);
        bench.submit([next_bio]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 2);
        let counts = bench.mmc().counts();
        assert_eq!(
            (counts.lost_writes, counts.doubtful_writes),
            (lost_writes, doubtful_writes),
            "{next_bio:?}"
        );
    }
}
