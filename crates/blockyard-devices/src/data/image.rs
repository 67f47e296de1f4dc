//! The content of a medium.

use super::spans::Spans;
use core::fmt;

/// The mark of a bio that changes data, in place of its bytes. Each such bio has its own stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The stamp of sectors that were never written.
    pub(crate) const NEVER: Self = Self(0);
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("nothing, as before the first write"),
            Self(number) => write!(f, "write {number}"),
        }
    }
}

/// The content of a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The write that it belongs to.
    pub stamp: Stamp,
    /// The sector for which it was written minus the sector that holds it; normally 0.
    pub shift: i64,
}

impl Content {
    /// Data of `stamp` at its own sector.
    #[must_use]
    pub const fn of(stamp: Stamp) -> Self {
        Self { stamp, shift: 0 }
    }
}

/// The content of each sector of a disk; `Stamp::NEVER` in sectors that were never written.
pub type Image = Spans<Content>;
