//! System errors and counts as text.

use core::fmt::Display;
use std::io;

/// Returns the message of a system error without its error number.
pub fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.find(" (os error") {
        Some(end) => words[..end].to_owned(),
        None => words,
    }
}

/// Returns `count` with a noun that takes an `s` in the plural: `1 client`, `2 clients`.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
