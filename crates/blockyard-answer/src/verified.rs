//! The data that was found on the media.

use serde::Serialize;

use blockyard_devices::data::verify;

/// What a run with verification checked and found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Reads that succeeded. Each of their sectors was checked.
    pub reads: u64,
    /// Sectors of these reads.
    pub read_sectors: u64,
    /// Bios that changed data and succeeded.
    pub writes: u64,
    /// Bios that only flushed, and succeeded.
    pub flushes: u64,
    /// Sectors in the volatile cache at the end.
    pub cached_sectors: u64,
    /// What each loss of power took.
    pub power_cuts: Vec<PowerCut>,
    /// The number of places that do not hold what they must.
    pub violation_count: u64,
    /// The first of these places, in words.
    pub violations: Vec<String>,
}

/// What a loss of power took, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerCut {
    /// When, in nanoseconds of virtual time.
    pub at_ns: u64,
    /// Sectors of acknowledged writes that may be lost: no flush had followed.
    pub lost_by_right: u64,
    /// Sectors that hold what they must not.
    pub lost_by_wrong: u64,
    /// Sectors of dirty pages, which may be lost: no sync had written them. Absent if no job writes
    /// through the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_from_memory: Option<u64>,
}

impl From<&verify::Verified> for Verified {
    fn from(verified: &verify::Verified) -> Self {
        let kept = u64::try_from(verified.violations.len()).unwrap_or(u64::MAX);
        debug_assert!(kept <= verified.violation_count, "every violation is counted");
        let cut = |cut: &verify::PowerCut| PowerCut {
            at_ns: cut.at.as_ns(),
            lost_by_right: cut.lost_by_right,
            lost_by_wrong: cut.lost_by_wrong,
            lost_from_memory: cut.lost_from_memory,
        };
        Self {
            reads: verified.reads,
            read_sectors: verified.read_sectors,
            writes: verified.writes,
            flushes: verified.flushes,
            cached_sectors: verified.cached_sectors,
            power_cuts: verified.power_cuts.iter().map(cut).collect(),
            violation_count: verified.violation_count,
            violations: verified.violations.iter().map(ToString::to_string).collect(),
        }
    }
}
