//! `run`: one job under one design.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};

use crate::cli::{OutputFormat, Run};
use crate::message::Failure;
use crate::progress::simulate;
use crate::{fio, job, trace};

pub(super) fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let design = Design::lookup(&args.design)?;
    let given = job::read(&args.job)?;
    let mut recorder = trace::begin(args.traced.trace.as_ref(), args.blktrace.as_ref())?;
    let ended = simulate(&given.jobs, &device, &design, args.answer.seed, recorder.as_mut());
    // A run that failed leaves a trace of how far it got.
    let written = trace::finish(recorder);
    let report = ended?;
    written?;
    let text = match args.answer.output_format {
        OutputFormat::Normal => fio::text(&given.jobs, &report),
        OutputFormat::Json => fio::json(&given.jobs, &device.name, &report),
    };
    args.answer.deliver(&text, out)
}
