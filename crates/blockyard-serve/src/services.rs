//! What a lane does for its doors: disks, jobs, buffers, the ring, and their turns.
//!
//! A door is called with these and asks them for what it needs. `M` is the type of the memory that a
//! door lends to the kernel.

use crate::bios::{first_bio, next_bio};
use crate::discards::Discards;
use crate::disk::Disk;
use crate::job::{Job, Jobs, Owner, Transfer, job_of};
use crate::lane_memory::{Account, LaneMemory};
use crate::map::Pages;
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::queue::DiskQueue;
use crate::ring::Ring;
use crate::slab::Slab;
use crate::traffic::Traffic;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Spare buffers that a lane keeps, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 20;

/// The most runs of data and holes that doors look up in one turn: each may be a system call.
pub(crate) const LOOKUPS_OF_A_TURN: usize = 64;

/// Whose operation the ring has, with the memory that the kernel works on.
#[derive(Debug)]
pub(crate) enum Kept<M> {
    /// That of a door.
    Door { door: u32, memory: M },
    /// An I/O of a disk, under its own number.
    Disk { disk: u16, number: u32, _pages: Vec<Rc<Pages>> },
    /// Waiting for the lane's bell.
    Bell,
}

/// A job that is over.
#[derive(Debug)]
pub(crate) struct EndedJob {
    pub(crate) status: Status,
    pub(crate) job: Job,
}

/// What a lane does for its doors. See the [module](self).
pub(crate) struct Services<M> {
    pub(crate) ring: Ring<Kept<M>>,
    pub(crate) discards: Discards,
    pool: Pool,
    jobs: Jobs,
    pub(crate) disks: Vec<DiskQueue>,
    /// Doors to be called in this turn.
    pub(crate) listed: Numbers,
    /// Memory for data in flight.
    pub(crate) memory: LaneMemory,
    /// Doors that wait for a turn in which they may look up runs.
    pub(crate) lookups_wanted: Numbers,
    /// Runs that the door which is called may still look up.
    pub(crate) lookups_left: usize,
    /// When the first door wants to be woken.
    wake_at: Instant,
    /// When to look for doors that keep others, or the end, waiting ([idle-holder-cut-off]).
    pub(crate) impatient_at: Instant,
    pub(crate) patience: Duration,
    traffic: Traffic,
    /// The number of this turn.
    pub(crate) turn: u64,
    /// The time of this turn.
    pub(crate) now: Instant,
}

impl<M> Services<M> {
    /// Those of this thread's lane, which has no disks yet.
    ///
    /// # Errors
    ///
    /// There is no io_uring.
    pub(crate) fn new(
        patience: Duration,
        memory: LaneMemory,
        discards: Discards,
        now: Instant,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new()?,
            discards,
            pool: Pool::new(SPARE_BYTES_MAX),
            jobs: Jobs::new(RefCell::new(Slab::new())),
            disks: Vec::new(),
            listed: Numbers::default(),
            memory,
            lookups_wanted: Numbers::default(),
            lookups_left: 0,
            wake_at: Instant::MAX,
            impatient_at: Instant::MAX,
            patience,
            traffic: Traffic::default(),
            turn: 0,
            now,
        })
    }

    /// All jobs, for a device of this lane.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The disk of this number.
    #[inline]
    pub(crate) fn disk(&self, disk: usize) -> &Arc<Disk> {
        &self.disks[disk].disk
    }

    /// What was done for doors, and what is under way.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { in_flight: self.jobs.borrow().len(), ..self.traffic }
    }

    /// Calls `door` in this turn, or where it was called in this one, in the next.
    #[inline]
    pub(crate) fn list(&mut self, door: u32) {
        self.listed.put(door);
    }

    /// Grants `bytes` of memory to `door`, for a request that holds `so_far`. Where there are none, the door waits: it is ready again when there may be some.
    #[must_use]
    pub(crate) fn take_memory(
        &mut self,
        door: u32,
        account: &mut Account,
        so_far: usize,
        bytes: usize,
    ) -> bool {
        let is_granted = self.memory.take(door, account, so_far, bytes);
        if !is_granted {
            self.impatient_at = self.impatient_at.min(self.now + self.patience);
        }
        is_granted
    }

    /// Takes one of the lookups of this turn, or lets `door` wait for its turn.
    pub(crate) fn take_lookup(&mut self, door: u32) -> bool {
        if self.lookups_left == 0 {
            self.lookups_wanted.put(door);
            return false;
        }
        self.lookups_left -= 1;
        true
    }

    /// Asks for doors to be woken at `instant`, or earlier.
    pub(crate) fn wake_at(&mut self, instant: Instant) {
        self.wake_at = self.wake_at.min(instant);
    }

    /// When doors are to be woken.
    pub(crate) fn wakes_at(&self) -> Instant {
        self.wake_at
    }

    /// Doors are being woken: those that want to be again ask for it.
    pub(crate) fn forget_wake(&mut self) {
        self.wake_at = Instant::MAX;
    }

    /// A buffer for `len` bytes at `offset` of a disk and for the rest of the blocks at its ends, and
    /// where in it the bytes begin.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(crate) fn buffer(
        &mut self,
        disk: usize,
        offset: u64,
        len: u64,
    ) -> io::Result<(Rc<Pages>, usize)> {
        let block = self.disk(disk).block_bytes();
        let lead = offset % block;
        let all = (lead + len).next_multiple_of(block);
        let bytes = |count| usize::try_from(count).expect("requests are short");
        Ok((self.pool.take(bytes(all))?, bytes(lead)))
    }

    /// Takes a buffer back, once for each that was given, with the bytes that `account` was charged for it.
    pub(crate) fn give_back(&mut self, account: &mut Account, pages: Rc<Pages>, bytes: usize) {
        self.memory.give(account, bytes);
        self.pool.give(pages);
    }

    /// Submits a request of `owner` to a disk. Its end comes to the owner when all of it is done.
    pub(crate) fn submit(
        &mut self,
        owner: Owner,
        disk: usize,
        op: Op,
        transfer: Transfer,
        fua: bool,
    ) {
        let mut bio = first_bio(op, &transfer, self.disk(disk).block_bytes());
        if fua {
            bio = bio.with_flags(Flags::FUA);
        }
        let cookie = u64::from(self.jobs.borrow_mut().insert(Job { transfer, owner }));
        self.disks[disk].submit(Bio { cookie, ..bio }, self.now);
    }

    /// The next job of `disk` that is over. Bios that follow on bios which ended are submitted.
    #[inline]
    pub(crate) fn next_ended(&mut self, disk: usize, submitted: &mut bool) -> Option<EndedJob> {
        loop {
            let ended = self.disks[disk].next_ended()?;
            if ended.status == Status::Ok
                && let Some(next) = self.next_of(disk, &ended)
            {
                *submitted = true;
                self.disks[disk].submit(next, self.now);
                continue;
            }
            let job = self.jobs.borrow_mut().remove(job_of(ended.bio.cookie));
            if matches!(job.owner, Owner::Door { .. }) {
                self.traffic.count(ended.bio.op, job.transfer.len);
            }
            return Some(EndedJob { status: ended.status, job });
        }
    }

    #[inline]
    fn next_of(&self, disk: usize, ended: &Ended) -> Option<Bio> {
        let transfer = &self.jobs.borrow()[job_of(ended.bio.cookie)].transfer;
        next_bio(&ended.bio, transfer, self.disk(disk).block_bytes())
    }

    /// Begins the I/O of files that devices of `disk` have asked for.
    pub(crate) fn begin_io(&mut self, disk: usize) {
        let number_of_disk = u16::try_from(disk).expect("number of an export, of at most 1024");
        let outbox = Rc::clone(&self.disks[disk].outbox);
        while let Some(begun) = outbox.begun.borrow_mut().pop_front() {
            let kept =
                Kept::Disk { disk: number_of_disk, number: begun.number, _pages: begun.pages };
            self.ring.file(begun.io, kept);
        }
        while let Some(discard) = outbox.discards.borrow_mut().pop_front() {
            self.discards.begin(number_of_disk, discard);
        }
    }
}
