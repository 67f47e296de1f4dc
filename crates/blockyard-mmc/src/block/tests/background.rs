//! Urgent background operations: when and how long they run, and that they fail no request.

use super::*;
use crate::command::Opcode;
use crate::controller::{HostError, Part};
use scripted::BACKGROUND;

fn bench(policy: HostPolicy, target: Target) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, target, policy)
}

fn simple(busy: BusyDetect) -> Bench {
    bench(HostPolicy::new(Pipeline::TwoSlotFull, busy), emmc_by_host())
}

/// The starts of two transfers, between which background operations become urgent.
fn becomes_urgent(bench: &mut Bench) {
    bench.until(Instant::ZERO + us(300));
    bench.script().level = 2;
}

#[test]
fn urgent_background_operations_run_once_between_two_requests() {
    for policy in every_policy() {
        let mut bench = bench(policy, emmc_by_host());
        bench.reads(50); // more than the engine holds
        becomes_urgent(&mut bench);
        bench.settle();
        bench.all_ended_with(Status::Ok, 50);
        let counts = bench.mmc().counts();
        assert_eq!(
            (counts.bkops_starts, counts.bkops_interrupts, counts.failures),
            (1, 0, 0),
            "{policy:?}"
        );
        assert_eq!(counts.events, ExceptionEvents(ExceptionEvents::URGENT_BKOPS));
        assert_eq!(bench.script().log, [BACKGROUND]);
        let spans = bench.spans();
        let look = spans.iter().position(|span| span.command == Opcode::SendExtCsd).unwrap();
        assert_eq!(spans[look + 1].command, Opcode::Switch);
        let is_between = policy.pipeline == Pipeline::Cqe || spans[look - 1].sector.is_some();
        assert!(is_between && spans.iter().all(|span| span.from <= span.to));
        // The next transfer starts when the card is ready again.
        let next = spans[look + 2..].iter().find(|span| span.sector.is_some()).unwrap();
        assert!(next.from >= spans[look + 1].from + Duration::from_ms(20), "{policy:?}");
    }
}

#[test]
fn the_request_with_the_exception_is_reported_after_background_operations() {
    for pipeline in EVERY_PIPELINE {
        let mut bench = bench(HostPolicy::new(pipeline, BusyDetect::Hardware), emmc_by_host());
        bench.script().level = 2;
        bench.submit([Bio::write(0, 8, 0)]);
        bench.until(Instant::ZERO + Duration::from_ms(10));
        // With an engine, the host starts the operations after a task has been reported.
        let ended = usize::from(pipeline == Pipeline::Cqe);
        assert_eq!((bench.ended.len(), bench.mmc().idle()), (ended, Idle::Halted), "{pipeline:?}");
        bench.submit([Bio::read(500, 8, 1)]);
        bench.until(Instant::ZERO + Duration::from_ms(15));
        assert_eq!(bench.mmc().slots_in_use, 1, "[no-intake-in-recovery]");
        bench.settle();
        bench.all_ended_with(Status::Ok, 2);
    }
}

#[test]
fn a_lower_level_and_a_card_with_automatic_operations_start_nothing() {
    // EXT_CSD is read and reports a lower level.
    let mut bench = simple(BusyDetect::Hardware);
    let bit = crate::command::status::Status::EXCEPTION_EVENT;
    bench.script().faults.insert(0, Fault::Bits(Part::Command, bit));
    bench.script().level = 1;
    bench.script().ext_csd[usize::from(index::EXCEPTION_EVENTS_STATUS) + 1] = 1;
    bench.reads(2);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((count_register_reads(&bench), bench.count(ActKind::SendCommand)), (1, 0));
    assert_eq!(bench.mmc().counts().events, ExceptionEvents(1 << 8));
    // EXT_CSD is not read.
    for target in [emmc(), CARD] {
        let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Status);
        let mut bench = super::background::bench(policy, target);
        bench.script().level = 3;
        bench.reads(2);
        bench.settle();
        bench.all_ended_with(Status::Ok, 2);
        assert_eq!((count_register_reads(&bench), bench.mmc().counts().exceptions), (0, 2));
    }
}

fn count_register_reads(bench: &Bench) -> usize {
    bench.count(ActKind::ReadRegister)
}

#[test]
fn after_two_minutes_the_card_is_interrupted_or_otherwise_reset() {
    let way = [
        (Some(Hpi::SendStatus), Opcode::InterruptByStatus, 0),
        (Some(Hpi::StopTransmission), Opcode::InterruptByStop, 0),
        (None, Opcode::Switch, 1),
    ];
    for busy in EVERY_BUSY {
        for (hpi, last, resets) in way {
            for (takes, interrupts) in [(119, false), (121, true), (10_000, true)] {
                let policy = HostPolicy::new(Pipeline::TwoSlotFull, busy);
                let mut bench = bench(policy, Target { hpi, ..emmc_by_host() });
                bench.script().level = 2;
                bench.script().bkops_busy = Duration::from_secs(takes);
                bench.reads(2);
                bench.settle();
                bench.all_ended_with(Status::Ok, 2);
                let counts = bench.mmc().counts();
                let script = bench.script();
                let command = script.log.last().unwrap().opcode;
                let asked = u64::from(interrupts && hpi.is_some());
                assert_eq!(
                    (counts.bkops_starts, counts.bkops_interrupts),
                    (1, asked),
                    "{busy:?} {takes}"
                );
                assert_eq!(script.resets, if interrupts { resets } else { 0 });
                assert_eq!(command, if interrupts { last } else { Opcode::Switch });
                let most = if interrupts { 120 } else { takes };
                assert!(bench.now >= Instant::ZERO + Duration::from_secs(most));
                assert!(bench.now < Instant::ZERO + Duration::from_secs(most + 1), "{}", bench.now);
            }
        }
    }
}

#[test]
fn a_card_that_does_not_stop_in_time_after_an_interrupt_is_reset() {
    for busy in EVERY_BUSY {
        // OUT_OF_INTERRUPT_TIME of the device is 50 ms.
        for (takes, resets) in [(10, 0), (95, 1), (60_000, 1)] {
            let mut bench = simple(busy);
            bench.script().level = 2;
            bench.script().bkops_busy = Duration::from_secs(1000);
            bench.script().interrupt_busy = Duration::from_ms(takes);
            bench.writes(2);
            bench.settle();
            bench.all_ended_with(Status::Ok, 2);
            assert_eq!(bench.script().resets, resets, "{busy:?} {takes}");
            assert!(bench.now < Instant::ZERO + Duration::from_secs(121));
        }
    }
}

/// Returns how many MMC requests there are up to the first task's.
fn engine_is_on(policy: HostPolicy) -> usize {
    let mut bench = bench(policy, emmc_by_host());
    bench.submit([Bio::write(0, 8, 0)]);
    bench.settle();
    1 + bench
        .spans()
        .iter()
        .position(|span| span.command == Opcode::ExecuteWrite)
        .expect("the request should have a task")
}

#[test]
fn no_error_of_background_operations_fails_or_repeats_the_request() {
    for policy in every_policy() {
        // An engine is turned on first, by a command and a CMD13.
        let first = if policy.pipeline == Pipeline::Cqe { engine_is_on(policy) } else { 1 };
        for at in first..first + 10 {
            for fault in [
                Fault::Error(Part::Command, HostError::Timeout, 0),
                Fault::Error(Part::Data, HostError::Damaged, 0),
                Fault::Error(Part::Busy, HostError::Timeout, 0),
                Fault::Bits(Part::Command, crate::command::status::Status::SWITCH_ERROR),
                Fault::Silence,
                Fault::Gone,
            ] {
                let mut bench = bench(policy, emmc_by_host());
                bench.script().level = 2;
                bench.submit([Bio::write(0, 8, 0)]);
                let mut at = at;
                let hardware = policy.busy == BusyDetect::Hardware;
                // After the write and the commands that follow it.
                if !hardware && policy.pipeline != Pipeline::Cqe {
                    bench.script().busy = us(0);
                    at += 1;
                }
                bench.script().faults.insert(at, fault);
                bench.settle();
                bench.all_ended_with(Status::Ok, 1);
                let starts = bench.count(ActKind::Start);
                assert_eq!(starts, 1, "{policy:?} {fault:?} at {at}");
            }
        }
    }
}

#[test]
fn the_exception_of_an_exclusive_operation_runs_background_operations_too() {
    let mut bench = simple(BusyDetect::Status);
    bench.script().level = 2;
    bench.submit([Bio::new(Op::Flush, 0, 0, 0), Bio::read(0, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!(bench.script().log.len(), 2);
    assert_eq!(bench.script().log[1], BACKGROUND);
}

#[test]
fn an_error_of_background_operations_keeps_the_result_of_a_read() {
    let mut bench = simple(BusyDetect::Hardware);
    let damaged = Fault::Error(Part::Data, HostError::Damaged, 0);
    bench.script().bad_sector = Some((105, Some(damaged), Some(damaged)));
    bench.script().level = 2;
    bench.submit([Bio::read(100, 8, 0)]);
    bench.settle();
    let at = bench
        .spans()
        .iter()
        .position(|span| span.command == Opcode::SendExtCsd)
        .expect("EXT_CSD should be read");
    let failures = bench.mmc().counts().failures;
    let expected = Outcome::Partial { sectors: 5, status: Status::IoError };
    for error in [0, crate::command::status::Status::ERROR] {
        let mut bench = simple(BusyDetect::Hardware);
        bench.script().bad_sector = Some((105, Some(damaged), Some(damaged)));
        bench.script().level = 2;
        bench.script().faults.insert(at, Fault::Bits(Part::Command, error));
        bench.submit([Bio::read(100, 8, 0)]);
        bench.settle();
        assert_eq!(bench.outcomes, [expected]);
        let more = u64::from(error != 0);
        assert_eq!(bench.mmc().counts().failures, failures + more, "the read of EXT_CSD failed");
    }
}

/// The card reports in its response to the read of EXT_CSD that the write before it failed. That
/// write is still held ([late-write-error-fails-flush]).
#[test]
fn a_write_whose_failure_shows_when_background_operations_begin_ends_with_an_error() {
    let mut bench = simple(BusyDetect::Hardware);
    bench.script().level = 2;
    let error = crate::command::status::Status::ERROR;
    bench.script().faults.insert(1, Fault::Bits(Part::Command, error));
    bench.submit([Bio::write(0, 8, 0)]);
    bench.settle();
    assert_eq!(bench.spans()[1].command, Opcode::SendExtCsd);
    bench.all_ended_with(Status::IoError, 1);
    assert_eq!((bench.mmc().counts().lost_writes, bench.mmc().counts().bkops_starts), (0, 1));
}

#[test]
fn deferred_work_starts_the_next_request_after_background_operations() {
    let hsq = Pipeline::Hsq(HsqPolicy { defer: HsqDefer::Never, ..HsqPolicy::TODAY });
    let mut bench = bench(HostPolicy::new(hsq, BusyDetect::Hardware), emmc_by_host());
    bench.script().level = 2;
    bench.reads(4);
    bench.settle();
    let by = [100, 200].map(|sector| bench.the(ActKind::Start, sector).context);
    assert_eq!(by, [Context::Deferred, Context::Interrupt]);
}
