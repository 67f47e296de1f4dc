//! `replay`: a trace under one design, like `run`, or under several, like `whatif`.

use std::io::Write;

use super::{run, whatif};
use crate::cli::{Designs, Job, JobLogs, OutputFormat, Replay, Run, RunFormat, Whatif};
use crate::message::Failure;

pub(super) fn replay(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let Replay { recorded, device, designs, setting, outputs } = args.clone();
    let job = Job { file: None, options: Vec::new(), replay: Some(recorded) };
    let [design] = match <[String; 1]>::try_from(designs) {
        Ok(one) => one,
        Err(designs) => {
            let output_format = match *outputs.output_format {
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
            let designs = Designs::named(designs);
            let whatif = Whatif {
                job,
                device,
                designs,
                setting,
                output_format,
                goals: Vec::new(),
                check: false,
                details: false,
                seeds: None,
                readings: None,
            };
            return whatif::whatif(&whatif, out);
        }
    };
    run::run(&Run { job, device, design, setting, outputs }, out)
}

fn of_one_design(what: &str) -> Failure {
    Failure::Input(format!("{what} only works for a replay under one design"))
}
