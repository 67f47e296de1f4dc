//! Virtual time.

pub mod profile;
