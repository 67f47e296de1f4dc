//! A device serves one command at a time, so reads wait behind all earlier writes. When reads miss
//! their target, kyber admits fewer writes until reads meet it. When the reads stop and writes miss
//! their own target, kyber admits more writes again.

use blockyard::bio::{Bio, Flags};
use blockyard::driver::{Accept, Busy, Driver, Issue};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, KyberAdjust, KyberTunables, Policies};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use std::collections::VecDeque;

const DEPTH: u16 = 64;
const READ: Duration = Duration::from_us(20);
const WRITE: Duration = Duration::from_us(200);
const READERS: u64 = 16;

/// A device that holds at most [`DEPTH`] commands and serves one at a time.
#[derive(Default)]
struct Serial {
    /// The commands, and whether each is a read.
    commands: VecDeque<(HctxId, DriverTag, bool)>,
    most_writes: usize,
}

impl Serial {
    fn next_takes(&self) -> Duration {
        let (_, _, is_read) = self.commands.front().expect("a submitter should always wait");
        if *is_read { READ } else { WRITE }
    }
}

impl Driver for Serial {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.commands.len() >= usize::from(DEPTH) {
            return Accept::Busy(Busy::Device);
        }
        self.commands.push_back((issue.hctx, issue.tag, issue.request().op.is_read()));
        let writes = self.commands.iter().filter(|(_, _, is_read)| !is_read).count();
        self.most_writes = self.most_writes.max(writes);
        Accept::Queued
    }
}

/// Readers and writers that each wait for one bio at a time.
struct Rig {
    host: Host<Serial>,
    queue: RequestQueue,
    now: Instant,
    /// The instant at which each submitter's bio was submitted. The first submitters are readers.
    since: Vec<Instant>,
    reads_stopped: bool,
    read_latencies: Vec<Duration>,
}

impl Rig {
    fn new(elevator: ElevatorKind) -> Self {
        let tags = TagSetConfig {
            hctxs: 1,
            depth: DEPTH,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        };
        let host = Host::new(Serial::default(), (), tags);
        let policies = Policies { elevator, ..Policies::mq_deadline() };
        let config = QueueConfig::new(1, 1, Limits::new(1 << 30), policies);
        let queue = RequestQueue::new(QueueId(0), config, &host);
        let since = Vec::new();
        let now = Instant::ZERO;
        Self { host, queue, now, since, reads_stopped: false, read_latencies: Vec::new() }
    }

    /// Adds a submitter. The first [`READERS`] read and the others write.
    fn add_submitters(&mut self, count: u64) {
        for _ in 0..count {
            self.since.push(self.now);
            self.submit(self.since.len() as u64 - 1);
        }
        self.settle();
    }

    fn submit(&mut self, submitter: u64) {
        let sector = submitter << 20; // far apart, so that none merge
        let bio = if submitter < READERS {
            Bio::read(sector, 8, submitter)
        } else {
            Bio::write(sector, 8, submitter).with_flags(Flags::SYNC)
        };
        self.queue
            .submit(&mut self.host, CpuId(0), bio, self.now)
            .expect("every submitter should get a tag");
    }

    fn settle(&mut self) {
        while let Some(run) = self.queue.next_run(&mut self.host, self.now) {
            let _ = self.queue.run(&mut self.host, run.hctx, self.now);
        }
    }

    /// Runs for `span`. Returns the 90th percentile of the reads' latency and the largest number of
    /// writes in the device.
    fn run(&mut self, span: Duration) -> (Duration, usize) {
        let end = self.now + span;
        self.read_latencies.clear();
        self.host.driver.most_writes = 0;
        while self.now < end {
            self.now = self.now + self.host.driver.next_takes();
            let (hctx, tag, _) =
                self.host.driver.commands.pop_front().expect("the device should have a command");
            let done = self.queue.complete(&mut self.host, hctx, tag, Status::Ok, self.now);
            done.expect("the device should own the request");
            while let Some(ended) = self.queue.next_ended() {
                let submitter = ended.bio.cookie;
                let at = usize::try_from(submitter).expect("there should be few submitters");
                let is_reader = submitter < READERS;
                if is_reader {
                    self.read_latencies.push(self.now.since(self.since[at]));
                }
                if !(is_reader && self.reads_stopped) {
                    self.since[at] = self.now;
                    self.submit(submitter);
                }
            }
            self.settle();
        }
        self.read_latencies.sort_unstable();
        let p90 = self.read_latencies.get(self.read_latencies.len() * 9 / 10);
        (p90.copied().unwrap_or_default(), self.host.driver.most_writes)
    }
}

fn kyber(adjust: KyberAdjust) -> ElevatorKind {
    ElevatorKind::Kyber(KyberTunables { adjust, ..KyberTunables::default() })
}

/// 16 writes of 200 us and 16 reads of 20 us take 3.5 ms, and the target of a read is 2 ms. With 8
/// writes a read takes 1.92 ms.
#[test]
fn reads_meet_their_target_once_fewer_writes_are_admitted() {
    for adjust in [KyberAdjust::Percentiles, KyberAdjust::Steps] {
        let mut rig = Rig::new(kyber(adjust));
        rig.add_submitters(READERS + 16);
        let (read, writes) = rig.run(Duration::from_ms(10));
        assert!(read > Duration::from_ms(3), "{adjust:?}: reads took {read:?} before");
        assert_eq!(writes, 16, "{adjust:?}");
        rig.run(Duration::from_secs(5));
        let (read, writes) = rig.run(Duration::from_secs(1));
        assert!(read <= Duration::from_ms(2), "{adjust:?}: reads take {read:?}, {writes} writes");
        assert!((1..=8).contains(&writes), "{adjust:?}: {writes} writes");
    }
}

#[test]
fn without_kyber_reads_keep_missing_their_target() {
    let mut rig = Rig::new(ElevatorKind::None);
    rig.add_submitters(READERS + 16);
    rig.run(Duration::from_secs(5));
    let (read, writes) = rig.run(Duration::from_secs(1));
    assert!(read > Duration::from_ms(3), "reads take {read:?}");
    assert_eq!(writes, 16);
}

/// With 84 more writers a write takes 20 ms, and its target is 10 ms.
#[test]
fn writes_get_the_device_back_when_they_miss_their_own_target() {
    let mut rig = Rig::new(kyber(KyberAdjust::Percentiles));
    rig.add_submitters(READERS + 16);
    rig.run(Duration::from_secs(5));
    let (_, writes) = rig.run(Duration::from_ms(100));
    assert!(writes <= 8, "{writes} writes");
    rig.reads_stopped = true;
    rig.add_submitters(84);
    rig.run(Duration::from_secs(2));
    let (_, writes) = rig.run(Duration::from_ms(100));
    assert_eq!(writes, usize::from(DEPTH));
}
