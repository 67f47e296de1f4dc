//! The I/Os of a call, and the memory of a request that is made of them.

use super::Failure;
use crate::frame::BLOCK_BYTES;
use crate::memory::{Sink, Source};
use blockyard::bio::{Bio, Op};
use blockyard::request::Piece;

/// One I/O of a call.
#[derive(Debug)]
pub struct Io<'a> {
    sector: u64,
    work: Work<'a>,
    /// What became of it, once the call has returned.
    pub result: Result<(), Failure>,
}

#[derive(Debug)]
enum Work<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
    Erase(u32),
    Flush,
}

impl<'a> Io<'a> {
    const fn new(sector: u64, work: Work<'a>) -> Self {
        Self { sector, work, result: Ok(()) }
    }

    /// Reads from `sector` on into `to`.
    ///
    /// # Panics
    ///
    /// Panics if `to` is not a multiple of [`BLOCK_BYTES`] long.
    #[must_use]
    pub fn read(sector: u64, to: &'a mut [u8]) -> Self {
        assert!(to.len().is_multiple_of(BLOCK_BYTES), "{} bytes are no sectors", to.len());
        Self::new(sector, Work::Read(to))
    }

    /// Writes `from` from `sector` on.
    ///
    /// # Panics
    ///
    /// Panics if `from` is not a multiple of [`BLOCK_BYTES`] long.
    #[must_use]
    pub fn write(sector: u64, from: &'a [u8]) -> Self {
        assert!(from.len().is_multiple_of(BLOCK_BYTES), "{} bytes are no sectors", from.len());
        Self::new(sector, Work::Write(from))
    }

    /// Erases `sectors` sectors from `sector` on: nobody needs their content.
    #[must_use]
    pub const fn erase(sector: u64, sectors: u32) -> Self {
        Self::new(sector, Work::Erase(sectors))
    }

    /// Makes durable all that was written before this call: nothing is to do, as a write is durable
    /// when it ends.
    #[must_use]
    pub const fn flush() -> Self {
        Self::new(0, Work::Flush)
    }

    /// Returns the bio of the I/O at `place` of a call. Memory of 2 TiB or more has more sectors
    /// than a card.
    pub(super) fn bio(&self, place: usize) -> Bio {
        let (op, sectors) = match &self.work {
            Work::Read(to) => (Op::Read, to.len() / BLOCK_BYTES),
            Work::Write(from) => (Op::Write, from.len() / BLOCK_BYTES),
            Work::Erase(sectors) => (Op::Discard, *sectors as usize),
            Work::Flush => (Op::Flush, 0),
        };
        Bio::new(op, self.sector, u32::try_from(sectors).unwrap_or(u32::MAX), place as u64)
    }
}

/// Returns the place of an I/O among those of the call, by the cookie of its bio.
pub(super) fn place(cookie: u64) -> usize {
    usize::try_from(cookie).expect("a cookie is the place of an I/O")
}

/// The memory of a request: that of its pieces, each a part of an I/O of the call.
pub(super) struct Memory<'a, 'b> {
    pub(super) ios: &'a mut [Io<'b>],
    pub(super) pieces: &'a [Piece],
}

impl Memory<'_, '_> {
    /// Returns the I/O that has block `at` of the request, and the number of the block in it.
    fn find(&self, mut at: u32) -> (usize, u32) {
        for piece in self.pieces {
            if at < piece.sectors {
                return (place(piece.cookie), piece.offset_sectors + at);
            }
            at -= piece.sectors;
        }
        panic!("block {at} behind the end of a request")
    }
}

impl Source for Memory<'_, '_> {
    fn block(&self, at: u32) -> &[u8] {
        let (io, block) = self.find(at);
        match &self.ios[io].work {
            Work::Write(from) => from.block(block),
            other => panic!("a write of {other:?}"),
        }
    }
}

impl Sink for Memory<'_, '_> {
    fn block_mut(&mut self, at: u32) -> &mut [u8] {
        let (io, block) = self.find(at);
        match &mut self.ios[io].work {
            Work::Read(to) => to.block_mut(block),
            other => panic!("a read of {other:?}"),
        }
    }
}
