//! `whatif`: one job under several designs.

use std::io::Write;

use blockyard_sim::answer::{Answer, certainty, whatif_by};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;

use crate::cli::{Job, OutputFormat, Whatif};
use crate::message::{Failure, note};
use crate::progress::simulate;
use crate::render;
use crate::{job, trace, verdict};

pub(super) fn whatif(args: &Whatif, out: &mut dyn Write) -> Result<(), Failure> {
    let device = args.setting.applied_to(Device::lookup(&args.device)?)?;
    let designs: Vec<_> =
        args.designs.iter().map(|name| Design::lookup(name)).collect::<Result<_, _>>()?;
    let subject = args.setting.read()?;
    let given = job::read(&args.job, &args.setting, &device)?;
    if given.jobs.jobs.iter().any(|job| job.reporting.logging.any()) {
        note("only `run` writes logs: several designs would overwrite each other's");
    }
    let conditions = Conditions { replay: given.replay.as_ref(), ..subject.conditions() };
    let answer = trace::recorded(args.setting.trace.as_ref(), None, |mut recorder| {
        whatif_by(&given.jobs, &device, &designs, &conditions, |design| {
            simulate(&given, &device, design, conditions, recorder.as_deref_mut())
        })
    })?;
    let seeds = args
        .seeds
        .map(|count| certainty::seeds(&given.jobs, &device, &designs, &conditions, count));
    let readings = match args.readings.unwrap_or_else(|| usual_readings(&answer)) {
        0 => None,
        count => {
            let devices = Device::readings(&args.device, conditions.seed, count)?.into_iter();
            let devices: Vec<_> =
                devices.map(|device| args.setting.applied_to(device)).collect::<Result<_, _>>()?;
            let stated: Vec<_> = answer.designs.iter().map(|of| of.figures.iops).collect();
            let jobs = &given.jobs;
            Some(certainty::readings(jobs, &devices, &designs, &stated, &conditions)?)
        }
    };
    let job = given.name.clone();
    let answer = Answer { job, seeds: seeds.transpose()?, readings, ..answer };
    let text = match args.output_format {
        OutputFormat::Normal => render::whatif::text(&answer, &command(&args.job)),
        OutputFormat::Json => render::json(&answer),
    };
    args.setting.answer.deliver(&text, out)?;
    verdict::of(answer.designs.iter())
}

/// The number of readings without `--readings`: a few, if they take little time and can tell anything.
fn usual_readings(answer: &Answer) -> u32 {
    const FEW: u32 = 8;
    const IOS_MAX: u64 = 200_000;
    let ios: u64 = answer.designs.iter().map(|of| of.figures.ios).sum();
    let tells = answer.designs.len() > 1 && answer.rests.varied > 0;
    if tells && ios <= IOS_MAX { FEW } else { 0 }
}

/// The job as a command for fio.
fn command(job: &Job) -> String {
    let quoted = |word: &String| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    let words: Vec<_> = job.file.iter().chain(&job.options).map(quoted).collect();
    match &job.replay {
        Some(trace) => format!("fio --read_iolog={trace}"),
        None => format!("fio {}", words.join(" ")),
    }
}
