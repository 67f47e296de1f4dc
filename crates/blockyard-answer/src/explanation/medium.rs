//! Evidence of the media of drives: which of their parts are occupied, and with what.
//!
//! # Choices
//!
//! - A medium is used up if parts of it are occupied nearly all of the time. It is used up too if
//!   writes wait for room in it for half of the time or more: until then its cache may have hidden
//!   how slow it is.
//! - Of several kinds of parts that are used up, the one is named for which the others wait.
//! - Work that no command asks for is the cause if it takes a third of the busy time of those parts
//!   or more: a full cache of single-level cells, or collection; of both, the one that takes more.
//!   Folding in idle time is no part of that busy time: it ends when a command arrives.
//! - Dies are a limit before all of them are always in use, because commands are spread unevenly
//!   over them. They are one if there are twice as many commands as dies or more, which wait for
//!   dies for most of their time.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::evidence::{MediumCause, MediumLimit};
use super::run::USED_UP;
use crate::drive::{DriveFigures, PartsFigures, WrittenFigures};
use blockyard_devices::load::{Parts, Work};
use blockyard_text::number::{digits, percent};

/// The share of the time for which writes wait that makes a medium used up, and that of commands
/// for which they wait for dies, in percent.
const MOSTLY: f64 = 50.0;
/// The share of the busy time from which extra work is the cause.
const MUCH_EXTRA: f64 = 1.0 / 3.0;
/// How many commands for each die are many.
const MANY_COMMANDS: f64 = 2.0;
/// The share from which work or data is worth naming, in percent.
const VISIBLE_PERCENT: f64 = 1.0;

/// Whether the medium of a drive is used up.
pub(super) fn is_used_up(drive: &DriveFigures) -> bool {
    drive.load.parts.iter().any(is_occupied) || drive.load.buffer_full_percent >= MOSTLY
}

fn is_occupied(parts: &PartsFigures) -> bool {
    in_demand(parts) >= USED_UP
}

/// The share of the time for which `parts` are occupied with other work than that of idle time.
fn in_demand(parts: &PartsFigures) -> f64 {
    let idle = parts.work.iter().filter(|(work, _)| *work == Work::IdleFolding);
    parts.percent - idle.map(|(_, percent)| percent).sum::<f64>()
}

/// The share of their time for which `commands` wait for dies, if that limits them.
pub(super) fn queued_percent(drive: &DriveFigures, commands: f64) -> Option<f64> {
    let dies = drive.load.parts.iter().find(|of| of.parts == Parts::Dies)?;
    let are_many = commands >= MANY_COMMANDS * f64::from(dies.units);
    let waited = drive.load.waited_percent;
    (are_many && waited >= MOSTLY).then_some(waited)
}

/// How the medium limits a run with `commands` at the device, on average; `None` if it has no
/// parts.
pub(super) fn limit(drive: &DriveFigures, commands: f64) -> Option<MediumLimit> {
    debug_assert!(
        drive.load.buffer_full_percent <= 100.0,
        "writes should not wait more than always"
    );
    let all = &drive.load.parts;
    let busiest = || all.iter().max_by(|a, b| in_demand(a).total_cmp(&in_demand(b)));
    // Of dies at 99 % and channels at 96 %, the channels: they stand first, as dies wait for them.
    let of = all.iter().find(|parts| is_occupied(parts)).or_else(busiest)?;
    let visible = of
        .work
        .iter()
        .copied()
        .filter(|(work, percent)| *percent >= VISIBLE_PERCENT && *work != Work::IdleFolding);
    Some(MediumLimit {
        parts: of.parts,
        percent: in_demand(of),
        cause: cause(of),
        work: visible.collect(),
        buffer_full_percent: drive.load.buffer_full_percent,
        queued_percent: queued_percent(drive, commands),
        written: drive.load.written,
    })
}

/// What takes much of the busy time of `parts`.
fn cause(parts: &PartsFigures) -> MediumCause {
    debug_assert!(parts.percent <= 100.0, "{parts:?} should not be in use more than always");
    let extra = [MediumCause::FullCache, MediumCause::Collection].map(|cause| {
        let takes = parts.work.iter().filter(|(work, _)| cause_of(*work) == cause);
        (cause, takes.map(|(_, percent)| percent).sum::<f64>())
    });
    let [larger, other] = extra;
    let larger = if other.1 > larger.1 { other } else { larger };
    let is_much = larger.1 > 0.0 && larger.1 >= MUCH_EXTRA * in_demand(parts);
    if is_much { larger.0 } else { MediumCause::Commands }
}

/// Why there is such work.
const fn cause_of(work: Work) -> MediumCause {
    match work {
        Work::PastCache | Work::Folding => MediumCause::FullCache,
        Work::Collection | Work::Erases => MediumCause::Collection,
        Work::Reads
        | Work::MapReads
        | Work::MapPrograms
        | Work::Programs
        | Work::CachePrograms
        | Work::IdleFolding
        | Work::Seeks
        | Work::Rotation
        | Work::Transfer
        | Work::BaselineRate
        | Work::BurstCredit => MediumCause::Commands,
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
            Parts::IosLimit => "the volume's IOPS limit is",
            Parts::BytesLimit => "the volume's throughput limit is",
            Parts::Discards => "the drive's handling of discards, one at a time, is",
        },
    };
    let room = if limit.parts == Parts::Head { "write cache" } else { "write buffer" };
    let waits = (limit.buffer_full_percent >= VISIBLE_PERCENT)
        .then(|| format!("the {room} is full {} of the time", percent(limit.buffer_full_percent)));
    let queued = limit
        .queued_percent
        .map(|waited| format!("commands queue for the dies {} of their time", percent(waited)));
    let moved = limit.written.and_then(|written| moved(limit.cause, written));
    let details: Vec<_> =
        waits.into_iter().chain(queued).chain(moved).chain([occupied(limit)]).collect();
    format!("{named} the bottleneck ({})", details.join("; "))
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
        Work::MapPrograms => "programs of the map",
        Work::Programs => "programs",
        Work::CachePrograms => "programs into the cache",
        Work::PastCache => "programs that bypass the cache",
        Work::Folding => "folding",
        Work::IdleFolding => "folding in idle time",
        Work::Collection => "moving data",
        Work::Erases => "erases",
        Work::Seeks => "seeks",
        Work::Rotation => "rotational latency",
        Work::Transfer => "reading and writing",
        Work::BaselineRate => "at the baseline rate",
        Work::BurstCredit => "on burst credit, which runs out",
    }
}
