//! The loop that drives real queues with their calls in virtual time, and notifies the checkers.

mod build;
mod disturb;
mod drain;
mod submit;
mod watch;

use crate::check::{Checkers, accounts};
use crate::device::Misbehaved;
use crate::draw::{KINDS, Pause, Plan};
use crate::flaw::{Flaw, Meddler, Striker};
use crate::submitter::Submitter;
use crate::tally::Tally;
use blockyard::bio::Bio;
use blockyard::host::Host;
use blockyard::prng::Prng;
use blockyard::request_queue::RequestQueue;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::data::verify::Verified;
use blockyard_devices::event::EventHeap;
use std::collections::BTreeSet;

/// More events than any plan needs. A run that reaches this number is in an endless loop.
const EVENTS_MAX: u64 = 3_000_000;

#[derive(Clone, Copy, Debug)]
enum Event {
    Step(usize),
    /// A submitter that was refused registers for a tag.
    Register(usize, Bio),
    Unplug(QueueId, CpuId),
    Run(QueueId, HctxId),
    Poll(QueueId),
    /// An event of the device is due.
    Device,
    /// A pause of the plan begins.
    Pause(usize),
    /// A pause ends.
    Resume(QueueId, Pause),
}

/// The summary of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) events: u64,
    pub(crate) runs: u64,
    /// Bios that were accepted, by [`BIOS`](submit::BIOS).
    pub(crate) bios: [u64; BIOS.len()],
    pub(crate) tally: Tally,
    pub(crate) misbehaved: Misbehaved,
    /// The number of times that rules fired, by [`KINDS`].
    pub(crate) injected: [u64; KINDS.len()],
    pub(crate) flush_commands: u64,
    /// Bios that needed flushes.
    pub(crate) flushed_bios: u64,
    pub(crate) freezes: u64,
    pub(crate) quiesces: u64,
    pub(crate) strays: u64,
    pub(crate) verified: Verified,
}

pub(crate) use submit::BIOS;

pub(crate) struct Machine {
    plan: Plan,
    prng: Prng,
    now: Instant,
    events: EventHeap<Event>,
    host: Host<Meddler, Tally>,
    queues: Vec<RequestQueue>,
    /// Scheduled polls of queues.
    polls: BTreeSet<(QueueId, Instant)>,
    /// The next scheduled poll of the device.
    device_at: Option<Instant>,
    /// Pending deferred runs.
    deferred: BTreeSet<(QueueId, HctxId)>,
    submitters: Vec<Submitter>,
    /// Pauses that have not ended, and queues that stay frozen until they are empty.
    pauses: usize,
    draining: Vec<QueueId>,
    next_cookie: u64,
    faulty: bool,
    striker: Striker,
    checkers: Checkers,
    summary: Summary,
}

impl Machine {
    /// Runs the safety phase with faults, then the liveness phase without faults.
    pub(crate) fn run(mut self) -> Summary {
        for (at, pause) in self.plan.pauses.iter().enumerate() {
            self.events.push(self.now + pause.after, Event::Pause(at));
        }
        self.phase(0);
        self.faulty = false;
        self.host.driver.lift_faults();
        self.phase(1);
        accounts::all_ended(&self.host, &self.queues);
        self.sum_up()
    }

    fn sum_up(mut self) -> Summary {
        let mut summary = self.summary;
        for (rule, count) in self.host.driver.checked().below.counts() {
            let kind = KINDS.iter().position(|kind| *kind == rule.name);
            summary.injected[kind.expect("a kind of ours")] += count.fired;
        }
        summary.misbehaved = self.host.driver.checked_below().below.below.misbehaved;
        summary.flush_commands = self.checkers.flushes.commands;
        summary.flushed_bios = self.checkers.flushes.bios;
        summary.verified = self.checkers.data.finish(self.host.driver.media(), self.now);
        summary.tally = self.host.sink;
        summary
    }

    /// Runs one phase: every submitter submits its bios, and all bios and pauses end.
    fn phase(&mut self, phase: usize) {
        for at in 0..self.submitters.len() {
            self.submitters[at].left = self.submitters[at].plan.bios[phase];
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
        self.checkers.progress.moved(self.now);
        while self.is_busy() {
            let under_way = self.checkers.ends.outstanding();
            if self.striker.flaw == Some(Flaw::StopEarly) && phase == 1 && under_way > 0 {
                return;
            }
            let next = self.events.next_at();
            let waiting = under_way + self.submitters_left();
            self.checkers.progress.next_event(next, waiting);
            let Some((at, event)) = self.events.pop() else { return };
            self.now = at;
            self.summary.events += 1;
            assert!(self.summary.events < EVENTS_MAX, "[spin] {EVENTS_MAX} events");
            self.handle(event);
            self.drain();
            self.disturb();
        }
    }

    fn is_busy(&self) -> bool {
        self.checkers.ends.outstanding() > 0 || self.submitters_left() > 0 || self.pauses > 0
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
                self.polls.remove(&(queue, self.now));
                self.checkers.progress.retried();
            }
            Event::Device => {
                self.device_at = self.device_at.filter(|at| *at > self.now);
                self.take_finished();
            }
            Event::Pause(at) => self.pause(self.plan.pauses[at]),
            Event::Resume(queue, how) => self.resume(queue, how),
        }
        self.after_call();
    }

    fn later(&mut self, delay_max: Duration, event: Event) {
        let delay = Duration::from_ns(self.prng.below(delay_max.as_ns() + 1));
        self.events.push(self.now + delay, event);
    }

    fn run_hctx(&mut self, queue: QueueId, hctx: HctxId) {
        self.summary.runs += 1;
        self.checkers.progress.ran();
        self.checkers.hardware_queues.run_begins(queue, hctx);
        let _ = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
        if self.striker.flaw == Some(Flaw::Spin) {
            self.events.push(self.now + Duration::from_ns(1), Event::Run(queue, hctx));
        }
        self.after_call();
        self.checkers.hardware_queues.run_ended();
    }
}
