//! Evidence of persistent memory.
//!
//! # Choices
//!
//! - On persistent memory a CPU does all of an I/O: the explanation is what it spends more time on,
//!   and the parts of that time.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::evidence::{Evidence, Pair, PartTime};
use crate::pmem::PmemFigures;
use blockyard_devices::pmem::Part;

/// The share of a difference from which a part of an I/O is worth naming.
const VISIBLE_SHARE: f64 = 0.1;
/// The share of an I/O's time from which a part of it is worth naming, in percent.
const VISIBLE_PERCENT: f64 = 1.0;

/// The name of a part.
const fn name(part: Part) -> &'static str {
    match part {
        Part::Copy => "copying",
        Part::Tracking => "tracking readers",
        Part::Locks => "locks",
        Part::Log => "the log",
        Part::Map => "the map",
        Part::Fences => "fences",
    }
}

/// Why an I/O takes longer under `low` than under `high`.
pub(super) fn cpu_time(low: &PmemFigures, high: &PmemFigures) -> Evidence {
    let io_ns = Pair { low: low.io_ns, high: high.io_ns };
    let more_ns = io_ns.low - io_ns.high;
    let times = Part::ALL.map(|part| (part, low.parts_ns.of(part) - high.parts_ns.of(part)));
    let mut parts: Vec<_> =
        times.into_iter().filter(|(_, more)| *more > VISIBLE_SHARE * more_ns).collect();
    if more_ns <= 0.0 {
        parts.clear();
    }
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let part = |(part, more_ns): (Part, f64)| PartTime {
        part: name(part),
        more_ns,
        counts: counts(part, low, high),
    };
    Evidence::CpuTime { io_ns, parts: parts.into_iter().map(part).collect() }
}

/// What was counted of `part` for each I/O.
fn counts(part: Part, low: &PmemFigures, high: &PmemFigures) -> Vec<(&'static str, Pair)> {
    let fetched = ("cache lines from other CPUs", Pair::of(low, high, |figures| figures.transfers));
    match part {
        Part::Copy | Part::Map => Vec::new(),
        Part::Tracking if low.scans + high.scans == 0.0 => vec![fetched],
        Part::Tracking => {
            vec![("scans of all readers", Pair::of(low, high, |figures| figures.scans)), fetched]
        }
        Part::Locks => vec![(WAITING_NS, Pair::of(low, high, |figures| figures.lock_wait_ns))],
        Part::Log => {
            vec![("lines written back", Pair::of(low, high, |figures| figures.write_backs))]
        }
        Part::Fences => vec![("fences", Pair::of(low, high, |figures| figures.fences))],
    }
}

/// The one count that is a time, in nanoseconds.
pub(super) const WAITING_NS: &str = "waiting";

/// What the I/Os of `design` spend their time on, largest part first.
pub(super) fn cpu_parts(design: &str, figures: &PmemFigures) -> Evidence {
    debug_assert!(figures.io_ns >= 0.0, "a time is not negative");
    let parts = Part::ALL.into_iter().map(|part| (name(part), figures.percent.of(part)));
    let mut percent: Vec<_> = parts.collect();
    percent.sort_by(|a, b| b.1.total_cmp(&a.1));
    percent.retain(|(_, percent)| *percent >= VISIBLE_PERCENT);
    Evidence::CpuParts {
        design: design.to_owned(),
        io_ns: figures.io_ns,
        percent,
        path_percent: figures.percent.path,
        channels_percent: figures.channels_percent,
    }
}
