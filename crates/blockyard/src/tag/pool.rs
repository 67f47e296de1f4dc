//! Numbers, and who waits for one.

use super::{Full, TagMap, Waiters};

/// A [`TagMap`] with the submitters that wait for its numbers. Those that need a reserved number
/// wait separately, because other numbers do not help them.
#[derive(Clone, Debug)]
pub struct TagPool {
    map: TagMap,
    waiters: Waiters,
    reserved_waiters: Waiters,
}

impl TagPool {
    /// Returns the numbers `0..depth`, of which `0..reserved` are reserved, and memory for
    /// `max_waiters` waiters of either kind.
    ///
    /// # Panics
    ///
    /// Panics like [`TagMap::new`] and [`Waiters::new`].
    #[must_use]
    pub fn new(depth: u32, reserved: u32, max_waiters: u32) -> Self {
        Self {
            map: TagMap::new(depth, reserved),
            waiters: Waiters::new(depth - reserved, max_waiters),
            reserved_waiters: Waiters::new(reserved, max_reserved(reserved, max_waiters)),
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(depth: u32, reserved: u32, max_waiters: u32) -> usize {
        TagMap::heap(depth, reserved)
            + Waiters::heap(max_waiters)
            + Waiters::heap(max_reserved(reserved, max_waiters))
    }

    /// The numbers.
    #[must_use]
    pub const fn map(&self) -> &TagMap {
        &self.map
    }

    /// See [`TagMap::take`].
    #[must_use = "the number stays in use until it is put back"]
    #[inline]
    pub fn take(&mut self, limit: u32) -> Option<u32> {
        self.map.take(limit)
    }

    /// See [`TagMap::take_reserved`].
    #[must_use = "the number stays in use until it is put back"]
    pub fn take_reserved(&mut self) -> Option<u32> {
        self.map.take_reserved()
    }

    /// Gives `tag` back. Returns whether [`Self::next_woken`] may have another waiter to name.
    ///
    /// # Panics
    ///
    /// Panics if `tag` is not in use ([one-owner-per-tag]).
    #[inline]
    pub fn put(&mut self, tag: u32) -> bool {
        self.put_number(tag) && self.count_freed(tag)
    }

    /// Gives `tag` back. Returns whether waiters for such a number sleep, so that
    /// [`Self::count_freed`] must follow.
    #[inline]
    pub(super) fn put_number(&mut self, tag: u32) -> bool {
        self.map.put(tag);
        let is_reserved = tag < self.map.reserved();
        let waiters = if is_reserved { &self.reserved_waiters } else { &self.waiters };
        waiters.sleeping() > 0
    }

    /// Notes that `tag` was given back. Returns whether [`Self::next_woken`] may have another
    /// waiter to name.
    pub(super) fn count_freed(&mut self, tag: u32) -> bool {
        if tag < self.map.reserved() {
            self.reserved_waiters.freed(self.map.reserved_in_use())
        } else {
            self.waiters.freed(self.map.in_use())
        }
    }

    /// Registers `waiter`, which was refused a number (a reserved one if `reserved`); see
    /// [`Waiters::wait`].
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if there is no memory for one more.
    pub fn wait(&mut self, waiter: u64, reserved: bool) -> Result<(), Full> {
        if reserved {
            self.reserved_waiters.wait(waiter, self.map.reserved_in_use())
        } else {
            self.waiters.wait(waiter, self.map.in_use())
        }
    }

    /// See [`Waiters::woken_got_tag`].
    pub fn woken_got_tag(&mut self, reserved: bool) {
        let waiters = if reserved { &mut self.reserved_waiters } else { &mut self.waiters };
        waiters.woken_got_tag();
    }

    /// See [`Waiters::resize`]; applies to waiters for unreserved numbers.
    pub fn resize(&mut self, usable: u32) {
        self.waiters.resize(usable);
    }

    /// Wakes all waiters: the reason for their refusal may have changed without a put.
    pub fn wake_all(&mut self) {
        self.waiters.wake_all();
        self.reserved_waiters.wake_all();
    }

    /// Returns the next waiter to try again.
    #[inline]
    pub fn next_woken(&mut self) -> Option<u64> {
        if self.has_woken() { self.name_woken() } else { None }
    }

    fn name_woken(&mut self) -> Option<u64> {
        self.waiters.next_woken().or_else(|| self.reserved_waiters.next_woken())
    }

    /// Whether [`Self::next_woken`] has a waiter to name.
    #[must_use]
    pub const fn has_woken(&self) -> bool {
        self.waiters.has_woken() || self.reserved_waiters.has_woken()
    }
}

/// The most submitters that wait for a reserved number.
const fn max_reserved(reserved: u32, max_waiters: u32) -> u32 {
    if reserved > 0 { max_waiters } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_batch_of_frees_counts_the_numbers_that_are_not_reserved() {
        let mut pool = TagPool::new(24, 16, 4);
        let held: Vec<_> = (0..8).map(|_| pool.take(u32::MAX).unwrap()).collect();
        pool.wait(7, false).unwrap();
        pool.put(held[0]);
        assert_eq!(pool.next_woken(), Some(7), "an eighth of 8 numbers");
    }

    #[test]
    fn all_waiters_are_woken_whatever_they_wait_for() {
        let mut pool = TagPool::new(2, 1, 4);
        let _ = (pool.take_reserved().unwrap(), pool.take(u32::MAX).unwrap());
        pool.wait(7, true).unwrap();
        pool.wait(8, false).unwrap();
        pool.wake_all();
        assert_eq!((pool.next_woken(), pool.next_woken()), (Some(8), Some(7)));
    }

    #[test]
    fn who_waits_for_a_reserved_number_is_woken_by_one_and_by_no_other() {
        let mut pool = TagPool::new(3, 1, 4);
        let reserved = pool.take_reserved().unwrap();
        let [one, other] = [pool.take(u32::MAX).unwrap(), pool.take(u32::MAX).unwrap()];
        pool.wait(7, true).unwrap();
        pool.wait(8, false).unwrap();
        pool.put(one);
        assert_eq!((pool.next_woken(), pool.next_woken()), (Some(8), None));
        pool.put(other);
        assert_eq!(pool.next_woken(), None);
        pool.put(reserved);
        assert_eq!((pool.next_woken(), pool.next_woken()), (Some(7), None));
    }
}
