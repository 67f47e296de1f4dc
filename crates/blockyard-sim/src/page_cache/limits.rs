//! The limits on dirty pages: how many a machine bears before it writes them back, and before it
//! pauses those that write.

use blockyard_devices::profile::{MachineProfile, PAGE_BYTES};

/// The limits of a machine, in pages. Linux 6.12 (`domain_dirty_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyLimits {
    /// With more dirty pages than this, flushers begin to write.
    pub(crate) background: u64,
    /// The number of dirty pages and pages under writeback that writers do not exceed.
    pub(crate) hard: u64,
    /// Whether a disk that has written back little has an eighth of what is left of the background
    /// limit, as since Linux 6.13, or only its part by writeback.
    pub(crate) raises_part: bool,
}

/// `dirty_background_ratio` and `dirty_ratio`, in percent of the memory.
const RATIOS: [u64; 2] = [10, 20];

impl DirtyLimits {
    /// Returns the limits of `machine`: its own, or shares of its memory. All of its memory counts
    /// as free or as page cache. `raises_part` is that of the kernel.
    ///
    /// A machine with 8 GiB begins to write at 819 MiB, and pauses writers below 1638 MiB.
    pub(crate) fn of(machine: &MachineProfile, raises_part: bool) -> Self {
        let pages = machine.memory_bytes / PAGE_BYTES;
        let [background, hard] = RATIOS.map(|percent| pages * percent / 100);
        let hard = match machine.dirty_bytes {
            0 => hard,
            bytes => bytes.div_ceil(PAGE_BYTES),
        };
        let background = match machine.dirty_background_bytes {
            0 => background,
            bytes => bytes.div_ceil(PAGE_BYTES),
        };
        let background = if background >= hard { hard / 2 } else { background };
        debug_assert!(background < hard, "limits of {background} and {hard} pages");
        Self { background, hard, raises_part }
    }

    /// Returns the number of pages up to which no writer pauses: midway between the limits.
    pub(crate) const fn free_run(self) -> u64 {
        u64::midpoint(self.background, self.hard)
    }

    /// Returns the number of pages around which writers are held: midway between that number and
    /// the hard limit.
    pub(crate) const fn setpoint(self) -> u64 {
        u64::midpoint(self.free_run(), self.hard)
    }
}
