//! The coalescing of interrupts: the table `[nvme.coalescing]`.

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, Time};
use blockyard::time::Duration;

/// The coalescing of interrupts, for each vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescingProfile {
    /// Completions that are announced together. 1: nothing is held back.
    pub entries: u16,
    /// How long a completion waits for others. Zero: nothing is held back.
    pub time: Duration,
}

impl CoalescingProfile {
    /// Whether interrupts are held back at all. As in NVMe, it takes both figures.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.entries > 1 && self.time > Duration::ZERO
    }
}

table_of!(COALESCING, /// Reads the table `[nvme.coalescing]` of `nvme`.
pub(crate) fn coalescing("nvme.coalescing") -> CoalescingProfile {
    entries: "entries" take_or(Count(1..=256), 1),
    time: "time" take_or(Time, Duration::ZERO),
});
