//! The heap of future events, ordered by time and then by insertion.

use blockyard::time::Instant;

/// The pending events, ordered by `(time, sequence)`: events of one instant keep the order of
/// insertion.
///
/// This is a 4-ary heap of keys in one array, and the events in another. An insertion and a removal
/// cost about ten comparisons each at a thousand events. The heap allocates only when more events
/// are pending than ever before.
#[derive(Debug)]
pub struct EventHeap<T> {
    /// The time of each event, its sequence number, and its place among `events`. Keys that are
    /// [`FREE`] follow them, so that a key has all its children.
    keys: Vec<u128>,
    len: usize,
    events: Vec<T>,
    /// The places whose events have been removed.
    free: Vec<u32>,
    sequence: u64,
}

/// The key of no event.
const FREE: u128 = u128::MAX;
/// Number of children of a slot.
const ARITY: usize = 4;
/// The bits of a place in a key.
const PLACE_BITS: u32 = 24;
/// The bits of a sequence number and a place in a key.
const NUMBER_BITS: u32 = u64::BITS;

impl<T: Copy> Default for EventHeap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> EventHeap<T> {
    /// Returns an empty heap.
    #[must_use]
    pub const fn new() -> Self {
        Self { keys: Vec::new(), len: 0, events: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    /// Schedules `event` for `at`, after all earlier events of that instant.
    ///
    /// # Panics
    ///
    /// Panics above 16 million pending events, and after 2^40 events.
    pub fn push(&mut self, at: Instant, event: T) {
        let place = self.put(event);
        let key = self.next_key(at, place);
        let mut hole = self.len;
        self.len += 1;
        if self.len + ARITY > self.keys.len() {
            self.keys.extend([FREE; ARITY]);
        }
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    /// Returns the key of the event at `place`, which is scheduled now for `at`.
    fn next_key(&mut self, at: Instant, place: u32) -> u128 {
        assert!(self.sequence >> (NUMBER_BITS - PLACE_BITS) == 0, "too many events in one run");
        let number = self.sequence << PLACE_BITS | u64::from(place);
        self.sequence += 1;
        u128::from(at.as_ns()) << NUMBER_BITS | u128::from(number)
    }

    /// Keeps `event`, and returns its place.
    fn put(&mut self, event: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.events[place as usize] = event;
            return place;
        }
        let place = u32::try_from(self.events.len()).unwrap_or(u32::MAX);
        assert!(place >> PLACE_BITS == 0, "too many pending events");
        self.events.push(event);
        place
    }

    /// Removes and returns the earliest event.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let at = self.next_at()?;
        let place = place_of(self.keys[0]);
        self.free.push(place);
        self.len -= 1;
        let last = core::mem::replace(&mut self.keys[self.len], FREE);
        if self.len > 0 {
            self.sink(last);
        }
        debug_assert!(
            self.next_at().is_none_or(|next| next >= at),
            "the earliest event comes first"
        );
        Some((at, self.events[place as usize]))
    }

    /// As [`Self::push`] and then [`Self::pop`], at half the cost: schedules `event` for `at`, and
    /// removes and returns the earliest event, which must not be later than `at`.
    ///
    /// # Panics
    ///
    /// Panics if no event is pending, and after 2^40 events.
    pub fn exchange(&mut self, at: Instant, event: T) -> (Instant, T) {
        let first = self.keys[..self.len][0];
        debug_assert!(at_of(first) <= at, "the event for {at} would be the earliest one");
        let place = place_of(first);
        let earliest = core::mem::replace(&mut self.events[place as usize], event);
        let key = self.next_key(at, place);
        self.sink(key);
        (at_of(first), earliest)
    }

    /// Puts `key` where the first one was, or lower.
    fn sink(&mut self, key: u128) {
        debug_assert!(key < FREE && self.len > 0, "only the key of an event sinks");
        let mut hole = 0;
        while let Some(&[first, second, third, fourth, ..]) = self.keys.get(hole * ARITY + 1..) {
            let from = hole * ARITY + 1;
            // Without branches, which no processor would predict.
            let left = if second < first { (from + 1, second) } else { (from, first) };
            let right = if fourth < third { (from + 3, fourth) } else { (from + 2, third) };
            let (child, least) = if right.1 < left.1 { right } else { left };
            if key <= least {
                break;
            }
            self.keys[hole] = least;
            hole = child;
        }
        self.keys[hole] = key;
    }

    /// Returns the time of the earliest event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        (self.len > 0).then(|| at_of(self.keys[0]))
    }

    /// Returns the pending events in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = &T> {
        self.keys[..self.len].iter().map(|key| &self.events[place_of(*key) as usize])
    }

    /// Returns the number of pending events.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Returns the time in a key.
const fn at_of(key: u128) -> Instant {
    Instant::from_ns((key >> NUMBER_BITS) as u64)
}

/// Returns the place in a key.
#[expect(clippy::cast_possible_truncation, reason = "the lowest bits of a key are the place")]
const fn place_of(key: u128) -> u32 {
    key as u32 & ((1 << PLACE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;
    use std::collections::BTreeSet;

    #[test]
    fn events_come_by_time_and_then_by_insertion() {
        let mut prng = Prng::new(1);
        let mut heap = EventHeap::new();
        let mut sorted = BTreeSet::new();
        for number in 0..20_000_u64 {
            let at = prng.below(50);
            match prng.below(4) {
                0 => {
                    let expected = sorted.pop_first();
                    assert_eq!(heap.pop().map(|(at, event)| (at.as_ns(), event)), expected);
                }
                1 if sorted.first().is_some_and(|first| first.0 <= at) => {
                    let (earliest_at, earliest) = heap.exchange(Instant::from_ns(at), number);
                    sorted.insert((at, number));
                    assert_eq!(Some((earliest_at.as_ns(), earliest)), sorted.pop_first());
                }
                _ => {
                    heap.push(Instant::from_ns(at), number);
                    sorted.insert((at, number));
                }
            }
            assert_eq!(heap.next_at().map(Instant::as_ns), sorted.first().map(|first| first.0));
            assert_eq!(heap.len(), sorted.len());
        }
    }
}
