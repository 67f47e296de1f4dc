//! Interrupt vectors of an NVMe drive, and the completions that they hold back.
//!
//! With coalescing, a vector interrupts when it has as many completions as its threshold says, or
//! when the first of them has waited for its time. Without, each completion is announced
//! immediately. A polled queue has no vector, so nothing holds its completions back.

use crate::fronts::coalescing::CoalescingProfile;
use blockyard::driver::Finished;
use blockyard::time::Instant;
use std::collections::VecDeque;

/// The completions that one vector holds back.
#[derive(Debug, Default)]
struct Vector {
    held: Vec<Finished>,
    /// The instant at which the first of them has waited long enough.
    due: Option<Instant>,
}

/// The vectors of a drive: one for each hardware queue that is not polled.
#[derive(Debug)]
pub(super) struct Vectors {
    /// `None`: nothing is held back.
    coalescing: Option<CoalescingProfile>,
    vectors: Vec<Vector>,
    /// Completions that have been announced.
    announced: VecDeque<Finished>,
}

impl Vectors {
    /// Returns the vectors of as many hardware queues, which have the lowest numbers.
    pub(super) fn new(coalescing: Option<CoalescingProfile>, interrupting: u16) -> Self {
        let vectors = (0..interrupting).map(|_| Vector::default()).collect();
        Self { coalescing, vectors, announced: VecDeque::new() }
    }

    /// Takes a completion at `now`. Returns when [`Self::expire`] has to be called for its hardware
    /// queue, if it has to.
    pub(super) fn complete(&mut self, finished: Finished, now: Instant) -> Option<Instant> {
        let vector = self.vectors.get_mut(finished.hctx.index());
        let Some((coalescing, vector)) = self.coalescing.zip(vector) else {
            self.announced.push_back(finished); // no coalescing, or a polled queue
            return None;
        };
        debug_assert_eq!(vector.due.is_some(), !vector.held.is_empty(), "the first sets the time");
        vector.held.push(finished);
        if vector.held.len() >= usize::from(coalescing.entries) {
            // The threshold is reached before the time of the first one is over.
            self.announce(finished.hctx.index());
            return None;
        }
        let is_first = vector.due.is_none();
        is_first.then(|| *vector.due.insert(now + coalescing.time))
    }

    /// Announces what the vector of hardware queue `hctx` holds, if its time is over at `now`.
    pub(super) fn expire(&mut self, hctx: usize, now: Instant) {
        if self.vectors[hctx].due == Some(now) {
            self.announce(hctx);
        }
    }

    fn announce(&mut self, hctx: usize) {
        let vector = &mut self.vectors[hctx];
        debug_assert!(!vector.held.is_empty(), "an interrupt should announce something");
        vector.due = None;
        self.announced.extend(vector.held.drain(..));
    }

    /// Returns the next completion that has been announced.
    pub(super) fn next_announced(&mut self) -> Option<Finished> {
        self.announced.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::driver::Outcome;
    use blockyard::status::Status;
    use blockyard::time::Duration;
    use blockyard::unit::{DriverTag, HctxId, QueueId};

    fn finished(hctx: u16, tag: u16) -> Finished {
        let outcome = Outcome::Done(Status::Ok);
        Finished { queue: QueueId(0), hctx: HctxId(hctx), tag: DriverTag(tag), outcome }
    }

    fn announced(vectors: &mut Vectors) -> Vec<u16> {
        core::iter::from_fn(|| vectors.next_announced()).map(|finished| finished.tag.0).collect()
    }

    fn of_three_in_100_us() -> Vectors {
        let coalescing = CoalescingProfile { entries: 3, time: Duration::from_us(100) };
        Vectors::new(Some(coalescing), 2)
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    #[test]
    fn a_vector_interrupts_at_its_threshold_or_when_its_time_is_over() {
        let mut vectors = of_three_in_100_us();
        assert_eq!(vectors.complete(finished(0, 1), at(10)), Some(at(110)));
        assert_eq!(vectors.complete(finished(0, 2), at(20)), None);
        assert_eq!(vectors.complete(finished(1, 9), at(25)), Some(at(125)));
        assert_eq!(announced(&mut vectors), [0; 0]);
        assert_eq!(vectors.complete(finished(0, 3), at(30)), None);
        assert_eq!(announced(&mut vectors), [1, 2, 3]);
        // The time of completions that the threshold has announced is no longer due.
        assert_eq!(vectors.complete(finished(0, 4), at(40)), Some(at(140)));
        vectors.expire(0, at(110));
        assert_eq!(announced(&mut vectors), [0; 0]);
        vectors.expire(1, at(125));
        vectors.expire(0, at(140));
        assert_eq!(announced(&mut vectors), [9, 4]);
    }

    #[test]
    fn completions_of_polled_queues_are_not_held_back() {
        let mut vectors = of_three_in_100_us();
        assert_eq!(vectors.complete(finished(2, 5), Instant::ZERO), None);
        assert_eq!(announced(&mut vectors), [5]);
    }
}
