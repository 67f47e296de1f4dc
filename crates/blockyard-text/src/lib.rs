//! Text that people write and read: numbers with units, and phrases for errors of the operating
//! system.
//!
//! The readers of job files, profiles, traces and command lines share this crate, so that a number
//! means the same in all of them. Answers and the server write their numbers with it.

pub mod number;
pub mod quantity;
pub mod words;
