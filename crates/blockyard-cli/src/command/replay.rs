//! `replay`: a trace under one design, as `run`, or under several, as `whatif`.

use std::io::Write;

use super::{run, whatif};
use crate::cli::{Job, JobLogs, OutputFormat, Replay, Run, RunFormat, Whatif};
use crate::message::Failure;

pub(super) fn replay(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let Replay { trace, device, designs, playback, faults, answer, output_format } = args.clone();
    let job = Job { file: None, options: Vec::new(), replay: Some(trace) };
    match <[String; 1]>::try_from(designs) {
        Ok([design]) => {
            let format = match output_format {
                OutputFormat::Normal => RunFormat::Normal,
                OutputFormat::Json => RunFormat::Json,
            };
            let (output_format, logs) = (vec![format], JobLogs::default());
            run::run(
                &Run { job, device, design, playback, faults, answer, output_format, logs },
                out,
            )
        }
        Err(designs) => whatif::whatif(
            &Whatif { job, device, designs, playback, faults, answer, output_format },
            out,
        ),
    }
}
