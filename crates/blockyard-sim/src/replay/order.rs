//! Puts in order what stands a little too late (P3).

use super::REORDER_MAX;
use super::record::Entry;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Holds back up to [`REORDER_MAX`] entries and gives out the earliest; entries of the same instant
/// stay in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Order {
    held: BinaryHeap<Reverse<Held>>,
    next: u64,
    /// The latest instant read.
    latest_ns: u64,
    /// The latest instant given out.
    given_ns: u64,
    /// Entries that stood too late.
    pub(super) moved: u64,
    /// The most that one stood too late, nanoseconds.
    pub(super) moved_ns_max: u64,
}

/// An entry with its number in the file; ordered by instant, then number.
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
    /// Whether another entry is needed before the earliest is known.
    pub(super) fn wants(&self) -> bool {
        self.held.len() <= REORDER_MAX
    }

    /// Takes the next entry of the file; an error says by how many nanoseconds it comes too late.
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), u64> {
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

    /// The earliest entry held.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let Reverse(held) = self.held.pop()?;
        self.given_ns = held.entry.at_ns;
        Some(held.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::What;
    use super::*;

    fn entry(at_ns: u64) -> Entry {
        Entry { at_ns, what: What::Other }
    }

    /// Whatever is at most the window out of place comes out sorted, and stably so.
    #[test]
    fn a_window_of_disorder_is_put_in_order() {
        let mut order = Order::default();
        let late = REORDER_MAX as u64;
        // Every instant from `late` on, and the first ones behind them.
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

    #[test]
    fn what_is_later_than_the_window_is_refused() {
        let mut order = Order::default();
        for at in 1..=REORDER_MAX as u64 + 1 {
            order.push(entry(at)).unwrap();
        }
        assert!(!order.wants());
        assert_eq!(order.pop().unwrap().at_ns, 1);
        assert_eq!(order.push(entry(0)), Err(1));
    }
}
