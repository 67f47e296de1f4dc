//! A command to a file.

mod list;
mod replay;
mod reproduce;
mod run;
mod serve;
mod serve_file;
mod show;
mod whatif;

use std::io::Write;

use crate::cli::Command;
use crate::message::Failure;

/// Answers `command` on `out`.
pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, out),
        Command::Whatif(args) => whatif::whatif(args, out),
        Command::Replay(args) => replay::replay(args, out),
        Command::Reproduce(args) => reproduce::reproduce(args, out),
        Command::Serve(args) => serve::serve(args),
        Command::List(args) => list::list(args, out),
        Command::Show(args) => show::show(args, out),
    }
}
