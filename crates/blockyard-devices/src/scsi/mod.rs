//! A SCSI host, its target, and the target's disks.
//!
//! A command occupies a slot until it completes. The host's `can_queue` and the disk's
//! `cmd_per_lun`, which counts over all hardware queues, limit the slots. Commands in service do
//! not hold each other up; their times differ by chance, and not by their size. Then each command
//! passes the target's port, which all of them share. A refusal at a limit that all disks of a host
//! or target share is [`Busy::Host`]: any completion makes room.
//!
//! A disk that answers QUEUE FULL lowers its depth to the number of commands that it held, after as
//! many refusals as the profile says. It raises the depth by one after each quiet period, up to the
//! original depth.
//!
//! # Rules
//!
//! - **[disk-depth-limit]** A disk has at most `cmd_per_lun` commands outstanding, whether they
//!   came with budget or without.

pub mod evidence;
mod family;
mod port;
pub(crate) mod profile;

use super::activity::Activity;
use super::cache::{self, Cache};
use super::{DeviceEvent, Events};
use crate::cache::CacheProfile;
use crate::data::event::ReportsData;
use crate::family::FamilyModel;
use crate::scsi::profile::{HbaProfile, Refusal, RefusalMode};
use crate::terms::Completion;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::prng::Prng;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId, SECTOR_BYTES};
use port::Port;
use std::collections::VecDeque;

/// A command on its way through service and port.
#[derive(Clone, Copy, Debug)]
struct Command {
    finished: Finished,
    is_read: bool,
    bytes: u64,
    /// The extra service time of the cache.
    longer: Duration,
    /// Whether the command came without budget, so that its end lowers the disk's count
    /// ([disk-depth-limit]).
    counted_here: bool,
}

impl Command {
    const NONE: Self = Self {
        finished: Finished {
            queue: QueueId(0),
            hctx: HctxId(0),
            tag: DriverTag(0),
            outcome: Outcome::Again,
        },
        is_read: false,
        bytes: 0,
        longer: Duration::ZERO,
        counted_here: false,
    };
}

/// One disk (logical unit).
#[derive(Clone, Copy, Debug)]
struct Lun {
    depth: u32,
    outstanding: u32,
    /// Commands at the disk itself.
    at_disk: u32,
    refused_in_row: u32,
    last_refusal: Instant,
}

/// The model.
#[derive(Debug)]
pub struct Hba {
    /// Boxed, so that all models are of about the same size.
    profile: Box<HbaProfile>,
    prng: Prng,
    luns: Vec<Lun>,
    outstanding: u32,
    /// Commands by hardware queue and tag.
    commands: Vec<Command>,
    handed_over: Vec<u32>,
    /// Requests that have completed and were not pulled yet.
    finished: VecDeque<Finished>,
    port: Port,
    cache: Option<Cache>,
    activity: Activity,
}

impl Hba {
    /// Returns a host with `hctxs` hardware queues by `profile`, whose disks have caches by
    /// `cache`. `prng` draws the spread of service times.
    #[must_use]
    pub fn new(profile: HbaProfile, hctxs: u16, cache: Option<CacheProfile>, prng: Prng) -> Self {
        debug_assert!(hctxs > 0 && profile.luns > 0, "a host has a queue and a disk");
        let lun = Lun {
            depth: u32::from(profile.cmd_per_lun),
            outstanding: 0,
            at_disk: 0,
            refused_in_row: 0,
            last_refusal: Instant::ZERO,
        };
        let commands = usize::from(hctxs) * usize::from(profile.can_queue);
        Self {
            luns: vec![lun; usize::from(profile.luns)],
            profile: Box::new(profile),
            prng,
            outstanding: 0,
            commands: vec![Command::NONE; commands],
            handed_over: Vec::new(),
            finished: VecDeque::new(),
            port: Port::new(&profile),
            cache: cache.map(|cache| Cache::new(cache, profile.luns)),
            activity: Activity::default(),
        }
    }

    /// Completes a command, or returns a refusal.
    fn end(&mut self, slot: u32, now: Instant) {
        let finished = self.commands[slot as usize].finished;
        let lun = &mut self.luns[finished.queue.index()];
        match finished.outcome {
            Outcome::Again | Outcome::AgainPrepared => self.note_refusal(finished.queue, now),
            Outcome::Done(_) | Outcome::Partial { .. } => {
                debug_assert!(lun.at_disk > 0, "{finished:?} was not at the disk");
                lun.at_disk -= 1;
                lun.refused_in_row = 0;
                self.raise_depth(finished.queue, now);
            }
        }
        self.activity.end(now);
        self.finished.push_back(finished);
    }

    fn slot_of(&self, hctx: HctxId, tag: DriverTag) -> u32 {
        debug_assert!(tag.0 < self.profile.can_queue, "{tag:?} is beyond what the host takes");
        u32::from(hctx.0) * u32::from(self.profile.can_queue) + u32::from(tag.0)
    }

    fn service_time(&mut self, command: &Command) -> Duration {
        let profile = &self.profile;
        let time = if command.is_read { profile.command_read } else { profile.command_write };
        let time = profile.spread.map_or(time, |spread| spread.draw(time, &mut self.prng));
        time + command.longer
    }

    /// Whether the disk itself answers QUEUE FULL.
    fn refuses_at_disk(&self, queue: QueueId) -> bool {
        match self.profile.refusal {
            Some(Refusal { mode: RefusalMode::LunFull { .. }, limit }) => {
                self.luns[queue.index()].at_disk >= u32::from(limit)
            }
            _ => false,
        }
    }

    /// Lowers the depth after enough refusals.
    fn note_refusal(&mut self, queue: QueueId, now: Instant) {
        let Some(Refusal { mode: RefusalMode::LunFull { ramp_down_after, .. }, .. }) =
            self.profile.refusal
        else {
            return;
        };
        let lun = &mut self.luns[queue.index()];
        lun.refused_in_row += 1;
        lun.last_refusal = now;
        if lun.refused_in_row >= ramp_down_after {
            lun.refused_in_row = 0;
            debug_assert!(lun.at_disk <= lun.outstanding, "{lun:?}");
            lun.depth = lun.at_disk.max(1);
        }
    }

    /// Raises the depth after a quiet period.
    fn raise_depth(&mut self, queue: QueueId, now: Instant) {
        let Some(Refusal { mode: RefusalMode::LunFull { ramp_up_period, .. }, .. }) =
            self.profile.refusal
        else {
            return;
        };
        let lun = &mut self.luns[queue.index()];
        let full = u32::from(self.profile.cmd_per_lun);
        debug_assert!((1..=full).contains(&lun.depth), "[disk-depth-limit] {lun:?}");
        if lun.depth < full && now.since(lun.last_refusal) >= ramp_up_period {
            lun.depth += 1;
            lun.last_refusal = now;
        }
    }

    /// Whether a limit shared by all disks is reached.
    fn shared_is_full(&self) -> bool {
        match self.profile.refusal {
            Some(Refusal { mode: RefusalMode::HostFull | RefusalMode::TargetFull, limit }) => {
                self.outstanding >= u32::from(limit)
            }
            _ => false,
        }
    }
}

impl FamilyModel for Hba {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn completes_one_by_one(&self) -> bool {
        true
    }

    /// A host has a completion queue, with a vector of its own, for each hardware queue.
    fn completion(&self) -> Completion {
        Completion::Vector
    }

    fn start(&mut self, at: Instant, events: &mut Events) {
        if self.handed_over.is_empty() {
            return;
        }
        let mut handed_over = core::mem::take(&mut self.handed_over);
        for slot in handed_over.drain(..) {
            self.activity.begin(at);
            let command = self.commands[slot as usize];
            let refused = self.refuses_at_disk(command.finished.queue);
            let time = if refused {
                self.commands[slot as usize].finished.outcome = Outcome::Again;
                Duration::from_ns(self.profile.command_read.as_ns() / 8)
            } else {
                self.service_time(&command)
            };
            self.luns[command.finished.queue.index()].at_disk += u32::from(!refused);
            events.push_back((at + time, DeviceEvent(slot)));
        }
        self.handed_over = handed_over;
    }

    fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        let Some(&Command { finished, is_read, bytes, .. }) = self.commands.get(event.0 as usize)
        else {
            if let Some(slot) = self.port.event(event.0, now, events) {
                self.end(slot, now);
            }
            return;
        };
        if matches!(finished.outcome, Outcome::Again) {
            self.end(event.0, now);
        } else {
            self.port.arrive(event.0, is_read, bytes, now, events);
        }
    }
}

impl Device for Hba {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for Hba {}

impl Driver for Hba {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out);

    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        let lun = &mut self.luns[queue.index()];
        let free = lun.outstanding < lun.depth;
        lun.outstanding += u32::from(free); // [disk-depth-limit]
        debug_assert!(lun.outstanding <= u32::from(self.profile.cmd_per_lun), "[disk-depth-limit]");
        free.then_some(Budget(0))
    }

    fn return_budget(&mut self, queue: QueueId, _budget: Budget) {
        let lun = &mut self.luns[queue.index()];
        debug_assert!(lun.outstanding > 0, "a budget was given back that was never taken");
        lun.outstanding -= 1;
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.shared_is_full() {
            return Accept::Busy(Busy::Host);
        }
        let counted_here = issue.budget.is_none();
        if counted_here && self.take_budget(issue.queue).is_none() {
            return Accept::Busy(Busy::Device);
        }
        self.outstanding += 1;
        let request = issue.request();
        let command = Command {
            finished: Finished {
                queue: issue.queue,
                hctx: issue.hctx,
                tag: issue.tag,
                outcome: Outcome::Done(Status::Ok),
            },
            is_read: request.op.is_read(),
            bytes: match request.op {
                Op::Read | Op::Write => u64::from(request.sectors) * u64::from(SECTOR_BYTES),
                _ => 0,
            },
            longer: cache::longer(&mut self.cache, issue),
            counted_here,
        };
        let slot = self.slot_of(issue.hctx, issue.tag);
        self.commands[slot as usize] = command;
        self.handed_over.push(slot);
        Accept::Queued
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, _request: &Request) {
        debug_assert!(self.outstanding > 0, "{tag:?} ends at an idle host");
        self.outstanding -= 1;
        if self.commands[self.slot_of(hctx, tag) as usize].counted_here {
            self.luns[queue.index()].outstanding -= 1; // [disk-depth-limit]
        }
    }
}
