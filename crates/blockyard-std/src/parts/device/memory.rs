//! A disk in memory. It finishes every request immediately, and replies to clients are sent from
//! its memory.

use super::at_once::CarryOut;
use super::extents::Extents;
use crate::parts::job::{Jobs, Place, Transfer, job_of};
use crate::parts::loan::Loan;
use crate::parts::map::Map;
use blockyard::bio::Op;
use blockyard::driver::{DataEffect, Issue};
use blockyard::status::Status;
use core::ops::Range;
use std::io;
use std::sync::Arc;

/// The data of a disk in memory, shared by all lanes.
#[derive(Debug)]
pub struct Memory {
    /// The bytes.
    pub map: Arc<Map>,
    /// Which of them are data.
    pub extents: Extents,
}

impl Memory {
    /// Returns `len_bytes` of zeroes. With `huge_pages`, all memory is taken at once, in huge pages
    /// if there are any.
    ///
    /// Otherwise the first write to each huge page waits until the kernel has made room for the
    /// page and zeroed it, which takes milliseconds if memory is fragmented.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn new(len_bytes: u64, huge_pages: bool) -> io::Result<Self> {
        let len = usize::try_from(len_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let map = Map::new(len)?;
        if huge_pages {
            map.fill_with_huge_pages()?;
        }
        Ok(Self { map: Arc::new(map), extents: Extents::new(len_bytes)? })
    }

    /// Copies the data of `other` as far as both reach.
    pub fn take_over(&self, other: &Self) {
        let end = self.extents.len_bytes().min(other.extents.len_bytes());
        let mut at = 0;
        while at < end {
            let (len, is_data) = other.extents.run_at(at);
            let next = (at + len).min(end);
            if is_data {
                self.map.write_from(place_of(at), &other.map, place_of(at)..place_of(next));
                self.extents.written(at..next);
            }
            at = next;
        }
    }

    /// Carries out `op` on `bytes` of `transfer`.
    #[inline]
    pub(crate) fn carry_out<P: Data>(
        &self,
        op: Op,
        transfer: &Transfer<P>,
        bytes: Range<u64>,
    ) -> Status {
        let at = place_of(bytes.start - transfer.offset);
        let range = place_of(bytes.start)..place_of(bytes.end);
        match op {
            Op::Read => transfer.place.take(at, &self.map, range),
            Op::Write => {
                transfer.place.give(at, &self.map, range);
                self.extents.written(bytes);
            }
            Op::Discard | Op::WriteZeroes => return self.zero(transfer, bytes),
            _ => return Status::NotSupported,
        }
        Status::Ok
    }

    fn zero<P>(&self, transfer: &Transfer<P>, bytes: Range<u64>) -> Status {
        let places = place_of(bytes.start)..place_of(bytes.end);
        if !transfer.no_hole {
            self.extents.discarded(bytes);
            self.map.discard(places);
        } else if transfer.fast {
            return Status::NotSupported; // keeping the range allocated takes a write
        } else {
            self.map.zero(places);
            self.extents.written(bytes);
        }
        Status::Ok
    }
}

/// The data of a request, as a disk in memory copies it.
pub(crate) trait Data {
    /// Copies the data from `from` on to `range` of `map`.
    fn give(&self, from: usize, map: &Map, range: Range<usize>);
    /// Copies `range` of `map` to the place of the data from `to` on.
    fn take(&self, to: usize, map: &Map, range: Range<usize>);
}

impl Data for Loan {
    #[inline]
    fn give(&self, from: usize, map: &Map, range: Range<usize>) {
        self.copy_to(from, map, range.start, range.len());
    }

    #[inline]
    fn take(&self, to: usize, map: &Map, range: Range<usize>) {
        self.copy_from(to, map, range);
    }
}

impl Data for Place {
    #[inline]
    fn give(&self, from: usize, map: &Map, range: Range<usize>) {
        match self {
            Self::NoBuffer | Self::Disk => {}
            Self::Loan(loan) => loan.give(from, map, range),
            Self::Door(bytes, start) => {
                map.write(range.start, &bytes[start + from..start + from + range.len()]);
            }
            Self::Buffer { pages: mapping, lead: start }
            | Self::Guest { memory: mapping, start } => {
                map.write_from(range.start, mapping, start + from..start + from + range.len());
            }
            Self::GuestRanges(guest) => guest.copy_to(from, map, range),
        }
    }

    #[inline]
    fn take(&self, to: usize, map: &Map, range: Range<usize>) {
        if let Self::Loan(loan) = self {
            loan.take(to, map, range);
        }
    }
}

fn place_of(offset: u64) -> usize {
    usize::try_from(offset).expect("offset on a disk in memory")
}

/// One lane's device to a [`Memory`].
#[derive(Debug)]
pub struct MemoryDevice {
    memory: Arc<Memory>,
    jobs: Jobs,
    /// Whether reads have places of their own. Otherwise their data is taken from the disk's
    /// memory.
    fills: bool,
}

impl MemoryDevice {
    /// Returns a device that finds data in `jobs`. It copies the data of reads to their places if
    /// `fills` is set; otherwise whoever wants the data takes it from the disk's memory.
    pub fn new(memory: Arc<Memory>, jobs: Jobs, fills: bool) -> Self {
        Self { memory, jobs, fills }
    }
}

impl CarryOut for MemoryDevice {
    #[inline]
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
        let op = issue.request().op;
        if issue.effect() == DataEffect::Nowhere || (op == Op::Read && !self.fills) {
            return Status::Ok;
        }
        let jobs = self.jobs.borrow();
        for piece in issue.pieces() {
            let transfer = &jobs[job_of(piece.cookie)].transfer;
            let bytes = transfer.bytes_of(&piece);
            match self.memory.carry_out(op, transfer, bytes) {
                Status::Ok => {}
                failed => return failed,
            }
        }
        Status::Ok
    }
}
