//! Disks that come and go while a lane runs.
//!
//! # Rules (cited by name)
//!
//! - **[removed-disk-is-flushed]** A lane gives up a disk when no door uses it, and after a last flush. Its answer to the removal
//!   comes afterwards, and says whether the flush failed.
//! - **[served-at-home]** Only one lane, its home, serves a disk that needs one lane. A client that chooses such a disk in another lane
//!   moves to that one at the end of its handshake, so the lanes of other disks keep their clients.

use super::{Lane, Stage};
use crate::disk::Disk;
use crate::door::Door;
use crate::event::REMOVED;
use crate::job::{Owner, Transfer};
use crate::meter::{Counts, Meter, Metered};
use crate::queue::DiskQueue;
use crate::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::status::Status;
use std::io;
use std::sync::{Arc, mpsc};

/// A disk that the lane gives up.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) disk: usize,
    stage: RemovalStage,
    answer: mpsc::Sender<io::Result<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalStage {
    /// Doors still use the disk.
    Used,
    /// The last flush is in flight.
    Flushing,
    /// The last flush has ended.
    Flushed(Status),
}

impl<D: Door> Lane<D> {
    /// Takes the disk with this number into service. A watcher sees its events.
    pub(super) fn add_disk(
        &mut self,
        number: usize,
        disk: &Arc<Disk>,
        watcher: Option<LaneWatcher>,
    ) {
        if let Some(home) = disk.home_lane(number)
            && home != self.number()
        {
            self.services.elsewhere.insert(number, (home, Arc::clone(disk))); // [served-at-home]
            return;
        }
        let (lane, jobs) = (self.parts.number, self.services.jobs());
        let is_metered = self.parts.shared.is_metered || watcher.is_some();
        let meter = Meter(is_metered.then(|| {
            let index = u16::try_from(number)
                .expect("the number of a disk, of which there are at most 1024");
            let watcher = watcher.map(|watcher| (index, watcher));
            Box::new(Metered { counts: Counts::new(), watcher })
        }));
        let queue = DiskQueue::new(disk, lane, jobs, meter);
        self.services.disks.put(number, queue);
        self.services.memory.admit(number);
    }

    /// Returns the number of this lane.
    fn number(&self) -> usize {
        usize::try_from(self.parts.number).expect("the number of a lane, of which there are few")
    }

    /// Returns whether the lane gives up the disk with this number.
    pub(super) fn is_leaving(&self, disk: usize) -> bool {
        self.removals.iter().any(|removal| removal.disk == disk)
    }

    /// Drains the doors of a disk, and gives the disk up when they have closed.
    pub(super) fn remove_disk(&mut self, disk: usize, answer: mpsc::Sender<io::Result<()>>) {
        if self.services.elsewhere.remove(&disk).is_some() {
            // The operator may have hung up.
            let _ = answer.send(Ok(()));
            return;
        }
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number)
                && door.disk() == Some(disk)
            {
                door.end(number, REMOVED, &mut self.services);
                self.services.list(number);
            }
        }
        self.removals.push(Removal { disk, stage: RemovalStage::Used, answer });
        self.services.impatient_at = self.services.now; // [idle-holder-cut-off]
    }

    /// Begins the last flush of each disk that no door uses any more, and gives up those whose last flush has ended
    /// ([removed-disk-is-flushed]).
    pub(super) fn advance_removals(&mut self) {
        for at in 0..self.removals.len() {
            let Removal { disk, stage, .. } = self.removals[at];
            let uses = |number| self.doors.find(number).and_then(Door::disk) == Some(disk);
            if stage == RemovalStage::Used && !(0..self.doors.end()).any(uses) {
                self.removals[at].stage = RemovalStage::Flushing;
                self.flush(disk);
            }
        }
        let flushed = |removal: &mut Removal| matches!(removal.stage, RemovalStage::Flushed(_));
        for Removal { disk, stage, answer } in self.removals.extract_if(.., flushed) {
            let queue = match self.stage {
                // The lane's end flushes each disk once more.
                Stage::Flushing { .. } => None,
                _ => self.services.disks.take(disk),
            };
            if let Some(queue) = queue {
                queue.tell_faults();
            }
            let ended = match stage {
                RemovalStage::Flushed(Status::Ok) => Ok(()),
                _ => Err(io::Error::other("the last flush failed")),
            };
            // The operator may have hung up.
            let _ = answer.send(ended);
        }
    }

    /// Takes note that a flush of the lane's own has ended.
    pub(super) fn flushed(&mut self, disk: usize, status: Status) {
        let mut removals = self.removals.iter_mut();
        let is_its = |it: &&mut Removal| it.disk == disk && it.stage == RemovalStage::Flushing;
        if let Some(removal) = removals.find(is_its) {
            removal.stage = RemovalStage::Flushed(status);
            return;
        }
        let Stage::Flushing { left, has_failed } = &mut self.stage else {
            unreachable!(
                "a lane's own jobs are flushes of disks that it gives up, and its last ones"
            )
        };
        *left -= 1;
        *has_failed |= status != Status::Ok;
    }

    /// Flushes every disk, and ends the lane afterwards.
    pub(super) fn flush_all(&mut self) {
        let disks: Vec<_> = self.services.disks.numbered().map(|(number, _)| number).collect();
        self.stage = Stage::Flushing { left: disks.len(), has_failed: false };
        disks.into_iter().for_each(|disk| self.flush(disk));
    }

    /// Begins a flush of the lane's own.
    fn flush(&mut self, disk: usize) {
        self.services.submit(Owner::Lane, disk, Op::Flush, Transfer::new(0, 0), false);
        self.advance(disk);
    }
}
