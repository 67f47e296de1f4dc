//! The smallest drivers, for examples and as patterns.

pub mod null;
