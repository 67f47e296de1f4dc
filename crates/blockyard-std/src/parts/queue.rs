//! A disk as one lane sees it: the core's request queue, the device below it, and the bios that wait for a tag.
//!
//! # Rules (cited by name)
//!
//! - **[range-in-slices]** In one turn, a lane discards and zeroes at most one slice of a disk whose work its own thread does,
//!   or that much of shorter ranges. The slices of several requests take turns.

use crate::parts::bios::{BIO_SECTORS_MAX, first_bio, is_last, next_bio};
use crate::parts::device::{RANGE_SECTORS_MAX, SLICE_SECTORS};
use crate::parts::job::{Job, Jobs, Owner, Transfer, job_of};
use blockyard::bio::{Bio, Flags, IoPrio, Op};
use blockyard::driver::Device;
use blockyard::elevator::Elevator;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request::Ended;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::trace::Sink;
use blockyard::unit::{CpuId, HctxId, QueueId};
use std::collections::VecDeque;
use std::rc::Rc;

/// The only CPU of a lane.
const CPU: CpuId = CpuId(0);
/// The only hardware queue of a lane's disk.
const HCTX: HctxId = HctxId(0);

/// Makes an elevator of the embedder's own for a queue of this configuration, on a host with these tags.
pub type MakeElevator = fn(&QueueConfig, &TagSetConfig) -> Box<dyn Elevator + Send>;

/// What a lane must know of a disk.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The limits of the device.
    pub limits: Limits,
    /// The design of the queue.
    pub policies: Policies,
    /// Its elevator, if the design has one of the embedder's own ([`ElevatorKind::Other`](blockyard::policy::ElevatorKind)).
    pub elevator: Option<MakeElevator>,
    /// The largest number of requests in flight at the device.
    pub depth: u16,
    /// The alignment that the device needs, in bytes, or 1 for none.
    pub block_bytes: u64,
    /// The time after which the core asks the device about a request; `None` for the core's default.
    pub timeout: Option<Duration>,
    /// Whether the lane's own thread discards and zeroes, which may take long ([range-in-slices]).
    pub takes_slices: bool,
    /// Whether a discard or zeroing of any length is one bio.
    pub takes_long_ranges: bool,
}

impl Shape {
    /// Returns the tags of the disk's only hardware queue.
    #[must_use]
    pub const fn tags(&self) -> TagSetConfig {
        TagSetConfig {
            hctxs: 1,
            depth: self.depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        }
    }

    /// Returns whether bios of `op` are submitted in slices ([range-in-slices]).
    #[inline]
    const fn is_sliced(&self, op: Op) -> bool {
        matches!(op, Op::Discard | Op::WriteZeroes) && self.takes_slices
    }

    /// Returns the length of the longest bio of `op`, in sectors. The bios of one job follow each other.
    #[inline]
    const fn longest_bio(&self, op: Op) -> u32 {
        match op {
            Op::Discard | Op::WriteZeroes if self.takes_slices => SLICE_SECTORS,
            Op::Discard | Op::WriteZeroes if !self.takes_long_ranges => RANGE_SECTORS_MAX,
            _ => BIO_SECTORS_MAX,
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
}

impl From<Op> for Asked {
    fn from(op: Op) -> Self {
        Self { op, flags: Flags::NONE, prio: IoPrio::default() }
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
    /// The device and the sink of events.
    pub host: Host<D, S>,
    queue: RequestQueue,
    jobs: Jobs,
    shape: Shape,
    /// Bios that wait for a tag, the oldest first.
    waiting: VecDeque<Bio>,
    /// Discards and zeroings for the next turns, each of at most a slice ([range-in-slices]).
    slices: VecDeque<Bio>,
    refused: VecDeque<Ended>,
    is_plugged: bool,
}

impl<D: Device, S: Sink> LaneQueue<D, S> {
    /// Returns a queue over `device`, which has the tags of [`Shape::tags`] and finds its data in `jobs`.
    pub fn new(shape: Shape, device: D, sink: S, jobs: &Jobs) -> Self {
        let host = Host::new(device, sink, shape.tags());
        let mut config = QueueConfig::new(1, 1, shape.limits.clone(), shape.policies);
        config.timeout = shape.timeout.unwrap_or(config.timeout);
        let queue = match shape.elevator {
            None => RequestQueue::new(QueueId(0), config, &host),
            Some(make) => {
                let elevator = make(&config, host.tags().config());
                RequestQueue::with_elevator(QueueId(0), config, &host, elevator)
            }
        };
        Self {
            queue,
            host,
            jobs: Rc::clone(jobs),
            shape,
            waiting: VecDeque::new(),
            slices: VecDeque::new(),
            refused: VecDeque::new(),
            is_plugged: false,
        }
    }

    /// Begins a job of `owner`. [`Self::next_ended`] returns the job when all of it has ended.
    #[inline]
    pub fn begin(&mut self, owner: Owner, asked: Asked, transfer: Transfer, now: Instant) {
        let Asked { op, flags, prio } = asked;
        let bio = first_bio(op, &transfer, self.shape.block_bytes, self.shape.longest_bio(op));
        let flags = bio.flags | flags;
        let cookie = u64::from(self.jobs.borrow_mut().insert(Job { transfer, owner }));
        self.submit(Bio { cookie, flags, prio, ..bio }, now);
    }

    /// Returns a job that has ended, each exactly once. If a bio succeeded and its job has more, submits the next one and
    /// sets `submitted`.
    #[inline(always)] // a call that moves a job to its owner would cost a lane 3 instructions of 100
    pub fn next_ended(&mut self, submitted: &mut bool, now: Instant) -> Option<EndedJob> {
        loop {
            let Ended { bio, status } =
                self.queue.next_ended().or_else(|| self.refused.pop_front())?;
            let number = job_of(bio.cookie);
            if status == Status::Ok
                && let Some(next) = self.next_of(&bio, number)
            {
                *submitted = true;
                self.submit(next, now);
                continue;
            }
            let job = self.jobs.borrow_mut().remove(number);
            return Some(EndedJob { status, op: bio.op, job });
        }
    }

    /// Returns the bio that follows `bio`, which has ended, or `None` if `bio` was the last one of its job.
    #[inline]
    fn next_of(&self, bio: &Bio, number: u32) -> Option<Bio> {
        let transfer = &self.jobs.borrow()[number].transfer;
        if is_last(bio, transfer) {
            return None;
        }
        next_bio(bio, transfer, self.shape.block_bytes, self.shape.longest_bio(bio.op))
    }

    /// Submits `bio` now, in a later turn ([range-in-slices]), or as soon as a tag is free.
    #[inline]
    fn submit(&mut self, bio: Bio, now: Instant) {
        if self.shape.is_sliced(bio.op) {
            self.slices.push_back(bio);
        } else {
            self.submit_now(bio, now);
        }
    }

    /// Submits the slices of this turn ([range-in-slices]).
    pub fn submit_slices(&mut self, now: Instant) {
        let mut left = SLICE_SECTORS;
        while let Some(&bio) = self.slices.front().filter(|bio| bio.sectors <= left) {
            self.slices.pop_front();
            left -= bio.sectors;
            self.submit_now(bio, now);
        }
    }

    #[inline]
    fn submit_now(&mut self, bio: Bio, now: Instant) {
        if !self.is_plugged {
            self.queue.plug(CPU);
            self.is_plugged = true;
        }
        if !self.waiting.is_empty() {
            self.waiting.push_back(bio);
        } else if !self.enters(bio, now) {
            self.advance(now);
            if !self.enters(bio, now) {
                self.waiting.push_back(bio);
            }
        }
    }

    /// Submits `bio`. Returns whether the queue accepted it or rejected it for good; `false` means that no
    /// tag is free.
    #[inline]
    fn enters(&mut self, bio: Bio, now: Instant) -> bool {
        let status = match self.queue.submit(&mut self.host, CPU, bio, now) {
            Ok(()) => return true,
            Err(SubmitError::NoTag | SubmitError::TooManyBios) => return false,
            Err(SubmitError::NotSupported) => Status::NotSupported,
            Err(_) => Status::IoError,
        };
        self.refused.push_back(Ended { bio, status });
        true
    }

    /// Does everything that can be done now: runs the queue, concludes completed requests, and submits the
    /// bios that waited for their tags.
    pub fn advance(&mut self, now: Instant) {
        if self.is_plugged {
            self.is_plugged = false;
            self.queue.unplug(&mut self.host, CPU, now);
        }
        loop {
            self.run(now);
            let mut has_finished = false;
            while let Some(finished) = self.host.driver.next_finished(now) {
                has_finished = true;
                let concluded = self.queue.conclude(&mut self.host, &finished, now);
                concluded.expect("a request that the device completes is one that it owned");
            }
            if !has_finished {
                return;
            }
            if !self.waiting.is_empty() {
                self.run(now); // bios in the queue precede the waiting ones
            }
            while let Some(&bio) = self.waiting.front() {
                if !self.enters(bio, now) {
                    break;
                }
                self.waiting.pop_front();
            }
        }
    }

    /// Runs the queue after another lane has given back depth, since requests may wait for that.
    pub fn try_again(&mut self, now: Instant) {
        let _ = self.queue.run(&mut self.host, HCTX, now);
    }

    fn run(&mut self, now: Instant) {
        loop {
            let hctx = match self.queue.next_run(&mut self.host, now) {
                Some(run) => run.hctx,
                None => match self.host.next_starved() {
                    Some((_, hctx)) => hctx,
                    None => return,
                },
            };
            let _ = self.queue.run(&mut self.host, hctx, now);
        }
    }

    /// Returns the instant at which to call [`Self::advance`] if no event occurs earlier.
    pub fn poll_at(&self) -> Option<Instant> {
        let slices = (!self.slices.is_empty()).then_some(Instant::ZERO);
        self.queue.poll_at().into_iter().chain(self.host.driver.poll_at()).chain(slices).min()
    }
}
