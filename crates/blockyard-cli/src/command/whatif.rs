//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::why::{Figures, why};

use crate::cli::Whatif;
use crate::extras::{self, Extras};
use crate::message::{Failure, note};
use crate::progress::simulate;
use crate::report::{Report, Row};
use crate::{job, trace};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let subject = args.setting.read()?;
    let given = job::read(&args.job, &args.setting.playback, &device)?;
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("logs are written by `run` only: designs would write over each other's");
    }
    let instances = given.jobs.jobs.iter().map(|job| job.numjobs).sum();
    let conditions = subject.conditions();
    let (runs, found): (Vec<_>, Vec<_>) =
        trace::recorded(args.setting.trace.as_ref(), None, |mut recorder| {
            let run = |design| {
                let recorder = recorder.as_deref_mut();
                let report = simulate(&given, &device, design, conditions, recorder)?;
                let figures = Figures::of(&report, instances);
                Ok(((design.name.as_str(), figures), Extras::of(&report, &conditions)))
            };
            designs.iter().map(run).collect()
        })?;
    let first_iops = runs.first().map_or(0.0, |(_, figures)| figures.iops);
    let rows = runs.iter().zip(found);
    let report = Report {
        job: given.name,
        device: device.name.clone(),
        seed: args.setting.answer.seed,
        designs: rows
            .map(|((name, figures), extras)| Row { extras, ..Row::new(name, figures, first_iops) })
            .collect(),
        why: why(&device, &runs),
    };
    report.deliver(args.output_format, &args.setting.answer, out)?;
    extras::verdict(report.designs.iter().map(|row| &row.extras))
}
