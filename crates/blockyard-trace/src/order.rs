//! Sorts entries that are slightly out of order in their file.

use super::limits::REORDER_MAX;
use super::record::Entry;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Holds back up to [`REORDER_MAX`] entries and returns the earliest ([records-in-time-order]).
/// Entries of the same instant keep the order of the file.
#[derive(Debug, Default)]
pub(super) struct Order {
    held: BinaryHeap<Reverse<Held>>,
    next: u64,
    /// The latest instant pushed.
    latest_ns: u64,
    /// The latest instant popped.
    given_ns: u64,
    /// Number of entries that stood too late.
    pub(super) moved: u64,
    /// The largest delay of an entry, nanoseconds.
    pub(super) moved_ns_max: u64,
}

/// An entry with its number in the file; ordered by instant, then by number.
#[derive(Debug)]
struct Held {
    number: u64,
    entry: Entry,
}

impl Held {
    const fn key(&self) -> (u64, u64) {
        (self.entry.at_ns, self.number)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Order {
    /// Whether the earliest entry is known only after another push.
    pub(super) fn wants(&self) -> bool {
        self.held.len() <= REORDER_MAX
    }

    /// Takes the next entry of the file. The error is the entry's delay in nanoseconds.
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), u64> {
        debug_assert!(self.wants(), "[bounded-trace-memory]: the window is full, pop first");
        if entry.at_ns < self.given_ns {
            return Err(self.given_ns - entry.at_ns);
        }
        if entry.at_ns < self.latest_ns {
            self.moved += 1;
            self.moved_ns_max = self.moved_ns_max.max(self.latest_ns - entry.at_ns);
        }
        self.latest_ns = self.latest_ns.max(entry.at_ns);
        self.held.push(Reverse(Held { number: self.next, entry }));
        self.next += 1;
        Ok(())
    }

    /// Returns the earliest entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let Reverse(held) = self.held.pop()?;
        debug_assert!(held.entry.at_ns >= self.given_ns, "[records-in-time-order]");
        self.given_ns = held.entry.at_ns;
        Some(held.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::EntryKind;
    use super::*;

    fn entry(at_ns: u64) -> Entry {
        Entry { at_ns, kind: EntryKind::Other }
    }

    /// [records-in-time-order]: an entry that is late by at most the window comes out in its place.
    #[test]
    fn entries_late_by_at_most_the_window_are_sorted() {
        let mut order = Order::default();
        let late = REORDER_MAX as u64;
        // All instants from 1 to `late`, then instant 0.
        let instants: Vec<u64> = (1..=late).chain([0]).collect();
        let mut given = Vec::new();
        for at in &instants {
            order.push(entry(*at)).unwrap();
            if !order.wants() {
                given.push(order.pop().unwrap().at_ns);
            }
        }
        given.extend(core::iter::from_fn(|| order.pop()).map(|entry| entry.at_ns));
        assert_eq!(given, (0..=late).collect::<Vec<_>>());
        assert_eq!((order.moved, order.moved_ns_max), (1, late));
    }

    // [records-in-time-order]
    #[test]
    fn an_entry_later_than_the_window_is_refused() {
        let mut order = Order::default();
        for at in 1..=REORDER_MAX as u64 + 1 {
            order.push(entry(at)).unwrap();
        }
        assert!(!order.wants());
        assert_eq!(order.pop().unwrap().at_ns, 1);
        assert_eq!(order.push(entry(0)), Err(1));
    }
}
