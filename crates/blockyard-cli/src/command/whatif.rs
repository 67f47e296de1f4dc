//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::SimulationError;
use blockyard_sim::why::{Figures, why};

use crate::cli::Whatif;
use crate::message::Failure;
use crate::progress::simulate;
use crate::report::{Report, Row};
use crate::{job, trace};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let given = job::read(&args.job)?;
    let instances = given.jobs.jobs.iter().map(|job| job.numjobs).sum();
    let mut recorder = trace::begin(args.traced.trace.as_ref(), None)?;
    let ended = designs.iter().map(|design| {
        let report = simulate(&given.jobs, &device, design, args.answer.seed, recorder.as_mut())?;
        Ok((design.name.as_str(), Figures::of(&report, instances)))
    });
    let ended = ended.collect::<Result<Vec<_>, SimulationError>>();
    // A run that failed leaves a trace of how far it got.
    let written = trace::finish(recorder);
    let runs = ended?;
    written?;
    let first_iops = runs.first().map_or(0.0, |(_, figures)| figures.iops);
    let report = Report {
        job: given.name,
        device: device.name.clone(),
        seed: args.answer.seed,
        designs: runs.iter().map(|(name, figures)| Row::new(name, figures, first_iops)).collect(),
        why: why(&device, &runs),
    };
    report.deliver(&args.answer, out)
}
