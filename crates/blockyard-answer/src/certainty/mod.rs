//! The certainty of an answer: the origins of the device's parameters, and how often the ranking of
//! the designs holds if random draws or assumed figures are others.

mod again;
mod facade;
mod question;
mod readings;
mod rests;
mod seeds;
mod untested;

pub use super::equality::EQUAL_WITHIN;
pub use crate::goal::GoalsMet;
pub use crate::verdict::ComparedFigure;
pub use facade::{Demands, NoAnswer, Watch};
pub use question::{Question, Wanted};
pub use readings::{Decider, Ranking, Readings};
pub use rests::Rests;
pub use seeds::{Comparison, Seeds, Verdict};
