//! Persistent memory's part: what a processor spends an I/O on.

use super::{USED_UP, duration, float, instead, percent, ratio};
use crate::device::pmem::Part;
use crate::simulate::Report;

/// Parts of a difference from which on a part of an I/O is worth naming.
const WORTH: f64 = 0.1;

/// Means for each I/O on persistent memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PmemFigures {
    /// Processor time, nanoseconds.
    pub io_ns: f64,
    /// Of that, of every [`Part`] in its order.
    pub parts_ns: [f64; Part::ALL.len()],
    /// Of it, what comes before and after: system calls, bios, threads.
    pub path_ns: f64,
    /// Fences.
    pub fences: f64,
    /// Lines written back, data apart.
    pub write_backs: f64,
    /// Looks through the words of all readers.
    pub scans: f64,
    /// Lines of shared words that came from another processor.
    pub transfers: f64,
    /// Of the time for locks, waiting for others, nanoseconds.
    pub lock_wait_ns: f64,
    /// Use of the channels to the memory.
    pub channels_percent: f64,
}

impl PmemFigures {
    /// Those of `report`, if its device is persistent memory.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let pmem = report.pmem.as_ref()?;
        let ios = float(pmem.reads + pmem.writes);
        let each = |count: u64| ratio(float(count), ios);
        let parts_ns = pmem.parts.map(|time| each(time.as_ns()));
        let io_ns = each(report.totals.cpu.as_ns());
        Some(Self {
            io_ns,
            parts_ns,
            path_ns: (io_ns - parts_ns.iter().sum::<f64>()).max(0.0),
            fences: each(pmem.fences),
            write_backs: each(pmem.write_backs),
            scans: each(pmem.scans),
            transfers: each(pmem.transfers),
            lock_wait_ns: each(pmem.lock_wait.as_ns()),
            channels_percent: ratio(
                100.0 * float(pmem.channels_used.as_ns()),
                float(report.span.as_ns()) * f64::from(pmem.channels),
            ),
        })
    }

    /// The part of an I/O's time that is spent on something.
    #[must_use]
    pub fn percent(&self, part: Part) -> f64 {
        ratio(100.0 * self.parts_ns[part as usize], self.io_ns)
    }

    /// The part that is spent before and after.
    #[must_use]
    pub fn path_percent(&self) -> f64 {
        ratio(100.0 * self.path_ns, self.io_ns)
    }

    /// What is counted of a part, instead of `other`'s.
    fn counted(&self, part: Part, other: &Self) -> String {
        let of = |count: fn(&Self) -> f64| instead(count(self), count(other));
        let lines = || format!("{} lines from other processors", of(|figures| figures.transfers));
        match part {
            Part::Copy | Part::Map => String::new(),
            Part::Tracking if self.scans + other.scans == 0.0 => format!(" ({})", lines()),
            Part::Tracking => {
                format!(" ({} looks at all readers, {})", of(|figures| figures.scans), lines())
            }
            Part::Locks => {
                let waits = [self, other].map(|figures| duration(figures.lock_wait_ns));
                let [waits, others] = waits;
                format!(" (waits: {waits}, {others})")
            }
            Part::Log => format!(" ({} lines written back)", of(|figures| figures.write_backs)),
            Part::Fences => format!(" ({} fences)", of(|figures| figures.fences)),
        }
    }
}

/// What a part is called.
const fn doing(part: Part) -> &'static str {
    match part {
        Part::Copy => "copying",
        Part::Tracking => "knowing who reads",
        Part::Locks => "locks",
        Part::Log => "the log",
        Part::Map => "the map",
        Part::Fences => "fences",
    }
}

/// Why an I/O takes `low` longer than `high`, from what it spends more time on.
pub(super) fn tell(low: &PmemFigures, high: &PmemFigures) -> String {
    let more = low.io_ns - high.io_ns;
    let begin = format!(
        "{} of a processor for each I/O instead of {}.",
        duration(low.io_ns),
        duration(high.io_ns)
    );
    let by = |part: Part| low.parts_ns[part as usize] - high.parts_ns[part as usize];
    let mut parts: Vec<_> = Part::ALL.into_iter().filter(|part| by(*part) > WORTH * more).collect();
    if more <= 0.0 || parts.is_empty() {
        return begin;
    }
    parts.sort_by(|a, b| by(*b).total_cmp(&by(*a)));
    let told = parts
        .into_iter()
        .map(|part| format!("{} {}{}", doing(part), duration(by(part)), low.counted(part, high)));
    let told: Vec<_> = told.collect();
    format!("{begin} Of the {} more: {}.", duration(more), told.join(", "))
}

/// What the I/Os of `name` spend their time on, largest part first.
pub(super) fn tell_parts(name: &str, figures: &PmemFigures) -> String {
    let mut parts: Vec<_> = Part::ALL.into_iter().map(|part| (doing(part), part)).collect();
    parts.sort_by(|a, b| figures.percent(b.1).total_cmp(&figures.percent(a.1)));
    let told = parts.into_iter().filter(|(_, part)| figures.percent(*part) >= 1.0);
    let mut told: Vec<_> =
        told.map(|(words, part)| format!("{words} {}", percent(figures.percent(part)))).collect();
    told.push(format!("the way there and back {}", percent(figures.path_percent())));
    let waits = if figures.channels_percent >= USED_UP {
        format!(" The channels to the memory are used up ({}).", percent(figures.channels_percent))
    } else {
        String::new()
    };
    format!(" Of {} for an I/O of {name}: {}.{waits}", duration(figures.io_ns), told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(parts_ns: [f64; 6]) -> PmemFigures {
        PmemFigures {
            io_ns: 1000.0 + parts_ns.iter().sum::<f64>(),
            parts_ns,
            path_ns: 1000.0,
            fences: 2.0,
            write_backs: 3.0,
            scans: 0.0,
            transfers: 0.0,
            lock_wait_ns: 0.0,
            channels_percent: 50.0,
        }
    }

    #[test]
    fn what_takes_longer_is_told_largest_first_with_its_counters() {
        let own = figures([400.0, 0.0, 10.0, 20.0, 20.0, 150.0]);
        let linux = PmemFigures {
            fences: 4.0,
            scans: 1.0,
            transfers: 12.5,
            ..figures([400.0, 800.0, 20.0, 20.0, 20.0, 300.0])
        };
        assert_eq!(
            tell(&linux, &own),
            "2.56 us of a processor for each I/O instead of 1.60 us. Of the 960 ns more: knowing who \
             reads 800 ns (1.00 instead of 0.00 looks at all readers, 12.5 instead of 0.00 lines from \
             other processors), fences 150 ns (4.00 instead of 2.00 fences)."
        );
        assert_eq!(tell(&own, &own), "1.60 us of a processor for each I/O instead of 1.60 us.");
    }

    #[test]
    fn parts_of_a_run_add_up() {
        let words = tell_parts("btt", &figures([500.0, 0.0, 5.0, 100.0, 100.0, 295.0]));
        assert_eq!(
            words,
            " Of 2.00 us for an I/O of btt: copying 25 %, fences 15 %, the log 5 %, the map 5 %, the way \
             there and back 50 %."
        );
    }
}
