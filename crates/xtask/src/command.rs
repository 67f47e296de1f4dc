//! Programs that a step runs.
//!
//! A [`Run`] prints its command line first, with the variables that it sets. A failure names the
//! command and its status.

use crate::console::{Outcome, complain, fail, say};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Output, Stdio};

/// The exit code of a program that could not be started, as in a shell.
const NOT_STARTED: i32 = 127;
/// The exit code of a program that a signal ended.
const BY_SIGNAL: i32 = 128;

/// A command before it runs.
#[derive(Debug)]
pub struct Run {
    command: Command,
    /// The command line as a shell would take it.
    shown: String,
}

/// Returns `word` as a shell would take it.
fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./,:+@%[]>".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl Run {
    /// Returns the command whose program and first arguments are the words of `line`.
    ///
    /// # Panics
    ///
    /// Panics if `line` has no word.
    #[must_use]
    pub fn new(line: &str) -> Self {
        let mut words = line.split_whitespace();
        Self::program(words.next().expect("name of a program")).args(words)
    }

    /// Returns the command of a program whose path may have blanks.
    #[must_use]
    pub fn program(path: impl AsRef<OsStr>) -> Self {
        let shown = quote(&path.as_ref().to_string_lossy());
        Self { command: Command::new(path), shown }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.shown += " ";
        self.shown += &quote(&argument.as_ref().to_string_lossy());
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Adds the words of `line` as arguments.
    #[must_use]
    pub fn words(self, line: &str) -> Self {
        self.args(line.split_whitespace())
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let shown = quote(&value.as_ref().to_string_lossy());
        self.shown = format!("{name}={shown} {}", self.shown);
        self.command.env(name, value);
        self
    }

    /// Runs the command in `folder`.
    #[must_use]
    pub fn folder(mut self, folder: &str) -> Self {
        self.shown = format!("cd {folder}; {}", self.shown);
        self.command.current_dir(folder);
        self
    }

    /// Discards what the command prints.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self
    }

    /// Discards what the command prints on its standard output.
    #[must_use]
    pub(crate) fn without_output(mut self) -> Self {
        self.command.stdout(Stdio::null());
        self
    }

    /// Runs the command; fails unless it succeeds.
    ///
    /// # Errors
    ///
    /// The command and its status.
    pub fn check(self) -> Outcome {
        let shown = self.shown.clone();
        match self.code() {
            0 => Ok(()),
            code => failed(&shown, code),
        }
    }

    /// Runs the command, and returns whether it succeeds. A failure is reported.
    #[must_use]
    pub(crate) fn succeeds(self) -> bool {
        self.check().inspect_err(|failure| complain(&failure.0)).is_ok()
    }

    /// Runs the command silently, and returns whether it succeeds.
    #[must_use]
    pub(crate) fn probe(self) -> bool {
        self.quiet().command.status().is_ok_and(|status| status.success())
    }

    /// Runs the command and returns its exit code: 127 if it could not be started, 128 if a signal
    /// ended it.
    #[must_use]
    pub fn code(mut self) -> i32 {
        say(&format!("$ {}", self.shown));
        match self.command.status() {
            Ok(status) => code_of(status),
            Err(error) => {
                complain(&format!("{}: {error}", self.shown));
                NOT_STARTED
            }
        }
    }

    /// Runs the command and returns its standard output.
    ///
    /// # Errors
    ///
    /// The command and its status, unless it succeeds.
    pub fn output(mut self) -> Outcome<String> {
        self.command.stderr(Stdio::inherit());
        let shown = self.shown.clone();
        let (code, output) = self.collect();
        if code == 0 { Ok(output) } else { failed(&shown, code) }
    }

    /// Runs the command; returns its exit code, and its standard output followed by its standard
    /// error.
    #[must_use]
    pub fn collect(mut self) -> (i32, String) {
        say(&format!("$ {}", self.shown));
        let Ok(Output { status, mut stdout, stderr }) = self.command.output() else {
            return (NOT_STARTED, format!("{} cannot be started", self.shown));
        };
        stdout.extend(stderr);
        (code_of(status), String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Runs the command, prints both of its outputs as they come, and adds them to `log`. Returns
    /// whether it succeeds.
    ///
    /// # Panics
    ///
    /// Panics if no pipe can be made or read, or if the output cannot be printed.
    #[must_use]
    pub(crate) fn logged(mut self, log: &mut Vec<u8>) -> bool {
        say(&format!("$ {}", self.shown));
        let (mut from, to) = io::pipe().expect("pipe");
        self.command.stdout(to.try_clone().expect("second end of a pipe")).stderr(to);
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => {
                complain(&format!("{}: {error}", self.shown));
                return false;
            }
        };
        // The command holds the ends for writing: with them open the pipe would never end.
        drop(self.command);
        let mut buffer = [0; 1 << 14];
        loop {
            let length = from.read(&mut buffer).expect("output of a command");
            if length == 0 {
                break;
            }
            io::stdout().write_all(&buffer[..length]).expect("standard output");
            io::stdout().flush().expect("standard output");
            log.extend_from_slice(&buffer[..length]);
        }
        let code = code_of(child.wait().expect("end of a command"));
        if code != 0 {
            complain(&failure_line(&self.shown, code));
        }
        code == 0
    }
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or(BY_SIGNAL)
}

fn failure_line(shown: &str, code: i32) -> String {
    match code {
        BY_SIGNAL => format!("ended by a signal: {shown}"),
        code => format!("exit code {code}: {shown}"),
    }
}

fn failed<T>(shown: &str, code: i32) -> Outcome<T> {
    fail(failure_line(shown, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Failure;

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let run = Run::new("sh -c").arg("exit 3").env("WORD", "a b");
        assert_eq!(run.check(), Err(Failure("exit code 3: WORD='a b' sh -c 'exit 3'".into())));
        let killed = Run::new("sh -c").arg("kill -9 $$").check();
        assert_eq!(killed, Err(Failure("ended by a signal: sh -c 'kill -9 $$'".into())));
        assert_eq!(Run::new("no-such-program-anywhere").code(), NOT_STARTED);
    }

    #[test]
    fn both_outputs_are_logged_in_order_whatever_the_end() {
        let mut log = vec![];
        let lines = "echo one; echo two >&2; echo three; exit 1";
        assert!(!Run::new("sh -c").arg(lines).logged(&mut log));
        assert_eq!(String::from_utf8(log).expect("UTF-8"), "one\ntwo\nthree\n");
    }

    #[test]
    fn an_output_is_returned_only_of_a_success() {
        assert_eq!(Run::new("echo a b").output(), Ok("a b\n".into()));
        let run = Run::new("sh -c").arg("echo half; exit 1");
        assert_eq!(run.output(), Err(Failure("exit code 1: sh -c 'echo half; exit 1'".into())));
    }
}
