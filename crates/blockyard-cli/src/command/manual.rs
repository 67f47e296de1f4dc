//! `completions` and `man`, generated from the definitions of the commands.

use std::io::Write;

use blockyard_devices::profile::{Builtin, builtin_designs, builtin_devices};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};

use crate::cli::{COLUMNS, Cli, Completions, Man};
use crate::message::Failure;

pub(super) fn completions(args: &Completions, out: &mut dyn Write) -> Result<(), Failure> {
    // The generator writes to memory, which cannot fail. Here a closed pipe is not an error.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut with_names(Cli::command()), "blockyard", &mut text);
    Ok(out.write_all(&text)?)
}

/// Returns `command` with the built-in names as the possible values of the options that take them,
/// for a shell to offer. Such an option also takes a path, so the command line itself is not
/// restricted to them.
fn with_names(command: Command) -> Command {
    command.mut_subcommands(|command| {
        command.mut_args(|arg| match arg.get_id().as_str() {
            "device" | "behaves_as" => offered(arg, names(builtin_devices())),
            "design" | "named" => offered(arg, names(builtin_designs())),
            "scheduler" => offered(arg, ["none", "mq-deadline", "kyber"]),
            "host" => offered(arg, ["blkmq", "hsq", "cqe"]),
            "pace" => offered(arg, ["open", "think", "closed:1"]),
            "name" => offered(arg, names(builtin_devices()).chain(names(builtin_designs()))),
            _ => arg,
        })
    })
}

fn names(builtins: &'static [Builtin]) -> impl Iterator<Item = &'static str> {
    builtins.iter().map(|builtin| builtin.name)
}

fn offered(arg: Arg, names: impl IntoIterator<Item = &'static str>) -> Arg {
    arg.value_parser(PossibleValuesParser::new(names))
}

pub(super) fn man(args: &Man, out: &mut dyn Write) -> Result<(), Failure> {
    let mut all = Cli::command();
    all.build();
    let command = match &args.command {
        None => all,
        Some(name) => match all.find_subcommand(name) {
            Some(command) => command.clone(),
            None => return Err(Failure::Input(format!("unknown command `{name}`"))),
        },
    };
    Ok(clap_mangen::Man::new(with_columns(command)).render(out)?)
}

/// Returns `command` with the columns of its answer, if it is `whatif`.
fn with_columns(command: Command) -> Command {
    if command.get_name() != "whatif" {
        return command;
    }
    let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{text}\n\n{COLUMNS}"))
}
