//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, SimulationError};
use blockyard_sim::why::{Figures, why};

use crate::cli::Whatif;
use crate::faults::rows;
use crate::message::{Failure, note};
use crate::progress::simulate;
use crate::report::{Report, Row};
use crate::{job, trace};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let faults = args.faults.read()?;
    let conditions = Conditions { faults: faults.as_ref(), ..Conditions::new(args.answer.seed) };
    let given = job::read(&args.job, &args.playback, &device)?;
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("logs are written by `run` only: designs would write over each other's");
    }
    let instances = given.jobs.jobs.iter().map(|job| job.numjobs).sum();
    let mut recorder = trace::begin(args.traced.trace.as_ref(), None)?;
    let ended = designs.iter().map(|design| {
        let report = simulate(&given, &device, design, conditions, recorder.as_mut())?;
        let figures = Figures::of(&report, instances);
        Ok(((design.name.as_str(), figures), report.faults))
    });
    let ended = ended.collect::<Result<(Vec<_>, Vec<_>), SimulationError>>();
    // A run that failed leaves a trace of how far it got.
    let written = trace::finish(recorder);
    let (runs, counts) = ended?;
    written?;
    let first_iops = runs.first().map_or(0.0, |(_, figures)| figures.iops);
    let report = Report {
        job: given.name,
        device: device.name.clone(),
        seed: args.answer.seed,
        designs: runs
            .iter()
            .zip(counts)
            .map(|((name, figures), counts)| Row {
                faults: faults.as_ref().map(|_| rows(&counts)),
                ..Row::new(name, figures, first_iops)
            })
            .collect(),
        why: why(&device, &runs),
    };
    report.deliver(args.output_format, &args.answer, out)
}
