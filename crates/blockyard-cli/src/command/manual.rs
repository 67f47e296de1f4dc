//! `completions` and `man`, generated from the definitions of the commands.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, Completions, Man};
use crate::message::Failure;

pub(super) fn completions(args: &Completions, out: &mut dyn Write) -> Result<(), Failure> {
    // The generator writes to memory, which cannot fail. Here a closed pipe is not an error.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "blockyard", &mut text);
    Ok(out.write_all(&text)?)
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
    Ok(clap_mangen::Man::new(command).render(out)?)
}
