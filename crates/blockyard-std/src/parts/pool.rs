//! A pool of buffers for data in flight. Sizes are powers of two, and returned buffers are reused.
//!
//! A new buffer takes memory as it is filled. A reused one has all its memory from the start, so it
//! counts as spare until its user has been charged for the whole of it ([`Pool::charged`]).

use crate::parts::map::Pages;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

/// The smallest buffer, as a power of two: a page.
const CLASS_MIN: u32 = 12;
/// The largest buffer, as a power of two: 64 MiB, enough for the longest request and the blocks at
/// its ends.
const CLASS_MAX: u32 = 26;
/// The largest buffer, in bytes.
pub const BUFFER_BYTES_MAX: usize = 1 << CLASS_MAX;
const CLASSES: usize = (CLASS_MAX - CLASS_MIN + 1) as usize;

/// The spare buffers of one lane.
#[derive(Debug)]
pub struct Pool {
    spare: [Vec<Rc<Pages>>; CLASSES],
    /// The bytes of the spare buffers and of those in `lent`.
    spare_bytes: usize,
    spare_bytes_max: usize,
    /// Buffers whose users have not been charged for the whole buffer, by their addresses.
    lent: BTreeSet<usize>,
}

impl Pool {
    /// Returns an empty pool, which will keep returned buffers of at most `spare_bytes_max` bytes
    /// in total.
    pub fn new(spare_bytes_max: usize) -> Self {
        let spare = [const { Vec::new() }; CLASSES];
        Self { spare, spare_bytes: 0, spare_bytes_max, lent: BTreeSet::new() }
    }

    /// Returns a buffer of at least `len` bytes, at most [`BUFFER_BYTES_MAX`], whose content is
    /// arbitrary. Unless the user `is_charged` for all of it, [`Self::charged`] follows.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory.
    pub fn take(&mut self, len: usize, is_charged: bool) -> io::Result<Rc<Pages>> {
        let class = class_of(len);
        if let Some(pages) = self.spare[class].pop() {
            match is_charged {
                true => self.spare_bytes -= pages.len(),
                false => drop(self.lent.insert(address(&pages))),
            }
            return Ok(pages);
        }
        Ok(Rc::new(Pages::new(len.next_power_of_two())?))
    }

    /// Takes note that the user of a buffer has been charged for all of it.
    pub fn charged(&mut self, pages: &Pages) {
        if self.lent.remove(&address(pages)) {
            self.spare_bytes -= pages.len();
        }
    }

    /// Takes back a buffer from [`Self::take`]. If the buffer has other owners, the last of them
    /// frees it.
    pub fn give(&mut self, pages: Rc<Pages>) {
        self.charged(&pages);
        if Rc::strong_count(&pages) == 1 && self.spare_bytes + pages.len() <= self.spare_bytes_max {
            self.spare_bytes += pages.len();
            self.spare[class_of(pages.len())].push(pages);
        }
    }
}

fn address(pages: &Pages) -> usize {
    pages.span(0..0).start.addr()
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
        let first = pool.take(5000, true).expect("memory should suffice for one buffer");
        assert_eq!(first.len(), 8192);
        let start = first.span(0..0).start;
        pool.give(first);
        let again = pool.take(4097, true).expect("the pool should have a spare buffer");
        assert_eq!(again.span(0..0).start, start);
        let held = Rc::clone(&again);
        pool.give(again);
        assert_ne!(
            pool.take(8192, true).expect("memory should suffice for one buffer").span(0..0).start,
            held.span(0..0).start
        );
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_limit() {
        let mut pool = Pool::new(4096);
        let one = pool.take(1, true).expect("memory should suffice for two pages");
        let two = pool.take(1, true).expect("memory should suffice for two pages");
        pool.give(one);
        pool.give(two);
        assert_eq!(pool.spare_bytes, 4096);
    }

    /// A client that holds a reused buffer, but was charged for a part of it, leaves less room for
    /// spare buffers.
    #[test]
    fn a_reused_buffer_counts_as_spare_until_it_is_charged() {
        let mut pool = Pool::new(8192);
        let one = pool.take(8192, false).expect("memory for two pages");
        let two = pool.take(8192, false).expect("memory for two pages");
        pool.give(one);
        let reused = pool.take(8192, false).expect("memory for two pages");
        pool.give(two);
        assert!(pool.spare.iter().all(Vec::is_empty), "the reused buffer takes the room");
        pool.charged(&reused);
        let three = pool.take(8192, false).expect("memory for two pages");
        pool.give(three);
        assert_eq!(pool.spare_bytes, 8192);
        pool.give(reused);
        assert_eq!(pool.spare_bytes, 8192);
    }
}
