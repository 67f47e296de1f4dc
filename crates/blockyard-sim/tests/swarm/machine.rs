//! The loop that drives real queues with their five calls in virtual time, and asks the checkers.

use crate::check::accounts;
use crate::check::cover::Cover;
use crate::check::ends::Ends;
use crate::check::merges;
use crate::check::progress::Progress;
use crate::check::waits::Waits;
use crate::device::{Misbehaved, Target};
use crate::draw::{Plan, one_in};
use crate::faults::KINDS;
use crate::flaw::{Flaw, Meddler, Stack, Striker};
use crate::recorder::{Recorder, Seen};
use crate::submitter::{Asleep, Submitter};
use crate::tally::Tally;
use blockyard::bio::{Bio, Flags};
use blockyard::driver::{Accept, Device, Finished, Outcome};
use blockyard::host::Host;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::fault::Faulty;
use blockyard::layer::trace::Traced;
use blockyard::policy::ElevatorKind;
use blockyard::request::Ended;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use blockyard_sim::event::EventHeap;
use blockyard_sim::workload::Prng;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};

/// More events than any plan needs; a run that needs them goes in circles.
const EVENTS_MAX: u64 = 3_000_000;

#[derive(Clone, Copy, Debug)]
enum Event {
    Step(usize),
    /// A submitter that was refused registers for a tag.
    Register(usize, Bio),
    Unplug(QueueId, CpuId),
    Run(QueueId, HctxId),
    Poll(QueueId),
    /// Something at the device is due.
    Device,
}

/// What a run was like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) events: u64,
    pub(crate) bios: u64,
    pub(crate) runs: u64,
    pub(crate) tally: Tally,
    pub(crate) misbehaved: Misbehaved,
    /// How often rules fired, by [`KINDS`].
    pub(crate) injected: [u64; KINDS.len()],
    pub(crate) longest_wait: Duration,
}

pub(crate) struct Machine {
    plan: Plan,
    prng: Prng,
    now: Instant,
    events: EventHeap<Event>,
    host: Host<Meddler, Tally>,
    queues: Vec<RequestQueue>,
    polls: Vec<Option<Instant>>,
    /// Where the next look at the device is scheduled.
    device_at: Option<Instant>,
    /// Deferred runs that are pending.
    deferred: BTreeSet<(QueueId, HctxId)>,
    submitters: Vec<Submitter>,
    /// What the driver owns, by hardware queue and tag.
    with_driver: BTreeMap<(QueueId, HctxId, DriverTag), Seen>,
    next_cookie: u64,
    faulty: bool,
    striker: Striker,
    ends: Ends,
    cover: Cover,
    progress: Progress,
    waits: Waits,
    summary: Summary,
}

impl Machine {
    pub(crate) fn new(seed: u64, plan: Plan, flaw: Option<Flaw>) -> Self {
        let draws = Prng::new(seed);
        let driver = Meddler { inner: stack(&plan, &draws, flaw), striker: Striker::new(flaw) };
        let host = Host::new(driver, Tally::default(), plan.tags);
        let queues: Vec<_> = (0..)
            .zip(&plan.queues)
            .map(|(id, config)| RequestQueue::new(QueueId(id), spoil(config.clone(), flaw), &host))
            .collect();
        let hctxs = u64::from(plan.tags.hctxs) * queues.len() as u64;
        Self {
            prng: draws.fork(2),
            now: Instant::ZERO,
            events: EventHeap::new(),
            polls: vec![None; queues.len()],
            device_at: None,
            deferred: BTreeSet::new(),
            submitters: plan.submitters.iter().cloned().map(Submitter::new).collect(),
            with_driver: BTreeMap::new(),
            next_cookie: 0,
            faulty: true,
            striker: Striker::new(flaw),
            ends: Ends::default(),
            cover: Cover::default(),
            progress: Progress::new(hctxs),
            waits: Waits::new(&plan),
            summary: Summary::default(),
            host,
            queues,
            plan,
        }
    }

    /// The safety phase with faults, then the liveness phase without.
    pub(crate) fn run(mut self) -> Summary {
        self.phase(0);
        self.faulty = false;
        self.host.driver.lift_faults();
        self.phase(1);
        accounts::all_ended(&self.host, &self.queues);
        self.summary.bios = self.next_cookie;
        self.summary.tally = self.host.sink;
        self.summary.misbehaved = self.host.driver.checked_below().below.misbehaved;
        for (rule, count) in self.host.driver.checked().below.counts() {
            let kind = KINDS.iter().position(|kind| *kind == rule.name);
            self.summary.injected[kind.expect("a kind of ours")] += count.fired;
        }
        self.summary.longest_wait = self.waits.longest;
        self.summary
    }

    /// Every submitter submits its bios of the phase; all end.
    fn phase(&mut self, phase: usize) {
        for at in 0..self.submitters.len() {
            self.submitters[at].left = self.submitters[at].plan.bios[phase];
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
        self.progress.moved(self.now);
        while self.is_busy() {
            let next = self.events.next_at();
            let waiting = self.ends.outstanding + self.submitters_left();
            self.progress.next_event(next, waiting);
            let Some((at, event)) = self.events.pop() else { return };
            self.now = at;
            self.summary.events += 1;
            assert!(self.summary.events < EVENTS_MAX, "[spin] {EVENTS_MAX} events");
            self.handle(event);
            self.settle();
        }
    }

    fn is_busy(&self) -> bool {
        self.ends.outstanding > 0 || self.submitters_left() > 0
    }

    fn submitters_left(&self) -> u64 {
        self.submitters.iter().map(|submitter| submitter.left).sum()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Step(at) => self.step(at),
            Event::Register(at, bio) => self.register(at, &bio),
            Event::Unplug(queue, cpu) => {
                self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
            }
            Event::Run(queue, hctx) => {
                self.deferred.remove(&(queue, hctx));
                self.run_hctx(queue, hctx);
            }
            Event::Poll(queue) => {
                self.polls[queue.index()] = None;
                self.progress.retried();
            }
            Event::Device => {
                self.device_at = self.device_at.filter(|at| *at > self.now);
                self.take_finished();
            }
        }
        self.after_call();
    }

    fn later(&mut self, delay_max: Duration, event: Event) {
        let delay = Duration::from_ns(self.prng.below(delay_max.as_ns() + 1));
        self.events.push(self.now + delay, event);
    }

    fn run_hctx(&mut self, queue: QueueId, hctx: HctxId) {
        self.summary.runs += 1;
        self.progress.ran();
        let _ = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
        if self.striker.flaw == Some(Flaw::Spin) {
            self.events.push(self.now + Duration::from_ns(1), Event::Run(queue, hctx));
        }
        self.after_call();
    }

    /// Every call is followed by this: what the driver saw, what the device was told.
    fn after_call(&mut self) {
        self.host.driver.checked().call_ended();
        self.host.driver.checked_below().call_ended();
        for mut seen in core::mem::take(&mut self.host.driver.inner.sink.seen) {
            self.progress.moved(self.now);
            if self.striker.strikes(Flaw::LoseRequest) {
                seen.pieces.clear();
            }
            if self.striker.strikes(Flaw::ShiftPiece) {
                seen.pieces[0].sector += 1;
            }
            self.see(&seen);
            if self.striker.strikes(Flaw::DuplicateRequest) {
                self.see(&seen);
            }
        }
        if self.plan.checks_each_step {
            self.queues.iter().for_each(|queue| queue.self_check(&self.host));
        }
    }

    /// Completes what the device is done with.
    fn take_finished(&mut self) {
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            if self.striker.strikes(Flaw::LoseCompletion) {
                continue;
            }
            if self.striker.strikes(Flaw::PretendEnd) {
                self.pretend_end(&finished);
                continue;
            }
            self.complete(finished);
            if self.striker.strikes(Flaw::CompleteTwice) {
                self.complete(finished);
            }
            self.after_call();
        }
    }

    fn schedule_device(&mut self) {
        let Some(mut at) = self.host.driver.poll_at() else { return };
        if self.device_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        self.device_at = Some(at);
        if self.striker.flaw == Some(Flaw::OutsideInfluence) {
            static OUTSIDE: AtomicU64 = AtomicU64::new(0);
            at = at + Duration::from_ns(OUTSIDE.fetch_add(1, Ordering::Relaxed));
        }
        self.events.push(at.max(self.now), Event::Device);
    }

    fn pretend_end(&mut self, finished: &Finished) {
        let seen = self.with_driver.remove(&key(finished)).expect("it was seen");
        for piece in &seen.pieces {
            self.cover.done(piece);
            let bio = *self.ends.bio(piece.cookie);
            self.end(finished.queue, &Ended { bio, status: Status::Ok });
        }
    }

    /// The driver took or failed a request.
    fn see(&mut self, seen: &Seen) {
        if self.striker.strikes(Flaw::MixOps) {
            let mut other = seen.clone();
            other.op = blockyard::bio::Op::Flush;
            merges::check(&self.ends, &other, &self.plan.queues[seen.queue.index()].limits);
        }
        merges::check(&self.ends, seen, &self.plan.queues[seen.queue.index()].limits);
        for piece in &seen.pieces {
            self.cover.sent(self.ends.bio(piece.cookie), piece);
        }
        match seen.answer {
            Accept::Failed(status) => self.end_parts(seen, status),
            _ => {
                self.with_driver.insert((seen.queue, seen.hctx, seen.tag), seen.clone());
            }
        }
    }

    fn end_parts(&mut self, seen: &Seen, status: Status) {
        for piece in &seen.pieces {
            self.cover.done(piece);
            if status != Status::Ok {
                self.ends.part_failed(piece.cookie, status);
            }
        }
    }

    fn complete(&mut self, mut finished: Finished) {
        let Some(seen) = self.with_driver.remove(&key(&finished)) else {
            panic!("[ends] {finished:?} completes and is not with the driver")
        };
        self.progress.moved(self.now);
        match finished.outcome {
            Outcome::Done(status) => self.end_parts(&seen, status),
            Outcome::Again | Outcome::AgainPrepared => {
                seen.pieces.iter().for_each(|piece| self.cover.back(piece))
            }
        }
        let failed = matches!(finished.outcome, Outcome::Done(status) if status != Status::Ok);
        if failed && self.striker.strikes(Flaw::HideError) {
            finished.outcome = Outcome::Done(Status::Ok);
        }
        let target = &mut self.queues[finished.queue.index()];
        let known = target.conclude(&mut self.host, &finished, self.now);
        assert!(known.is_ok(), "[ends] the queue does not know {finished:?}");
    }

    /// Does or schedules all that a call left to be done, as the contract says.
    fn settle(&mut self) {
        loop {
            let runs = self.drain_runs() + self.drain_starved();
            self.drain_ends();
            self.drain_woken();
            if runs == 0 {
                break;
            }
        }
        for queue in (0..).map(QueueId).take(self.queues.len()) {
            self.schedule_poll(queue);
        }
        self.schedule_device();
    }

    fn drain_runs(&mut self) -> u64 {
        let mut runs = 0;
        for at in 0..self.queues.len() {
            let queue = self.queues[at].id();
            while let Some(run) = self.queues[at].next_run(&mut self.host, self.now) {
                if self.striker.strikes(Flaw::ForgetRun) {
                    continue;
                }
                if run.deferred || self.plan.defers_all {
                    if self.deferred.insert((queue, run.hctx)) {
                        self.later(self.plan.run_delay_max, Event::Run(queue, run.hctx));
                    }
                } else {
                    self.run_hctx(queue, run.hctx);
                    runs += 1;
                }
            }
        }
        runs
    }

    fn drain_starved(&mut self) -> u64 {
        let mut runs = 0;
        while let Some((queue, hctx)) = self.host.next_starved() {
            self.run_hctx(queue, hctx);
            runs += 1;
        }
        runs
    }

    fn drain_ends(&mut self) {
        for at in 0..self.queues.len() {
            while let Some(ended) = self.queues[at].next_ended() {
                let queue = self.queues[at].id();
                self.end(queue, &ended);
                if self.striker.strikes(Flaw::EndTwice) {
                    self.end(queue, &ended);
                }
                self.wake_for_bio(queue);
            }
        }
    }

    fn end(&mut self, queue: QueueId, ended: &Ended) {
        let bio = *self.ends.bio(ended.bio.cookie);
        self.cover.ended(&bio);
        self.ends.ended(queue, ended);
        self.waits.ended(queue.index(), ended.bio.cookie, self.now);
        let at = self.submitters.iter().position(|s| s.owns(ended.bio.cookie));
        let at = at.expect("somebody submitted it");
        if self.submitters[at].ended(ended.bio.cookie) {
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
    }

    /// A bio of `queue` has ended: who found no memory for one tries again.
    fn wake_for_bio(&mut self, queue: QueueId) {
        for at in 0..self.submitters.len() {
            let submitter = &mut self.submitters[at];
            if submitter.plan.queue == queue && submitter.asleep == Asleep::ForMemory {
                submitter.asleep = Asleep::No;
                self.later(Duration::ZERO, Event::Step(at));
            }
        }
    }

    fn drain_woken(&mut self) {
        for at in 0..self.queues.len() {
            while let Some(waiter) = self.queues[at].next_woken() {
                self.wake(waiter);
            }
        }
        while let Some(waiter) = self.host.next_woken() {
            self.wake(waiter);
        }
    }

    fn wake(&mut self, waiter: u64) {
        let at = usize::try_from(waiter).expect("waiters are submitters");
        let submitter = &mut self.submitters[at];
        assert_eq!(submitter.asleep, Asleep::ForTag, "[wake-up] {at} did not wait");
        submitter.asleep = Asleep::No;
        self.later(self.plan.run_delay_max, Event::Step(at));
    }

    fn schedule_poll(&mut self, queue: QueueId) {
        let Some(at) = self.queues[queue.index()].poll_at() else { return };
        let scheduled = &mut self.polls[queue.index()];
        if scheduled.is_none_or(|earlier| at < earlier) {
            *scheduled = Some(at);
            self.events.push(at.max(self.now), Event::Poll(queue));
        }
    }

    /// A submitter submits a batch, under a plug or not.
    fn step(&mut self, at: usize) {
        let (queue, cpu) = (self.submitters[at].plan.queue, self.submitters[at].plan.cpu);
        if self.submitters[at].asleep != Asleep::No {
            return;
        }
        let plugs = self.submitters[at].plan.plugs;
        if plugs {
            self.queues[queue.index()].plug(cpu);
        }
        for _ in 0..self.submitters[at].plan.batch {
            if !self.submitters[at].may_submit() || !self.submit(at) {
                break;
            }
            self.after_call();
        }
        if plugs {
            let hold = self.submitters[at].plan.plug_hold_max;
            if hold == Duration::ZERO {
                self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
            } else {
                self.later(hold, Event::Unplug(queue, cpu));
            }
        }
        if self.submitters[at].asleep == Asleep::No && self.submitters[at].may_submit() {
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
    }

    /// Submits the next bio; says whether it was taken.
    fn submit(&mut self, at: usize) -> bool {
        let cookie = self.next_cookie;
        let submitter = &mut self.submitters[at];
        let (queue, cpu) = (submitter.plan.queue, submitter.plan.cpu);
        let limits = &self.plan.queues[queue.index()].limits;
        let bio = submitter.next_bio(&mut self.prng, limits, cookie);
        let target = &mut self.queues[queue.index()];
        let held = (target.bios_in_use(), target.in_flight());
        match target.submit(&mut self.host, cpu, bio, self.now) {
            Ok(()) => {
                self.next_cookie += 1;
                self.submitters[at].taken(cookie);
                self.ends.entered(queue, bio);
                if !self.faulty {
                    self.waits.entered(cookie, self.now);
                }
                self.progress.moved(self.now);
                return true;
            }
            Err(SubmitError::NoTag) if one_in(&mut self.prng, self.plan.late_wait_one_in) => {
                self.submitters[at].asleep = Asleep::ForTag;
                self.later(Duration::from_us(20), Event::Register(at, bio));
            }
            Err(SubmitError::NoTag) => {
                self.submitters[at].asleep = Asleep::ForTag;
                self.register(at, &bio);
            }
            Err(SubmitError::WouldBlock) => {
                self.submitters[at].retry_without(Flags::NOWAIT);
                self.later(Duration::from_us(20), Event::Step(at));
                self.submitters[at].asleep = Asleep::No;
            }
            Err(SubmitError::TooManyBios) => self.submitters[at].asleep = Asleep::ForMemory,
            Err(refused) => panic!("[refusal] {refused} of {bio:?}"),
        }
        let target = &self.queues[queue.index()];
        if bio.flags.contains(Flags::NOWAIT) {
            assert_eq!(
                held,
                (target.bios_in_use(), target.in_flight()),
                "[refusal] kept something"
            );
        }
        false
    }

    fn register(&mut self, at: usize, bio: &Bio) {
        let (queue, cpu) = (self.submitters[at].plan.queue, self.submitters[at].plan.cpu);
        let waited = self.queues[queue.index()].wait(&mut self.host, cpu, bio, at as u64, self.now);
        assert!(waited.is_ok(), "[refusal] no room to wait");
    }
}

const fn key(finished: &Finished) -> (QueueId, HctxId, DriverTag) {
    (finished.queue, finished.hctx, finished.tag)
}

/// The device of `plan` under its layers.
fn stack(plan: &Plan, draws: &Prng, flaw: Option<Flaw>) -> Stack {
    let lies = plan.device.empty_promises > 0;
    let mut device = plan.device;
    if flaw == Some(Flaw::EmptyPromise) {
        device.empty_promises = 5;
    }
    let terms: Vec<_> = plan.queues.iter().map(|config| Terms::of(config, &plan.tags)).collect();
    let target = Target::new(device, plan.queues.len(), draws.fork(1));
    let target = Checked::new(target, terms.clone(), &plan.tags).trusting_promises(lies);
    let faulty = Faulty::new(target, plan.faults.clone(), draws.fork(3), &plan.tags);
    let below = Checked::new(faulty, terms, &plan.tags).trusting_promises(lies);
    Traced { below, sink: Recorder::default() }
}

/// Flaws that are a wrong configuration.
fn spoil(mut config: QueueConfig, flaw: Option<Flaw>) -> QueueConfig {
    match flaw {
        Some(Flaw::WrongLimits) => config.limits.max_sectors *= 2,
        Some(Flaw::StarveWrites) => {
            if let ElevatorKind::Deadline(tunables) = &mut config.policies.elevator {
                tunables.writes_starved = u32::MAX;
                tunables.write_expire = Duration::MAX;
            }
        }
        _ => {}
    }
    config
}
