//! Requests on their way, and where their data lies: what a device looks up under the cookie of a bio.
//!
//! The core counts in sectors and knows no memory. A client asks for bytes: its bio covers them
//! with whole blocks, and the transfer says which bytes are meant and where they are.

use crate::map::Pages;
use crate::slab::Slab;
use blockyard::request::Piece;
use blockyard::unit::SECTOR_BYTES;
use blockyard_wire::nbd::Request;
use core::ops::Range;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of a sector, as offsets are counted.
pub(crate) const SECTOR: u64 = SECTOR_BYTES as u64;

/// Where the data of a request lies.
#[derive(Debug)]
pub(crate) enum Place {
    /// There is none, or the disk's own memory is sent.
    Nowhere,
    /// It is in the disk's own memory already.
    Home,
    /// Among what was received, from this byte on.
    Input(Rc<[u8]>, usize),
    /// In a buffer, of which the first `lead` bytes are what comes before, up to the block that the
    /// data begins in.
    Pages { pages: Rc<Pages>, lead: usize },
}

/// One request of a client, to a device.
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
    /// The client's of this connection.
    Client { connection: u32, request: Request },
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
    u32::try_from(cookie).expect("cookies are numbers of jobs")
}
