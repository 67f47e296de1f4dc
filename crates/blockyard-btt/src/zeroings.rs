//! The number of calls that zero sectors: the entries that they store are not durable yet
//! ([zero-found-is-durable], a rule of `sector_state`).

use super::padded::Padded;
use super::sync::{AtomicU32, Ordering};

/// The number of calls that zero, from before their first store to behind their fence. A call that
/// fails stays counted, because nobody knows what it made durable.
#[derive(Debug, Default)]
pub(super) struct Zeroings(Padded<AtomicU32>);

impl Zeroings {
    /// Counts a call that is about to store entries. Its stores release, so whoever loads one of
    /// them sees this.
    pub(super) fn begin(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call no more, whose entries are durable.
    pub(super) fn end(&self) {
        let before = self.0.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "[zero-found-is-durable]: a call ends that never began");
    }

    /// Whether all entries are durable that a load before this call has found zeroed.
    pub(super) fn are_fenced(&self) -> bool {
        self.0.0.load(Ordering::Acquire) == 0
    }
}
