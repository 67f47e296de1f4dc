//! What a BTT does with the words of its own that threads share, told to its [`Memory`]: a model of a
//! machine charges for it, everything else has nothing to do.

/// A word beside the medium that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Who has this set of lanes.
    Lanes(u32),
    /// The last set of lanes that anybody took.
    Counter,
    /// Lock and version of the map entries with this number.
    Entries(u32),
    /// What the user of this set of lanes reads.
    Reader(u32),
}

/// What is done to such a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It was loaded.
    Loaded(Word),
    /// It was stored, or exchanged.
    Stored(Word),
    /// It was taken as a lock.
    Locked(Word),
    /// It was given back.
    Unlocked(Word),
    /// The words of all readers were loaded, so many.
    ScannedReaders(u32),
}
