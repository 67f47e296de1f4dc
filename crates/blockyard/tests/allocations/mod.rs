//! A global allocator that counts the allocations of each thread, and the bytes that they hold.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

std::thread_local! {
    /// The allocations of this thread. The test harness has other threads.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes allocated and not freed by this thread.
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get().wrapping_add(layout.size()));
        // SAFETY: the caller upholds the same contract that this call requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of this thread so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Returns the bytes that `make` leaves allocated, with what it made.
pub(crate) fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.get();
    let made = make();
    (made, BYTES.get().wrapping_sub(before))
}

#[test]
fn the_allocator_counts() {
    let before = allocations();
    drop(Box::new(7));
    assert_eq!(allocations(), before + 1);
    assert_eq!(bytes_of(|| [7_u8; 100].to_vec()).1, 100);
    assert_eq!(bytes_of(|| drop(Box::new(7))).1, 0);
}
