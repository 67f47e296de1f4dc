//! A disk in memory. It finishes every request at once, and replies to clients are sent from its memory.

use super::at_once::CarryOut;
use super::extents::Extents;
use crate::parts::job::{Jobs, Place, Transfer, job_of};
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
    /// Returns `len_bytes` of zeroes. With `huge_pages`, all memory is taken at once, in huge pages if there are any.
    ///
    /// Otherwise the first write to each huge page waits until the kernel has made room for the page and zeroed it,
    /// which takes milliseconds if memory is fragmented.
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
        Ok(Self { map: Arc::new(map), extents: Extents::new(len_bytes) })
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

    fn write(&self, transfer: &Transfer, bytes: Range<u64>) {
        let from = place_of(bytes.start - transfer.offset);
        let (at, len) = (place_of(bytes.start), place_of(bytes.end - bytes.start));
        match &transfer.place {
            Place::Nowhere | Place::Disk => {}
            Place::Loan(loan) => loan.copy_to(from, &self.map, at, len),
            Place::Door(bytes, start) => {
                self.map.write(at, &bytes[start + from..start + from + len]);
            }
            Place::Buffer { pages: mapping, lead: start }
            | Place::Guest { memory: mapping, start } => {
                self.map.write_from(at, mapping, start + from..start + from + len);
            }
        }
        self.extents.written(bytes);
    }

    /// Copies the data of a read to its place.
    fn read(&self, transfer: &Transfer, bytes: Range<u64>) {
        if let Place::Loan(loan) = &transfer.place {
            let to = place_of(bytes.start - transfer.offset);
            loan.copy_from(to, &self.map, place_of(bytes.start)..place_of(bytes.end));
        }
    }

    fn zero(&self, transfer: &Transfer, bytes: Range<u64>) -> Status {
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

fn place_of(offset: u64) -> usize {
    usize::try_from(offset).expect("offset on a disk in memory")
}

/// One lane's device to a [`Memory`].
#[derive(Debug)]
pub struct MemoryDevice {
    memory: Arc<Memory>,
    jobs: Jobs,
    /// Whether reads have places of their own. Otherwise their data is taken from the disk's memory.
    fills: bool,
}

impl MemoryDevice {
    /// Returns a device that finds data in `jobs`. It copies the data of reads to their places if `fills` is set; otherwise
    /// whoever wants the data takes it from the disk's memory.
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
            match op {
                Op::Read => self.memory.read(transfer, bytes),
                Op::Write => self.memory.write(transfer, bytes),
                Op::Discard | Op::WriteZeroes => match self.memory.zero(transfer, bytes) {
                    Status::Ok => {}
                    failed => return failed,
                },
                _ => return Status::NotSupported,
            }
        }
        Status::Ok
    }
}
