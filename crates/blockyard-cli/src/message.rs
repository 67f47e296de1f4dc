//! Messages and exit codes.

use std::io;
use std::process::ExitCode;

use blockyard_devices::pairing::Unsuited;
use blockyard_devices::profile::ProfileError;
use blockyard_fio::job::JobError;
use blockyard_serve::StartError;
use blockyard_trace::TraceError;
use blockyard_trace::output::OutputError;

use crate::log::{self, Level};

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for help or the version, or is empty: clap prints it.
    Help(clap::Error),
    /// The input is not usable: exit code 2.
    Input(String),
    /// The run failed: exit code 1.
    Run(String),
    /// The answer was printed. This is its exit code.
    Verdict(u8),
    /// The result could not be written. A closed pipe is not an error.
    Output(io::Error),
}

impl Failure {
    /// Returns the message; empty if there is none.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Help(error) => error.to_string(),
            Self::Input(words) | Self::Run(words) => words,
            Self::Verdict(_) => String::new(),
            Self::Output(error) => error.to_string(),
        }
    }

    /// Prints the message, if any, and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Help(error) => {
                // A failure to print cannot be reported.
                drop(error.print());
                ExitCode::from(if error.use_stderr() { 2 } else { 0 })
            }
            Self::Input(words) => fail(2, &words),
            Self::Run(words) => fail(1, &words),
            Self::Verdict(code) => ExitCode::from(code),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Output(error) => fail(1, &error.to_string()),
        }
    }
}

fn fail(code: u8, words: &str) -> ExitCode {
    error(words);
    ExitCode::from(code)
}

/// Prints an error of a command that may yet end with an exit code of its own.
pub(crate) fn error(words: &str) {
    log::put(Level::Error, words, None);
}

/// Prints a note.
pub(crate) fn note(words: &str) {
    log::put(Level::Note, words, None);
}

/// Prints a warning.
pub(crate) fn warning(words: &str) {
    log::put(Level::Warning, words, None);
}

macro_rules! input_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Input(error.to_string())
            }
        })*
    };
}

input_errors!(JobError, ProfileError, StartError, TraceError, Unsuited);

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
