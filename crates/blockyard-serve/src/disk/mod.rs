//! Disks: where the data is kept, and each lane's device to it.
//!
//! A [`Disk`] is opened once and shared by all lanes; a lane makes a [`Medium`] of it, a device of the
//! core, for its own request queue.

mod at_once;
mod btt;
mod error;
mod extents;
mod fault_counts;
mod file;
mod layers;
mod limited;
mod live;
mod memory;
mod null;
mod open;
mod overlap;

pub use error::OpenError;
pub use fault_counts::FaultCounts;
#[cfg(test)]
pub(crate) use file::Begun;
pub(crate) use file::Outbox;
pub use layers::Layers;
pub(crate) use limited::SharedDepth;
pub use live::{Behaviour, LATE, Lateness, Timing};

use crate::job::{Jobs, Place, SECTOR, Transfer};
use crate::map::{Map, Pages};
use at_once::AtOnce;
use blockyard::driver::{Device, Driver};
use blockyard::layer::delay::Delayed;
use blockyard::layer::fault::Faulty;
use blockyard::layer::rate;
use blockyard::limits::Limits;
use blockyard::policy::{Dispatch, Policies};
use blockyard::tag::TagSetConfig;
use blockyard_btt::Container;
use blockyard_pmem::Durability;
use btt::{BttDevice, Table};
use core::ops::Range;
use file::{File, FileDevice};
use limited::Limited;
use live::Live;
use memory::{Memory, MemoryDevice};
use null::Nothing;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Longest request that a disk in memory is given in one piece: longer than any client's.
const MEMORY_REQUEST_SECTORS: u32 = 1 << 17;
/// Longest read or write of a file in one piece; longer ones are split.
const FILE_REQUEST_SECTORS: u32 = 1 << 12;
/// Longest read that a disk which keeps nothing answers, in bytes.
pub(crate) const NULL_READ_BYTES_MAX: usize = 32 << 20;
/// Longest discard or zeroing in one piece.
const RANGE_SECTORS_MAX: u32 = 1 << 22;

/// Where the data of a disk is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In memory, for as long as the server runs.
    Memory {
        /// Its size.
        bytes: u64,
        /// Take all of the memory at once, in huge pages where there are some: random access to a large
        /// disk is cheaper then.
        huge_pages: bool,
    },
    /// Nowhere: writes are forgotten, and reads are zeroes.
    Null {
        /// Its size.
        bytes: u64,
    },
    /// In a file or on a block device.
    File {
        /// Where it is.
        path: PathBuf,
        /// Through the page cache, rather than by direct I/O where that is possible.
        buffered: bool,
    },
    /// In the block translation table in a file: sectors stay whole, whatever ends the server.
    Btt {
        /// Where it is.
        path: PathBuf,
        /// What a write that was answered survives. With [`Durability::Process`] a loss of power only after
        /// a flush, and sectors may be torn by it.
        durability: Durability,
        /// What it lies in, where that is not to be found out.
        container: Option<Container>,
    },
}

/// A disk to be served.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// What clients ask for; the empty name is the default.
    pub name: String,
    /// Where its data is kept.
    pub source: Source,
    /// Nothing may be written.
    pub read_only: bool,
    /// The design of its queue.
    pub policies: Policies,
    /// Most requests that are given to the device at once, by all lanes together.
    pub depth: u16,
    /// Most bytes of data of such requests; a larger one goes alone.
    pub depth_bytes: u64,
    /// What lies between its queue and its data.
    pub layers: Layers,
}

/// Where its data is.
#[derive(Debug)]
enum Kept {
    Memory(Arc<Memory>),
    /// With what its reads are sent from.
    Null(Arc<Map>),
    /// With the depth that lanes share: only here a request is under way for longer than a call.
    File(Arc<File>, Arc<SharedDepth>),
    Btt(Arc<Table>),
}

/// An open disk. Shared by all lanes.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
    pub(crate) read_only: bool,
    pub(crate) policies: Policies,
    pub(crate) depth: u16,
    pub(crate) layers: Layers,
    /// How well its model is kept up with.
    pub(crate) timing: Arc<Timing>,
    /// How often its fault rules were met.
    pub(crate) faults: Arc<FaultCounts>,
    kept: Kept,
}

/// A lane's device to a disk.
#[derive(Debug)]
pub(crate) enum Medium {
    Memory(AtOnce<MemoryDevice>),
    Null(AtOnce<Nothing>),
    File(Limited<FileDevice>),
    Btt(Box<BttDevice>),
    Live(Box<Live<Medium>>),
    Delayed(Box<Delayed<Medium>>),
    Rated(Box<rate::Limited<Medium>>),
    Faulty(Box<Faulty<Medium>>),
}

impl Disk {
    /// Whether a BTT's memory is taken for persistent because its user says so.
    pub(crate) fn is_assumed_persistent(&self) -> bool {
        matches!(&self.kept, Kept::Btt(table) if table.is_assumed_persistent())
    }

    /// A device to it for `lane` with `tags`, that finds its data by `jobs` and its I/O done in `outbox`.
    pub(crate) fn medium(
        &self,
        lane: u32,
        jobs: &Jobs,
        outbox: &Rc<Outbox>,
        tags: &TagSetConfig,
    ) -> Medium {
        let medium = match &self.kept {
            Kept::Memory(memory) => {
                Medium::Memory(AtOnce::new(MemoryDevice::new(Arc::clone(memory), Rc::clone(jobs))))
            }
            Kept::Null(_) => Medium::Null(AtOnce::new(Nothing)),
            Kept::Btt(table) => Medium::Btt(Box::new(BttDevice::new(table, Rc::clone(jobs)))),
            Kept::File(file, shared) => {
                let (file, jobs, outbox) = (Arc::clone(file), Rc::clone(jobs), Rc::clone(outbox));
                let device = FileDevice::new(file, lane, jobs, outbox, self.depth);
                // A model above gives budget of its own.
                let has_budget =
                    self.policies.dispatch == Dispatch::Budget && self.layers.model.is_none();
                Medium::File(Limited::new(device, Arc::clone(shared), lane, has_budget))
            }
        };
        self.layers.over(medium, &self.timing, tags)
    }

    /// Bytes of which every request must have a multiple: 1 where every byte may be written by itself, be
    /// it by reading the rest of its block first.
    pub(crate) fn request_block_bytes(&self) -> u64 {
        match &self.kept {
            // The kernel zeroes no part of a block there.
            Kept::File(file, _) if file.is_block_device => file.block_bytes.max(SECTOR),
            Kept::Btt(table) => table.data_bytes,
            _ => 1,
        }
    }

    /// What its queue holds requests to.
    pub(crate) fn limits(&self) -> Limits {
        let (is_file, is_cached) = match &self.kept {
            Kept::Memory(_) | Kept::Null(_) => (false, false),
            Kept::File(..) => (true, true),
            Kept::Btt(table) => (true, table.has_cache),
        };
        let block_sectors = (self.block_bytes() / SECTOR).max(1);
        let max_sectors = if is_file { FILE_REQUEST_SECTORS } else { MEMORY_REQUEST_SECTORS };
        let limits = Limits {
            logical_block_sectors: u32::try_from(block_sectors).expect("blocks are small"),
            max_sectors,
            max_discard_sectors: RANGE_SECTORS_MAX,
            max_write_zeroes_sectors: RANGE_SECTORS_MAX,
            write_cache: is_cached,
            fua: matches!(self.kept, Kept::File(..)),
            ..Limits::new(self.size_bytes.div_ceil(SECTOR))
        };
        match &self.layers.model {
            None => limits,
            Some(model) => live::limits(limits, model.limits()),
        }
    }

    /// What its device takes multiples of; 1: every byte by itself.
    pub(crate) fn block_bytes(&self) -> u64 {
        let own = match &self.kept {
            Kept::Memory(_) | Kept::Null(_) => 1,
            Kept::File(file, _) => file.block_bytes,
            Kept::Btt(table) => table.data_bytes,
        };
        match self.layers.model.as_ref().map(|model| model.limits().logical_block_sectors) {
            Some(sectors @ 2..) => own.max(u64::from(sectors) * SECTOR),
            _ => own,
        }
    }

    /// Whether data of requests must lie in buffers of its own, aligned as blocks are.
    pub(crate) fn needs_pages(&self) -> bool {
        matches!(self.kept, Kept::File(..) | Kept::Btt(_))
    }

    /// Whether a write is done in the turn in which it comes, so that its payload may stay until then where
    /// it was received with others.
    pub(crate) fn is_done_at_once(&self) -> bool {
        !self.needs_pages() && self.layers.is_empty()
    }

    /// Where the byte at `offset` lies in the disk's own memory, if payload may be received there before
    /// its write is submitted: nothing on the write's way may refuse it.
    pub(crate) fn home(&self, offset: u64) -> Option<(Arc<Map>, usize)> {
        let Kept::Memory(memory) = &self.kept else { return None };
        if !self.layers.is_empty() {
            return None;
        }
        let start = usize::try_from(offset).expect("the disk is in memory");
        Some((Arc::clone(&memory.map), start))
    }

    /// Payload that came [home](Self::home) may be there in part, and no write will follow.
    pub(crate) fn touched(&self, offset: u64, len: u64) {
        if let Kept::Memory(memory) = &self.kept {
            memory.extents.written(offset..offset + len);
        }
    }

    /// Where the data of `transfer`, a read that is done, lies. A buffer goes with it.
    #[inline]
    pub(crate) fn data(&self, transfer: Transfer) -> Data<'_> {
        let Transfer { offset, len, place, .. } = transfer;
        let len = usize::try_from(len).expect("reads are short");
        match (&self.kept, place) {
            (_, Place::Buffer { pages, lead }) => Data::Buffer(pages, lead..lead + len),
            (Kept::Memory(memory), _) => {
                let at = usize::try_from(offset).expect("the disk is in memory");
                Data::Disk(&memory.map, at..at + len)
            }
            (Kept::Null(zeroes), _) => Data::Disk(zeroes, 0..len),
            (Kept::File(..) | Kept::Btt(_), _) => unreachable!("the door gave it its own memory"),
        }
    }

    /// How many bytes from `offset` on are alike, and whether they are data, or a hole that reads as zeroes.
    pub(crate) fn run_at(&self, offset: u64) -> (u64, bool) {
        match &self.kept {
            Kept::Memory(memory) => memory.extents.run_at(offset),
            Kept::Null(_) => (self.size_bytes - offset, false),
            Kept::File(file, _) => file.run_at(offset),
            // Which sectors are zeroes is known, and not told: it would be a look at each.
            Kept::Btt(_) => (self.size_bytes - offset, true),
        }
    }

    /// Reads ahead what will be read soon, where that means anything.
    pub(crate) fn cache(&self, offset: u64, len: u64) {
        if let Kept::File(file, _) = &self.kept {
            file.cache(offset, len);
        }
    }
}

/// Where the data of a read lies.
#[derive(Debug)]
pub(crate) enum Data<'a> {
    /// In a buffer of the lane.
    Buffer(Rc<Pages>, Range<usize>),
    /// In the disk's own memory.
    Disk(&'a Arc<Map>, Range<usize>),
}

impl Medium {
    /// Tells how often each fault rule was met.
    pub(crate) fn tell_faults(&self, counts: &FaultCounts) {
        if let Self::Faulty(faulty) = self {
            counts.set(faulty.counts().map(|(_, count)| count));
        }
    }
}

impl Driver for Medium {
    blockyard::pass_on!(
        Self::{Memory, Null, File, Btt, Live, Delayed, Rated, Faulty}:
        take_budget, return_budget, prepare, unprepare, queue_rq, commit, timed_out, finish
    );
}

impl Device for Medium {
    blockyard::pass_on!(
        Self::{Memory, Null, File, Btt, Live, Delayed, Rated, Faulty}: next_finished, poll_at
    );
}
