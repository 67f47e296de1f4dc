//! Virtual time.

pub mod device;
pub mod event;
pub mod job;
pub mod machine;
pub mod profile;
pub mod workload;
