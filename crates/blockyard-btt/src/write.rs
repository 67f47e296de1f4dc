//! Writing sectors.
//!
//! # Rules
//!
//! - **W1.** The data are durable, and which sector and which old block they go with, before the second word
//!   of the log entry is stored: with that word the write has happened.
//! - **W2.** That word is durable before the map entry is stored, and before the write is acknowledged.
//!   Recovery stores the map entry if need be, so it need not be durable yet.
//! - **W3.** It is durable before a lane's next log entry counts, as a lane is remembered for its newest
//!   entry only: the first fence of the same thread's next write sees to that. Another thread, which is to
//!   change this entry or one that shares its word, writes it back before its own first fence, and so before
//!   it logs it as its old one, or hides who has yet to make it durable (`versions` S3).
//! - **W4.** Between a look at the old entry and the new one nobody else changes it: the word of the sector
//!   is held, and was as it was when looked at.
//! - **W5.** Who holds a word never waits for another one, nor a reader that publishes a block for any.
//!
//! So a write has two fences, however many sectors it has, up to a batch.

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

/// A sector on its way.
#[derive(Clone, Copy, Default)]
struct Staged {
    spot: Spot,
    at: WordIndex,
    lane: u32,
    /// Where its data are.
    block: PostmapAba,
    /// The word when it was looked at, and the map entry behind it.
    seen: Observed,
    entry: MapEntry,
}

impl<M: Memory> Btt<M> {
    /// Writes sectors through a set of lanes.
    #[inline]
    pub(super) fn write_sectors<'a>(
        &self,
        set: SetId,
        pending: &mut Pending,
        mut sectors: impl ExactSizeIterator<Item = (u64, &'a [u8])>,
    ) -> Result<(), IoError> {
        let most = self.lanes.batch_max().min(pending.most());
        while sectors.len() > 0 {
            match sectors.len().min(most) {
                1 => self.write_batch::<1>(set, pending, (&mut sectors).take(1))?,
                few @ ..=BATCH_MAX => {
                    self.write_batch::<BATCH_MAX>(set, pending, (&mut sectors).take(few))?;
                }
                many => self.write_large_batch(set, pending, (&mut sectors).take(many))?,
            }
        }
        Ok(())
    }

    /// Apart, as what it needs of the stack is much.
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
        for (one, (lba, from)) in staged.iter_mut().zip(sectors) {
            self.stage(set, &mut unused, lba, from, one)
                .map_err(|error| self.end_batch_early(error))?;
            count += 1;
        }
        let mut rest = &mut staged[..count];
        while !rest.is_empty() {
            let held = self.lock_words(set, rest).map_err(|error| self.end_batch_early(error))?;
            let (now, later) = rest.split_at_mut(held);
            self.commit(set, pending, now)?;
            rest = later;
        }
        Ok(())
    }

    /// A batch ends before its first fence: the lanes that were tried count as used, and blocks of other
    /// lanes, lost just now, are written next (`lanes` N2).
    #[cold]
    fn end_batch_early(&self, error: IoError) -> IoError {
        let _ = self.memory.fence();
        error
    }

    /// Writes a sector's data to the free block of one of the lanes that its batch has not used yet.
    #[inline]
    fn stage(
        &self,
        set: SetId,
        unused: &mut usize,
        lba: u64,
        from: &[u8],
        one: &mut Staged,
    ) -> Result<(), IoError> {
        one.spot = self.spot(lba);
        one.at = Versions::at(lba);
        self.writable(one.spot)?;
        let arena = self.arena(one.spot);
        self.memory.prefetch(arena.map_at(one.spot.lba), MAP_ENTRY_BYTES);
        while *unused > 0 {
            *unused -= 1;
            one.lane = self.lanes.next(set);
            self.wait_for_readers(set, one.spot.arena, one.lane);
            let lane = self.lanes.state(one.spot.arena, one.lane);
            one.block = lane.free();
            match self.write_free_block(arena, lane, from) {
                // It stays the lane's, and another one is tried: behind a fence, as in `end_batch_early`.
                Err(MediaError::Bad) => self.memory.fence()?,
                done => return Ok(done?),
            }
        }
        Err(IoError::Media(MediaError::Bad))
    }

    /// Writes the free block of a lane, which is mended before where it is known or turns out to be bad.
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

    /// Zeroes the free block of a lane, which may be bad.
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
        let id = |lane| BlockId::new(arena, self.lanes.state(arena, lane).free());
        let mut turn = 0;
        let mut again = || {
            self.memory.relax(turn);
            turn += 1;
        };
        match self.policy.tracking {
            ReadTracking::Versions if self.lanes.rotates() => {}
            // The block may have been lost just now (`versions` S2).
            ReadTracking::Versions => fence(Ordering::SeqCst),
            ReadTracking::Indexed => {
                while !state.is_unread() {
                    self.lanes
                        .lanes_of(set)
                        .for_each(|lane| self.lanes.state(arena, lane).set_unread(true));
                    self.each_reader(|read| {
                        let lanes = self.lanes.lanes_of(set).filter(|&lane| id(lane) == read);
                        lanes.for_each(|lane| self.lanes.state(arena, lane).set_unread(false));
                    });
                    if !state.is_unread() {
                        again();
                    }
                }
            }
            ReadTracking::Scan | ReadTracking::ScanPadded => {
                self.wait_until_unread(id(lane));
            }
        }
    }

    /// Returns once nobody publishes that it reads this block.
    pub(super) fn wait_until_unread(&self, block: BlockId) {
        let mut turn = 0;
        while self.is_read(block) {
            self.memory.relax(turn);
            turn += 1;
        }
    }

    /// Holds the words of the first of `staged`, and of as many others as can be had at once (W5); their first
    /// log words are stored, and they come first then. How many. The others stay in order: of two for one
    /// sector the later one stays.
    #[inline]
    fn lock_words(&self, set: SetId, staged: &mut [Staged]) -> Result<usize, IoError> {
        let mut held = 0;
        for next in 0..staged.len() {
            let at = staged[next].at;
            if staged[held..next].iter().any(|left| left.at == at) {
                continue; // behind one that was not held
            }
            match self.lock_and_log_old(set, &mut staged[next], next == 0) {
                Ok(true) => {
                    if held < next {
                        staged[held..=next].rotate_right(1);
                    }
                    held += 1;
                }
                Ok(false) => {}
                Err(error) => {
                    unlock_all(self, &staged[..held]);
                    return Err(error);
                }
            }
        }
        Ok(held)
    }

    /// Holds the word of a sector, with what it had (W4) stored in the log; gives up at once unless it may
    /// `wait`.
    #[inline]
    fn lock_and_log_old(&self, set: SetId, one: &mut Staged, wait: bool) -> Result<bool, IoError> {
        for turn in 0.. {
            one.seen = self.observe(one.at);
            if one.seen.is_locked() {
                if !wait {
                    return Ok(false);
                }
                self.memory.relax(turn);
                continue;
            }
            one.entry = self.entry(one.spot)?;
            if let Some(lba) = self.versions.pending_of_other_set(one.at, one.seen, set.0) {
                // W3.
                self.write_back_map(lba, lba + 1);
            }
            if matches!(one.entry.state(), SectorState::Zero | SectorState::Error) {
                // Who changed the state may not have made it durable, and libpmemblk compares it when it
                // recovers.
                self.memory.write_back(self.arena(one.spot).map_at(one.spot.lba), MAP_ENTRY_BYTES);
            }
            let at = self.entry_at(one);
            self.memory.store_long(at, self.logged(one).words()[0])?;
            self.memory.write_back(at, 8);
            if self.try_lock(one.at, one.seen) {
                // Who held it before may have left it in the middle of a write that failed.
                if self.broken.load(Ordering::Acquire) {
                    self.unlock(one.at, one.seen);
                    return Err(IoError::Broken);
                }
                return Ok(true);
            }
        }
        unreachable!("a loop without an end")
    }

    /// Makes the writes whose words are held happen.
    #[inline]
    fn commit(&self, set: SetId, pending: &mut Pending, held: &[Staged]) -> Result<(), IoError> {
        // W1. Until here nothing of these writes has happened; whether map entries of former ones are durable
        // is not known if this fails.
        if let Err(error) = self.memory.fence() {
            self.broken.store(true, Ordering::Release);
            unlock_all(self, held);
            return Err(error.into());
        }
        pending.take().for_each(|(at, left)| self.clear_pending(at, left));
        if let Err(error) = self.log(held).and_then(|()| self.map(held)) {
            // Whether it has happened is for recovery to find.
            self.broken.store(true, Ordering::Release);
            unlock_all(self, held);
            return Err(error.into());
        }
        for one in held {
            let lost = one.entry.block(one.spot.lba);
            // Readers may still be there: it is mended when it is written (`stage`).
            let bad = one.entry.state() == SectorState::Error;
            self.lanes.state(one.spot.arena, one.lane).advance(lost, bad);
            let lba = self.arena(one.spot).first_lba + u64::from(one.spot.lba.0);
            pending.push(one.at, self.unlock_pending(one.at, one.seen, lba, set));
        }
        Ok(())
    }

    /// Stores the second words of log entries, and waits until they are durable (W2).
    #[inline]
    fn log(&self, held: &[Staged]) -> Result<(), MediaError> {
        for one in held {
            let at = self.entry_at(one) + 8;
            self.memory.store_long(at, self.logged(one).words()[1])?;
            self.memory.write_back(at, 8);
        }
        self.memory.fence()
    }

    /// Stores map entries.
    #[inline]
    fn map(&self, held: &[Staged]) -> Result<(), MediaError> {
        for one in held {
            let at = self.arena(one.spot).map_at(one.spot.lba);
            self.memory.store(at, MapEntry::normal(one.block).0)?;
            self.memory.write_back(at, MAP_ENTRY_BYTES);
        }
        Ok(())
    }

    /// What is logged of a write.
    #[inline]
    fn logged(&self, one: &Staged) -> FlogEntry {
        let arena = self.arena(one.spot);
        let (_, seq) = self.lanes.state(one.spot.arena, one.lane).next_entry();
        FlogEntry {
            lba: one.spot.lba.0,
            old_map: arena.dialect.logged_old(one.entry, one.spot.lba),
            new_map: arena.dialect.logged_new(one.block),
            seq,
        }
    }

    /// Where it is logged.
    #[inline]
    fn entry_at(&self, one: &Staged) -> u64 {
        let (slot, _) = self.lanes.state(one.spot.arena, one.lane).next_entry();
        self.arena(one.spot).entry_at(one.lane, slot)
    }

    /// Makes this thread's map entries durable.
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

/// Leaves words of writes that did not happen.
fn unlock_all<M: Memory>(btt: &Btt<M>, held: &[Staged]) {
    for one in held {
        btt.unlock(one.at, one.seen);
    }
}
