//! Requests on their way, and where their data lies: what a device looks up under the cookie of a bio.
//!
//! The core counts in sectors and knows no memory. A door asks for bytes: its bio covers them with
//! whole blocks, and the transfer says which bytes are meant and where they are. What a door knows
//! of a request it keeps itself, under a number that comes back with the end of the request.

use crate::map::{Map, Pages};
use crate::slab::Slab;
use blockyard::request::Piece;
use blockyard::unit::SECTOR_BYTES;
use core::ops::Range;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of a sector, as offsets are counted.
pub(crate) const SECTOR: u64 = SECTOR_BYTES as u64;

/// Where the data of a request lies.
#[derive(Debug)]
pub(crate) enum Place {
    /// There is none, or the door takes it from the disk's own memory once it was read.
    Nowhere,
    /// It is in the disk's own memory already.
    Disk,
    /// In bytes that the door keeps, from this one on; only written from.
    Door(Rc<[u8]>, usize),
    /// In a buffer of the lane, of which the first `lead` bytes are what comes before, up to the block
    /// that the data begins in.
    Buffer { pages: Rc<Pages>, lead: usize },
    /// In memory of somebody else, from this byte on, as a guest's: for whole blocks only.
    #[cfg_attr(
        not(any(test, feature = "memory-door")),
        expect(dead_code, reason = "no door has guests yet")
    )]
    Guest { memory: Rc<Map>, start: usize },
}

impl Place {
    /// The mapping that data is read into or written from, and where the data begins in it.
    pub(crate) fn mapping(&self) -> Option<(&Rc<Map>, usize)> {
        match self {
            Self::Buffer { pages, lead } => Some((pages, *lead)),
            Self::Guest { memory, start } => Some((memory, *start)),
            Self::Nowhere | Self::Disk | Self::Door(..) => None,
        }
    }
}

/// One request of a door, to a device.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Its first byte on the disk.
    pub(crate) offset: u64,
    /// How many it has.
    pub(crate) len: u64,
    /// Where its data lies.
    pub(crate) place: Place,
    /// Of zeroes: room must stay allocated.
    pub(crate) no_hole: bool,
    /// Of zeroes: rather fail than be as slow as a write.
    pub(crate) fast: bool,
}

impl Transfer {
    /// A transfer without data.
    pub(crate) const fn new(offset: u64, len: u64) -> Self {
        Self { offset, len, place: Place::Nowhere, no_hole: false, fast: false }
    }

    /// The bytes of the disk that `piece` has of it.
    pub(crate) fn bytes_of(&self, piece: &Piece) -> Range<u64> {
        let start = (piece.sector * SECTOR).max(self.offset);
        let end = (piece.sector + u64::from(piece.sectors)) * SECTOR;
        start..end.min(self.offset + self.len)
    }
}

/// Whose request it is.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The one that this door knows by its token.
    Door { door: u32, token: u32 },
    /// The lane's own: a flush before it ends.
    Lane,
}

/// A request on its way, with what the lane knows of it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) transfer: Transfer,
    pub(crate) owner: Owner,
}

/// All jobs of a lane, by the cookies of their bios. Shared by the lane and its devices.
pub(crate) type Jobs = Rc<RefCell<Slab<Job>>>;

/// The number of the job that a bio with this cookie is of.
#[inline]
pub(crate) fn job_of(cookie: u64) -> u32 {
    u32::try_from(cookie).expect("cookie that numbers a job")
}
