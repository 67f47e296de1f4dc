//! A reader with one read in flight competes with 64 endless writes, on an SD card that takes one
//! request at a time. An elevator lets the reader pass. Without one the reader waits for all
//! earlier writes. The test drives the device of `serve --as` in virtual time, which shows what
//! clients of a served disk see on a machine that keeps up.

use blockyard::bio::{Bio, Op};
use blockyard::driver::Device as _;
use blockyard::host::Host;
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::stats::Histogram;
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use blockyard_devices::live::Live;
use blockyard_devices::pairing;
use blockyard_devices::profile::{Design, Device};
use std::collections::VecDeque;

const WRITES: u64 = 64;
const READS: u64 = 300;
/// The sectors of each half of the disk. Reads are in the first half, writes in the second.
const HALF: u64 = 1 << 20;
const READER: u64 = 0;
const FLOOD: u64 = 1;

/// A request queue over the live device, and the bios that found no tag, as in a lane of the
/// server.
struct Lane<D> {
    // The flood is still in flight at the end: the host with its driver goes first.
    host: Host<D, ()>,
    queue: RequestQueue,
    waiting: VecDeque<Bio>,
    draws: Prng,
}

impl<D: blockyard::driver::Device> Lane<D> {
    fn enters(&mut self, bio: Bio, now: Instant) -> bool {
        match self.queue.submit(&mut self.host, CpuId(0), bio, now) {
            Ok(()) => true,
            Err(SubmitError::NoTag | SubmitError::TooManyBios) => false,
            Err(error) => panic!("{error:?}"),
        }
    }

    fn submit(&mut self, who: u64, now: Instant) {
        let sector = self.draws.below(HALF / 8) * 8;
        let bio = match who {
            READER => Bio::new(Op::Read, sector, 8, READER),
            _ => Bio::new(Op::Write, HALF + sector, 8, FLOOD),
        };
        if !self.waiting.is_empty() || !self.enters(bio, now) {
            self.waiting.push_back(bio);
        }
    }

    fn advance(&mut self, now: Instant) {
        while self.queue.turn(&mut self.host, now) {
            while let Some(&bio) = self.waiting.front() {
                if !self.enters(bio, now) {
                    break;
                }
                self.waiting.pop_front();
            }
        }
    }
}

/// Returns the 99th percentile of the read latency in nanoseconds, and the number of writes.
fn reader_beside_flood(design: &str) -> (u64, u64) {
    let steady = "base = \"sd-hs\"\n[card]\ndeterministic = true";
    let device = Device::parse("steady", steady).unwrap();
    let design = Design::lookup(design).unwrap();
    let tags = TagSetConfig::single(pairing::depth(&device, &design));
    let host = Host::new(Live::under(&device, &design, 1).unwrap(), (), tags);
    let config = QueueConfig::new(1, 1, device.limits.clone(), design.policies);
    let queue = RequestQueue::new(QueueId(0), config, &host);
    let mut lane = Lane { queue, host, waiting: VecDeque::new(), draws: Prng::new(1) };

    let mut now = Instant::ZERO;
    for _ in 0..WRITES {
        lane.submit(FLOOD, now);
    }
    lane.submit(READER, now);
    let mut asked_at = now;
    let mut latencies_ns = Histogram::new();
    let mut writes = 0;
    while latencies_ns.count() < READS {
        lane.advance(now);
        let mut has_ended = false;
        while let Some(ended) = lane.queue.next_ended() {
            assert_eq!(ended.status, Status::Ok);
            has_ended = true;
            if ended.bio.cookie == READER {
                latencies_ns.record(now.since(asked_at).as_ns());
                asked_at = now;
            } else {
                writes += 1;
            }
            lane.submit(ended.bio.cookie, now);
        }
        if !has_ended {
            let polls = lane.queue.poll_at().into_iter().chain(lane.host.driver.poll_at());
            now =
                polls.min().expect("a lane with bios should have an instant to wait for").max(now);
        }
    }
    (latencies_ns.percentile(99_000), writes)
}

#[test]
fn an_elevator_lets_the_reader_pass() {
    let (unscheduled, _) = reader_beside_flood("mq-none");
    let single =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/designs/mq-deadline-single.toml");
    // Measured over sockets in real time: factors of 4.0, 8.0 and 29 (docs/BENCHMARKING.md).
    for (design, least) in [("mq-deadline", 2), ("mq-kyber", 4), (single, 15)] {
        let (scheduled, writes) = reader_beside_flood(design);
        assert!(
            scheduled * least < unscheduled,
            "{design}: {scheduled} ns, with nothing scheduled {unscheduled} ns"
        );
        assert!(writes > READS, "{design}: writes are not starved: {writes}");
    }
}
