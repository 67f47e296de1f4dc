//! A disk in memory: done with everything at once, and read by sending from where it is.

use super::at_once::CarryOut;
use super::extents::Extents;
use crate::job::{Jobs, Place, Transfer, job_of};
use crate::map::Map;
use blockyard::bio::Op;
use blockyard::driver::{DataEffect, Issue};
use blockyard::status::Status;
use core::ops::Range;
use std::io;
use std::sync::Arc;

/// The data of a disk in memory, shared by all lanes.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) map: Arc<Map>,
    pub(crate) extents: Extents,
}

impl Memory {
    /// `len_bytes` of zeroes; in `huge_pages` if there are some, all of them taken at once.
    ///
    /// Found at the first write to each, a huge page would be zeroed, and room made for it, while the
    /// write waits: milliseconds, where memory is in pieces.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub(crate) fn new(len_bytes: u64, huge_pages: bool) -> io::Result<Self> {
        let len = usize::try_from(len_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let map = Map::new(len)?;
        if huge_pages {
            map.fill_with_huge_pages()?;
        }
        Ok(Self { map: Arc::new(map), extents: Extents::new(len_bytes) })
    }

    fn write(&self, transfer: &Transfer, bytes: Range<u64>) {
        let from = place_of(bytes.start - transfer.offset);
        let (at, len) = (place_of(bytes.start), place_of(bytes.end - bytes.start));
        match &transfer.place {
            Place::Nowhere | Place::Disk => {}
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

    fn zero(&self, transfer: &Transfer, bytes: Range<u64>) -> Status {
        let places = place_of(bytes.start)..place_of(bytes.end);
        if !transfer.no_hole {
            self.extents.discarded(bytes);
            self.map.discard(places);
        } else if transfer.fast {
            return Status::NotSupported; // to keep room is to write
        } else {
            self.map.zero(places);
            self.extents.written(bytes);
        }
        Status::Ok
    }
}

fn place_of(offset: u64) -> usize {
    usize::try_from(offset).expect("the disk is in memory")
}

/// One lane's way to a [`Memory`].
#[derive(Debug)]
pub(crate) struct MemoryDevice {
    memory: Arc<Memory>,
    jobs: Jobs,
}

impl MemoryDevice {
    pub(crate) fn new(memory: Arc<Memory>, jobs: Jobs) -> Self {
        Self { memory, jobs }
    }
}

impl CarryOut for MemoryDevice {
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
        let op = issue.request().op;
        // What is read is sent from where it is.
        if op == Op::Read || issue.effect() == DataEffect::Nowhere {
            return Status::Ok;
        }
        let jobs = self.jobs.borrow();
        for piece in issue.pieces() {
            let transfer = &jobs[job_of(piece.cookie)].transfer;
            let bytes = transfer.bytes_of(&piece);
            match op {
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
