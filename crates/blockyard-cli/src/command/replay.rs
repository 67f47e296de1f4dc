//! `replay`: a trace under one design, like `run`, or under several, like `whatif`.

use std::io::Write;

use super::{run, whatif};
use crate::cli::{Demands, Job, JobLogs, OutputFormat, Replay, Run, RunFormat, Whatif};
use crate::message::{Failure, note};

pub(super) fn replay(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let Replay { recorded, device, designs, demands, setting, outputs } = args.clone();
    let job = Job { file: None, options: Vec::new(), replay: Some(recorded) };
    if let Some(design) = designs.one_or("mq-none") {
        if let Some(option) = demands.option_given() {
            return Err(Failure::Input(format!("--{option} needs several designs")));
        }
        return run::run(&Run { job, device, design, setting, outputs }, out);
    }
    let device = device.unwrap_or_else(|| {
        note("without --device the trace is replayed on `null`, which takes no time: `blockyard list devices` has others");
        run::DEVICE.to_owned()
    });
    let output_format = match *outputs.formats() {
        [RunFormat::Normal] => OutputFormat::Normal,
        [RunFormat::Json] => OutputFormat::Json,
        _ => return Err(of_one_design("this --output-format")),
    };
    if outputs.blktrace.is_some() {
        return Err(of_one_design("--blktrace"));
    }
    if outputs.logs != JobLogs::default() {
        return Err(of_one_design("a log"));
    }
    whatif::whatif(&Whatif { job, device, designs, demands, setting, output_format }, out)
}

impl Demands {
    /// Returns the name of an option that was given, if any.
    fn option_given(&self) -> Option<&'static str> {
        let options = [
            ("goal", !self.goals.is_empty()),
            ("details", self.details),
            ("seeds", self.seeds.is_some()),
            ("readings", self.readings.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

fn of_one_design(what: &str) -> Failure {
    Failure::Input(format!("{what} only works for a replay under one design"))
}
