//! The services of a lane for its doors: disks, jobs, buffers, the ring, and a list of doors.
//!
//! The lane passes its [`Services`] to each call of a door.

use crate::disk::Disk;
use crate::lane::disks::Disks;
use crate::lane::handshakes::Handshakes;
use crate::lane::lent::Lent;
use crate::lane::memory::{Account, LaneMemory};
use crate::lane::numbers::Numbers;
use crate::lane::queue::DiskQueue;
use crate::observation::meter::{Counts, Meter, Metered};
use crate::observation::traffic::Traffic;
use crate::observation::watcher::LaneWatcher;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard_std::parts::discards::Discards;
use blockyard_std::parts::job::{self, Jobs, Keeper, Owner, Transfer};
use blockyard_std::parts::map::Pages;
use blockyard_std::parts::pool::Pool;
use blockyard_std::parts::queue::{Asked, EndedJob};
use blockyard_std::parts::ring::{Backing, FileIo, FileOp, IoEngine, Ring};
use blockyard_std::parts::slab::Slab;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The largest total size of the spare buffers that a lane keeps, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 20;

/// The largest number of runs of data and holes that doors look up in one turn. Each lookup may be
/// a system call.
pub(crate) const LOOKUPS_OF_A_TURN: usize = 64;

/// The most that one request prefetches, in bytes.
const PREFETCHED_BYTES_MAX: u32 = 32 << 20;

/// The owner of an operation in the ring, with the memory that the kernel uses.
#[derive(Debug)]
pub(crate) enum Kept {
    /// A door.
    Door { door: u32, memory: Lent },
    /// A disk, which knows the I/O by `number`.
    Disk { disk: u16, number: u32, _keepers: Vec<Keeper> },
    /// The lane, which prefetches from a disk.
    Prefetch { disk: usize },
    /// The lane, which waits on its bell.
    Bell,
}

/// A disk that clients may choose.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) disk: Arc<Disk>,
    /// The lane that alone serves the disk, if that is another one.
    pub(crate) elsewhere: Option<usize>,
    /// The watcher of the disk's events.
    pub(crate) watcher: Option<LaneWatcher>,
}

/// The services of a lane for its doors. See the [module](self).
pub(crate) struct Services {
    pub(crate) ring: Ring<Kept>,
    pub(crate) discards: Discards,
    pool: Pool,
    jobs: Jobs,
    pub(crate) disks: Disks,
    /// The disks that clients may choose, by their numbers.
    pub(crate) offered: BTreeMap<usize, Offered>,
    /// The number of the lane.
    pub(crate) number: usize,
    pub(crate) scheduled: Numbers,
    pub(crate) memory: LaneMemory,
    pub(crate) handshakes: Handshakes,
    /// Doors that wait for a turn in which they may look up runs.
    pub(crate) lookups_wanted: Numbers,
    /// The number of runs that the door being called may still look up.
    pub(crate) lookups_left: usize,
    /// The earliest instant at which a door wants to be woken.
    wake_at: Instant,
    /// The instant at which to look for doors that delay other doors or the lane's end
    /// ([idle-holder-cut-off]).
    pub(crate) impatient_at: Instant,
    pub(crate) patience: Duration,
    /// Whether the server can be queried for counters.
    pub(crate) is_metered: bool,
    pub(crate) turn: u64,
    pub(crate) now: Instant,
}

impl Services {
    /// Returns the services of this thread's lane, without disks.
    ///
    /// # Errors
    ///
    /// As [`Ring::new`].
    pub(crate) fn new(
        engine: IoEngine,
        patience: Duration,
        memory: LaneMemory,
        discards: Discards,
        now: Instant,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(engine)?,
            discards,
            pool: Pool::new(SPARE_BYTES_MAX),
            jobs: Jobs::new(RefCell::new(Slab::default())),
            disks: Disks::default(),
            offered: BTreeMap::new(),
            number: 0,
            scheduled: Numbers::default(),
            memory,
            handshakes: Handshakes::default(),
            lookups_wanted: Numbers::default(),
            lookups_left: 0,
            wake_at: Instant::MAX,
            impatient_at: Instant::MAX,
            patience,
            is_metered: false,
            turn: 0,
            now,
        })
    }

    #[inline]
    pub(crate) fn disk(&self, disk: usize) -> &Arc<Disk> {
        &self.disks[disk].disk
    }

    /// Makes the queue of an offered disk, unless the lane has it: a first client has chosen it.
    pub(crate) fn ensure_queue(&mut self, number: usize) {
        if self.disks.contains(number) {
            return;
        }
        let Offered { disk, watcher, .. } = &self.offered[&number];
        let is_metered = self.is_metered || watcher.is_some();
        let meter = Meter(is_metered.then(|| {
            let index = u16::try_from(number)
                .expect("the number of a disk, of which there are at most 1024");
            let watcher = watcher.clone().map(|watcher| (index, watcher));
            Box::new(Metered { counts: Counts::new(), watcher })
        }));
        let lane =
            u32::try_from(self.number).expect("the number of a lane, of which there are few");
        let queue = DiskQueue::new(disk, lane, &self.jobs, meter);
        self.disks.insert(number, queue);
    }

    /// Returns the traffic of the lane's doors, without the number of clients.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = Traffic { in_flight: self.jobs.borrow().len(), ..Traffic::default() };
        self.disks.iter().for_each(|disk| all.add(&disk.traffic));
        all
    }

    /// Lists `door` to be called in this turn, or in the next one if it has been called already.
    #[inline]
    pub(crate) fn schedule_door(&mut self, door: u32) {
        self.scheduled.insert(door);
    }

    /// Grants `bytes` of memory to `door`, for a request that holds `so_far` bytes. Returns `false`
    /// if too little is free; the lane then calls the door again when more may be free.
    #[must_use]
    pub(crate) fn take_memory(
        &mut self,
        door: u32,
        account: &mut Account,
        so_far: usize,
        bytes: usize,
    ) -> bool {
        let is_granted = self.memory.take_bytes(door, account, so_far, bytes);
        if !is_granted {
            // Somebody waits from now on: a client that keeps memory idle is cut off when its
            // patience ends.
            self.impatient_at = self.impatient_at.min(self.now + self.patience);
        }
        is_granted
    }

    /// Takes one of the lookups of this turn. If none is left, lists `door` for a later turn and
    /// returns `false`.
    pub(crate) fn take_lookup(&mut self, door: u32) -> bool {
        if self.lookups_left == 0 {
            // Either another door has this turn's lookups, or this one has used them up.
            self.lookups_wanted.insert(door);
            return false;
        }
        self.lookups_left -= 1;
        true
    }

    /// Schedules a wake-up of all doors at `instant` or earlier.
    pub(crate) fn schedule_wake(&mut self, instant: Instant) {
        self.wake_at = self.wake_at.min(instant);
    }

    pub(crate) fn next_wake(&self) -> Instant {
        self.wake_at
    }

    /// Clears the wake-up. Each door that needs another one schedules it when it is woken.
    pub(crate) fn clear_wake(&mut self) {
        self.wake_at = Instant::MAX;
    }

    /// Returns a buffer for all blocks that `len` bytes at `offset` of a disk touch, and the offset
    /// of those bytes in the buffer. Unless the client `is_charged` for all bytes,
    /// [`Self::mark_charged`] follows.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory.
    pub(crate) fn take_buffer(
        &mut self,
        disk: usize,
        offset: u64,
        len: u64,
        is_charged: bool,
    ) -> io::Result<(Rc<Pages>, usize)> {
        let block = self.disk(disk).block_bytes();
        // With blocks of 4096 bytes, 100 bytes at 5000 are bytes 904 to 1004 of a buffer of one
        // block.
        let lead = offset % block;
        let all = (lead + len).next_multiple_of(block);
        let [all, lead] = [all, lead]
            .map(|count| usize::try_from(count).expect("the length of a request fits in usize"));
        Ok((self.pool.take(all, is_charged)?, lead))
    }

    /// Notes that a client has been charged for all bytes of a buffer.
    pub(crate) fn mark_charged(&mut self, pages: &Pages) {
        self.pool.charged(pages);
    }

    /// Takes back a buffer from [`Self::take_buffer`], and the `bytes` that `account` was charged
    /// for it.
    pub(crate) fn return_buffer(&mut self, account: &mut Account, pages: Rc<Pages>, bytes: usize) {
        self.memory.return_bytes(account, bytes);
        self.pool.give(pages);
    }

    /// Submits a request of `owner` to a disk. The lane notifies the owner when the whole request
    /// has ended.
    #[inline]
    pub(crate) fn submit(&mut self, owner: Owner, disk: usize, asked: Asked, transfer: Transfer) {
        self.disks[disk].queue.begin(owner, asked, transfer, self.now);
    }

    /// Returns the next job of `disk` that has ended. If a bio succeeded and its job has more,
    /// submits the next one and sets `submitted`.
    #[inline]
    pub(crate) fn next_ended_job(&mut self, disk: usize, submitted: &mut bool) -> Option<EndedJob> {
        let disk = &mut self.disks[disk];
        let ended = disk.queue.next_ended(submitted)?;
        // Every flush counts, whoever asked: each is a report about the same file.
        match (&ended.job.owner, ended.op) {
            (Owner::Lane, _) | (_, Op::Flush) => {
                disk.disk.damage.note_flush(ended.status != Status::Ok);
            }
            (Owner::Door { .. } | Owner::Abandoned { .. }, op) => {
                disk.traffic.count(op, ended.job.transfer.len);
            }
        }
        Some(ended)
    }

    /// Abandons the rest of ranges, by their owners ([abandoned-range-stops]).
    pub(crate) fn stop_ranges(&self, whose: impl Fn(&Owner) -> bool) {
        job::abandon(&self.jobs, whose);
    }

    /// Abandons all requests of `door`, whose client was reset: the lane drops their results, and
    /// ranges stop ([abandoned-range-stops]). Returns their number.
    /// [`Door::reclaim_memory`](super::door::Door::reclaim_memory) follows for each of them when
    /// the device has ended it ([abandoned-request-keeps-memory]).
    pub(crate) fn abandon_requests(&mut self, door: u32) -> usize {
        job::disown(&self.jobs, door)
    }

    /// Prefetches the start of a range, if the disk can. It is only advice: there is one prefetch
    /// of a disk at a time, by a thread of the kernel.
    pub(crate) fn prefetch(&mut self, disk: usize, offset: u64, len: u64) {
        let Some(fd) = self.disk(disk).prefetches_from().cloned() else { return };
        // A second request for a prefetch is dropped, as it is only advice: a client cannot occupy
        // the kernel's threads with it.
        if !core::mem::replace(&mut self.disks[disk].is_prefetching, true) {
            let len = u32::try_from(len).unwrap_or(u32::MAX).min(PREFETCHED_BYTES_MAX);
            let op = FileOp::Prefetch { offset, len };
            let io = FileIo { fd, backing: Backing::PageCache, op, spans: Vec::new() };
            self.ring.file(io, Kept::Prefetch { disk });
        }
    }

    /// Pushes the file I/O that the device of `disk` has begun to the ring.
    pub(crate) fn start_file_io(&mut self, disk: usize) {
        let number_of_disk =
            u16::try_from(disk).expect("the number of a disk, of which there are at most 1024");
        let outbox = Rc::clone(&self.disks[disk].outbox);
        while let Some(begun) = outbox.begun.borrow_mut().pop_front() {
            let kept =
                Kept::Disk { disk: number_of_disk, number: begun.number, _keepers: begun.keepers };
            self.ring.file(begun.io, kept);
        }
        while let Some(discard) = outbox.discards.borrow_mut().pop_front() {
            self.discards.begin(number_of_disk, discard);
        }
    }
}
