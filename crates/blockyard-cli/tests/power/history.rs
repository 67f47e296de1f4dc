//! The history of a run: requests above the server and writes below its file, in one order.
//!
//! # Why a check by this order raises no false alarm
//!
//! - A request is recorded as sent before its first byte is sent, and as answered after its answer
//!   was received. So a request that the history has as answered before another was sent was so in
//!   truth. A promise that is recorded before a cut was made before it, and every value that can
//!   have reached the disk before a cut belongs to a request that was recorded before it.
//! - The disk records a write when it receives the write, and its completion before it answers. So
//!   every write that the server can know to be complete when it synchronises the file is recorded
//!   as complete.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What a request changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Write,
    /// TRIM or WRITE_ZEROES: the server zeroes either way.
    Zero,
    Flush,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) change: Change,
    pub(crate) units: Range<u64>,
    pub(crate) fua: bool,
}

#[derive(Debug)]
pub(crate) enum Record {
    /// Request of this number.
    Sent(usize),
    Answered(usize),
    /// The disk received a write to the file.
    Written {
        at: u64,
        bytes: Vec<u8>,
    },
    /// The disk is about to answer the write at this place of the history.
    Completed(usize),
    /// The disk zeroed a range.
    Zeroed {
        at: u64,
        len: u64,
    },
    /// The disk received a request to make all completed writes durable.
    Synchronised,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    pub(crate) requests: Vec<Request>,
}

/// Returns the word of which a unit consists that a request of the given life of the disk has
/// written. It identifies both.
pub(crate) fn mark(life: u64, request: usize, unit: u64) -> u64 {
    (life + 1) << 48 | (request as u64) << 24 | unit
}

/// A history that clients and the disk write.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<History>);

impl Shared {
    /// Returns the place of the record.
    pub(crate) fn add(&self, record: Record) -> usize {
        self.with(|history| {
            history.records.push(record);
            history.records.len() - 1
        })
    }

    /// Records a request that will be sent now. Returns its number.
    pub(crate) fn send(&self, request: Request) -> usize {
        self.with(|history| {
            let number = history.requests.len();
            history.requests.push(request);
            // Recorded before the caller sends the first byte.
            history.records.push(Record::Sent(number));
            number
        })
    }

    pub(crate) fn take(&self) -> History {
        self.with(core::mem::take)
    }

    fn with<T>(&self, act: impl FnOnce(&mut History) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
