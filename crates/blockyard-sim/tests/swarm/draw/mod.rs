//! The draws of a seed: a whole system and its faults.

mod faults;
mod pause;
mod submitter;
mod system;

pub(crate) use faults::KINDS;
pub(crate) use pause::{Pause, PausePlan};
pub(crate) use submitter::{Pattern, SubmitterPlan};

use blockyard::bio::Submitter;
use blockyard::hardware_queue::QueueMap;
use blockyard::layer::fault::FaultRule;
use blockyard::policy::{Dispatch, ElevatorKind, SchedDepth};
use blockyard::prng::Prng;
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;

/// Draws a number from `low` to `high`.
pub(crate) fn between(prng: &mut Prng, low: u64, high: u64) -> u64 {
    low + prng.below(high - low + 1)
}

/// Draws true once in `n` calls on average; never if `n` is 0.
pub(crate) fn one_in(prng: &mut Prng, n: u64) -> bool {
    n > 0 && prng.below(n) == 0
}

fn small(prng: &mut Prng, low: u64, high: u64) -> u16 {
    u16::try_from(between(prng, low, high)).expect("the bounds are 16 bits")
}

/// A system and its workload.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tags: TagSetConfig,
    pub(crate) queues: Vec<QueueConfig>,
    pub(crate) device: DevicePlan,
    pub(crate) faults: Vec<FaultRule>,
    pub(crate) submitters: Vec<SubmitterPlan>,
    /// Whether a worker does every run, not only the runs that the queue defers.
    pub(crate) defers_all: bool,
    /// The longest time from a request to a worker until its run.
    pub(crate) run_delay_max: Duration,
    /// One in this many refused submitters registers only after a delay.
    pub(crate) late_wait_one_in: u64,
    /// Whether built-in elevators are checked at every call, which takes the path of an elevator
    /// from outside.
    pub(crate) checks_elevators: bool,
    /// The weights of groups that bfq is told.
    pub(crate) weights: Vec<(u32, u32)>,
    /// Whether the elevator from outside the core is the one that idles.
    pub(crate) idles: bool,
    /// Whether the accounts are checked after each step.
    pub(crate) checks_each_step: bool,
    /// Freezes and quiesces in the phase with faults.
    pub(crate) pauses: Vec<PausePlan>,
    /// The events at which the power is cut. The remaining contents are checked, and the run
    /// continues.
    pub(crate) power_cuts: Vec<u64>,
    /// One in this many events is followed by a stray completion.
    pub(crate) strays: u64,
}

/// The depth of the device, and its service times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DevicePlan {
    /// The largest number of commands of one queue, limited by budget if the design uses it.
    pub(crate) queue_depth: u32,
    /// The largest number of commands of all queues together.
    pub(crate) host_depth: u32,
    pub(crate) service_max: Duration,
    /// Once in this many chances the device has no budget although it has room. 0 means never.
    pub(crate) no_budget: u64,
    /// Once in this many chances the device reports that it is full with nothing in flight
    /// ([busy-promise-kept]).
    pub(crate) empty_promises: u64,
    /// One in this many commands takes up to [`Self::stuck_max`], at most
    /// [`STUCK_COMMANDS_MAX`](crate::device::STUCK_COMMANDS_MAX) commands in all.
    pub(crate) stuck: u64,
    pub(crate) stuck_max: Duration,
    /// One in this many commands is given back prepared.
    pub(crate) again_prepared: u64,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let prng = &mut Prng::new(seed).fork(0x5157);
        let cpus = small(prng, 1, 16);
        let default = small(prng, 1, 4);
        let reads = prng.pick(&[0, 0, 1, 2]);
        let polls = prng.pick(&[0, 0, 1, 2]);
        let map = QueueMap::with_kinds(cpus, default, reads, polls);
        let hctxs = default + reads + polls;
        let count = prng.pick(&[1, 1, 2, 3]);
        let depth = prng.pick(&[1, 1, 2, 3, 4, 8, 31, 64]);
        let tags = TagSetConfig {
            hctxs,
            depth,
            reserved: small(prng, 0, 3).min(depth - 1),
            shared_over_hctxs: one_in(prng, 3),
            queues: count,
            max_waiters: 64,
        };
        // An unusual timeout applies to the whole host, as a driver sets it.
        let timeout = Duration::from_ms(prng.pick(&[30_000, 30_000, 1_000, 1_500, 3_000]));
        let hurries = timeout < Duration::from_secs(30);
        let volatile = one_in(prng, 2);
        let same = one_in(prng, 2);
        let first = system::policies(prng, hctxs);
        let queues: Vec<_> = (0..count)
            .map(|_| QueueConfig {
                map: map.clone(),
                limits: system::limits(prng, volatile),
                policies: if same { first } else { system::policies(prng, hctxs) },
                max_bios: prng.pick(&[4, 16, 64, 4096, 4096]),
                max_waiters: 64,
                run_batch_max: prng.pick(&[1, 2, 8, 1024]),
                timeout,
            })
            .collect();
        let threads = between(prng, 1, 12);
        let has_reserve = tags.reserved > 0;
        let submitters =
            (0..threads).map(|_| SubmitterPlan::draw(prng, cpus, &queues, has_reserve)).collect();
        let cuts = prng.pick(&[0, 1, 4]);
        Self {
            tags,
            device: DevicePlan {
                queue_depth: prng.pick(&[1, 2, 5, 32, 1024]),
                host_depth: prng.pick(&[1, 3, 16, 1024, 1024]),
                service_max: Duration::from_us(prng.pick(&[1, 20, 100])),
                no_budget: prng.pick(&[0, 0, 0, 2, 5, 50]),
                empty_promises: prng.pick(&[0, 0, 0, 2, 5, 50]),
                stuck: if hurries { prng.pick(&[0, 10, 50, 200]) } else { 0 },
                stuck_max: Duration::from_ms(prng.pick(&[2_000, 9_000])),
                again_prepared: prng.pick(&[0, 0, 0, 3, 20]),
            },
            faults: faults::draw(prng, hurries),
            submitters,
            defers_all: one_in(prng, 2),
            run_delay_max: Duration::from_us(prng.pick(&[0, 1, 50])),
            late_wait_one_in: prng.pick(&[0, 0, 3]),
            checks_elevators: one_in(prng, 3),
            weights: Vec::new(),
            idles: false,
            checks_each_step: one_in(prng, 4),
            pauses: PausePlan::draw_all(prng, &queues),
            power_cuts: (0..cuts).map(|_| between(prng, 1, 2_000)).collect(),
            strays: prng.pick(&[0, 0, 50]),
            queues,
        }
    }

    /// The same system, in which every disk has the elevator that idles.
    pub(crate) fn with_idling(mut self) -> Self {
        self.idles = true;
        for queue in &mut self.queues {
            queue.policies.elevator = ElevatorKind::Other;
        }
        self
    }

    /// The same system, in which every disk has bfq, and each thread is a process of one of three
    /// groups.
    pub(crate) fn with_bfq(mut self, prng: &mut Prng) -> Self {
        for queue in &mut self.queues {
            queue.policies.elevator = ElevatorKind::Bfq(system::bfq(prng));
        }
        for (submitter, process) in self.submitters.iter_mut().zip(1..) {
            submitter.submitter = Submitter { process, group: process % 3 };
        }
        self
    }

    /// One disk of this system without faults, under a bfq that is audited and goes by weights
    /// alone. Four to six processes of three groups always have reads waiting: the device takes two
    /// at a time.
    pub(crate) fn with_shares(mut self, prng: &mut Prng) -> Self {
        self.queues.truncate(1);
        self.tags.queues = 1;
        self.faults.clear();
        self.pauses.clear();
        self.power_cuts.clear();
        self.strays = 0;
        let DevicePlan { service_max, stuck_max, .. } = self.device;
        self.device = DevicePlan {
            queue_depth: 2,
            host_depth: 2,
            service_max,
            no_budget: 0,
            empty_promises: 0,
            stuck: 0,
            stuck_max,
            again_prepared: 0,
        };
        let queue = &mut self.queues[0];
        queue.max_bios = 4096;
        queue.policies.elevator = ElevatorKind::Bfq(system::bfq_by_weights(prng));
        queue.policies.sched_depth = SchedDepth::Fixed(256);
        queue.policies.dispatch = Dispatch::Budget; // or the device would take all that wait
        queue.policies.wbt = None;
        self.checks_elevators = true;
        self.checks_each_step = false;
        self.weights = vec![(2, prng.pick(&[50, 100, 300]))];
        let count = prng.pick(&[4, 5, 6]);
        let one = self.submitters[0].clone();
        self.submitters.resize(count, one);
        for (submitter, process) in self.submitters.iter_mut().zip(1..) {
            submitter.read_without_pause(Submitter { process, group: process % 3 });
        }
        self
    }

    /// Whether the disks have volatile caches. Either all have one or none.
    pub(crate) fn is_volatile(&self) -> bool {
        self.queues[0].limits.write_cache
    }

    /// Returns the longest time for which one command, or a flush that waits for data
    /// ([flush-held-bounded]), may delay everything else.
    pub(crate) fn still_max(&self) -> Duration {
        let commands = self.device.stuck_max.as_ns() + 3 * self.queues[0].timeout.as_ns();
        Duration::from_ns(commands) + blockyard::flush::HOLD_MAX + Duration::from_secs(5)
    }
}
