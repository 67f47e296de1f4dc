//! Evidence of a volume: the words for its parts and their work.

use crate::load::{MediumCause, Parts, Work};
use crate::medium::MediumWords;

/// The words.
pub(crate) const WORDS: MediumWords = MediumWords {
    room: "write buffer",
    parts: &[
        (Parts::IosLimit, "the volume's IOPS limit is"),
        (Parts::BytesLimit, "the volume's throughput limit is"),
    ],
    work: &[
        (Work::BaselineRate, "at the baseline rate", MediumCause::Commands),
        (Work::BurstCredit, "on burst credit, which runs out", MediumCause::Commands),
    ],
};
