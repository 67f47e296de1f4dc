//! `run`: one job under one design.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;

use crate::cli::{OutputFormat, Run};
use crate::message::Failure;
use crate::progress::simulate;
use crate::verify::{VerifiedRow, verdict};
use crate::{faults, fio, job};

pub(super) fn run(args: &Run, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let design = Design::lookup(&args.design)?;
    let rules = args.faults.read()?;
    let given = job::read(&args.job)?;
    let verify = args.verifying.wanted();
    let conditions = Conditions {
        faults: rules.as_ref(),
        verify: verify.as_ref(),
        ..Conditions::new(args.answer.seed)
    };
    let report = simulate(&given.jobs, &device, &design, conditions)?;
    let counts = rules.as_ref().map(|_| faults::rows(&report.faults));
    let verified = report.verified.as_ref().map(VerifiedRow::from);
    let text = match args.answer.output_format {
        OutputFormat::Normal => {
            let mut text = fio::text(&given.jobs, &report);
            if let Some(counts) = &counts {
                text += "\n";
                text += &faults::text([(None, counts.as_slice())].into_iter());
            }
            if let Some(verified) = &verified {
                text += "\n";
                text += &verified.text();
            }
            text
        }
        OutputFormat::Json => {
            let (jobs, counts) = (&given.jobs, counts.as_deref());
            fio::json(jobs, &device.name, &report, counts, verified.as_ref())
        }
    };
    args.answer.deliver(&text, out)?;
    verdict(&verified)
}
