//! The heap: memory that is allocated once and never freed. The program ends before it is used up.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

const HEAP_BYTES: usize = 32 << 20;

#[repr(align(64))]
struct Heap {
    memory: UnsafeCell<[u8; HEAP_BYTES]>,
    used_bytes: AtomicUsize,
}

// SAFETY: `used_bytes` only grows, so no two callers get the same byte of `memory`.
unsafe impl Sync for Heap {}

// SAFETY: each result lies within `memory`, has the alignment that is asked for, and is returned
// once. There is one processor, and interrupt handlers do not allocate.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().cast::<u8>();
        let used = self.used_bytes.load(Ordering::Relaxed);
        let start = used + ((base as usize + used).wrapping_neg() & (layout.align() - 1));
        match start.checked_add(layout.size()).filter(|end| *end <= HEAP_BYTES) {
            Some(end) => {
                self.used_bytes.store(end, Ordering::Relaxed);
                // SAFETY: `start` is within the heap.
                unsafe { base.add(start) }
            }
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: Heap =
    Heap { memory: UnsafeCell::new([0; HEAP_BYTES]), used_bytes: AtomicUsize::new(0) };
