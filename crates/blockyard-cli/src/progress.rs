//! Runs simulations and shows their progress in a line of a terminal.

use blockyard_sim::answer::number::{approximate, count, time};
use blockyard_sim::data::verify::Verify;
use blockyard_sim::job::JobFile;
use blockyard_sim::observe::Observer;
use blockyard_sim::output::Recorder;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};
use indicatif::ProgressBar;

use crate::job::{Given, note_lateness};
use crate::message::warning;
use crate::terminal::ProgressLine;
use crate::trace::is_pointless;

/// The number of events between two updates of the line.
const SLICE: u64 = 1 << 16;

/// Runs the `given` job or trace on `device` under `design`. `recorder`, if any, records all events. A terminal
/// shows the progress.
///
/// A recorder that cannot write ends the run early; its own `finish` returns the error.
///
/// The clock affects only the progress line, never the simulation.
pub(crate) fn simulate(
    given: &Given,
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    recorder: Option<&mut Recorder>,
) -> Result<Report, SimulationError> {
    let Given { jobs, replay, .. } = given;
    let conditions = Conditions { replay: replay.as_ref(), ..conditions };
    let ended = match recorder {
        None => {
            let simulation = Simulation::under(jobs, device, design, conditions)?;
            finish(simulation, jobs, design, |()| false)
        }
        Some(recorder) => {
            let simulation = Simulation::observed(jobs, device, design, conditions, recorder)?;
            finish(simulation, jobs, design, |recorder| is_pointless(recorder))
        }
    };
    if let (Some(verify), Ok(report)) = (conditions.verify, &ended) {
        warn_of_late_cuts(verify, report);
    }
    if let (Some(replay), Ok(report)) = (replay, &ended) {
        note_lateness(replay, &design.name, report.late_ns.as_ref());
    }
    ended
}

/// Warns of requested power losses that lie after the end of the run.
fn warn_of_late_cuts(verify: &Verify, report: &Report) {
    let looked_at = report.verified.as_ref().map_or(0, |verified| verified.power_cuts.len());
    if looked_at < verify.power_cuts.len() && verify.power_cut_every.is_none() {
        warning(&format!(
            "{} of {} power cuts lie after the end of the run: nothing was checked there",
            verify.power_cuts.len() - looked_at,
            verify.power_cuts.len()
        ));
    }
}

/// Runs `simulation` to its end, or until its observer stops it.
fn finish<O: Observer>(
    mut simulation: Simulation<O>,
    jobs: &JobFile,
    design: &Design,
    is_pointless: impl Fn(&O) -> bool,
) -> Result<Report, SimulationError> {
    let expected_ns = expected_ns(jobs);
    let template = match expected_ns {
        Some(_) => "{prefix}: {msg}, {percent} %, {eta} left",
        None => "{prefix}: {msg}",
    };
    let line = ProgressLine::new(template, expected_ns);
    line.bar().set_prefix(design.name.clone());
    while simulation.advance(SLICE)? {
        if is_pointless(simulation.observer()) {
            break;
        }
        show(line.bar(), &simulation);
    }
    Ok(simulation.report())
}

/// Shows the progress of `simulation`.
#[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
fn show<O: Observer>(bar: &ProgressBar, simulation: &Simulation<O>) {
    if bar.is_hidden() {
        return;
    }
    let now_ns = simulation.world().now().as_ns();
    let rate = count(approximate(simulation.ios_done()) / bar.elapsed().as_secs_f64());
    bar.set_message(format!("{rate} I/Os per second, virtual time {}", time(now_ns)));
    bar.set_position(now_ns);
}

/// Returns the virtual time in ns that `jobs` will take, if time alone ends them. Waves run one after another.
fn expected_ns(jobs: &JobFile) -> Option<u64> {
    let mut waves = Vec::new();
    for job in &jobs.jobs {
        if job.stonewall || waves.is_empty() {
            waves.push(0);
        }
        let runtime = job.runtime_ns.filter(|_| job.time_based)?;
        let wave = waves.last_mut()?;
        *wave = runtime.saturating_add(job.ramp_time_ns).max(*wave);
    }
    Some(waves.iter().sum())
}

/// Returns a progress line that counts up to `of`.
pub(crate) fn tally(what: &str, of: usize) -> ProgressLine {
    let of = u64::try_from(of).unwrap_or(u64::MAX);
    ProgressLine::new(&format!("{{pos}} of {{len}} {what}"), Some(of))
}

/// Returns a progress line that shows a percentage and the remaining time. Its message names the work.
pub(crate) fn share() -> ProgressLine {
    ProgressLine::new("{msg}: {percent} %, {eta} left", Some(0))
}

/// Sets `line` to `done` of `of`.
pub(crate) fn show_share(line: &ProgressLine, what: &str, done: u64, of: u64) {
    line.bar().set_length(of);
    line.bar().set_message(what.to_owned());
    line.bar().set_position(done);
}
