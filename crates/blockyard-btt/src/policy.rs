//! The choices in which designs of a BTT differ.

use super::layout::NFREE;

/// The way in which a writer knows that nobody reads the block it is about to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTracking {
    /// The writer does not need to know. After copying, a reader checks whether its sector was
    /// written meanwhile, and reads again if so. A read stores nothing that another thread looks
    /// at.
    Versions,
    /// Each reader publishes the block it reads in a word with its own cache line. A writer scans
    /// all these words once for all free blocks of its lanes.
    Indexed,
    /// Each reader publishes the block it reads in a table with one word per lane. A writer scans
    /// the whole table at every write. Linux does this.
    Scan,
    /// Like `Scan`, with a cache line for each word.
    ScanPadded,
}

/// Which lane a thread uses for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneChoice {
    /// The lanes are divided into sets. A thread has a set to itself while one is left, and uses
    /// the lanes of the set in turn. Later threads share the last quarter of the sets. Sectors that
    /// are written together share fences, up to half of a set, so few sets suit memory with
    /// expensive fences.
    Own {
        /// Number of sets, at most the number of lanes.
        sets: u32,
    },
    /// A lane for each processor. Its only thread with a [`Worker`](super::worker::Worker) uses it
    /// without a lock. With at least as many processors as lanes, a thread uses the lane of its
    /// number under its mutex. Linux did this from 2015 to 2026. We do not ask for the processor's
    /// number, because the thread could move to another processor between the question and the
    /// write, and two threads would use one lane. That was the bug in Linux.
    PerCpu {
        /// Number of processors: threads that have a worker at the same time.
        cpus: u32,
    },
    /// The lane of the thread's number, under its mutex. Linux does this since 2026.
    Mutex,
    /// The lane after the one that was taken last by any thread, under its mutex.
    Counter,
}

/// The choices of one design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How readers and writers of one block keep apart.
    pub tracking: ReadTracking,
    /// Which lane a thread uses.
    pub lanes: LaneChoice,
}

/// The fewest sets by default. Threads come and go, and there may be more of them than processors.
/// Sixteen lanes per set are enough for a batch, and to keep a block that was just freed from being
/// written next.
const SETS_MIN: u32 = 16;
/// The most sets by default: a set with one lane would have no other lane to use next.
const SETS_MAX: u32 = NFREE / 2;

const _: () = assert!(SETS_MIN <= SETS_MAX && SETS_MAX.is_power_of_two());

impl LaneChoice {
    /// Returns evenly divided sets for `threads` that work at the same time, usually the number of
    /// processors. Each thread, up to 96, gets a set to itself. For memory with cheap fences.
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

    /// Returns the fewest sets that give each of `threads`, up to 192, one to itself. For memory
    /// with expensive fences: sectors that are written together share two fences, up to half of a
    /// set.
    #[must_use]
    pub const fn few_for_threads(threads: u32) -> Self {
        Self::Own { sets: sets_for(threads) }
    }
}

/// Returns how many of `sets` threads can have to themselves. The other sets, a quarter of them,
/// are shared.
pub(super) const fn exclusive(sets: u32) -> u32 {
    debug_assert!(sets > 0, "a device has at least one set of lanes");
    sets - sets.div_ceil(4)
}

/// Returns the fewest sets that give each of `threads` one to itself. An open BTT limits them to
/// the number of lanes.
const fn sets_for(threads: u32) -> u32 {
    match threads {
        0 => 1,
        1..NFREE => (threads * 4).div_ceil(3),
        _ => NFREE,
    }
}

impl Policy {
    /// Our design for an unknown number of threads: sets for 12 of them.
    pub const DEFAULT: Self = Self::for_threads(12);
    /// Linux's design since 2026.
    pub const LINUX: Self = Self { tracking: ReadTracking::Scan, lanes: LaneChoice::Mutex };

    /// Our design for `threads` that work at the same time: see [`LaneChoice::for_threads`].
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
