//! Tests for parts that an embedder writes.
//!
//! [`elevator`] runs a whole queue with an elevator under test, through merges, requeues, refusals
//! and failures, with every call checked by [`Checked`]. [`driver`] runs a queue over a device
//! under test, with every call checked by [`layer::checked`]. The elevators and devices of this
//! crate pass the same tests.
//!
//! ```
//! use blockyard::elevator::deadline::Deadline;
//!
//! for seed in 0..4 {
//!     println!("seed {seed}"); // a failure repeats with its seed
//!     blockyard::conformance::elevator(seed, |config, tags| {
//!         Box::new(Deadline::new(config.requests(tags), Default::default()))
//!     });
//! }
//! ```

use crate::bio::{Bio, Flags, IoPrio, Op, PrioClass, Submitter};
use crate::device::null::NullDevice;
use crate::driver::{Busy, Device};
use crate::elevator::checked::Checked;
use crate::elevator::{Elevator, IDLE_MAX};
use crate::host::Host;
use crate::layer;
use crate::layer::checked::Terms;
use crate::layer::delay::{Delayed, Extra};
use crate::layer::fault::{Action, FaultRule, Faulty, When};
use crate::limits::Limits;
use crate::policy::{BusyTrack, Dispatch, ElevatorKind, Plugging, Policies, SchedDepth};
use crate::prng::Prng;
use crate::request_queue::{QueueConfig, RequestQueue};
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant};
use crate::unit::{CpuId, QueueId};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Steps of the random traffic: each submits at most one bio.
const STEPS: u32 = 1500;
/// The time within which everything ends once nothing more is submitted, and within which a request
/// must go although newer ones never cease. A device serves a request each millisecond.
const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_ms(1);
/// An elevator under test holds at most 24 requests of 3 hardware queues, and may idle before each
/// of them.
const _: () = assert!(PATIENCE.as_ns() > 3 * 24 * IDLE_MAX.as_ns());
const CAPACITY_SECTORS: u64 = 96;

/// Tests an elevator with everything that `seed` draws: a design, a device that refuses and gives
/// back requests, and two kinds of traffic. Random bios on few sectors must all end; and a request
/// must go within 30 s although newer requests of one kind never cease ([elevator-starves-none]). A
/// few hundred seeds reach every rule; one takes some milliseconds.
///
/// `make` returns a new elevator for a queue of this configuration, on a host with these tags. It
/// is called twice.
///
/// # Panics
///
/// Panics if the elevator breaks a rule of [`elevator`](crate::elevator). The message contains the
/// name of the rule.
pub fn elevator(
    seed: u64,
    mut make: impl FnMut(&QueueConfig, &TagSetConfig) -> Box<dyn Elevator + Send>,
) {
    let draws = Prng::new(seed);
    let mut rig = Rig::new(draws.fork(0), draw_design, &mut make);
    rig.send_random_traffic();
    rig.host.driver.lift();
    rig.settle();
    Rig::new(draws.fork(1), |prng| plain_design(Dispatch::Budget, prng), &mut make).send_stream();
}

/// Tests a device with everything that `seed` draws: a scheduler, a way to dispatch, and random
/// bios of every kind on 96 sectors, more of them than the device takes at once. All must end,
/// within 30 s of virtual time after the last. A few hundred seeds reach every rule; one takes some
/// milliseconds.
///
/// `make` returns the device, in virtual time: it learns the time from the calls, and says by
/// [`Device::poll_at`] when to ask it again. `tags` and `limits` are its own.
///
/// # Panics
///
/// Panics if the device breaks a rule of [`driver`](crate::driver), or if it has fewer than 96
/// sectors. The message contains the name of the rule.
pub fn driver<D: Device>(
    seed: u64,
    tags: TagSetConfig,
    limits: Limits,
    make: impl FnOnce(&TagSetConfig) -> D,
) {
    assert!(limits.capacity_sectors >= CAPACITY_SECTORS, "a device of at least 96 sectors");
    let mut prng = Prng::new(seed);
    let usual = prng.pick(&[Policies::NONE, Policies::mq_deadline(), Policies::mq_kyber()]);
    let policies = Policies { elevator: usual.elevator, ..draw_design(&mut prng).policies };
    let config = QueueConfig::new(2 * tags.hctxs, tags.hctxs, limits, policies);
    let terms = alloc::vec![Terms::of(&config, &tags)];
    let device = layer::checked::Checked::new(make(&tags), terms, &tags);
    let host = Host::new(device, (), tags);
    let queue = RequestQueue::new(QueueId(0), config, &host);
    let call_ended = layer::checked::Checked::call_ended;
    let mut rig = Rig { host, queue, prng, now: Instant::ZERO, call_ended };
    rig.send_random_traffic();
    rig.settle();
    rig.host.driver.all_ended();
}

/// The device under test's queue: nothing is refused once the faults are lifted.
type Target = Faulty<Delayed<NullDevice>>;

/// A design, and the depth and the hardware queues of its device.
struct Design {
    policies: Policies,
    hctxs: u16,
    depth: u16,
    faults: Vec<Action>,
    latency: Extra,
}

fn plain_design(dispatch: Dispatch, prng: &mut Prng) -> Design {
    let sched_depth = SchedDepth::Fixed(prng.pick(&[2, 5, 24]));
    let policies =
        Policies { elevator: ElevatorKind::Other, dispatch, sched_depth, ..Policies::NONE };
    Design { policies, hctxs: 1, depth: 1, faults: Vec::new(), latency: Extra::fixed(TICK) }
}

fn draw_design(prng: &mut Prng) -> Design {
    let dispatch = prng.pick(&[
        Dispatch::DrainAll,
        Dispatch::HoldUntilFlushed,
        Dispatch::SharedList,
        Dispatch::Budget,
    ]);
    let plain = plain_design(dispatch, prng);
    Design {
        policies: Policies {
            busy: prng.pick(&[BusyTrack::Off, BusyTrack::Bit, BusyTrack::Ewma]),
            plug: prng.pick(&[Plugging::Batches, Plugging::EveryBio, Plugging::Calls]),
            ..plain.policies
        },
        hctxs: prng.pick(&[1, 1, 3]),
        depth: prng.pick(&[1, 2, 7]),
        faults: alloc::vec![
            Action::Again,
            Action::Fail(Status::IoError),
            Action::Error(Status::Medium),
            Action::Busy(Busy::Device),
            Action::Busy(Busy::Resource),
        ],
        latency: Extra { min: Duration::ZERO, max: TICK, op: None },
    }
}

/// Returns a rule that answers one offer of 12 by `then`.
fn one_in_12(then: Action) -> FaultRule {
    FaultRule { name: String::new(), when: When { one_in: Some(12), ..When::default() }, then }
}

struct Rig<D> {
    host: Host<D>,
    queue: RequestQueue,
    prng: Prng,
    now: Instant,
    /// Tells the device that a call of the queue has returned.
    call_ended: fn(&D),
}

impl Rig<Target> {
    fn new(
        mut prng: Prng,
        draw: impl FnOnce(&mut Prng) -> Design,
        make: &mut dyn FnMut(&QueueConfig, &TagSetConfig) -> Box<dyn Elevator + Send>,
    ) -> Self {
        let Design { policies, hctxs, depth, faults, latency } = draw(&mut prng);
        let tags = TagSetConfig { hctxs, ..TagSetConfig::single(depth) };
        let limits = Limits {
            max_sectors: 12,
            max_discard_sectors: 9,
            max_discard_segments: prng.pick(&[1, 3]),
            max_write_zeroes_sectors: 6,
            write_cache: true,
            ..Limits::new(CAPACITY_SECTORS)
        };
        let config = QueueConfig::new(2 * hctxs, hctxs, limits, policies);
        let device = NullDevice::new(hctxs, depth);
        let device = Delayed::new(device, latency, prng.fork(0), &tags);
        let device =
            Faulty::new(device, faults.into_iter().map(one_in_12).collect(), prng.fork(1), &tags);
        let elevator = Checked::new(make(&config, &tags), config.requests(&tags));
        let host = Host::new(device, (), tags);
        let queue = RequestQueue::with_elevator(QueueId(0), config, &host, Box::new(elevator));
        Self { host, queue, prng, now: Instant::ZERO, call_ended: |_| {} }
    }
}

impl<D: Device> Rig<D> {
    fn draw_bio(&mut self) -> Bio {
        let op = self.prng.pick(&[
            Op::Read,
            Op::Read,
            Op::Write,
            Op::Write,
            Op::Discard,
            Op::WriteZeroes,
            Op::Flush,
        ]);
        if op == Op::Flush {
            return Bio::new(op, 0, 0, 0);
        }
        let sectors = self.prng.pick(&[1, 1, 2, 4, 20]);
        let sector = self.prng.below(CAPACITY_SECTORS - u64::from(sectors) + 1);
        let class = self.prng.pick(&[
            PrioClass::BestEffort,
            PrioClass::None,
            PrioClass::RealTime,
            PrioClass::Idle,
        ]);
        let flags = self.prng.pick(&[
            Flags::NONE,
            Flags::NONE,
            Flags::SYNC,
            Flags::NO_MERGE,
            Flags::PREFLUSH | Flags::FUA,
        ]);
        // Four processes of two groups, so that an elevator that tells submitters apart has
        // something to do.
        let process = self.prng.pick(&[0, 1, 2, 3]);
        Bio::new(op, sector, sectors, 0)
            .with_flags(flags)
            .with_prio(IoPrio { class, level: 0 })
            .with_submitter(Submitter { process, group: process / 2 })
    }

    /// Submits `bio`; a bio that finds no tag is dropped. Returns whether it entered.
    fn submit(&mut self, cpu: CpuId, bio: Bio) -> bool {
        let is_in = self.queue.submit(&mut self.host, cpu, bio, self.now).is_ok();
        (self.call_ended)(&self.host.driver);
        is_in
    }

    /// Does all work of this instant. Returns whether a bio with this cookie has ended.
    fn turn(&mut self, cookie: u64) -> bool {
        self.queue.turn(&mut self.host, self.now);
        (self.call_ended)(&self.host.driver);
        let mut has_ended = false;
        while let Some(ended) = self.queue.next_ended() {
            has_ended |= ended.bio.cookie == cookie;
        }
        has_ended
    }

    fn send_random_traffic(&mut self) {
        let cpus: Vec<_> = (0..2 * self.host.tags().config().hctxs).map(CpuId).collect();
        for _ in 0..STEPS {
            self.now = self.now + Duration::from_us(self.prng.pick(&[0, 0, 100, 1000]));
            let cpu = self.prng.pick(&cpus);
            match self.prng.below(10) {
                0 => self.queue.plug(cpu),
                1 => {
                    self.queue.unplug(&mut self.host, cpu, self.now);
                    (self.call_ended)(&self.host.driver);
                }
                _ => {
                    let bio = self.draw_bio();
                    self.submit(cpu, bio);
                }
            }
            self.turn(0);
        }
    }

    /// Waits until everything has ended.
    fn settle(&mut self) {
        let end = self.now + PATIENCE;
        while !self.queue.drain(&mut self.host, self.now) {
            assert!(self.now < end, "[work-is-given] {} bios never end", self.queue.bios_in_use());
            self.turn(0);
            self.now = self.now + TICK;
        }
        self.queue.self_check(&self.host);
    }

    /// [elevator-starves-none]: keeps the elevator full of newer requests of one kind, of another
    /// process.
    fn send_stream(&mut self) {
        let ops = [Op::Read, Op::Write, Op::Discard];
        let flags = [Flags::NO_MERGE, Flags::NO_MERGE | Flags::SYNC];
        let old = Bio::new(self.prng.pick(&ops), CAPACITY_SECTORS / 2, 1, 1)
            .with_flags(self.prng.pick(&flags));
        let new = Bio::new(self.prng.pick(&ops), 0, 1, 0)
            .with_flags(self.prng.pick(&flags))
            .with_submitter(Submitter { process: 1, group: 0 });
        let step = self.prng.pick(&[0, 1, CAPACITY_SECTORS - 1]);
        let mut sector = self.prng.below(CAPACITY_SECTORS);
        assert!(self.submit(CpuId(0), old), "an empty queue has a tag");
        let end = self.now + PATIENCE;
        loop {
            while self.submit(CpuId(1), Bio { sector, ..new }) {
                sector = (sector + step) % CAPACITY_SECTORS;
            }
            if self.turn(old.cookie) {
                return;
            }
            assert!(self.now < end, "[elevator-starves-none] {old:?} waits behind all of {new:?}");
            self.now = self.now + TICK;
        }
    }
}
