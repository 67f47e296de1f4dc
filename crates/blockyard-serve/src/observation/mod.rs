//! Reports of lanes and disks: events for a log, counts, overviews, and steps for a trace.

pub(crate) mod event;
pub(crate) mod meter;
pub(crate) mod overview;
pub(crate) mod traffic;
pub(crate) mod watcher;
