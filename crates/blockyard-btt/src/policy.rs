//! What one design of a BTT decides otherwise than another.

use super::layout::NFREE;

/// How a writer knows that nobody reads the block it is about to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTracking {
    /// It need not: a reader finds out after copying that its sector was written meanwhile, and reads
    /// again. Reading stores nothing that another thread looks at.
    Versions,
    /// Readers publish the block they read, each in a word of its own cache line; a writer looks at all
    /// once for all the blocks of its lanes.
    Indexed,
    /// Readers publish it in one table of a word for each lane; a writer looks at all of it at every write.
    /// Linux does.
    Scan,
    /// The same with a cache line for each word.
    ScanPadded,
}

/// Which lane a thread takes for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneChoice {
    /// Lanes are divided into so many sets. A thread has a set to itself while there is one, and uses its
    /// lanes in turn; who comes too late shares one of the last sets, a quarter of them. What is written at once
    /// shares fences, up to half of a set: so few sets are for memory whose fences are dear.
    Own {
        /// Sets; as many as there are lanes at most.
        sets: u32,
    },
    /// A lane for each processor, whose only thread with a [`Worker`](super::worker::Worker) has it to itself, without
    /// any lock; with as many processors as lanes or more, that of the thread's number under its mutex. Linux
    /// did from 2015 to 2026. What the processor's number is, is not asked: a thread could be moved to another
    /// one between the question and the write, and two would have one lane, which is what went wrong there.
    PerCpu {
        /// Processors: threads that have a worker at a time.
        cpus: u32,
    },
    /// The lane of the thread's number, under its mutex. Linux does since 2026.
    Mutex,
    /// The lane after the last one anybody took, under its mutex.
    Counter,
}

/// The decisions of a BTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How readers and writers of one block keep apart.
    pub tracking: ReadTracking,
    /// Which lane is taken.
    pub lanes: LaneChoice,
}

/// Fewest sets by default: threads come and go, and there may be more of them than processors; sixteen lanes for each
/// set are enough for a batch, and for a block that was just freed not to be written next.
const SETS_MIN: u32 = 16;
/// Most sets by default: a set with one lane could not use another one next.
const SETS_MAX: u32 = NFREE / 2;

impl LaneChoice {
    /// Sets of lanes for a machine on which `threads` of them are at work at once, its processors as a rule: each thread has
    /// a set to itself (up to 96 of them), and lanes are divided evenly. For memory whose fences cost little.
    #[must_use]
    pub const fn for_threads(threads: u32) -> Self {
        let sets = sets_for(threads).next_power_of_two();
        Self::Own {
            sets: match sets {
                ..SETS_MIN => SETS_MIN,
                SETS_MIN..=SETS_MAX => sets,
                _ => SETS_MAX,
            },
        }
    }

    /// As few sets as give `threads` of them one each (up to 192): for memory whose fences are dear, as what is written at
    /// once shares two of them up to half of a set.
    #[must_use]
    pub const fn few_for_threads(threads: u32) -> Self {
        Self::Own { sets: sets_for(threads) }
    }
}

/// How many of so many sets threads can have to themselves; the others, a quarter of them, are shared.
pub(super) const fn exclusive(sets: u32) -> u32 {
    sets - sets.div_ceil(4)
}

/// The fewest sets of which each of `threads` has one to itself, or all there can be.
const fn sets_for(threads: u32) -> u32 {
    match threads {
        0 => 1,
        1..NFREE => (threads * 4).div_ceil(3),
        _ => NFREE,
    }
}

impl Policy {
    /// Ours, where nobody knows how many threads there will be: sets for 12 of them.
    pub const DEFAULT: Self = Self::for_threads(12);
    /// Linux's.
    pub const LINUX: Self = Self { tracking: ReadTracking::Scan, lanes: LaneChoice::Mutex };

    /// Ours, for so many threads at work at once: see [`LaneChoice::for_threads`].
    #[must_use]
    pub const fn for_threads(threads: u32) -> Self {
        Self { tracking: ReadTracking::Versions, lanes: LaneChoice::for_threads(threads) }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
