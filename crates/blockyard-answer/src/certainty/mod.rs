//! How sure an answer is: what the device's figures rest on, and how often the ranking of the designs holds if random draws
//! or assumed figures are others.

mod again;
mod question;
mod readings;
mod rests;
mod seeds;

pub use super::equality::EQUAL_WITHIN;
pub use crate::goal::GoalsMet;
pub use crate::verdict::ComparedFigure;
pub use question::{Question, Wanted};
pub use readings::{Decider, Ranking, Readings};
pub use rests::Rests;
pub use seeds::{Comparison, Seeds, Verdict};
