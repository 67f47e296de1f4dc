//! One write-back or one fence that is left out, always: what the rules of writing and recovering ask for,
//! one by one, to see that an exploration notices.

/// Where something is left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Omissions {
    /// While threads run.
    pub(crate) running: Option<Omission>,
    /// While what a crash left is opened.
    pub(crate) opening: Option<Omission>,
}

/// A part of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Info,
    Copy,
    Data,
    Map,
    LogFirst,
    LogSecond,
}

/// A write-back: of what, and whether the thread stored there since its last fence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteBack {
    pub(crate) region: Region,
    pub(crate) own: bool,
}

/// A fence: what was stored or written last before it, data apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fencing {
    pub(crate) last: Option<Region>,
}

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omission {
    /// That data are on their way once they were written ([`Memory::write`](blockyard_btt::Memory::write)).
    Data,
    /// The fence behind data and first words (W1).
    FenceBehindFirstWords,
    /// The fence behind second words (W2).
    FenceBehindSecondWords,
    /// The fence behind map entries: of a set of lanes that is handed on (N3), of `set_zero` and
    /// `set_error`, and of recovery.
    FenceBehindEntries,
    /// The fence behind an info block, or behind its zeroes.
    FenceBehindInfo,
    /// The fence behind the copy of an info block.
    FenceBehindCopy,
    /// The write-back of first words.
    FirstWords,
    /// The write-back of second words.
    SecondWords,
    /// The write-back of one's own map entries.
    OwnEntries,
    /// The write-back of entries that another thread changed (W3).
    ForeignEntries,
    /// That zeroes mend a bad block.
    Mending,
}

impl Omission {
    pub(crate) fn fence(self, behind: Fencing) -> bool {
        match self {
            Self::FenceBehindFirstWords => behind.last == Some(Region::LogFirst),
            Self::FenceBehindSecondWords => behind.last == Some(Region::LogSecond),
            Self::FenceBehindEntries => behind.last == Some(Region::Map),
            Self::FenceBehindInfo => behind.last == Some(Region::Info),
            Self::FenceBehindCopy => behind.last == Some(Region::Copy),
            _ => false,
        }
    }

    pub(crate) fn data(self) -> bool {
        self == Self::Data
    }

    pub(crate) fn mending(self) -> bool {
        self == Self::Mending
    }

    pub(crate) fn write_back(self, of: WriteBack) -> bool {
        match self {
            Self::FirstWords => of.region == Region::LogFirst,
            Self::SecondWords => of.region == Region::LogSecond,
            Self::OwnEntries => of.region == Region::Map && of.own,
            Self::ForeignEntries => of.region == Region::Map && !of.own,
            _ => false,
        }
    }
}
