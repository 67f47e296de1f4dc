//! Checks that the pieces of a bio cover it exactly: no sector is lost, duplicated or misplaced.

use blockyard::bio::Bio;
use blockyard::request::Piece;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    WithDriver,
    Done,
}

/// The parts of each bio that has not ended, by cookie and first sector.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    parts: BTreeMap<(u64, u64), (u64, Part)>,
}

impl Cover {
    /// The driver received `piece` of `bio`.
    pub(crate) fn sent(&mut self, bio: &Bio, piece: &Piece) {
        let end = piece.sector + u64::from(piece.sectors);
        if bio.sectors == 0 {
            return;
        }
        let within = piece.sector >= bio.sector && end <= bio.end_sector() && piece.sectors > 0;
        assert!(within, "[cover] {piece:?} is not within {bio:?}");
        let offset = piece.sector - bio.sector;
        assert_eq!(u64::from(piece.offset_sectors), offset, "[cover] offset of {piece:?}");
        let before = self.parts.range((piece.cookie, 0)..(piece.cookie, end)).next_back();
        if let Some((key, (other_end, part))) = before {
            assert!(*other_end <= piece.sector, "[cover] {piece:?} is {part:?} from {key:?} on");
        }
        self.parts.insert((piece.cookie, piece.sector), (end, Part::WithDriver));
    }

    pub(crate) fn done(&mut self, piece: &Piece) {
        if piece.sectors == 0 {
            return;
        }
        let part = self.parts.get_mut(&(piece.cookie, piece.sector));
        let Some((_, part @ Part::WithDriver)) = part else {
            panic!("[cover] {piece:?} is done, and was not with the driver")
        };
        *part = Part::Done;
    }

    /// The driver gave `piece` back undone.
    pub(crate) fn back(&mut self, piece: &Piece) {
        self.parts.remove(&(piece.cookie, piece.sector));
    }

    /// Records that `bio` has ended. With `whole`, all of it was done, with success or not. A bio
    /// that failed with its flush may never have begun.
    pub(crate) fn ended(&mut self, bio: &Bio, whole: bool) {
        let mut at = bio.sector;
        let keys: Vec<_> = self
            .parts
            .range((bio.cookie, 0)..=(bio.cookie, u64::MAX))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            let (end, part) =
                self.parts.remove(&key).expect("a part that was just found should exist");
            assert_eq!(part, Part::Done, "[cover] {bio:?} ended while {key:?} is with the driver");
            assert!(key.1 == at || !whole, "[cover] a hole in {bio:?} before {key:?}");
            at = end;
        }
        let rest = at != bio.end_sector();
        assert!(!(rest && whole), "[cover] {bio:?} ended with the rest not done");
    }
}
