//! The targets that a job measures itself against while it runs: a floor of its rates, a ceiling of
//! its latency, the depth that keeps a latency, and a steady state.

use super::error::ValueFault;
use super::op::PerOp;
use super::value::{Parsed, Value};

/// The rates and latencies whose violation ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least bytes per second; 0 means none; default 0.
    pub bytes_per_s_min: PerOp<u64>,
    /// Least I/Os per second; 0 means none; default 0.
    pub ios_per_s_min: PerOp<u64>,
    /// Time over which a rate is judged, ns; default 1 s.
    pub cycle_ns: u64,
    /// Longest total latency, ns; 0 means any; default 0.
    pub latency_max_ns: PerOp<u64>,
}

/// A search for the greatest depth at which enough I/Os have a latency below a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTarget {
    /// Total latency, ns; 0 means no search; default 0.
    pub target_ns: u64,
    /// Time at each depth, ns; default 0.
    pub window_ns: u64,
    /// Thousandths of a percent of the I/Os that must meet the target; default 100,000.
    pub share: u32,
    /// Whether the job goes on at the depth that was found; default false.
    pub goes_on: bool,
}

/// The figure that must be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steady {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean completion latency in ns.
    Latency,
}

/// The bound on a figure's deviation or slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyCriterion {
    /// The figure.
    pub of: Steady,
    /// Whether the slope of a line through the samples is bounded, rather than the deviation of
    /// each sample.
    pub(crate) slope: bool,
    /// The bound, in millionths.
    pub(crate) limit_millionths: u64,
    /// Whether the bound is in percent of the mean.
    pub percent: bool,
}

/// The steady state at which a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyState {
    /// Default: IOPS, deviation, 0.
    pub(crate) criterion: Option<SteadyCriterion>,
    /// The time over which the figure must be steady, ns; 0 means that the job does not look;
    /// default 0.
    pub window_ns: u64,
    /// The time before the first sample, ns; default 0.
    pub ramp_ns: u64,
    /// The time between samples, ns; default 1 s.
    pub interval_ns: u64,
}

/// All targets of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Bounds.
    pub bounds: Bounds,
    /// Search for a depth.
    pub latency: LatencyTarget,
    /// Steady state.
    pub steady: SteadyState,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Default for Targets {
    fn default() -> Self {
        Self {
            bounds: Bounds {
                bytes_per_s_min: PerOp::all(0),
                ios_per_s_min: PerOp::all(0),
                cycle_ns: SECOND_NS,
                latency_max_ns: PerOp::all(0),
            },
            latency: LatencyTarget { target_ns: 0, window_ns: 0, share: 100_000, goes_on: false },
            steady: SteadyState {
                criterion: None,
                window_ns: 0,
                ramp_ns: 0,
                interval_ns: SECOND_NS,
            },
        }
    }
}

impl Bounds {
    /// Whether a violation could end the run.
    #[must_use]
    pub fn any(&self) -> bool {
        let all = [&self.bytes_per_s_min, &self.ios_per_s_min, &self.latency_max_ns];
        all.into_iter().flat_map(PerOp::each).any(|bound| *bound > 0)
    }
}

impl SteadyState {
    /// The number of samples that must be steady, if the job looks for a steady state.
    #[must_use]
    pub fn samples(&self) -> Option<u64> {
        (self.window_ns > 0).then(|| (self.window_ns / self.interval_ns.max(1)).max(1))
    }
}

const CRITERIA: &[(&str, (Steady, bool))] = &[
    ("iops", (Steady::Iops, false)),
    ("iops_slope", (Steady::Iops, true)),
    ("bw", (Steady::Bandwidth, false)),
    ("bw_slope", (Steady::Bandwidth, true)),
    ("lat", (Steady::Latency, false)),
    ("lat_slope", (Steady::Latency, true)),
];

/// Reads `iops:2`, `bw_slope:0.1%`.
pub(super) fn steady(value: Value<'_>) -> Parsed<Option<SteadyCriterion>> {
    let (word, limit) = value.head_and_tail()?;
    let (of, slope) = word.word(CRITERIA)?;
    let limit = limit.ok_or(ValueFault::Incomplete("a limit, as in iops:2%"))?;
    let (limit, percent) = limit.without_percent_sign()?;
    Ok(Some(SteadyCriterion { of, slope, limit_millionths: limit.millionths()?, percent }))
}

/// Reads a percentage in thousandths, from 0 to 100.
pub(super) fn share(value: Value<'_>) -> Parsed<u32> {
    let thousandths = value.millionths()? / 1000;
    match u32::try_from(thousandths) {
        Ok(share) if share <= 100_000 => Ok(share),
        _ => Err(ValueFault::BadFraction {
            text: value.text()?.to_owned(),
            allowed: "a percentage from 0 to 100",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text: Some(text), kb_base: 1024 }
    }

    fn criterion(of: Steady, slope: bool, limit_millionths: u64, percent: bool) -> SteadyCriterion {
        SteadyCriterion { of, slope, limit_millionths, percent }
    }

    #[test]
    fn a_steady_state_has_a_figure_and_a_limit() {
        let read = |text| steady(value(text)).map(|read| read.expect("a criterion"));
        assert_eq!(read("iops:2"), Ok(criterion(Steady::Iops, false, 2_000_000, false)));
        assert_eq!(read("bw_slope:0.1%"), Ok(criterion(Steady::Bandwidth, true, 100_000, true)));
        assert_eq!(read("lat:5%"), Ok(criterion(Steady::Latency, false, 5_000_000, true)));
        for bad in ["iops", "iops:", "iops:%", "iops:x", "iops:-1", "cpu:1", "iops:1.2.3"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_share_has_three_decimals() {
        assert_eq!(share(value("99.9")), Ok(99_900));
        assert_eq!(share(value("100.0")), Ok(100_000));
        assert!(share(value("100.001")).is_err());
        assert!(share(value("99.9%")).is_err());
    }

    #[test]
    fn a_window_has_at_least_one_sample() {
        let steady = SteadyState { window_ns: 30 * SECOND_NS, ..Targets::default().steady };
        assert_eq!(steady.samples(), Some(30));
        assert_eq!(SteadyState { window_ns: 5, ..steady }.samples(), Some(1));
        assert_eq!(Targets::default().steady.samples(), None);
    }
}
