//! Evidence of flash: the words for its parts and their work, and for what it writes again.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use crate::load::{MediumCause, Parts, Work, WrittenFigures};
use crate::medium::MediumWords;
use blockyard_text::number::{digits, percent};

/// The words.
pub(crate) const WORDS: MediumWords = MediumWords {
    room: "write buffer",
    parts: &[
        (Parts::Dies, "the drive's flash is"),
        (Parts::Channels, "the drive's flash channels are"),
        (Parts::Discards, "the drive's handling of discards, one at a time, is"),
    ],
    work: &[
        (Work::Reads, "reads", MediumCause::Commands),
        (Work::MapReads, "reads of the map", MediumCause::Commands),
        (Work::MapPrograms, "programs of the map", MediumCause::Commands),
        (Work::Programs, "programs", MediumCause::Commands),
        (Work::CachePrograms, "programs into the cache", MediumCause::Commands),
        (Work::PastCache, "programs that bypass the cache", MediumCause::FullCache),
        (Work::Folding, "folding", MediumCause::FullCache),
        (Work::IdleFolding, "folding in idle time", MediumCause::Commands),
        (Work::Collection, "moving data", MediumCause::Collection),
        (Work::Erases, "erases", MediumCause::Collection),
    ],
};

/// What is the bottleneck, if it is work that no command asks for.
pub(crate) const fn named(cause: MediumCause) -> Option<&'static str> {
    match cause {
        MediumCause::FullCache => Some("the drive's full SLC cache is"),
        MediumCause::Collection => Some("the drive's garbage collection is"),
        MediumCause::Commands => None,
    }
}

/// The parts that a share counts, where the bottleneck's name does not say it.
pub(crate) const fn units(cause: MediumCause, parts: Parts) -> &'static str {
    match (cause, parts) {
        (_, Parts::Dies) => "dies ",
        (MediumCause::FullCache | MediumCause::Collection, Parts::Channels) => "channels ",
        _ => "",
    }
}

/// What the cause does to the data that is written.
pub(crate) fn moved(cause: MediumCause, written: WrittenFigures) -> Option<String> {
    let WrittenFigures { past_cache_percent, folded_percent, collected_percent } = written;
    match cause {
        MediumCause::FullCache if folded_percent > past_cache_percent => {
            Some(format!("{} of the data written was folded", percent(folded_percent)))
        }
        MediumCause::FullCache => {
            Some(format!("{} of the data written bypassed the cache", percent(past_cache_percent)))
        }
        MediumCause::Collection => {
            let collected = digits(collected_percent / 100.0);
            Some(format!("garbage collection relocates {collected} bytes per byte written"))
        }
        MediumCause::Commands => None,
    }
}
