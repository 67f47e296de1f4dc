//! The heap of future events, ordered by time and then by insertion.

use blockyard::time::Instant;

/// The pending events, ordered by `(time, sequence)`: events of one instant keep the order of insertion.
///
/// This is a 4-ary heap in one array. An insertion and a removal cost about ten comparisons each at a thousand
/// events. The heap allocates only when more events are pending than ever before.
#[derive(Debug)]
pub struct EventHeap<T> {
    slots: Vec<(u128, T)>,
    sequence: u64,
}

/// Number of children of a slot.
const ARITY: usize = 4;

impl<T: Copy> Default for EventHeap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> EventHeap<T> {
    /// Returns an empty heap.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), sequence: 0 }
    }

    /// Schedules `event` for `at`, after all earlier events of that instant.
    pub fn push(&mut self, at: Instant, event: T) {
        debug_assert!(self.sequence < u64::MAX, "the sequence number must not wrap");
        let key = u128::from(at.as_ns()) << 64 | u128::from(self.sequence);
        self.sequence += 1;
        let mut hole = self.slots.len();
        self.slots.push((key, event));
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.slots[parent].0 <= key {
                break;
            }
            self.slots[hole] = self.slots[parent];
            hole = parent;
        }
        self.slots[hole] = (key, event);
    }

    /// Removes and returns the earliest event.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let last = self.slots.pop()?;
        let first = match self.slots.first() {
            Some(first) => *first,
            None => return Some((at_of(last.0), last.1)),
        };
        let len = self.slots.len();
        let mut hole = 0;
        loop {
            let from = hole * ARITY + 1;
            if from >= len {
                break;
            }
            let mut least = from;
            for child in from + 1..len.min(from + ARITY) {
                if self.slots[child].0 < self.slots[least].0 {
                    least = child;
                }
            }
            if last.0 <= self.slots[least].0 {
                break;
            }
            self.slots[hole] = self.slots[least];
            hole = least;
        }
        self.slots[hole] = last;
        debug_assert!(first.0 < self.slots[0].0, "a removed event must be the earliest");
        Some((at_of(first.0), first.1))
    }

    /// Returns the time of the earliest event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.slots.first().map(|(key, _)| at_of(*key))
    }

    /// Returns the pending events in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|(_, event)| event)
    }

    /// Returns the number of pending events.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no event is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Returns the time in a key.
const fn at_of(key: u128) -> Instant {
    Instant::from_ns((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Prng;
    use std::collections::BTreeSet;

    #[test]
    fn events_come_by_time_and_then_by_insertion() {
        let mut prng = Prng::new(1);
        let mut heap = EventHeap::new();
        let mut sorted = BTreeSet::new();
        for number in 0..20_000_u64 {
            if prng.below(3) > 0 {
                let at = prng.below(50);
                heap.push(Instant::from_ns(at), number);
                sorted.insert((at, number));
            } else {
                let expected = sorted.pop_first();
                assert_eq!(heap.pop().map(|(at, event)| (at.as_ns(), event)), expected);
            }
            assert_eq!(heap.next_at().map(Instant::as_ns), sorted.first().map(|first| first.0));
            assert_eq!(heap.len(), sorted.len());
        }
    }
}
