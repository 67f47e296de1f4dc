//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::answer::goal::{Goal, GoalResult};
use blockyard_sim::answer::{Answer, certainty, whatif_each, whatif_in_turn};
use blockyard_sim::profile::{Design, Device};
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
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("only `run` writes logs: several designs would overwrite each other's");
    }
    let conditions = Conditions { replay: given.replay.as_ref(), ..subject.conditions() };
    let answer = runs(args, &given, &device, &designs, conditions)?;
    note_ends(&given, conditions.verify, &answer.designs);
    let answer = sure(args, &given, &device, designs, conditions, answer)?;
    let goals =
        args.demands.goals.iter().map(|goal| judged(goal, &answer)).collect::<Result<_, _>>()?;
    let answer = Answer { job: given.name.clone(), goals, ..answer };
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
    if args.demands.check { verdict::on_goals(&answer.goals) } else { Ok(()) }
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
    let progress = Progress::of(&given.jobs, designs.len());
    let Some(trace) = args.setting.trace.as_ref() else {
        return Ok(whatif_each(&given.jobs, device, designs, &conditions, |design| {
            simulate(given, device, design, conditions, None, &progress)
        })?);
    };
    trace::recorded(Some(trace), None, |mut recorder| {
        whatif_in_turn(&given.jobs, device, designs, &conditions, |design| {
            simulate(given, device, design, conditions, recorder.as_deref_mut(), &progress)
        })
    })
}

/// Adds to `answer` what other seeds and other readings of the device say.
fn sure(
    args: &Whatif,
    given: &Given,
    device: &Device,
    mut designs: Vec<Design>,
    conditions: Conditions<'_>,
    answer: Answer,
) -> Result<Answer, Failure> {
    designs.retain(|design| answer.unsuited.iter().all(|of| of.design != design.name));
    let seeds = args.demands.seeds.unwrap_or_default();
    let readings = args.demands.readings.unwrap_or_else(|| certainty::usual_readings(&answer));
    let runs = (seeds.saturating_sub(1) as usize + readings as usize) * designs.len();
    if runs == 0 || interrupt::has_come() {
        return Ok(answer);
    }
    let (jobs, stated) = (&given.jobs, &answer.verdict);
    let progress = Progress::of(jobs, runs);
    let ended = || progress.add_run(0);
    let seeds = match seeds {
        0 => None,
        count => Some(certainty::seeds(jobs, device, &designs, stated, &conditions, count, ended)?),
    };
    let readings = match readings {
        0 => None,
        count => {
            let devices = args.setting.readings(&args.device, count)?;
            let found = certainty::readings(jobs, &devices, &designs, stated, &conditions, ended)?;
            Some(found)
        }
    };
    if interrupt::has_come() {
        note("interrupted: what other seeds and readings say is left out");
        return Ok(answer);
    }
    Ok(Answer { seeds, readings, ..answer })
}
