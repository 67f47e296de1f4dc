//! The data of writes that a medium has asked for: one piece at a time crosses the link.
//!
//! A front end asks for `fetch` bytes at a time. The next piece is asked for when the one before
//! has arrived, so commands and answers wait for no more than a piece: with 64 KiB at 545 MB/s, for
//! 120 us.

use crate::medium::Wanted;
use std::collections::VecDeque;

/// The data.
#[derive(Debug)]
pub(super) struct Fetches {
    /// Sectors of a piece at most.
    piece: u32,
    /// What the medium wants, in its order.
    wanted: VecDeque<Wanted>,
    /// The piece that is on its way.
    under_way: Option<Wanted>,
}

impl Fetches {
    /// Returns those of a disk that asks for `piece` sectors at a time.
    pub(super) const fn new(piece: u32) -> Self {
        debug_assert!(piece > 0, "a piece has a sector");
        Self { piece, wanted: VecDeque::new(), under_way: None }
    }

    /// Notes that the medium wants data.
    pub(super) fn want(&mut self, wanted: Wanted) {
        debug_assert!(wanted.sectors > 0, "{wanted:?} is nothing");
        self.wanted.push_back(wanted);
    }

    /// Takes the next piece if none is on its way.
    pub(super) fn next_piece(&mut self) -> Option<Wanted> {
        if self.under_way.is_some() {
            return None;
        }
        let first = self.wanted.front_mut()?;
        let piece = Wanted { sectors: first.sectors.min(self.piece), ..*first };
        first.sectors -= piece.sectors;
        if first.sectors == 0 {
            self.wanted.pop_front();
        }
        self.under_way = Some(piece);
        Some(piece)
    }

    /// Returns the piece that has arrived.
    pub(super) fn arrived(&mut self) -> Wanted {
        self.under_way.take().expect("a piece is on its way")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::CommandId;

    #[test]
    fn data_comes_in_pieces_one_after_another_in_the_order_of_the_medium() {
        let mut fetches = Fetches::new(64);
        for (id, sectors) in [(7, 100), (3, 8)] {
            fetches.want(Wanted { id: CommandId(id), sectors });
        }
        for (id, sectors) in [(7, 64), (7, 36), (3, 8)] {
            let piece = Wanted { id: CommandId(id), sectors };
            assert_eq!(fetches.next_piece(), Some(piece));
            assert_eq!(fetches.next_piece(), None, "one is on its way");
            assert_eq!(fetches.arrived(), piece);
        }
        assert_eq!(fetches.next_piece(), None);
    }
}
