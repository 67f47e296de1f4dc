//! Allocation units: the pieces in which a card's tables map its memory.
//!
//! A card writes cheaply at the end of one of its few open units. A write anywhere else causes a
//! copy. A write of n bytes at a random place therefore copies the whole unit except n bytes: the
//! part before the write at once, and the part after it when the next such write closes the unit.
//! Erased sectors are copied like others.
//!
//! A write that begins in a closed unit opens the unit and copies the sectors before the write. A
//! write past the end of an open unit copies the sectors in between. A write before the end of an
//! open unit closes the unit and opens it again. Closing a unit copies the sectors after its end.
//! If the maximum number of units is open, the least recently written one is closed. A unit that is
//! written to its end closes at no cost.

use crate::mmc::profile::UnitTiming;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

/// An open unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    number: u64,
    /// The end of the written or copied sectors, counted from the start of the unit.
    end: u64,
}

/// The open units, the most recently written at the back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Units {
    timing: UnitTiming,
    open: Vec<Open>,
}

impl Units {
    pub(super) fn new(timing: UnitTiming) -> Self {
        assert!(timing.open > 0, "a card must have at least one open unit");
        let open = Vec::with_capacity(usize::from(timing.open) + 1);
        Self { timing, open }
    }

    /// Returns the copying time of a write of `sectors` that starts at `sector`, within one unit.
    pub(super) fn write(&mut self, sector: u64, sectors: u64) -> Duration {
        let unit = self.unit_sectors();
        let number = sector / unit;
        let start = sector % unit;
        let mut copied = 0;
        let end = match self.open.iter().position(|open| open.number == number) {
            Some(at) => {
                let open = self.open.remove(at);
                if start < open.end {
                    copied += unit - open.end;
                    0
                } else {
                    open.end
                }
            }
            None => 0,
        };
        copied += start - end;
        let end = start + sectors;
        debug_assert!(end <= unit, "{sectors} sectors from {sector} on cross a unit boundary");
        if end < unit {
            if self.open.len() == usize::from(self.timing.open) {
                copied += unit - self.open.remove(0).end;
            }
            self.open.push(Open { number, end });
            debug_assert!(self.open.len() <= usize::from(self.timing.open), "too many open units");
        }
        self.timing.copy(copied * u64::from(SECTOR_BYTES))
    }

    pub(super) const fn unit_sectors(&self) -> u64 {
        self.timing.bytes / SECTOR_BYTES as u64
    }

    /// Closes all units after a loss of power. The cost is not modelled.
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Units of 8 sectors, two open at a time, 2 us for each KiB: 1 us for each sector.
    fn units() -> Units {
        let copy_per_kib = Duration::from_us(2);
        Units::new(UnitTiming { bytes: 8 * 512, open: 2, copy_per_kib })
    }

    fn us(units: &mut Units, sector: u64, sectors: u64) -> u64 {
        units.write(sector, sectors).as_ns() / 1000
    }

    #[test]
    fn writing_on_and_on_copies_nothing() {
        let mut units = units();
        for sector in (0..64).step_by(2) {
            assert_eq!(us(&mut units, sector, 2), 0, "{sector}");
        }
        assert!(units.open.is_empty());
    }

    #[test]
    fn a_write_in_the_middle_copies_what_is_before_and_later_what_is_behind() {
        let mut units = units();
        // Sectors 0 to 2 of unit 0, and then sector 4.
        assert_eq!(us(&mut units, 3, 1), 3);
        assert_eq!(us(&mut units, 5, 1), 1);
        // Copies sectors 6 and 7 after the end, and sector 0 before the write.
        assert_eq!(us(&mut units, 1, 1), 2 + 1);
        // Unit 1 is the second open unit. Unit 2 closes unit 0, which copies sectors 2 to 7.
        assert_eq!(us(&mut units, 8, 1), 0);
        assert_eq!(us(&mut units, 16 + 4, 1), 6 + 4);
        // Unit 1 is the least recently written. A unit that is written whole closes no other.
        assert_eq!(us(&mut units, 24, 8), 0);
        assert_eq!(us(&mut units, 32, 1), 7);
        assert_eq!(units.open, [Open { number: 2, end: 5 }, Open { number: 4, end: 1 }]);
    }

    /// A slow model of the module's rules: it lists each unit's sectors and when the unit was
    /// written.
    #[derive(Default)]
    struct Slow {
        open: BTreeMap<u64, (Vec<bool>, usize)>,
        writes: usize,
    }

    impl Slow {
        fn fill(done: &mut [bool]) -> u64 {
            let copied = done.iter().filter(|&&done| !done).count() as u64;
            done.fill(true);
            copied
        }

        fn write(&mut self, sector: u64, sectors: u64) -> u64 {
            self.writes += 1;
            let number = sector / 8;
            let start = sector % 8;
            let end = sector % 8 + sectors;
            let start = usize::try_from(start).unwrap();
            let end = usize::try_from(end).unwrap();
            let (mut done, _) = self.open.remove(&number).unwrap_or((vec![false; 8], 0));
            let mut copied = 0;
            if done[start] {
                copied += Self::fill(&mut done);
                done = vec![false; 8];
            }
            copied += Self::fill(&mut done[..start]);
            done[start..end].fill(true);
            if !done[7] {
                if self.open.len() == 2 {
                    let oldest = *self.open.iter().min_by_key(|(_, (_, at))| *at).unwrap().0;
                    copied += Self::fill(&mut self.open.remove(&oldest).unwrap().0);
                }
                self.open.insert(number, (done, self.writes));
            }
            copied
        }
    }

    proptest! {
        #[test]
        fn copies_are_those_of_sectors_written_down_one_by_one(
            writes in prop::collection::vec((0u64..5, 0u64..8, 1u64..8), 1..60)
        ) {
            let mut units = units();
            let mut slow = Slow::default();
            for (unit, start, sectors) in writes {
                let sectors = sectors.min(8 - start);
                let sector = unit * 8 + start;
                prop_assert_eq!(us(&mut units, sector, sectors), slow.write(sector, sectors));
            }
        }
    }
}
