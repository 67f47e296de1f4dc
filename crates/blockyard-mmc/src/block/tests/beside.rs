//! Reads that start before their memory is prepared ([data-waits-for-memory]).

use super::*;
use crate::controller::{HostError, Part};
use crate::policy::Packed;

const BY_THREAD: [Pipeline; 4] = [
    Pipeline::Serial,
    Pipeline::TwoSlotMapOverlap,
    Pipeline::PostBeforeStart,
    Pipeline::TwoSlotFull,
];

fn beside(pipeline: Pipeline) -> HostPolicy {
    let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
    HostPolicy { lone_read: LoneRead::BesideAccess, ..policy }
}

/// The time in microseconds from the submission of a lone request until it leaves the bus.
fn off_the_bus(policy: HostPolicy, bio: Bio) -> u64 {
    let mut bench = Bench::new(policy);
    bench.submit([bio]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    bench.span(0).to.as_ns() / 1000
}

/// Prepare 50, beside the access 20 and 30, start 5 (see `cost`); a command 2, twice, and each
/// block 20.
#[test]
fn a_lone_read_starts_at_once_and_its_memory_is_prepared_beside_it() {
    for pipeline in BY_THREAD {
        let before = HostPolicy::new(pipeline, BusyDetect::Hardware);
        assert_eq!(read_off_the_bus(before, 16), 50 + 5 + 4 + 16 * 20, "{pipeline:?}");
        // The data waits for the memory of a page, and the other page is prepared while that
        // passes.
        assert_eq!(read_off_the_bus(beside(pipeline), 16), 5 + 20 + 16 * 20, "{pipeline:?}");
        assert_eq!(
            read_off_the_bus(beside(pipeline), 8),
            5 + 20 + 8 * 20,
            "a read of one page: {pipeline:?}"
        );
        assert_eq!(
            off_the_bus(beside(pipeline), Bio::write(0, 16, 1)),
            off_the_bus(before, Bio::write(0, 16, 1)),
            "a write is prepared first"
        );
    }
}

fn read_off_the_bus(policy: HostPolicy, sectors: u32) -> u64 {
    off_the_bus(policy, Bio::read(0, sectors, 1))
}

#[test]
fn a_page_and_then_as_much_again_is_prepared_while_the_read_is_on_the_bus() {
    let mut bench = Bench::new(beside(Pipeline::TwoSlotMapOverlap));
    bench.submit([Bio::read(0, 70, 1)]);
    bench.settle();
    let kinds = [ActKind::PrepareFirst, ActKind::PrepareMore];
    let parts: Vec<_> = bench.did.iter().filter(|did| kinds.contains(&did.kind)).collect();
    let blocks: Vec<_> = parts.iter().map(|did| did.bytes / 512).collect();
    assert_eq!(blocks, [8, 8, 16, 32, 6], "each part is as long as all before it");
    assert_eq!((parts[0].kind, bench.count(ActKind::PrepareFirst)), (ActKind::PrepareFirst, 1));
    assert_eq!(bench.count(ActKind::Prepare), 0);
    let span = bench.span(0);
    assert!(parts.iter().all(|did| span.from <= did.from && did.to <= span.to));
}

/// In a burst only the first read finds the bus free; with one request at a time, each does.
#[test]
fn a_read_that_waits_for_the_bus_is_prepared_before_it_starts() {
    for (pipeline, beside_its_own) in [
        (Pipeline::Serial, 6),
        (Pipeline::TwoSlotMapOverlap, 1),
        (Pipeline::PostBeforeStart, 1),
        (Pipeline::TwoSlotFull, 1),
    ] {
        let mut bench = Bench::new(beside(pipeline));
        bench.reads(6);
        bench.settle();
        bench.all_ended_with(Status::Ok, 6);
        let counts = [ActKind::PrepareFirst, ActKind::Prepare].map(|kind| bench.count(kind));
        assert_eq!(counts, [beside_its_own, 6 - beside_its_own], "{pipeline:?}");
    }
}

#[test]
fn a_read_that_fails_before_its_data_is_tried_again_with_all_its_memory() {
    for part in [Part::Command, Part::Data] {
        let mut bench = Bench::new(beside(Pipeline::TwoSlotMapOverlap));
        bench.script().faults.insert(0, Fault::Error(part, HostError::Damaged, 0));
        bench.submit([Bio::read(0, 16, 1)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        assert!(
            first_act(&bench, ActKind::PrepareMore) < first_act(&bench, ActKind::SendStatus),
            "{part:?}: {:?}",
            bench.did
        );
        assert_eq!((bench.count(ActKind::PrepareFirst), bench.count(ActKind::Post)), (1, 1));
        assert_eq!(bench.count(ActKind::Start), 2);
    }
}

fn first_act(bench: &Bench, kind: ActKind) -> usize {
    bench.did.iter().position(|did| did.kind == kind).expect("an act")
}

#[test]
fn a_bus_that_must_be_tuned_is_tuned_before_a_read_that_is_prepared_first() {
    let mut bench = Bench::new(beside(Pipeline::TwoSlotMapOverlap));
    bench.script().tuned = true;
    bench.script().faults.insert(0, Fault::Drift);
    bench.reads(1);
    bench.settle();
    bench.submit([Bio::read(100, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!((bench.count(ActKind::Retune), bench.count(ActKind::Prepare)), (1, 1));
}

#[test]
fn hosts_that_cannot_hold_data_back_or_end_requests_elsewhere_are_refused() {
    let refused = Some(Unsupported::BesideAccess);
    for pipeline in EVERY_PIPELINE {
        let policy = HostPolicy { lone_read: LoneRead::BesideAccess, ..beside(pipeline) };
        let is_able = BY_THREAD.contains(&pipeline);
        assert_eq!(refusal(policy, true), refused.filter(|_| !is_able), "{pipeline:?}");
        assert_eq!(refusal(policy, false), refused, "{pipeline:?}");
    }
    let able = beside(Pipeline::TwoSlotFull);
    assert_eq!(refusal(HostPolicy { transfer: Transfer::Pio, ..able }, true), refused);
    assert_eq!(refusal(HostPolicy { bounce: Bounce::Async, ..able }, true), refused);
    assert_eq!(refusal(HostPolicy { packed: Packed::Write, ..able }, true), refused);
}

fn refusal(policy: HostPolicy, holds_data: bool) -> Option<Unsupported> {
    let mut controller = Scripted::new(policy.transfer, policy.busy);
    controller.capabilities.holds_data = holds_data;
    controller.bounces = (policy.bounce != Bounce::None).then_some(policy.bounce);
    let card = Target { packed_writes: 8, ..emmc() };
    Mmc::new(controller.with_segments(128), card, policy).err()
}
