//! A parser for each format: from lines or bytes to entries.

pub(super) mod blkparse;
pub(super) mod blktrace;
mod fields;
pub(super) mod iolog;
pub(super) mod msr;
mod rwbs;
