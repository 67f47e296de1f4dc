//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::answer::{Answer, whatif_by};
use blockyard_sim::profile::{Design, Device};

use crate::cli::{OutputFormat, Whatif};
use crate::message::{Failure, note};
use crate::progress::simulate;
use crate::render;
use crate::{job, trace, verdict};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let subject = args.setting.read()?;
    let given = job::read(&args.job, &args.setting.playback, &device)?;
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("only `run` writes logs: several designs would overwrite each other's");
    }
    let conditions = subject.conditions();
    let answer = trace::recorded(args.setting.trace.as_ref(), None, |mut recorder| {
        whatif_by(&given.jobs, &device, &designs, &conditions, |design| {
            simulate(&given, &device, design, conditions, recorder.as_deref_mut())
        })
    })?;
    let answer = Answer { job: given.name, ..answer };
    let text = match args.output_format {
        OutputFormat::Normal => render::whatif::text(&answer),
        OutputFormat::Json => render::json(&answer),
    };
    args.setting.answer.deliver(&text, out)?;
    verdict::of(answer.designs.iter())
}
