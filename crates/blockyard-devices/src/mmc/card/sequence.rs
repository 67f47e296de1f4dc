//! The sequences of writes that a card follows, and the pages that writes fill together.
//!
//! A write that begins where a followed sequence ends continues it. Any other write begins a
//! sequence, and the card forgets the one that was written least recently. What a page takes to
//! program is charged sector by sector; a page that is programmed before it is full is charged its
//! rest.

use crate::mmc::profile::Gather;

/// A followed sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    /// The sector after its last one.
    next: u64,
    /// The sectors in its open page, for [`Gather::Sequence`].
    filled: u32,
}

/// The followed sequences, the most recently written at the back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sequences {
    gather: Gather,
    page_sectors: u32,
    most: usize,
    followed: Vec<Sequence>,
    /// The sectors in the open page of all sequences, for [`Gather::Any`].
    filled: u32,
}

/// The beginning of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    /// The write continues a followed sequence.
    pub(super) follows: bool,
    /// The sectors that a page lacked which is now programmed as it is.
    pub(super) rest: u32,
}

impl Sequences {
    pub(super) fn new(gather: Gather, page_sectors: u32, most: u8) -> Self {
        debug_assert!(page_sectors > 0 && most > 0, "{most} sequences of {page_sectors} sectors");
        let most = usize::from(most);
        Self { gather, page_sectors, most, followed: Vec::with_capacity(most), filled: 0 }
    }

    /// Begins a write at `sector`.
    pub(super) fn begin(&mut self, sector: u64) -> Begun {
        let found = self.followed.iter().position(|sequence| sequence.next == sector);
        let follows = found.is_some();
        let mut rest = 0;
        let sequence = match found {
            Some(at) => self.followed.remove(at),
            None => {
                if self.followed.len() == self.most {
                    let forgotten = self.followed.remove(0);
                    rest = rest_of_page(forgotten.filled, self.page_sectors);
                }
                Sequence { next: sector, filled: 0 }
            }
        };
        self.followed.push(sequence);
        Begun { follows, rest }
    }

    /// Continues the write that has begun. If its data `gathers`, it goes into the open page.
    pub(super) fn fill(&mut self, sectors: u32, gathers: bool) {
        let sequence = self.followed.last_mut().expect("a write should have begun");
        sequence.next += u64::from(sectors);
        let filled = match self.gather {
            Gather::Any => &mut self.filled,
            Gather::Sequence | Gather::Command => &mut sequence.filled,
        };
        if gathers {
            *filled = (*filled + sectors) % self.page_sectors;
        }
    }

    /// Programs all open pages as they are. Returns the sectors that they lacked.
    pub(super) fn close_pages(&mut self) -> u32 {
        let open = self.followed.iter_mut().map(|sequence| &mut sequence.filled);
        let filled = open.chain([&mut self.filled]).map(core::mem::take);
        filled.map(|filled| rest_of_page(filled, self.page_sectors)).sum()
    }

    /// Forgets everything after a loss of power.
    pub(super) fn forget(&mut self) {
        self.followed.clear();
        self.filled = 0;
    }
}

/// Returns what a page of `page` sectors lacks that has `filled` of them; an empty page is not
/// programmed.
const fn rest_of_page(filled: u32, page: u32) -> u32 {
    if filled == 0 { 0 } else { page - filled }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 8 sectors, two sequences.
    fn sequences(gather: Gather) -> Sequences {
        Sequences::new(gather, 8, 2)
    }

    const NEW: Begun = Begun { follows: false, rest: 0 };
    const ON: Begun = Begun { follows: true, rest: 0 };

    #[test]
    fn a_write_follows_where_one_of_the_last_sequences_ended() {
        let mut card = sequences(Gather::Sequence);
        assert_eq!(card.begin(0), NEW);
        card.fill(3, true);
        assert_eq!(card.begin(100), NEW);
        card.fill(8, true);
        assert_eq!((card.begin(3), card.begin(108)), (ON, ON));
        // The third sequence displaces the one at 3, whose page lacks 5 sectors.
        assert_eq!(card.begin(50), Begun { follows: false, rest: 5 });
        assert_eq!(card.begin(3), NEW);
    }

    /// Fills two sequences with six sectors each. Returns the sectors that their pages lack.
    fn filled(gather: Gather) -> (u32, u32) {
        let mut card = sequences(gather);
        for sector in [0, 100] {
            assert!(!card.begin(sector).follows);
            card.fill(6, true);
        }
        (card.close_pages(), card.close_pages())
    }

    #[test]
    fn sequences_fill_pages_of_their_own_or_all_of_them_one() {
        assert_eq!(filled(Gather::Sequence), (2 + 2, 0));
        assert_eq!(filled(Gather::Any), (4, 0));
    }

    #[test]
    fn data_that_does_not_gather_still_moves_the_sequence_on() {
        let mut card = sequences(Gather::Any);
        assert_eq!(card.begin(0), NEW);
        card.fill(5, false);
        assert_eq!((card.begin(5), card.close_pages()), (ON, 0));
        card.fill(3, true);
        card.forget();
        assert_eq!((card.begin(8), card.close_pages()), (NEW, 0));
    }
}
