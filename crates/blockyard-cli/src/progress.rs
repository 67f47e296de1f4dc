//! Runs simulations and shows how far they are: in a line of a terminal, or in a line every 30 s if standard error is none.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;

use blockyard_sim::answer::Outcome;
use blockyard_sim::answer::number::approximate;
use blockyard_sim::data::verify::Verify;
use blockyard_sim::job::JobFile;
use blockyard_sim::observe::Observer;
use blockyard_sim::output::Recorder;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError, Stopped};

use crate::job::{Given, note_lateness};
use crate::log;
use crate::message::{note, warning};
use crate::terminal::ProgressLine;

/// The number of events between two updates of the line.
const SLICE: u64 = 1 << 16;
/// The time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// The progress of several runs of one job file, on any number of threads.
///
/// The clock affects only what is shown, never a simulation.
pub(crate) struct Progress {
    line: ProgressLine,
    /// The virtual time of one run in ns; `None` if time does not end it.
    run_ns: Option<u64>,
    /// What all runs take: virtual time in ns, or their number.
    all: u64,
    done: AtomicU64,
    /// When the last line was printed, from the start.
    printed: Mutex<Duration>,
}

impl Progress {
    /// Shows `runs` runs of `jobs`.
    pub(crate) fn of(jobs: &JobFile, runs: usize) -> Self {
        let run_ns = expected_ns(jobs);
        let runs = u64::try_from(runs).unwrap_or(u64::MAX);
        let all = runs.saturating_mul(run_ns.unwrap_or(1)).max(1);
        let line = ProgressLine::new("{msg}", Some(all), log::has_notes());
        Self { line, run_ns, all, done: AtomicU64::new(0), printed: Mutex::default() }
    }

    /// Adds `ns` of virtual time to what is done.
    fn add_time(&self, ns: u64) {
        if self.run_ns.is_some() {
            self.done.fetch_add(ns, Ordering::Relaxed);
        }
        self.show();
    }

    /// Adds a whole run, of which `shown_ns` have been added before.
    pub(crate) fn add_run(&self, shown_ns: u64) {
        let rest = self.run_ns.map_or(1, |run_ns| run_ns.saturating_sub(shown_ns));
        self.done.fetch_add(rest, Ordering::Relaxed);
        self.show();
    }

    fn show(&self) {
        let bar = self.line.bar();
        let elapsed = bar.elapsed();
        let words = || self.words(elapsed);
        if self.line.is_seen() {
            bar.set_message(words());
            return;
        }
        let Ok(mut printed) = self.printed.try_lock() else { return };
        if elapsed >= *printed + BETWEEN_LINES {
            *printed = elapsed;
            note(&words());
        }
    }

    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    fn words(&self, elapsed: Duration) -> String {
        let done = self.done.load(Ordering::Relaxed).min(self.all);
        let share = approximate(done) / approximate(self.all);
        let so_far = match self.run_ns {
            Some(_) => format!("{:.0} % done", 100.0 * share),
            None => format!("{done} of {} runs done", self.all),
        };
        if done == 0 {
            return so_far;
        }
        let left = elapsed.mul_f64((1.0 - share) / share);
        format!("{so_far}, about {} s left", left.as_secs())
    }
}

/// Runs the `given` job or trace on `device` under `design`. `recorder`, if any, records all events.
///
/// A recorder that cannot write ends the run early; its own `finish` returns the error.
pub(crate) fn simulate(
    given: &Given,
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    recorder: Option<&mut Recorder>,
    progress: &Progress,
) -> Result<Report, SimulationError> {
    let Given { jobs, replay, .. } = given;
    let conditions = Conditions { replay: replay.as_ref(), ..conditions };
    match recorder {
        None => finish(Simulation::under(jobs, device, design, conditions)?, progress, |()| false),
        Some(recorder) => {
            let simulation = Simulation::observed(jobs, device, design, conditions, recorder)?;
            finish(simulation, progress, |recorder| recorder.is_broken())
        }
    }
}

/// Tells what the runs leave unsaid: power cuts after the end, I/Os that were late, why a run was stopped.
pub(crate) fn note_ends(given: &Given, verify: Option<&Verify>, outcomes: &[Outcome]) {
    for outcome in outcomes {
        if let Some(verify) = verify {
            warn_of_late_cuts(verify, outcome);
        }
        if let Some(replay) = &given.replay {
            note_lateness(replay, &outcome.name, outcome.late_ns.as_ref());
        }
        let Some(stop) = outcome.stopped else { continue };
        let tell = if stop.why == Stopped::Steady { note } else { warning };
        tell(&stop.words(&outcome.name));
    }
}

/// Warns of requested power losses that lie after the end of the run.
fn warn_of_late_cuts(verify: &Verify, outcome: &Outcome) {
    let looked_at = outcome.verified.as_ref().map_or(0, |verified| verified.power_cuts.len());
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
    progress: &Progress,
    is_pointless: impl Fn(&O) -> bool,
) -> Result<Report, SimulationError> {
    let mut shown_ns = 0;
    while simulation.advance(SLICE)? {
        if is_pointless(simulation.observer()) {
            break;
        }
        let now_ns = simulation.world().now().as_ns();
        progress.add_time(now_ns - shown_ns);
        shown_ns = now_ns;
    }
    progress.add_run(shown_ns);
    Ok(simulation.report())
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
    ProgressLine::new(&format!("{{pos}} of {{len}} {what}"), Some(of), log::has_notes())
}

/// Returns a progress line that shows a percentage and the remaining time. Its message names the work.
pub(crate) fn share() -> ProgressLine {
    ProgressLine::new("{msg}: {percent} %, {eta} left", Some(0), log::has_notes())
}

/// Sets `line` to `done` of `of`.
pub(crate) fn show_share(line: &ProgressLine, what: &str, done: u64, of: u64) {
    line.bar().set_length(of);
    line.bar().set_message(what.to_owned());
    line.bar().set_position(done);
}
