//! Requests in flight and the location of their data. A device finds both by the cookie of a bio.
//!
//! The core counts in sectors and knows nothing of memory. A door requests bytes: its bio covers them
//! with whole blocks, and the [`Transfer`] says which bytes are meant and where their data is. The door
//! keeps its own state of a request under a token, which the lane passes back when the request ends.

use crate::parts::loan::Loan;
use crate::parts::map::{Map, Pages, Span};
use crate::parts::slab::Slab;
use blockyard::request::Piece;
use blockyard::unit::SECTOR_BYTES;
use core::ops::Range;
use std::cell::RefCell;
use std::rc::Rc;

/// The size of a sector in bytes, in the type of offsets.
pub const SECTOR: u64 = SECTOR_BYTES as u64;

/// The location of a request's data.
#[derive(Debug)]
pub enum Place {
    /// There is no data, or the door copies it from the disk's own memory after the read.
    Nowhere,
    /// The data is already in the disk's own memory.
    Disk,
    /// The data is in bytes that the door keeps, from this index on. Only writes use this.
    Door(Rc<[u8]>, usize),
    /// The data is in a buffer of the lane. The first `lead` bytes of the buffer precede the data: they
    /// are the start of the data's first block.
    Buffer { pages: Rc<Pages>, lead: usize },
    /// The data is in memory that a caller lent. It consists of whole blocks for a device that has any.
    Loan(Rc<Loan>),
    /// The data is in foreign memory, such as a guest's, from this byte on. It consists of whole blocks.
    Guest { memory: Rc<Map>, start: usize },
}

impl Place {
    /// Returns the mapping that data is read into or written from, and the offset of the data in it.
    pub fn mapping(&self) -> Option<(&Rc<Map>, usize)> {
        match self {
            Self::Buffer { pages, lead } => Some((pages, *lead)),
            Self::Guest { memory, start } => Some((memory, *start)),
            Self::Nowhere | Self::Disk | Self::Door(..) | Self::Loan(_) => None,
        }
    }

    /// Returns the owner of the memory that data is read into or written from, and the offset of the data in it.
    #[must_use]
    pub fn keeper(&self) -> Option<(Keeper, usize)> {
        match self {
            Self::Loan(loan) => Some((Keeper::Loan(Rc::clone(loan)), 0)),
            _ => self.mapping().map(|(map, start)| (Keeper::Map(Rc::clone(map)), start)),
        }
    }
}

/// The owner of memory that the kernel uses.
#[derive(Clone, Debug)]
pub enum Keeper {
    /// A mapping.
    Map(Rc<Map>),
    /// Memory that a caller lent.
    Loan(Rc<Loan>),
}

impl Keeper {
    /// Returns `range` of the memory as a span for the kernel.
    ///
    /// # Panics
    ///
    /// Panics if the range ends beyond the memory.
    #[must_use]
    pub fn span(&self, range: Range<usize>) -> Span {
        match self {
            Self::Map(map) => map.span(range),
            Self::Loan(loan) => loan.span(range),
        }
    }
}

/// One request from a door to a device.
#[derive(Debug)]
pub struct Transfer<P = Place> {
    /// The offset of the first byte on the disk.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The location of the data.
    pub place: P,
    /// A write of zeroes must leave the range allocated.
    pub no_hole: bool,
    /// A write of zeroes must fail rather than be as slow as an ordinary write.
    pub fast: bool,
}

impl Transfer {
    /// Returns a transfer without data.
    pub const fn new(offset: u64, len: u64) -> Self {
        Self::with(offset, len, Place::Nowhere)
    }
}

impl<P> Transfer<P> {
    /// Returns a transfer whose data is in `place`.
    pub const fn with(offset: u64, len: u64, place: P) -> Self {
        Self { offset, len, place, no_hole: false, fast: false }
    }

    /// Returns the bytes of the disk that both this transfer and `piece` cover.
    pub fn bytes_of(&self, piece: &Piece) -> Range<u64> {
        let start = (piece.sector * SECTOR).max(self.offset);
        let end = (piece.sector + u64::from(piece.sectors)) * SECTOR;
        start..end.min(self.offset + self.len)
    }
}

/// The owner of a request.
#[derive(Debug)]
pub enum Owner {
    /// A door, which knows the request by `token`.
    Door { door: u32, token: u32 },
    /// The lane itself, which flushes each disk before it ends.
    Lane,
}

/// A request in flight, with its owner.
#[derive(Debug)]
pub struct Job {
    /// The bytes that are meant, and where their data is.
    pub transfer: Transfer,
    /// The owner.
    pub owner: Owner,
    /// Whether the rest of a range is left undone (`[abandoned-range-stops]`).
    pub is_abandoned: bool,
}

/// All jobs of a lane, indexed by the cookies of their bios. The lane and its devices share them.
pub type Jobs = Rc<RefCell<Slab<Job>>>;

/// Abandons the jobs whose owners `whose` names: they end soon, the ranges among them in part undone (`[abandoned-range-stops]`).
pub fn abandon(jobs: &Jobs, whose: impl Fn(&Owner) -> bool) {
    let mut jobs = jobs.borrow_mut();
    for number in 0..jobs.end() {
        if let Some(job) = jobs.find_mut(number) {
            job.is_abandoned |= whose(&job.owner);
        }
    }
}

/// Returns the number of the job to which a bio with this cookie belongs.
#[inline]
pub fn job_of(cookie: u64) -> u32 {
    u32::try_from(cookie).expect("the cookie of a bio is the number of its job")
}
