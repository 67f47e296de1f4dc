//! Completions that a layer holds back, each until its instant.

use super::tagged::{Slot, Tagged};
use crate::driver::{Finished, Outcome};
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::Instant;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

/// Completions by instant, then in the order in which they came; at most one for each tag.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Earliest first; the middle number orders completions of the same instant.
    order: BinaryHeap<Reverse<(Instant, u64, Slot)>>,
    finished: Tagged<Option<Finished>>,
    sequence: u64,
}

impl Held {
    /// Returns an empty set with room for a completion of each tag.
    pub(super) fn new(tags: &TagSetConfig) -> Self {
        let finished = Tagged::new(None, tags);
        Self { order: BinaryHeap::with_capacity(finished.len()), finished, sequence: 0 }
    }

    /// Holds `finished` until `due`.
    pub(super) fn hold(&mut self, finished: Finished, due: Instant) {
        let slot = (finished.hctx, finished.tag);
        let before = self.finished[slot].replace(finished);
        assert!(
            before.is_none(),
            "[owned-until-completed]: {slot:?} completes while its completion is held"
        );
        self.order.push(Reverse((due, self.sequence, slot)));
        self.sequence += 1;
    }

    /// Holds each completion until the instant that `due_of` returns.
    pub(super) fn set_due(&mut self, due_of: impl Fn(Slot) -> Instant) {
        let mut order = core::mem::take(&mut self.order).into_vec();
        order.iter_mut().for_each(|Reverse((due, _, slot))| *due = due_of(*slot));
        self.order = order.into();
    }

    /// Takes the next completion whose instant has come.
    pub(super) fn next(&mut self, now: Instant) -> Option<Finished> {
        if self.next_at()? > now {
            return None;
        }
        let Reverse((_, _, slot)) = self.order.pop()?;
        self.finished[slot].take()
    }

    /// Makes every completion due immediately, as that of a failed request if the request succeeded
    /// ([let-go-ends-held]).
    pub(super) fn fail_all(&mut self) {
        let mut order = core::mem::take(&mut self.order).into_vec();
        order.iter_mut().for_each(|Reverse((due, ..))| *due = Instant::ZERO);
        self.order = order.into();
        for finished in self.finished.values_mut().flatten() {
            if finished.outcome == Outcome::Done(Status::Ok) {
                finished.outcome = Outcome::Done(Status::IoError);
            }
        }
    }

    /// Whether the completion of `slot` is held.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.finished[slot].is_some()
    }

    /// Returns when the next completion is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, _, _))| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{DriverTag, HctxId, QueueId};
    use proptest::prelude::*;
    use std::vec::Vec;

    const TAGS: TagSetConfig = TagSetConfig {
        hctxs: 2,
        depth: 8,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 1,
        max_waiters: 0,
    };

    fn finished(number: u16) -> Finished {
        let hctx = HctxId(number / TAGS.depth);
        let tag = DriverTag(number % TAGS.depth);
        Finished { queue: QueueId(0), hctx, tag, outcome: Outcome::Done(Status::Ok) }
    }

    proptest! {
        /// Compared with a list that is searched for the earliest.
        #[test]
        fn the_earliest_completion_comes_first_and_ties_keep_their_order(
            steps in proptest::collection::vec((0..16_u16, 0..5_u64, any::<bool>()), 1..200)
        ) {
            let mut held = Held::new(&TAGS);
            let mut list: Vec<(u64, u16)> = Vec::new();
            let mut now = 0;
            for (number, delay, take) in steps {
                if take {
                    now += delay;
                    let first = list.iter().filter(|(due, _)| *due <= now).min_by_key(|(due, _)| *due);
                    let first = first.copied();
                    list.retain(|entry| Some(*entry) != first);
                    let got = held.next(Instant::from_ns(now));
                    prop_assert_eq!(got, first.map(|(_, number)| finished(number)));
                } else if list.iter().all(|(_, other)| *other != number) {
                    list.push((now + delay, number));
                    held.hold(finished(number), Instant::from_ns(now + delay));
                }
                let next = list.iter().map(|(due, _)| Instant::from_ns(*due)).min();
                prop_assert_eq!(held.next_at(), next);
            }
        }
    }

    #[test]
    #[should_panic(expected = "[owned-until-completed]")]
    fn a_tag_that_completes_twice_panics() {
        let mut held = Held::new(&TAGS);
        held.hold(finished(3), Instant::ZERO);
        held.hold(finished(3), Instant::ZERO);
    }
}
