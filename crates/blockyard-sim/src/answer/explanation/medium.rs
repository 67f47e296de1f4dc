//! Evidence of the media of drives: which of their parts are occupied, and with what.
//!
//! # Rules
//!
//! - **[pressed-medium-is-used-up]** A medium is used up if parts of it are occupied nearly all of the time. It is used up too if writes
//!   wait for room in it for half of the time or more: until then its cache may have hidden how slow it is.
//! - **[parts-that-others-wait-for]** Of several kinds of parts that are used up, the one is named for which the others wait.
//! - **[extra-work-is-the-cause]** Work that no command asks for is the cause if it takes a third of the busy time of those parts or
//!   more: a full cache of single-level cells, or collection; of both, the one that takes more.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::evidence::{MediumCause, MediumLimit};
use super::run::USED_UP;
use crate::answer::drive::{DriveFigures, PartsFigures, WrittenFigures};
use crate::answer::number::{digits, percent};
use crate::device::load::{Parts, Work};

/// The share of the time for which writes wait that makes a medium used up, in percent ([pressed-medium-is-used-up]).
const MOSTLY: f64 = 50.0;
/// The share of the busy time from which extra work is the cause ([extra-work-is-the-cause]).
const MUCH_EXTRA: f64 = 1.0 / 3.0;
/// The share from which work or data is worth naming, in percent.
const VISIBLE_PERCENT: f64 = 1.0;

/// Whether the medium of a drive is used up ([pressed-medium-is-used-up]).
pub(super) fn is_used_up(drive: &DriveFigures) -> bool {
    drive.load.parts.iter().any(is_occupied) || drive.load.pressed_percent >= MOSTLY
}

fn is_occupied(parts: &PartsFigures) -> bool {
    parts.percent >= USED_UP
}

/// How the medium limits a run; `None` if it has no parts.
pub(super) fn limit(drive: &DriveFigures) -> Option<MediumLimit> {
    debug_assert!(drive.load.pressed_percent <= 100.0, "writes should not wait more than always");
    let all = &drive.load.parts;
    let busiest = || all.iter().max_by(|a, b| a.percent.total_cmp(&b.percent));
    // [parts-that-others-wait-for]
    let of = all.iter().find(|parts| is_occupied(parts)).or_else(busiest)?;
    let visible = of.work.iter().copied().filter(|(_, percent)| *percent >= VISIBLE_PERCENT);
    Some(MediumLimit {
        parts: of.parts,
        percent: of.percent,
        cause: cause(of),
        work: visible.collect(),
        pressed_percent: drive.load.pressed_percent,
        written: drive.load.written,
    })
}

/// What takes much of the busy time of `parts` ([extra-work-is-the-cause]).
fn cause(parts: &PartsFigures) -> MediumCause {
    debug_assert!(parts.percent <= 100.0, "{parts:?} should not be in use more than always");
    let of = |cause| {
        let takes = parts.work.iter().filter(|(work, _)| cause_of(*work) == cause);
        takes.map(|(_, percent)| percent).sum::<f64>()
    };
    let extra = [MediumCause::FullCache, MediumCause::Collection].map(|cause| (cause, of(cause)));
    let [larger, other] = extra;
    let larger = if other.1 > larger.1 { other } else { larger };
    let is_much = larger.1 > 0.0 && larger.1 >= MUCH_EXTRA * parts.percent;
    if is_much { larger.0 } else { MediumCause::Commands }
}

/// Why there is such work.
const fn cause_of(work: Work) -> MediumCause {
    match work {
        Work::PastCache | Work::Folding => MediumCause::FullCache,
        Work::Collection | Work::Erases => MediumCause::Collection,
        Work::Reads
        | Work::MapReads
        | Work::Programs
        | Work::CachePrograms
        | Work::Seeks
        | Work::Rotation
        | Work::Transfer => MediumCause::Commands,
    }
}

/// A clause that says how the medium is the bottleneck.
pub(super) fn is_bottleneck(limit: &MediumLimit) -> String {
    let named = match limit.cause {
        MediumCause::FullCache => "the drive's full SLC cache is",
        MediumCause::Collection => "the drive's garbage collection is",
        MediumCause::Commands => match limit.parts {
            Parts::Medium => "the drive's medium is",
            Parts::Dies => "the drive's flash is",
            Parts::Channels => "the drive's flash channels are",
            Parts::Head => "the disk's head is",
            Parts::IosLimit => "the volume's limit of I/Os is",
            Parts::BytesLimit => "the volume's limit of bytes is",
        },
    };
    let waits = (limit.pressed_percent >= VISIBLE_PERCENT)
        .then(|| format!("writes wait for room {} of the time", percent(limit.pressed_percent)));
    let moved = limit.written.and_then(|written| moved(limit.cause, written));
    let details: Vec<_> = waits.into_iter().chain(moved).chain([occupied(limit)]).collect();
    format!("{named} the bottleneck ({})", details.join("; "))
}

/// What the cause does to the data that is written.
fn moved(cause: MediumCause, written: WrittenFigures) -> Option<String> {
    let WrittenFigures { past_cache_percent, folded_percent, collected_percent } = written;
    match cause {
        MediumCause::FullCache if folded_percent > past_cache_percent => {
            let folded = digits(folded_percent / 100.0);
            Some(format!("{folded} times the data written was moved out of it"))
        }
        MediumCause::FullCache => {
            Some(format!("{} of the data written went past it", percent(past_cache_percent)))
        }
        MediumCause::Collection => {
            let collected = digits(collected_percent / 100.0);
            Some(format!("it moves {collected} times the data written"))
        }
        MediumCause::Commands => None,
    }
}

/// How much of the parts is in use, and for what.
fn occupied(limit: &MediumLimit) -> String {
    let parts = match (limit.cause, limit.parts) {
        (_, Parts::Dies) => "dies ",
        (MediumCause::FullCache | MediumCause::Collection, Parts::Channels) => "channels ",
        _ => "",
    };
    let work =
        limit.work.iter().map(|(work, share)| format!("{} {}", percent(*share), name(*work)));
    let work: Vec<_> = work.collect();
    let work = if work.is_empty() { String::new() } else { format!(": {}", work.join(", ")) };
    format!("{parts}{} in use{work}", percent(limit.percent))
}

/// What parts do.
const fn name(work: Work) -> &'static str {
    match work {
        Work::Reads => "reads",
        Work::MapReads => "reads of the map",
        Work::Programs => "programs",
        Work::CachePrograms => "programs into the cache",
        Work::PastCache => "programs past the cache",
        Work::Folding => "emptying the cache",
        Work::Collection => "moving data",
        Work::Erases => "erases",
        Work::Seeks => "seeks",
        Work::Rotation => "waiting for sectors to come round",
        Work::Transfer => "reading and writing",
    }
}
