//! The ring of a lane: all of its operations on sockets and files, begun and awaited with one call
//! per turn.
//!
//! Each operation is pushed with a value of a type `K`, which the ring keeps until the operation is
//! [`Done`]. The value owns the memory that the operation works on, so nothing that the kernel
//! reads or writes can be freed or used meanwhile. The value also identifies the owner of the
//! operation.
//!
//! Two engines do the work: io_uring (`uring`), and, where io_uring is not there or not permitted,
//! `epoll` with threads for files (`threads`).
//!
//! # Rules (cited by name)
//!
//! - **[kernel-memory-stays]** The kernel is given pointers only into memory that the operation's
//!   entry in `ops` keeps alive and in place. The entry is removed when the operation is done. The
//!   code that pushes an operation passes, with each [`Span`], the owner of its memory; an
//!   operation on a file holds the file open.
//! - **[kernel-writes-alone]** Memory that the kernel writes to is either a
//!   [`Map`](crate::parts::map::Map), to which no reference exists, or memory that nothing else
//!   holds until the operation is done.
//! - **[quick-send-never-waits]** A *quick* send never waits: the kernel sends the message
//!   immediately or fails. Its success ends no wait: the ring reports it with the next operation
//!   that is done, so a reply costs its lane no turn.
//!
//! # Safety
//!
//! Safety depends only on [kernel-memory-stays] and [kernel-writes-alone]. A [`Ring`] is dropped
//! with operations in flight only when its thread panics or is told to leave immediately; the
//! memory of these operations is then leaked.
#![allow(unsafe_code, reason = "the kernel is given pointers; see Safety above")]

mod files;
mod ops;
mod threads;
mod uring;

pub use ops::{Backing, Done, FileIo, FileOp, Message, SPANS_MAX};

use crate::parts::map::Span;
use core::fmt;
use ops::{Ops, Pieces};
use std::io;
use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;
use threads::Threads;
use uring::Uring;

/// The engine of the I/O of a disk or of a server's lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring where the kernel offers and permits it, otherwise threads.
    #[default]
    Auto,
    /// io_uring. It needs Linux 5.17, and a sandbox that permits it: Docker's does not since
    /// version 25.
    Uring,
    /// `epoll` for sockets, and for files threads that block: up to 32 for each lane, started when
    /// they are needed. A read that the page cache can answer needs no thread, and nor does a file
    /// on tmpfs.
    Threads,
}

impl IoEngine {
    /// Returns what does the I/O on this system: [`Self::Uring`] or [`Self::Threads`], with the
    /// reason why it is not io_uring if that was tried.
    #[must_use]
    pub fn settle(self) -> (Self, Option<io::Error>) {
        match self {
            Self::Auto => match try_io_uring() {
                Ok(()) => (Self::Uring, None),
                Err(error) => (Self::Threads, Some(error)),
            },
            settled => (settled, None),
        }
    }
}

/// Makes an io_uring and frees it, or returns why that fails.
///
/// The kernel frees an io_uring later, and interrupts the thread that made it to do so: without any
/// signal, a `recv` with a time limit fails with EINTR there
/// (`findings/io-uring-close-interrupts-a-timed-receive.sh`). So a thread of its own makes it, not
/// the caller's.
fn try_io_uring() -> io::Result<()> {
    let maker = thread::Builder::new().spawn(|| Uring::new().map(drop))?;
    maker.join().expect("a thread that panics nowhere")
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Uring => "io_uring",
            Self::Threads => "threads",
        })
    }
}

/// What does the work.
enum Engine {
    Uring(Uring),
    Threads(Threads),
}

/// The ring of a lane. See the [module](self).
pub struct Ring<K> {
    engine: Engine,
    ops: Ops<K>,
}

impl<K> Ring<K> {
    /// Returns a ring for use by this thread.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptor left, or, for [`IoEngine::Uring`], if the kernel does
    /// not offer io_uring with all that is needed here, or does not permit its use.
    pub fn new(engine: IoEngine) -> io::Result<Self> {
        let uring = match engine {
            IoEngine::Auto => Uring::new().ok(),
            IoEngine::Uring => Some(Uring::new()?),
            IoEngine::Threads => None,
        };
        let engine = match uring {
            Some(uring) => Engine::Uring(uring),
            None => Engine::Threads(Threads::new()?),
        };
        Ok(Self { engine, ops: Ops::default() })
    }

    /// Receives into `span`: the whole span if `whole` is set, otherwise the bytes that are
    /// available. Set `expected` if the socket already has bytes. Only the kernel uses the span
    /// until the operation is done ([kernel-writes-alone]).
    pub fn receive(&mut self, fd: RawFd, span: Span, whole: bool, expected: bool, kept: K) {
        let at = self.ops.begin(kept, Pieces::None);
        match &mut self.engine {
            Engine::Uring(uring) => uring.receive(&mut self.ops, at, fd, span, whole, expected),
            Engine::Threads(threads) => threads.receive(at, fd, span, whole),
        }
    }

    /// Returns an empty message for [`Self::send`], which may hold up to [`SPANS_MAX`] spans.
    pub fn message(&mut self) -> Box<Message> {
        self.ops.spare_message()
    }

    /// Sends `message`. A `quick` send fails if it cannot send immediately
    /// ([quick-send-never-waits]); any other waits.
    pub fn send(&mut self, fd: RawFd, mut message: Box<Message>, quick: bool, kept: K) {
        message.point_to_spans();
        let at = self.ops.begin(kept, Pieces::Message(message));
        match &mut self.engine {
            Engine::Uring(uring) => uring.send(&mut self.ops, at, fd, quick),
            Engine::Threads(threads) => threads.send(at, fd, quick),
        }
    }

    /// Pushes an operation that is done when `fd` is readable. It may be done once too often.
    pub fn readable(&mut self, fd: RawFd, kept: K) {
        let at = self.ops.begin(kept, Pieces::None);
        match &mut self.engine {
            Engine::Uring(uring) => uring.readable(&mut self.ops, at, fd),
            Engine::Threads(threads) => threads.readable(at, fd),
        }
    }

    /// Pushes an operation on a file.
    pub fn file(&mut self, io: FileIo, kept: K) {
        match &mut self.engine {
            Engine::Uring(uring) => uring.file(&mut self.ops, io, kept),
            Engine::Threads(threads) => threads.file(&mut self.ops, io, kept),
        }
    }

    /// Forgets a socket that is about to be closed, and that has no operation in flight.
    pub fn forget(&mut self, fd: RawFd) {
        if let Engine::Threads(threads) = &mut self.engine {
            threads.forget(fd);
        }
    }

    /// Returns whether no operation is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Whether operations wait for the next [`Self::enter`].
    pub fn has_pushed(&mut self) -> bool {
        match &mut self.engine {
            Engine::Uring(uring) => uring.has_pushed(),
            Engine::Threads(threads) => threads.has_pushed(),
        }
    }

    /// Begins all pushed operations. With `wait`, waits at most that long until an operation is
    /// done.
    ///
    /// # Errors
    ///
    /// Fails if `io_uring_enter` or `epoll_wait` fails. The ring cannot be used afterwards.
    pub fn enter(&mut self, wait: Option<Duration>) -> io::Result<()> {
        // Operations may be done already: those that a refused call has collected.
        let wait = wait.filter(|_| !self.ops.has_done());
        match &mut self.engine {
            Engine::Uring(uring) => uring.enter(&mut self.ops, wait),
            Engine::Threads(threads) => threads.enter(&mut self.ops, wait),
        }
    }

    /// Returns an operation that is done.
    #[inline]
    pub fn next_done(&mut self) -> Option<Done<K>> {
        self.ops.next_done()
    }
}

impl<K> Drop for Ring<K> {
    fn drop(&mut self) {
        if !self.ops.is_empty() {
            // The kernel, or a thread, may still use the memory of these operations.
            self.ops.leak();
        }
    }
}

#[cfg(test)]
mod tests;
