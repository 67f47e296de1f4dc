//! Gathered reads of a BTT, which are carried out together.
//!
//! The sectors of the next reads are prefetched while one is copied.

use super::gathered::{BYTES_MAX, Way};
use blockyard_btt::IoError;
use blockyard_std::parts::map::Map;
use core::ops::Range;
use std::rc::Rc;

/// A piece of a read.
#[derive(Debug)]
struct Piece {
    /// The number of its request.
    of: usize,
    /// Its part of the gathered sectors.
    sectors: Range<usize>,
    /// Where the data go: memory, and the offset of the first byte in it.
    pages: Rc<Map>,
    first: usize,
}

/// Reads in the order of their arrival.
#[derive(Debug)]
pub(super) struct Reads {
    pieces: Vec<Piece>,
    lbas: Vec<u64>,
    /// The sectors, with their metadata.
    bytes: Vec<u8>,
    sector_bytes: usize,
    data_bytes: usize,
}

impl Reads {
    /// Gathers reads from a BTT whose sectors of `sector_bytes` have `data_bytes` of data.
    pub(super) fn new(sector_bytes: usize, data_bytes: usize) -> Self {
        Self { pieces: Vec::new(), lbas: Vec::new(), bytes: Vec::new(), sector_bytes, data_bytes }
    }

    /// Returns whether the reads should be carried out now.
    pub(super) fn is_full(&self) -> bool {
        self.lbas.len() * self.sector_bytes >= BYTES_MAX
    }

    /// Gathers a read of request `of` from `count` sectors from `lba` on, into `pages` from byte
    /// `first` on.
    pub(super) fn read(&mut self, of: usize, lba: u64, count: u64, pages: &Rc<Map>, first: usize) {
        let begin = self.lbas.len();
        self.lbas.extend(lba..lba + count);
        let sectors = begin..self.lbas.len();
        self.pieces.push(Piece { of, sectors, pages: Rc::clone(pages), first });
    }

    /// Carries out all reads, and calls `tell` with the request and result of each piece. If
    /// several fail together, each piece is repeated by itself: a read then fails only because of
    /// its own sectors. An error that does not come again is not told then.
    pub(super) fn carry_out(
        &mut self,
        way: &mut Way,
        mut tell: impl FnMut(usize, Result<(), IoError>),
    ) {
        let Self { pieces, lbas, bytes, sector_bytes: sector, data_bytes: data } = self;
        let len = lbas.len() * *sector;
        let are_several = pieces.len() > 1;
        // The buffer never shrinks: what it holds is overwritten.
        bytes.resize(bytes.len().max(len), 0);
        let together = read_range(way, lbas, &mut bytes[..len], *sector);
        for Piece { of, sectors, pages, first } in pieces.drain(..) {
            let found = &mut bytes[sectors.start * *sector..sectors.end * *sector];
            let done = match together {
                Err(_) if are_several => read_range(way, &lbas[sectors], found, *sector),
                done => done,
            };
            if done.is_ok() {
                for (n, sector) in found.chunks_exact(*sector).enumerate() {
                    pages.write(first + n * *data, &sector[..*data]);
                }
            }
            tell(of, done);
        }
        lbas.clear();
    }
}

fn read_range(way: &mut Way, lbas: &[u64], to: &mut [u8], sector: usize) -> Result<(), IoError> {
    let mut many: Vec<_> = lbas.iter().copied().zip(to.chunks_exact_mut(sector)).collect();
    way.read_many(&mut many)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{break_entry, table};
    use super::*;
    use blockyard_btt::Worker;
    use std::sync::Arc;

    const SECTOR: usize = 512;

    /// A read fails that comes from a sector whose map entry names no block. The others go where
    /// they belong.
    #[test]
    fn a_read_that_fails_fails_alone() {
        let table = table("reads");
        let mut way = Worker::new(Arc::clone(&table.btt));
        (0..20_u8).for_each(|n| way.write(n.into(), &[n + 1; SECTOR]).expect("write to an image"));
        let reads = |way: &mut Way| {
            let pages = Rc::new(Map::new(3 * SECTOR * 9).expect("memory"));
            let mut reads = Reads::new(SECTOR, SECTOR);
            let mut told = Vec::new();
            for of in 0..9 {
                // Two sectors each, the last request first, with a gap behind each.
                reads.read(of, of as u64 * 2, 2, &pages, (8 - of) * 3 * SECTOR);
            }
            reads.carry_out(way, |of, done| told.push((of, done)));
            let mut bytes = Vec::new();
            pages.read(0..3 * SECTOR * 9, &mut bytes);
            (told, bytes)
        };
        let mut expected_told = [Ok(()); 9];
        // Sectors `2 * of` and `2 * of + 1`, filled with their numbers plus 1, and the gap.
        let mut expected_bytes: Vec<_> = (0..9_u8)
            .rev()
            .flat_map(|of| [[of * 2 + 1; SECTOR], [of * 2 + 2; SECTOR], [0; SECTOR]].concat())
            .collect();
        let (told, bytes) = reads(&mut way);
        assert_eq!(told, (0..9).zip(expected_told).collect::<Vec<_>>());
        assert!(bytes == expected_bytes, "data of another sector");
        break_entry(&table, 7);
        expected_told[3] = Err(IoError::Map);
        expected_bytes[(8 - 3) * 3 * SECTOR..][..2 * SECTOR].fill(0);
        let (told, bytes) = reads(&mut way);
        assert_eq!(told, (0..9).zip(expected_told).collect::<Vec<_>>());
        assert!(bytes == expected_bytes, "data of another sector");
    }
}
