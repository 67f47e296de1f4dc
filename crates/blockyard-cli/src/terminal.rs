//! The last line of a terminal: one that stands there, and what is said above it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Back to the begin of the line, which is then erased.
pub(crate) const ERASE: &str = "\r\x1b[K";

/// What stands at the foot of the terminal; empty where nothing does.
static STANDING: Mutex<String> = Mutex::new(String::new());

/// A line that stands below all that is said while it does. One at a time.
pub(crate) struct Standing(());

impl Standing {
    /// Nowhere, if standard error is no terminal.
    pub(crate) fn begin() -> Option<Self> {
        io::stderr().is_terminal().then_some(Self(()))
    }

    /// Now it is `text`.
    pub(crate) fn write(&self, text: String) {
        // A line of progress that cannot be written is no loss; nor is a poisoned one harmful.
        let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
        drop(write!(io::stderr(), "{ERASE}{text}"));
        *standing = text;
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.write(String::new());
    }
}

/// Does `say`, which writes whole lines to standard error, above the line that stands there.
pub(crate) fn above_standing(say: impl FnOnce()) {
    let standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
    if standing.is_empty() {
        return say();
    }
    drop(write!(io::stderr(), "{ERASE}"));
    say();
    drop(write!(io::stderr(), "{standing}"));
}
