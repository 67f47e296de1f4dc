//! The engine of a ring by io_uring, which submits all of a lane's operations with one system call
//! per turn.
//!
//! A quick send is done when the system call that submitted it returns, and only a failure posts a
//! completion ([quick-send-never-waits]). So a successful reply costs no completion, and a turn
//! that replies needs one system call.
//!
//! File I/O is submitted two operations at a time. The kernel would hold back further operations of
//! the same call from the disk until it has processed the whole call, including its sends and their
//! copies.

use super::ops::{FileIo, FileOp, Ops, Pieces, iovec};
use crate::parts::map::Span;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Entries of the submission queue. A full queue costs one more system call.
const SUBMISSIONS: u32 = 512;
/// File I/O operations per system call: the kernel does not hold back the first ones of a call.
const FILES_MAX: u32 = 2;
/// Entries of the completion queue. The kernel keeps further completions in a slower list.
const COMPLETIONS: u32 = 8192;
/// The flag to wait for the socket before the first try: `IORING_RECVSEND_POLL_FIRST`.
const POLL_FIRST: u16 = 1;

/// The operations that the engine uses.
const OPCODES: [u8; 10] = [
    opcode::Recv::CODE,
    opcode::SendMsg::CODE,
    opcode::PollAdd::CODE,
    opcode::Read::CODE,
    opcode::Readv::CODE,
    opcode::Write::CODE,
    opcode::Writev::CODE,
    opcode::Fadvise::CODE,
    opcode::Fsync::CODE,
    opcode::Fallocate::CODE,
];

/// The engine of a ring by io_uring. See the [module](self).
pub(super) struct Uring {
    ring: IoUring,
    /// Quick sends of this turn ([quick-send-never-waits]).
    quick: Vec<u32>,
    /// The number of file I/O operations pushed since the last system call.
    files: u32,
}

impl Uring {
    /// Returns an engine for this thread.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not permit io_uring, or offers less of it than this engine uses:
    /// Linux 5.17 has all of it.
    pub(super) fn new() -> io::Result<Self> {
        let uring = Self::sized(SUBMISSIONS, COMPLETIONS)?;
        let ring = &uring.ring;
        let mut probe = Probe::new();
        let is_probed = ring.submitter().register_probe(&mut probe).is_ok();
        let has_operations = OPCODES.iter().all(|code| probe.is_supported(*code));
        let has_features =
            ring.params().is_feature_ext_arg() && ring.params().is_feature_skip_cqe_on_success();
        match is_probed && has_operations && has_features {
            true => Ok(uring),
            false => {
                let why = "the kernel's io_uring is older than that of Linux 5.17";
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }

    pub(super) fn sized(submissions: u32, completions: u32) -> io::Result<Self> {
        // Linux before 6.1 does not support all of these flags, which only improve speed.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // A caller that does not wait sees pending completions by this flag.
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(completions)
            .build(submissions)
            .or_else(|_| IoUring::builder().setup_cqsize(completions).build(submissions))?;
        Ok(Self { ring, quick: Vec::new(), files: 0 })
    }

    pub(super) fn receive<K>(
        &mut self,
        ops: &mut Ops<K>,
        at: u32,
        fd: RawFd,
        span: Span,
        whole: bool,
        expected: bool,
    ) {
        let len = u32::try_from(span.len).expect("buffer length within 32 bits");
        let flags = if whole { libc::MSG_WAITALL } else { 0 };
        let entry = opcode::Recv::new(Fd(fd), span.start, len)
            .flags(flags)
            .ioprio(if expected { 0 } else { POLL_FIRST })
            .build();
        self.push(ops, entry, at);
    }

    pub(super) fn send<K>(&mut self, ops: &mut Ops<K>, at: u32, fd: RawFd, quick: bool) {
        // A send that may wait reports each part that is sent, so that a slow client is seen to
        // move bytes.
        let now = if quick { libc::MSG_DONTWAIT | libc::MSG_WAITALL } else { 0 };
        let flags = libc::MSG_NOSIGNAL | now;
        let mut entry = opcode::SendMsg::new(Fd(fd), &raw const ops.message(at).header)
            .flags(flags.cast_unsigned())
            .build();
        if quick {
            entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        }
        self.push(ops, entry, at);
        if quick {
            self.quick.push(at);
        }
    }

    pub(super) fn readable<K>(&mut self, ops: &mut Ops<K>, at: u32, fd: RawFd) {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(ops, entry, at);
    }

    pub(super) fn file<K>(&mut self, ops: &mut Ops<K>, io: FileIo, kept: K) {
        let FileIo { fd: file, op, spans, .. } = io;
        let fd = Fd(file.as_raw_fd());
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
        let entry = match (op, one) {
            (FileOp::Read { offset }, Some(span)) => opcode::Read::new(
                fd,
                span.start,
                u32::try_from(span.len).expect("segment length within 32 bits"),
            )
            .offset(offset)
            .build(),
            (FileOp::Read { offset }, None) => {
                opcode::Readv::new(fd, iovecs.as_ptr(), count).offset(offset).build()
            }
            (FileOp::Write { offset, fua }, Some(span)) => opcode::Write::new(
                fd,
                span.start,
                u32::try_from(span.len).expect("segment length within 32 bits"),
            )
            .offset(offset)
            .rw_flags(if fua { libc::RWF_DSYNC } else { 0 })
            .build(),
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
        let at = ops.begin(kept, Pieces::File { _iovecs: iovecs, _fd: file });
        self.push(ops, entry, at);
        self.files += 1;
        if self.files == FILES_MAX {
            self.submit(ops);
        }
    }

    pub(super) fn has_pushed(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    pub(super) fn enter<K>(&mut self, ops: &mut Ops<K>, wait: Option<Duration>) -> io::Result<()> {
        self.call(ops, wait)?;
        while !self.ring.submission().is_empty() {
            self.call(ops, None)?;
        }
        self.collect(ops);
        // The failure of a quick send may be among the completions for which the queue had no room.
        while self.ring.submission().cq_overflow() {
            self.call(ops, None)?;
            self.collect(ops);
        }
        self.conclude_quick(ops);
        Ok(())
    }

    fn call<K>(&mut self, ops: &mut Ops<K>, wait: Option<Duration>) -> io::Result<()> {
        self.files = 0;
        let called = match wait {
            None => self.ring.submit(),
            Some(Duration::MAX) => self.ring.submit_and_wait(1),
            Some(wait) => {
                let wait = Timespec::from(wait);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&wait))
            }
        };
        self.settle(ops, called)
    }

    /// After a transient error, collects completions so that the call can be made again.
    ///
    /// The kernel refuses a call (`EBUSY`, and `EAGAIN` for lack of memory) while it keeps
    /// completions that do not fit into the completion queue, until the program has collected those
    /// that are there: io_uring_enter(2). A loop that only repeats the call would never end.
    fn settle<K>(&mut self, ops: &mut Ops<K>, called: io::Result<usize>) -> io::Result<()> {
        match called {
            Err(error) if is_passing(&error) => self.collect(ops),
            called => drop(called?),
        }
        Ok(())
    }

    /// Collects the completions that the kernel has posted.
    fn collect<K>(&mut self, ops: &mut Ops<K>) {
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
            ops.end(at, result, cqueue::sock_nonempty(entry.flags()));
        }
    }

    /// Takes the quick sends without a completion as successful ([quick-send-never-waits]). All of
    /// them have been submitted, and all completions collected.
    fn conclude_quick<K>(&mut self, ops: &mut Ops<K>) {
        for at in self.quick.drain(..) {
            let sent = ops.message(at).len();
            ops.end(at, Ok(sent), false);
        }
    }

    /// Pushes the operation with the number `at`.
    fn push<K>(&mut self, ops: &mut Ops<K>, entry: squeue::Entry, at: u32) {
        let entry = entry.user_data(u64::from(at));
        loop {
            // SAFETY: [kernel-memory-stays]: the entry points only to memory that `ops` keeps: our
            // own pieces on the heap, and memory whose owner was passed with its span and which
            // does not move with that owner.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            self.submit(ops);
        }
    }

    fn submit<K>(&mut self, ops: &mut Ops<K>) {
        self.call(ops, None).expect("the kernel should accept the pushed operations");
    }
}

/// Returns whether `error` is transient: the wait ended early, or the kernel was short of
/// resources.
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
    use std::os::unix::net::UnixStream;

    fn ready_bell() -> std::os::fd::OwnedFd {
        let bell = bell::bell().expect("a descriptor should be left");
        bell::ring(&bell);
        bell
    }

    /// Returns the number of a send of `span`.
    fn message(ops: &mut Ops<&'static str>, span: Span) -> u32 {
        let mut message = ops.spare_message();
        message.spans.push(span);
        message.point_to_spans();
        ops.begin("message", Pieces::Message(message))
    }

    /// Checks [quick-send-never-waits] too. The error is made up: today's kernels keep the
    /// completions and return none.
    #[test]
    fn a_refused_call_collects_what_is_done_but_no_message_that_it_did_not_send() {
        let bell = ready_bell();
        let bytes = Map::new(1).expect("a mapping of one page should succeed");
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets should be left");
        let mut uring = Uring::new().expect("io_uring");
        let mut ops = Ops::default();
        let at = ops.begin("bell", Pieces::None);
        uring.readable(&mut ops, at, bell.as_raw_fd());
        uring.submit(&mut ops);
        let at = message(&mut ops, bytes.span(0..3));
        uring.send(&mut ops, at, ours.as_raw_fd(), true);
        uring
            .settle(&mut ops, Err(io::Error::from_raw_os_error(libc::EBUSY)))
            .expect("the error is transient");
        assert_eq!(ops.next_done().map(|done| done.kept), Some("bell"));
        assert!(!ops.has_done(), "the message waits in the submission queue");
        uring.enter(&mut ops, None).expect("the kernel should accept a message");
        let sent = ops.next_done().map(|done| (done.kept, done.result.ok()));
        assert_eq!(sent, Some(("message", Some(3))));
        let mut arrived = [1; 3];
        theirs.read_exact(&mut arrived).expect("the message has arrived");
        assert_eq!(arrived, [0; 3]);
        let fatal = uring.settle(&mut ops, Err(io::Error::from_raw_os_error(libc::EBADF)));
        assert_eq!(fatal.expect_err("it lasts").raw_os_error(), Some(libc::EBADF));
    }

    /// [quick-send-never-waits]: the queue of completions is full when a send fails.
    #[test]
    fn a_failure_for_which_the_queue_had_no_room_is_no_success() {
        let bell = ready_bell();
        let bytes = Map::new(1).expect("a mapping of one page should succeed");
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets should be left");
        drop(theirs);
        let mut uring = Uring::sized(4, 4).expect("io_uring");
        let mut ops = Ops::default();
        for _ in 0..4 {
            let at = ops.begin("bell", Pieces::None);
            uring.readable(&mut ops, at, bell.as_raw_fd());
        }
        uring.submit(&mut ops);
        let at = message(&mut ops, bytes.span(0..3));
        uring.send(&mut ops, at, ours.as_raw_fd(), true);
        uring.enter(&mut ops, None).expect("the kernel should accept a message");
        let done: Vec<_> = core::iter::from_fn(|| ops.next_done()).collect();
        let sent = done.iter().find(|done| done.kept == "message").expect("the message is done");
        let errno = sent.result.as_ref().map_err(io::Error::raw_os_error);
        assert_eq!((done.len(), errno), (5, Err(Some(libc::EPIPE))));
    }
}
