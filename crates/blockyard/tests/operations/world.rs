//! Plays operations one by one, then ends all faults and waits until all bios have ended.

use super::account::Accounts;
use super::device::{Device, Disk, Owned};
use super::input::{Input, System};
use blockyard::bio::{Bio, Flags};
use blockyard::driver::{Accept, Busy, Outcome, TimedOut};
use blockyard::hardware_queue::RETRY_DELAY;
use blockyard::host::Host;
use blockyard::request_queue::{NotInFlight, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};

/// The number of operations in one play.
const OPERATIONS_MAX: usize = 600;
/// The maximum of runs that may follow from each other at one instant, and of steps until the end.
const STEPS_MAX: usize = 10_000;
/// The longest window of throttled writeback, as the header of `wbt` says.
const WINDOW: Duration = Duration::from_ms(100);

/// One task for each processor.
#[derive(Clone, Copy, Debug)]
enum Task {
    Awake,
    /// The task's bio was refused. The task has registered and sleeps until it is woken.
    Asleep(QueueId, Bio),
    Woken(QueueId, Bio),
}

/// Counts of events.
#[allow(dead_code, reason = "the fuzz target shares this file and does not read the counts")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    /// Bios that were accepted, each of which has ended.
    pub(crate) bios: u64,
    /// Requests that the device accepted.
    pub(crate) requests: u64,
    /// Bios that waited for a tag or for the end of a freeze.
    pub(crate) sleeps: u64,
}

pub(super) struct World {
    host: Host<Device>,
    queues: Vec<RequestQueue>,
    tasks: Vec<Task>,
    now: Instant,
    /// Requested runs.
    runs: Vec<(QueueId, HctxId)>,
    /// How often each queue is frozen and quiesced.
    frozen: Vec<u32>,
    quiesced: Vec<u32>,
    next_cookie: u64,
    summary: Summary,
    /// Whether to print each event.
    log: bool,
}

/// Prints an event if the log is on.
macro_rules! log {
    ($world:expr, $($what:tt)*) => {
        if $world.log {
            println!("{:>12} {}", $world.now.as_ns(), format_args!($($what)*));
        }
    };
}

impl World {
    pub(super) fn new(system: &System) -> Self {
        let log = std::env::var_os(super::LOG).is_some();
        if log {
            println!("{system:#?}");
        }
        let disk = |queue: &blockyard::request_queue::QueueConfig| Disk {
            accounts: Accounts::new(queue.limits.clone()),
            dispatch: queue.policies.dispatch,
            quiesced: false,
        };
        let disks: Vec<_> = system.queues.iter().map(disk).collect();
        let count = disks.len();
        let device = Device::new(disks, system.budget as usize);
        let host = Host::new(device, (), system.tags);
        let named = (0..).map(QueueId).zip(&system.queues);
        let queues = named.map(|(id, config)| RequestQueue::new(id, config.clone(), &host));
        Self {
            queues: queues.collect(),
            host,
            tasks: vec![Task::Awake; usize::from(system.cpus)],
            now: Instant::ZERO,
            runs: Vec::new(),
            frozen: vec![0; count],
            quiesced: vec![0; count],
            next_cookie: 0,
            summary: Summary::default(),
            log,
        }
    }

    pub(super) fn play(mut self, input: &mut Input<'_>) -> Summary {
        for _ in 0..OPERATIONS_MAX {
            if input.is_empty() {
                break;
            }
            self.operate(input);
            self.collect();
        }
        self.end();
        Summary { requests: self.host.driver.taken, ..self.summary }
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        let queue = QueueId(input.between(
            0,
            u16::try_from(self.queues.len() - 1).expect("there should be two disks at most"),
        ));
        match input.below(32) {
            0..=9 => self.act(input, queue),
            10..=14 => self.run_one(input),
            15..=19 => self.let_go(input),
            20 => self.complete_unknown_request(input, queue),
            21..=22 => self.tell_device(input),
            23 => {
                let cpu = CpuId(input.between(
                    0,
                    u16::try_from(self.tasks.len() - 1).expect("there should be few tasks"),
                ));
                if matches!(self.tasks[cpu.index()], Task::Awake) {
                    log!(self, "{queue:?} {cpu:?} plugs");
                    self.queues[queue.index()].plug(cpu);
                }
            }
            24..=25 => {
                let cpu = CpuId(input.between(
                    0,
                    u16::try_from(self.tasks.len() - 1).expect("there should be few tasks"),
                ));
                self.unplug(cpu);
            }
            26 => self.freeze(input, queue),
            27 => self.unfreeze(queue),
            28 => self.quiesce(input, queue),
            29 => self.unquiesce(queue),
            30 => {
                let ns = [1_000, 500_000, 3_000_000, 400_000_000, 1_000_000_000, 5_000_000_000];
                self.now = self.now + Duration::from_ns(input.pick(&ns));
            }
            _ => self.sleep_until_polled(),
        }
    }

    fn queue(&mut self, queue: QueueId) -> &mut RequestQueue {
        &mut self.queues[queue.index()]
    }

    /// A task submits its refused bio, if any, or a new one.
    fn act(&mut self, input: &mut Input<'_>, queue: QueueId) {
        let cpu = input.below(self.tasks.len());
        match self.tasks[cpu] {
            Task::Asleep(..) => {}
            Task::Woken(queue, bio) => self.submit(cpu, queue, bio),
            Task::Awake => {
                let bio = input.bio(self.queues[queue.index()].limits(), self.next_cookie);
                self.next_cookie += 1;
                self.submit(cpu, queue, bio);
            }
        }
    }

    fn submit(&mut self, at: usize, queue: QueueId, bio: Bio) {
        self.tasks[at] = Task::Awake;
        let cpu = CpuId(u16::try_from(at).expect("there should be few tasks"));
        let in_use = self.queues[queue.index()].bios_in_use();
        // The device may see the bio before the call returns.
        self.host.driver.accounts(queue).taken(bio);
        let submitted = self.queues[queue.index()].submit(&mut self.host, cpu, bio, self.now);
        let frozen = self.frozen[queue.index()] > 0;
        log!(self, "{queue:?} {cpu:?} {bio:?}: {submitted:?}");
        let Err(refused) = submitted else {
            assert!(!frozen, "[frozen-admits-none]: {bio:?} entered");
            self.summary.bios += 1;
            return;
        };
        self.host.driver.accounts(queue).not_taken(&bio);
        assert_eq!(
            self.queues[queue.index()].bios_in_use(),
            in_use,
            "a refusal should take no resource"
        );
        let nowait = bio.flags.contains(Flags::NOWAIT);
        let waits = matches!(refused, SubmitError::NoTag | SubmitError::Throttled);
        let for_now = waits || refused == SubmitError::TooManyBios;
        assert!(
            !(frozen && for_now),
            "[frozen-admits-none]: {refused:?} rather than that it is frozen"
        );
        assert!(
            frozen || refused != SubmitError::Frozen,
            "[frozen-admits-none]: the queue is not frozen"
        );
        assert!(nowait || refused != SubmitError::WouldBlock, "{bio:?} may wait");
        if waits || refused == SubmitError::Frozen {
            let waits = self.queues[queue.index()].wait(
                &mut self.host,
                cpu,
                &bio,
                u64::from(cpu.0),
                self.now,
            );
            if waits.is_ok() {
                log!(self, "{cpu:?} sleeps");
                self.tasks[at] = Task::Asleep(queue, bio);
                self.summary.sleeps += 1;
                self.unplug(cpu);
            }
        }
    }

    fn run(&mut self, queue: QueueId, hctx: HctxId) {
        let stop = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
        log!(self, "{queue:?} {hctx:?} runs: {stop:?}");
    }

    /// Does a requested run, or an early one.
    fn run_one(&mut self, input: &mut Input<'_>) {
        if input.one_in(8) {
            let queue = input.below(self.queues.len());
            let hctx = input.below(2);
            let hctx = HctxId(u16::try_from(hctx).expect("the number should be 0 or 1"));
            if hctx.0 < self.host.tags().config().hctxs {
                self.run(QueueId(u16::try_from(queue).expect("the number should be 0 or 1")), hctx);
            }
        } else if !self.runs.is_empty() {
            let at = input.below(self.runs.len());
            let (queue, hctx) = self.runs.remove(at);
            self.run(queue, hctx);
        }
    }

    /// The device completes a request that it owns.
    fn let_go(&mut self, input: &mut Input<'_>) {
        if self.host.driver.owned.is_empty() {
            return;
        }
        let at = input.below(self.host.driver.owned.len());
        let outcome = outcome(input, self.host.driver.owned[at].divisible);
        self.finished(at, outcome);
    }

    fn finished(&mut self, at: usize, outcome: Outcome) {
        let Owned { queue, hctx, tag, .. } = self.host.driver.let_go(at, outcome);
        log!(self, "{queue:?} {hctx:?} {tag:?}: {outcome:?}");
        let Self { host, now, .. } = self;
        let of = &mut self.queues[queue.index()];
        let ended = match outcome {
            Outcome::Done(status) => of.complete(host, hctx, tag, status, *now),
            Outcome::Partial { sectors, status } => {
                of.complete_partly(host, hctx, tag, sectors, status, *now)
            }
            Outcome::Again => of.requeue(host, hctx, tag, *now),
            Outcome::AgainPrepared => of.requeue_prepared(host, hctx, tag, *now),
        };
        assert_eq!(ended, Ok(()), "the device should own the request");
    }

    /// Completes a request that is not in flight ([first-end-wins]).
    fn complete_unknown_request(&mut self, input: &mut Input<'_>, queue: QueueId) {
        let tags = *self.host.tags().config();
        let hctx = HctxId(input.between(0, tags.hctxs - 1));
        let tag = DriverTag(input.between(0, tags.depth));
        if !self.host.driver.owns(queue, hctx, tag, tags.shared_over_hctxs) {
            let Self { host, now, .. } = self;
            let queue = &mut self.queues[queue.index()];
            let ended = match input.below(3) {
                0 => queue.complete(host, hctx, tag, Status::Ok, *now),
                1 => queue.requeue(host, hctx, tag, *now),
                _ => queue.requeue_prepared(host, hctx, tag, *now),
            };
            assert_eq!(ended, Err(NotInFlight));
        }
    }

    /// Sets the device's answer to the next offer or timeout.
    fn tell_device(&mut self, input: &mut Input<'_>) {
        let busy = [Busy::Device, Busy::Host, Busy::Resource];
        let device = &mut self.host.driver;
        match input.below(6) {
            0..=2 => device.answers.push_back(Accept::Busy(input.pick(&busy))),
            3 => device.answers.push_back(Accept::Failed(Status::Gone)),
            4 => device.answers.push_back(Accept::Queued),
            _ => device.timeouts.push_back(TimedOut::Ended(outcome(input, 0))),
        }
    }

    /// Ends a task's batches on all disks except the disk on which the task sleeps.
    fn unplug(&mut self, cpu: CpuId) {
        let sleeps_on = match self.tasks[cpu.index()] {
            Task::Asleep(queue, _) => Some(queue),
            _ => None,
        };
        log!(self, "{cpu:?} unplugs");
        let queues = self.queues.iter_mut().filter(|queue| Some(queue.id()) != sleeps_on);
        for queue in queues {
            queue.unplug(&mut self.host, cpu, self.now);
        }
    }

    /// Freezes a queue. Rare, so that many operations happen in between.
    fn freeze(&mut self, input: &mut Input<'_>, queue: QueueId) {
        if input.one_in(4) {
            log!(self, "{queue:?} freezes");
            self.queues[queue.index()].freeze(&mut self.host, self.now);
            self.frozen[queue.index()] += 1;
        }
    }

    /// Quiesces a queue, as rarely.
    fn quiesce(&mut self, input: &mut Input<'_>, queue: QueueId) {
        if input.one_in(4) {
            log!(self, "{queue:?} is quiesced");
            self.queue(queue).quiesce();
            self.quiesced[queue.index()] += 1;
            self.host.driver.disks[queue.index()].quiesced = true;
        }
    }

    fn unfreeze(&mut self, queue: QueueId) {
        let frozen = &mut self.frozen[queue.index()];
        if let Some(left) = frozen.checked_sub(1) {
            *frozen = left;
            log!(self, "{queue:?} thaws: {left} left");
            self.queue(queue).unfreeze();
        }
    }

    fn unquiesce(&mut self, queue: QueueId) {
        let quiesced = &mut self.quiesced[queue.index()];
        if let Some(left) = quiesced.checked_sub(1) {
            *quiesced = left;
            log!(self, "{queue:?} is unquiesced: {left} left");
            self.host.driver.disks[queue.index()].quiesced = left > 0;
            self.queue(queue).unquiesce();
        }
    }

    /// Returns the earliest instant at which a queue asks for a poll.
    fn poll_at(&self) -> Option<Instant> {
        self.queues.iter().filter_map(RequestQueue::poll_at).min()
    }

    fn sleep_until_polled(&mut self) {
        if let Some(at) = self.poll_at() {
            self.now = self.now.max(at);
        }
    }

    /// Drains everything that follows from a call.
    fn collect(&mut self) {
        for steps in 0.. {
            assert!(steps < STEPS_MAX, "starved runs should not cause each other endlessly");
            for queue in &mut self.queues {
                while let Some(run) = queue.next_run(&mut self.host, self.now) {
                    self.runs.push((queue.id(), run.hctx));
                }
                while let Some(ended) = queue.next_ended() {
                    log!(self, "{:?} ended {}: {:?}", queue.id(), ended.bio.cookie, ended.status);
                    self.host.driver.accounts(queue.id()).ended(&ended);
                }
                while let Some(cpu) = queue.next_woken(&mut self.host) {
                    let task = &mut self.tasks
                        [usize::try_from(cpu).expect("a waiter should be a processor")];
                    let Task::Asleep(queue, bio) = *task else { panic!("{task:?} was woken") };
                    *task = Task::Woken(queue, bio);
                }
            }
            assert_eq!(self.host.driver.open_runs.len(), 0, "[last-or-commit]");
            let Some((queue, hctx)) = self.host.next_starved() else { break };
            self.run(queue, hctx);
        }
        self.queues.iter().for_each(|queue| queue.self_check(&self.host));
    }

    /// Ends the faults and waits until all bios have ended.
    fn end(&mut self) {
        log!(self, "the end begins");
        self.host.driver.answers.clear();
        self.host.driver.timeouts.clear();
        for at in 0..self.queues.len() {
            let queue = self.queues[at].id();
            while self.frozen[at] > 0 {
                self.unfreeze(queue);
            }
            while self.quiesced[at] > 0 {
                self.unquiesce(queue);
            }
        }
        self.collect();
        for steps in 0.. {
            assert!(steps < STEPS_MAX, "the play should come to an end");
            if !self.step_to_end() {
                break;
            }
            self.collect();
        }
        for queue in &self.queues {
            assert!(queue.is_empty(), "bios are left in {:?}", queue.id());
        }
        let device = &self.host.driver;
        assert!(device.disks.iter().all(|disk| disk.accounts.is_empty()), "no bio should be left");
        assert!(self.tasks.iter().all(|task| matches!(task, Task::Awake)), "{:?}", self.tasks);
        assert_eq!((device.budgets.len(), device.prepared.len()), (0, 0), "leaks");
        for hctx in (0..self.host.tags().config().hctxs).map(HctxId) {
            assert_eq!(self.host.tags().in_use(hctx), 0, "a tag of {hctx:?} leaks");
        }
    }

    /// Takes one step towards the end. Returns false if none was left.
    fn step_to_end(&mut self) -> bool {
        if let Some((queue, hctx)) = self.runs.pop() {
            self.run(queue, hctx);
            return true;
        }
        for at in 0..self.tasks.len() {
            match self.tasks[at] {
                Task::Asleep(..) => {}
                Task::Awake => {
                    self.unplug(CpuId(u16::try_from(at).expect("there should be few tasks")))
                }
                Task::Woken(queue, bio) => {
                    self.submit(at, queue, bio);
                    return true;
                }
            }
        }
        self.collect();
        if !self.runs.is_empty() {
            return true;
        }
        if !self.host.driver.owned.is_empty() {
            self.finished(0, Outcome::Done(Status::Ok));
            return true;
        }
        let left = self.queues.iter().any(|queue| !queue.is_empty());
        // A submitter that throttled writeback has woken may not come; the next one in its line
        // then sleeps until the window ends ([throttled-wait-ends]).
        let sleeps = self.tasks.iter().any(|task| matches!(task, Task::Asleep(..)));
        if left || sleeps {
            // [no-lost-wake-up]: only the retry delay or the end of a window may move it now.
            let at = self
                .poll_at()
                .expect("[no-lost-wake-up]: waiting bios should have a retry instant");
            let delay = if left { RETRY_DELAY } else { WINDOW };
            assert!(
                at <= self.now + delay,
                "[no-lost-wake-up]: bios or submitters wait for {at:?} at {:?}",
                self.now
            );
            self.now = self.now.max(at);
        }
        left || sleeps
    }
}

/// Returns the outcome of a request, mostly a success. A `divisible` request may complete in part.
fn outcome(input: &mut Input<'_>, divisible: u32) -> Outcome {
    match input.below(8) {
        4 if divisible > 0 => {
            let sectors = u32::from(input.between(0, 255)) % divisible;
            Outcome::Partial { sectors, status: Status::IoError }
        }
        5 => Outcome::Done(Status::Medium),
        6 => Outcome::Again,
        7 => Outcome::AgainPrepared,
        _ => Outcome::Done(Status::Ok),
    }
}
