//! The core refuses wrong calls with an error, or with a panic that names the wrong value.

use blockyard::bio::Bio;
use blockyard::device::null::NullDevice;
use blockyard::device::recorder::Recorder;
use blockyard::elevator::kyber::Kyber;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, KyberTunables, Policies};
use blockyard::request_queue::{NotInFlight, QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

const NOW: Instant = Instant::ZERO;
const TAGS: TagSetConfig = TagSetConfig {
    hctxs: 2,
    depth: 4,
    reserved: 0,
    shared_over_hctxs: false,
    queues: 2,
    max_waiters: 4,
};

fn host(tags: TagSetConfig) -> Host<NullDevice> {
    Host::new(NullDevice::new(2, 4), (), tags)
}

fn queue_with<D>(id: QueueId, limits: Limits, host: &Host<D>) -> RequestQueue {
    RequestQueue::new(id, QueueConfig::new(2, 2, limits, Policies::NONE), host)
}

fn queue<D>(id: u16, host: &Host<D>) -> RequestQueue {
    queue_with(QueueId(id), Limits::new(1 << 20), host)
}

/// Returns the message with which `call` panics.
fn message<R>(call: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { return "no panic".to_owned() };
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    literal.or_else(|| panic.downcast_ref().cloned()).expect("a panic should have a message")
}

#[track_caller]
fn assert_named<R>(name: &str, call: impl FnOnce() -> R) {
    let message = message(call);
    assert!(message.contains(name), "{name} is missing in: {message}");
}

fn submit<D: blockyard::driver::Driver>(queue: &mut RequestQueue, host: &mut Host<D>) {
    queue
        .submit(host, CpuId(0), Bio::read(0, 8, 1), NOW)
        .expect("an idle queue should accept a bio");
}

#[test]
fn the_number_of_a_queue_is_in_range_and_unique_in_its_host() {
    let host = host(TAGS);
    let first = queue(0, &host);
    let _second = queue(1, &host);
    assert_named("QueueId(0)", || queue(0, &host));
    assert_named("QueueId(2)", || queue(2, &host));
    drop(first);
    let _third = queue(0, &host);
}

/// In debug builds the drop is refused. The number stays lost in any build.
#[test]
fn a_queue_does_not_inherit_requests_of_its_predecessor() {
    let mut host = host(TAGS);
    let mut first = queue(0, &host);
    submit(&mut first, &mut host);
    let dropped = message(|| drop(first));
    if cfg!(debug_assertions) {
        assert!(dropped.contains("QueueId(0), which is dropped"), "{dropped}");
    }
    assert_named("QueueId(0)", || queue(0, &host));
}

/// A failed test, or a thread that panics, is not aborted by a second panic.
#[test]
fn a_queue_with_requests_is_dropped_by_a_panic() {
    let said = message(|| {
        let mut host = host(TAGS);
        let mut queue = queue(0, &host);
        submit(&mut queue, &mut host);
        panic!("the first");
    });
    assert_eq!(said, "the first");
}

/// The driver ends with its host, so it completes nothing more.
#[test]
fn a_queue_with_requests_is_dropped_after_its_host() {
    let mut host = host(TAGS);
    let mut queue = queue(0, &host);
    submit(&mut queue, &mut host);
    drop(host);
    drop(queue);
}

/// Only the design that says so has an elevator of the embedder's own, and always has one.
#[test]
fn a_queue_has_the_elevator_of_its_design() {
    let host = host(TAGS);
    let config = |elevator| {
        let policies = Policies { elevator, ..Policies::NONE };
        QueueConfig::new(2, 2, Limits::new(1 << 20), policies)
    };
    let with_kyber = |elevator| {
        let config = config(elevator);
        let kyber = Box::new(Kyber::new(&config.map, KyberTunables::default()));
        RequestQueue::with_elevator(QueueId(0), config, &host, kyber)
    };
    assert_named("with_elevator", || {
        RequestQueue::new(QueueId(0), config(ElevatorKind::Other), &host)
    });
    for named in [ElevatorKind::None, ElevatorKind::Kyber(KyberTunables::default())] {
        assert_named(&format!("{named:?}"), || with_kyber(named));
    }
    let _accepted = with_kyber(ElevatorKind::Other);
}

#[test]
fn a_foreign_host_is_named() {
    let mut own = host(TAGS);
    let mut foreign = host(TAGS);
    let mut queue = queue(0, &own);
    let name = "QueueId(0) belongs to another host";
    assert_named(name, || submit(&mut queue, &mut foreign));
    assert_named(name, || queue.run(&mut foreign, HctxId(0), NOW));
    assert_named(name, || queue.next_run(&mut foreign, NOW));
    let hctx = HctxId(0);
    let tag = DriverTag(0);
    assert_named(name, || queue.in_flight_request(&foreign, hctx, tag).is_some());
    assert_named(name, || queue.complete(&mut foreign, hctx, tag, Status::Ok, NOW));
    assert_eq!(queue.complete(&mut own, hctx, tag, Status::Ok, NOW), Err(NotInFlight));
}

#[test]
fn a_completion_of_a_hardware_queue_that_does_not_own_the_tag_is_not_in_flight() {
    for shared_over_hctxs in [false, true] {
        let mut host = host(TagSetConfig { shared_over_hctxs, ..TAGS });
        let mut queue = queue(0, &host);
        submit(&mut queue, &mut host);
        while let Some(run) = queue.next_run(&mut host, NOW) {
            let _ = queue.run(&mut host, run.hctx, NOW);
        }
        let tag = DriverTag(0);
        for hctx in [HctxId(1), HctxId(7), HctxId(u16::MAX)] {
            let ended = queue.complete(&mut host, hctx, tag, Status::Ok, NOW);
            assert_eq!(ended, Err(NotInFlight), "{hctx:?}");
            assert!(queue.in_flight_request(&host, hctx, tag).is_none(), "{hctx:?}");
        }
        let unknown = DriverTag(7);
        let ended = queue.complete(&mut host, HctxId(0), unknown, Status::Ok, NOW);
        assert_eq!(ended, Err(NotInFlight));
        assert!(queue.in_flight_request(&host, HctxId(0), tag).is_some());
        assert_eq!(queue.complete(&mut host, HctxId(0), tag, Status::Ok, NOW), Ok(()));
        assert_eq!(queue.next_ended().map(|ended| ended.bio.cookie), Some(1));
    }
}

#[test]
fn a_run_of_an_unknown_hardware_queue_is_named() {
    let mut host = host(TAGS);
    let mut queue = queue(0, &host);
    assert_named("HctxId(7)", || queue.run(&mut host, HctxId(7), NOW));
    assert_named("HctxId(7)", || host.tags().in_use(HctxId(7)));
}

/// [prepared-until-undone]
#[test]
fn a_request_that_the_driver_fails_is_unprepared() {
    let calls = RefCell::new(Vec::new());
    let record = |call: &'static str| calls.borrow_mut().push(call);
    let mut host = Host::new(Recorder::new(record, 1), (), TAGS);
    let mut queue = queue(0, &host);
    let reads = [(); 2].map(|()| {
        submit(&mut queue, &mut host);
        queue.turn(&mut host, NOW);
        let ended = queue.next_ended().expect("the read should end");
        let mut calls = calls.take();
        calls.retain(|call| {
            !call.ends_with("budget") && !matches!(*call, "next_finished" | "poll_at")
        });
        (ended.status, calls)
    });
    let failed = vec!["prepare", "queue_rq", "unprepare", "commit"];
    let accepted = vec!["prepare", "queue_rq", "finish"];
    let expected = [(Status::IoError, failed), (Status::Ok, accepted)];
    assert_eq!(reads, expected, "the second under the same number");
}

fn blocks_of_8() -> Limits {
    Limits { logical_block_sectors: 8, ..Limits::new(1 << 20) }
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let host = host(TAGS);
    let zeroes = Limits { max_write_zeroes_sectors: 1, ..blocks_of_8() };
    for (name, limits) in [
        ("logical_block_sectors is 0", Limits { logical_block_sectors: 0, ..blocks_of_8() }),
        ("logical_block_sectors is 6", Limits { logical_block_sectors: 6, ..blocks_of_8() }),
        ("max_sectors is 4", Limits { max_sectors: 4, ..blocks_of_8() }),
        ("max_sectors is 0", Limits { max_sectors: 0, ..Limits::new(8) }),
        ("max_segments is 0", Limits { max_segments: 0, ..Limits::new(8) }),
        ("max_discard_sectors is 7", Limits { max_discard_sectors: 7, ..blocks_of_8() }),
        ("max_discard_segments is 0", Limits { max_discard_segments: 0, ..Limits::new(8) }),
        ("max_write_zeroes_sectors is 1", zeroes),
        ("chunk_sectors is 4", Limits { chunk_sectors: 4, ..blocks_of_8() }),
        ("chunk_sectors is 12", Limits { chunk_sectors: 12, ..blocks_of_8() }),
    ] {
        assert_named(name, || queue_with(QueueId(0), limits, &host));
    }
    let smallest = Limits {
        max_sectors: 8,
        max_segments: 1,
        max_discard_sectors: 8,
        max_write_zeroes_sectors: 8,
        chunk_sectors: 8,
        ..blocks_of_8()
    };
    assert_eq!(queue_with(QueueId(0), smallest, &host).limits().max_sectors, 8);
}
