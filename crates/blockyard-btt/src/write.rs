//! Writing sectors. A batch of sectors takes two fences.
//!
//! # Rules
//!
//! - **[data-before-log]** The data, and the sector and old block in the first word of the log
//!   entry, are durable before the second word of the entry is stored. The second word commits the
//!   write.
//! - **[log-before-map]** The second word is durable before the map entry is stored and before the
//!   write is acknowledged. The map entry need not be durable then, because recovery can store it.
//! - **[map-before-next-log]** The map entry is durable before the lane's next log entry counts,
//!   because a lane remembers only its newest entry. The first fence of the same thread's next
//!   write ensures this. Another thread that is about to change this entry, or one of the same
//!   word, writes the entry back before its own first fence: so before it logs the entry as its old
//!   one, or replaces the pending mark ([one-pending-entry]).
//! - **[old-entry-still-current]** Nobody changes a map entry between the load of the old entry and
//!   the store of the new one: the sector's word is locked, and was unchanged since the load.
//! - **[lock-holder-never-waits]** A thread that holds a word never waits for another word. A
//!   reader that publishes a block waits for no word.
//!
//! A batch writes its first log words back before it locks a word: those of all sectors whose words
//! are unlocked; of sectors that share a word, that of the first. A locked instruction waits for
//! every write-back and every store past the caches before it, so the batch waits once for all.

use super::address::PostmapAba;
use super::arena::Arena;
use super::device::{Btt, Spot};
use super::error::IoError;
use super::flog::FlogEntry;
use super::lanes::{LaneState, SetId};
use super::layout::MAP_ENTRY_BYTES;
use super::map_entry::{MapEntry, SectorState};
use super::memory::{MediaError, Memory};
use super::pending::{BATCH_MAX, LARGE_BATCH_MAX, Pending};
use super::policy::ReadTracking;
use super::readers::BlockId;
use super::sync::{Ordering, fence};
use super::versions::{Observed, Versions, WordIndex};

/// A sector that is being written.
#[derive(Clone, Copy, Default)]
struct Staged {
    spot: Spot,
    at: WordIndex,
    lane: u32,
    /// The block that holds the new data.
    block: PostmapAba,
    /// The position of the map entry.
    map_at: u64,
    /// The position and the number of the log entry.
    log_at: u64,
    seq: u32,
    /// Whether an earlier sector of the batch, which is not written yet, has the same word.
    follows: bool,
    /// The word before it was locked, and the map entry that was loaded after it.
    seen: Observed,
    entry: MapEntry,
}

impl<M: Memory> Btt<M> {
    /// Writes one sector through a set of lanes.
    #[inline]
    pub(super) fn write_one(
        &self,
        set: SetId,
        pending: &mut Pending,
        lba: u64,
        from: &[u8],
    ) -> Result<(), IoError> {
        let mut unused = self.lanes.lanes_of(set).len();
        let early = |error| self.end_batch_early(error);
        let mut one = Staged::default();
        self.stage(set, &mut unused, lba, from, &mut one).map_err(early)?;
        self.lock_one(set, &mut one).map_err(early)?;
        self.commit(set, pending, core::slice::from_ref(&one))
    }

    /// Writes sectors through a set of lanes.
    pub(super) fn write_sectors<'a>(
        &self,
        set: SetId,
        pending: &mut Pending,
        mut sectors: impl ExactSizeIterator<Item = (u64, &'a [u8])>,
    ) -> Result<(), IoError> {
        let batch_max = self.lanes.batch_max().min(pending.capacity());
        debug_assert!(batch_max > 0, "a batch has room for a sector");
        while sectors.len() > 0 {
            match sectors.len().min(batch_max) {
                1 => {
                    if let Some((lba, from)) = sectors.next() {
                        self.write_one(set, pending, lba, from)?;
                    }
                }
                few @ ..=BATCH_MAX => {
                    self.write_batch::<BATCH_MAX>(set, pending, (&mut sectors).take(few))?;
                }
                many => self.write_large_batch(set, pending, (&mut sectors).take(many))?,
            }
        }
        Ok(())
    }

    /// Writes a large batch, out of line because it needs much stack.
    #[cold]
    #[inline(never)]
    fn write_large_batch<'a>(
        &self,
        set: SetId,
        pending: &mut Pending,
        sectors: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> Result<(), IoError> {
        self.write_batch::<LARGE_BATCH_MAX>(set, pending, sectors)
    }

    /// Writes up to `N` sectors at once.
    #[inline]
    fn write_batch<'a, const N: usize>(
        &self,
        set: SetId,
        pending: &mut Pending,
        sectors: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> Result<(), IoError> {
        let mut staged = [Staged::default(); N];
        let mut count = 0;
        let mut unused = self.lanes.lanes_of(set).len();
        let early = |error| self.end_batch_early(error);
        for (one, (lba, from)) in staged.iter_mut().zip(sectors) {
            self.stage(set, &mut unused, lba, from, one).map_err(early)?;
            count += 1;
        }
        debug_assert!(count > 0 && count <= N, "a batch has sectors");
        let mut rest = &mut staged[..count];
        while !rest.is_empty() {
            // This thread holds no word here ([lock-holder-never-waits]).
            self.wait_until(|| !self.observe(rest[0].at).is_locked());
            self.log_all_old(set, rest).map_err(early)?;
            let locked = self.lock_words(rest).map_err(early)?;
            if locked == 0 {
                continue;
            }
            let (now, later) = rest.split_at_mut(locked);
            self.commit(set, pending, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Issues the fence of a batch that fails before its first one. The lanes it tried count as
    /// used, and blocks that other lanes just freed are written next
    /// ([freed-block-waits-for-fence]).
    #[cold]
    fn end_batch_early(&self, error: IoError) -> IoError {
        let _ = self.memory.fence();
        error
    }

    /// Writes a sector's data to the free block of a lane that its batch has not used yet. This
    /// fills `staged` in place, but for what [`Self::log_old`] finds: a copy of what was just
    /// stored can wait until the data have left the store buffer.
    #[inline]
    fn stage(
        &self,
        set: SetId,
        unused: &mut usize,
        lba: u64,
        from: &[u8],
        staged: &mut Staged,
    ) -> Result<(), IoError> {
        debug_assert_eq!(from.len(), self.sector_bytes as usize, "one sector");
        let spot = self.spot(lba);
        self.writable(spot)?;
        let arena = self.arena(spot);
        let map_at = arena.map_at(spot.lba);
        self.memory.prefetch(map_at, MAP_ENTRY_BYTES);
        while *unused > 0 {
            *unused -= 1;
            let lane = self.lanes.next(set);
            self.wait_for_readers(set, spot.arena, lane);
            let state = self.lanes.state(spot.arena, lane);
            match self.write_free_block(arena, state, from) {
                // The bad block stays with the lane. Another lane needs a fence first, as in
                // `end_batch_early`.
                Err(MediaError::Bad) => self.memory.fence()?,
                done => {
                    done?;
                    let (slot, seq) = state.next_entry();
                    (staged.spot, staged.at) = (spot, Versions::at(lba));
                    (staged.lane, staged.block) = (lane, state.free());
                    (staged.map_at, staged.log_at) = (map_at, arena.entry_at(lane, slot));
                    staged.seq = seq;
                    return Ok(());
                }
            }
        }
        Err(IoError::Media(MediaError::Bad))
    }

    /// Writes the free block of a lane. If the block is known or found to be bad, it is repaired
    /// first.
    #[inline]
    fn write_free_block(
        &self,
        arena: &Arena,
        lane: &LaneState,
        from: &[u8],
    ) -> Result<(), MediaError> {
        let at = arena.block_at(lane.free());
        if lane.is_bad() {
            self.clear_bad_block(arena, lane)?;
        }
        match self.memory.write(at, from) {
            Err(MediaError::Bad) => {
                self.clear_bad_block(arena, lane)?;
                self.memory.write(at, from)
            }
            done => done,
        }
    }

    /// Repairs the free block of a lane, which may be bad, by zeroing it.
    #[cold]
    fn clear_bad_block(&self, arena: &Arena, lane: &LaneState) -> Result<(), MediaError> {
        self.zero_block(arena, lane.free())?;
        lane.set_good();
        Ok(())
    }

    pub(super) fn zero_block(&self, arena: &Arena, block: PostmapAba) -> Result<(), MediaError> {
        self.memory.zero(arena.block_at(block), arena.layout.internal_lbasize.into())
    }

    /// Returns once nobody reads the free block of a lane.
    #[inline]
    fn wait_for_readers(&self, set: SetId, arena: usize, lane: u32) {
        let state = self.lanes.state(arena, lane);
        match self.policy.tracking {
            ReadTracking::Versions if self.lanes.has_several_lanes() => {}
            // The block may have been freed just now ([same-version-same-block]).
            ReadTracking::Versions => fence(Ordering::SeqCst),
            ReadTracking::Indexed => self.wait_until(|| {
                if !state.is_unread() {
                    self.lanes
                        .lanes_of(set)
                        .for_each(|lane| self.lanes.state(arena, lane).set_unread(true));
                    self.each_reader(|read| {
                        let lanes = self
                            .lanes
                            .lanes_of(set)
                            .filter(|&lane| self.free_block(arena, lane) == read);
                        lanes.for_each(|lane| self.lanes.state(arena, lane).set_unread(false));
                    });
                }
                state.is_unread()
            }),
            ReadTracking::Scan | ReadTracking::ScanPadded => {
                self.wait_until_unread(self.free_block(arena, lane));
            }
        }
    }

    fn free_block(&self, arena: usize, lane: u32) -> BlockId {
        BlockId::new(arena, self.lanes.state(arena, lane).free())
    }

    /// Returns once `is_over`, at which another thread is at work.
    pub(super) fn wait_until(&self, mut is_over: impl FnMut() -> bool) {
        for turn in 0.. {
            if is_over() {
                return;
            }
            self.memory.relax(turn);
        }
    }

    /// Returns once no reader publishes this block.
    pub(super) fn wait_until_unread(&self, block: BlockId) {
        self.wait_until(|| !self.is_read(block));
    }

    /// Loads the map entry of a sector and stores it in the log as the old one, unless the sector's
    /// word is locked.
    #[inline]
    fn log_old(&self, set: SetId, one: &mut Staged) -> Result<(), IoError> {
        one.seen = self.observe(one.at);
        if one.seen.is_locked() {
            return Ok(());
        }
        one.entry = self.entry(one.spot)?;
        if let Some(lba) = self.versions.pending_of_other_set(one.at, one.seen, set.0) {
            // [map-before-next-log]
            self.write_back_map(lba, lba + 1);
        }
        if matches!(one.entry.state(), SectorState::Zero | SectorState::Error) {
            // The thread that changed the state may not have made it durable, and libpmemblk's
            // recovery compares it.
            self.memory.write_back(one.map_at, MAP_ENTRY_BYTES);
        }
        self.memory.store_long(one.log_at, self.logged(one).words()[0])?;
        self.memory.write_back(one.log_at, 8);
        Ok(())
    }

    /// Locks the word of a sector if the logged entry is still the old one
    /// ([old-entry-still-current]).
    #[inline]
    fn lock(&self, one: &Staged) -> Result<bool, IoError> {
        if !self.try_lock(one.at, one.seen) {
            return Ok(false);
        }
        // The last holder may have unlocked it in the middle of a failed write.
        if self.broken.load(Ordering::Acquire) {
            self.unlock(one.at, one.seen);
            return Err(IoError::Broken);
        }
        Ok(true)
    }

    /// Logs the old entry of a sector and locks its word, and waits for that as long as it takes.
    /// The caller holds no word ([lock-holder-never-waits]).
    #[inline]
    fn lock_one(&self, set: SetId, one: &mut Staged) -> Result<(), IoError> {
        for turn in 0.. {
            self.log_old(set, one)?;
            if self.lock(one)? {
                break;
            }
            if one.seen.is_locked() {
                self.memory.relax(turn);
            }
        }
        Ok(())
    }

    /// Logs the old entries of `staged`, before any word is locked. Of sectors that share a word,
    /// only the first can be written next.
    #[inline]
    fn log_all_old(&self, set: SetId, staged: &mut [Staged]) -> Result<(), IoError> {
        for next in 0..staged.len() {
            let (earlier, rest) = staged.split_at_mut(next);
            let one = &mut rest[0];
            one.follows = earlier.iter().any(|other| other.at == one.at);
            if !one.follows {
                self.log_old(set, one)?;
            }
        }
        Ok(())
    }

    /// Locks as many words of `staged` as it can without waiting ([lock-holder-never-waits]). These
    /// sectors are moved to the front; returns their number. The others keep their order, so of two
    /// writes to one sector the later one wins.
    #[inline]
    fn lock_words(&self, staged: &mut [Staged]) -> Result<usize, IoError> {
        let mut locked = 0;
        for next in 0..staged.len() {
            if staged[next].follows {
                continue;
            }
            match self.lock(&staged[next]) {
                Ok(true) => {
                    if locked < next {
                        staged[locked..=next].rotate_right(1);
                    }
                    locked += 1;
                }
                Ok(false) => {}
                Err(error) => {
                    unlock_all(self, &staged[..locked]);
                    return Err(error);
                }
            }
        }
        Ok(locked)
    }

    /// Commits the writes whose words are locked.
    #[inline]
    fn commit(&self, set: SetId, pending: &mut Pending, locked: &[Staged]) -> Result<(), IoError> {
        debug_assert!(
            locked.iter().enumerate().all(|(n, a)| locked[..n].iter().all(|b| a.at != b.at)),
            "each word is locked once"
        );
        // [data-before-log] and [map-before-next-log]. Nothing of these writes has been committed
        // yet. If the fence fails, it is unknown whether the map entries of earlier writes are
        // durable.
        if let Err(error) = self.memory.fence() {
            self.broken.store(true, Ordering::Release);
            unlock_all(self, locked);
            return Err(error.into());
        }
        pending.take().for_each(|(at, left)| self.clear_pending(at, left));
        if let Err(error) = self.log(locked).and_then(|()| self.map(locked)) {
            // Recovery finds out whether the writes were committed.
            self.broken.store(true, Ordering::Release);
            unlock_all(self, locked);
            return Err(error.into());
        }
        for one in locked {
            let freed = one.entry.block(one.spot.lba);
            // Readers may still read the block, so it is repaired only when it is written
            // (`stage`).
            let bad = one.entry.state() == SectorState::Error;
            self.lanes.state(one.spot.arena, one.lane).advance(freed, bad);
            let lba = self.arena(one.spot).first_lba + u64::from(one.spot.lba.0);
            pending.push(one.at, self.unlock_pending(one.at, one.seen, lba, set));
        }
        Ok(())
    }

    /// Stores the second words of the log entries, and waits until they are durable
    /// ([log-before-map]).
    #[inline]
    fn log(&self, locked: &[Staged]) -> Result<(), MediaError> {
        for one in locked {
            let at = one.log_at + 8;
            self.memory.store_long(at, self.logged(one).words()[1])?;
            self.memory.write_back(at, 8);
        }
        self.memory.fence()
    }

    /// Stores the map entries.
    #[inline]
    fn map(&self, locked: &[Staged]) -> Result<(), MediaError> {
        for one in locked {
            self.memory.store(one.map_at, MapEntry::normal(one.block).0)?;
            self.memory.write_back(one.map_at, MAP_ENTRY_BYTES);
        }
        Ok(())
    }

    /// Returns the log entry of a write.
    #[inline]
    fn logged(&self, one: &Staged) -> FlogEntry {
        let dialect = self.arena(one.spot).dialect;
        FlogEntry {
            lba: one.spot.lba.0,
            old_map: dialect.logged_old(one.entry, one.spot.lba),
            new_map: dialect.logged_new(one.block),
            seq: one.seq,
        }
    }

    /// Makes the map entries that this thread changed durable.
    pub(super) fn settle(&self, pending: &mut Pending) -> Result<(), IoError> {
        let mut left = pending.take().peekable();
        if left.peek().is_none() {
            return Ok(());
        }
        if let Err(error) = self.memory.fence() {
            self.broken.store(true, Ordering::Release);
            return Err(error.into());
        }
        left.for_each(|(at, seen)| self.clear_pending(at, seen));
        Ok(())
    }
}

/// Unlocks the words of writes that failed.
fn unlock_all<M: Memory>(btt: &Btt<M>, locked: &[Staged]) {
    for one in locked {
        btt.unlock(one.at, one.seen);
    }
}
