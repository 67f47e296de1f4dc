//! Errors of the system, in words.

use std::io;

/// An error of the system without its number.
pub(crate) fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.find(" (os error") {
        Some(end) => words[..end].to_owned(),
        None => words,
    }
}
