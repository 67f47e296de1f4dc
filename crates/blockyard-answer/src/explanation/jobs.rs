//! The reason of each job's difference: where its requests spend more or less time under another
//! design.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use serde::Serialize;

use crate::direction::Direction;
use crate::life::{Life, LifeStage};
use crate::outcome::Outcome;
use crate::verdict::{Cell, Row};
use blockyard_devices::compare::Pair;
use blockyard_text::number::{approximate, digits, nanoseconds};

/// The largest number of jobs with a reason.
const JOBS_MAX: usize = 6;
/// The share of a difference in latency from which a stage carries it.
const CARRIES: f64 = 1.0 / 3.0;

/// Why a job reaches another rate under one design than under the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobReason {
    /// The job, and its direction if it has several.
    pub job: String,
    /// The kind of call that the job waits for: `read`, `write` or `trim`, or `sync` for the writes
    /// of a job that syncs.
    pub direction: String,
    /// The first design.
    pub first: String,
    /// The other design, that which differs most.
    pub other: String,
    /// The job's IOPS under the other design, relative to those under the first.
    pub ratio: f64,
    /// The mean latency of such a call: `low` under the other design, `high` under the first.
    pub lat_ns: Pair,
    /// The stage that carries the largest part of the difference in latency, if one carries a third
    /// of it.
    pub(crate) stage: Option<LifeStage>,
    /// The mean time of a request in that stage.
    pub(crate) stage_ns: Pair,
    /// Whether other jobs do I/O in this direction too. The times in stages are of all requests in
    /// it.
    pub(crate) is_shared: bool,
}

/// Returns the reasons of the rows whose rates differ, in an answer with several rows.
pub(crate) fn reasons(outcomes: &[Outcome], rows: &[Row]) -> Vec<JobReason> {
    debug_assert!(
        rows.iter().all(|row| row.designs.len() == outcomes.len()),
        "a cell for each outcome"
    );
    if rows.iter().filter(|row| !row.is_sync()).count() < 2 {
        return Vec::new();
    }
    let differing = rows.iter().filter_map(|row| {
        let cells = row.designs.iter().enumerate().filter(|(_, cell)| cell.differs);
        let furthest = cells.max_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)))?;
        Some((row, furthest.0))
    });
    differing.filter_map(|(row, at)| reason(outcomes, rows, row, at)).take(JOBS_MAX).collect()
}

/// By how much the mean latency of a row differs from that under the first design, in nanoseconds.
fn growth(row: &Row, at: usize) -> u64 {
    row.designs[at].mean_ns.abs_diff(row.designs[0].mean_ns)
}

/// How far a rate is from that under the first design, as a factor of at least 1.
fn distance(cell: &Cell) -> f64 {
    cell.ratio.map_or(1.0, |ratio| ratio.max(1.0 / ratio))
}

/// The reason for the difference of `row` under the design `at`. The writes of a job that syncs
/// wait for its syncs. `None` if the latency does not explain the rate: it is equal, or moves with
/// the rate instead of against it.
fn reason(outcomes: &[Outcome], rows: &[Row], row: &Row, at: usize) -> Option<JobReason> {
    debug_assert!(at > 0, "the first design differs from none");
    let syncs = rows.iter().find(|other| other.is_sync() && other.job == row.job);
    let syncs = syncs.filter(|_| row.direction == Direction::Write.name());
    // The job waits for its writes and for their syncs: the one whose latency changes more explains
    // its rate.
    let waits = syncs.filter(|syncs| growth(syncs, at) > growth(row, at)).unwrap_or(row);
    let [low_ns, high_ns] = [at, 0].map(|at| approximate(waits.designs[at].mean_ns));
    let lat_ns = Pair { low: low_ns, high: high_ns };
    let ratio = row.designs[at].ratio?;
    if nanoseconds(lat_ns.low) == nanoseconds(lat_ns.high)
        || (lat_ns.low > lat_ns.high) != (ratio < 1.0)
    {
        return None;
    }
    // The stages of a sync are those of its flushes, which are not known.
    let [low, high] = [at, 0].map(|at| match row.direction == Direction::Read.name() {
        true => outcomes[at].figures.read_life_ns,
        false => outcomes[at].figures.write_life_ns,
    });
    let found = if waits.is_sync() { None } else { carrier(low, high, lat_ns) };
    let others = rows.iter().filter(|other| !other.is_sync() && other.direction == row.direction);
    let is_shared = others.count() > 1;
    // A stage of all requests in the direction that is longer than an I/O of this job is another
    // job's.
    let found =
        found.filter(|(_, ns)| !is_shared || (ns.low <= lat_ns.low && ns.high <= lat_ns.high));
    Some(JobReason {
        job: row.label.clone(),
        direction: waits.direction.clone(),
        first: row.designs[0].design.clone(),
        other: row.designs[at].design.clone(),
        ratio,
        lat_ns,
        stage: found.map(|(stage, _)| stage),
        stage_ns: found.map_or(Pair { low: 0.0, high: 0.0 }, |(_, ns)| ns),
        is_shared,
    })
}

/// Returns the stage whose times differ most in the direction in which the latency differs, if it
/// carries enough of that.
fn carrier(low: Life, high: Life, lat_ns: Pair) -> Option<(LifeStage, Pair)> {
    let difference = lat_ns.low - lat_ns.high;
    if difference == 0.0 {
        return None;
    }
    let stages = low.parts().into_iter().zip(high.parts());
    let shares = stages
        .map(|((stage, low), (_, high))| (stage, Pair { low, high }, (low - high) / difference));
    let (stage, ns, share) = shares.max_by(|(.., a), (.., b)| a.total_cmp(b))?;
    (share >= CARRIES).then_some((stage, ns))
}

impl JobReason {
    /// The reason as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { job, direction, first, other, ratio, lat_ns, stage, stage_ns, is_shared } = self;
        let rate = if *ratio >= 2.0 {
            format!("{} times", digits(*ratio))
        } else {
            format!("{:+.0} %", 100.0 * (ratio - 1.0))
        };
        let [low, high] = [lat_ns.low, lat_ns.high].map(nanoseconds);
        let of = if *is_shared { format!(", all {direction}s together") } else { String::new() };
        let place = stage.map_or_else(String::new, |stage| {
            let [low, high] = [stage_ns.low, stage_ns.high].map(nanoseconds);
            format!("; its time {} is {low} instead of {high}{of}", place(stage))
        });
        format!(
            "{job}, {other} against {first}: {rate}, because a {direction} takes {low} instead of {high}{place}."
        )
    }
}

/// Where a request is in a stage.
const fn place(stage: LifeStage) -> &'static str {
    match stage {
        LifeStage::WaitingForTag => "waiting for a tag",
        LifeStage::Queued => "queued in the scheduler",
        LifeStage::Dequeued => "between scheduler and driver",
        LifeStage::InDriver => "in the driver and the device",
        LifeStage::WaitingForFlush => "waiting for flushes",
        LifeStage::NotReaped => "completed and not reaped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(queued: f64, in_driver: f64) -> Life {
        Life { queued, in_driver, ..Life::default() }
    }

    #[test]
    fn the_stage_that_carries_the_difference_is_named() {
        let lat = Pair { low: 30.0, high: 14.0 };
        let found = carrier(life(16.0, 12.0), life(1.0, 12.5), lat);
        assert_eq!(found, Some((LifeStage::Queued, Pair { low: 16.0, high: 1.0 })));
        // A request takes less time although it is queued for longer: the driver carries the
        // difference.
        let lat = Pair { low: 14.0, high: 30.0 };
        let found = carrier(life(4.0, 10.0), life(2.0, 28.0), lat);
        assert_eq!(found.map(|(stage, _)| stage), Some(LifeStage::InDriver));
        assert_eq!(carrier(life(1.0, 1.0), life(1.0, 1.0), lat), None);
    }

    #[test]
    fn a_reason_is_a_sentence() {
        let reason = JobReason {
            job: "log".to_owned(),
            direction: "write".to_owned(),
            first: "none".to_owned(),
            other: "mq-deadline".to_owned(),
            ratio: 0.48,
            lat_ns: Pair { low: 30e6, high: 14e6 },
            stage: Some(LifeStage::Queued),
            stage_ns: Pair { low: 16e6, high: 1e6 },
            is_shared: false,
        };
        assert_eq!(
            reason.sentence(),
            "log, mq-deadline against none: -52 %, because a write takes 30.0 ms instead of 14.0 ms; its time \
             queued in the scheduler is 16.0 ms instead of 1.00 ms."
        );
        let shared = JobReason { is_shared: true, ratio: 2.5, ..reason.clone() };
        assert!(shared.sentence().contains(": 2.50 times, "), "{}", shared.sentence());
        assert!(shared.sentence().ends_with(", all writes together."), "{}", shared.sentence());
        let elsewhere = JobReason { stage: None, ..reason };
        assert!(elsewhere.sentence().ends_with("instead of 14.0 ms."), "{}", elsewhere.sentence());
    }
}
