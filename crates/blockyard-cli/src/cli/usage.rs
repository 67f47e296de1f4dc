//! Help and usage errors: the flag of the short help, and errors in one line each.

use clap::{Arg, ArgAction, Command, Error};

/// Returns the flag that prints the short help of `command`: the long one is that of `blockyard
/// help COMMAND` and of the manual page.
pub(super) fn short_help(command: &str) -> Arg {
    let text = format!("Print help; `blockyard help {command}` describes each option in full");
    let help = Arg::new("help").short('h').long("help").help(text).help_heading(None);
    help.action(ArgAction::HelpShort)
}

/// Returns the error of `argv` under `cli` in one line, which names the command whose help explains
/// it.
pub(super) fn with_help(error: &Error, cli: &Command, argv: &[String]) -> String {
    let mut command = cli;
    let mut path = cli.get_name().to_owned();
    for name in argv.iter().skip(1) {
        let Some(found) = command.find_subcommand(name) else { break };
        command = found;
        path = format!("{path} {name}");
    }
    format!("{}; see `{path} --help`", one_line(error))
}

/// Returns the message of `error` in one line, without its prefix.
///
/// clap's text has the message and its details in indented lines, then tips, then how the command
/// is used. The tip to pass an unknown option as a value is wrong for most commands and left out.
pub(crate) fn one_line(error: &Error) -> String {
    // The words of Rust's library say nothing to those who do not write Rust.
    let text =
        error.to_string().replace("invalid digit found in string", "expected a whole number");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines = lines.take_while(|line| {
        !line.starts_with("Usage: ") && !line.starts_with("For more information")
    });
    let first = lines.next().unwrap_or_default();
    let mut words = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let mut is_list = false;
    for line in lines {
        match line.strip_prefix("tip: ") {
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => words = format!("{words}; {tip}"),
            None => {
                words.push_str(if is_list { ", " } else { " " });
                words.push_str(line);
                is_list = true;
            }
        }
    }
    words
}
