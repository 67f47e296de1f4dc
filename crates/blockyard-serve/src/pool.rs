//! Buffers for data on its way: sized by powers of two, kept for the next one.

use crate::map::Pages;
use std::io;
use std::rc::Rc;

/// Smallest buffer, as a power of two: a page.
const CLASS_MIN: u32 = 12;
/// Largest, as a power of two: 64 MiB, which holds the longest request and the blocks around it.
const CLASS_MAX: u32 = 26;
const CLASSES: usize = (CLASS_MAX - CLASS_MIN + 1) as usize;

/// The spare buffers of one lane.
#[derive(Debug)]
pub(crate) struct Pool {
    spare: [Vec<Rc<Pages>>; CLASSES],
    spare_bytes: usize,
    spare_bytes_max: usize,
    /// Bytes of buffers that were taken and not given back.
    taken_bytes: usize,
}

impl Pool {
    /// An empty pool that keeps up to `spare_bytes_max` of what it is given.
    pub(crate) fn new(spare_bytes_max: usize) -> Self {
        Self {
            spare: [const { Vec::new() }; CLASSES],
            spare_bytes: 0,
            spare_bytes_max,
            taken_bytes: 0,
        }
    }

    /// A buffer of `len` bytes or more; what it holds is left over from before.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(crate) fn take(&mut self, len: usize) -> io::Result<Rc<Pages>> {
        let class = class_of(len);
        if let Some(pages) = self.spare[class].pop() {
            self.spare_bytes -= pages.len();
            self.taken_bytes += pages.len();
            return Ok(pages);
        }
        let pages = Pages::new(len.next_power_of_two())?;
        self.taken_bytes += pages.len();
        Ok(Rc::new(pages))
    }

    /// Bytes of buffers that were taken and not given back.
    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken_bytes
    }

    /// Takes a buffer back, once for each that was taken. Where others still hold it, it is freed
    /// by the last of them.
    pub(crate) fn give(&mut self, pages: Rc<Pages>) {
        self.taken_bytes -= pages.len();
        if Rc::strong_count(&pages) == 1 && self.spare_bytes + pages.len() <= self.spare_bytes_max {
            self.spare_bytes += pages.len();
            self.spare[class_of(pages.len())].push(pages);
        }
    }
}

fn class_of(len: usize) -> usize {
    let power = len.next_power_of_two().trailing_zeros().max(CLASS_MIN);
    assert!(power <= CLASS_MAX, "requests are shorter");
    (power - CLASS_MIN) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_nobody_holds_it() {
        let mut pool = Pool::new(1 << 20);
        let first = pool.take(5000).expect("there is memory");
        assert_eq!((first.len(), pool.taken_bytes()), (8192, 8192));
        let start = first.span(0..0).start;
        pool.give(first);
        let again = pool.take(4097).expect("buffer of the pool");
        assert_eq!(again.span(0..0).start, start);
        let held = Rc::clone(&again);
        pool.give(again);
        assert_eq!(pool.taken_bytes(), 0);
        assert_ne!(
            pool.take(8192).expect("buffer of the pool").span(0..0).start,
            held.span(0..0).start
        );
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_limit() {
        let mut pool = Pool::new(4096);
        let (one, two) =
            (pool.take(1).expect("buffer of the pool"), pool.take(1).expect("buffer of the pool"));
        pool.give(one);
        pool.give(two);
        assert_eq!(pool.spare_bytes, 4096);
    }
}
