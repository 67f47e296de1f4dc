//! Disks that come and go while a lane runs.
//!
//! # Rules (cited by name)
//!
//! - **[removed-disk-is-flushed]** A lane gives up a disk when no door uses it, and after a last flush. Its answer to the removal
//!   comes afterwards, and says whether the flush failed.
//! - **[served-at-home]** Only one lane, its home, serves a disk that needs one lane. A client that chooses such a disk in another lane
//!   moves to that one at the end of its handshake, so the lanes of other disks keep their clients.
//! - **[queue-at-first-client]** A lane makes the queue of a disk when the first client chooses the disk there, so an idle export takes no
//!   memory in any lane. A home makes the queue at once: an operator may change layers that no client has used.

use super::{Lane, Stage};
use crate::disk::Disk;
use crate::door::Door;
use crate::event::REMOVED;
use crate::job::{Owner, Transfer};
use crate::services::Offered;
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
    /// Offers the disk with this number to clients. A watcher sees its events.
    pub(super) fn add_disk(
        &mut self,
        number: usize,
        disk: &Arc<Disk>,
        watcher: Option<LaneWatcher>,
    ) {
        let home = disk.home_lane(number);
        let elsewhere = home.filter(|home| *home != self.services.number); // [served-at-home]
        let offered = Offered { disk: Arc::clone(disk), elsewhere, watcher };
        self.services.offered.insert(number, offered);
        self.services.memory.admit(number);
        if home == Some(self.services.number) {
            self.services.serve_disk(number); // [queue-at-first-client]
        }
    }

    /// Drains the doors of a disk, and gives the disk up when they have closed.
    pub(super) fn remove_disk(&mut self, disk: usize, answer: mpsc::Sender<io::Result<()>>) {
        self.services.offered.remove(&disk);
        if !self.services.disks.has(disk) {
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
