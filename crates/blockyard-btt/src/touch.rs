//! Accesses to the shared words of a BTT, as reported to
//! [`Memory::touched`](super::memory::Memory::touched). A model of a machine charges for them;
//! other memories ignore them.

/// A word that threads share, outside the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The lock of a set of lanes.
    Lanes(u32),
    /// The number of the set of lanes that was taken last.
    Counter,
    /// The lock and version of the map entries with this number.
    Entries(u32),
    /// The block that the user of this set of lanes reads.
    Reader(u32),
    /// The number of calls that zero sectors.
    Zeroings,
}

/// An access to a shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The word was loaded.
    Loaded(Word),
    /// The word was stored or exchanged.
    Stored(Word),
    /// The word was taken as a lock.
    Locked(Word),
    /// The lock was released.
    Unlocked(Word),
    /// The words of all readers were loaded; the value is their number.
    ScannedReaders(u32),
}
