//! Gathers changes of a BTT, so that they can be carried out together.
//!
//! # Rules
//!
//! - **[rest-of-sector-kept]** Zeroing a part of a sector reads the sector and writes it. Meanwhile
//!   no other lane changes the table: that zeroing is alone, and all other changes are [`Sharing`].

use blockyard_btt::{Btt, IoError, Worker};
use blockyard_pmem::ImageMemory;
use core::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The amount of gathered data, in bytes, at which requests are carried out.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// A lane's access to a BTT.
pub(super) type Way = Worker<Arc<Btt<ImageMemory>>, ImageMemory>;

#[derive(Clone, Debug)]
enum Change {
    /// Writes this range of the gathered sectors.
    Write(Range<usize>),
    /// Zeroes sectors: the first one, and their number.
    Zero(u64, u64),
    /// Zeroes these bytes of a sector ([rest-of-sector-kept]).
    ZeroWithin(u64, Range<usize>),
    /// Makes all earlier writes durable.
    Flush,
}

impl Change {
    /// Returns the range of the gathered sectors that the change writes.
    fn written(&self) -> Range<usize> {
        match self {
            Self::Write(range) => range.clone(),
            Self::Zero(..) | Self::ZeroWithin(..) | Self::Flush => 0..0,
        }
    }
}

/// Lets the lanes of a table change it together, or one of them alone.
#[derive(Debug, Default)]
pub(super) struct Sharing(RwLock<()>);

impl Sharing {
    fn lock_shared(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes in the order of their arrival, each with the number of its request.
#[derive(Debug)]
pub(super) struct Gathered {
    changes: Vec<(usize, Change)>,
    /// The sectors to write. `bytes` holds their data.
    lbas: Vec<u64>,
    bytes: Vec<u8>,
    sector_bytes: usize,
}

impl Gathered {
    pub(super) fn new(sector_bytes: usize) -> Self {
        Self { changes: Vec::new(), lbas: Vec::new(), bytes: Vec::new(), sector_bytes }
    }

    /// Returns whether the changes should be carried out now.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_MAX
    }

    /// Gathers a write of request `of` to `count` sectors from `lba` on. `put` appends their data.
    pub(super) fn write(
        &mut self,
        of: usize,
        lba: u64,
        count: u64,
        put: impl FnOnce(&mut Vec<u8>),
    ) {
        let first = self.lbas.len();
        self.lbas.extend(lba..lba + count);
        put(&mut self.bytes);
        debug_assert_eq!(self.bytes.len(), self.lbas.len() * self.sector_bytes, "whole sectors");
        self.changes.push((of, Change::Write(first..self.lbas.len())));
    }

    /// Gathers a zeroing of request `of` of `count` sectors from `lba` on.
    pub(super) fn zero(&mut self, of: usize, lba: u64, count: u64) {
        self.changes.push((of, Change::Zero(lba, count)));
    }

    /// Gathers a zeroing of request `of` of `bytes` of a disk whose sectors have `data` bytes.
    /// Parts of sectors are left as they are, unless `has_parts` is set.
    pub(super) fn zero_bytes(&mut self, of: usize, bytes: &Range<u64>, data: u64, has_parts: bool) {
        // With sectors of 512 bytes, 100..1600 has the whole sectors 1 and 2, and parts of sectors
        // 0 and 3.
        let first = bytes.start.div_ceil(data);
        let end = bytes.end / data;
        if first < end {
            self.zero(of, first, end - first);
        }
        if !has_parts {
            return;
        }
        let parts = match first > end {
            true => [bytes.clone(), 0..0], // within one sector
            false => [bytes.start..first * data, end * data..bytes.end],
        };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let lba = part.start / data;
            let range = to_usize(part.start - lba * data)..to_usize(part.end - lba * data);
            self.changes.push((of, Change::ZeroWithin(lba, range)));
        }
    }

    pub(super) fn flush(&mut self, of: usize) {
        self.changes.push((of, Change::Flush));
    }

    /// Carries out all changes, as if one after the other, and calls `tell` with the request and
    /// result of each.
    pub(super) fn carry_out(
        &mut self,
        way: &mut Way,
        sharing: &Sharing,
        mut tell: impl FnMut(usize, Result<(), IoError>),
    ) {
        let mut rest = &*self.changes;
        while let Some((of, change)) = rest.first() {
            let writes = rest.iter().take_while(|(_, one)| matches!(one, Change::Write(_))).count();
            match change {
                Change::Write(_) => {
                    let _others = sharing.lock_shared();
                    self.write_all(&rest[..writes], way, &mut tell);
                }
                Change::Zero(lba, count) => {
                    let _others = sharing.lock_shared();
                    tell(*of, way.set_zero(*lba, *count));
                }
                Change::ZeroWithin(lba, range) => {
                    let _nobody = sharing.lock_alone();
                    tell(*of, self.zero_within(*lba, range.clone(), way));
                }
                Change::Flush => tell(*of, way.btt().flush()),
            }
            rest = &rest[writes.max(1)..];
        }
        self.changes.clear();
        self.lbas.clear();
        self.bytes.clear();
    }

    /// Carries out `writes` together. If that fails, repeats each one by itself, in order: a write
    /// then fails only because of its own sectors.
    fn write_all(
        &self,
        writes: &[(usize, Change)],
        way: &mut Way,
        tell: &mut impl FnMut(usize, Result<(), IoError>),
    ) {
        let all = writes.first().map_or(0, |(_, first)| first.written().start)
            ..writes.last().map_or(0, |(_, last)| last.written().end);
        let together = self.write_range(all, way);
        for (of, write) in writes {
            let done = match together {
                Ok(()) => Ok(()),
                Err(_) => self.write_range(write.written(), way),
            };
            tell(*of, done);
        }
    }

    /// Zeroes a part of a sector ([rest-of-sector-kept]).
    fn zero_within(&self, lba: u64, part: Range<usize>, way: &mut Way) -> Result<(), IoError> {
        let mut sector = vec![0; self.sector_bytes];
        way.read(lba, &mut sector)?;
        sector[part].fill(0);
        way.write(lba, &sector)
    }

    fn write_range(&self, sectors: Range<usize>, way: &mut Way) -> Result<(), IoError> {
        let bytes = self.bytes.chunks_exact(self.sector_bytes).skip(sectors.start);
        let many: Vec<_> = self.lbas[sectors].iter().copied().zip(bytes).collect();
        way.write_many(&many)
    }
}

/// Returns a length within one request.
pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).expect("length of one request")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{break_entry, table};
    use super::*;
    use blockyard::prng::Prng;
    use blockyard_pmem::Unmapped;

    const BYTES: usize = 512;

    fn synchronisations(way: &Way) -> u64 {
        match way.btt().memory() {
            ImageMemory::Unmapped(unmapped) => Unmapped::synchronisations(unmapped),
            ImageMemory::Mapped(_) => unreachable!("an image with Durability::Disk is not mapped"),
        }
    }

    fn write(gathered: &mut Gathered, of: usize, lba: u64, byte: u8) {
        gathered.write(of, lba, 1, |to| to.extend([byte; BYTES]));
    }

    fn read(way: &mut Way, lba: u64) -> u8 {
        let mut sector = [0xee; BYTES];
        way.read(lba, &mut sector).expect("sector that can be read");
        assert_eq!(sector, [sector[0]; BYTES], "a mix in sector {lba}");
        sector[0]
    }

    #[test]
    fn writes_that_come_together_share_synchronisations() {
        let table = table("share");
        let mut way = Worker::new(Arc::clone(&table.btt));
        let mut gathered = Gathered::new(BYTES);
        (0..60).for_each(|n| write(&mut gathered, n, n as u64 * 3, 1));
        let before = synchronisations(&way);
        let mut told = 0;
        gathered.carry_out(&mut way, &table.sharing, |_, done| {
            done.expect("write that succeeds");
            told += 1;
        });
        assert_eq!((synchronisations(&way) - before, told), (2, 60));
    }

    #[test]
    fn a_write_that_fails_fails_alone() {
        let table = table("alone");
        let mut way = Worker::new(Arc::clone(&table.btt));
        break_entry(&table, 7);
        let mut gathered = Gathered::new(BYTES);
        (0..20_u8).for_each(|n| write(&mut gathered, n.into(), n.into(), n + 1));
        let mut told = Vec::new();
        gathered.carry_out(&mut way, &table.sharing, |of, done| told.push((of, done)));
        fn expected(n: usize) -> Result<(), IoError> {
            if n == 7 { Err(IoError::Map) } else { Ok(()) }
        }
        assert_eq!(told, (0..20).map(|n| (n, expected(n))).collect::<Vec<_>>());
        let others = (0..20_u8).filter(|n| *n != 7);
        others.for_each(|n| assert_eq!(read(&mut way, n.into()), n + 1, "sector {n}"));
    }

    #[test]
    fn changes_of_one_sector_are_made_in_order() {
        let table = table("order");
        let mut way = Worker::new(Arc::clone(&table.btt));
        let mut gathered = Gathered::new(BYTES);
        let mut dice = Prng::new(3);
        let mut model = [0; 600];
        for round in 0..20_u8 {
            for change in 0..40_u8 {
                let of = change.into();
                // Few sectors, some of which share a word.
                let lba = dice.below(3) * 256 + dice.below(5);
                let at = usize::try_from(lba).expect("sector of a small image");
                match dice.below(8) {
                    0 => {
                        gathered.zero(of, lba, 2);
                        model[at..at + 2].fill(0);
                    }
                    1 => gathered.flush(of),
                    2 => {
                        gathered.write(of, lba, 3, |to| to.extend([round + 100; 3 * BYTES]));
                        model[at..at + 3].fill(round + 100);
                    }
                    _ => {
                        let byte = change + round;
                        write(&mut gathered, of, lba, byte);
                        model[at] = byte;
                    }
                }
            }
            gathered
                .carry_out(&mut way, &table.sharing, |_, done| done.expect("change that succeeds"));
            for (lba, expected) in (0..).zip(model) {
                assert_eq!(read(&mut way, lba), expected, "round {round}, sector {lba}");
            }
        }
    }
}
