//! Durability: the way in which a file is accessed, and what the BTT in it survives.

/// The way in which a file is accessed, and the extent of a fence. This decides what the BTT
/// survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file is mapped, and a fence waits for nothing: stores survive the death of the process,
    /// because the kernel has them. A flush synchronises the file, which helps against a power cut
    /// until the next store: after it, a power cut may damage any sector and the BTT itself,
    /// flushed or not. All space of the file is allocated. If the medium fails under the mapping,
    /// the process dies.
    Process,
    /// Like `Process`, but with system calls instead of a mapping: a failure of the medium is an
    /// error, and holes stay holes. This is slower, and meant for tools.
    Calls,
    /// The file is mapped, and a fence waits for the write-back of cache lines. The BTT survives a
    /// power cut if the file is on persistent memory that is mapped directly (DAX).
    Memory,
    /// The file is accessed by system calls, and a fence waits for `fdatasync`, which all waiting
    /// threads share. The BTT survives a power cut on any disk that keeps what it has acknowledged.
    Disk,
    /// The file is mapped, and nothing that is written reaches it: the changes end with the open
    /// image. So a new image cannot be made this way. A device DAX cannot be mapped so.
    Discarded,
}
