//! Evidence of a hard disk: the words for its parts and their work.

use crate::load::{MediumCause, Parts, Work};
use crate::medium::MediumWords;

/// The words.
pub(crate) const WORDS: MediumWords = MediumWords {
    room: "write cache",
    parts: &[(Parts::Head, "the disk's head is")],
    work: &[
        (Work::Seeks, "seeks", MediumCause::Commands),
        (Work::Rotation, "rotational latency", MediumCause::Commands),
        (Work::Transfer, "reading and writing", MediumCause::Commands),
    ],
};
