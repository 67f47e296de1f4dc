//! Retuning the bus: when and in which context it happens, and its failures.

use super::*;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

fn tuned(pipeline: Pipeline, fault: Fault) -> Bench {
    let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
    bench.script().tuned = true;
    bench.script().faults.insert(2, fault);
    bench
}

#[test]
fn a_drifted_bus_is_tuned_once_right_before_the_next_start() {
    for pipeline in one_by_one() {
        let mut bench = tuned(pipeline, Fault::Drift);
        bench.reads(6);
        bench.settle();
        bench.all_ended_with(Status::Ok, 6);
        let retune = bench.the(ActKind::Retune, 300);
        let start = bench.the(ActKind::Start, 300);
        assert!(bench.span(200).to <= retune.from && retune.to <= start.from, "{pipeline:?}");
        let plan = Plan::of(pipeline, DEPTH);
        let tunes = thread_if(!plan.deferred.contains(&Job::Start));
        // What follows on the bus is done by the context that settles.
        let starts = thread_if(plan.thread.contains(&Job::Settle));
        assert_eq!((retune.context, start.context), (tunes, starts), "{pipeline:?}");
        assert_eq!(bench.script().retunes, 1);
    }
}

fn thread_if(is: bool) -> Context {
    if is { Context::Thread } else { Context::Deferred }
}

#[test]
fn damaged_data_is_retried_on_a_tuned_bus_and_late_data_is_not() {
    for (error, retunes) in [(HostError::Damaged, 1), (HostError::Timeout, 0)] {
        for pipeline in EVERY_PIPELINE {
            let mut bench = tuned(pipeline, Fault::Error(Part::Data, error, 0));
            bench.reads(6);
            bench.settle();
            bench.all_ended_with(Status::Ok, 6);
            assert_eq!((bench.script().retunes, bench.script().resets), (retunes, 0));
        }
    }
}

#[test]
fn a_bus_that_cannot_be_tuned_is_reset_and_an_untuned_one_is_left_alone() {
    for pipeline in EVERY_PIPELINE {
        for (is_tuned, retunes, resets) in [(true, 1, 1), (false, 0, 0)] {
            let mut bench = tuned(pipeline, Fault::Drift);
            (bench.script().tuned, bench.script().deaf) = (is_tuned, 1);
            bench.submit(mixture(3, 8));
            bench.settle();
            bench.all_ended_with(Status::Ok, 8);
            assert_eq!((bench.script().retunes, bench.script().resets), (retunes, resets));
        }
    }
}

#[test]
fn no_tuning_follows_a_reset() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware));
    bench.script().tuned = true;
    let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
    bench.script().bad_sector = Some((0, Some(fault), None));
    bench.writes(1);
    bench.settle();
    let order: Vec<_> = bench.did.iter().map(|did| did.kind).collect();
    let [tuned, reset] = [ActKind::Retune, ActKind::Reset]
        .map(|kind| order.iter().position(|&did| did == kind).unwrap());
    assert!(tuned < reset && bench.script().retunes == 1, "{order:?}");
}

#[test]
fn a_tuned_bus_is_tuned_again_after_a_suspend() {
    for pipeline in EVERY_PIPELINE {
        for (is_tuned, retunes) in [(true, 1), (false, 0)] {
            let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.script().tuned = is_tuned;
            bench.reads(2);
            bench.settle();
            let now = bench.now;
            bench.mmc().disable(now);
            bench.until(now + Duration::from_ms(10));
            bench.mmc().enable().expect("an idle, disabled host should be enabled");
            bench.submit([Bio::read(500, 8, 2), Bio::read(600, 8, 3)]);
            bench.settle();
            bench.all_ended_with(Status::Ok, 4);
            assert_eq!(bench.script().retunes, retunes, "{pipeline:?}");
        }
    }
}

/// The bus drifts after a write is reported. CMD13 comes before tuning, because responses during
/// tuning are ignored ([status-before-tuning]).
#[test]
fn the_status_is_read_after_a_write_before_the_bus_is_tuned() {
    for pipeline in one_by_one() {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        bench.script().tuned = true;
        let failed = Fault::Bits(Part::Command, CardStatus::ERROR);
        bench.script().faults.extend([(0, Fault::Drift), (1, failed)]);
        bench.writes(1);
        bench.settle();
        bench.submit([Bio::read(500, 8, 9)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 2);
        let counts = bench.mmc().counts();
        assert_eq!((counts.lost_writes, counts.failures), (1, 0), "{pipeline:?}");
        assert_eq!(bench.script().retunes, 1, "{pipeline:?}");
    }
}

/// A bus that needs tuning before the engine is turned on, again after each reset, and cannot be
/// tuned.
#[test]
fn a_task_on_a_bus_that_is_never_tuned_ends_with_the_error_of_tuning() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    (bench.script().tuned, bench.script().deaf) = (true, u32::MAX);
    bench.submit([Bio::write(0, 1, 0)]);
    bench.mmc().retune_needed = true;
    while let Some(next) = bench.turn() {
        bench.mmc().retune_needed = true;
        bench.now = next;
    }
    bench.all_ended_with(Status::IoError, 1);
    let failures = bench.mmc().counts().failures;
    let resets = bench.script().resets;
    assert!(resets > 0);
    assert_eq!(failures, u64::from(resets), "each failed tuning is a failure");
}
