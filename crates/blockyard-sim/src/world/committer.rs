//! Committers: each commits the transactions of one disk's journal.
//!
//! As Linux 6.12 and 7.3 in recordings. An ordered journal has a thread (jbd2): it writes the
//! blocks of a commit under a plug, waits for them, and then writes the commit block with a flush
//! before it and FUA. A log (XFS) writes one record, with a flush before it and FUA. Linux makes
//! that record in a worker, and the thread that syncs submits it; here the worker does both.
//!
//! Metadata is not written to its own place (checkpoints), and no commit waits for room in the
//! journal.

use super::World;
use super::actor::Actor;
use crate::page_cache::{Commit, FileSystem, Journal, Start};
use crate::placement::Placement;
use blockyard::bio::{Bio, Flags};
use blockyard::status::{Status, SubmitError};
use blockyard::time::Duration;
use blockyard::unit::{CpuId, QueueId};
use blockyard_trace::observe::ActorId;

/// The next step of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No commit is under way.
    Idle,
    /// Write the superblock of the journal.
    Superblock,
    /// Write the blocks of which so many sectors are left.
    Body(u64),
    /// Write the end.
    End,
    /// The end is written when its bio has ended.
    Ending,
}

/// The thread that commits, as an actor.
#[derive(Debug)]
struct Committer {
    id: ActorId,
    disk: QueueId,
    cpu: CpuId,
    step: Step,
    commit: Commit,
    /// The number of the next bio of the commit. Bios in flight have different numbers, by which a
    /// verified run knows their data.
    number: u32,
    in_flight: u32,
    is_plugged: bool,
    waits_for_tag: bool,
    /// The first error of the commit.
    status: Status,
}

impl Committer {
    fn journal<'w>(&self, world: &'w mut World<'_>) -> &'w mut Journal {
        world.cache.file_system().expect("a committer has a file system").journal(self.disk)
    }

    const fn new(id: ActorId, disk: QueueId, cpu: CpuId) -> Self {
        let commit = Commit { superblock: false, body: 0, bio: 0, end: 0 };
        Self {
            id,
            disk,
            cpu,
            step: Step::Idle,
            commit,
            number: 0,
            in_flight: 0,
            is_plugged: false,
            waits_for_tag: false,
            status: Status::Ok,
        }
    }

    /// Submits `sectors` at `sector`. Returns whether there was a tag; otherwise the committer
    /// waits for one.
    fn write(
        &mut self,
        world: &mut World<'_>,
        (sector, sectors): (u64, u64),
        flags: Flags,
        cost: &mut Duration,
    ) -> bool {
        let length = u32::try_from(sectors).expect("a bio of the journal has at most 1 MiB");
        let segments = u16::try_from(sectors.div_ceil(8)).unwrap_or(u16::MAX);
        let number = u64::from(self.number);
        let bio = Bio::write(sector, length, number).with_flags(Flags::SYNC | Flags::META | flags);
        match world.submit_for_actor(self.id, self.disk, Bio { segments, ..bio }) {
            Ok(spent) => {
                *cost += spent;
                self.number += 1;
                self.in_flight += 1;
                true
            }
            Err(SubmitError::NoTag) => {
                self.waits_for_tag = true;
                false
            }
            Err(reason) => unreachable!("a queue refuses a block of the journal: {reason:?}"),
        }
    }

    /// Submits the blocks of the commit under a plug. Returns whether all are submitted.
    fn write_body(&mut self, world: &mut World<'_>, cost: &mut Duration) -> bool {
        while let Step::Body(left @ 1..) = self.step {
            if !self.is_plugged {
                self.is_plugged = true;
                world.queues[self.disk.index()].plug(self.cpu);
            }
            let sectors = left.min(self.commit.bio);
            let sector = self.journal(world).next_place(sectors);
            if !self.write(world, (sector, sectors), Flags::NONE, cost) {
                return false;
            }
            self.journal(world).take_place(sectors);
            self.step = Step::Body(left - sectors);
        }
        true
    }

    /// Ends the plug.
    fn unplug(&mut self, world: &mut World<'_>) -> Duration {
        if !core::mem::take(&mut self.is_plugged) {
            return Duration::ZERO;
        }
        world.queues[self.disk.index()].unplug(&mut world.host, self.cpu, world.now);
        world.follow_up(self.disk, false)
    }

    /// Takes the next step. Returns whether another one can follow without waiting.
    fn advance(&mut self, world: &mut World<'_>, cost: &mut Duration) -> bool {
        match self.step {
            Step::Idle => {
                let now = world.now;
                let Some(commit) = self.journal(world).begin_commit(now) else { return false };
                self.commit = commit;
                self.number = 0;
                self.status = Status::Ok;
                self.step = match commit.superblock {
                    true => Step::Superblock,
                    false => Step::Body(commit.body),
                };
                true
            }
            Step::Superblock => {
                let sector = self.journal(world).superblock();
                if self.write(world, (sector, self.commit.bio), Flags::NONE, cost) {
                    self.step = Step::Body(self.commit.body);
                }
                false
            }
            Step::Body(_) => {
                let is_submitted = self.write_body(world, cost);
                *cost += self.unplug(world);
                if is_submitted {
                    self.step = Step::End;
                }
                is_submitted && self.in_flight == 0
            }
            Step::End => {
                let sectors = self.commit.end;
                let sector = self.journal(world).next_place(sectors);
                let flags = Flags::PREFLUSH | Flags::FUA;
                if self.write(world, (sector, sectors), flags, cost) {
                    self.journal(world).take_place(sectors);
                    self.journal(world).flush_submitted();
                    self.step = Step::Ending;
                }
                false
            }
            Step::Ending => {
                self.step = Step::Idle;
                let status = self.status;
                for task in self.journal(world).end_commit(status) {
                    world.tasks[task.0 as usize].wake();
                    *cost += world.wake(task, world.now);
                }
                true
            }
        }
    }
}

impl Actor for Committer {
    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        let mut cost = Duration::ZERO;
        // A step waits for the writes of the one before. Syncs that ask for the next commit, and
        // alarms, wake the committer meanwhile.
        if core::mem::take(&mut self.waits_for_tag) || self.in_flight == 0 {
            while self.advance(world, &mut cost) {}
        }
        cost
    }

    fn on_bio_end(&mut self, _world: &mut World<'_>, _number: u32, status: Status) -> bool {
        debug_assert!(self.in_flight > 0, "a bio that ends must be in flight");
        self.in_flight -= 1;
        if status != Status::Ok {
            self.status = status;
        }
        self.in_flight == 0
    }
}

impl World<'_> {
    /// Puts `file_system` on the disks, and adds a committer for each journal.
    pub(crate) fn put_file_system(&mut self, file_system: FileSystem) {
        if file_system.has_journals() {
            // The threads of jobs fill the processors from the first on.
            let cpu = CpuId(self.machine.cpus - 1);
            for disk in 0..self.queues.len() {
                let disk = QueueId(u16::try_from(disk).expect("disks should fit 16 bits"));
                let committer =
                    self.add_sleeping_actor(cpu, |id| Box::new(Committer::new(id, disk, cpu)));
                self.committers.push(committer);
            }
        }
        self.cache.put(file_system);
    }

    /// Lays out the files of a job at `placements`, which begin as `start`, if there is a file
    /// system.
    pub(crate) fn lay_out(&mut self, placements: &[Placement], start: Start) {
        if !self.cache.has_file_system() {
            return;
        }
        for placement in placements {
            let file = self.cache.open(*placement);
            self.cache.begin_file(file, start, self.now);
        }
        self.set_alarms_of_journals();
    }

    /// Whether there is a file system on the disks.
    pub(crate) const fn has_file_system(&self) -> bool {
        self.cache.has_file_system()
    }

    /// Wakes the committer of a disk. Returns the cost.
    pub(super) fn wake_committer(&mut self, disk: QueueId) -> Duration {
        let committer = self.committers[disk.index()];
        self.wake_actor(committer)
    }

    /// Sets the alarms of journals whose running transaction has its first change.
    pub(super) fn set_alarms_of_journals(&mut self) {
        for disk in 0..self.committers.len() {
            let committer = self.committers[disk];
            let disk = QueueId(u16::try_from(disk).expect("disks should fit 16 bits"));
            let alarm = self.cache.file_system().and_then(|fs| fs.journal(disk).take_alarm());
            if let Some(at) = alarm {
                self.wake_actor_at(committer, at);
            }
        }
    }
}
