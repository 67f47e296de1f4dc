//! Counts what this thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static COUNTS: Cell<bool> = const { Cell::new(true) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.get() {
            LIVE_BYTES.set(LIVE_BYTES.get().wrapping_add(layout.size()));
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
        // SAFETY: the caller keeps the contract of this call, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTS.get() {
            LIVE_BYTES.set(LIVE_BYTES.get().wrapping_sub(layout.size()));
        }
        // SAFETY: the caller keeps the contract of this call, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs `work` without counting: the card is not the host.
pub(crate) fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let counted = COUNTS.replace(false);
    let output = work();
    COUNTS.set(counted);
    output
}

/// The bytes that are allocated, and the allocations so far.
pub(crate) fn counts() -> (usize, usize) {
    (LIVE_BYTES.get(), ALLOCATIONS.get())
}
