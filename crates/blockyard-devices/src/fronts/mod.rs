//! A drive: a front end, which the host sees, over a medium, which keeps the data.
//!
//! A command is posted in its slot; the front end takes it when the processor that posted it has
//! rung; the medium begins it when its data is there, or asks for the data of a write when it has
//! room; and the front end answers it when the medium is done.
//!
//! A host may have several disks, each with a front end and a medium of its own. The tags of all
//! are one set, of which each queue may hold as many as its disk has.
//!
//! A processor rings once for all commands that one run posts in a queue of NVMe or virtio, and for
//! each command of AHCI, UFS or USB. It pays for that.
//!
//! # Rules
//!
//! - **[slot-by-queue-and-tag]** A command keeps one slot, the number of its hardware queue and
//!   tag, until it is answered. The slot is its number at the medium.

pub(crate) mod ahci;
pub(crate) mod coalescing;
mod disk;
mod engine;
pub mod evidence;
mod family;
mod fetches;
pub mod figures;
mod front;
mod line;
pub(crate) mod nvme;
mod packets;
pub(crate) mod profile;
pub(crate) mod tables;
pub(crate) mod ufs;
pub(crate) mod usb;
mod vectors;
pub(crate) mod virtio;

use super::activity::Activity;
use super::load::MediumLoad;
use super::medium::{Access, CommandId, MediumCounts, MediumEvents, MediumUse};
use super::{DeviceEvent, Events};
use crate::data::event::ReportsData;
use crate::family::{FamilyModel, Setup};
use crate::fronts::coalescing::CoalescingProfile;
use crate::fronts::profile::DriveProfile;
use crate::terms::Completion;
use blockyard::bio::{Flags, Op};
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{DriverTag, HctxId, QueueId};
use disk::Disk;
use engine::{Next, SyncEngine};
pub use front::{FrontPart, FrontUse};
use vectors::Vectors;

/// The bit of a device event that makes it one of the medium, or of that of a disk by its number.
const OF_MEDIUM: u32 = 1 << 31;
/// The bit of a device event that makes it one of the vector of a hardware queue.
const OF_VECTOR: u32 = 1 << 30;
/// No slot: the end of a chain.
const NONE: u32 = u32::MAX;

/// How far a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In its queue: the drive does not know of it.
    Posted,
    /// On the way to the medium.
    Sent,
    /// At the medium.
    Served,
    /// The answer is on its way to the host.
    Answered,
}

/// The command in a slot.
#[derive(Clone, Copy, Debug)]
struct Command {
    finished: Finished,
    access: Access,
    stage: Stage,
    /// The next slot that was posted in the same piece of work, or [`NONE`].
    next: u32,
}

impl Command {
    const NONE: Self = Self {
        finished: Finished {
            queue: QueueId(0),
            hctx: HctxId(0),
            tag: DriverTag(0),
            outcome: Outcome::Done(Status::Ok),
        },
        access: Access { op: Op::Flush, start: 0, sectors: 0, fua: false, queue: HctxId(0) },
        stage: Stage::Answered,
        next: NONE,
    };
}

/// Counts of a drive's front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Commands that were posted.
    commands: u64,
    /// Doorbells that were rung.
    doorbells: u64,
}

/// What a drive, or the drives of one host, did in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveReport {
    /// Commands that were posted.
    pub commands: u64,
    /// Doorbells that were rung.
    pub doorbells: u64,
    /// What each disk did, at least one. An idle disk does not hide how busy another one is.
    pub disks: Vec<DiskReport>,
}

/// What one disk did in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskReport {
    /// The sum over time of its commands, in command-nanoseconds.
    pub held_ns: u128,
    /// How much of the front end was in use.
    pub front_use: FrontUse,
    /// The time for which the host's thread of a synchronous engine worked on commands, and waited
    /// for the medium.
    pub engine_use: Duration,
    /// How much of the medium was in use.
    pub medium_use: MediumUse,
    /// The counters of the medium.
    pub medium: MediumCounts,
    /// What the parts of the medium spent their time on.
    pub medium_load: MediumLoad,
}

/// A drive. See the [module](self).
#[derive(Debug)]
pub struct Drive {
    disks: Vec<Disk>,
    /// The most commands in one hardware queue, of all disks.
    depth: u16,
    /// Commands by slot ([slot-by-queue-and-tag]).
    commands: Vec<Command>,
    /// Slots posted in the piece of work that is being done.
    posted: Vec<u32>,
    vectors: Vectors,
    /// Time for which a processor is busy with ringing a doorbell.
    doorbell: Duration,
    /// Whether a doorbell is for a batch, and not for each command.
    batches: bool,
    /// Doorbells that were rung since the last call of [`Self::take_spent`].
    rung: u32,
    counts: Counts,
    /// Events that the medium has just scheduled.
    medium_events: MediumEvents,
    activity: Activity,
}

impl Drive {
    /// Returns an idle drive by `profile` in `setup`.
    #[must_use]
    pub(crate) fn new(profile: DriveProfile, setup: &Setup<'_>) -> Self {
        let Setup { hctxs, polled, .. } = *setup;
        assert!(polled <= hctxs, "{polled} of {hctxs} hardware queues are polled");
        let DriveProfile { front, disks, .. } = profile;
        let depth = front.depth() * disks;
        debug_assert!(hctxs > 0 && depth > 0, "a drive takes no commands");
        let coalescing = front.coalescing().filter(CoalescingProfile::is_on);
        Self {
            disks: (0..disks).map(|number| Disk::new(&profile, number, setup)).collect(),
            depth,
            commands: vec![Command::NONE; usize::from(hctxs) * usize::from(depth)],
            posted: Vec::new(),
            vectors: Vectors::new(coalescing, hctxs - polled),
            doorbell: front.doorbell(),
            batches: front.batches(),
            rung: 0,
            counts: Counts::default(),
            medium_events: MediumEvents::new(),
            activity: Activity::default(),
        }
    }

    /// Returns the slot of a command ([slot-by-queue-and-tag]).
    fn slot_of(&self, hctx: HctxId, tag: DriverTag) -> u32 {
        debug_assert!(tag.0 < self.depth, "{tag:?} is beyond the depth of {}", self.depth);
        u32::from(hctx.0) * u32::from(self.depth) + u32::from(tag.0)
    }

    /// Returns the place of the disk with `number`. A lone disk has every number.
    fn disk_at(&self, number: usize) -> usize {
        debug_assert!(number < self.disks.len() || self.disks.len() == 1, "no disk {number}");
        number.min(self.disks.len() - 1)
    }

    /// Returns the place of the disk behind `queue`.
    fn disk_of(&self, queue: QueueId) -> usize {
        self.disk_at(queue.index())
    }

    /// Rings the doorbell of a batch to the disk at `at`: 32 commands of one run cost one doorbell.
    fn ring(&mut self, at: usize, now: Instant) {
        let Disk { engine, front, .. } = &self.disks[at];
        let sleeps = engine.as_ref().is_none_or(SyncEngine::sleeps);
        if sleeps && front.needs_doorbell(now) {
            self.rung += 1;
            self.counts.doorbells += 1;
        }
    }

    /// Takes the command in slot `first`, and those posted with it.
    fn take(&mut self, first: u32, now: Instant, events: &mut Events) {
        let mut slot = first;
        while slot != NONE {
            let command = &mut self.commands[slot as usize];
            debug_assert_eq!(command.stage, Stage::Posted, "{command:?} was taken before");
            let next = core::mem::replace(&mut command.next, NONE);
            let queue = command.finished.queue;
            self.activity.begin(now);
            let at = self.disk_of(queue);
            self.disks[at].count_begin(now);
            let begin = match &mut self.disks[at].engine {
                Some(engine) => engine.take(slot, now),
                None => Some(now),
            };
            if let Some(begin) = begin {
                self.send(slot, begin, events);
            }
            slot = next;
        }
    }

    /// Sends the command in `slot`, which the front end takes at `now`, to the medium.
    fn send(&mut self, slot: u32, now: Instant, events: &mut Events) {
        let command = &mut self.commands[slot as usize];
        debug_assert_eq!(command.stage, Stage::Posted, "slot {slot} is sent once");
        command.stage = Stage::Sent;
        let Command { finished, access, .. } = *command;
        let at = self.disk_of(finished.queue);
        let Disk { front, fetches, .. } = &mut self.disks[at];
        let begin = match fetches {
            Some(_) => front.send_alone(access, now),
            None => front.send(access, now),
        };
        events.push_back((begin, DeviceEvent(slot)));
    }

    /// Lets the medium of the disk at `of` begin the command in `slot`.
    fn begin(&mut self, of: usize, slot: u32, access: Access, now: Instant) {
        let Disk { medium, fetches, .. } = &mut self.disks[of];
        match fetches {
            Some(_) if access.op == Op::Write => {
                medium.announce(CommandId(slot), access, now, &mut self.medium_events);
            }
            _ => medium.begin(CommandId(slot), access, now, &mut self.medium_events),
        }
    }

    /// Gives the medium of the disk at `of` the piece of data that has arrived.
    fn give(&mut self, of: usize, now: Instant) {
        let Disk { medium, fetches, .. } = &mut self.disks[of];
        let fetches = fetches.as_mut().expect("only a disk that fetches has pieces");
        medium.arrived(fetches.arrived(), now, &mut self.medium_events);
    }

    /// Fetches what the medium of the disk at `of` wants, a piece at a time.
    fn fetch(&mut self, of: usize, now: Instant, events: &mut Events) {
        let Disk { front, medium, fetches, .. } = &mut self.disks[of];
        let Some(fetches) = fetches else { return };
        while let Some(wanted) = medium.next_wanted() {
            fetches.want(wanted);
        }
        if let Some(piece) = fetches.next_piece() {
            events.push_back((front.fetch(piece.sectors, now), DeviceEvent(piece.id.0)));
        }
    }

    /// Answers the command in `slot`. Returns when the host has the answer.
    fn answer(&mut self, slot: u32, now: Instant) -> Instant {
        let command = &mut self.commands[slot as usize];
        debug_assert_eq!(command.stage, Stage::Served, "slot {slot} is not at the medium");
        command.stage = Stage::Answered;
        let Command { finished, access, .. } = *command;
        let at = self.disk_of(finished.queue);
        self.disks[at].front.answer(access, now)
    }

    /// Schedules the events of the medium of the disk at `of`, and answers the commands that have
    /// ended there.
    fn follow_medium(&mut self, of: usize, now: Instant, events: &mut Events) {
        for (at, event) in self.medium_events.drain(..) {
            debug_assert!(event.0 & OF_MEDIUM == 0, "{event:?} has too large a number");
            debug_assert!(at >= now, "{event:?} at {at}, in the past of {now}");
            let number = self.disks[of].schedule(event, at);
            events.push_back((at, DeviceEvent(number | OF_MEDIUM)));
        }
        self.fetch(of, now, events);
        while let Some(CommandId(slot)) = self.disks[of].medium.next_ended() {
            debug_assert_eq!(self.commands[slot as usize].stage, Stage::Served, "slot {slot}");
            match self.disks[of].engine.as_mut().map(|engine| engine.ended(slot, now)) {
                None => events.push_back((self.answer(slot, now), DeviceEvent(slot))),
                Some(Next::Command(next)) => self.send(next, now, events),
                Some(Next::Answers(batch)) => {
                    let answered = batch.iter().map(|slot| self.answer(*slot, now)).max();
                    let at = answered.expect("a batch has the command that ended last");
                    events.extend(batch.into_iter().map(|slot| (at, DeviceEvent(slot))));
                }
            }
        }
    }

    /// Returns what the drive did since it last forgot its counts (when measuring begins).
    #[must_use]
    pub(crate) fn report(&self) -> DriveReport {
        let held_ns = self.activity.held_ns();
        DriveReport {
            commands: self.counts.commands,
            doorbells: self.counts.doorbells,
            disks: self.disks.iter().map(|disk| disk.report(held_ns)).collect(),
        }
    }
}

impl FamilyModel for Drive {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn completion(&self) -> Completion {
        Completion::Vector
    }

    fn start(&mut self, at: Instant, events: &mut Events) {
        let Some(&first) = self.posted.first() else { return };
        for pair in self.posted.windows(2) {
            self.commands[pair[0] as usize].next = pair[1];
        }
        self.posted.clear();
        events.push_back((at, DeviceEvent(first)));
    }

    fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        if event.0 & OF_MEDIUM != 0 {
            let number = event.0 & !OF_MEDIUM;
            let of = self.disk_at(number as usize);
            self.disks[of].handle(number, now, &mut self.medium_events);
            return self.follow_medium(of, now, events);
        }
        if event.0 & OF_VECTOR != 0 {
            return self.vectors.expire((event.0 & !OF_VECTOR) as usize, now);
        }
        let slot = event.0;
        let command = &mut self.commands[event.0 as usize];
        match command.stage {
            Stage::Posted => self.take(slot, now, events),
            Stage::Sent => {
                command.stage = Stage::Served;
                let Command { finished, access, .. } = *command;
                let of = self.disk_of(finished.queue);
                self.begin(of, slot, access, now);
                self.follow_medium(of, now, events);
            }
            // A piece of its data is there.
            Stage::Served => {
                let queue = command.finished.queue;
                let of = self.disk_of(queue);
                self.give(of, now);
                self.follow_medium(of, now, events);
            }
            Stage::Answered => {
                let finished = command.finished;
                self.activity.end(now);
                let of = self.disk_of(finished.queue);
                self.disks[of].count_end(now);
                if let Some(due) = self.vectors.complete(finished, now) {
                    let vector = u32::from(finished.hctx.0) | OF_VECTOR;
                    events.push_back((due, DeviceEvent(vector)));
                }
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        self.activity.forget(now);
        self.counts = Counts::default();
        self.disks.iter_mut().for_each(|disk| disk.forget(now));
    }

    fn take_spent(&mut self) -> Duration {
        let rung = core::mem::take(&mut self.rung);
        Duration::from_ns(self.doorbell.as_ns().saturating_mul(rung.into()))
    }
}

impl Device for Drive {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.vectors.next_announced()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for Drive {}

impl Driver for Drive {
    blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, timed_out);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let request = issue.request();
        let slot = self.slot_of(issue.hctx, issue.tag);
        let access = Access {
            op: request.op,
            start: request.sector,
            sectors: request.sectors,
            fua: request.flags.contains(Flags::FUA),
            queue: issue.hctx,
        };
        let at = self.disk_of(issue.queue);
        if !self.disks[at].front.admit(access) {
            return Accept::Busy(Busy::Device);
        }
        debug_assert_eq!(
            self.commands[slot as usize].stage,
            Stage::Answered,
            "[slot-by-queue-and-tag] slot {slot} has a command"
        );
        self.commands[slot as usize] = Command {
            finished: Finished {
                queue: issue.queue,
                hctx: issue.hctx,
                tag: issue.tag,
                outcome: Outcome::Done(Status::Ok),
            },
            access,
            stage: Stage::Posted,
            next: NONE,
        };
        self.posted.push(slot);
        self.counts.commands += 1;
        if issue.last || !self.batches {
            self.ring(at, issue.now);
        }
        Accept::Queued
    }

    fn commit(&mut self, queue: QueueId, _hctx: HctxId, now: Instant) {
        if self.batches {
            self.ring(self.disk_of(queue), now);
        }
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, _request: &Request) {
        let slot = self.slot_of(hctx, tag);
        let Command { access, .. } = self.commands[slot as usize];
        let at = self.disk_of(queue);
        self.disks[at].front.release(access);
    }
}
