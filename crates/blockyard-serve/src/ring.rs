//! The io_uring of a lane: everything the lane asks of the kernel, in one call a turn.
//!
//! An operation keeps what it is given, a value of any type `K`, from when it is pushed until it is
//! [`Done`]. The value owns the memory that the operation works on, so nothing that the kernel reads or
//! writes can be freed or used meanwhile. The value also says whose operation it is.
//!
//! # Rules (cited by name)
//!
//! - **[kernel-memory-stays]** The kernel is given pointers only into memory that the operation's entry in `ops` keeps
//!   alive and in place; the entry is removed when the kernel has said that it is done. Whoever pushes
//!   an operation gives, with each [`Span`], the owner of its memory.
//! - **[kernel-writes-alone]** Memory that the kernel writes to is either a [`Map`](crate::map::Map), which is never
//!   referred to, or memory that nobody else holds until the operation is done.
//! - **[quick-send-never-waits]** A *quick* send does not wait and reports only failure: it is done when the call that
//!   submitted it returns, as what cannot go at once fails. So answers cost no completion of their
//!   own, and a turn that answers is one call.
//!
//! I/O of files goes to the kernel two operations at a time. What comes in one call beyond these it keeps from the disk
//! until it has looked at everything in the call, sends with their copies included.
//!
//! # Safety
//!
//! [kernel-memory-stays] and [kernel-writes-alone] are all there is to it. [`Ring`] is dropped with operations under way only when its
//! thread ends in a panic, or is told to leave whatever is under way; their memory is then leaked.
#![allow(unsafe_code, reason = "the kernel is given pointers; see Safety above")]

use crate::map::Span;
use crate::slab::Slab;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Entries of the submission queue; when they are used up the kernel is called once more.
const SUBMISSIONS: u32 = 512;
/// I/Os of files in one call, whose first ones the kernel does not keep back.
const FILES_MAX: u32 = 2;
/// Entries of the completion queue: beyond these the kernel keeps completions elsewhere, slowly.
const COMPLETIONS: u32 = 8192;
/// Most pieces of memory in one operation: `IOV_MAX`.
pub(crate) const SPANS_MAX: usize = 1024;
/// Wait for the socket before the first try: `IORING_RECVSEND_POLL_FIRST`.
const POLL_FIRST: u16 = 1;

/// What a disk asks of a file.
#[derive(Debug)]
pub(crate) enum FileOp {
    /// Read at this offset.
    Read { offset: u64 },
    /// Write there, durably if `fua`.
    Write { offset: u64, fua: bool },
    /// Make durable what was written.
    Sync,
    /// `fallocate`.
    Allocate { mode: i32, offset: u64, len: u64 },
}

/// An I/O of a file.
#[derive(Debug)]
pub(crate) struct FileIo {
    pub(crate) fd: RawFd,
    pub(crate) op: FileOp,
    /// The memory it is about.
    pub(crate) spans: Vec<Span>,
}

/// An operation that is over.
#[derive(Debug)]
pub(crate) struct Done<K> {
    /// What the system call would have returned.
    pub(crate) result: io::Result<usize>,
    /// More is to be received already.
    pub(crate) more: bool,
    /// What the operation was given.
    pub(crate) kept: K,
}

/// A message as the kernel wants it.
#[derive(Debug)]
pub(crate) struct Message {
    header: libc::msghdr,
    /// The pieces of memory that are sent, in order.
    pub(crate) spans: Vec<Span>,
    iovecs: Vec<libc::iovec>,
}

/// What the kernel reads besides the memory of an operation.
#[derive(Debug)]
enum Pieces {
    None,
    Message(Box<Message>),
    Vector { _iovecs: Vec<libc::iovec> },
}

#[derive(Debug)]
struct Op<K> {
    kept: K,
    pieces: Pieces,
}

/// The io_uring of a lane. See the [module](self).
pub(crate) struct Ring<K> {
    ring: IoUring,
    ops: Slab<Op<K>>,
    /// Quick sends of this turn ([quick-send-never-waits]).
    quick: Vec<u32>,
    #[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
    spare_messages: Vec<Box<Message>>,
    done: VecDeque<Done<K>>,
    /// I/Os of files pushed since the last call.
    files: u32,
}

impl<K> Ring<K> {
    /// A ring of this thread.
    ///
    /// # Errors
    ///
    /// The kernel has none, or may not be asked for one.
    pub(crate) fn new() -> io::Result<Self> {
        let today = || {
            IoUring::builder()
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_taskrun_flag() // who does not wait learns by it that there is something
                .setup_submit_all()
                .setup_cqsize(COMPLETIONS)
                .build(SUBMISSIONS)
        };
        // Linux before 6.1 knows not all of these; they matter to speed only.
        let older = |_| IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS);
        let ring = today().or_else(older)?;
        Ok(Self {
            ring,
            ops: Slab::new(),
            quick: Vec::new(),
            spare_messages: Vec::new(),
            done: VecDeque::new(),
            files: 0,
        })
    }

    /// Receives to `span`: all of it where it is `whole`, else what there is. With `expected`, something
    /// is there to be received already. Nobody but the kernel uses the span until this is done ([kernel-writes-alone]).
    pub(crate) fn receive(&mut self, fd: RawFd, span: Span, whole: bool, expected: bool, kept: K) {
        let len = u32::try_from(span.len).expect("buffer length within 32 bits");
        let flags = if whole { libc::MSG_WAITALL } else { 0 };
        let entry = opcode::Recv::new(Fd(fd), span.start, len)
            .flags(flags)
            .ioprio(if expected { 0 } else { POLL_FIRST })
            .build();
        self.push(entry, Op { kept, pieces: Pieces::None });
    }

    /// An empty message for [`Self::send`], which takes [`SPANS_MAX`] spans.
    pub(crate) fn message(&mut self) -> Box<Message> {
        self.spare_messages.pop().unwrap_or_else(Message::new)
    }

    /// Sends `message`, if it can go at once and `quick` is set ([quick-send-never-waits]); else as soon as it can.
    pub(crate) fn send(&mut self, fd: RawFd, mut message: Box<Message>, quick: bool, kept: K) {
        message.point_to_spans();
        let now = if quick { libc::MSG_DONTWAIT } else { 0 };
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | now;
        let mut entry = opcode::SendMsg::new(Fd(fd), &raw const message.header)
            .flags(flags.cast_unsigned())
            .build();
        if quick {
            entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        }
        let at = self.push(entry, Op { kept, pieces: Pieces::Message(message) });
        if quick {
            self.quick.push(at);
        }
    }

    /// Waits until `fd` can be read.
    pub(crate) fn readable(&mut self, fd: RawFd, kept: K) {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(entry, Op { kept, pieces: Pieces::None });
    }

    /// An I/O of a file.
    pub(crate) fn file(&mut self, io: FileIo, kept: K) {
        let FileIo { fd, op, spans } = io;
        let fd = Fd(fd);
        let mut iovecs = Vec::new();
        let one = match *spans {
            [span] => Some(span),
            _ => {
                iovecs.extend(spans.iter().map(iovec));
                None
            }
        };
        let count = u32::try_from(iovecs.len()).expect("segments of one request");
        let len_of = |span: Span| u32::try_from(span.len).expect("segment length within 32 bits");
        let entry = match (op, one) {
            (FileOp::Read { offset }, Some(span)) => {
                opcode::Read::new(fd, span.start, len_of(span)).offset(offset).build()
            }
            (FileOp::Read { offset }, None) => {
                opcode::Readv::new(fd, iovecs.as_ptr(), count).offset(offset).build()
            }
            (FileOp::Write { offset, fua }, Some(span)) => {
                opcode::Write::new(fd, span.start, len_of(span))
                    .offset(offset)
                    .rw_flags(if fua { libc::RWF_DSYNC } else { 0 })
                    .build()
            }
            (FileOp::Write { offset, fua }, None) => {
                opcode::Writev::new(fd, iovecs.as_ptr(), count)
                    .offset(offset)
                    .rw_flags(if fua { libc::RWF_DSYNC } else { 0 })
                    .build()
            }
            (FileOp::Sync, _) => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            (FileOp::Allocate { mode, offset, len }, _) => {
                opcode::Fallocate::new(fd, len).mode(mode).offset(offset).build()
            }
        };
        self.push(entry, Op { kept, pieces: Pieces::Vector { _iovecs: iovecs } });
        self.files += 1;
        if self.files == FILES_MAX {
            self.submit();
        }
    }

    /// Tells the kernel of everything pushed; with `wait`, waits until something is done, for so
    /// long at most.
    ///
    /// # Errors
    ///
    /// Those of `io_uring_enter`, which leave nothing to go on with.
    pub(crate) fn enter(&mut self, wait: Option<Duration>) -> io::Result<()> {
        // Only failed quick sends and rings of old kernels have something to tell before.
        let wait = if self.done.is_empty() { wait } else { None };
        self.call(wait)?;
        while !self.ring.submission().is_empty() {
            self.call(None)?;
        }
        self.collect();
        Ok(())
    }

    /// An operation that is over.
    pub(crate) fn next_done(&mut self) -> Option<Done<K>> {
        self.done.pop_front()
    }

    fn call(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.files = 0;
        let called = match wait {
            None => self.ring.submit(),
            Some(Duration::MAX) => self.ring.submit_and_wait(1),
            Some(wait) => {
                let wait = Timespec::from(wait);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&wait))
            }
        };
        match called {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes in what the kernel has done.
    fn collect(&mut self) {
        let completed = self.ring.completion();
        for entry in completed {
            let at = u32::try_from(entry.user_data()).expect("number of an operation");
            if let Some(quick) = self.quick.iter().position(|quick| *quick == at) {
                self.quick.swap_remove(quick);
            }
            let result = match entry.result() {
                bytes @ 0.. => Ok(usize::try_from(bytes).expect("length that is not negative")),
                errno => Err(io::Error::from_raw_os_error(-errno)),
            };
            let more = cqueue::sock_nonempty(entry.flags());
            self.done.push_back(done(&mut self.ops, &mut self.spare_messages, at, result, more));
        }
        // [quick-send-never-waits]: those are done of which the kernel has told nothing.
        for at in self.quick.drain(..) {
            let sent = match &self.ops[at].pieces {
                Pieces::Message(message) => message.spans.iter().map(|span| span.len).sum(),
                _ => unreachable!("only sends are quick"),
            };
            self.done.push_back(done(&mut self.ops, &mut self.spare_messages, at, Ok(sent), false));
        }
    }

    fn push(&mut self, entry: squeue::Entry, op: Op<K>) -> u32 {
        let at = self.ops.insert(op);
        let entry = entry.user_data(u64::from(at));
        loop {
            // SAFETY: [kernel-memory-stays]: what the entry points to is in `ops`: our own pieces on the heap, and memory
            // whose owner was given with its span and which does not move with that owner.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return at;
            }
            self.submit();
        }
    }

    fn submit(&mut self) {
        self.call(None).expect("submission of pushed operations");
    }
}

#[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
fn done<K>(
    ops: &mut Slab<Op<K>>,
    spare_messages: &mut Vec<Box<Message>>,
    at: u32,
    result: io::Result<usize>,
    more: bool,
) -> Done<K> {
    let Op { kept, pieces } = ops.remove(at);
    if let Pieces::Message(mut message) = pieces {
        message.spans.clear();
        spare_messages.push(message);
    }
    Done { result, more, kept }
}

impl<K> Drop for Ring<K> {
    fn drop(&mut self) {
        if self.ops.len() > 0 {
            // The kernel may still write there.
            core::mem::forget(core::mem::replace(&mut self.ops, Slab::new()));
        }
    }
}

impl Message {
    #[expect(clippy::unnecessary_box_returns, reason = "the kernel wants it to stay in place")]
    fn new() -> Box<Self> {
        // SAFETY: a `msghdr` of zeroes is one without name, data and control.
        let header = unsafe { core::mem::zeroed() };
        Box::new(Self { header, spans: Vec::new(), iovecs: Vec::new() })
    }

    fn point_to_spans(&mut self) {
        debug_assert!(self.spans.len() <= SPANS_MAX, "the kernel takes no more pieces");
        self.iovecs.clear();
        self.iovecs.extend(self.spans.iter().map(iovec));
        self.header.msg_iov = self.iovecs.as_mut_ptr();
        self.header.msg_iovlen = self.iovecs.len();
    }
}

fn iovec(span: &Span) -> libc::iovec {
    libc::iovec { iov_base: span.start.cast(), iov_len: span.len }
}

/// Whether it says only that the wait ended early.
fn is_passing(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN].map(Some).contains(&errno)
}
