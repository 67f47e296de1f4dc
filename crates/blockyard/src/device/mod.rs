//! The smallest drivers: [`null`] for examples and as a pattern, [`recorder`] for tests.

pub mod null;
pub mod recorder;
