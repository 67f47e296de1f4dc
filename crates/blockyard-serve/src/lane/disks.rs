//! The disks of a lane, by number. An operator adds and removes disks while the lane runs.

use crate::lane::queue::DiskQueue;
use core::ops::{Index, IndexMut, Range};

/// The disks of a lane. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Disks(Vec<Option<DiskQueue>>);

impl Disks {
    /// Stores the disk with this number.
    ///
    /// # Panics
    ///
    /// Panics if another disk has the number.
    pub(crate) fn insert(&mut self, number: usize, disk: DiskQueue) {
        if number >= self.0.len() {
            self.0.resize_with(number + 1, || None);
        }
        assert!(self.0[number].is_none(), "a disk gets a number that no other disk has");
        self.0[number] = Some(disk);
    }

    /// Removes and returns the disk with this number, if there is one.
    pub(crate) fn remove(&mut self, number: usize) -> Option<DiskQueue> {
        self.0.get_mut(number)?.take()
    }

    pub(crate) fn find_mut(&mut self, number: usize) -> Option<&mut DiskQueue> {
        self.0.get_mut(number)?.as_mut()
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0.get(number).is_some_and(Option::is_some)
    }

    /// Returns one more than the largest number ever used.
    pub(crate) fn end(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DiskQueue> {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut DiskQueue> {
        self.0.iter_mut().flatten()
    }

    /// Returns the disks whose numbers are in `range`, with their numbers.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &DiskQueue)> {
        range.filter_map(|number| Some((number, self.0.get(number)?.as_ref()?)))
    }

    /// Returns the disks with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &DiskQueue)> {
        self.0.iter().enumerate().filter_map(|(number, disk)| Some((number, disk.as_ref()?)))
    }
}

impl Index<usize> for Disks {
    type Output = DiskQueue;
    #[inline]
    fn index(&self, number: usize) -> &DiskQueue {
        self.0[number].as_ref().expect("disk of a door, which keeps it from being removed")
    }
}

impl IndexMut<usize> for Disks {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut DiskQueue {
        self.0[number].as_mut().expect("disk of a door, which keeps it from being removed")
    }
}
