//! What one design of a BTT decides otherwise than another.

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
    /// A lane for each processor, whose only thread with a [`Worker`](super::Worker) has it to itself, without
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

impl Policy {
    /// Ours, for up to 12 threads without sharing.
    pub const DEFAULT: Self =
        Self { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets: 16 } };
    /// Linux's.
    pub const LINUX: Self = Self { tracking: ReadTracking::Scan, lanes: LaneChoice::Mutex };
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
