//! The width of the terminal, and the progress line at its bottom with the lines above it.
//!
//! If standard error is not a terminal, there is no progress line.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The length of lines where it is not known.
const WIDTH: usize = 80;
/// The shortest and the longest lines that are worth making.
const WIDTHS: core::ops::RangeInclusive<usize> = 60..=160;

/// Returns the length of the lines of standard output: that of the terminal, or of the variable
/// COLUMNS, or 80.
pub(crate) fn width() -> usize {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let of_terminal = console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    let width: usize = of_terminal.or_else(columns).unwrap_or(WIDTH);
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// The current line, at most one at a time.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A progress line. It is erased when it is dropped.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Creates a line from an `indicatif` `template` for work of `len` steps, if known. It is drawn
    /// only if it `is_wanted`.
    ///
    /// # Panics
    ///
    /// Panics if the template is invalid.
    pub(crate) fn new(template: &str, len: Option<u64>, is_wanted: bool) -> Self {
        let target =
            if is_wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(len, target);
        bar.set_style(
            ProgressStyle::with_template(template).expect("the template should be valid"),
        );
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    /// Whether the line is shown: standard error is a terminal.
    pub(crate) fn is_seen(&self) -> bool {
        !self.0.is_hidden()
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
