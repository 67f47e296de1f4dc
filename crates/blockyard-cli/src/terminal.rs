//! The progress line at the foot of a terminal, and what is written above it.
//!
//! Nothing is shown if standard error is not a terminal.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line that is shown; there is at most one at a time.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A progress line. It is erased when it is dropped.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// A line of `template`, as `indicatif` defines it, for something that takes `len` steps, if that is
    /// known.
    ///
    /// # Panics
    ///
    /// If the template is invalid.
    pub(crate) fn new(template: &str, len: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    /// The bar, to report progress to.
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
