//! One file for each command.

mod btt;
mod compare;
mod ctl;
mod list;
mod manual;
mod posted;
mod replay;
mod reproduce;
mod run;
mod schema;
mod serve;
mod serve_file;
mod show;
mod whatif;

use std::io::Write;

use blockyard_devices::profile::ProfileError;

use crate::cli::Command;
use crate::message::Failure;

/// Runs `command` and writes its results to `out`.
pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, out),
        Command::Whatif(args) => whatif::whatif(args, out),
        Command::Replay(args) => replay::replay(args, out),
        Command::Compare(args) => compare::compare(args, out),
        Command::Reproduce(args) => reproduce::reproduce(args, out),
        Command::Btt(args) => btt::btt(&args.command, out),
        Command::Serve(args) => serve::serve(args),
        Command::Ctl(args) => ctl::ctl(args, out),
        Command::List(args) => list::list(args, out),
        Command::Show(args) => show::show(args, out),
        Command::Schema(args) => schema::schema(args, out),
        Command::Completions(args) => manual::completions(args, out),
        Command::Man(args) => manual::man(args, out),
    }
}

/// Returns the number of disks in `text`, the text of a `serve --config` file called `name`.
pub(crate) fn disks_of_config(name: &str, text: &str) -> Result<usize, ProfileError> {
    Ok(serve_file::parse(name, text)?.len())
}

/// Returns the comparison of two saved answers in all forms.
pub(crate) fn compared(first: &str, second: &str) -> Result<String, Failure> {
    compare::in_all_forms(first, second)
}
