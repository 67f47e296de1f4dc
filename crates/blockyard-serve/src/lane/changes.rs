//! Disks that are added and removed while a lane runs.
//!
//! # Rules (cited by name)
//!
//! - **[removed-disk-is-flushed]** A lane forgets a disk when no door uses it, and after a last
//!   flush. Its answer to the removal comes afterwards, and says whether the flush failed.
//! - **[removal-is-bounded]** The requests of a disk that is removed get the lane's patience to end
//!   by themselves. Then its layers [let go](crate::disk::Medium::let_go): requests that they hold
//!   end with an error, and they hold no further ones, and ranges end where they stand, so that
//!   only the medium decides when the last flush ends. After the same time again, clients that have
//!   not received their answers are cut off. A last flush that a layer held is repeated, so that no
//!   data is lost by this.
//!
//! Only one lane, its home, serves a disk that needs one lane. A client that chooses such a disk in
//! another lane moves to that one at the end of its handshake, so the lanes of other disks keep
//! their clients.
//!
//! A lane makes the queue of a disk when the first client chooses the disk there, so an idle export
//! takes no memory in any lane. A home makes the queue immediately: an operator may change layers
//! that no client has used.

use super::{Lane, Stage};
use crate::disk::Disk;
use crate::lane::services::Offered;
use crate::observation::event::REMOVED;
use crate::observation::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::{Owner, Transfer};
use blockyard_std::parts::queue::Asked;
use std::io;
use std::sync::{Arc, mpsc};

/// A disk that the lane is about to forget.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) disk: usize,
    stage: RemovalStage,
    /// When the lane does more to end what is in flight ([removal-is-bounded]).
    pub(super) hurries_at: Instant,
    has_let_go: bool,
    answer: mpsc::Sender<io::Result<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalStage {
    /// Doors still use the disk.
    Used,
    /// The last flush is in flight. If `was_held`, the layers have let go of it.
    Flushing { was_held: bool },
    /// The last flush has ended.
    Flushed(Status),
}

impl Lane {
    /// Offers the disk with this number to clients. A watcher sees its events.
    pub(super) fn add_disk(
        &mut self,
        number: usize,
        disk: &Arc<Disk>,
        watcher: Option<LaneWatcher>,
    ) {
        let home = disk.home_lane(number);
        // The home alone serves it: clients that choose the disk here move there.
        let elsewhere = home.filter(|home| *home != self.services.number);
        let offered = Offered { disk: Arc::clone(disk), elsewhere, watcher };
        self.services.offered.insert(number, offered);
        self.services.memory.add_export(number);
        if home == Some(self.services.number) {
            self.services.ensure_queue(number); // a client need not have chosen the disk
        }
    }

    /// Drains the doors of a disk, and forgets the disk when they have closed.
    pub(super) fn remove_disk(&mut self, disk: usize, answer: mpsc::Sender<io::Result<()>>) {
        self.services.offered.remove(&disk);
        if !self.services.disks.contains(disk) {
            // No client of this lane has chosen it. The operator may have hung up.
            drop(answer.send(Ok(())));
            return;
        }
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number)
                && door.disk() == Some(disk)
            {
                door.start_drain(number, REMOVED, &mut self.services);
                self.services.schedule_door(number);
            }
        }
        let hurries_at = self.services.now + self.services.patience;
        let stage = RemovalStage::Used;
        self.removals.push(Removal { disk, stage, hurries_at, has_let_go: false, answer });
        self.services.impatient_at = self.services.now; // [idle-holder-cut-off]
    }

    /// Ends what keeps a removal for too long ([removal-is-bounded]).
    pub(super) fn hurry_removals(&mut self) {
        let now = self.services.now;
        for removal in &mut self.removals {
            if removal.hurries_at > now {
                continue;
            }
            // With a patience of 30 s: the layers let go after 30 s, and clients are cut off after
            // 60 s.
            if !removal.has_let_go {
                removal.has_let_go = true;
                removal.hurries_at = now + self.services.patience;
                // The layers end what they hold with an error, so a flush among it says nothing
                // about the medium.
                if let RemovalStage::Flushing { was_held } = &mut removal.stage {
                    *was_held = true;
                }
                self.services.disks[removal.disk].let_go(now);
                let doors = &self.doors;
                self.services.stop_ranges(|owner| match owner {
                    Owner::Door { door, .. } | Owner::Abandoned { door } => {
                        doors.find(*door).and_then(|door| door.disk()) == Some(removal.disk)
                    }
                    Owner::Lane => false,
                });
                continue;
            }
            // From here on only the medium decides when the removal ends.
            removal.hurries_at = Instant::MAX;
            for number in 0..self.doors.end() {
                if let Some(door) = self.doors.find_mut(number)
                    && door.disk() == Some(removal.disk)
                {
                    door.cut_off(number, REMOVED, &mut self.services);
                }
            }
        }
    }

    /// Calls the doors of clients that have not chosen an export.
    pub(super) fn schedule_choosing_doors(&mut self) {
        for number in 0..self.doors.end() {
            if self.doors.find(number).is_some_and(|door| door.disk().is_none()) {
                self.services.schedule_door(number);
            }
        }
    }

    /// Begins the last flush of each disk that no door uses any more, and forgets those whose last
    /// flush has ended ([removed-disk-is-flushed]).
    pub(super) fn advance_removals(&mut self) {
        for at in 0..self.removals.len() {
            let Removal { disk, stage, .. } = self.removals[at];
            if stage == RemovalStage::Used && !self.is_used(disk) {
                self.removals[at].stage = RemovalStage::Flushing { was_held: false };
                self.start_flush(disk);
            }
        }
        for Removal { disk, stage, answer, .. } in
            self.removals.extract_if(.., |it| matches!(it.stage, RemovalStage::Flushed(_)))
        {
            let queue = match self.stage {
                // The lane's end flushes each disk once more, and that flush needs the queue.
                Stage::Flushing { .. } => None,
                Stage::Serving | Stage::Draining | Stage::Leaving => {
                    self.services.disks.remove(disk)
                }
            };
            if let Some(queue) = queue {
                queue.report_faults();
            }
            let ended = match stage {
                RemovalStage::Flushed(Status::Ok) => Ok(()),
                _ => Err(io::Error::other("the last flush failed")),
            };
            drop(answer.send(ended)); // the operator may have hung up
        }
    }

    /// Returns whether the client of a door has chosen `disk`.
    fn is_used(&self, disk: usize) -> bool {
        (0..self.doors.end())
            .any(|number| self.doors.find(number).and_then(|door| door.disk()) == Some(disk))
    }

    /// Notes that a flush of the lane's own has ended.
    pub(super) fn finish_flush(&mut self, disk: usize, status: Status) {
        // A lane that ends flushes all disks, also one that is being removed: the removal's flush
        // was first.
        let removal = self
            .removals
            .iter_mut()
            .find(|it| it.disk == disk && matches!(it.stage, RemovalStage::Flushing { .. }));
        if let Some(removal) = removal {
            removal.stage = match removal.stage {
                RemovalStage::Flushing { was_held: true } if status != Status::Ok => {
                    RemovalStage::Used // [removal-is-bounded]: flush again
                }
                _ => RemovalStage::Flushed(status),
            };
            return;
        }
        let Stage::Flushing { left, has_failed } = &mut self.stage else {
            unreachable!(
                "a lane's own jobs are flushes of disks that it removes, and its last ones"
            )
        };
        *left -= 1;
        *has_failed |= status != Status::Ok;
    }

    /// Flushes every disk, and ends the lane afterwards.
    pub(super) fn flush_all(&mut self) {
        let disks: Vec<_> = self.services.disks.numbered().map(|(number, _)| number).collect();
        self.stage = Stage::Flushing { left: disks.len(), has_failed: false };
        // The number of flushes is set first: a flush of memory ends within the call that starts
        // it.
        disks.into_iter().for_each(|disk| self.start_flush(disk));
    }

    /// Begins a flush of the lane's own.
    fn start_flush(&mut self, disk: usize) {
        self.services.submit(Owner::Lane, disk, Asked::from(Op::Flush), Transfer::new(0, 0));
        self.advance_disk(disk);
    }
}
