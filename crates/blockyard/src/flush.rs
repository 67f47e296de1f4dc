//! Flushes: what makes a volatile cache durable, in sequence with data.
//!
//! A write that asks for [`Flags::PREFLUSH`] or [`Flags::FUA`], and a bio that is nothing but a
//! flush, become requests that take `Steps`: a flush before, their data, a flush after. Those that
//! are at a flush wait in the `FlushQueue` of their hardware queue, and one flush command serves
//! all that waited when it began. Moving a request from step to step is
//! [`request_queue`](crate::request_queue)'s part.
//!
//! # Rules
//!
//! - **F1.** The steps follow from the bio and the device. Without a volatile cache there are none:
//!   the flags are dropped, and a bio that is nothing but a flush ends at once. With one: preflush
//!   asks for a flush before, data for the data, and FUA for a flush after where the device has no
//!   FUA of its own ([`Limits::fua`]; FUA of its own is for writes only).
//! - **F2.** A flush covers only requests that waited before it began, so only writes that ended
//!   before it was sent.
//! - **F3.** A failure of a step ends the request with it; a flush that fails fails all it covers.
//! - **C1.** One flush of a hardware queue is under way at a time.
//! - **C2.** While data of a sequence is under way no flush begins, so that those that will want a
//!   flush behind that data share one.
//! - **C3.** C2 no longer holds once somebody has waited [`HOLD_MAX`].

use crate::request::{List, Requests};
use crate::time::{Duration, Instant};
use crate::unit::RequestId;

/// How long data under way may hold a flush back (C3): 5 s, as in Linux.
pub const HOLD_MAX: Duration = Duration::from_secs(5);

/// Who waits for flushes of one hardware queue.
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    /// For the next one.
    waiting: List,
    /// For the one under way (F2).
    covered: List,
    /// When the first of `waiting` came.
    since: Instant,
    /// Data of sequences that is staged or with the driver (C2).
    data: u32,
    /// A flush is staged or with the driver (C1).
    under_way: bool,
}

impl FlushQueue {
    /// How many requests wait.
    pub(crate) const fn len(&self) -> u32 {
        self.waiting.len() + self.covered.len()
    }

    /// `id`, which is on no list, waits for a flush.
    pub(crate) fn wait(&mut self, requests: &mut Requests, id: RequestId, now: Instant) {
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.waiting.push_back(requests, id);
    }

    /// Data of a sequence is on its way.
    pub(crate) const fn data_began(&mut self) {
        self.data += 1;
    }

    /// Data of a sequence has ended.
    pub(crate) const fn data_ended(&mut self) {
        self.data -= 1;
    }

    /// A flush begins, if it may (C1 to C3): the first request that it covers.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<RequestId> {
        let held = self.held_until().is_some_and(|until| now < until);
        if self.under_way || held {
            return None;
        }
        let first = self.waiting.first()?;
        self.covered = core::mem::take(&mut self.waiting);
        self.under_way = true;
        Some(first)
    }

    /// When C2 ceases to hold a flush back that nothing else does.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let held = self.data > 0 && !self.under_way && !self.waiting.is_empty();
        held.then(|| self.since + HOLD_MAX)
    }

    /// The flush under way has ended: the requests that it covered.
    pub(crate) fn end(&mut self) -> List {
        self.under_way = false;
        core::mem::take(&mut self.covered)
    }

    /// Whether a flush is staged or with the driver.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// The first request that the flush under way covers.
    pub(crate) const fn first_covered(&self) -> Option<RequestId> {
        self.covered.first()
    }
}
