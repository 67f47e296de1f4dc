//! The operations of a ring: those in flight, with what they keep alive, and those that are done.

use crate::parts::map::Span;
use crate::parts::slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The largest number of spans in one operation: `IOV_MAX`.
pub const SPANS_MAX: usize = 1024;

/// An operation on a file.
#[derive(Clone, Copy, Debug)]
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

/// Where the data of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// On a disk, which direct I/O goes to.
    Disk,
    /// On a disk, and in the page cache as far as that holds it.
    PageCache,
    /// In memory only: tmpfs.
    Memory,
}

/// An operation on a file, with its memory.
#[derive(Debug)]
pub struct FileIo {
    /// The file.
    pub fd: Arc<OwnedFd>,
    /// What may keep a read waiting.
    pub backing: Backing,
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
    pub(super) header: libc::msghdr,
    /// The pieces of memory that are sent, in order.
    pub spans: Vec<Span>,
    iovecs: Vec<libc::iovec>,
}

impl Message {
    #[expect(clippy::unnecessary_box_returns, reason = "the kernel wants it to stay in place")]
    fn new() -> Box<Self> {
        // SAFETY: all zeroes are a valid `msghdr`, without name, data or control.
        let header = unsafe { core::mem::zeroed() };
        Box::new(Self { header, spans: Vec::new(), iovecs: Vec::new() })
    }

    /// Returns the length of the whole message in bytes.
    pub(super) fn len(&self) -> usize {
        self.spans.iter().map(|span| span.len).sum()
    }

    pub(super) fn point_to_spans(&mut self) {
        debug_assert!(self.spans.len() <= SPANS_MAX, "a message has at most IOV_MAX spans");
        self.iovecs.clear();
        self.iovecs.extend(self.spans.iter().map(iovec));
        self.header.msg_iov = self.iovecs.as_mut_ptr();
        self.header.msg_iovlen = self.iovecs.len();
    }
}

pub(super) fn iovec(span: &Span) -> libc::iovec {
    libc::iovec { iov_base: span.start.cast(), iov_len: span.len }
}

/// What an operation keeps in place, besides the memory of its caller, while the kernel may read
/// it.
#[derive(Debug)]
pub(super) enum Pieces {
    None,
    Message(Box<Message>),
    File { _iovecs: Vec<libc::iovec>, _fd: Arc<OwnedFd> },
}

#[derive(Debug)]
struct Op<K> {
    kept: K,
    pieces: Pieces,
}

/// The operations of a ring, by number. See the [module](self).
#[derive(Debug)]
pub(super) struct Ops<K> {
    in_flight: Slab<Op<K>>,
    #[expect(clippy::vec_box, reason = "the kernel wants each to stay in place")]
    spare_messages: Vec<Box<Message>>,
    done: VecDeque<Done<K>>,
}

impl<K> Default for Ops<K> {
    fn default() -> Self {
        Self { in_flight: Slab::default(), spare_messages: Vec::new(), done: VecDeque::new() }
    }
}

impl<K> Ops<K> {
    /// Keeps `kept` and `pieces` for an operation that begins. Returns its number.
    #[inline]
    pub(super) fn begin(&mut self, kept: K, pieces: Pieces) -> u32 {
        self.in_flight.insert(Op { kept, pieces })
    }

    /// Ends the operation with the number `at`.
    #[inline]
    pub(super) fn end(&mut self, at: u32, result: io::Result<usize>, more: bool) {
        let Op { kept, pieces } = self.in_flight.remove(at);
        if let Pieces::Message(mut message) = pieces {
            message.spans.clear();
            self.spare_messages.push(message);
        }
        self.done.push_back(Done { result, more, kept });
    }

    /// Returns the message that the send with the number `at` sends.
    ///
    /// # Panics
    ///
    /// Panics if the operation is no send.
    pub(super) fn message(&self, at: u32) -> &Message {
        match &self.in_flight[at].pieces {
            Pieces::Message(message) => message,
            Pieces::None | Pieces::File { .. } => unreachable!("only sends have messages"),
        }
    }

    /// Returns an empty message.
    pub(super) fn spare_message(&mut self) -> Box<Message> {
        self.spare_messages.pop().unwrap_or_else(Message::new)
    }

    #[inline]
    pub(super) fn next_done(&mut self) -> Option<Done<K>> {
        self.done.pop_front()
    }

    pub(super) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Returns whether no operation is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Leaks what the operations in flight keep.
    pub(super) fn leak(&mut self) {
        core::mem::forget(core::mem::take(&mut self.in_flight));
    }
}
