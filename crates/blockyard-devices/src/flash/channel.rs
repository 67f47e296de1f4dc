//! A channel: it carries data of its dies, one transfer at a time.
//!
//! A transfer asks for the channel when its data is ready, and the channel serves them in the order
//! in which they ask. So a busy die keeps no channel from another.

use blockyard::time::{Duration, Instant};
use std::collections::VecDeque;

/// A channel that carries transfers of kind `T`.
#[derive(Debug)]
pub(super) struct Channel<T> {
    /// Transfers in the order of their arrival, with the time that each takes. The first is under
    /// way.
    queue: VecDeque<(T, Duration)>,
}

impl<T> Channel<T> {
    /// Returns an idle channel.
    pub(super) const fn new() -> Self {
        Self { queue: VecDeque::new() }
    }

    /// Asks for a transfer that takes `time`, and returns when it ends if it begins at once.
    /// The data is ready: the transfer waits for nothing but the channel.
    pub(super) fn ask(&mut self, transfer: T, time: Duration, now: Instant) -> Option<Instant> {
        self.queue.push_back((transfer, time));
        (self.queue.len() == 1).then(|| now + time)
    }

    /// Ends the transfer that is under way, and returns it, and when the next one ends.
    pub(super) fn end(&mut self, now: Instant) -> (T, Option<Instant>) {
        let (transfer, _) = self.queue.pop_front().expect("a transfer should be under way");
        (transfer, self.queue.front().map(|(_, time)| now + *time))
    }
}
