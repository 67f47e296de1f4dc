//! Flushes: requests that wait for a volatile cache to be emptied.
//!
//! A write with [`Flags::PREFLUSH`](crate::bio::Flags::PREFLUSH) or [`Flags::FUA`](crate::bio::Flags::FUA),
//! and a bio that is only a flush, become requests with steps: a flush before, the data, a flush after.
//! Requests whose next step is a flush wait in the `FlushQueue` of their hardware queue, and one flush
//! command serves all that waited when it began. [`request_queue`](crate::request_queue) moves requests
//! from step to step.
//!
//! # Rules
//!
//! - **[flush-covers-earlier]** A flush covers only requests that waited before it began, and so only
//!   writes that ended before it was sent.
//! - **[one-flush-at-a-time]** At most one flush of a hardware queue is under way.
//! - **[flush-waits-for-data]** No flush begins while data of a sequence is under way, so that requests
//!   which need a flush behind that data share one.
//! - **[flush-held-bounded]** [flush-waits-for-data] stops holding a flush back once a request has waited
//!   [`HOLD_MAX`].
//!
//! A step that fails ends its request with the same status. A flush that fails does so for every request it covers.

use crate::request::{List, Requests};
use crate::time::{Duration, Instant};
use crate::unit::RequestId;

/// The longest time that data under way may hold a flush back ([flush-held-bounded]): 5 s, as in
/// Linux.
pub const HOLD_MAX: Duration = Duration::from_secs(5);

/// The requests that wait for flushes of one hardware queue.
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    /// Requests that wait for the next flush.
    waiting: List,
    /// Requests that the current flush covers ([flush-covers-earlier]).
    covered: List,
    /// When the first request of `waiting` came.
    since: Instant,
    /// The number of requests whose data is staged or with the driver ([flush-waits-for-data]).
    data: u32,
    /// Whether a flush is staged or with the driver ([one-flush-at-a-time]).
    under_way: bool,
}

impl FlushQueue {
    /// The number of requests that wait.
    pub(crate) const fn len(&self) -> u32 {
        self.waiting.len() + self.covered.len()
    }

    /// Makes `id`, which is on no list, wait for a flush.
    pub(crate) fn wait(&mut self, requests: &mut Requests, id: RequestId, now: Instant) {
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.waiting.push_back(requests, id);
    }

    /// Notes that data of a sequence was staged.
    pub(crate) const fn data_began(&mut self) {
        self.data += 1;
    }

    /// Notes that data of a sequence has ended.
    pub(crate) const fn data_ended(&mut self) {
        debug_assert!(self.data > 0, "data of a sequence ends twice");
        self.data -= 1;
    }

    /// Begins a flush if the rules allow one, and returns the first request that it covers.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<RequestId> {
        // Two writes with FUA at once: the flush waits for the data of both, and serves both.
        let held = self.held_until().is_some_and(|until| now < until);
        if self.under_way || held {
            return None;
        }
        let first = self.waiting.first()?;
        debug_assert!(
            self.covered.is_empty(),
            "[one-flush-at-a-time]: requests are covered already"
        );
        self.covered = core::mem::take(&mut self.waiting);
        self.under_way = true;
        Some(first)
    }

    /// Returns when [flush-waits-for-data] stops holding back a flush that nothing else holds back.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let held = self.data > 0 && !self.under_way && !self.waiting.is_empty();
        held.then(|| self.since + HOLD_MAX)
    }

    /// Ends the current flush and returns the requests that it covered.
    pub(crate) fn end(&mut self) -> List {
        debug_assert!(self.under_way, "[one-flush-at-a-time]: no flush to end");
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
