//! `replay`: a trace under one design, as `run`, or under several, as `whatif`.

use std::io::Write;

use super::{run, whatif};
use crate::cli::{Job, JobLogs, OutputFormat, Replay, Run, RunFormat, Whatif};
use crate::message::Failure;

pub(super) fn replay(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let Replay { recorded, device, designs, setting, output_format } = args.clone();
    let job = Job { file: None, options: Vec::new(), replay: Some(recorded) };
    let [design] = match <[String; 1]>::try_from(designs) {
        Ok(one) => one,
        Err(designs) => {
            return whatif::whatif(&Whatif { job, device, designs, setting, output_format }, out);
        }
    };
    let format = match output_format {
        OutputFormat::Normal => RunFormat::Normal,
        OutputFormat::Json => RunFormat::Json,
    };
    let args = Run {
        job,
        device,
        design,
        setting,
        blktrace: None,
        output_format: vec![format],
        logs: JobLogs::default(),
    };
    run::run(&args, out)
}
