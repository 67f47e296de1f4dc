//! System errors as text.

use std::io;

/// Returns the message of a system error without its error number.
pub fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.find(" (os error") {
        Some(end) => words[..end].to_owned(),
        None => words,
    }
}
