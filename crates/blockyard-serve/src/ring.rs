//! The io_uring of a lane: everything the lane asks of the kernel, in one call a turn.
//!
//! An operation owns the memory it works on from when it is pushed until it is [`Done`], so nothing
//! the kernel reads or writes can be freed or used meanwhile.
//!
//! # Rules (cited by number in the code)
//!
//! - **I1.** The kernel is given pointers only into memory that the operation's entry in `ops` keeps
//!   alive and in place; the entry is removed when the kernel has said that it is done.
//! - **I2.** Memory that the kernel writes to is either a [`Map`], which is never referred to, or an
//!   input that nobody else holds.
//! - **I3.** A *quick* send does not wait and tells only of failure: it is done when the call that
//!   submitted it returns, as what cannot go at once fails. So answers cost no completion of their
//!   own, and a turn that answers is one call.
//! - **I4.** I/O of files goes to the kernel by twos. What comes in one call beyond these it keeps from
//!   the disk until it has looked at everything in the call, sends with their copies included.
//!
//! # Safety
//!
//! I1 and I2 are all there is to it. [`Ring`] is dropped with operations under way only when its
//! thread ends in a panic, or is told to leave whatever is under way; their memory is then leaked.
#![allow(unsafe_code, reason = "the kernel is given pointers; see Safety above")]

use crate::batch::Batch;
use crate::map::{Map, Pages, Span};
use crate::slab::Slab;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Entries of the submission queue; when they are used up the kernel is called once more.
const SUBMISSIONS: u32 = 512;
/// I4: I/Os of files in one call, whose first ones the kernel does not keep back.
const FILES_MAX: u32 = 2;
/// Entries of the completion queue: beyond these the kernel keeps completions elsewhere, slowly.
const COMPLETIONS: u32 = 8192;
/// Most pieces of memory in one operation: `IOV_MAX`.
pub(crate) const SPANS_MAX: usize = 1024;
/// Wait for the socket before the first try: `IORING_RECVSEND_POLL_FIRST`.
const POLL_FIRST: u16 = 1;

/// What an operation is to whoever asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Bytes from a connection.
    Receive(u32),
    /// Bytes to a connection.
    Send(u32),
    /// An I/O of a disk, under its own number.
    Disk { disk: u16, number: u32 },
    /// Somebody rang.
    Bell,
}

/// Where received bytes go.
#[derive(Debug)]
pub(crate) enum Landing {
    /// To be parsed.
    Input(Rc<[u8]>),
    /// Data of a write.
    Pages(Rc<Pages>),
    /// Data of a write, in the disk's own memory.
    Home(Arc<Map>),
}

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

/// An I/O of a file, with the memory it is about.
#[derive(Debug)]
pub(crate) struct FileIo {
    pub(crate) fd: RawFd,
    pub(crate) op: FileOp,
    pub(crate) spans: Vec<Span>,
    /// What the spans lie in (I1).
    pub(crate) pages: Vec<Rc<Pages>>,
}

/// An operation that is over.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) token: Token,
    /// What the system call would have returned.
    pub(crate) result: io::Result<usize>,
    /// More is to be received already.
    pub(crate) more: bool,
    pub(crate) memory: Memory,
}

/// The memory that an operation gives back.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Received.
    Landing(Landing),
    /// Sent, or part of it.
    Batch(Box<Batch>),
    /// None: that of a file's I/O is its disk's.
    None,
}

/// A message as the kernel wants it.
#[derive(Debug)]
struct Message {
    header: libc::msghdr,
    spans: Vec<Span>,
    iovecs: Vec<libc::iovec>,
}

#[derive(Debug)]
enum Kept {
    Landing(Landing),
    Send { batch: Box<Batch>, message: Box<Message> },
    File { _pages: Vec<Rc<Pages>>, _iovecs: Vec<libc::iovec> },
    Nothing,
}

#[derive(Debug)]
struct Op {
    token: Token,
    kept: Kept,
}

/// The io_uring of a lane. See the [module](self).
pub(crate) struct Ring {
    ring: IoUring,
    ops: Slab<Op>,
    /// Quick sends of this turn (I3).
    quick: Vec<u32>,
    #[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
    spare_messages: Vec<Box<Message>>,
    done: VecDeque<Done>,
    /// I/Os of files pushed since the last call (I4).
    files: u32,
}

impl Ring {
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

    /// Receives to `from..` of `landing`: all of `from..to` where it is `whole`, else what there is.
    /// With `expected`, something is there to be received already.
    ///
    /// # Panics
    ///
    /// If the range is not within it, or others hold it and it is an input (I2).
    pub(crate) fn receive(
        &mut self,
        fd: RawFd,
        token: Token,
        mut landing: Landing,
        range: core::ops::Range<usize>,
        whole: bool,
        expected: bool,
    ) {
        let span = match &mut landing {
            Landing::Input(input) => {
                let input = Rc::get_mut(input).expect("I2: nobody else holds it");
                let room = &mut input[range];
                Span { start: room.as_mut_ptr(), len: room.len() }
            }
            Landing::Pages(pages) => pages.span(range),
            Landing::Home(map) => map.span(range),
        };
        let len = u32::try_from(span.len).expect("buffers are shorter");
        let flags = if whole { libc::MSG_WAITALL } else { 0 };
        let entry = opcode::Recv::new(Fd(fd), span.start, len)
            .flags(flags)
            .ioprio(if expected { 0 } else { POLL_FIRST })
            .build();
        self.push(entry, Op { token, kept: Kept::Landing(landing) });
    }

    /// Sends what is left of `batch`, if it can go at once and `quick` is set (I3); else as soon as
    /// it can.
    pub(crate) fn send(&mut self, fd: RawFd, token: Token, mut batch: Box<Batch>, quick: bool) {
        let mut message = self.spare_messages.pop().unwrap_or_else(Message::new);
        message.point_to(&mut batch);
        let now = if quick { libc::MSG_DONTWAIT } else { 0 };
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | now;
        let mut entry = opcode::SendMsg::new(Fd(fd), &raw const message.header)
            .flags(flags.cast_unsigned())
            .build();
        if quick {
            entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        }
        let at = self.push(entry, Op { token, kept: Kept::Send { batch, message } });
        if quick {
            self.quick.push(at);
        }
    }

    /// Waits until `fd` can be read.
    pub(crate) fn readable(&mut self, fd: RawFd, token: Token) {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(entry, Op { token, kept: Kept::Nothing });
    }

    /// An I/O of a file.
    pub(crate) fn file(&mut self, token: Token, io: FileIo) {
        let FileIo { fd, op, spans, pages } = io;
        let fd = Fd(fd);
        let mut iovecs = Vec::new();
        let one = match *spans {
            [span] => Some(span),
            _ => {
                iovecs.extend(spans.iter().map(iovec));
                None
            }
        };
        let count = u32::try_from(iovecs.len()).expect("requests have fewer segments");
        let len_of = |span: Span| u32::try_from(span.len).expect("requests are shorter");
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
        self.push(entry, Op { token, kept: Kept::File { _pages: pages, _iovecs: iovecs } });
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
    pub(crate) fn next_done(&mut self) -> Option<Done> {
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
            let at = u32::try_from(entry.user_data()).expect("numbers of operations are small");
            if let Some(quick) = self.quick.iter().position(|quick| *quick == at) {
                self.quick.swap_remove(quick);
            }
            let result = match entry.result() {
                bytes @ 0.. => Ok(usize::try_from(bytes).expect("it is not negative")),
                errno => Err(io::Error::from_raw_os_error(-errno)),
            };
            let more = cqueue::sock_nonempty(entry.flags());
            self.done.push_back(done(&mut self.ops, &mut self.spare_messages, at, result, more));
        }
        // I3: those are done of which the kernel has told nothing.
        for at in self.quick.drain(..) {
            let sent = match &self.ops[at].kept {
                Kept::Send { message, .. } => message.spans.iter().map(|span| span.len).sum(),
                _ => unreachable!("only sends are quick"),
            };
            self.done.push_back(done(&mut self.ops, &mut self.spare_messages, at, Ok(sent), false));
        }
    }

    fn push(&mut self, entry: squeue::Entry, op: Op) -> u32 {
        let at = self.ops.insert(op);
        let entry = entry.user_data(u64::from(at));
        loop {
            // SAFETY: I1: what the entry points to is in `ops`, boxed or reference counted, so that
            // it stays in place.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return at;
            }
            self.submit();
        }
    }

    fn submit(&mut self) {
        self.call(None).expect("the kernel takes what is pushed");
    }
}

#[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
fn done(
    ops: &mut Slab<Op>,
    spare_messages: &mut Vec<Box<Message>>,
    at: u32,
    result: io::Result<usize>,
    more: bool,
) -> Done {
    let Op { token, kept } = ops.remove(at);
    let memory = match kept {
        Kept::Landing(landing) => Memory::Landing(landing),
        Kept::Send { batch, message } => {
            spare_messages.push(message);
            Memory::Batch(batch)
        }
        Kept::File { .. } | Kept::Nothing => Memory::None,
    };
    Done { token, result, more, memory }
}

impl Drop for Ring {
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

    fn point_to(&mut self, batch: &mut Batch) {
        self.spans.clear();
        batch.spans(SPANS_MAX, &mut self.spans);
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
