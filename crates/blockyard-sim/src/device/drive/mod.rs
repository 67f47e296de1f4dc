//! A drive: a front end, which the host sees, over a medium, which keeps the data.
//!
//! A command is posted in its slot; the front end takes it when the processor that posted it has rung; the medium begins it
//! when its data is there; and the front end answers it when the medium is done.
//!
//! # Rules
//!
//! - **[slot-by-queue-and-tag]** A command keeps one slot, the number of its hardware queue and tag, until it is
//!   answered. The slot is its number at the medium.

mod line;
mod media;
mod nvme;

use super::activity::Activity;
use super::medium::{Access, CommandId, MediumEvent, MediumEvents};
use super::{DeviceEvent, Events};
use crate::profile::{DriveProfile, FrontProfile};
use crate::workload::Prng;
use blockyard::bio::{Flags, Op};
use blockyard::driver::{Accept, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, HctxId, QueueId};
use media::Medium;
use nvme::Nvme;
use std::collections::VecDeque;

/// The bit of a device event that makes it one of the medium.
const OF_MEDIUM: u32 = 1 << 31;
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
        access: Access { op: Op::Flush, start: 0, sectors: 0, fua: false },
        stage: Stage::Answered,
        next: NONE,
    };
}

/// A drive. See the [module](self).
#[derive(Debug)]
pub struct Drive {
    front: Nvme,
    medium: Medium,
    /// The most commands in one hardware queue.
    depth: u16,
    /// Commands by slot ([slot-by-queue-and-tag]).
    commands: Vec<Command>,
    /// Slots posted in the piece of work that is being done.
    posted: Vec<u32>,
    /// Requests that have completed and were not pulled yet.
    finished: VecDeque<Finished>,
    /// Events that the medium has just scheduled.
    medium_events: MediumEvents,
    pub(super) activity: Activity,
}

impl Drive {
    /// Returns an idle drive by `profile` with `hctxs` hardware queues. `prng` supplies the random numbers of its medium.
    #[must_use]
    pub fn new(profile: DriveProfile, hctxs: u16, prng: Prng) -> Self {
        let depth = profile.depth();
        let FrontProfile::Nvme(nvme) = profile.front;
        Self {
            front: Nvme::new(nvme),
            medium: Medium::new(profile.medium, prng),
            depth,
            commands: vec![Command::NONE; usize::from(hctxs) * usize::from(depth)],
            posted: Vec::new(),
            finished: VecDeque::new(),
            medium_events: MediumEvents::new(),
            activity: Activity::default(),
        }
    }

    /// Rings for the commands that were posted since the last call, at `at`.
    pub(super) fn start(&mut self, at: Instant, events: &mut Events) {
        let Some(&first) = self.posted.first() else { return };
        for pair in self.posted.windows(2) {
            self.commands[pair[0] as usize].next = pair[1];
        }
        self.posted.clear();
        events.push_back((at, DeviceEvent(first)));
    }

    /// Handles an event of the front end or the medium.
    pub(super) fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        if event.0 & OF_MEDIUM != 0 {
            let event = MediumEvent(event.0 & !OF_MEDIUM);
            self.medium.event(event, now, &mut self.medium_events);
            return self.follow_medium(now, events);
        }
        let (slot, command) = (event.0, &mut self.commands[event.0 as usize]);
        match command.stage {
            Stage::Posted => self.take(slot, now, events),
            Stage::Sent => {
                command.stage = Stage::Served;
                let access = command.access;
                self.medium.begin(CommandId(slot), access, now, &mut self.medium_events);
                self.follow_medium(now, events);
            }
            Stage::Answered => {
                self.finished.push_back(command.finished);
                self.activity.end(now);
            }
            Stage::Served => unreachable!("{command:?} is at the medium"),
        }
    }

    /// Takes the command in slot `first`, and those posted with it.
    fn take(&mut self, first: u32, now: Instant, events: &mut Events) {
        let mut slot = first;
        while slot != NONE {
            let command = &mut self.commands[slot as usize];
            debug_assert_eq!(command.stage, Stage::Posted, "{command:?} was taken before");
            command.stage = Stage::Sent;
            events.push_back((self.front.send(command.access, now), DeviceEvent(slot)));
            self.activity.begin(now);
            slot = core::mem::replace(&mut command.next, NONE);
        }
    }

    /// Schedules the events of the medium, and answers the commands that have ended there.
    fn follow_medium(&mut self, now: Instant, events: &mut Events) {
        for (at, event) in self.medium_events.drain(..) {
            debug_assert!(event.0 & OF_MEDIUM == 0, "{event:?} has too large a number");
            events.push_back((at, DeviceEvent(event.0 | OF_MEDIUM)));
        }
        while let Some(CommandId(slot)) = self.medium.next_ended() {
            let command = &mut self.commands[slot as usize];
            debug_assert_eq!(command.stage, Stage::Served, "{command:?} is not at the medium");
            command.stage = Stage::Answered;
            events.push_back((self.front.answer(command.access, now), DeviceEvent(slot)));
        }
    }

    /// Returns the next completed request.
    pub(super) fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }
}

impl Driver for Drive {
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
        let request = issue.request();
        let slot = u32::from(issue.hctx.0) * u32::from(self.depth) + u32::from(issue.tag.0);
        self.commands[slot as usize] = Command {
            finished: Finished {
                queue: issue.queue,
                hctx: issue.hctx,
                tag: issue.tag,
                outcome: Outcome::Done(Status::Ok),
            },
            access: Access {
                op: request.op,
                start: request.sector,
                sectors: request.sectors,
                fua: request.flags.contains(Flags::FUA),
            },
            stage: Stage::Posted,
            next: NONE,
        };
        self.posted.push(slot);
        Accept::Queued
    }
}
