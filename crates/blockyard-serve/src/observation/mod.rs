//! Values with which lanes and disks report to others: events for a log, counts for metrics, overviews for an operator, and every
//! step of a request for a trace.

pub(crate) mod event;
pub(crate) mod meter;
pub(crate) mod overview;
pub(crate) mod traffic;
pub(crate) mod watcher;
