//! The bios of a queue: pooled, chained within requests, ended once ([bio-ends-once]).

use crate::bio::{Bio, Op};
use crate::limits::Limits;
use crate::status::Status;
use alloc::vec::Vec;

/// "No such index" in links.
pub(super) const NONE: u32 = u32::MAX;

/// A handle to a bio in its queue's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BioId(pub(super) u32);

impl BioId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The part of a caller's bio that a request carries, as a driver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The caller's value.
    pub cookie: u64,
    /// First sector of this part.
    pub sector: u64,
    /// Sectors of this part.
    pub sectors: u32,
    /// Where this part begins in the caller's bio, in sectors; not 0 only in a split bio.
    pub offset_sectors: u32,
}

/// A bio that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The bio as it was submitted.
    pub bio: Bio,
    /// The first failure among its parts, or [`Status::Ok`].
    pub status: Status,
}

#[derive(Clone, Debug)]
pub(super) struct BioSlot {
    bio: Bio,
    status: Status,
    /// Parts that have not ended; 1 for a bio in one piece.
    parts: u32,
    /// The bio that this is a part of, or `NONE`.
    parent: u32,
    pub(super) next: u32,
}

/// The bios of one queue, and the list of those that have ended.
#[derive(Debug)]
pub struct Bios {
    pub(super) slots: Vec<BioSlot>,
    free: u32,
    ended_first: u32,
    ended_last: u32,
    in_use: u32,
}

impl core::ops::Index<BioId> for Bios {
    type Output = Bio;
    fn index(&self, id: BioId) -> &Bio {
        &self.slots[id.index()].bio
    }
}

impl BioSlot {
    const IDLE: Self =
        Self { bio: Bio::read(0, 0, 0), status: Status::Ok, parts: 0, parent: NONE, next: NONE };
}

impl Bios {
    /// Returns a pool for `count` bios and parts of bios, with all memory reserved.
    ///
    /// # Panics
    ///
    /// Panics if `count` is `u32::MAX`.
    #[must_use]
    pub fn new(count: u32) -> Self {
        assert!(count < NONE, "the number of bios must leave one index free");
        // Each idle slot names the next one; the last names none.
        let nexts = (1..=count).map(|next| if next < count { next } else { NONE });
        Self {
            slots: nexts.map(|next| BioSlot { next, ..BioSlot::IDLE }).collect(),
            free: if count == 0 { NONE } else { 0 },
            ended_first: NONE,
            ended_last: NONE,
            in_use: 0,
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(count: u32) -> usize {
        count as usize * size_of::<BioSlot>()
    }

    /// The number of bios, and parts of split ones, in the pool.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Whether the pool is full.
    pub(crate) const fn is_full(&self) -> bool {
        self.free == NONE
    }

    pub(crate) fn take(&mut self, bio: Bio) -> Option<BioId> {
        let at = self.free;
        let slot = self.slots.get_mut(at as usize)?;
        self.free = slot.next;
        *slot = BioSlot { bio, status: Status::Ok, parts: 1, parent: NONE, next: NONE };
        self.in_use += 1;
        Some(BioId(at))
    }

    /// Takes a part of `whole`: `sectors` from `sector` on. Its end counts towards `whole`.
    pub(crate) fn take_part(
        &mut self,
        whole: BioId,
        sector: u64,
        sectors: u32,
        segments: u16,
    ) -> Option<BioId> {
        let bio = Bio { sector, sectors, segments, ..self[whole] };
        debug_assert!(
            sector >= self[whole].sector && bio.end_sector() <= self[whole].end_sector(),
            "{bio:?} is a part of {:?}",
            self[whole]
        );
        let part = self.take(bio)?;
        self.slots[part.index()].parent = whole.0;
        self.slots[whole.index()].parts += 1;
        Some(part)
    }

    /// Returns the submitted bio that `id` is a part of, if it is one.
    pub(crate) fn whole_of(&self, id: BioId) -> Option<BioId> {
        let parent = self.slots[id.index()].parent;
        (parent != NONE).then_some(BioId(parent))
    }

    /// Whether a submitted bio begins to enter with `id`: the bio is whole, or `id` is its first
    /// part.
    pub(crate) fn begins(&self, id: BioId) -> bool {
        self.whole_of(id).is_none_or(|whole| self[id].sector == self[whole].sector)
    }

    /// Gives back a bio that was taken and never joined a request.
    pub(crate) fn untake(&mut self, id: BioId) {
        debug_assert_eq!(
            self.slots[id.index()].next,
            NONE,
            "[bio-ends-once]: bio {} has joined a request",
            id.0
        );
        let parent = self.slots[id.index()].parent;
        if parent != NONE {
            self.slots[parent as usize].parts -= 1;
        }
        self.free(id.0);
    }

    fn free(&mut self, at: u32) {
        debug_assert!(self.in_use > 0, "[bio-ends-once]: bio {at} is free already");
        self.slots[at as usize].next = self.free;
        self.free = at;
        self.in_use -= 1;
    }

    /// Ends `first` and every bio linked behind it: those within the first `done` sectors well, the
    /// others with `status`.
    #[inline(always)]
    pub(crate) fn end_chain(&mut self, first: BioId, done: u32, status: Status) {
        let slot = &self.slots[first.index()];
        if slot.next == NONE && slot.parent == NONE && done == 0 {
            self.drop_part(first, status); // one bio, the usual case
        } else {
            self.end_each(first, done, status);
        }
    }

    fn end_each(&mut self, first: BioId, done: u32, status: Status) {
        let mut at = first.0;
        let mut done = done;
        while at != NONE {
            // The link is read first: the slot of a part is free, and in another chain, once the part has ended.
            let BioSlot { next, bio: Bio { sectors, .. }, .. } = self.slots[at as usize];
            // Of bios of 8, 8 and 8 sectors with 12 done, the first ends well, and the other two fail.
            let is_done = (1..=done).contains(&sectors);
            done = if is_done { done - sectors } else { 0 };
            self.end_part(at, if is_done { Status::Ok } else { status });
            at = next;
        }
    }

    /// Ends the part or whole bio at `at`. A whole bio that has no parts left joins the ended list.
    fn end_part(&mut self, at: u32, status: Status) {
        let parent = self.slots[at as usize].parent;
        let whole = if parent == NONE {
            at
        } else {
            self.free(at);
            parent
        };
        self.drop_part(BioId(whole), status);
    }

    /// Counts one part of `whole` as ended. With none left the whole bio has ended.
    #[inline(always)]
    pub(crate) fn drop_part(&mut self, whole: BioId, status: Status) {
        let slot = &mut self.slots[whole.index()];
        assert!(slot.parts > 0, "[bio-ends-once]: bio {} ended twice", whole.0);
        if slot.status == Status::Ok {
            slot.status = status; // the first failure stays
        }
        slot.parts -= 1;
        if slot.parts > 0 {
            return;
        }
        slot.next = NONE;
        if self.ended_first == NONE {
            self.ended_first = whole.0;
        } else {
            self.slots[self.ended_last as usize].next = whole.0;
        }
        self.ended_last = whole.0;
    }

    #[inline]
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        let at = self.ended_first;
        let slot = self.slots.get(at as usize)?;
        let ended = Ended { bio: slot.bio, status: slot.status };
        self.ended_first = slot.next;
        self.free(at);
        Some(ended)
    }

    pub(super) fn piece(&self, slot: &BioSlot) -> Piece {
        let start = match self.slots.get(slot.parent as usize) {
            Some(whole) => whole.bio.sector,
            None => slot.bio.sector,
        };
        Piece {
            cookie: slot.bio.cookie,
            sector: slot.bio.sector,
            sectors: slot.bio.sectors,
            offset_sectors: u32::try_from(slot.bio.sector - start)
                .expect("a part lies within its bio, whose length is 32 bits"),
        }
    }
}

/// Returns how many segments of a bio a part of it has: in proportion, rounded up, at least one.
///
/// Payloads are opaque, so segments are taken to be of equal size.
pub(crate) fn segments_of_part(bio: &Bio, part_sectors: u32) -> u16 {
    let share =
        (u64::from(bio.segments) * u64::from(part_sectors)).div_ceil(u64::from(bio.sectors));
    u16::try_from(share).expect("a share of 16 bits is 16 bits").max(1)
}

/// Returns the most sectors that a part of `bio` starting at `sector` may have under `limits`: a
/// multiple of the logical block, at least one block.
pub(crate) fn max_part_sectors(bio: &Bio, sector: u64, limits: &Limits) -> u32 {
    let mut max = limits.max_sectors_at(bio.op, sector);
    if bio.segments > limits.max_segments && matches!(bio.op, Op::Read | Op::Write) {
        let by_segments =
            u64::from(bio.sectors) * u64::from(limits.max_segments) / u64::from(bio.segments);
        max = u32::try_from(by_segments).map_or(max, |sectors| sectors.min(max));
    }
    let block = limits.logical_block_sectors;
    (max & !(block - 1)).max(block)
}
