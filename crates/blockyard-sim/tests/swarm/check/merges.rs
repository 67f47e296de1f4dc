//! Checks that the bios of a request may share it ([merged-sides-agree]): op, priority and hint
//! agree, no bio is marked against merging, and no gap lies between them.

use blockyard::bio::{Bio, Flags, Op};
use blockyard::limits::Limits;

use super::ends::Ends;
use crate::recorder::Seen;

pub(crate) fn check(ends: &Ends, seen: &Seen, limits: &Limits) {
    let bios: Vec<&Bio> = seen.pieces.iter().map(|piece| ends.bio(piece.cookie)).collect();
    for bio in &bios {
        let agrees = (bio.op, bio.prio, bio.write_hint) == (seen.op, seen.prio, seen.write_hint);
        assert!(agrees, "[merged-sides-agree] {bio:?} in {seen:?}");
    }
    if bios.len() < 2 {
        return;
    }
    for bio in &bios {
        assert!(!bio.flags.contains(Flags::NO_MERGE), "[merged-sides-agree] {bio:?} in {seen:?}");
        assert!(bio.op != Op::Flush, "[merged-sides-agree] {bio:?} in {seen:?}");
    }
    for pair in bios.windows(2) {
        let gap =
            pair[0].flags.contains(Flags::GAP_TAIL) || pair[1].flags.contains(Flags::GAP_HEAD);
        assert!(!(limits.virt_boundary && gap), "[merged-sides-agree] a gap between {pair:?}");
    }
}
