//! A disk as its callers see it.

use crate::error::Error;
use crate::inbox::Request;
use crate::io::{Act, Io};
use crate::parts::loan::{self, Loan, Ticket};
use crate::parts::queue::Asked;
use crate::report::Report;
use crate::stats::Stats;
use crate::worker::Worker;
use blockyard::bio::{Flags, IoPrio, Op};
use std::io;
use std::sync::Arc;

/// What callers must know of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) read_only: bool,
}

/// A handle of a disk. Clones share the disk, and any thread may use one.
///
/// A handle has settings for the requests that it begins: [`Self::with_fua`],
/// [`Self::with_priority`]. Requests of different callers have no order among each other: a caller
/// that needs one waits for the first before it begins the second.
///
/// When the last handle is dropped, the disk ends every request, flushes and closes, in the
/// background. [`Self::shutdown`] waits for that, and says how it went: without it, a process that
/// exits immediately loses what was not flushed.
///
/// Nothing bounds the requests of callers: a caller bounds its own.
///
/// The thread of a disk calls its device, wakes futures, and drops the buffers of futures that were
/// dropped. A blocking call that one of these makes on the same disk never returns, and a panic of
/// one ends the disk. A disk in memory has no thread: a call carries its I/O out before it returns.
/// So a long discard blocks the executor that makes it, and no `wait_timeout` bounds it. Wakers and
/// buffers may call such a disk, and a panic of one ends no more than the call that it interrupts.
#[derive(Clone, Debug)]
pub struct Disk {
    open: Arc<Open>,
    flags: Flags,
    prio: IoPrio,
}

#[derive(Debug)]
struct Open {
    worker: Worker,
    facts: Facts,
}

impl Disk {
    pub(crate) fn new(worker: Worker, facts: Facts) -> Self {
        let open = Arc::new(Open { worker, facts });
        Self { open, flags: Flags::NONE, prio: IoPrio::default() }
    }

    /// Returns a handle whose [`Self::write_at`] and [`Self::write`] are durable when they end
    /// (FUA). Zeroes and discards still need a flush.
    #[must_use]
    pub fn with_fua(&self) -> Self {
        Self { flags: self.flags | Flags::FUA, ..self.clone() }
    }

    /// Returns a handle whose requests have this priority.
    #[must_use]
    pub fn with_priority(&self, prio: IoPrio) -> Self {
        Self { prio, ..self.clone() }
    }

    /// Returns the size of the disk, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.open.facts.size_bytes
    }

    /// Returns the alignment that ranges need, in bytes; 1 for none.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.open.facts.block_bytes
    }

    /// Returns the counts of the disk's requests.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.open.worker.counters().read()
    }

    /// Reads `memory.len()` bytes at `offset` into `memory`.
    ///
    /// # Errors
    ///
    /// Fails if the range is beyond the disk or not of whole blocks, if the device fails, or if the
    /// disk has been shut down. The content of `memory` is then arbitrary. The other calls fail for
    /// the same reasons.
    pub fn read_at(&self, memory: &mut [u8], offset: u64) -> Result<(), Error> {
        let len = memory.len() as u64;
        let Some(asked) = self.check(Op::Read, offset, len)? else { return Ok(()) };
        loan::lend_mut(memory, |loan| self.put(Request::new(asked, offset, len, loan)))
    }

    /// Writes `memory` at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Self::read_at`], or if the disk is read-only. A write that fails may have changed a
    /// part of its range.
    pub fn write_at(&self, memory: &[u8], offset: u64) -> Result<(), Error> {
        let len = memory.len() as u64;
        let Some(asked) = self.check(Op::Write, offset, len)? else { return Ok(()) };
        loan::lend(memory, |loan| self.put(Request::new(asked, offset, len, loan)))
    }

    /// Makes all writes durable that have ended.
    ///
    /// # Errors
    ///
    /// Fails if the device fails, or if the disk has been shut down. After a failed flush of a
    /// file, every later one fails too, because nobody knows which writes were lost.
    pub fn flush(&self) -> Result<(), Error> {
        self.begin_flush().wait()
    }

    /// Gives up the data of a range. It reads as zeroes or as it was; a device may ignore the call.
    ///
    /// # Errors
    ///
    /// As [`Self::write_at`].
    pub fn discard(&self, offset: u64, len: u64) -> Result<(), Error> {
        self.begin_discard(offset, len).wait()
    }

    /// Writes zeroes to a range, without data where the device can.
    ///
    /// # Errors
    ///
    /// As [`Self::write_at`].
    pub fn write_zeroes(&self, offset: u64, len: u64) -> Result<(), Error> {
        self.begin_write_zeroes(offset, len).wait()
    }

    /// Begins to fill `memory` from `offset` on.
    ///
    /// # Panics
    ///
    /// Panics if `memory` changes its length from one look to the next, as does [`Self::write`].
    pub fn read<B: AsMut<[u8]> + Send + 'static>(&self, mut memory: B, offset: u64) -> Io<B> {
        let len = memory.as_mut().len() as u64;
        self.io(Op::Read, memory, offset, len, Ticket::to_fill, &mut |request| self.put(request))
    }

    /// Begins to write `memory` at `offset`.
    pub fn write<B: AsRef<[u8]> + Send + 'static>(&self, memory: B, offset: u64) -> Io<B> {
        let len = memory.as_ref().len() as u64;
        self.io(Op::Write, memory, offset, len, Ticket::to_read, &mut |request| self.put(request))
    }

    /// Begins a [`Self::flush`].
    pub fn begin_flush(&self) -> Act {
        self.act(Op::Flush, 0, 0, &mut |request| self.put(request))
    }

    /// Begins a [`Self::discard`].
    pub fn begin_discard(&self, offset: u64, len: u64) -> Act {
        self.act(Op::Discard, offset, len, &mut |request| self.put(request))
    }

    /// Begins a [`Self::write_zeroes`].
    pub fn begin_write_zeroes(&self, offset: u64, len: u64) -> Act {
        self.act(Op::WriteZeroes, offset, len, &mut |request| self.put(request))
    }

    /// Ends every request that has begun, flushes, and closes the disk for all handles. Waits until
    /// that is done. Requests that other handles begin meanwhile fail with [`Error::ShutDown`].
    ///
    /// A later call of another handle returns the same report, or the same error.
    ///
    /// # Errors
    ///
    /// Fails if the disk's work has failed or panicked. Failed requests and a failed flush are in
    /// the report.
    pub fn shutdown(self) -> io::Result<Report> {
        self.open.worker.shutdown()
    }

    /// Begins an I/O with `memory`, and passes it to `put`.
    pub(crate) fn io<B: Send + 'static>(
        &self,
        op: Op,
        memory: B,
        offset: u64,
        len: u64,
        lend: impl FnOnce(B) -> (Arc<Ticket<B>>, Loan),
        put: &mut dyn FnMut(Request),
    ) -> Io<B> {
        match self.check(op, offset, len) {
            Err(error) => Io(Ticket::ended(memory, Err(error))),
            Ok(None) => Io(Ticket::ended(memory, Ok(()))),
            Ok(Some(asked)) => {
                let (ticket, loan) = lend(memory);
                let has_data = matches!(op, Op::Read | Op::Write);
                assert!(!has_data || loan.len() as u64 == len, "a buffer keeps its length");
                put(Request::new(asked, offset, len, loan));
                Io(ticket)
            }
        }
    }

    /// Begins an I/O without memory, and passes it to `put`.
    pub(crate) fn act(&self, op: Op, offset: u64, len: u64, put: &mut dyn FnMut(Request)) -> Act {
        Act(self.io(op, [], offset, len, Ticket::to_read, put))
    }

    /// Begins `requests`, and removes them from the list.
    pub(crate) fn put_all(&self, requests: &mut Vec<Request>) {
        self.open.worker.put_all(requests);
    }

    #[inline]
    fn put(&self, request: Request) {
        self.open.worker.put(request);
    }

    /// Returns the properties of a request that the disk may get; `None` if its range is empty.
    fn check(&self, op: Op, offset: u64, len: u64) -> Result<Option<Asked>, Error> {
        let Facts { size_bytes, block_bytes, read_only } = self.open.facts;
        if read_only && matches!(op, Op::Write | Op::Discard | Op::WriteZeroes) {
            return Err(Error::ReadOnly);
        }
        if offset.checked_add(len).is_none_or(|end| end > size_bytes) {
            return Err(Error::OutOfRange);
        }
        if !(offset | len).is_multiple_of(block_bytes) {
            return Err(Error::Misaligned);
        }
        let flags = if op == Op::Write { self.flags } else { Flags::NONE };
        let asked = Asked { flags, prio: self.prio, ..Asked::from(op) };
        Ok((len > 0 || op == Op::Flush).then_some(asked))
    }
}
