//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_answer::certainty::{Question, Wanted};
use blockyard_answer::goal::{Goal, GoalResult};
use blockyard_answer::{Answer, Outcome, whatif_each, whatif_in_turn};
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;

use super::posted;
use crate::cli::{OutputFormat, Whatif};
use crate::job::Given;
use crate::message::{Failure, note};
use crate::progress::{Progress, note_ends, simulate};
use crate::render::whatif::Layout;
use crate::{interrupt, job, render, terminal, trace, verdict};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    args.setting.begin()?;
    let device = args.setting.device(&args.device)?;
    let names = args.designs.names(&device);
    let designs: Vec<_> =
        names.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let subject = args.setting.read()?;
    let given = job::read(&args.job, &args.setting, &device)?;
    if args.setting.choice.parse_only {
        return Ok(());
    }
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("only `run` writes logs: several designs would overwrite each other's");
    }
    let conditions = Conditions { replay: given.replay.as_ref(), ..subject.conditions() };
    let answer = runs(args, &given, &device, &designs, conditions)?;
    note_ends(conditions.verify, &answer.designs);
    let goals = &args.demands.goals;
    let answer = with_goals(goals, Answer { job: given.name.clone(), ..answer })?;
    let question = Question {
        jobs: &given.jobs,
        device: &device,
        designs: &designs,
        conditions: &conditions,
        goals,
    };
    let answer = sure(args, question, answer)?;
    let layout = Layout { width: terminal::width(), details: args.demands.details };
    let text = match args.output_format {
        OutputFormat::Normal => render::whatif::text(&answer, &job::fio_command(&args.job), layout),
        OutputFormat::Json => render::json(&answer),
    };
    args.setting.answer.deliver(&text, out)?;
    if let Some(file) = &args.setting.html {
        posted::of_answer(file, &args.job, &args.device, &answer)?;
    }
    verdict::of(answer.designs.iter())?;
    if args.demands.check { verdict::on_goals(&answer) } else { Ok(()) }
}

/// Adds what each design reaches of each goal. A part of a run tells nothing about goals.
fn with_goals(goals: &[Goal], answer: Answer) -> Result<Answer, Failure> {
    if !goals.is_empty() && answer.designs.iter().any(Outcome::is_partial) {
        let mut verdict = answer.verdict;
        verdict.sentences.push("No goal is judged by a part of a run.".to_owned());
        return Ok(Answer { verdict, ..answer });
    }
    let judged = goals.iter().map(|goal| judged(goal, &answer)).collect::<Result<_, _>>()?;
    Ok(Answer { goals: judged, ..answer })
}

/// Returns what each design reaches of `goal`.
fn judged(goal: &Goal, answer: &Answer) -> Result<GoalResult, Failure> {
    let judged = goal.judge(&answer.designs);
    judged.map_err(|error| Failure::Input(format!("--goal {}: {error}", goal.text)))
}

/// Runs the job under each design: side by side, or one after the other if a trace records them.
fn runs(
    args: &Whatif,
    given: &Given,
    device: &Device,
    designs: &[Design],
    conditions: Conditions<'_>,
) -> Result<Answer, Failure> {
    let Some(trace) = args.setting.trace.as_ref() else {
        let progress = Progress::of(&given.jobs, designs.len());
        return Ok(whatif_each(&given.jobs, device, designs, &conditions, |design| {
            simulate(given, device, design, conditions, None, &progress)
        })?);
    };
    let progress = Progress::in_turn(&given.jobs, designs.len());
    trace::recorded(Some(trace), None, |mut recorder| {
        whatif_in_turn(&given.jobs, device, designs, &conditions, |design| {
            simulate(given, device, design, conditions, recorder.as_deref_mut(), &progress)
        })
    })
}

/// Adds to `answer` what other seeds and other readings of the device say.
fn sure(args: &Whatif, question: Question<'_>, answer: Answer) -> Result<Answer, Failure> {
    let wanted = Wanted::of(args.demands.seeds, args.demands.readings, &answer);
    let runs = wanted.runs(&answer);
    if runs == 0 || interrupt::has_come() {
        return Ok(answer);
    }
    let devices = args.setting.readings(&args.device, wanted.readings)?;
    let progress = Progress::of(question.jobs, runs);
    let surer =
        question.ask_again(answer.clone(), wanted.seeds, &devices, || progress.add_run())?;
    if interrupt::has_come() {
        // The verdict of `surer` rests on runs that were cut short.
        note("interrupted: what other seeds and readings say is left out");
        return Ok(answer);
    }
    Ok(surer)
}
