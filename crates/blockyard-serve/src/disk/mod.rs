//! Disks: the places where data is kept, and each lane's device to them.
//!
//! A [`Disk`] is opened once and shared by all lanes. Each lane makes its own [`Medium`] of the
//! disk: a device of the core for the lane's request queue.

mod btt;
mod damage;
mod error;
mod fault_counts;
mod gate;
mod layers;
mod live;
mod null;
mod open;
pub(crate) mod roster;

pub(crate) use blockyard_std::parts::device::file::Outbox;
pub(crate) use damage::Damage;
pub use error::OpenError;
pub use fault_counts::FaultCounts;
pub(crate) use gate::{Entry, Gate};
pub(crate) use layers::Change;
pub use layers::Layers;
pub use live::{Behaviour, LATE, Lateness, Timing};

use crate::clients::admission::{Admission, Place};
use crate::clients::peer::Peer;
use crate::clients::weight::Weight;
use blockyard::driver::{Device, Driver};
use blockyard::layer::delay::Delayed;
use blockyard::layer::fault::{FaultRule, Faulty};
use blockyard::layer::rate;
use blockyard::limits::Limits;
use blockyard::policy::{Dispatch, ElevatorKind, Policies};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard_btt::{Container, Health};
use blockyard_pmem::Durability;
use blockyard_std::parts::device::at_once::AtOnce;
use blockyard_std::parts::device::file::{File, FileDevice};
use blockyard_std::parts::device::limited::{Limited, SharedDepth};
pub(crate) use blockyard_std::parts::device::memory::Memory;
use blockyard_std::parts::device::memory::MemoryDevice;
use blockyard_std::parts::device::{self, FILE_REQUEST_SECTORS, MEMORY_REQUEST_SECTORS};
use blockyard_std::parts::job::{Jobs, SECTOR};
use blockyard_std::parts::map::Map;
use blockyard_std::parts::shape::Shape;
use btt::{BttDevice, Table};
use core::ops::Range;
use live::Live;
use null::Nothing;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The longest read of a null disk, in bytes.
pub(crate) const NULL_READ_BYTES_MAX: usize = 32 << 20;
/// The place where the data of a disk is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory, for as long as the server runs.
    Memory {
        /// The size of the disk.
        bytes: u64,
        /// Take all of the memory immediately, in huge pages if there are any: they make random
        /// access to a large disk cheaper.
        huge_pages: bool,
    },
    /// No data: writes are dropped, and reads return zeroes.
    Null {
        /// The size of the disk.
        bytes: u64,
    },
    /// A file or a block device.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Use the page cache even if direct I/O is possible.
        buffered: bool,
    },
    /// The block translation table in a file: sectors stay whole, whatever ends the server.
    Btt {
        /// The path of the file.
        path: PathBuf,
        /// The failures that an answered write survives. With [`Durability::Process`] and
        /// [`Durability::Calls`], a loss of power may damage any sector and the table, flushed or
        /// not.
        durability: Durability,
        /// The container of the table; `None` detects it.
        container: Option<Container>,
        /// Serve the table even if a check finds it broken.
        force: bool,
    },
}

/// A disk to serve.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// The name of the export; the empty name is the default export.
    pub name: String,
    /// The place where the data is kept.
    pub source: Source,
    /// Refuse writes.
    pub read_only: bool,
    /// The design of the disk's queue.
    pub policies: Policies,
    /// The maximum number of requests in flight at the device, over all lanes.
    pub depth: u16,
    /// The maximum amount of data in those requests, in bytes; a larger request is issued alone.
    pub depth_bytes: u64,
    /// The layers between the queue and the data.
    pub layers: Layers,
    /// The clients that may use the disk.
    pub admission: Admission,
    /// The weights of clients by the places that they come from: the first of these decides. The
    /// design has BFQ.
    pub weights: Vec<(Place, Weight)>,
}

/// The data of an open disk.
#[derive(Debug)]
enum Kept {
    Memory(Arc<Memory>),
    /// The zeroes from which reads are answered.
    Null(Arc<Map>),
    /// The file, and the depth that lanes share: only a file's requests outlast the call that
    /// issues them.
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
    /// The number of lanes, if one of them alone serves the disk.
    one_of: Option<usize>,
    pub(crate) layers: Layers,
    pub(crate) timing: Arc<Timing>,
    pub(crate) faults: Arc<FaultCounts>,
    pub(crate) damage: Arc<Damage>,
    /// The disk is read-only, and another program could write its file when it was opened.
    pub(crate) is_written_elsewhere: bool,
    pub(crate) admission: Admission,
    weights: Vec<(Place, Weight)>,
    /// The clients that have chosen the disk.
    pub(crate) gate: Gate,
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
    /// Returns the name of the kind of the disk.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.kept {
            Kept::Memory(_) => "memory",
            Kept::Null(_) => "null",
            Kept::File(file, _) if file.is_block_device => "device",
            Kept::File(..) => "file",
            Kept::Btt(_) => "btt",
        }
    }

    /// Returns the lane that alone serves the disk, which has this number, if one does. Such disks
    /// are spread over the lanes: with four lanes, disk 6 has lane 2.
    pub(crate) fn home_lane(&self, number: usize) -> Option<usize> {
        self.one_of.map(|lanes| number % lanes)
    }

    /// Returns why clients of the disk have no weights, in words, or `None` if they may have some.
    pub(crate) fn has_no_weights(&self) -> Option<&'static str> {
        let is_shared = matches!(self.policies.elevator, ElevatorKind::Bfq(_));
        let holds_requests = matches!(self.kept, Kept::File(..)) || !self.layers.is_empty();
        match (is_shared, holds_requests) {
            (false, _) => Some("only the scheduler of --design bfq shares a disk by weights"),
            (true, false) => {
                Some("the disk ends each request before the next begins, so that none waits")
            }
            (true, true) => None,
        }
    }

    /// Returns the weight of clients from the place of `peer`, if they have one.
    pub(crate) fn weight_of(&self, peer: &Peer) -> Option<Weight> {
        let (_, weight) = self.weights.iter().find(|(place, _)| place.has(peer))?;
        Some(*weight)
    }

    /// Returns the health of a BTT, if the disk is one.
    pub(crate) fn btt_health(&self) -> Option<Health> {
        match &self.kept {
            Kept::Btt(table) => Some(table.health()),
            _ => None,
        }
    }

    /// Returns whether a BTT's memory counts as persistent only because the configuration says so.
    pub(crate) fn is_assumed_persistent(&self) -> bool {
        matches!(&self.kept, Kept::Btt(table) if table.is_assumed_persistent())
    }

    /// Returns the device of `lane` to this disk. The device finds its data in `jobs` and passes
    /// I/O to the lane through `outbox`.
    pub(crate) fn medium(
        &self,
        lane: u32,
        jobs: &Jobs,
        outbox: &Rc<Outbox>,
        tags: &TagSetConfig,
    ) -> Medium {
        let medium = match &self.kept {
            Kept::Memory(memory) => Medium::Memory(AtOnce::new(MemoryDevice::new(
                Arc::clone(memory),
                Rc::clone(jobs),
                false,
            ))),
            Kept::Null(_) => Medium::Null(AtOnce::new(Nothing)),
            Kept::Btt(table) => {
                Medium::Btt(Box::new(BttDevice::new(Arc::clone(table), Rc::clone(jobs))))
            }
            Kept::File(file, shared) => {
                let device = FileDevice::new(
                    Arc::clone(file),
                    lane,
                    Rc::clone(jobs),
                    Rc::clone(outbox),
                    self.depth,
                );
                // A model above grants its own budget.
                let has_budget =
                    self.policies.dispatch == Dispatch::Budget && self.layers.model.is_none();
                Medium::File(Limited::new(device, Arc::clone(shared), lane, has_budget))
            }
        };
        self.layers.over(medium, &self.timing, tags)
    }

    /// Returns the alignment that a client's reads and writes need, in bytes, or 1 if any byte can
    /// be written by itself, even if the disk must read the rest of the block first. Zeroes need
    /// none: every disk keeps the rest of a block.
    pub(crate) fn request_block_bytes(&self) -> u64 {
        match &self.kept {
            // The kernel zeroes only whole blocks of a block device quickly.
            Kept::File(file, _) if file.is_block_device => file.block_bytes.max(SECTOR),
            Kept::Btt(table) => table.data_bytes,
            _ => 1,
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let (is_file, is_cached) = match &self.kept {
            Kept::Memory(_) | Kept::Null(_) => (false, false),
            Kept::File(..) => (true, true),
            Kept::Btt(table) => (true, table.has_cache),
        };
        let max_sectors = if is_file { FILE_REQUEST_SECTORS } else { MEMORY_REQUEST_SECTORS };
        let limits = Limits {
            write_cache: is_cached,
            fua: matches!(&self.kept, Kept::File(file, _) if file.has_fua),
            ..device::limits(self.size_bytes, self.block_bytes(), max_sectors)
        };
        let mut limits = match &self.layers.model {
            None => limits,
            Some(model) => live::limits(limits, model.limits()),
        };
        limits.write_cache |= self.layers.wants_flushes();
        limits
    }

    /// Returns the name of the first of `rules` that cannot fire on this disk or cannot be obeyed,
    /// and the reason.
    pub(crate) fn impossible_fault<'a>(
        &self,
        rules: &'a [FaultRule],
    ) -> Option<(&'a str, &'static str)> {
        layers::impossible_fault(rules, &self.limits(), self.read_only)
    }

    /// Returns the alignment that the device needs, in bytes, or 1 for none.
    #[inline]
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

    /// Returns whether the data of a request needs a buffer of its own, aligned to blocks.
    #[inline]
    pub(crate) fn needs_pages(&self) -> bool {
        matches!(self.kept, Kept::File(..) | Kept::Btt(_))
    }

    /// Returns whether a write ends in the turn in which it arrives. Its payload may then stay in
    /// the input buffer.
    pub(crate) fn is_done_at_once(&self) -> bool {
        !self.needs_pages() && self.layers.is_empty()
    }

    /// Returns what a lane must know of the disk.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            limits: self.limits(),
            policies: self.policies,
            elevator: None,
            depth: self.depth,
            block_bytes: self.block_bytes(),
            // The kernel never times out an I/O of a file, so the queue does not either.
            timeout: self.layers.is_empty().then_some(Duration::MAX),
            takes_slices: matches!(self.kept, Kept::Memory(_) | Kept::Btt(_)),
            takes_long_ranges: self.layers.model.is_some(),
        }
    }

    /// Returns the place of the byte at `offset` in the disk's own memory, if a payload may be
    /// received there before its write is submitted: no layer may refuse the write.
    pub(crate) fn place_in_memory(&self, offset: u64) -> Option<(Arc<Map>, usize)> {
        let Kept::Memory(memory) = &self.kept else { return None };
        if !self.layers.is_empty() {
            return None;
        }
        let start = usize::try_from(offset).expect("offset on a disk in memory");
        Some((Arc::clone(&memory.map), start))
    }

    /// Marks a range as data. Part of a payload may have been received
    /// [in place](Self::place_in_memory), and no write will follow.
    pub(crate) fn mark_written(&self, offset: u64, len: u64) {
        if let Kept::Memory(memory) = &self.kept {
            memory.extents.written(offset..offset + len);
        }
    }

    /// Returns the data of a read of `len` bytes at `offset` that has ended, from the disk's own
    /// memory.
    ///
    /// # Panics
    ///
    /// Panics if the disk [needs a buffer](Self::needs_pages).
    #[inline]
    pub(crate) fn own_data(&self, offset: u64, len: u64) -> (&Arc<Map>, Range<usize>) {
        let len = usize::try_from(len).expect("length of one read");
        match &self.kept {
            Kept::Memory(memory) => {
                let at = usize::try_from(offset).expect("offset on a disk in memory");
                (&memory.map, at..at + len)
            }
            Kept::Null(zeroes) => (zeroes, 0..len),
            Kept::File(..) | Kept::Btt(_) => {
                unreachable!("a read of a file or BTT needs a buffer")
            }
        }
    }

    /// Returns the length in bytes of the run at `offset`, and whether it is data; a hole reads as
    /// zeroes.
    pub(crate) fn run_at(&self, offset: u64) -> (u64, bool) {
        match &self.kept {
            Kept::Memory(memory) => memory.extents.run_at(offset),
            Kept::Null(_) => (self.size_bytes - offset, false),
            Kept::File(file, _) => file.run_at(offset),
            // Holes of a BTT are not reported: finding them would take a look at each sector.
            Kept::Btt(_) => (self.size_bytes - offset, true),
        }
    }

    /// Returns the descriptor of the disk's file, if the disk uses the page cache.
    pub(crate) fn prefetches_from(&self) -> Option<&Arc<OwnedFd>> {
        match &self.kept {
            Kept::File(file, _) if file.block_bytes == 1 => Some(&file.fd),
            _ => None,
        }
    }
}

impl Medium {
    /// Changes the layer that `change` is about. Returns whether there is one.
    pub(crate) fn change_layer(&mut self, change: &Change, now: Instant) -> bool {
        match (self, change) {
            (Self::Rated(limited), Change::Rates(rates)) => limited.set_rates(*rates, now),
            (Self::Delayed(delayed), Change::Delay(extra)) => delayed.set_extra(*extra, now),
            (Self::Faulty(faulty), Change::Faults(rules)) => faulty.set_rules(rules.clone(), now),
            (Self::Faulty(faulty), _) => return faulty.below.change_layer(change, now),
            (Self::Rated(limited), _) => return limited.below.change_layer(change, now),
            _ => return false,
        }
        true
    }

    /// Ends with an error the requests that the layers hold, and has them hold none from `now` on
    /// ([let-go-ends-held]).
    pub(crate) fn let_go(&mut self, now: Instant) {
        match self {
            Self::Faulty(faulty) => {
                faulty.let_go(now);
                faulty.below.let_go(now);
            }
            Self::Rated(limited) => {
                limited.let_go();
                limited.below.let_go(now);
            }
            Self::Delayed(delayed) => {
                delayed.let_go();
                delayed.below.let_go(now);
            }
            Self::Live(live) => live.let_go(),
            Self::Memory(_) | Self::Null(_) | Self::File(_) | Self::Btt(_) => {}
        }
    }

    pub(crate) fn report_faults(&self, counts: &FaultCounts) {
        if let Self::Faulty(faulty) = self {
            counts.set(faulty.counts());
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
