//! `run`: one job under one design.

use std::io::Write;

use blockyard_sim::job::{JobFile, LogPrefix};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Report};

use crate::cli::{JobLogs, Run, RunFormat};
use crate::faults::{self, FaultRow};
use crate::message::Failure;
use crate::progress::simulate;
use crate::{fio, job, trace};

pub(super) fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let design = Design::lookup(&args.design)?;
    let rules = args.faults.read()?;
    let mut given = job::read(&args.job, &args.playback, &device)?;
    ask_for(&args.logs, &mut given.jobs);
    let conditions =
        Conditions { faults: rules.as_ref(), logs: true, ..Conditions::new(args.answer.seed) };
    let mut recorder = trace::begin(args.traced.trace.as_ref(), args.blktrace.as_ref())?;
    let ended = simulate(&given, &device, &design, conditions, recorder.as_mut());
    // A run that failed leaves a trace of how far it got.
    let written = trace::finish(recorder);
    let report = ended?;
    written?;
    let faults = rules.map(|_| faults::rows(&report.faults));
    let text = text(&args.output_format, &given.jobs, &device.name, &report, faults.as_deref());
    args.answer.deliver(&text, out)
}

/// Every job is to write the logs that the command line asks for, whatever it says itself.
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

/// The report in each of `formats`, in fio's order; `faults` are the rules asked for.
fn text(
    formats: &[RunFormat],
    jobs: &JobFile,
    device: &str,
    report: &Report,
    faults: Option<&[FaultRow]>,
) -> String {
    let wanted = |format| formats.contains(&format);
    let mut text = String::new();
    if wanted(RunFormat::Terse) {
        text += &fio::terse(jobs, device, report);
    }
    if wanted(RunFormat::Json) || wanted(RunFormat::JsonPlus) {
        text += &fio::json(jobs, device, report, faults, wanted(RunFormat::JsonPlus));
    }
    if wanted(RunFormat::Normal) {
        text += if text.is_empty() { "" } else { "\n" };
        text += &fio::text(jobs, report);
        if let Some(rules) = faults::table(faults.map(|rows| (None, rows)).into_iter()) {
            text += &format!("\n{rules}");
        }
    }
    text
}
