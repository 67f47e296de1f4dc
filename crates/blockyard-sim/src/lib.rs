//! Virtual time.

pub mod job;
pub mod workload;
