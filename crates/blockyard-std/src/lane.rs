//! The thread of a disk. It owns the queue, the device and the ring; callers reach it by its inbox.
//!
//! ```text
//! inbox ─► begin ─► queue ─► device ─► ring: one call submits file I/O and waits
//!            loans of callers end ◄─── ended ◄──────┘
//! ```
//!
//! # Rules (cited by name)
//!
//! - **[kernel-first]** A lane ends, even by a panic, only when the kernel uses no memory of a
//!   caller any more.

use crate::error::Error;
use crate::inbox::{Inbox, Request};
use crate::parts::bell;
use crate::parts::clock;
use crate::parts::device::file::Outbox;
use crate::parts::discards::Discards;
use crate::parts::job::{Job, Jobs, Keeper, Owner, Place, Transfer};
use crate::parts::loan::Loan;
use crate::parts::map::Pages;
use crate::parts::pool::{BUFFER_BYTES_MAX, Pool};
use crate::parts::queue::{Asked, EndedJob, LaneQueue, Rounds};
use crate::parts::ring::{IoEngine, Ring};
use crate::parts::shape::Shape;
use crate::parts::slab::Slab;
use crate::report::{Failure, Report};
use crate::stats::Counters;
use blockyard::bio::Op;
use blockyard::driver::Device;
use blockyard::status::Status;
use blockyard::time::Instant;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The largest total size of the spare buffers that a lane keeps, in bytes.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// What a lane shares with its callers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    pub(crate) bell: Arc<OwnedFd>,
    pub(crate) counters: Counters,
}

/// What a device is made from.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) jobs: Jobs,
    pub(crate) outbox: Rc<Outbox>,
    pub(crate) bell: Arc<OwnedFd>,
}

/// The I/O of a device with files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) engine: IoEngine,
    /// The alignment that the kernel needs of memory, in bytes; 1 for none.
    pub(crate) memory_align: usize,
}

/// The owner of an operation in the ring.
#[derive(Debug)]
enum Kept {
    /// The device, which knows the I/O by `number`.
    Device { number: u32, _keepers: Vec<Keeper> },
    /// The lane, which waits on its bell.
    Bell,
}

/// The thread of a disk. See the [module](self).
pub(crate) struct Lane<D: Device> {
    shared: Arc<Shared>,
    /// The ring of a device that has file I/O. Otherwise the lane waits on its bell.
    ring: Option<Ring<Kept>>,
    queue: LaneQueue<D, ()>,
    outbox: Rc<Outbox>,
    discards: Discards,
    pool: Pool,
    /// The alignment that the kernel needs of memory, in bytes; 1 for none.
    memory_align: usize,
    block_bytes: u64,
    has_cache: bool,
    /// The loans of requests that have begun. The job of each has it too, or a buffer in its place.
    begun: Slab<Rc<Loan>>,
    /// Requests that have arrived in this turn.
    arrived: Vec<Request>,
    report: Report,
    /// The result of the lane's own flush, if it has ended.
    flushed: Option<Status>,
    now: Instant,
}

impl<D: Device> Lane<D> {
    /// Returns the lane of this thread, with the device that `make` makes, which has file I/O as
    /// `files` says.
    ///
    /// # Errors
    ///
    /// As [`Ring::new`].
    pub(crate) fn new(
        shared: Arc<Shared>,
        shape: Shape,
        files: Option<Files>,
        make: impl FnOnce(Kit) -> D,
    ) -> io::Result<Self> {
        let jobs = Jobs::default();
        let outbox = Rc::default();
        let bell = Arc::clone(&shared.bell);
        let ring = files.map(|files| Ring::new(files.engine)).transpose()?;
        let device = make(Kit { jobs: Rc::clone(&jobs), outbox: Rc::clone(&outbox), bell });
        let block_bytes = shape.block_bytes;
        let has_cache = shape.limits.write_cache;
        Ok(Self {
            ring,
            queue: LaneQueue::new(shape, device, (), &jobs),
            outbox,
            discards: Discards::new(Arc::clone(&shared.bell)),
            pool: Pool::new(SPARE_BYTES_MAX),
            memory_align: files.map_or(1, |files| files.memory_align),
            block_bytes,
            has_cache,
            begun: Slab::default(),
            arrived: Vec::new(),
            report: Report::default(),
            flushed: None,
            now: clock::now(),
            shared,
        })
    }

    /// Serves until the inbox is closed, and ends every request that it had got before. Flushes the
    /// disk at the end.
    ///
    /// # Errors
    ///
    /// Fails if the ring fails.
    pub(crate) fn run(mut self) -> io::Result<Report> {
        self.listen();
        loop {
            let is_closed = self.shared.inbox.take(&mut self.arrived);
            let mut arrived = core::mem::take(&mut self.arrived);
            arrived.drain(..).for_each(|request| self.begin(request));
            self.arrived = arrived;
            self.advance();
            if is_closed && self.begun.is_empty() {
                break;
            }
            self.turn(is_closed)?;
        }
        if self.has_cache {
            let asked = Asked::from(Op::Flush);
            let transfer = Transfer::new(0, 0);
            self.queue.begin(Owner::Lane, asked, transfer, self.now);
            self.advance();
            while self.flushed.is_none() {
                self.turn(true)?;
                self.advance();
            }
        }
        let status = self.flushed.unwrap_or(Status::Ok);
        let flush = if status == Status::Ok { Ok(()) } else { Err(Error::Failed(status)) };
        let stats = self.shared.counters.read();
        Ok(Report { flush, stats, ..core::mem::take(&mut self.report) })
    }

    /// Waits until there is something to do, and takes in what the kernel has done.
    fn turn(&mut self, is_closed: bool) -> io::Result<()> {
        let wait = self.wait();
        let wait = wait.filter(|_| self.shared.inbox.may_sleep(is_closed));
        let Some(ring) = &mut self.ring else {
            let is_rung = wait.is_some_and(|wait| bell::wait(&self.shared.bell, wait));
            self.now = clock::now();
            if is_rung {
                self.rung();
            }
            return Ok(());
        };
        ring.enter(wait)?;
        self.now = clock::now();
        let mut is_rung = false;
        while let Some(done) = ring.next_done() {
            match done.kept {
                Kept::Device { number, .. } => self.outbox.end(number, done.result),
                Kept::Bell => is_rung = true,
            }
        }
        if is_rung {
            self.rung();
            self.listen();
        }
        Ok(())
    }

    /// Returns how long the lane may sleep, or `None` if it must not.
    fn wait(&self) -> Option<Duration> {
        match self.queue.poll_at() {
            None | Some(Instant::MAX) => Some(Duration::MAX),
            Some(at) if at <= self.now => None,
            Some(at) => Some(Duration::from_nanos(at.since(clock::now()).as_ns())),
        }
    }

    fn listen(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.readable(self.shared.bell.as_raw_fd(), Kept::Bell);
        }
    }

    fn rung(&mut self) {
        bell::silence(&self.shared.bell);
        while let Some((_, number, result)) = self.discards.next_ended() {
            self.outbox.end(number, result);
        }
        self.queue.try_again(self.now);
    }

    fn begin(&mut self, request: Request) {
        let Request { asked, transfer: Transfer { offset, len, place: loan, .. } } = request;
        let loan = Rc::new(loan);
        self.shared.counters.begun();
        let place = match asked.op {
            Op::Read | Op::Write => self.place(&asked, offset, len, &loan),
            _ => Ok(Place::NoBuffer),
        };
        let Ok(place) = place else {
            self.end_loan(asked.op, offset, len, Status::IoError, &loan);
            return;
        };
        let token = self.begun.insert(loan);
        let transfer = Transfer { place, ..Transfer::new(offset, len) };
        self.queue.begin(Owner::Door { door: 0, token }, asked, transfer, self.now);
    }

    /// Returns the caller's own memory, or a buffer if the kernel needs another alignment.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory for a buffer.
    fn place(
        &mut self,
        asked: &Asked,
        offset: u64,
        len: u64,
        loan: &Rc<Loan>,
    ) -> io::Result<Place> {
        let align = self.memory_align;
        if align == 1 || ((offset | len).is_multiple_of(align as u64) && loan.is_aligned(align)) {
            return Ok(Place::Loan(Rc::clone(loan)));
        }
        let lead = offset % self.block_bytes;
        let all = memory_bytes((lead + len).next_multiple_of(self.block_bytes));
        let lead = memory_bytes(lead);
        let pages = match all <= BUFFER_BYTES_MAX {
            true => self.pool.take(all, true)?,
            false => Rc::new(Pages::new(all)?),
        };
        if asked.op == Op::Write {
            loan.copy_to(0, &pages, lead, loan.len());
        }
        Ok(Place::Buffer { pages, lead })
    }

    /// Does everything that can be done now, and ends the requests that are over.
    fn advance(&mut self) {
        self.queue.submit_slices(self.now);
        self.take_rounds();
        let Some(ring) = &mut self.ring else { return };
        while let Some(begun) = self.outbox.begun.borrow_mut().pop_front() {
            let kept = Kept::Device { number: begun.number, _keepers: begun.keepers };
            ring.file(begun.io, kept);
        }
        while let Some(discard) = self.outbox.discards.borrow_mut().pop_front() {
            self.discards.begin(0, discard);
        }
    }

    fn end(&mut self, ended: EndedJob) {
        let EndedJob { status, op, job: Job { transfer, owner, .. } } = ended;
        let Owner::Door { token, .. } = owner else {
            self.flushed = Some(status);
            return;
        };
        let loan = self.begun.remove(token);
        let Transfer { offset, len, place, .. } = transfer;
        if let Place::Buffer { pages, lead } = place {
            self.give_back(op, status, pages, lead, &loan);
        }
        self.end_loan(op, offset, len, status, &loan);
    }

    /// Counts a request that has ended, and notes its result for the caller.
    fn end_loan(&mut self, op: Op, offset: u64, len: u64, status: Status, loan: &Loan) {
        self.shared.counters.ended(op, len, status == Status::Ok);
        self.report.note(Failure { op, offset, len, status });
        loan.end(status);
    }

    fn give_back(&mut self, op: Op, status: Status, pages: Rc<Pages>, lead: usize, loan: &Loan) {
        if op == Op::Read && status == Status::Ok {
            loan.copy_from(0, &pages, lead..lead + loan.len());
        }
        self.pool.give(pages);
    }
}

impl<D: Device> Rounds for Lane<D> {
    #[inline]
    fn advance_queue(&mut self) {
        self.queue.advance(self.now);
    }

    #[inline]
    fn next_ended(&mut self, submitted: &mut bool) -> Option<EndedJob> {
        self.queue.next_ended(submitted)
    }

    #[inline]
    fn return_to_owner(&mut self, ended: EndedJob) {
        self.end(ended);
    }
}

fn memory_bytes(count: u64) -> usize {
    usize::try_from(count).expect("the length of memory fits in usize")
}

impl<D: Device> Drop for Lane<D> {
    fn drop(&mut self) {
        // [kernel-first]. The poll of the bell ends too.
        let Some(ring) = &mut self.ring else { return };
        bell::ring(&self.shared.bell);
        while !ring.is_empty() {
            if ring.enter(Some(Duration::MAX)).is_err() {
                // The kernel may still write to memory that callers would get back.
                std::process::abort();
            }
            while ring.next_done().is_some() {}
        }
    }
}
