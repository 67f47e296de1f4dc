//! Benchmarks of Blockyard: nanoseconds and instructions per I/O.
//!
//! All measurements of the core share [`IoLoop`]. Its device completes at once and is always full,
//! like the null device under SPDK's `bdevperf`: each step completes one request, takes the ended
//! bio, submits another one in its place, and runs the hardware queues that the request queue
//! names.
//!
//! - `cargo run --release -p blockyard-bench --bin core`: nanoseconds per I/O, beside fio's null
//!   engine.
//! - `cargo run --release -p blockyard-bench --bin instructions`: instructions per I/O, counted by
//!   valgrind's callgrind. The program's header describes the method.
//! - `bench/peers.sh`: a comparison of NBD servers; see [`nbd`].
//!
//! `instructions` also counts the lane and the simulator. `simulator` measures the simulator's I/Os
//! per second, and `tracing` the cost of a trace; all three run the jobs in [`simulated`]. `btt`
//! compares a BTT with its raw memory. `cargo bench -p blockyard-bench` measures the elevators and
//! the histogram alone, by divan.

pub mod disk;
pub mod fio;
pub mod fleet;
pub mod lane;
pub mod nbd;
pub mod pmemblk;
pub mod simulated;
pub mod turns;

use blockyard::bio::{Bio, Flags};
use blockyard::device::null::NullDevice;
use blockyard::driver::Device;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, Policies, SchedDepth};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::stats::StageStats;
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::trace::{Event, Sink};
use blockyard::unit::{CpuId, QueueId};

/// The depth of the device, which is the queue depth of every measurement.
pub const DEPTH: u16 = 32;
/// 1 GiB.
const CAPACITY_SECTORS: u64 = 1 << 21;
const SECTORS_PER_BIO: u32 = 8;
const CPU: CpuId = CpuId(0);

/// Draws the next random number of a xorshift generator, which costs a few instructions.
#[inline]
pub const fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A generator of random sectors.
#[derive(Clone, Debug)]
pub struct Sectors(u64);

impl Default for Sectors {
    fn default() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }
}

impl Sectors {
    /// Draws the next sector, a multiple of 4 KiB.
    pub const fn draw(&mut self) -> u64 {
        xorshift(&mut self.0) % (CAPACITY_SECTORS / SECTORS_PER_BIO as u64) * SECTORS_PER_BIO as u64
    }
}

/// A sink like that of a lane of the server: it counts only if metrics are on.
#[derive(Debug)]
pub struct Meter(pub Option<Box<StageStats>>);

impl Sink for Meter {
    #[inline]
    fn listens(&self) -> bool {
        self.0.is_some()
    }

    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        if let Some(stages) = &mut self.0 {
            stages.event(event);
        }
    }
}

/// A queue over a device that completes at once.
#[derive(Debug)]
pub struct IoLoop<S = ()> {
    host: Host<NullDevice, S>,
    queue: RequestQueue,
    sectors: Sectors,
    /// The next sector of sequential writes.
    position: u64,
    now: Instant,
}

impl IoLoop {
    /// Makes a loop in which the device is full and `held` more random reads wait in the elevator.
    ///
    /// # Panics
    ///
    /// Panics if `held` is not 0 and there is no elevator.
    #[must_use]
    pub fn new(policies: Policies, held: u32) -> Self {
        Self::with_sink(policies, held, ())
    }
}

impl<S: Sink> IoLoop<S> {
    /// Makes the same loop, whose events go to `sink`.
    ///
    /// # Panics
    ///
    /// Panics like [`IoLoop::new`].
    #[must_use]
    pub fn with_sink(policies: Policies, held: u32, sink: S) -> Self {
        assert!(
            held == 0 || policies.elevator != ElevatorKind::None,
            "without an elevator no request can be held"
        );
        let tags = TagSetConfig {
            hctxs: 1,
            depth: DEPTH,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        };
        let host = Host::new(NullDevice::new(1, DEPTH), sink, tags);
        let all = u32::from(DEPTH) + held;
        let policies = Policies { sched_depth: SchedDepth::Fixed(2 * all), ..policies };
        let config = QueueConfig {
            max_bios: 16 * all,
            ..QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), policies)
        };
        let queue = RequestQueue::new(QueueId(0), config, &host);
        let sectors = Sectors::default();
        let mut io = Self { host, queue, sectors, position: 0, now: Instant::ZERO };
        for _ in 0..all {
            io.submit_read();
            io.run();
        }
        io
    }

    /// Does one random 4 KiB read: the oldest request completes, and a new one enters.
    pub fn random_read(&mut self) {
        self.complete_one();
        self.submit_read();
        self.run();
    }

    /// Does `count` sequential 4 KiB writes under a plug, where they become one request: the oldest
    /// request completes, and the new one enters.
    pub fn sequential_writes(&mut self, count: u32) {
        self.complete_one();
        self.queue.plug(CPU);
        for _ in 0..count {
            let bio = Bio::write(self.position, SECTORS_PER_BIO, self.position);
            let bio = bio.with_flags(Flags::SYNC); // as direct writes: bfq limits the others
            self.position = (self.position + u64::from(SECTORS_PER_BIO)) % CAPACITY_SECTORS;
            self.submit(bio);
        }
        self.queue.unplug(&mut self.host, CPU, self.now);
        self.run();
    }

    fn complete_one(&mut self) {
        self.now = self.now + Duration::from_us(1);
        let finished =
            self.host.driver.next_finished(self.now).expect("finished request of a full device");
        let concluded = self.queue.conclude(&mut self.host, &finished, self.now);
        concluded.expect("driver tag of a request in the device");
        while let Some(ended) = self.queue.next_ended() {
            assert_eq!(ended.status, Status::Ok, "bio {}", ended.bio.cookie);
        }
    }

    fn submit_read(&mut self) {
        let sector = self.sectors.draw();
        self.submit(Bio::read(sector, SECTORS_PER_BIO, sector));
    }

    fn submit(&mut self, bio: Bio) {
        let submitted = self.queue.submit(&mut self.host, CPU, bio, self.now);
        submitted.expect("tag for each bio of a batch");
    }

    /// Runs the hardware queues that the last calls named.
    fn run(&mut self) {
        while let Some(run) = self.queue.next_run(&mut self.host, self.now) {
            let _ = self.queue.run(&mut self.host, run.hctx, self.now);
        }
        while let Some((_, hctx)) = self.host.next_starved() {
            let _ = self.queue.run(&mut self.host, hctx, self.now);
        }
    }
}
