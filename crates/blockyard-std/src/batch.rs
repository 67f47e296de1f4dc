//! Requests that reach the disk together.

use crate::disk::Disk;
use crate::inbox::Request;
use crate::io::{Act, Io};
use crate::parts::loan::Ticket;
use blockyard::bio::Op;

/// Requests that reach the disk together: one wake-up serves all, and neighbours merge. They begin
/// when the batch is [submitted](Self::submit) or dropped, in the order of the calls.
#[derive(Debug)]
#[must_use = "the requests of a batch begin when it is submitted"]
pub struct Batch<'a> {
    disk: &'a Disk,
    requests: Vec<Request>,
}

impl Disk {
    /// Returns an empty batch, whose requests reach the disk together.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(disk: &'a Disk) -> Self {
        Self { disk, requests: Vec::new() }
    }

    /// Adds a [`Disk::read`].
    pub fn read<B: AsMut<[u8]> + Send + 'static>(&mut self, mut memory: B, offset: u64) -> Io<B> {
        let len = memory.as_mut().len() as u64;
        let requests = &mut self.requests;
        self.disk.io(Op::Read, memory, offset, len, Ticket::to_fill, &mut |one| requests.push(one))
    }

    /// Adds a [`Disk::write`].
    pub fn write<B: AsRef<[u8]> + Send + 'static>(&mut self, memory: B, offset: u64) -> Io<B> {
        let len = memory.as_ref().len() as u64;
        let requests = &mut self.requests;
        self.disk.io(Op::Write, memory, offset, len, Ticket::to_read, &mut |one| requests.push(one))
    }

    /// Adds a [`Disk::flush`]. It does not wait for the writes of the batch.
    pub fn flush(&mut self) -> Act {
        self.act(Op::Flush, 0, 0)
    }

    /// Adds a [`Disk::discard`].
    pub fn discard(&mut self, offset: u64, len: u64) -> Act {
        self.act(Op::Discard, offset, len)
    }

    /// Adds a [`Disk::write_zeroes`].
    pub fn write_zeroes(&mut self, offset: u64, len: u64) -> Act {
        self.act(Op::WriteZeroes, offset, len)
    }

    /// Begins all requests of the batch.
    pub fn submit(self) {}

    fn act(&mut self, op: Op, offset: u64, len: u64) -> Act {
        let requests = &mut self.requests;
        self.disk.act(op, offset, len, &mut |one| requests.push(one))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.disk.put_all(&mut self.requests);
    }
}
