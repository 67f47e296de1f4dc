//! `run`: one job under one design, reported as by fio.

use std::io::Write;

use blockyard_answer::Outcome;
use blockyard_devices::profile::Design;
use blockyard_fio::job::{JobFile, LogPrefix};
use blockyard_sim::simulate::{Conditions, Report};

use super::posted::{self, Origin};
use crate::cli::{JobLogs, Run, RunFormat};
use crate::message::{Failure, note};
use crate::progress::{Progress, note_ends, simulate};
use crate::render;
use crate::{fio, job, terminal, trace, verdict};

/// The device of a run for which none is named.
pub(super) const DEVICE: &str = "null";

pub(super) fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    args.setting.begin()?;
    let device = args.setting.device(args.device.as_deref().unwrap_or(DEVICE))?;
    let design = Design::lookup_with(&args.design, &args.setting.of_designs())?;
    let subject = args.setting.read()?;
    let mut given = job::read(&args.job, &args.setting, &device)?;
    if args.setting.choice.parse_only {
        return Ok(());
    }
    if args.device.is_none() {
        note(
            "without --device the job runs on `null`, which takes no time: `blockyard list devices` has others",
        );
    }
    ask_for(&args.outputs.logs, &mut given.jobs);
    let replay = given.replay.as_ref();
    let conditions = Conditions { logs: true, replay, ..subject.conditions() };
    let progress = Progress::of(&given.jobs, 1);
    let report =
        trace::recorded(args.setting.trace.as_ref(), args.outputs.blktrace.as_ref(), |recorder| {
            simulate(&given.jobs, &device, &design, conditions, recorder, &progress)
        })?;
    drop(progress);
    let outcome = Outcome::of(&design.name, &given.jobs, &report, &conditions, None);
    note_ends(conditions.verify, core::slice::from_ref(&outcome));
    if let Some(unshared) = outcome.without_groups() {
        note(&unshared);
    }
    if let Some(late) = outcome.lateness() {
        note(&format!("{late}; `lat` counts from the recorded instants, `clat` from the issue"));
    }
    let formats = args.outputs.formats();
    let seed = args.setting.answer.seed;
    let heading = format!("{} on {}, {}, seed {seed}", given.name, device.name, design.name);
    let text = text(&formats, &heading, &given.jobs, &device.name, &report, &outcome);
    args.setting.answer.deliver(&text, out)?;
    if let Some(file) = &args.setting.html {
        let origin = Origin {
            job: &args.job,
            device: &device.name,
            designs: core::slice::from_ref(&args.design),
        };
        posted::of_run(file, &origin, &device, &outcome, seed)?;
    }
    verdict::of([&outcome])
}

/// Makes every job write the logs that the command line requests, whatever the job's own options
/// say.
fn ask_for(logs: &JobLogs, jobs: &mut JobFile) {
    for job in &mut jobs.jobs {
        let own = &mut job.reporting.logging;
        for (log, asked) in [
            (&mut own.latency, &logs.lat_log),
            (&mut own.bandwidth, &logs.bw_log),
            (&mut own.iops, &logs.iops_log),
        ] {
            if let Some(prefix) = asked {
                *log = Some(LogPrefix::Given(prefix.clone()));
            }
        }
    }
}

/// Formats the report in each of `formats`, in fio's order; for people below `heading`.
fn text(
    formats: &[RunFormat],
    heading: &str,
    jobs: &JobFile,
    device: &str,
    report: &Report,
    outcome: &Outcome,
) -> String {
    let mut text = String::new();
    if formats.contains(&RunFormat::Terse) {
        text += &fio::terse(jobs, device, report);
    }
    if formats.contains(&RunFormat::Json) || formats.contains(&RunFormat::JsonPlus) {
        text += &fio::json(jobs, device, report, outcome, formats.contains(&RunFormat::JsonPlus));
    }
    if formats.contains(&RunFormat::Normal) {
        text += if text.is_empty() { "" } else { "\n" };
        text += &format!("{heading}\n\n");
        text += &fio::text(jobs, report);
        let alone = [(None, outcome)];
        let width = terminal::width();
        text += &render::device::hosts(&alone, width);
        text += &render::device::findings(&alone, width);
    }
    text
}
