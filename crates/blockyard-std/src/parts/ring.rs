//! The io_uring of a lane, which submits all of the lane's operations with one system call per turn.
//!
//! Each operation is pushed with a value of a type `K`, which the ring keeps until the operation is
//! [`Done`]. The value owns the memory that the operation works on, so nothing that the kernel reads or
//! writes can be freed or used meanwhile. The value also identifies the owner of the operation.
//!
//! # Rules (cited by name)
//!
//! - **[kernel-memory-stays]** The kernel is given pointers only into memory that the operation's entry in `ops` keeps
//!   alive and in place. The entry is removed when the kernel has reported that the operation is done. The code that
//!   pushes an operation passes, with each [`Span`], the owner of its memory.
//! - **[kernel-writes-alone]** Memory that the kernel writes to is either a [`Map`](crate::parts::map::Map), to which no
//!   reference exists, or memory that nothing else holds until the operation is done.
//! - **[quick-send-never-waits]** A *quick* send never waits: the kernel sends the message at once or fails. The send
//!   is therefore done when the system call that submitted it returns, and only a failure posts a completion. So a
//!   successful reply costs no completion, and a turn that replies needs one system call.
//!
//! File I/O is submitted two operations at a time. The kernel would hold back further operations of the same call from
//! the disk until it has processed the whole call, including its sends and their copies.
//!
//! # Safety
//!
//! Safety depends only on [kernel-memory-stays] and [kernel-writes-alone]. A [`Ring`] is dropped with operations in
//! flight only when its thread panics or is told to leave at once; the memory of these operations is then leaked.
#![allow(unsafe_code, reason = "the kernel is given pointers; see Safety above")]

use crate::parts::map::Span;
use crate::parts::slab::Slab;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Entries of the submission queue. A full queue costs one more system call.
const SUBMISSIONS: u32 = 512;
/// File I/O operations per system call: the kernel does not hold back the first ones of a call.
const FILES_MAX: u32 = 2;
/// Entries of the completion queue. The kernel keeps further completions in a slower list.
const COMPLETIONS: u32 = 8192;
/// The largest number of spans in one operation: `IOV_MAX`.
pub const SPANS_MAX: usize = 1024;
/// The flag to wait for the socket before the first try: `IORING_RECVSEND_POLL_FIRST`.
const POLL_FIRST: u16 = 1;

/// An operation on a file.
#[derive(Debug)]
pub enum FileOp {
    /// Read at `offset`.
    Read { offset: u64 },
    /// Write at `offset`, durably if `fua`.
    Write { offset: u64, fua: bool },
    /// Make all completed writes durable.
    Sync,
    /// Read a range into the page cache.
    Prefetch { offset: u64, len: u32 },
    /// Deallocate or zero a range with `fallocate`.
    Allocate { mode: i32, offset: u64, len: u64 },
}

/// An operation on a file, with its memory.
#[derive(Debug)]
pub struct FileIo {
    /// The file.
    pub fd: RawFd,
    /// The operation.
    pub op: FileOp,
    /// The memory that is read into or written from.
    pub spans: Vec<Span>,
}

/// An operation that is done.
#[derive(Debug)]
pub struct Done<K> {
    /// The result that the equivalent system call would have returned.
    pub result: io::Result<usize>,
    /// The socket already has more bytes to receive.
    pub more: bool,
    /// The value that was pushed with the operation.
    pub kept: K,
}

/// A message in the form that the kernel requires.
#[derive(Debug)]
pub struct Message {
    header: libc::msghdr,
    /// The pieces of memory that are sent, in order.
    pub spans: Vec<Span>,
    iovecs: Vec<libc::iovec>,
}

/// The descriptors of an operation's memory, which the kernel reads too.
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
pub struct Ring<K> {
    ring: IoUring,
    ops: Slab<Op<K>>,
    /// Quick sends of this turn ([quick-send-never-waits]).
    quick: Vec<u32>,
    #[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
    spare_messages: Vec<Box<Message>>,
    done: VecDeque<Done<K>>,
    /// The number of file I/O operations pushed since the last system call.
    files: u32,
}

impl<K> Ring<K> {
    /// Returns a ring for use by this thread.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not offer io_uring or does not permit its use.
    pub fn new() -> io::Result<Self> {
        Self::sized(SUBMISSIONS, COMPLETIONS)
    }

    fn sized(submissions: u32, completions: u32) -> io::Result<Self> {
        let today = || {
            IoUring::builder()
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_taskrun_flag() // a caller that does not wait sees pending completions by this flag
                .setup_submit_all()
                .setup_cqsize(completions)
                .build(submissions)
        };
        // Linux before 6.1 does not support all of these flags, which only improve speed.
        let older = |_| IoUring::builder().setup_cqsize(completions).build(submissions);
        let ring = today().or_else(older)?;
        Ok(Self {
            ring,
            ops: Slab::default(),
            quick: Vec::new(),
            spare_messages: Vec::new(),
            done: VecDeque::new(),
            files: 0,
        })
    }

    /// Receives into `span`: the whole span if `whole` is set, otherwise the bytes that are available. Set `expected`
    /// if the socket already has bytes. Only the kernel uses the span until the operation is done
    /// ([kernel-writes-alone]).
    pub fn receive(&mut self, fd: RawFd, span: Span, whole: bool, expected: bool, kept: K) {
        let len = u32::try_from(span.len).expect("buffer length within 32 bits");
        let flags = if whole { libc::MSG_WAITALL } else { 0 };
        let entry = opcode::Recv::new(Fd(fd), span.start, len)
            .flags(flags)
            .ioprio(if expected { 0 } else { POLL_FIRST })
            .build();
        self.push(entry, Op { kept, pieces: Pieces::None });
    }

    /// Returns an empty message for [`Self::send`], which may hold up to [`SPANS_MAX`] spans.
    pub fn message(&mut self) -> Box<Message> {
        self.spare_messages.pop().unwrap_or_else(Message::new)
    }

    /// Sends `message`. A `quick` send fails if it cannot send at once ([quick-send-never-waits]); any other waits.
    pub fn send(&mut self, fd: RawFd, mut message: Box<Message>, quick: bool, kept: K) {
        message.point_to_spans();
        // A send that may wait reports each part that is sent, so that a slow client is seen to move bytes.
        let now = if quick { libc::MSG_DONTWAIT | libc::MSG_WAITALL } else { 0 };
        let flags = libc::MSG_NOSIGNAL | now;
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

    /// Pushes an operation that is done when `fd` is readable.
    pub fn readable(&mut self, fd: RawFd, kept: K) {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(entry, Op { kept, pieces: Pieces::None });
    }

    /// Pushes an operation on a file.
    pub fn file(&mut self, io: FileIo, kept: K) {
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
        let count = u32::try_from(iovecs.len())
            .expect("the number of segments of a request fits in 32 bits");
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
            (FileOp::Prefetch { offset, len }, _) => {
                opcode::Fadvise::new(fd, len.into(), libc::POSIX_FADV_WILLNEED)
                    .offset(offset)
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

    /// Returns whether no operation is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Whether operations wait for the next [`Self::enter`].
    pub fn has_pushed(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// Submits all pushed operations to the kernel. With `wait`, waits at most that long until an operation
    /// is done.
    ///
    /// # Errors
    ///
    /// Fails if `io_uring_enter` fails. The ring cannot be used afterwards.
    pub fn enter(&mut self, wait: Option<Duration>) -> io::Result<()> {
        // Operations may be done already: those that a refused call has collected.
        let wait = if self.done.is_empty() { wait } else { None };
        self.call(wait)?;
        while !self.ring.submission().is_empty() {
            self.call(None)?;
        }
        self.collect();
        // The failure of a quick send may be among the completions for which the queue had no room.
        while self.ring.submission().cq_overflow() {
            self.call(None)?;
            self.collect();
        }
        self.conclude_quick();
        Ok(())
    }

    /// Returns an operation that is done.
    pub fn next_done(&mut self) -> Option<Done<K>> {
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
        self.settle(called)
    }

    /// After a transient error, collects completions so that the call can be made again.
    ///
    /// The kernel refuses a call (`EBUSY`, and `EAGAIN` for lack of memory) while it keeps completions that do not fit into the
    /// completion queue, until the program has collected those that are there: io_uring_enter(2). A loop that only repeats the
    /// call would never end.
    fn settle(&mut self, called: io::Result<usize>) -> io::Result<()> {
        match called {
            Err(error) if is_passing(&error) => self.collect(),
            called => drop(called?),
        }
        Ok(())
    }

    /// Collects the completions that the kernel has posted.
    fn collect(&mut self) {
        let completed = self.ring.completion();
        for entry in completed {
            let at = u32::try_from(entry.user_data())
                .expect("the user data of a completion is the number of its operation");
            if let Some(quick) = self.quick.iter().position(|quick| *quick == at) {
                self.quick.swap_remove(quick);
            }
            let result = match entry.result() {
                bytes @ 0.. => Ok(usize::try_from(bytes).expect("the length is not negative")),
                errno => Err(io::Error::from_raw_os_error(-errno)),
            };
            let more = cqueue::sock_nonempty(entry.flags());
            self.done.push_back(done(&mut self.ops, &mut self.spare_messages, at, result, more));
        }
    }

    /// Takes the quick sends without a completion as successful ([quick-send-never-waits]). All of them have been submitted, and
    /// all completions collected.
    fn conclude_quick(&mut self) {
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
            // SAFETY: [kernel-memory-stays]: the entry points only to memory that `ops` keeps: our own pieces on the
            // heap, and memory whose owner was passed with its span and which does not move with that owner.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return at;
            }
            self.submit();
        }
    }

    fn submit(&mut self) {
        self.call(None).expect("the kernel should accept the pushed operations");
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
        if !self.ops.is_empty() {
            // The kernel may still write to the memory of these operations.
            core::mem::forget(core::mem::take(&mut self.ops));
        }
    }
}

impl Message {
    #[expect(clippy::unnecessary_box_returns, reason = "the kernel wants it to stay in place")]
    fn new() -> Box<Self> {
        // SAFETY: all zeroes are a valid `msghdr`, without name, data or control.
        let header = unsafe { core::mem::zeroed() };
        Box::new(Self { header, spans: Vec::new(), iovecs: Vec::new() })
    }

    fn point_to_spans(&mut self) {
        debug_assert!(self.spans.len() <= SPANS_MAX, "a message has at most IOV_MAX spans");
        self.iovecs.clear();
        self.iovecs.extend(self.spans.iter().map(iovec));
        self.header.msg_iov = self.iovecs.as_mut_ptr();
        self.header.msg_iovlen = self.iovecs.len();
    }
}

fn iovec(span: &Span) -> libc::iovec {
    libc::iovec { iov_base: span.start.cast(), iov_len: span.len }
}

/// Returns whether `error` is transient: the wait ended early, or the kernel was short of resources.
fn is_passing(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN].map(Some).contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::bell;
    use crate::parts::map::Map;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// Checks [quick-send-never-waits] too. The error is made up: today's kernels keep the completions and return none.
    #[test]
    fn a_refused_call_collects_what_is_done_but_no_message_that_it_did_not_send() {
        let bell = bell::bell().expect("a descriptor should be left");
        let bytes = Map::new(1).expect("a mapping of one page should succeed");
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets should be left");
        let mut ring = Ring::new().expect("io_uring");
        bell::ring(&bell);
        ring.readable(bell.as_raw_fd(), "bell");
        ring.submit();
        let mut message = ring.message();
        message.spans.push(bytes.span(0..3));
        ring.send(ours.as_raw_fd(), message, true, "message");
        ring.settle(Err(io::Error::from_raw_os_error(libc::EBUSY)))
            .expect("the error is transient");
        let next = |ring: &mut Ring<_>| ring.next_done().map(|done| (done.kept, done.result.ok()));
        assert_eq!(next(&mut ring).map(|done| done.0), Some("bell"));
        assert_eq!(next(&mut ring), None, "the message waits in the submission queue");
        ring.enter(None).expect("the kernel should accept a message");
        assert_eq!(next(&mut ring), Some(("message", Some(3))));
        let mut arrived = [1; 3];
        theirs.read_exact(&mut arrived).expect("the message has arrived");
        assert_eq!(arrived, [0; 3]);
        let fatal = ring.settle(Err(io::Error::from_raw_os_error(libc::EBADF)));
        assert_eq!(fatal.expect_err("it lasts").raw_os_error(), Some(libc::EBADF));
    }

    /// [quick-send-never-waits]: the queue of completions is full when a send fails.
    #[test]
    fn a_failure_for_which_the_queue_had_no_room_is_no_success() {
        let bell = bell::bell().expect("a descriptor should be left");
        let bytes = Map::new(1).expect("a mapping of one page should succeed");
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets should be left");
        drop(theirs);
        let mut ring = Ring::sized(4, 4).expect("io_uring");
        bell::ring(&bell);
        for _ in 0..4 {
            ring.readable(bell.as_raw_fd(), "bell");
        }
        ring.submit();
        let mut message = ring.message();
        message.spans.push(bytes.span(0..3));
        ring.send(ours.as_raw_fd(), message, true, "message");
        ring.enter(None).expect("the kernel should accept a message");
        let done: Vec<_> = core::iter::from_fn(|| ring.next_done()).collect();
        let sent = done.iter().find(|done| done.kept == "message").expect("the message is done");
        let errno = sent.result.as_ref().map_err(io::Error::raw_os_error);
        assert_eq!((done.len(), errno), (5, Err(Some(libc::EPIPE))));
    }
}
