//! Lanes: their free blocks, and who may use which.
//!
//! # Rules
//!
//! - **N1.** A set of lanes has one user at a time: a thread that has it to itself, or one that holds it for
//!   a call. All it knows of its lanes is changed by the user only.
//! - **N2.** Lanes of a set are used in turn, and a batch uses half of them at most: so a block that a
//!   sector lost is not written before a fence has passed (`versions` S2). For a block that stays bad it uses
//!   another lane behind a fence, and none twice.
//! - **N3.** Who hands a set on has made everything durable that it did with it: a fence is for its own
//!   thread only.

use super::address::PostmapAba;
use super::flog::successor;
use super::padded::Padded;
use super::policy::{self, LaneChoice};
use super::recover::RecoveredLane;
use super::sync::{AtomicBool, AtomicU32, Ordering};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The lanes of a device. See the [module](self).
#[derive(Debug)]
pub(super) struct Lanes {
    /// By arena and lane, [`PER_LINE`] to a line of the cache, each [`Self::spread`] places from the next.
    states: Box<[Padded<[LaneState; PER_LINE]>]>,
    /// Two to this power places for a lane: so many that a set has a line to itself.
    spread: u32,
    sets: Box<[Padded<Set>]>,
    /// Lanes of each arena that are used.
    lanes: u32,
    lanes_per_set: u32,
    /// How many sets, from the first, a thread can have to itself.
    exclusive: u32,
    /// The last set that was taken in turn, where they are.
    counter: Option<Padded<AtomicU32>>,
    /// The number of the next thread that shares.
    next_sharer: AtomicU32,
}

#[derive(Debug, Default)]
struct Set {
    taken: AtomicBool,
    /// Lanes used so far.
    turn: AtomicU32,
}

/// Places for what is known of a lane in a line of the cache.
const PER_LINE: usize = 8;

/// What is known of a lane in one arena (N1).
#[derive(Debug, Default)]
pub(super) struct LaneState {
    free: AtomicU32,
    /// The newest entry: its number, and its slot in bit 2. In bit 3: nobody reads the free block; in bit 4:
    /// its bytes may be bad.
    log: AtomicU32,
}

const SLOT_SHIFT: u32 = 2;
const UNREAD: u32 = 8;
const BAD: u32 = 16;

impl LaneState {
    fn new(found: &RecoveredLane) -> Self {
        let bad = if found.bad { BAD } else { 0 };
        let log = found.seq | (found.slot as u32) << SLOT_SHIFT | bad;
        Self { free: AtomicU32::new(found.free.0), log: AtomicU32::new(log) }
    }

    /// The block that no sector has.
    #[inline]
    pub(super) fn free(&self) -> PostmapAba {
        PostmapAba(self.free.load(Ordering::Relaxed))
    }

    /// The slot and the number of the next entry.
    #[inline]
    pub(super) fn next_entry(&self) -> (usize, u32) {
        let log = self.log.load(Ordering::Relaxed);
        (1 - (log >> SLOT_SHIFT & 1) as usize, successor(log & 3))
    }

    /// The next entry was written, and `free` is what its sector lost; its bytes may be `bad`.
    #[inline]
    pub(super) fn advance(&self, free: PostmapAba, bad: bool) {
        let (slot, seq) = self.next_entry();
        let bad = if bad { BAD } else { 0 };
        self.free.store(free.0, Ordering::Relaxed);
        self.log.store(seq | (slot as u32) << SLOT_SHIFT | bad, Ordering::Relaxed);
    }

    /// Whether the free block was that of a sector marked as lost, and was not mended since.
    #[inline]
    pub(super) fn is_bad(&self) -> bool {
        self.log.load(Ordering::Relaxed) & BAD != 0
    }

    /// The free block was mended.
    pub(super) fn set_good(&self) {
        self.log.store(self.log.load(Ordering::Relaxed) & !BAD, Ordering::Relaxed);
    }

    /// Whether nobody is known to read the free block.
    pub(super) fn is_unread(&self) -> bool {
        self.log.load(Ordering::Relaxed) & UNREAD != 0
    }

    /// Whether nobody reads the free block, from now on.
    pub(super) fn set_unread(&self, unread: bool) {
        let log = self.log.load(Ordering::Relaxed) & !UNREAD;
        self.log.store(if unread { log | UNREAD } else { log }, Ordering::Relaxed);
    }
}

/// A set that somebody uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetId(pub(super) u32);

impl Lanes {
    /// The lanes of `arenas`, by what their logs say.
    pub(super) fn new(arenas: &[Vec<RecoveredLane>], choice: LaneChoice) -> Self {
        let lanes = arenas.iter().map(Vec::len).min().unwrap_or(0) as u32;
        let (sets, exclusive) = match choice {
            LaneChoice::Own { sets } => {
                let sets = sets.clamp(1, lanes);
                (sets, policy::exclusive(sets))
            }
            // One is left for who passes by.
            LaneChoice::PerCpu { cpus } if cpus < lanes => (lanes, cpus),
            LaneChoice::PerCpu { .. } | LaneChoice::Mutex | LaneChoice::Counter => (lanes, 0),
        };
        let counted = choice == LaneChoice::Counter;
        let lanes_per_set = lanes / sets;
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

    /// How many sets there are.
    pub(super) fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    /// Most lanes of a set that one batch uses (N2).
    pub(super) fn batch_max(&self) -> usize {
        (self.lanes_per_set / 2).max(1) as usize
    }

    /// Whether a set has lanes to use in turn.
    pub(super) fn rotates(&self) -> bool {
        self.lanes_per_set > 1
    }

    fn set(&self, set: SetId) -> &Set {
        &self.sets[set.0 as usize].0
    }

    /// A set for one thread to itself, if there is one.
    pub(super) fn take_exclusive(&self) -> Option<SetId> {
        (0..self.exclusive).map(SetId).find(|&set| self.try_take(set))
    }

    /// The set that a thread without its own is to share.
    pub(super) fn shared(&self) -> SetId {
        let shared = self.sets() - self.exclusive;
        SetId(self.exclusive + self.next_sharer.fetch_add(1, Ordering::Relaxed) % shared)
    }

    /// The set for one call of a thread that shares `home`.
    pub(super) fn for_call(&self, home: SetId) -> SetId {
        match &self.counter {
            Some(counter) => SetId(counter.0.fetch_add(1, Ordering::Relaxed) % self.sets()),
            None => home,
        }
    }

    /// Takes a set, if nobody has it.
    pub(super) fn try_take(&self, set: SetId) -> bool {
        !self.set(set).taken.swap(true, Ordering::Acquire)
    }

    /// Gives it back.
    pub(super) fn give_back(&self, set: SetId) {
        self.set(set).taken.store(false, Ordering::Release);
    }

    /// The next lane of a set (N2).
    #[inline]
    pub(super) fn next(&self, set: SetId) -> u32 {
        let turn = &self.set(set).turn;
        let used = turn.load(Ordering::Relaxed);
        let next = if used + 1 >= self.lanes_per_set { 0 } else { used + 1 };
        turn.store(next, Ordering::Relaxed);
        set.0 * self.lanes_per_set + used
    }

    /// What is known of a lane.
    #[inline]
    pub(super) fn state(&self, arena: usize, lane: u32) -> &LaneState {
        let at = (arena * self.lanes as usize + lane as usize) << self.spread;
        &self.states[at / PER_LINE].0[at % PER_LINE]
    }

    /// The lanes of a set.
    pub(super) fn lanes_of(&self, set: SetId) -> core::ops::Range<u32> {
        set.0 * self.lanes_per_set..(set.0 + 1) * self.lanes_per_set
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each lane has its own place, and threads with sets to themselves share no line, however small these are.
    #[test]
    fn sets_have_lines_of_their_own() {
        let arena = |first: u32| {
            let found = |lane| RecoveredLane {
                free: PostmapAba(first + lane),
                seq: 1,
                slot: 0,
                bad: false,
            };
            (0..256).map(found).collect::<Vec<_>>()
        };
        for sets in [1, 2, 16, 32, 64, 128, 256] {
            let lanes = Lanes::new(&[arena(0), arena(1000)], LaneChoice::Own { sets });
            let line_of = |lane| core::ptr::from_ref(lanes.state(0, lane)).addr() / 64;
            for lane in 0..256 {
                let free = [0, 1].map(|arena| lanes.state(arena, lane).free());
                assert_eq!(free, [PostmapAba(lane), PostmapAba(1000 + lane)], "{sets} sets");
            }
            for set in 1..sets {
                let (before, here) = (lanes.lanes_of(SetId(set - 1)), lanes.lanes_of(SetId(set)));
                assert!(line_of(before.end - 1) < line_of(here.start), "{sets} sets");
            }
        }
    }
}
