//! Checks of the card after a reset: the same card with a new address or with fewer
//! features on, or another card.

use super::*;
use crate::command::Opcode;
use crate::controller::{HostError, Part};
use crate::policy::Packed;

/// The first request's data fails until the last try, after a reset.
fn bench(policy: HostPolicy, target: Target, at_reset: fn(&mut Target)) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.script().bad_sector =
        Some((2, Some(Fault::Error(Part::Data, HostError::Damaged, 0)), None));
    bench.script().at_reset = at_reset;
    bench
}

fn by_status(pipeline: Pipeline) -> HostPolicy {
    HostPolicy::new(pipeline, BusyDetect::Status)
}

#[test]
fn a_card_is_addressed_by_its_new_address_after_a_reset() {
    for policy in every_policy() {
        let mut bench = bench(policy, CARD, |card| card.rca.0 += 0x1234);
        bench.reads(1);
        bench.submit((1..20).map(|at| Bio::write(100 * at, 8, at)));
        bench.settle();
        bench.all_ended_with(Status::Ok, 20);
        // A CMD13 to the old address would cause another reset.
        assert_eq!(bench.script().resets, 1, "{policy:?}");
    }
}

#[test]
fn a_card_is_interrupted_by_its_new_address_after_a_reset() {
    let mut bench = bench(by_status(Pipeline::TwoSlotFull), emmc_by_host(), |card| card.rca.0 += 1);
    bench.reads(1);
    bench.settle();
    bench.script().level = 2;
    bench.script().bkops_busy = Duration::from_secs(1000);
    bench.submit([Bio::read(500, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((bench.mmc().counts().bkops_interrupts, bench.script().resets), (1, 1));
}

#[test]
fn another_card_and_a_card_that_breaks_a_promise_count_as_removed() {
    let others: [fn(&mut Target); 4] = [
        |card| card.cid.as_mut().expect("the card should have an identity").serial += 1,
        |card| card.set_block_count = false,
        |card| card.discard = None,
        |card| card.reliable_write = ReliableWrite::None,
    ];
    for at_reset in others {
        for pipeline in EVERY_PIPELINE {
            let mut bench =
                bench(HostPolicy::new(pipeline, BusyDetect::Hardware), emmc(), at_reset);
            bench.reads(10);
            bench.settle();
            assert_eq!((bench.ended[&0], bench.ended[&9]), (Status::Gone, Status::Gone));
            bench.submit([Bio::write(0, 8, 10)]);
            bench.settle();
            assert_eq!((bench.ended[&10], bench.script().resets), (Status::Gone, 1));
        }
    }
    // Requests go through the queue under `cqe` alone.
    for pipeline in EVERY_PIPELINE {
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let mut bench = bench(policy, emmc(), |card| card.queue_depth = 1);
        bench.reads(10);
        bench.settle();
        let status = if pipeline == Pipeline::Cqe { Status::Gone } else { Status::Ok };
        assert_eq!((bench.ended[&0], bench.ended[&9]), (status, status), "{pipeline:?}");
        assert_eq!(bench.script().resets, 1);
    }
    // This cache would never be flushed.
    let uncached = Target { cache_on: false, ..emmc() };
    let mut bench = bench(by_status(Pipeline::Serial), uncached, |card| card.cache_on = true);
    bench.reads(1);
    bench.settle();
    bench.all_ended_with(Status::Gone, 1);
}

#[test]
fn a_cache_that_does_not_come_back_is_not_flushed_and_its_loss_is_reported_once() {
    for pipeline in EVERY_PIPELINE {
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let mut bench = bench(policy, emmc(), |card| card.cache_on = false);
        bench.submit([Bio::write(500, 8, 9)]);
        bench.settle();
        bench.reads(1);
        bench.settle();
        assert_eq!(bench.script().resets, 1);
        for (cookie, status) in [(1, Status::IoError), (2, Status::Ok)] {
            bench.submit([Bio::new(Op::Flush, 0, 0, cookie)]);
            bench.settle();
            assert_eq!(bench.ended[&cookie], status, "{pipeline:?}");
        }
        assert_eq!(bench.script().log, [], "{pipeline:?}");
    }
}

#[test]
fn a_card_that_no_longer_reports_failed_entries_gets_no_packs() {
    let target = Target { packed_writes: 8, packed_reads: 8, ..emmc() };
    let hsq = Pipeline::Hsq(HsqPolicy::TODAY);
    let policy = HostPolicy::new(hsq, BusyDetect::Hardware);
    let policy = HostPolicy { packed: Packed::Write, ..policy };
    let mut bench = bench(policy, target, |card| (card.packed_writes, card.packed_reads) = (0, 0));
    bench.submit((1..20).map(|at| Bio::write(100 * at, 8, at)));
    bench.settle();
    let before = count_packs(&bench);
    assert!(before > 0);
    bench.submit([Bio::read(0, 8, 20)]);
    bench.settle();
    bench.submit((21..40).map(|at| Bio::write(100 * at, 8, at)));
    bench.settle();
    bench.all_ended_with(Status::Ok, 39);
    assert_eq!((count_packs(&bench), bench.script().resets), (before, 1));
}

fn count_packs(bench: &Bench) -> usize {
    bench.spans().iter().filter(|span| span.requests > 1).count()
}

#[test]
fn background_operations_that_are_no_longer_the_hosts_are_not_started() {
    let mut bench = bench(by_status(Pipeline::Serial), emmc_by_host(), |card| card.bkops = false);
    bench.reads(1);
    bench.settle();
    bench.script().level = 2;
    bench.submit([Bio::read(500, 8, 1)]);
    bench.settle();
    let looks = bench.spans().iter().any(|span| span.command == Opcode::SendExtCsd);
    assert!(!looks && bench.mmc().counts().exceptions > 0);
}
