//! The doors of a lane that have not begun to serve: their clients have not chosen an export.

use crate::numbers::Numbers;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The doors of a lane that have not begun to serve. The thread that accepts clients counts each one when it sends the
/// client to the lane, and so knows the number before the lane has opened the door.
#[derive(Debug)]
pub(crate) struct Newcomers {
    doors: Numbers,
    count: Arc<AtomicUsize>,
}

impl Newcomers {
    /// Returns an empty list whose doors are counted in `count`.
    pub(crate) fn new(count: Arc<AtomicUsize>) -> Self {
        Self { doors: Numbers::default(), count }
    }

    /// Adds a door, which has been counted already.
    pub(crate) fn put(&mut self, door: u32) {
        self.doors.put(door);
    }

    /// Removes a door, if it is in the list: it serves now, or it has gone.
    #[inline]
    pub(crate) fn remove(&mut self, door: u32) {
        if self.doors.remove(door) {
            self.forget_one();
        }
    }

    pub(crate) fn take_oldest(&mut self) -> Option<u32> {
        let oldest = self.doors.take_first()?;
        self.forget_one();
        Some(oldest)
    }

    /// Uncounts a client for which no door was opened.
    pub(crate) fn forget_one(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
