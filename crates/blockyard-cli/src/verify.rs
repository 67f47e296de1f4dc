//! What was found on the media, in answers.

use core::fmt::Write as _;

use blockyard::time::Duration;
use blockyard_sim::data::verify::{PowerCut, Verified, Verify};
use clap::Args;
use serde::Serialize;

use crate::message::Failure;

/// What is verified.
#[derive(Debug, Args)]
pub(crate) struct Verifying {
    /// Keep data on the device, and check what reads find and what is there at the end
    #[arg(long)]
    verify: bool,

    /// Verify, and look at what a loss of power would leave so long after the begin: 1.5ms, 2s
    #[arg(long, value_name = "TIME", value_parser = time)]
    power_cut: Vec<Duration>,

    /// Verify, and look at what a loss of power would leave again and again
    #[arg(long, value_name = "TIME", value_parser = time_that_passes)]
    power_cut_every: Option<Duration>,
}

impl Verifying {
    /// What is asked for, if anything is.
    pub(crate) fn wanted(&self) -> Option<Verify> {
        let verify =
            Verify { power_cuts: self.power_cut.clone(), power_cut_every: self.power_cut_every };
        (self.verify || verify.cuts_power()).then_some(verify)
    }
}

fn time(text: &str) -> Result<Duration, &'static str> {
    blockyard_sim::profile::time(text).ok_or("a time has a unit: 20us, 1.5ms, 2s")
}

fn time_that_passes(text: &str) -> Result<Duration, &'static str> {
    time(text).and_then(|time| {
        if time > Duration::ZERO { Ok(time) } else { Err("some time must pass in between") }
    })
}

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

/// A run is no success where something is wrong on the media.
pub(crate) fn verdict<'a>(all: impl IntoIterator<Item = &'a VerifiedRow>) -> Result<(), Failure> {
    match all.into_iter().map(|verified| verified.violation_count).sum::<u64>() {
        0 => Ok(()),
        count => Err(Failure::Run(format!(
            "the device does not hold what it ought to: {count} places are wrong"
        ))),
    }
}
