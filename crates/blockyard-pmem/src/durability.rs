//! How a file is reached, and what a BTT in it survives.

/// How a file is reached, and what a fence waits for: what a BTT survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file is mapped, and a fence waits for nothing: what was stored survives the death of the process, as
    /// the file has it. A flush synchronises the file; sectors may be torn by a loss of power. Takes all room
    /// of the file; where the medium fails under a mapping, the process dies.
    Process,
    /// The same without a mapping, by calls that fail where the medium does; a file with holes keeps them.
    /// Slower: for tools.
    Calls,
    /// Mapped, and a fence waits for cache lines that were written back: memory that keeps what reached it.
    /// Survives a loss of power on persistent memory that is mapped directly (DAX).
    Memory,
    /// By calls, and a fence waits for a synchronisation of the file (`fdatasync`), one for all threads:
    /// survives a loss of power on any disk that keeps what it says it has.
    Disk,
}
