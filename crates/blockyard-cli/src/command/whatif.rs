//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;
use blockyard_sim::why::{Figures, why};

use crate::cli::Whatif;
use crate::faults::rows;
use crate::job;
use crate::message::Failure;
use crate::progress::simulate;
use crate::report::{Report, Row};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let faults = args.faults.read()?;
    let conditions = Conditions { faults: faults.as_ref(), ..Conditions::new(args.answer.seed) };
    let given = job::read(&args.job)?;
    let instances = given.jobs.jobs.iter().map(|job| job.numjobs).sum();
    let (mut runs, mut counts) = (Vec::new(), Vec::new());
    for design in &designs {
        let report = simulate(&given.jobs, &device, design, conditions)?;
        runs.push((design.name.as_str(), Figures::of(&report, instances)));
        counts.push(report.faults);
    }
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
    report.deliver(&args.answer, out)
}
