//! The cache of single-level cells: an amount of data that was programmed fast, and must be folded.
//!
//! Dies fold the cache a row at a time when the host has been idle for long enough. They also do
//! when the cache is full, unless the drive writes past it: a die then folds a row before it takes
//! the next program of the buffer. So each row is programmed twice, and the two compete.
//!
//! A fold keeps the reason for which it began. Only folding that a full cache forces takes time
//! from writes: the work of dies in idle time limits nobody.

use crate::load::Work;

/// The cache.
#[derive(Debug)]
pub(super) struct SlcCache {
    /// Units that it takes.
    capacity: u64,
    row_units: u64,
    used: u64,
    /// For each die, how far its folding has come.
    folds: Vec<Fold>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fold {
    #[default]
    None,
    /// So many units are being read.
    Reading(u32, FoldReason),
    /// So many units wait for their program.
    Ready(u32, FoldReason),
}

/// The reason why a row is folded. Only the first limits writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldReason {
    /// A program waits for room in the cache.
    FullCache,
    /// The host is idle.
    IdleHost,
}

impl FoldReason {
    /// Returns the kind of work that such folding is.
    pub(super) const fn work(self) -> Work {
        match self {
            Self::FullCache => Work::Folding,
            Self::IdleHost => Work::IdleFolding,
        }
    }
}

impl SlcCache {
    /// Returns an empty cache of `capacity` units for `dies` whose programs write `row_units`.
    pub(super) fn new(capacity: u64, row_units: u64, dies: usize) -> Self {
        debug_assert!(row_units > 0, "a program writes a unit at least");
        Self { capacity, row_units, used: 0, folds: vec![Fold::None; dies] }
    }

    /// Whether it takes a program of `units`, which is then in it.
    pub(super) fn takes(&mut self, units: u64) -> bool {
        debug_assert!(units <= self.row_units, "a program of {units} is longer than a row");
        let fits = self.used + units <= self.capacity;
        self.used += if fits { units } else { 0 };
        fits
    }

    /// Whether there is a cache, and no room for another row.
    pub(super) fn is_full(&self) -> bool {
        self.capacity >= self.row_units && self.used + self.row_units > self.capacity
    }

    /// Returns the kind of work that a program of the buffer is which it took, or did not take.
    pub(super) const fn work(&self, took: bool) -> Work {
        match took {
            true => Work::CachePrograms,
            false if self.capacity >= self.row_units => Work::PastCache,
            false => Work::Programs,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Begins to fold a row on `die` for `reason`, unless it folds already, and returns how many
    /// units must be read.
    pub(super) fn begin_fold(&mut self, die: usize, reason: FoldReason) -> Option<u32> {
        debug_assert!(self.used <= self.capacity, "the cache has no more than it takes");
        let units = self.used.min(self.row_units);
        if units == 0 || self.folds[die] != Fold::None {
            return None;
        }
        self.used -= units;
        let units = u32::try_from(units).expect("a row should be small");
        self.folds[die] = Fold::Reading(units, reason);
        Some(units)
    }

    /// Whether units that `die` folds are on their way out of it.
    pub(super) fn is_reading(&self, die: usize) -> bool {
        matches!(self.folds[die], Fold::Reading(..))
    }

    /// Notes that the units have been read.
    pub(super) fn read(&mut self, die: usize) {
        if let Fold::Reading(units, reason) = self.folds[die] {
            self.folds[die] = Fold::Ready(units, reason);
        }
        debug_assert!(matches!(self.folds[die], Fold::Ready(..)), "a fold should have been read");
    }

    /// Takes the units of `die` that wait for their program, with the reason for which they are
    /// folded.
    pub(super) fn take_ready(&mut self, die: usize) -> Option<(u32, FoldReason)> {
        let Fold::Ready(units, reason) = self.folds[die] else { return None };
        self.folds[die] = Fold::None;
        Some((units, reason))
    }
}
