//! `run`: one job under one design.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;

use crate::cli::{OutputFormat, Run};
use crate::message::Failure;
use crate::progress::simulate;
use crate::{faults, fio, job};

pub(super) fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let design = Design::lookup(&args.design)?;
    let rules = args.faults.read()?;
    let given = job::read(&args.job)?;
    let conditions = Conditions { faults: rules.as_ref(), ..Conditions::new(args.answer.seed) };
    let report = simulate(&given.jobs, &device, &design, conditions)?;
    let counts = rules.as_ref().map(|_| faults::rows(&report.faults));
    let text = match args.answer.output_format {
        OutputFormat::Normal => {
            let summary = fio::text(&given.jobs, &report);
            match &counts {
                Some(counts) => {
                    summary + "\n" + &faults::text([(None, counts.as_slice())].into_iter())
                }
                None => summary,
            }
        }
        OutputFormat::Json => fio::json(&given.jobs, &device.name, &report, counts.as_deref()),
    };
    args.answer.deliver(&text, out)
}
