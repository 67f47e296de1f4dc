//! Evidence of flash: the words for its parts and their work, and for what it writes again.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use crate::counters::{Counter, counter};
use crate::load::{MediumCause, MediumLimit, Parts, Work, WrittenFigures};
use crate::medium::{CauseWords, MediumWords};
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
    of_cause,
};

/// The words for what takes much of the time of the flash.
fn of_cause(limit: &MediumLimit) -> CauseWords {
    let subject = match limit.cause {
        MediumCause::FullCache => Some("the drive's full SLC cache is"),
        MediumCause::Collection => Some("the drive's garbage collection is"),
        MediumCause::Commands => None,
    };
    // "The drive's flash channels are the bottleneck (97 % in use)", but "the drive's garbage
    // collection is the bottleneck (channels 97 % in use)".
    let units = match limit.parts {
        Parts::Dies => "dies ",
        Parts::Channels if subject.is_some() => "channels ",
        _ => "",
    };
    CauseWords { subject, units, moved: limit.written.and_then(|of| moved(limit.cause, of)) }
}

/// What the cause does to the data that is written.
fn moved(cause: MediumCause, written: WrittenFigures) -> Option<String> {
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

/// The counters, in the order of the medium's counts.
pub(crate) const COUNTERS: &[Counter] = &[
    counter(
        "units_written",
        "units of 4 KiB that the host wrote",
        "Divide other counters by it: `units_collected`, for example, to get the units moved for each unit written.",
    ),
    counter(
        "units_combined",
        "of `units_written`, those that replaced data still in the write buffer",
        "The flash does not program what is replaced: it writes less than the host.",
    ),
    counter(
        "units_collected",
        "valid units that collection moved",
        "If they are many, blocks hold much valid data when they are erased: the drive is full, or was written at random.",
    ),
    counter(
        "units_folded",
        "units that were folded out of the SLC cache",
        "This data is programmed twice. It is folded when the cache is full, or when the host is idle.",
    ),
    counter(
        "units_padded",
        "places that programs left empty",
        "Flushes program what is in the buffer, before it has enough for a whole program.",
    ),
    counter(
        "write_amplification_percent",
        "what the flash wrote, for each 100 units that left the buffer",
        "Above 100 %, the flash also wrote for collection, folding or padding. It is the ratio of two sums, not a sum.",
    ),
    counter(
        "pages_read",
        "page reads for commands, repeated ones included",
        "Divide it by the reads of the host. Above 1, reads span several pages, or are repeated. Below 1, some data was in the write buffer, or had been discarded.",
    ),
    counter(
        "read_retries",
        "of `pages_read`, those that were repeated because of errors",
        "The data is old, or the flash is worn. Each retry takes the time of another read.",
    ),
    counter(
        "reads_joined",
        "reads of pages that were in the register of a die, or being read, for another command",
        "They cost the flash no more than a transfer. Reads in sequence that are shorter than a page of all planes join; random ones seldom do.",
    ),
    counter(
        "pages_read_ahead",
        "pages that the drive read ahead of reads in sequence",
        "They are not among `pages_read`. Pages that no read asks for later take time from other work.",
    ),
    counter(
        "reads_ahead_used",
        "parts of reads that found their data read ahead, or on its way",
        "They waited for the flash shortly, or not at all. A part is what a read asks of one page of all planes.",
    ),
    counter(
        "map_pages_read",
        "pages of the map that were read from flash, for reads and for writes",
        "The map does not fit into its memory. A random read then takes two reads of flash, and a write looks up the data that it replaces.",
    ),
    counter(
        "map_pages_written",
        "pages of the map that flushes programmed",
        "Each flush of new data costs `flush-steps` programs of the map at least, unless flushes share them. Reads wait for these programs too.",
    ),
    counter(
        "programs",
        "programs for any reason: the host, collection, folding, the map",
        "If they are many compared with `units_written`, see `units_collected`, `units_folded` and `units_padded`.",
    ),
    counter(
        "slc_programs",
        "of `programs`, those into the SLC cache",
        "If it equals `programs`, the cache took all data. If it is lower, writes bypassed the cache, or data was folded or moved.",
    ),
    counter(
        "erases",
        "blocks of the map that were erased",
        "Blocks are erased when collection has moved their data, and when all of it was overwritten, in sequence for example, or discarded. A real block is several of them (`erase-programs`): one erase in so many takes time.",
    ),
    counter(
        "suspends",
        "programs and erases that were suspended for a read",
        "Reads meet busy dies. The reads are fast, and the programs and erases end later.",
    ),
    counter(
        "buffer_stalls",
        "writes that found no room in the write buffer",
        "If nearly all writes did, the flash sets the rate, not the host.",
    ),
    counter(
        "reads_held",
        "reads that waited to begin behind a write that found no room in the write buffer",
        "A scheduler that holds writes back lets these reads begin earlier.",
    ),
    counter(
        "read_wait_ns",
        "waits of page reads for their die",
        "Divide it by the sum of `pages_read` and `map_pages_read` for the mean wait behind other reads, programs and erases.",
    ),
];
