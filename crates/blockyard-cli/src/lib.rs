//! The `blockyard` command: what would this queueing design do on that device?
//!
//! `cli` defines the commands and their options, a file in `command` runs each command, `render`
//! and `fio` print answers, and `message` reports failures. Results go to standard output and
//! everything else to standard error. Exit codes are 0 for success, 1 for a failed run, 2 for bad
//! usage or input, and 3 and 4 for findings of `btt check`.

#![forbid(unsafe_code)]

mod cli;
mod command;
mod fio;
mod html;
mod interrupt;
mod job;
mod log;
mod message;
mod progress;
mod render;
mod run_failure;
mod terminal;
mod trace;
mod verdict;

use std::io::Write;
use std::process::ExitCode;

use message::Failure;

/// Runs the command line of this process.
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

/// Returns the number of disks in the text of a `serve --config` file. `name` takes the place of
/// the file's name.
///
/// # Errors
///
/// Returns the error message of `serve`.
pub fn disks_of_config(name: &str, text: &str) -> Result<usize, String> {
    command::disks_of_config(name, text).map_err(|error| error.to_string())
}

/// Returns the comparison of two saved answers of `whatif`, given as JSON: as text, as JSON and as
/// a page.
///
/// # Errors
///
/// Returns the error message of `compare`.
pub fn compared(first: &str, second: &str) -> Result<String, String> {
    command::compared(first, second).map_err(Failure::words)
}
