//! Lines for people, and the failure of a step.

use std::env;
use std::fs::File;
use std::io::Write;

/// The reason why a step failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

/// The end of a step or of a part of it.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Returns the failure with `reason`.
///
/// # Errors
///
/// Always.
pub fn fail<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Failure(reason.into()))
}

/// Prints a line of a step.
pub fn say(line: &str) {
    println!("ci: {line}");
}

/// Prints a line on the standard error.
pub fn complain(line: &str) {
    eprintln!("ci: {line}");
}

/// Whether continuous integration runs the step: `CI` is set and not empty.
#[must_use]
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// Reports a check that did not run. `all` repeats the report at its end: it names a file for these
/// lines in `BLOCKYARD_CI_UNCHECKED`.
///
/// # Panics
///
/// Panics if that file cannot be written.
pub(crate) fn report_unchecked(check: &str) {
    say(&format!("NOT CHECKED: {check}"));
    let Some(file) = env::var_os("BLOCKYARD_CI_UNCHECKED").filter(|file| !file.is_empty()) else {
        return;
    };
    let mut file = File::options().append(true).create(true).open(file).expect("list of `all`");
    writeln!(file, "{check}").expect("line in the list of `all`");
}

/// Ends the step in CI, where everything must be checked; elsewhere reports `check` as not done.
///
/// # Errors
///
/// In CI, with `need`, the object that CI lacks.
pub(crate) fn lacks(need: &str, check: &str) -> Outcome {
    if in_ci() {
        return fail(format!("CI needs {need}"));
    }
    report_unchecked(check);
    Ok(())
}
