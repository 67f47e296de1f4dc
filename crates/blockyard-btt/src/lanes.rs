//! Lanes: their free blocks, and which thread may use them.
//!
//! # Rules
//!
//! - **[lane-set-one-user]** A set of lanes has one user at a time: the thread that owns it, or the
//!   thread that took it for a call. Only the user changes the state of its lanes.
//! - **[freed-block-waits-for-fence]** The lanes of a set are used in turn, and a batch uses at
//!   most half of them, so a freed block is not written before a fence has passed
//!   ([same-version-same-block]). If a free block stays bad, the batch uses another lane after a
//!   fence, and no lane twice.
//! - **[handed-over-set-durable]** A thread makes everything durable that it did with a set before
//!   another thread gets the set, because a fence covers only its own thread.

use super::address::PostmapAba;
use super::flog::successor;
use super::padded::Padded;
use super::pending::LARGE_BATCH_MAX;
use super::policy::{self, LaneChoice};
use super::recover::RecoveredLane;
use super::sync::{AtomicBool, AtomicU32, Ordering};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The lanes of a device. See the [module](self).
#[derive(Debug)]
pub(super) struct Lanes {
    /// By arena and lane, [`PER_LINE`] places to a cache line, one lane every `1 << spread` places.
    states: Box<[Padded<[LaneState; PER_LINE]>]>,
    /// The power of two that gives each set at least a cache line to itself.
    spread: u32,
    sets: Box<[Padded<Set>]>,
    /// Lanes in use of each arena.
    lanes: u32,
    lanes_per_set: u32,
    /// How many sets, from the first on, threads can have to themselves.
    exclusive: u32,
    /// The number of sets taken so far, if sets are taken in turn.
    counter: Option<Padded<AtomicU32>>,
    /// The number of the next thread that shares a set.
    next_sharer: AtomicU32,
}

#[derive(Debug, Default)]
struct Set {
    taken: AtomicBool,
    /// The lane of the set to use next.
    turn: AtomicU32,
}

/// Places for lane states in a cache line.
const PER_LINE: usize = 8;

/// The state of a lane in one arena ([lane-set-one-user]).
#[derive(Debug, Default)]
pub(super) struct LaneState {
    free: AtomicU32,
    /// The newest entry: its number, and in bit 2 its slot. Bit 3: nobody reads the free block. Bit
    /// 4: the free block may be bad.
    log: AtomicU32,
}

const SLOT_SHIFT: u32 = 2;
const UNREAD: u32 = 8;
const BAD: u32 = 16;

impl LaneState {
    fn new(found: &RecoveredLane) -> Self {
        debug_assert!(found.slot < 2 && matches!(found.seq, 1..=3), "newest entry of a valid log");
        let bad = if found.bad { BAD } else { 0 };
        let log = found.seq | (found.slot as u32) << SLOT_SHIFT | bad;
        Self { free: AtomicU32::new(found.free.0), log: AtomicU32::new(log) }
    }

    /// The lane's free block.
    #[inline]
    pub(super) fn free(&self) -> PostmapAba {
        PostmapAba(self.free.load(Ordering::Relaxed))
    }

    /// Returns the slot and the sequence number of the next entry.
    #[inline]
    pub(super) fn next_entry(&self) -> (usize, u32) {
        let log = self.log.load(Ordering::Relaxed);
        (1 - (log >> SLOT_SHIFT & 1) as usize, successor(log & 3))
    }

    /// Records that the next entry was written. `free` is the freed block, which may be `bad`.
    #[inline]
    pub(super) fn advance(&self, free: PostmapAba, bad: bool) {
        let (slot, seq) = self.next_entry();
        let bad = if bad { BAD } else { 0 };
        self.free.store(free.0, Ordering::Relaxed);
        self.log.store(seq | (slot as u32) << SLOT_SHIFT | bad, Ordering::Relaxed);
    }

    /// Whether the free block may be bad: its former sector was marked as lost.
    #[inline]
    pub(super) fn is_bad(&self) -> bool {
        self.log.load(Ordering::Relaxed) & BAD != 0
    }

    /// Records that the free block was repaired.
    pub(super) fn set_good(&self) {
        self.log.store(self.log.load(Ordering::Relaxed) & !BAD, Ordering::Relaxed);
    }

    /// Whether nobody reads the free block, as far as is known.
    pub(super) fn is_unread(&self) -> bool {
        self.log.load(Ordering::Relaxed) & UNREAD != 0
    }

    /// Records whether nobody reads the free block from now on.
    pub(super) fn set_unread(&self, unread: bool) {
        let log = self.log.load(Ordering::Relaxed) & !UNREAD;
        self.log.store(if unread { log | UNREAD } else { log }, Ordering::Relaxed);
    }
}

/// The number of a set that a thread uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetId(pub(super) u32);

impl Lanes {
    /// Returns the lanes of `arenas` as their logs describe them.
    pub(super) fn new(arenas: &[Vec<RecoveredLane>], choice: LaneChoice) -> Self {
        let lanes = arenas.iter().map(Vec::len).min().unwrap_or(0) as u32;
        let (sets, exclusive) = match choice {
            LaneChoice::Own { sets } => {
                let sets = sets.clamp(1, lanes);
                (sets, policy::exclusive(sets))
            }
            // At least one set is left for threads without their own.
            LaneChoice::PerCpu { cpus } if cpus < lanes => (lanes, cpus),
            LaneChoice::PerCpu { .. } | LaneChoice::Mutex | LaneChoice::Counter => (lanes, 0),
        };
        assert!(exclusive < sets || sets == lanes && exclusive == 0, "a set is left to share");
        let counted = choice == LaneChoice::Counter;
        let lanes_per_set = lanes / sets;
        assert!(lanes_per_set > 0, "each set has a lane");
        let spread = PER_LINE.div_ceil(lanes_per_set as usize).next_power_of_two().ilog2();
        let lines = (arenas.len() * lanes as usize) << spread;
        let lines = 0..lines.div_ceil(PER_LINE);
        let mut states: Box<[_]> =
            lines.map(|_| Padded::<[LaneState; PER_LINE]>::default()).collect();
        for (at, found) in arenas.iter().flat_map(|a| &a[..lanes as usize]).enumerate() {
            let at = at << spread;
            states[at / PER_LINE].0[at % PER_LINE] = LaneState::new(found);
        }
        Self {
            states,
            spread,
            sets: (0..sets).map(|_| Padded::default()).collect(),
            lanes,
            lanes_per_set,
            exclusive,
            counter: counted.then(Padded::default),
            next_sharer: AtomicU32::new(0),
        }
    }

    /// The number of sets.
    pub(super) fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    /// The largest number of lanes of a set that one batch uses ([freed-block-waits-for-fence]).
    pub(super) fn batch_max(&self) -> usize {
        (self.lanes_per_set as usize / 2).clamp(1, LARGE_BATCH_MAX)
    }

    /// Whether a set has several lanes to use in turn.
    pub(super) fn has_several_lanes(&self) -> bool {
        self.lanes_per_set > 1
    }

    fn set(&self, set: SetId) -> &Set {
        &self.sets[set.0 as usize].0
    }

    /// Takes a set for one thread to itself, if one is left.
    pub(super) fn take_exclusive(&self) -> Option<SetId> {
        (0..self.exclusive).map(SetId).find(|&set| self.try_take(set))
    }

    /// Returns the set that a thread without its own shares.
    pub(super) fn shared(&self) -> SetId {
        debug_assert!(self.exclusive < self.sets(), "a set is left to share");
        let shared = self.sets() - self.exclusive;
        SetId(self.exclusive + self.next_sharer.fetch_add(1, Ordering::Relaxed) % shared)
    }

    /// Returns the set for one call of a thread that shares `home`.
    pub(super) fn for_call(&self, home: SetId) -> SetId {
        match &self.counter {
            Some(counter) => SetId(counter.0.fetch_add(1, Ordering::Relaxed) % self.sets()),
            None => home,
        }
    }

    /// Takes a set if nobody has it ([lane-set-one-user]).
    pub(super) fn try_take(&self, set: SetId) -> bool {
        !self.set(set).taken.swap(true, Ordering::Acquire)
    }

    /// Gives a set back. The caller has made its work durable ([handed-over-set-durable]).
    pub(super) fn give_back(&self, set: SetId) {
        debug_assert!(
            self.set(set).taken.load(Ordering::Relaxed),
            "[lane-set-one-user]: a set is given back by the thread that took it"
        );
        self.set(set).taken.store(false, Ordering::Release);
    }

    /// Returns the next lane of a set ([freed-block-waits-for-fence]).
    #[inline]
    pub(super) fn next(&self, set: SetId) -> u32 {
        let turn = &self.set(set).turn;
        let used = turn.load(Ordering::Relaxed);
        debug_assert!(used < self.lanes_per_set, "lane of the set");
        let next = if used + 1 >= self.lanes_per_set { 0 } else { used + 1 };
        turn.store(next, Ordering::Relaxed);
        set.0 * self.lanes_per_set + used
    }

    /// The state of a lane in an arena.
    #[inline]
    pub(super) fn state(&self, arena: usize, lane: u32) -> &LaneState {
        debug_assert!(lane < self.lanes, "lane in use");
        let at = (arena * self.lanes as usize + lane as usize) << self.spread;
        &self.states[at / PER_LINE].0[at % PER_LINE]
    }

    /// The lanes of a set.
    pub(super) fn lanes_of(&self, set: SetId) -> core::ops::Range<u32> {
        debug_assert!(set.0 < self.sets(), "set of this device");
        set.0 * self.lanes_per_set..(set.0 + 1) * self.lanes_per_set
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each lane has its own state, and sets share no cache line, however small they are.
    #[test]
    fn sets_share_no_cache_line() {
        for sets in [1, 2, 16, 32, 64, 128, 256] {
            let lanes =
                Lanes::new(&[recovered_lanes(0), recovered_lanes(1000)], LaneChoice::Own { sets });
            for lane in 0..256 {
                let free = [0, 1].map(|arena| lanes.state(arena, lane).free());
                assert_eq!(free, [PostmapAba(lane), PostmapAba(1000 + lane)], "{sets} sets");
            }
            for set in 1..sets {
                let before = lanes.lanes_of(SetId(set - 1));
                let here = lanes.lanes_of(SetId(set));
                assert!(
                    line_of(&lanes, before.end - 1) < line_of(&lanes, here.start),
                    "{sets} sets"
                );
            }
        }
    }

    fn recovered_lanes(first: u32) -> Vec<RecoveredLane> {
        (0..256)
            .map(|lane| RecoveredLane {
                free: PostmapAba(first + lane),
                seq: 1,
                slot: 0,
                bad: false,
            })
            .collect()
    }

    fn line_of(lanes: &Lanes, lane: u32) -> usize {
        core::ptr::from_ref(lanes.state(0, lane)).addr() / 64
    }

    #[test]
    fn what_is_known_of_a_free_block_is_kept_apart() {
        let found = RecoveredLane { free: PostmapAba(7), slot: 1, seq: 2, bad: false };
        let lane = LaneState::new(&found);
        assert_eq!(known_of(&lane), (false, false, (0, 3)));
        lane.set_unread(true);
        assert_eq!(known_of(&lane), (false, true, (0, 3)));
        lane.advance(PostmapAba(9), true);
        assert_eq!((lane.free(), known_of(&lane)), (PostmapAba(9), (true, false, (1, 1))));
        lane.set_unread(true);
        assert_eq!(known_of(&lane), (true, true, (1, 1)));
        lane.set_good();
        assert_eq!(known_of(&lane), (false, true, (1, 1)));
        lane.set_unread(false);
        assert_eq!(known_of(&lane), (false, false, (1, 1)));
        assert!(LaneState::new(&RecoveredLane { bad: true, ..found }).is_bad());
    }

    fn known_of(lane: &LaneState) -> (bool, bool, (usize, u32)) {
        (lane.is_bad(), lane.is_unread(), lane.next_entry())
    }
}
