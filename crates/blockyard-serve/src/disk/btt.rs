//! A block translation table as a disk: its sectors stay whole, whatever ends the server. Done with
//! everything in the call, like memory.

use super::at_once::CarryOut;
use super::open::OpenError;
use crate::job::{Jobs, Place, Transfer, job_of};
use crate::map::Pages;
use blockyard::bio::Op;
use blockyard::btt::{Btt, IoError, LaneChoice, MediaError, Policy, Worker};
use blockyard::driver::{DataEffect, Issue};
use blockyard::status::Status;
use blockyard_pmem::{Durability, Image, ImageOptions, Mapped};
use core::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A BTT, shared by all lanes.
#[derive(Debug)]
pub(crate) struct Table {
    btt: Arc<Btt<Mapped>>,
    /// Bytes of a sector that are data: what is behind them, integrity metadata of 8 to 128 bytes, is
    /// written as zeroes. As in Linux.
    pub(crate) data_bytes: u64,
    /// What was written is durable only after a flush.
    pub(crate) has_cache: bool,
}

impl Table {
    /// Opens the BTT in the file at `path`, for so many lanes.
    ///
    /// # Errors
    ///
    /// It cannot be opened, is none, or its sectors have less than 512 bytes.
    pub(super) fn open(
        path: &Path,
        durability: Durability,
        read_only: bool,
        lanes: usize,
    ) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        // A quarter of the sets is not for one thread alone.
        let sets = u32::try_from(lanes * 4 / 3 + 1).expect("a server has few lanes");
        let LaneChoice::Own { sets: least } = Policy::DEFAULT.lanes else {
            unreachable!("the default has sets")
        };
        let lanes = LaneChoice::Own { sets: sets.max(least) };
        let policy = Policy { lanes, ..Policy::DEFAULT };
        let options = ImageOptions { read_only, durability, policy, ..ImageOptions::default() };
        let opened = Image::map(path, &options).and_then(|image| image.open(&options));
        let btt = opened.map_err(|error| OpenError::Btt(name.clone(), error.to_string()))?;
        let data_bytes = match btt.sector_bytes() {
            0..512 => {
                let why = "its sectors have less than 512 bytes".to_owned();
                return Err(OpenError::Btt(name, why));
            }
            512..4096 => 512,
            _ => 4096,
        };
        let has_cache = durability == Durability::Process;
        Ok(Self { btt: Arc::new(btt), data_bytes, has_cache })
    }

    /// Bytes of the disk.
    pub(super) fn size_bytes(&self) -> u64 {
        self.btt.sectors() * self.data_bytes
    }
}

/// One lane's way to a [`Table`].
#[derive(Debug)]
pub(crate) struct BttDevice {
    worker: Worker<Arc<Btt<Mapped>>, Mapped>,
    data_bytes: u64,
    jobs: Jobs,
    /// Sectors on their way.
    buffer: Vec<u8>,
}

impl BttDevice {
    pub(crate) fn new(table: &Table, jobs: Jobs) -> Self {
        Self {
            worker: Worker::new(Arc::clone(&table.btt)),
            data_bytes: table.data_bytes,
            jobs,
            buffer: Vec::new(),
        }
    }

    /// Carries out what one transfer has of a request: whole sectors.
    fn piece(&mut self, op: Op, transfer: &Transfer, bytes: Range<u64>) -> Result<(), IoError> {
        let lba = bytes.start / self.data_bytes;
        let count = (bytes.end - bytes.start) / self.data_bytes;
        if !matches!(op, Op::Read | Op::Write) {
            // Its blocks stay the sectors' own: nothing is fast or slow about it, and no hole comes to be.
            return self.worker.set_zero(lba, count);
        }
        let Place::Pages { pages, lead } = &transfer.place else {
            unreachable!("the disk wants buffers")
        };
        let (count, first) = (small(count), lead + small(bytes.start - transfer.offset));
        match op {
            Op::Read => self.read(lba, count, pages, first),
            _ => self.write(lba, count, pages, first),
        }
    }

    fn read(&mut self, lba: u64, count: usize, pages: &Pages, first: usize) -> Result<(), IoError> {
        let (sector, data) = self.sizes();
        self.buffer.resize(count * sector, 0);
        self.worker.read(lba, &mut self.buffer)?;
        for (n, sector) in self.buffer.chunks_exact(sector).enumerate() {
            pages.write(first + n * data, &sector[..data]);
        }
        Ok(())
    }

    fn write(
        &mut self,
        lba: u64,
        count: usize,
        pages: &Pages,
        first: usize,
    ) -> Result<(), IoError> {
        let (sector, data) = self.sizes();
        self.buffer.clear();
        for n in 0..count {
            pages.read(first + n * data..first + (n + 1) * data, &mut self.buffer);
            self.buffer.resize((n + 1) * sector, 0);
        }
        self.worker.write(lba, &self.buffer)
    }

    /// Bytes of a sector, and how many of them are data.
    fn sizes(&self) -> (usize, usize) {
        (self.worker.btt().sector_bytes() as usize, small(self.data_bytes))
    }
}

impl CarryOut for BttDevice {
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
        if issue.effect() == DataEffect::Nowhere {
            return Status::Ok;
        }
        let jobs = std::rc::Rc::clone(&self.jobs);
        let jobs = jobs.borrow();
        let op = issue.request().op;
        let done = match op {
            Op::Flush => self.worker.btt().flush(),
            _ => issue.pieces().try_for_each(|piece| {
                let transfer = &jobs[job_of(piece.cookie)].transfer;
                self.piece(op, transfer, transfer.bytes_of(&piece))
            }),
        };
        match done {
            Ok(()) => Status::Ok,
            Err(IoError::Lost | IoError::Media(MediaError::Bad)) => Status::Medium,
            Err(IoError::Media(MediaError::NoSpace)) => Status::NoSpace,
            Err(_) => Status::IoError,
        }
    }
}

fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("requests are short")
}
