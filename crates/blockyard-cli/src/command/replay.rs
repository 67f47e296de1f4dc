//! `replay`: a trace under one design, as `run`, or under several, as `whatif`.

use std::io::Write;

use super::{run, whatif};
use crate::cli::{Job, Replay, Run, Whatif};
use crate::message::Failure;

pub(super) fn replay(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let Replay { trace, device, designs, playback, answer } = args.clone();
    let job = Job { file: None, options: Vec::new(), replay: Some(trace) };
    match <[String; 1]>::try_from(designs) {
        Ok([design]) => run::run(&Run { job, device, design, playback, answer }, out),
        Err(designs) => whatif::whatif(&Whatif { job, device, designs, playback, answer }, out),
    }
}
