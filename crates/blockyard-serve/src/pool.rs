//! A pool of buffers for data in flight. Sizes are powers of two, and returned buffers are reused.

use crate::map::Pages;
use std::io;
use std::rc::Rc;

/// The smallest buffer, as a power of two: a page.
const CLASS_MIN: u32 = 12;
/// The largest buffer, as a power of two: 64 MiB, enough for the longest request and the blocks at its ends.
const CLASS_MAX: u32 = 26;
const CLASSES: usize = (CLASS_MAX - CLASS_MIN + 1) as usize;

/// The spare buffers of one lane.
#[derive(Debug)]
pub(crate) struct Pool {
    spare: [Vec<Rc<Pages>>; CLASSES],
    spare_bytes: usize,
    spare_bytes_max: usize,
}

impl Pool {
    /// Returns an empty pool, which will keep returned buffers of at most `spare_bytes_max` bytes in total.
    pub(crate) fn new(spare_bytes_max: usize) -> Self {
        Self { spare: [const { Vec::new() }; CLASSES], spare_bytes: 0, spare_bytes_max }
    }

    /// Returns a buffer of at least `len` bytes, whose content is arbitrary.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory.
    pub(crate) fn take(&mut self, len: usize) -> io::Result<Rc<Pages>> {
        let class = class_of(len);
        if let Some(pages) = self.spare[class].pop() {
            self.spare_bytes -= pages.len();
            return Ok(pages);
        }
        Ok(Rc::new(Pages::new(len.next_power_of_two())?))
    }

    /// Takes back a buffer from [`Self::take`]. If the buffer has other owners, the last of them frees it.
    pub(crate) fn give(&mut self, pages: Rc<Pages>) {
        if Rc::strong_count(&pages) == 1 && self.spare_bytes + pages.len() <= self.spare_bytes_max {
            self.spare_bytes += pages.len();
            self.spare[class_of(pages.len())].push(pages);
        }
    }
}

fn class_of(len: usize) -> usize {
    let power = len.next_power_of_two().trailing_zeros().max(CLASS_MIN);
    assert!(power <= CLASS_MAX, "a buffer is at most 64 MiB");
    (power - CLASS_MIN) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_nobody_holds_it() {
        let mut pool = Pool::new(1 << 20);
        let first = pool.take(5000).expect("memory should suffice for one buffer");
        assert_eq!(first.len(), 8192);
        let start = first.span(0..0).start;
        pool.give(first);
        let again = pool.take(4097).expect("the pool should have a spare buffer");
        assert_eq!(again.span(0..0).start, start);
        let held = Rc::clone(&again);
        pool.give(again);
        assert_ne!(
            pool.take(8192).expect("memory should suffice for one buffer").span(0..0).start,
            held.span(0..0).start
        );
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_limit() {
        let mut pool = Pool::new(4096);
        let one = pool.take(1).expect("memory should suffice for two pages");
        let two = pool.take(1).expect("memory should suffice for two pages");
        pool.give(one);
        pool.give(two);
        assert_eq!(pool.spare_bytes, 4096);
    }
}
