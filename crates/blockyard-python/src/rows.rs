//! Figures as rows of a table: one for each job, or group of jobs, and direction.

use blockyard_answer::{Direction, DirectionFigures, JobFigures, Outcome};
use serde::Serialize;

/// What a job did in one direction, and the run around it.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    job: String,
    group: u32,
    /// `sync`, `read`, `write` or `trim`.
    direction: &'static str,
    ios: u64,
    bytes: u64,
    iops: f64,
    bytes_per_s: u64,
    lat_min_ns: u64,
    lat_mean_ns: u64,
    lat_p50_ns: u64,
    lat_p99_ns: u64,
    #[serde(rename = "lat_p99.9_ns")]
    lat_p99_9_ns: u64,
    lat_max_ns: u64,
    errors: u64,
    run_iops: f64,
    run_bytes_per_s: u64,
    cpu_percent: f64,
    device_busy_percent: f64,
    ios_per_command: f64,
    wakeups_per_io: f64,
}

/// A row with its design.
#[derive(Debug, Serialize)]
pub(crate) struct DesignRow<'a> {
    design: &'a str,
    ratio: f64,
    #[serde(flatten)]
    row: Row,
}

/// Returns the rows of one design in an answer.
pub(crate) fn of_design(outcome: &Outcome) -> impl Iterator<Item = DesignRow<'_>> {
    let (design, ratio) = (&outcome.name, outcome.ratio);
    of(outcome).map(move |row| DesignRow { design, ratio, row })
}

/// Returns the rows of a run. Each job has one for each direction that its options name, with I/O or without; syncs are one.
pub(crate) fn of(outcome: &Outcome) -> impl Iterator<Item = Row> {
    outcome.jobs.iter().flat_map(move |job| {
        let all = Direction::ALL.into_iter();
        all.filter_map(|of| Some(Row::new(outcome, job, of.name(), job.direction(of)?)))
    })
}

impl Row {
    fn new(
        run: &Outcome,
        job: &JobFigures,
        direction: &'static str,
        of: &DirectionFigures,
    ) -> Self {
        let lat = &of.lat_ns;
        Self {
            job: job.name.clone(),
            group: job.group,
            direction,
            ios: of.ios,
            bytes: of.bytes,
            iops: of.iops,
            bytes_per_s: of.bytes_per_s,
            lat_min_ns: lat.min,
            lat_mean_ns: lat.mean,
            lat_p50_ns: lat.p50,
            lat_p99_ns: lat.p99,
            lat_p99_9_ns: lat.p99_9,
            lat_max_ns: lat.max,
            errors: job.errors,
            run_iops: run.figures.iops,
            run_bytes_per_s: run.figures.bytes_per_s,
            cpu_percent: run.figures.cpu_percent,
            device_busy_percent: run.figures.device_busy_percent,
            ios_per_command: run.figures.ios_per_command,
            wakeups_per_io: run.figures.wakeups_per_io,
        }
    }
}

/// Formats a value as JSON. Numbers are those of the command line, digit by digit.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the keys of an answer should be strings")
}
