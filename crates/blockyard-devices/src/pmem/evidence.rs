//! Evidence of persistent memory.
//!
//! # Choices
//!
//! - On persistent memory a CPU does all of an I/O: the explanation is what it spends more time on,
//!   and the parts of that time.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::Part;
use super::figures::PmemFigures;
use crate::compare::{Pair, USED_UP, listed};
use blockyard_text::number::{digits, nanoseconds, percent};
use core::fmt;
use serde::Serialize;

/// The share of a difference from which a part of an I/O is worth naming.
const VISIBLE_SHARE: f64 = 0.1;
/// The share of an I/O's time from which a part of it is worth naming, in percent.
const VISIBLE_PERCENT: f64 = 1.0;

/// A part of the CPU time of an I/O on persistent memory that is longer under one design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartTime {
    /// The part.
    pub part: &'static str,
    /// By how much it is longer.
    more_ns: f64,
    /// What was counted of it for each I/O.
    pub counts: Vec<(&'static str, Pair)>,
}

/// The CPU time of an I/O on persistent memory differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// The CPU time of an I/O.
    pub io_ns: Pair,
    /// The parts that make up more than a tenth of the difference, largest first.
    pub parts: Vec<PartTime>,
}

/// A fact about persistent memory behind a difference. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PmemEvidence {
    /// The CPU time of an I/O on persistent memory differs.
    CpuTime(CpuTime),
    /// What the CPU time of an I/O on persistent memory is spent on.
    CpuParts(CpuParts),
}

impl fmt::Display for PmemEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CpuTime(time) => time.fmt(f),
            Self::CpuParts(parts) => parts.fmt(f),
        }
    }
}

/// What the CPU time of an I/O on persistent memory is spent on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuParts {
    /// The design.
    pub design: String,
    /// The CPU time of an I/O.
    pub io_ns: f64,
    /// The parts of at least 1 % with their shares, largest first.
    pub percent: Vec<(&'static str, f64)>,
    /// The share spent before and after the memory.
    pub path_percent: f64,
    /// Utilisation of the memory channels.
    pub channels_percent: f64,
}

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
pub(crate) fn cpu_time(low: &PmemFigures, high: &PmemFigures) -> CpuTime {
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
    CpuTime { io_ns, parts: parts.into_iter().map(part).collect() }
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
const WAITING_NS: &str = "waiting";

/// What the I/Os of `design` spend their time on, largest part first.
pub(crate) fn cpu_parts(design: &str, figures: &PmemFigures) -> CpuParts {
    debug_assert!(figures.io_ns >= 0.0, "a time is not negative");
    let parts = Part::ALL.into_iter().map(|part| (name(part), figures.percent.of(part)));
    let mut percent: Vec<_> = parts.collect();
    percent.sort_by(|a, b| b.1.total_cmp(&a.1));
    percent.retain(|(_, percent)| *percent >= VISIBLE_PERCENT);
    CpuParts {
        design: design.to_owned(),
        io_ns: figures.io_ns,
        percent,
        path_percent: figures.percent.path,
        channels_percent: figures.channels_percent,
    }
}

impl fmt::Display for CpuParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts =
            self.percent.iter().map(|(name, share)| format!("{} for {name}", percent(*share)));
        let path = format!("{} before and after the memory access", percent(self.path_percent));
        let design = &self.design;
        let io = nanoseconds(self.io_ns);
        write!(
            f,
            "Under {design}, an I/O takes {io} of CPU time: {}.",
            listed(parts.chain([path]))
        )?;
        if self.channels_percent >= USED_UP {
            write!(f, " The memory channels are saturated ({}).", percent(self.channels_percent))?;
        }
        Ok(())
    }
}

impl fmt::Display for CpuTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { io_ns, parts } = self;
        let begin = format!(
            "an I/O takes {} of CPU time instead of {}.",
            nanoseconds(io_ns.low),
            nanoseconds(io_ns.high)
        );
        if parts.is_empty() {
            return f.write_str(&begin);
        }
        let counted = |(what, pair): &(&'static str, Pair)| {
            if *what == WAITING_NS {
                return format!("{what}: {}", pair.instead_ns());
            }
            pair.instead(digits, &format!(" {what}"))
        };
        let part = |PartTime { part, more_ns, counts }: &PartTime| {
            let counts: Vec<_> = counts.iter().map(counted).collect();
            let counts =
                if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
            format!("{} for {part}{counts}", nanoseconds(*more_ns))
        };
        let more = nanoseconds(io_ns.low - io_ns.high);
        write!(f, "{begin} The additional {more} include {}.", listed(parts.iter().map(part)))
    }
}
