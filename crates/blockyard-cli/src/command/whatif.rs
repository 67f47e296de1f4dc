//! `whatif`: one job under several designs.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use blockyard_answer::Answer;
use blockyard_answer::certainty::{Demands, Question, Watch};
use blockyard_devices::profile::{Device, Override};
use blockyard_sim::simulate::{Conditions, Report, SimulationError};
use blockyard_trace::output::Recorder;

use super::posted::{self, Origin};
use crate::cli::{OutputFormat, Whatif};
use crate::message::{Failure, note};
use crate::progress::{Progress, note_ends, simulate};
use crate::render::whatif::Layout;
use crate::{interrupt, job, render, terminal, trace, verdict};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    args.setting.begin()?;
    let device = args.setting.device(&args.device)?;
    let names = args.designs.names(&device);
    let sweep = args.designs.sweep(&names)?;
    let designs = sweep.designs(&args.setting.of_designs());
    let designs = designs.map_err(|error| args.designs.blamed(error.into()))?;
    let values = sweep.device_values();
    let devices = values.iter().map(|values| args.setting.device_with(&args.device, values));
    let devices = devices.collect::<Result<Vec<_>, _>>();
    let devices = devices.map_err(|failure| args.designs.blamed(failure))?;
    let subject = args.setting.read()?;
    let given = job::read(&args.job, &args.setting, &device)?;
    if args.setting.choice.parse_only {
        return Ok(());
    }
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("only `run` writes logs: several designs would overwrite each other's");
    }
    let conditions = Conditions { replay: given.replay.as_ref(), ..subject.conditions() };
    let question = Question {
        jobs: &given.jobs,
        device: &device,
        devices: &devices,
        designs: &designs,
        conditions: &conditions,
        goals: &args.demands.goals,
        sweep: args.designs.is_swept().then_some(&sweep),
    };
    let answer = Answer { job: given.name.clone(), ..answered(args, &question)? };
    let layout = Layout { width: terminal::width(), details: args.demands.details };
    let text = match args.output_format {
        OutputFormat::Normal => render::whatif::text(&answer, &job::fio_command(&args.job), layout),
        OutputFormat::Json => render::json(&answer),
    };
    args.setting.answer.deliver(&text, out)?;
    if let Some(file) = &args.setting.html {
        let origin = Origin { job: &args.job, device: &args.device, designs: &names };
        posted::of_answer(file, &origin, &answer)?;
    }
    verdict::of(answer.designs.iter())?;
    if args.demands.check { verdict::on_goals(&answer) } else { Ok(()) }
}

/// Answers the question, with a trace of the events if one is asked for. A run that fails or is
/// interrupted leaves a trace up to that point.
fn answered(args: &Whatif, question: &Question<'_>) -> Result<Answer, Failure> {
    let demands = Demands { seeds: args.demands.seeds, readings: args.demands.readings };
    let shown = Shown::new(args, question)?;
    let answer = question.answer(demands, &shown);
    let written = shown.finish_trace();
    let answer = answer?;
    written?;
    let is_short = answer.seeds.is_none() && answer.readings.is_none();
    if is_short && shown.repeated.get().is_some() && interrupt::has_come() {
        note("interrupted: what other seeds and readings say is left out");
    }
    Ok(answer)
}

/// Shows how far the runs are, and records the first ones if a trace is asked for.
struct Shown<'a> {
    args: &'a Whatif,
    question: &'a Question<'a>,
    /// The progress of the first runs; `None` when they are over.
    first: Mutex<Option<Arc<Progress>>>,
    repeated: OnceLock<Progress>,
    /// The recorder of the first runs; `None` without a trace, or when it is written.
    recorder: Mutex<Option<Recorder>>,
}

impl<'a> Shown<'a> {
    fn new(args: &'a Whatif, question: &'a Question<'a>) -> Result<Self, Failure> {
        let runs = question.designs.len();
        let recorder = trace::recorder(args.setting.trace.as_ref(), None)?;
        let first = match recorder {
            Some(_) => Progress::in_turn(question.jobs, runs),
            None => Progress::of(question.jobs, runs),
        };
        let first = Mutex::new(Some(Arc::new(first)));
        let recorder = Mutex::new(recorder);
        Ok(Self { args, question, first, repeated: OnceLock::new(), recorder })
    }

    /// Writes the rest of the trace, if there is one.
    fn finish_trace(&self) -> Result<(), Failure> {
        let recorder = locked(&self.recorder).take();
        Ok(recorder.map_or(Ok(()), Recorder::finish)?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch for Shown<'_> {
    type Error = Failure;

    fn readings(&self, values: &[Override], count: u32) -> Result<Vec<Device>, Failure> {
        self.args.setting.readings(&self.args.device, values, count)
    }

    fn simulate(&self, question: &Question<'_>, at: usize) -> Result<Report, SimulationError> {
        let Question { jobs, conditions, .. } = *question;
        let device = question.device_of(at);
        let design = &question.designs[at];
        let first = locked(&self.first).clone();
        let progress = first.expect("the first runs are not over");
        if !self.runs_in_turn() {
            return simulate(jobs, device, design, *conditions, None, &progress);
        }
        let mut recorder = locked(&self.recorder);
        simulate(jobs, device, design, *conditions, recorder.as_mut(), &progress)
    }

    fn runs_in_turn(&self) -> bool {
        self.args.setting.trace.is_some()
    }

    fn on_first_runs(&self, answer: &Answer) -> Result<(), Failure> {
        drop(locked(&self.first).take());
        self.finish_trace()?;
        note_ends(self.question.conditions.verify, &answer.designs);
        Ok(())
    }

    fn on_repetition(&self, runs: usize) {
        self.repeated.get_or_init(|| Progress::of(self.question.jobs, runs));
    }

    fn on_repeated_run(&self) {
        if let Some(progress) = self.repeated.get() {
            progress.add_run();
        }
    }

    fn is_interrupted(&self) -> bool {
        interrupt::has_come()
    }
}
