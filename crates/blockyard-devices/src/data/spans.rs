//! A value for each sector of a disk, stored by ranges.

use core::ops::Range;
use std::collections::BTreeMap;

/// A value for each sector. Sectors that were never changed have the default. Adjacent ranges with
/// equal values are one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans<T> {
    /// The end and the value of each range, by its first sector. The value is not the default.
    spans: BTreeMap<u64, (u64, T)>,
    default: T,
}

impl<T: Clone + Default + Eq> Spans<T> {
    /// Returns a map with the default for all sectors.
    #[must_use]
    pub fn new() -> Self {
        Self { spans: BTreeMap::new(), default: T::default() }
    }

    /// Calls `change` once for each maximal range of equal values in `range`, in order.
    pub(crate) fn update(&mut self, range: Range<u64>, mut change: impl FnMut(Range<u64>, &mut T)) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let mut at = range.start;
        while at < range.end {
            let next = self.spans.range(at..range.end).next().map(|(first, _)| *first);
            let (end, mut value) = match next {
                Some(first) if first == at => {
                    self.spans.remove(&at).expect("a range that was just found should exist")
                }
                next => (next.unwrap_or(range.end), T::default()),
            };
            debug_assert!(end <= range.end, "the range was cut at its ends");
            change(at..end, &mut value);
            self.put(at..end, value);
            at = end;
        }
        self.join(range.end);
    }

    /// Sets the value of every sector of `range`.
    pub fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        while let Some((&first, _)) = self.spans.range(range.clone()).next() {
            self.spans.remove(&first);
        }
        let end = range.end;
        self.put(range, value);
        self.join(end);
    }

    /// Returns the values in `range`, in order, by maximal ranges.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> {
        let mut at = range.start;
        let before = self.spans.range(..range.start).next_back();
        let before = before.filter(|(_, (end, _))| *end > range.start);
        let mut spans = before.into_iter().chain(self.spans.range(range.clone())).peekable();
        core::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let (end, value) = match spans.peek() {
                Some((first, (end, value))) if **first <= at => {
                    spans.next();
                    ((*end).min(range.end), value)
                }
                Some((first, _)) => (**first, &self.default),
                None => (range.end, &self.default),
            };
            debug_assert!(at < end, "each piece advances");
            let piece = at..end;
            at = end;
            Some((piece, value))
        })
    }

    /// Returns the ranges whose value is not the default, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &T)> {
        self.spans.iter().map(|(first, (end, value))| (*first..*end, value))
    }

    /// Number of ranges whose value is not the default.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether every sector has the default.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Cuts the range around `at` in two.
    fn cut(&mut self, at: u64) {
        let Some((_, (end, value))) = self.spans.range_mut(..at).next_back() else { return };
        if *end > at {
            let behind = (core::mem::replace(end, at), value.clone());
            self.spans.insert(at, behind);
        }
    }

    /// Sets `range`, which has the default, to `value`, and joins it to an equal range before it.
    fn put(&mut self, range: Range<u64>, value: T) {
        debug_assert!(range.start < range.end, "an empty range has no value");
        let next = self.spans.range(range.start..).next().map(|(first, _)| *first);
        debug_assert!(next.is_none_or(|next| next >= range.end), "{range:?} overlaps {next:?}");
        if value == self.default {
            return;
        }
        match self.spans.range_mut(..range.start).next_back() {
            Some((_, (end, before))) if *end == range.start && *before == value => *end = range.end,
            _ => drop(self.spans.insert(range.start, (range.end, value))),
        }
    }

    /// Joins the range that begins at `at` to an equal range before it.
    fn join(&mut self, at: u64) {
        if let Some((end, value)) = self.spans.remove(&at) {
            self.put(at..end, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTORS: u64 = 40;

    #[derive(Clone, Debug)]
    enum Step {
        Set(Range<u64>, u8),
        Add(Range<u64>, u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..SECTORS, 0..12_u64).prop_map(|(at, len)| at..(at + len).min(SECTORS));
        (range, 0..4_u8, any::<bool>()).prop_map(|(range, value, sets)| {
            if sets { Step::Set(range, value) } else { Step::Add(range, value) }
        })
    }

    fn index(at: u64) -> usize {
        usize::try_from(at).unwrap()
    }

    proptest! {
        /// Compares the map with an array.
        #[test]
        fn a_map_holds_the_same_values_as_an_array(steps in proptest::collection::vec(step(), 1..60)) {
            let mut spans = Spans::new();
            let mut array = vec![0_u8; index(SECTORS)];
            for step in steps {
                match step {
                    Step::Set(range, value) => {
                        spans.set(range.clone(), value);
                        range.for_each(|at| array[index(at)] = value);
                    }
                    Step::Add(range, value) => {
                        let mut seen = Vec::new();
                        spans.update(range.clone(), |piece, held| {
                            seen.extend(piece.map(|at| (at, *held)));
                            *held = (*held + value) % 4;
                        });
                        let all: Vec<_> = range.clone().map(|at| (at, array[index(at)])).collect();
                        prop_assert_eq!(seen, all);
                        for at in range {
                            array[index(at)] = (array[index(at)] + value) % 4;
                        }
                    }
                }
                let mut end = None;
                let mut last = 0;
                for (range, value) in spans.iter() {
                    prop_assert!(*value != 0 && !range.is_empty());
                    prop_assert!(end != Some(range.start) || last != *value, "equal ranges not joined");
                    (end, last) = (Some(range.end), *value);
                }
                for from in 0..SECTORS {
                    let held: Vec<_> = spans
                        .pieces(from..SECTORS)
                        .flat_map(|(range, value)| range.map(|_| *value))
                        .collect();
                    prop_assert_eq!(&held, &array[index(from)..]);
                }
            }
        }
    }
}
