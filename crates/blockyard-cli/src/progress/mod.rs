//! Runs simulations and shows how far they are: in a line of a terminal, or in a line every 30 s if
//! standard error is none.

mod estimate;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use blockyard_answer::Outcome;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::JobFile;
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError, Stopped};
use blockyard_trace::observe::Observer;
use blockyard_trace::output::Recorder;

use crate::log;
use crate::message::{note, warning};
use crate::terminal::ProgressLine;
use estimate::Runs;

/// The number of events between two updates of the line.
const SLICE: u64 = 1 << 16;
/// The time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// The progress of several runs of one job file, on any number of threads.
///
/// The clock affects only what is shown, never a simulation.
pub(crate) struct Progress {
    line: ProgressLine,
    runs: Mutex<Runs>,
    /// When the last line was printed, from the start.
    printed: Mutex<Duration>,
}

/// A run that has begun. It has ended when this is dropped.
struct Run<'a> {
    progress: &'a Progress,
    number: usize,
}

impl Progress {
    /// Shows `runs` runs of `jobs`, of which each processor does one at a time.
    pub(crate) fn of(jobs: &JobFile, runs: usize) -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::at_a_time(jobs, runs, processors)
    }

    /// Shows `runs` runs of `jobs`, one after the other.
    pub(crate) fn in_turn(jobs: &JobFile, runs: usize) -> Self {
        Self::at_a_time(jobs, runs, 1)
    }

    fn at_a_time(jobs: &JobFile, runs: usize, at_a_time: usize) -> Self {
        let line = ProgressLine::new("{msg}", None, log::has_notes());
        let runs = Mutex::new(Runs::new(expected_ns(jobs), runs, at_a_time));
        Self { line, runs, printed: Mutex::default() }
    }

    fn begin(&self) -> Run<'_> {
        let mut number = 0;
        self.note(|runs, at| number = runs.begin(at));
        Run { progress: self, number }
    }

    /// Adds a whole run of which nothing was told before.
    pub(crate) fn add_run(&self) {
        self.note(|runs, _| runs.end_untold());
    }

    /// Changes what is known of the runs, and shows it.
    fn note(&self, change: impl FnOnce(&mut Runs, Duration)) {
        let elapsed = self.line.bar().elapsed();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut runs, elapsed);
        if self.line.is_seen() {
            self.line.bar().set_message(runs.words(elapsed));
            return;
        }
        let Ok(mut printed) = self.printed.try_lock() else { return };
        if elapsed >= *printed + BETWEEN_LINES {
            *printed = elapsed;
            note(&runs.words(elapsed));
        }
    }
}

impl Run<'_> {
    fn is_prepared(&self) {
        self.progress.note(|runs, at| runs.prepared(self.number, at));
    }

    fn has_reached(&self, ns: u64) {
        self.progress.note(|runs, at| runs.reached(self.number, ns, at));
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.progress.note(|runs, at| runs.end(self.number, at));
    }
}

/// Runs `jobs`, or the trace of the `conditions`, on `device` under `design`. `recorder`, if any,
/// records all events.
///
/// A recorder that cannot write ends the run early; its own `finish` returns the error.
pub(crate) fn simulate(
    jobs: &JobFile,
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    recorder: Option<&mut Recorder>,
    progress: &Progress,
) -> Result<Report, SimulationError> {
    let run = progress.begin();
    let simulation = match recorder {
        None => Simulation::under(jobs, device, design, conditions),
        Some(recorder) => Simulation::observed(jobs, device, design, conditions, recorder),
    };
    finish(simulation?, &run)
}

/// Tells what the runs leave unsaid: power cuts after the end, why a run was stopped.
pub(crate) fn note_ends(verify: Option<&Verify>, outcomes: &[Outcome]) {
    for outcome in outcomes {
        if let Some(verify) = verify {
            warn_of_late_cuts(verify, outcome);
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
fn finish(mut simulation: Simulation<'_>, run: &Run<'_>) -> Result<Report, SimulationError> {
    run.is_prepared();
    while simulation.advance(SLICE)? {
        if simulation.observer().is_some_and(Observer::is_broken) {
            break;
        }
        run.has_reached(simulation.world().now().as_ns());
    }
    run.has_reached(simulation.world().now().as_ns());
    Ok(simulation.report())
}

/// Returns the virtual time in ns that `jobs` will take, if time alone ends them. A job behind a
/// `stonewall` begins after those before it, unless it waits for its start delay even then.
fn expected_ns(jobs: &JobFile) -> Option<u64> {
    let mut wall_ns = 0_u64;
    let mut end_ns = 0_u64;
    for job in &jobs.jobs {
        let runtime = job.runtime_ns.filter(|_| job.time_based)?;
        let (_, delay_ns) = job.startdelay_ns;
        if job.stonewall && delay_ns <= end_ns {
            wall_ns = end_ns;
        }
        let begin_ns = wall_ns.max(delay_ns);
        let job_ends_ns = begin_ns.saturating_add(job.ramp_time_ns).saturating_add(runtime);
        end_ns = end_ns.max(job_ends_ns);
    }
    Some(end_ns)
}

/// Returns a progress line that counts up to `of`.
pub(crate) fn tally(what: &str, of: usize) -> ProgressLine {
    let of = u64::try_from(of).unwrap_or(u64::MAX);
    ProgressLine::new(&format!("{{pos}} of {{len}} {what}"), Some(of), log::has_notes())
}

/// Returns a progress line that shows a percentage and the remaining time. Its message names the
/// work.
pub(crate) fn share() -> ProgressLine {
    ProgressLine::new("{msg}: {percent} %, {eta} left", Some(0), log::has_notes())
}

/// Sets `line` to `done` of `of`.
pub(crate) fn show_share(line: &ProgressLine, what: &str, done: u64, of: u64) {
    line.bar().set_length(of);
    line.bar().set_message(what.to_owned());
    line.bar().set_position(done);
}
