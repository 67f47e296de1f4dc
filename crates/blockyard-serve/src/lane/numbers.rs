//! A first-in, first-out list that holds each number at most once.

use std::collections::VecDeque;

/// Numbers in the order of their insertion, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    order: VecDeque<u32>,
    /// Whether each number is in the list, indexed by the number.
    has: Vec<bool>,
}

impl Numbers {
    /// Appends `number` unless the list already holds it.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.has.len() {
            self.has.resize(at + 1, false);
        }
        if !core::mem::replace(&mut self.has[at], true) {
            self.order.push_back(number);
        }
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let number = self.order.pop_front()?;
        debug_assert!(self.has[number as usize], "a number in the order is marked");
        self.has[number as usize] = false;
        Some(number)
    }

    /// Returns the number at index `place` of the list.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<u32> {
        self.order.get(place).copied()
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.has.get(number as usize).is_some_and(|has| *has)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Removes `number` from any place in the list.
    pub(crate) fn remove(&mut self, number: u32) {
        if self.contains(number) {
            self.has[number as usize] = false;
            self.order.retain(|other| *other != number);
        }
    }

    pub(crate) fn drain_all(&mut self) -> VecDeque<u32> {
        for number in &self.order {
            self.has[*number as usize] = false;
        }
        core::mem::take(&mut self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_listed_once_until_it_is_taken() {
        let mut numbers = Numbers::default();
        [3, 0, 3].into_iter().for_each(|number| numbers.insert(number));
        assert_eq!((numbers.len(), numbers.get(0), numbers.contains(0)), (2, Some(3), true));
        assert_eq!(numbers.pop_first(), Some(3));
        assert!(!numbers.contains(3) && !numbers.contains(9));
        numbers.insert(3);
        assert_eq!([numbers.pop_first(), numbers.pop_first()], [Some(0), Some(3)]);
        assert!(numbers.is_empty());
        [1, 0, 2].into_iter().for_each(|number| numbers.insert(number));
        numbers.remove(0);
        assert!(!numbers.contains(0));
        assert_eq!(numbers.drain_all(), [1, 2]);
        assert!(numbers.is_empty() && !numbers.contains(1));
    }
}
