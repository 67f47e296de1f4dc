//! What lies where on a medium.

use super::spans::Spans;
use core::fmt;

/// The mark of a bio that changes data, in place of its bytes: no two have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Of sectors that nobody has written.
    pub const NEVER: Self = Self(0);
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("nothing, as before the first write"),
            Self(number) => write!(f, "write {number}"),
        }
    }
}

/// What a sector holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Whose data.
    pub stamp: Stamp,
    /// The sector it was meant for, minus the sector it is in: 0 where it belongs.
    pub shift: i64,
}

impl Content {
    /// Data of `stamp` where it belongs.
    #[must_use]
    pub const fn of(stamp: Stamp) -> Self {
        Self { stamp, shift: 0 }
    }
}

/// What each sector of a disk holds: of those nobody has written, [`Stamp::NEVER`].
pub type Image = Spans<Content>;
