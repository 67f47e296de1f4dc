//! Descriptors, of which a process may have a limited number.
//!
//! As many clients are admitted as leave [`RESERVED`] descriptors to the operator. Whatever else
//! the process opens meanwhile, clients leave three quarters of these. Exports that are added leave
//! half, for the connections of the control socket and the metrics: an operator who has added too
//! many exports can still remove them.

use crate::clients::callers::Terms;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, AsRawFd};

/// The number of descriptors that clients leave, but at most a quarter of the limit.
const RESERVED: usize = 80;

// A connection that makes room for another one closes a little later, so there may be twice as
// many.
const _: () = assert!(2 * (Terms::CONTROL.open_max + Terms::METRICS.open_max) <= RESERVED / 2);

/// Returns the number of descriptors that this process may have.
fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the number of clients for which there are descriptors, at least 1 and at most `asked`.
pub(crate) fn clients_max(asked: usize) -> usize {
    let left = below(reserved()).saturating_sub(in_use());
    asked.min(left.max(1))
}

/// Whether the descriptor of a new client leaves those of the operator.
pub(crate) fn suits_client(client: impl AsFd) -> bool {
    // A new descriptor gets the lowest free number: if this one has the number 964, there are 964
    // others.
    let others = usize::try_from(client.as_fd().as_raw_fd());
    others.is_ok_and(|others| others < below(reserved() / 4 * 3))
}

/// Whether an operator who adds an export can still command the server afterwards.
pub(crate) fn suits_export() -> bool {
    in_use() < below(reserved() / 2)
}

fn reserved() -> usize {
    RESERVED.min(limit() / 4)
}

fn below(reserved: usize) -> usize {
    limit() - reserved
}

/// Returns the number of open descriptors, or 0 where no `/proc` is mounted.
fn in_use() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
