//! What was found on the media, in answers.

use core::fmt::Write as _;

use blockyard_sim::data::verify::{PowerCut, Verified};
use serde::Serialize;

/// What was verified of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct VerifiedRow {
    reads: u64,
    read_sectors: u64,
    writes: u64,
    flushes: u64,
    /// Sectors in the volatile cache at the end.
    cached_sectors: u64,
    power_cuts: Vec<PowerCutRow>,
    violation_count: u64,
    /// The first of them.
    violations: Vec<String>,
}

/// What a loss of power would have taken, in sectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct PowerCutRow {
    at_ns: u64,
    lost_by_right: u64,
    lost_by_wrong: u64,
}

impl From<&Verified> for VerifiedRow {
    fn from(verified: &Verified) -> Self {
        let cut = |cut: &PowerCut| PowerCutRow {
            at_ns: cut.at.as_ns(),
            lost_by_right: cut.lost_by_right,
            lost_by_wrong: cut.lost_by_wrong,
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

/// Most losses of power of which each has a line.
const LINES_MAX: usize = 10;

impl VerifiedRow {
    /// Places that do not hold what they ought to.
    pub(crate) const fn violation_count(&self) -> u64 {
        self.violation_count
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let Self { reads, read_sectors, writes, flushes, cached_sectors, .. } = self;
        let verdict = match self.violation_count {
            0 => "nothing is wrong".to_owned(),
            count => format!("{count} places are WRONG"),
        };
        let mut text = format!(
            "verified: {reads} reads ({read_sectors} sectors), {writes} writes, {flushes} flushes, \
             {cached_sectors} sectors in the cache at the end: {verdict}\n"
        );
        let mut line = |words: String| writeln!(text, "{words}").expect("a string takes all");
        if self.power_cuts.len() <= LINES_MAX {
            for PowerCutRow { at_ns, lost_by_right, lost_by_wrong } in &self.power_cuts {
                let at = blockyard::time::Instant::from_ns(*at_ns);
                line(format!(
                    "  power lost at {at} s: {lost_by_right} sectors gone by right, {lost_by_wrong} by wrong"
                ));
            }
        } else {
            let sum = |of: fn(&PowerCutRow) -> u64| self.power_cuts.iter().map(of).sum::<u64>();
            let most = self.power_cuts.iter().map(|cut| cut.lost_by_right).max().unwrap_or(0);
            let (right, wrong) = (sum(|cut| cut.lost_by_right), sum(|cut| cut.lost_by_wrong));
            line(format!(
                "  power lost {} times: {right} sectors gone by right ({most} at most at once), {wrong} by wrong",
                self.power_cuts.len()
            ));
        }
        for violation in &self.violations {
            line(format!("  wrong: {violation}"));
        }
        text
    }
}
