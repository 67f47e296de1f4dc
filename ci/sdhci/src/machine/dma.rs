//! Memory that the processor shares with devices.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

const DMA_BYTES: usize = 2 << 20;

/// Aligned so that offsets say where the boundaries of SDMA are.
#[repr(align(0x80000))]
struct Area(UnsafeCell<[u8; DMA_BYTES]>);

// SAFETY: only the one `DmaMemory` accesses the area.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; DMA_BYTES]));
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Memory that devices read and write at any time. No reference into it exists: data is copied in
/// and out. Processor and devices see the same content, as on every PC. Positions are physical
/// addresses.
pub(crate) struct DmaMemory(());

impl DmaMemory {
    /// The size in bytes.
    pub(crate) const BYTES: u32 = DMA_BYTES as u32;

    /// Takes the memory.
    ///
    /// # Panics
    ///
    /// Panics if it is taken already.
    pub(crate) fn take() -> Self {
        assert!(!TAKEN.swap(true, Ordering::Relaxed), "the DMA memory is taken twice");
        Self(())
    }

    /// Returns the address of the first byte.
    #[expect(clippy::unused_self, reason = "the address is of use only to its owner")]
    pub(crate) fn start(&self) -> u32 {
        u32::try_from(AREA.0.get().expose_provenance()).expect("memory below 4 GiB")
    }

    /// Copies `from` to `address`.
    ///
    /// # Panics
    ///
    /// Panics if it does not fit.
    pub(crate) fn write(&mut self, address: u32, from: &[u8]) {
        let to = self.place(address, from.len());
        // SAFETY: `place` has checked the range, and `from` is not in it, as no reference is.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// Copies the content at `address` to `to`.
    ///
    /// # Panics
    ///
    /// Panics if the range is not within the memory.
    pub(crate) fn read(&self, address: u32, to: &mut [u8]) {
        let from = self.place(address, to.len());
        // SAFETY: `place` has checked the range, and `to` is not in it, as no reference is.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    fn place(&self, address: u32, bytes: usize) -> *mut u8 {
        let at = address.checked_sub(self.start()).expect("address in the DMA memory") as usize;
        assert!(at + bytes <= DMA_BYTES, "{bytes} bytes at {at} go beyond the DMA memory");
        AREA.0.get().cast::<u8>().wrapping_add(at)
    }
}
