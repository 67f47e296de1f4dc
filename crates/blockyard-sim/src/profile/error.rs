//! Errors in profiles, reported by file, line and nearest valid spelling.

use core::fmt;
use std::io;

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
    /// A value of the wrong type or form.
    Unsuitable {
        /// The key.
        key: String,
        /// Its value.
        given: String,
        /// The type or form that it needs.
        wanted: &'static str,
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
    /// Something that Blockyard plans and does not have yet.
    NotBuilt(String),
    /// Two settings that contradict each other; the message.
    Contradiction(&'static str),
}

/// Returns the one of `known` that `word` most likely means, if any is close.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let distance = |name: &str| strsim::damerau_levenshtein(word, name);
    let near = known.iter().copied().min_by_key(|name| distance(name))?;
    (distance(near) <= 1 + word.len() / 3).then_some(near)
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

/// Whether `key` of a profile's `table` is the former name of a fault, which belongs in a fault file.
fn is_fault(key: &str, table: &str) -> bool {
    let of_mmc = key == "faults" && ["card", "host"].contains(&table);
    of_mmc || (table == "null" && ["busy-one-in", "error-one-in"].contains(&key))
}

/// Writes ` in `[table]``.
fn write_place(f: &mut fmt::Formatter<'_>, table: &str) -> fmt::Result {
    if table.is_empty() { Ok(()) } else { write!(f, " in `[{table}]`") }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("not UTF-8 text"),
            Self::Syntax(words) => f.write_str(words),
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
            Self::Unsuitable { key, given, wanted } => {
                write!(f, "`{key}` is {}, not {wanted}", quoted(given))
            }
            Self::OutOfRange { key, given, allowed } => {
                write!(f, "`{key}` is {}, out of range ({allowed})", quoted(given))
            }
            Self::MissingKey { key, table } => {
                write!(f, "missing key `{key}`")?;
                write_place(f, table)
            }
            Self::NotBuilt(what) => write!(f, "{what} is not built yet"),
            Self::Contradiction(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { what, name, .. } if name == "bfq" => {
                write!(f, "{what} `bfq` is not built yet")
            }
            Self::UnknownName { what, name, known } => {
                write!(f, "unknown {what} {}", quoted(name))?;
                let alike: Vec<_> =
                    known.iter().copied().filter(|known| known.contains(name.as_str())).collect();
                match nearest(name, known) {
                    None if alike.is_empty() || name.is_empty() => {
                        f.write_str("; `blockyard list` prints all")
                    }
                    None => write_choice(f, name, &alike),
                    Some(_) => write_choice(f, name, known),
                }
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
    fn only_a_close_name_is_suggested() {
        assert_eq!(nearest("mq-dedline", &["none", "mq-deadline"]), Some("mq-deadline"));
        assert_eq!(nearest("cfq", &["none", "mq-deadline"]), None);
        assert_eq!(nearest("x".repeat(65).as_str(), &["x"]), None);
    }

    #[test]
    fn a_quoted_word_cannot_control_a_terminal() {
        assert_eq!(quoted("a\u{1b}[2Jb\n"), "`a\\u{1b}[2Jb\\n`");
        assert_eq!(quoted(&"x".repeat(61)), format!("`{}...`", "x".repeat(60)));
    }
}
