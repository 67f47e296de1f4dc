//! Errors in profiles, reported by file, line and nearest valid spelling.

use core::fmt;
use std::io;

use super::names::{alike, nearest};

/// The largest size of a profile in bytes.
pub const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The reason why a profile cannot be read.
#[derive(Debug)]
pub enum ProfileError {
    /// No built-in profile has this name, and it is not a path.
    UnknownName {
        /// The kind of profile: `design`, `device` or `design or device`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names of the built-in profiles.
        known: Vec<&'static str>,
    },
    /// The design after the `+` has no MMC host.
    NoHost {
        /// Its name or path.
        design: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        file: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The file is longer than [`MAX_FILE_BYTES`].
    TooLong {
        /// Its path.
        file: String,
    },
    /// A line of the file is wrong.
    Wrong {
        /// Its path, or the name of a built-in profile.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem at this line.
        problem: Problem,
    },
    /// A value that is to replace one of the profile is wrong.
    Override {
        /// Its key as it was given, or the keys of all of them if they are wrong together.
        key: String,
        /// The problem.
        problem: Problem,
    },
}

/// The problem at a line of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Not UTF-8.
    NotText,
    /// Not TOML; the message of the parser.
    Syntax(String),
    /// A key or table that this table does not have.
    UnknownKey {
        /// The key.
        key: String,
        /// The table of the key, such as `queue.deadline`; empty at the top of the file.
        table: &'static str,
        /// The keys of that table.
        known: &'static [&'static str],
    },
    /// A value that is not one of the words of its key.
    UnknownValue {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The words of the key.
        known: Vec<&'static str>,
    },
    /// A value that is not the name of one of the built-in profiles of its key.
    UnknownProfile {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The names of the profiles.
        known: Vec<&'static str>,
    },
    /// A value of the wrong type or form.
    Unsuitable {
        /// The key.
        key: String,
        /// Its value.
        given: String,
        /// The type or form that it needs.
        wanted: &'static str,
        /// What to write instead, if the value shows it.
        instead: Option<String>,
    },
    /// A number, size, rate or time too small or too large.
    OutOfRange {
        /// The key.
        key: String,
        /// Its value.
        given: String,
        /// The allowed range, such as `1 to 1024`.
        allowed: String,
    },
    /// A required key that is missing.
    MissingKey {
        /// The key.
        key: String,
        /// The table of the key; empty at the top of the file.
        table: &'static str,
    },
    /// Tables of which a file needs one that are all missing; the message.
    MissingTable(String),
    /// Something missing in a file without a base, which the file would have with this one.
    Baseless {
        /// What is missing.
        problem: Box<Problem>,
        /// The name of the built-in profile.
        base: &'static str,
    },
    /// A base that cannot be read: its path and the reason.
    Base(String),
    /// Two settings that contradict each other; the message.
    Contradiction(&'static str),
    /// Settings that do not fit each other; the message, which has their values.
    Unfit(String),
}

/// Returns a word from the user between back quotes, safe for a terminal and not too long.
fn quoted(word: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = word.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if word.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

/// Writes `: did you mean ...?`, or ` (one of ...)` if no name is close.
fn write_choice(f: &mut fmt::Formatter<'_>, word: &str, known: &[&str]) -> fmt::Result {
    debug_assert!(!known.is_empty(), "no valid word for `{word}`");
    match nearest(word, known) {
        Some(near) => write!(f, ": did you mean `{near}`?"),
        None => write!(f, " (one of {})", known.join(", ")),
    }
}

/// Writes `: did you mean ...?` with the names of built-in profiles that `word` may mean, or how to
/// list all.
fn write_names(f: &mut fmt::Formatter<'_>, word: &str, known: &[&str]) -> fmt::Result {
    match &alike(word, known)[..] {
        [] => f.write_str("; `blockyard list` prints all"),
        [one] => write!(f, ": did you mean `{one}`?"),
        [others @ .., last] => write!(f, ": did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}

/// Whether `key` of a profile's `table` is the former name of a fault, which belongs in a fault
/// file.
fn is_fault(key: &str, table: &str) -> bool {
    let of_mmc = key == "faults" && ["card", "host"].contains(&table);
    of_mmc || (table == "null" && ["busy-one-in", "error-one-in"].contains(&key))
}

/// Writes the table of a key after its name, unless it is at the top of the file.
fn write_place(f: &mut fmt::Formatter<'_>, table: &str) -> fmt::Result {
    if table.is_empty() { Ok(()) } else { write!(f, " in `[{table}]`") }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("not UTF-8 text"),
            Self::Syntax(words) | Self::Unfit(words) | Self::MissingTable(words) => {
                f.write_str(words)
            }
            Self::UnknownKey { key, table, known } => {
                write!(f, "unknown key {}", quoted(key))?;
                write_place(f, table)?;
                if is_fault(key, table) {
                    return f.write_str(
                        ": faults are not part of a profile: give them in a file with --faults",
                    );
                }
                write_choice(f, key, known)
            }
            Self::UnknownValue { key, value, known } => {
                write!(f, "unknown value {} for `{key}`", quoted(value))?;
                write_choice(f, value, known)
            }
            Self::UnknownProfile { key, value, known } => {
                write!(f, "unknown value {} for `{key}`", quoted(value))?;
                write_names(f, value, known)
            }
            Self::Unsuitable { key, given, wanted, instead } => {
                write!(f, "`{key}` is {}, not {wanted}", quoted(given))?;
                instead.as_ref().map_or(Ok(()), |instead| write!(f, ": write {instead}"))
            }
            Self::OutOfRange { key, given, allowed } => {
                write!(f, "`{key}` is {}, out of range ({allowed})", quoted(given))
            }
            Self::MissingKey { key, table } => {
                write!(f, "missing key `{key}`")?;
                write_place(f, table)
            }
            Self::Baseless { problem, base } => write!(
                f,
                "{problem}; with `base = \"{base}\"` at the top, or another name that `blockyard list` prints, a file needs \
                 only the lines that differ"
            ),
            Self::Base(reason) => write!(f, "`base` cannot be read: {reason}"),
            Self::Contradiction(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { what, name, known } => {
                write!(f, "unknown {what} {}", quoted(name))?;
                write_names(f, name, known)
            }
            Self::NoHost { design } => write!(
                f,
                "design {} has no `[host]`: SCHEDULER+HOST needs the design of an MMC host, such as blkmq, hsq or cqe",
                quoted(design)
            ),
            Self::Unreadable { file, error } => write!(f, "{file}: {error}"),
            Self::TooLong { file } => {
                write!(f, "{file}: longer than {} KiB", MAX_FILE_BYTES / 1024)
            }
            Self::Wrong { file, line, problem } => write!(f, "{file}:{line}: {problem}"),
            Self::Override { key, problem } => write!(f, "setting {}: {problem}", quoted(key)),
        }
    }
}

impl core::error::Error for ProfileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_cannot_control_a_terminal() {
        assert_eq!(quoted("a\u{1b}[2Jb\n"), "`a\\u{1b}[2Jb\\n`");
        assert_eq!(quoted(&"x".repeat(61)), format!("`{}...`", "x".repeat(60)));
    }
}
