//! Answers as a page to post: one HTML file that loads nothing and needs no script.
//!
//! `page` has the sections, `charts` draws, and `plot` has the parts of drawings, and `ticks`
//! places those of axes of time. The policy of the page allows its own style sheet, by its hash,
//! and nothing else.

#![expect(clippy::float_arithmetic, reason = "places on a drawing: nothing is ordered by them")]

mod charts;
mod page;
mod plot;
mod ticks;

pub(crate) use page::{Page, Shown, page};
