//! Omits one kind of write-back or fence, one at a time, to see that an exploration detects that
//! the rules of writing and recovery need it.

/// Where something is omitted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Omissions {
    /// While threads run.
    pub(crate) running: Option<Omission>,
    /// While a BTT is opened after a crash.
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

/// A write-back: its region, and whether the thread itself stored there since its last fence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteBack {
    pub(crate) region: Region,
    pub(crate) own: bool,
}

/// A fence: the region that was last stored or written before it, apart from data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fencing {
    pub(crate) last: Option<Region>,
}

/// What is omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omission {
    /// The write-back that is part of writing data
    /// ([`Memory::write`](blockyard_btt::Memory::write)).
    Data,
    /// The fence after data and first words ([data-before-log]).
    FenceBehindFirstWords,
    /// The fence after second words ([log-before-map]).
    FenceBehindSecondWords,
    /// The fence after map entries: of a set of lanes that is handed over
    /// ([handed-over-set-durable]), of `set_zero` and `set_error`, and of recovery.
    FenceBehindEntries,
    /// The fence after an info block, or after its zeroes.
    FenceBehindInfo,
    /// The fence after the copy of an info block.
    FenceBehindCopy,
    /// The write-back of first words.
    FirstWords,
    /// The write-back of second words.
    SecondWords,
    /// The write-back of the thread's own map entries.
    OwnEntries,
    /// The write-back of entries that another thread changed ([map-before-next-log]).
    ForeignEntries,
    /// The effect that zeroes repair a bad block.
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
