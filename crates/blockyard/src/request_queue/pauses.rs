//! The counts of freezes and quiesces, and the submitters that wait for a freeze to end.

use crate::tag::Full;
use alloc::vec::Vec;

/// How often the queue is frozen and quiesced, and the submitters that wait for the end of a
/// freeze.
#[derive(Debug)]
pub(super) struct Pauses {
    pub(super) frozen: u32,
    pub(super) quiesced: u32,
    /// Whether the queue drains; one freeze is of the drain.
    pub(super) draining: bool,
    /// Submitters that were refused because of a freeze.
    pub(super) waiters: Vec<u64>,
}

impl Pauses {
    /// Returns memory for `max_waiters` waiters.
    pub(super) fn new(max_waiters: u32) -> Self {
        Self {
            frozen: 0,
            quiesced: 0,
            draining: false,
            waiters: Vec::with_capacity(max_waiters as usize),
        }
    }

    pub(super) fn wait(&mut self, waiter: u64) -> Result<(), Full> {
        if self.waiters.len() == self.waiters.capacity() {
            return Err(Full);
        }
        self.waiters.push(waiter);
        Ok(())
    }
}
