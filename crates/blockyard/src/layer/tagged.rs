//! A value for each driver tag of a host.

use crate::tag::TagSetConfig;
use crate::unit::{DriverTag, HctxId};
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Hardware queue and driver tag: identifies a request in flight.
pub(super) type Slot = (HctxId, DriverTag);

/// A table by hardware queue and driver tag.
#[derive(Clone, Debug)]
pub(super) struct Tagged<T> {
    depth: usize,
    values: Vec<T>,
}

impl<T: Clone> Tagged<T> {
    /// Returns a table with `value` for every tag.
    pub(super) fn new(value: T, tags: &TagSetConfig) -> Self {
        let depth = usize::from(tags.depth);
        Self { depth, values: alloc::vec![value; usize::from(tags.hctxs) * depth] }
    }

    /// The number of tags.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the values of all tags.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// Returns the values with their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.values.iter().enumerate().map(|(at, value)| {
            let hctx = HctxId(number16(at / self.depth));
            let tag = DriverTag(number16(at % self.depth));
            ((hctx, tag), value)
        })
    }

    fn at(&self, (hctx, tag): Slot) -> usize {
        assert!(tag.index() < self.depth, "{tag:?} of {}", self.depth);
        hctx.index() * self.depth + tag.index()
    }
}

fn number16(number: usize) -> u16 {
    u16::try_from(number).expect("numbers of hardware queues and tags are 16 bits")
}

impl<T: Clone> Index<Slot> for Tagged<T> {
    type Output = T;
    fn index(&self, slot: Slot) -> &T {
        &self.values[self.at(slot)]
    }
}

impl<T: Clone> IndexMut<Slot> for Tagged<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        let at = self.at(slot);
        &mut self.values[at]
    }
}
