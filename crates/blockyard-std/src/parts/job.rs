//! Requests in flight and the location of their data. A device finds both by the cookie of a bio.
//!
//! The core counts in sectors and knows nothing of memory. A door requests bytes: its bio covers
//! them with whole blocks, and the [`Transfer`] says which bytes are meant and where their data is.
//! The door keeps its own state of a request under a token, which the lane passes back when the
//! request ends.

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
    NoBuffer,
    /// The data is already in the disk's own memory.
    Disk,
    /// The data is in bytes that the door keeps, from this index on. Only writes use this.
    Door(Rc<[u8]>, usize),
    /// The data is in a buffer of the lane. The first `lead` bytes of the buffer precede the data:
    /// they are the start of the data's first block.
    Buffer { pages: Rc<Pages>, lead: usize },
    /// The data is in memory that a caller lent. It consists of whole blocks for a device that has
    /// any.
    Loan(Rc<Loan>),
    /// The data is in foreign memory, such as a guest's, from this byte on. It consists of whole
    /// blocks.
    Guest { memory: Rc<Map>, start: usize },
    /// The data is in several ranges of foreign memory.
    GuestRanges(Rc<GuestRanges>),
}

/// Ranges of a guest's memory that hold the data of one request, one after the other. Each consists
/// of whole blocks.
#[derive(Debug)]
pub struct GuestRanges {
    memory: Rc<Map>,
    ranges: Box<[Range<usize>]>,
}

impl GuestRanges {
    /// Returns data in `ranges` of `memory`, which may touch or repeat bytes, and may be in any
    /// order.
    ///
    /// # Panics
    ///
    /// Panics if a range is empty or ends beyond the memory.
    #[must_use]
    pub fn new(memory: Rc<Map>, ranges: Box<[Range<usize>]>) -> Self {
        let is_inside = ranges.iter().all(|it| it.start < it.end && it.end <= memory.len());
        assert!(is_inside, "a range of a guest's data is empty or beyond its memory: {ranges:?}");
        Self { memory, ranges }
    }

    /// Returns the memory of the guest.
    #[must_use]
    pub const fn memory(&self) -> &Rc<Map> {
        &self.memory
    }

    /// Returns the pieces of the guest's memory that hold the bytes `data`, counted from the start
    /// of the data.
    ///
    /// With the ranges `100..104` and `20..30`, the bytes `3..6` are in `103..104` and `20..22`.
    pub fn pieces(&self, data: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut next_start = 0;
        self.ranges.iter().filter_map(move |range| {
            let range_start = next_start;
            next_start += range.len();
            let start = data.start.max(range_start);
            let end = data.end.min(next_start);
            (start < end)
                .then(|| range.start + (start - range_start)..range.start + (end - range_start))
        })
    }

    /// Copies `source` of `from` to the bytes of the data from `at` on.
    ///
    /// # Panics
    ///
    /// Panics if `source` ends beyond its mapping.
    pub fn fill_from(&self, at: usize, from: &Map, source: Range<usize>) {
        let mut next = source.start;
        for piece in self.pieces(at..at + source.len()) {
            let len = piece.len();
            self.memory.write_from(piece.start, from, next..next + len);
            next += len;
        }
        debug_assert_eq!(next, source.end, "the data has room for all bytes");
    }

    /// Copies the bytes of the data from `at` on to `target` of `to`.
    ///
    /// # Panics
    ///
    /// Panics if `target` ends beyond its mapping.
    pub fn copy_to(&self, at: usize, to: &Map, target: Range<usize>) {
        let mut next = target.start;
        for piece in self.pieces(at..at + target.len()) {
            let len = piece.len();
            to.write_from(next, &self.memory, piece);
            next += len;
        }
        debug_assert_eq!(next, target.end, "the data has all bytes");
    }
}

impl Place {
    /// Returns the mapping that has all of the data in one piece, and the offset of the data in it.
    fn mapping(&self) -> Option<(&Rc<Map>, usize)> {
        match self {
            Self::Buffer { pages, lead } => Some((pages, *lead)),
            Self::Guest { memory, start } => Some((memory, *start)),
            Self::NoBuffer | Self::Disk | Self::Door(..) | Self::Loan(_) | Self::GuestRanges(_) => {
                None
            }
        }
    }

    /// Returns the pieces of mappings that hold the bytes `data`, counted from the start of the
    /// data. Only data in a buffer or in a guest's memory has such pieces.
    pub fn pieces(&self, data: Range<usize>) -> impl Iterator<Item = (&Rc<Map>, Range<usize>)> {
        let whole = self.mapping().map(|(map, start)| (map, start + data.start..start + data.end));
        let guest = match self {
            Self::GuestRanges(guest) => Some(guest),
            _ => None,
        };
        let several = guest
            .into_iter()
            .flat_map(move |it| it.pieces(data.clone()).map(|piece| (it.memory(), piece)));
        whole.into_iter().chain(several)
    }

    /// Returns the owner of the memory that has all of the data in one piece, and the offset of the
    /// data in it.
    #[must_use]
    pub fn keeper(&self) -> Option<(Keeper, usize)> {
        match self {
            Self::Loan(loan) => Some((Keeper::Loan(Rc::clone(loan)), 0)),
            _ => self.mapping().map(|(map, start)| (Keeper::Map(Rc::clone(map)), start)),
        }
    }

    /// Whether the place has room for `len` bytes, as far as it knows its length.
    pub(super) fn has_room_for(&self, len: u64) -> bool {
        match self {
            Self::GuestRanges(guest) => {
                guest.ranges.iter().map(|range| range.len() as u64).sum::<u64>() >= len
            }
            _ => true,
        }
    }

    /// Returns the number of memory segments of the data, for the core's limit on them.
    #[inline]
    pub(super) fn segments(&self) -> u16 {
        match self {
            Self::GuestRanges(guest) => u16::try_from(guest.ranges.len()).unwrap_or(u16::MAX),
            _ => 1,
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
        Self::with(offset, len, Place::NoBuffer)
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
    /// A door that has abandoned the request: it wants the memory back, and no result.
    Abandoned { door: u32 },
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

/// Abandons the jobs whose owners `whose` names: they end soon, the ranges among them in part
/// undone (`[abandoned-range-stops]`).
pub fn abandon(jobs: &Jobs, whose: impl Fn(&Owner) -> bool) {
    let mut jobs = jobs.borrow_mut();
    for number in 0..jobs.end() {
        if let Some(job) = jobs.find_mut(number) {
            job.is_abandoned |= whose(&job.owner);
        }
    }
}

/// Abandons the requests of `door`, which gets no result of them. Each keeps its data until it
/// ends, and its range stops (`[abandoned-range-stops]`). Returns the number of requests.
pub fn disown(jobs: &Jobs, door: u32) -> usize {
    let mut jobs = jobs.borrow_mut();
    let mut count = 0;
    for number in 0..jobs.end() {
        if let Some(job) = jobs.find_mut(number)
            && matches!(job.owner, Owner::Door { door: owner, .. } if owner == door)
        {
            job.owner = Owner::Abandoned { door };
            job.is_abandoned = true;
            count += 1;
        }
    }
    count
}

/// Returns the number of the job to which a bio with this cookie belongs.
#[inline]
pub fn job_of(cookie: u64) -> u32 {
    u32::try_from(cookie).expect("the cookie of a bio is the number of its job")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::map::PAGE_BYTES;

    fn guest(ranges: &[Range<usize>]) -> GuestRanges {
        let memory = Map::new(PAGE_BYTES).expect("a mapping of one page should succeed");
        GuestRanges::new(Rc::new(memory), ranges.into())
    }

    fn pieces(guest: &GuestRanges, data: Range<usize>) -> Vec<Range<usize>> {
        guest.pieces(data).collect()
    }

    #[test]
    fn the_data_of_a_guest_lies_in_its_ranges_one_after_the_other() {
        let guest = guest(&[100..104, 20..30, 104..105]);
        assert_eq!(pieces(&guest, 0..15), [100..104, 20..30, 104..105]);
        assert_eq!(pieces(&guest, 3..6), [103..104, 20..22]);
        assert_eq!(pieces(&guest, 4..15), [20..30, 104..105]);
        assert_eq!(pieces(&guest, 7..7), []);
        assert_eq!(Place::GuestRanges(Rc::new(guest)).segments(), 3);
    }

    #[test]
    fn bytes_are_copied_between_a_mapping_and_the_ranges_of_a_guest() {
        let guest = guest(&[100..104, 20..24]);
        let disk = Map::new(PAGE_BYTES).expect("a mapping of one page should succeed");
        disk.write(512, b"abcdefgh");
        guest.fill_from(1, &disk, 513..519);
        let mut memory = Vec::new();
        guest.memory().read(0..PAGE_BYTES, &mut memory);
        assert_eq!((&memory[100..105], &memory[20..25]), (&b"\0bcd\0"[..], &b"efg\0\0"[..]));
        guest.copy_to(2, &disk, 0..4);
        let mut copied = Vec::new();
        disk.read(0..5, &mut copied);
        assert_eq!(copied, b"cdef\0");
    }

    #[test]
    #[should_panic(expected = "beyond its memory")]
    fn a_range_beyond_a_guests_memory_is_refused() {
        let _ = guest(&[0..512, PAGE_BYTES - 1..PAGE_BYTES + 1]);
    }
}
