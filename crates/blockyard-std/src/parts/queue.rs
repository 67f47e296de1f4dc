//! A disk as one lane sees it: its queue of bios, and the jobs whose bios they are.
//!
//! # Rules (cited by name)
//!
//! - **[range-in-slices]** In one turn, a lane discards and zeroes at most one slice of a disk
//!   whose work its own thread does, or that much of shorter ranges. The slices of several requests
//!   take turns.
//! - **[abandoned-range-stops]** No further bio of an [abandoned](crate::parts::job::abandon) job
//!   is submitted. Its range ends with an error where the present bio ends.

use crate::parts::bio_queue::BioQueue;
use crate::parts::bios::{first_bio, is_last, next_bio};
use crate::parts::device::SLICE_SECTORS;
use crate::parts::job::{Job, Jobs, Owner, Transfer, job_of};
use crate::parts::shape::Shape;
use blockyard::bio::{Bio, Flags, IoPrio, Op, Submitter};
use blockyard::driver::Device;
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::trace::Sink;
use std::collections::VecDeque;
use std::rc::Rc;

/// The most bios of one job that a lane submits in one turn, each after the end of the one before:
/// a range of exabytes on a disk without data has billions. [`LaneQueue::poll_at`] says that there
/// are more.
const ROUNDS_OF_A_TURN: usize = 16;

/// A lane as it advances one of its queues.
pub trait Rounds {
    /// Does everything that the queue can do now: [`LaneQueue::advance`].
    fn advance_queue(&mut self);

    /// Returns the next job that has ended: [`LaneQueue::next_ended`].
    fn next_ended(&mut self, submitted: &mut bool) -> Option<EndedJob>;

    /// Returns a job that has ended to its owner.
    fn return_to_owner(&mut self, ended: EndedJob);

    /// Advances the queue, and returns the jobs that end to their owners. Each bio that ends may
    /// let its job submit another one. The number of such rounds is limited: a TRIM of 1 TiB on a
    /// disk without data would otherwise end 4096 bios of 256 MiB here, one after the other, while
    /// all other clients wait.
    #[inline]
    fn take_rounds(&mut self) {
        for _ in 0..ROUNDS_OF_A_TURN {
            let mut has_submitted = false;
            self.advance_queue();
            while let Some(ended) = self.next_ended(&mut has_submitted) {
                self.return_to_owner(ended);
            }
            if !has_submitted {
                break;
            }
        }
    }
}

/// The properties of a job's bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The operation.
    pub op: Op,
    /// The flags.
    pub flags: Flags,
    /// The priority.
    pub prio: IoPrio,
    /// The submitter, for elevators that share the disk among submitters.
    pub submitter: Submitter,
}

impl From<Op> for Asked {
    fn from(op: Op) -> Self {
        Self { op, flags: Flags::NONE, prio: IoPrio::default(), submitter: Submitter::NONE }
    }
}

/// A job that has ended.
#[derive(Debug)]
pub struct EndedJob {
    /// The result of the first of its bios that failed, or `Ok`.
    pub status: Status,
    /// The operation.
    pub op: Op,
    /// The job, whose number is free again.
    pub job: Job,
}

/// A disk as one lane sees it. See the [module](self).
#[derive(Debug)]
pub struct LaneQueue<D, S> {
    /// The bios of the jobs, with the device below them.
    pub bios: BioQueue<D, S>,
    jobs: Jobs,
    shape: Shape,
    /// Discards and zeroings for the next turns, each of at most a slice ([range-in-slices]).
    slices: VecDeque<Bio>,
}

impl<D: Device, S: Sink> LaneQueue<D, S> {
    /// Returns a queue over `device`, which has the tags of [`Shape::tags`] and finds its data in
    /// `jobs`.
    pub fn new(shape: Shape, device: D, sink: S, jobs: &Jobs) -> Self {
        let bios = BioQueue::new(&shape, device, sink);
        Self { bios, jobs: Rc::clone(jobs), shape, slices: VecDeque::new() }
    }

    /// Begins a job of `owner`. [`Self::next_ended`] returns the job when all of it has ended.
    #[inline]
    pub fn begin(&mut self, owner: Owner, asked: Asked, transfer: Transfer, now: Instant) {
        let Asked { op, flags, prio, submitter } = asked;
        debug_assert!(
            transfer.place.has_room_for(transfer.len),
            "ranges of a guest hold less than the {} bytes of the transfer",
            transfer.len
        );
        let bio = first_bio(op, &transfer, self.shape.block_bytes, self.shape.longest_bio(op));
        let flags = bio.flags | flags;
        let segments = transfer.place.segments();
        let job = Job { transfer, owner, is_abandoned: false };
        let cookie = u64::from(self.jobs.borrow_mut().insert(job));
        self.submit(Bio { cookie, flags, prio, segments, submitter, ..bio }, now);
    }

    /// Returns a job that has ended, each exactly once. If a bio succeeded and its job has more,
    /// submits the next one and sets `submitted`.
    // A call that moves a job to its owner would cost a lane 3 instructions of 100.
    #[inline(always)]
    pub fn next_ended(&mut self, submitted: &mut bool) -> Option<EndedJob> {
        loop {
            let Ended { bio, mut status } = self.bios.next_ended()?;
            let number = job_of(bio.cookie);
            if status == Status::Ok
                && let Some(next) = self.next_of(&bio, number)
            {
                if !self.is_abandoned(&next) {
                    *submitted = true;
                    self.submit_next(next);
                    continue;
                }
                status = Status::IoError; // [abandoned-range-stops]
            }
            let job = self.jobs.borrow_mut().remove(number);
            return Some(EndedJob { status, op: bio.op, job });
        }
    }

    /// Returns the bio that follows `bio`, which has ended, or `None` if `bio` was the last one of
    /// its job.
    #[inline]
    fn next_of(&self, bio: &Bio, number: u32) -> Option<Bio> {
        let transfer = &self.jobs.borrow()[number].transfer;
        if is_last(bio, transfer) {
            return None;
        }
        next_bio(bio, transfer, self.shape.block_bytes, self.shape.longest_bio(bio.op))
    }

    /// Submits the bio that follows one of its job which has ended. This ends no other bio, so a
    /// caller of [`Self::next_ended`] comes to an end.
    fn submit_next(&mut self, bio: Bio) {
        if self.shape.is_sliced(bio.op) {
            self.slices.push_back(bio);
        } else {
            self.bios.submit_later(bio);
        }
    }

    fn is_abandoned(&self, bio: &Bio) -> bool {
        self.jobs.borrow()[job_of(bio.cookie)].is_abandoned
    }

    /// Submits `bio` now, in a later turn ([range-in-slices]), or as soon as a tag is free.
    #[inline]
    fn submit(&mut self, bio: Bio, now: Instant) {
        if self.shape.is_sliced(bio.op) {
            self.slices.push_back(bio);
        } else {
            self.bios.submit(bio, now);
        }
    }

    /// Submits the slices of this turn ([range-in-slices]).
    pub fn submit_slices(&mut self, now: Instant) {
        let mut left = SLICE_SECTORS;
        while let Some(&bio) = self.slices.front().filter(|bio| bio.sectors <= left) {
            self.slices.pop_front();
            if self.is_abandoned(&bio) {
                self.bios.refuse(bio, Status::IoError); // [abandoned-range-stops]
                continue;
            }
            left -= bio.sectors;
            self.bios.submit(bio, now);
        }
    }

    /// Does everything that can be done now. See [`BioQueue::advance`].
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        self.bios.advance(now);
    }

    /// Runs the queue after another lane has given back depth, since requests may wait for that.
    pub fn try_again(&mut self, now: Instant) {
        self.bios.try_again(now);
    }

    /// Returns the instant at which to call [`Self::advance`] if no event occurs earlier.
    pub fn poll_at(&self) -> Option<Instant> {
        let slices = (!self.slices.is_empty()).then_some(Instant::ZERO);
        self.bios.poll_at().into_iter().chain(slices).min()
    }
}
