//! Tests of a lane without a protocol, with a client in memory.

mod doors;
mod guest;

use crate::clients::admission::Admission;
use crate::disk::{DiskConfig, Layers, Source};
use crate::door::memory::{Ask, Memory, Next, Rounds};
use crate::lane::entrance::Message;
use crate::lane_alone;
use blockyard::bio::Op;
use blockyard::layer::delay::Extra;
use blockyard::layer::fault::{Action, FaultRule, Turns, When};
use blockyard::policy::{ElevatorKind, Policies};
use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard_std::parts::ring::IoEngine;
use std::path::PathBuf;
use std::sync::mpsc;

const BLOCK: usize = 4096;
const DISK_BYTES: u64 = 1 << 20;

fn disk(source: Source) -> DiskConfig {
    DiskConfig {
        name: String::new(),
        source,
        read_only: false,
        policies: Policies::mq_deadline(),
        depth: 32,
        depth_bytes: 64 << 20,
        layers: Layers::default(),
        admission: Admission::default(),
        weights: Vec::new(),
    }
}

fn in_memory() -> DiskConfig {
    disk(Source::Memory { bytes: DISK_BYTES, huge_pages: false })
}

/// Returns a request for `blocks` blocks from `block` on, with its data at offset `at` of the
/// client's memory.
fn ask_lanes(op: Op, block: u64, blocks: usize, at: usize) -> Ask {
    Ask { op, offset: block * BLOCK as u64, len: (blocks * BLOCK) as u64, at, fua: false }
}

/// Returns a callback that gives `rounds` in turn and then calls `last` with the client's memory.
fn in_turn(rounds: Vec<Vec<Ask>>, last: impl Fn(&Memory) + Send + 'static) -> Next {
    let mut rounds = rounds.into_iter();
    Box::new(move |memory, round| match rounds.next() {
        Some(next) => round.extend(next),
        None => last(memory),
    })
}

/// Serves `next` on `disk` and returns the status of each request, in the order in which they end.
fn ends(disk: &DiskConfig, next: Next) -> Vec<(Ask, Status)> {
    let (ended, ends) = mpsc::channel();
    let client = Rounds { disk: 0, memory_bytes: 1 << 20, next, ended: Some(ended) };
    lane_alone::serve_memory(disk, IoEngine::Auto, client)
        .expect("the lane should serve and flush");
    ends.into_iter().collect()
}

fn all_well(ends: &[(Ask, Status)], count: usize) {
    assert_eq!(ends.len(), count, "each request ends once: {ends:?}");
    assert!(ends.iter().all(|(_, status)| *status == Status::Ok), "{ends:?}");
}

/// Writes two places at the same time, flushes, and reads both, one of them with a gap that was
/// never written.
fn write_flush_and_read(disk: &DiskConfig) {
    let fill = vec![ask_lanes(Op::Flush, 0, 0, 0)];
    let write = vec![ask_lanes(Op::Write, 3, 2, 0), ask_lanes(Op::Write, 20, 1, 3 * BLOCK)];
    let flush = vec![ask_lanes(Op::Flush, 0, 0, 0)];
    let read = vec![ask_lanes(Op::Read, 2, 4, 16 * BLOCK), ask_lanes(Op::Read, 20, 1, 24 * BLOCK)];
    let rounds = vec![fill, write, flush, read];
    let mut next = in_turn(rounds, |memory| {
        fn block(at: usize, memory: &Memory) -> Vec<u8> {
            memory.read(at * BLOCK..(at + 1) * BLOCK)
        }
        let expected = [(16, 0), (17, 1), (18, 2), (19, 0), (24, 4)];
        for (at, byte) in expected {
            assert!(block(at, memory) == [byte; BLOCK], "block {at} of the client's memory");
        }
    });
    let mut is_filled = false;
    let filled: Next = Box::new(move |memory, round| {
        if !is_filled {
            (0..4).for_each(|n| memory.write(n * BLOCK, &[u8::try_from(n + 1).unwrap(); BLOCK]));
            is_filled = true;
        }
        next(memory, round);
    });
    all_well(&ends(disk, filled), 6);
}

#[test]
fn a_client_without_a_socket_reads_what_it_wrote_to_memory() {
    write_flush_and_read(&in_memory());
}

/// The data of a file moves directly to and from the client's memory, with and without the page
/// cache.
#[test]
fn a_client_without_a_socket_reads_what_it_wrote_to_a_file() {
    let path = std::env::temp_dir().join(format!("blockyard-door-{}", std::process::id()));
    for buffered in [true, false] {
        let file = std::fs::File::create(&path)
            .expect("the folder for temporary files should accept a new file");
        file.set_len(DISK_BYTES).expect("the file should grow to the size of the disk");
        write_flush_and_read(&disk(Source::File { path: PathBuf::from(&path), buffered }));
    }
    std::fs::remove_file(path).expect("the disk's file should be removable");
}

#[test]
fn an_error_of_the_device_or_the_queue_comes_back_to_its_door_alone() {
    let rule = FaultRule {
        name: "second".to_owned(),
        when: When { ops: vec![Op::Read], turns: Turns::Between(2, 2), ..When::default() },
        then: Action::Error(Status::Medium),
    };
    let layers = Layers { faults: Some(vec![rule]), ..Layers::default() };
    let disk = DiskConfig { layers, policies: Policies::NONE, ..in_memory() };
    let beyond = ask_lanes(Op::Read, DISK_BYTES / BLOCK as u64, 1, 0);
    // The reads are far apart, so that none merges with another.
    let reads = [0, 50, 100].map(|block| ask_lanes(Op::Read, block, 1, 0));
    let ends = ends(&disk, in_turn(vec![reads.to_vec(), vec![beyond]], |_| {}));
    let statuses = [Status::Ok, Status::Medium, Status::Ok, Status::IoError];
    let expected: Vec<_> = reads.into_iter().chain([beyond]).zip(statuses).collect();
    let mut by_offset = ends;
    by_offset.sort_by_key(|(ask, _)| ask.offset);
    let expected_by_offset = expected;
    assert_eq!(by_offset, expected_by_offset);
}

/// A lane that drains answers the requests in flight, accepts no new ones from a door, and flushes
/// its disks.
#[test]
fn a_lane_that_drains_answers_what_is_under_way_and_no_more() {
    let delay = Some(Extra::fixed(Duration::from_ms(20)));
    let disk = DiskConfig { layers: Layers { delay, ..Layers::default() }, ..in_memory() };
    let (entrance, parts) = lane_alone::parts(&disk, IoEngine::Auto)
        .expect("a lane with a disk in memory should be constructible");
    let (ended, ends) = mpsc::channel();
    let own = entrance.clone();
    let mut rounds = 0;
    let next: Next = Box::new(move |_, round| {
        rounds += 1;
        assert_eq!(rounds, 1, "a door that ends requests no further round");
        round.extend([0, 40, 80].map(|block| ask_lanes(Op::Write, block, 1, 0)));
        own.send(Message::Drain);
    });
    let arrival = Rounds { disk: 0, memory_bytes: BLOCK, next, ended: Some(ended) };
    lane_alone::run(entrance, parts, [Box::new(arrival)]).expect("the last flushes should succeed");
    let ends: Vec<_> = ends.into_iter().collect();
    all_well(&ends, 3);
}

/// A server has no elevator of its embedder's own. A lane panicked when it got the disk.
#[test]
fn a_disk_with_policies_that_no_queue_can_have_is_not_opened() {
    let policies = Policies { elevator: ElevatorKind::Other, ..Policies::NONE };
    let disk = DiskConfig { policies, ..in_memory() };
    let client =
        Rounds { disk: 0, memory_bytes: BLOCK, next: in_turn(Vec::new(), |_| ()), ended: None };
    let refused =
        lane_alone::serve_memory(&disk, IoEngine::Auto, client).expect_err("the disk is refused");
    let words = "the design of the queue: an elevator of your own is missing";
    assert_eq!(refused.to_string(), words);
}
