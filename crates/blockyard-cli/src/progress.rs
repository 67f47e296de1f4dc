//! How far something is, on a terminal: one line that replaces itself.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use blockyard_sim::data::verify::Verify;
use blockyard_sim::job::JobFile;
use blockyard_sim::observe::Observer;
use blockyard_sim::output::Recorder;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};

use crate::job::{Given, tell_lateness};
use crate::message::warning;
use crate::terminal::ERASE;
use crate::trace::is_pointless;
use blockyard_sim::answer::number::{approximate, count, digits};

/// Events between two looks at the clock.
const SLICE: u64 = 1 << 16;
const PAUSE: Duration = Duration::from_millis(200);

/// Runs what is `given` on `device` under `design` to the end, telling `recorder`, if there is one, all
/// that happens, and a terminal how far it is while that takes long.
///
/// A recorder that could not write ends the run early; its own `finish` says why.
///
/// The clock decides only when the line is written, never what is simulated.
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
        tell_late_cuts(verify, report);
    }
    if let (Some(replay), Ok(report)) = (replay, &ended) {
        tell_lateness(replay, &design.name, report.late_ns.as_ref());
    }
    ended
}

/// Tells of losses of power that were asked for and never came.
fn tell_late_cuts(verify: &Verify, report: &Report) {
    let looked_at = report.verified.as_ref().map_or(0, |verified| verified.power_cuts.len());
    if looked_at < verify.power_cuts.len() && verify.power_cut_every.is_none() {
        warning(&format!(
            "{} of the {} losses of power asked for lie behind the end of the run: nothing was looked \
             at there",
            verify.power_cuts.len() - looked_at,
            verify.power_cuts.len()
        ));
    }
}

/// Runs `simulation` to its end, or until its observer says that there is no point in going on.
fn finish<O: Observer>(
    mut simulation: Simulation<O>,
    jobs: &JobFile,
    design: &Design,
    pointless: impl Fn(&O) -> bool,
) -> Result<Report, SimulationError> {
    let mut line = Line::new(&design.name, expected_ns(jobs));
    let ended = loop {
        match simulation.advance(SLICE) {
            Ok(true) if !pointless(simulation.observer()) => line.tell(&simulation),
            Ok(_) => break Ok(simulation.report()),
            Err(error) => break Err(error),
        }
    };
    line.erase();
    ended
}

/// Virtual nanoseconds that `jobs` will take, where time alone ends them: waves follow each other.
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

/// The line.
struct Line<'a> {
    design: &'a str,
    expected_ns: Option<u64>,
    begun: Instant,
    /// When it was written last; `None`: standard error is no terminal.
    written: Option<Instant>,
    shown: bool,
}

impl<'a> Line<'a> {
    fn new(design: &'a str, expected_ns: Option<u64>) -> Self {
        let begun = Instant::now();
        let written = io::stderr().is_terminal().then_some(begun);
        Self { design, expected_ns, begun, written, shown: false }
    }

    /// Writes how far `simulation` is, unless it did so just now.
    fn tell<O: Observer>(&mut self, simulation: &Simulation<O>) {
        let Some(written) = self.written.filter(|written| written.elapsed() >= PAUSE) else {
            return;
        };
        let spent = written.duration_since(self.begun) + written.elapsed();
        let text = self.text(simulation.ios_done(), simulation.world().now().as_ns(), spent);
        // A line of progress that cannot be written is no loss.
        drop(write!(io::stderr(), "{ERASE}{text}"));
        self.shown = true;
        self.written = Some(Instant::now());
    }

    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    fn text(&self, ios: u64, reached_ns: u64, spent: Duration) -> String {
        let (spent, reached) = (spent.as_secs_f64(), approximate(reached_ns) / 1e9);
        let rate = count(approximate(ios) / spent);
        let so_far = format!("{}: {rate} I/Os per second", self.design);
        match self.expected_ns.filter(|_| reached_ns > 0) {
            None => format!("{so_far}, virtual time {} s", digits(reached)),
            Some(expected_ns) => {
                let expected = approximate(expected_ns) / 1e9;
                let left = digits(spent * (expected - reached).max(0.0) / reached);
                format!("{so_far}, virtual time {} of {expected} s, {left} s left", digits(reached))
            }
        }
    }

    fn erase(&self) {
        if self.shown {
            drop(write!(io::stderr(), "{ERASE}"));
        }
    }
}

/// How many of several things are done, told from any thread.
pub(crate) struct Tally {
    what: &'static str,
    done: AtomicUsize,
    of: usize,
    shown: bool,
}

impl Tally {
    /// None of `of` is done.
    pub(crate) fn new(what: &'static str, of: usize) -> Self {
        Self { what, done: AtomicUsize::new(0), of, shown: io::stderr().is_terminal() }
    }

    /// One more is done.
    pub(crate) fn one_more(&self) {
        let done = 1 + self.done.fetch_add(1, Ordering::Relaxed);
        if self.shown {
            drop(write!(io::stderr(), "{ERASE}{done} of {} {}", self.of, self.what));
        }
    }

    /// Erases the line.
    pub(crate) fn erase(&self) {
        if self.shown {
            drop(write!(io::stderr(), "{ERASE}"));
        }
    }
}

/// How much of something is done, and when the rest will be.
pub(crate) struct Share {
    begun: Instant,
    /// When the line was written last; `None`: standard error is no terminal.
    written: Option<Instant>,
    shown: bool,
}

impl Share {
    /// Nothing is done.
    pub(crate) fn new() -> Self {
        let begun = Instant::now();
        let written = io::stderr().is_terminal().then_some(begun);
        Self { begun, written, shown: false }
    }

    /// `done` of `of` is done, which is not 0; unless it was told just now, the line is written.
    #[expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]
    pub(crate) fn tell(&mut self, what: impl core::fmt::Display, done: u64, of: u64) {
        if self.written.is_none_or(|written| written.elapsed() < PAUSE) {
            return;
        }
        let (part, spent) = (approximate(done) / approximate(of), self.begun.elapsed());
        let left = digits(spent.as_secs_f64() * (1.0 - part) / part.max(1e-9));
        let percent = digits(part * 100.0);
        drop(write!(io::stderr(), "{ERASE}{what}: {percent} %, {left} s left"));
        self.shown = true;
        self.written = Some(Instant::now());
    }

    /// Erases the line.
    pub(crate) fn erase(&self) {
        if self.shown {
            drop(write!(io::stderr(), "{ERASE}"));
        }
    }
}
