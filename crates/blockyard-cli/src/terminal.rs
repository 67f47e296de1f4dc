//! The progress line at the bottom of a terminal, and the lines above it.
//!
//! If standard error is not a terminal, there is no progress line.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The current line, at most one at a time.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A progress line. It is erased when it is dropped.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Creates a line from an `indicatif` `template` for work of `len` steps, if known.
    ///
    /// # Panics
    ///
    /// Panics if the template is invalid.
    pub(crate) fn new(template: &str, len: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template(template).expect("the template should be valid"),
        );
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    /// Returns the bar that takes the progress.
    pub(crate) const fn bar(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Calls `write`, which writes whole lines to standard error, above the progress line.
pub(crate) fn above_progress(write: impl FnOnce()) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
