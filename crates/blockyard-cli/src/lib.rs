//! The `blockyard` command: what would this queueing design do on that device?
//!
//! `cli` defines the commands and their options, a file in `command` runs each of them, `render` and `fio`
//! print answers, and `message` reports what went wrong. Results go to standard output, all else
//! to standard error; exit codes are 0 for done, 1 for a run that failed, 2 for bad usage
//! or input, and 3 and 4 for what `btt check` finds.

#![forbid(unsafe_code)]

mod cli;
mod command;
mod fio;
mod job;
mod log;
mod message;
mod progress;
mod render;
mod terminal;
mod trace;
mod verdict;

use std::io::Write;
use std::process::ExitCode;

use message::Failure;

/// Answers the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let code = match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    };
    log::finish();
    code
}

fn answer() -> Result<(), Failure> {
    let cli = cli::parse(std::env::args_os())?;
    let mut out = anstream::stdout().lock();
    command::run(&cli.command, &mut out)?;
    Ok(out.flush()?)
}

/// How many disks the text of a file for `serve --config` describes; `name` stands for the file's.
///
/// # Errors
///
/// What is wrong with it, as `serve` says it.
pub fn disks_of_config(name: &str, text: &str) -> Result<usize, String> {
    command::disks_of_config(name, text).map_err(|error| error.to_string())
}
