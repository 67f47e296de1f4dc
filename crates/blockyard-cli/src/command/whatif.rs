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
use crate::verify::{VerifiedRow, verdict};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = Device::lookup(&args.device)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let faults = args.faults.read()?;
    let verify = args.verifying.wanted();
    let conditions = Conditions {
        faults: faults.as_ref(),
        verify: verify.as_ref(),
        ..Conditions::new(args.answer.seed)
    };
    let given = job::read(&args.job)?;
    let instances = given.jobs.jobs.iter().map(|job| job.numjobs).sum();
    let (mut runs, mut found) = (Vec::new(), Vec::new());
    for design in &designs {
        let report = simulate(&given.jobs, &device, design, conditions)?;
        runs.push((design.name.as_str(), Figures::of(&report, instances)));
        found.push((report.faults, report.verified.as_ref().map(VerifiedRow::from)));
    }
    let first_iops = runs.first().map_or(0.0, |(_, figures)| figures.iops);
    let report = Report {
        job: given.name,
        device: device.name.clone(),
        seed: args.answer.seed,
        designs: runs
            .iter()
            .zip(found)
            .map(|((name, figures), (counts, verified))| Row {
                faults: faults.as_ref().map(|_| rows(&counts)),
                verified,
                ..Row::new(name, figures, first_iops)
            })
            .collect(),
        why: why(&device, &runs),
    };
    report.deliver(&args.answer, out)?;
    verdict(report.designs.iter().filter_map(|row| row.verified.as_ref()))
}
