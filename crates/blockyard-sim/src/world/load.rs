//! The load of a world: the I/Os and requests in flight, and the dirty pages.

use super::World;
use crate::page_cache::DirtyLimits;
use blockyard_devices::profile::PAGE_BYTES;

/// The load of a world at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// I/Os that jobs have submitted and not reaped.
    pub depth: u64,
    /// Requests in the driver.
    pub in_flight: u64,
    /// Dirty pages and pages under writeback, in bytes; `None` if no job writes through the page
    /// cache.
    pub dirty_bytes: Option<u64>,
}

/// The limits on dirty pages, and the pages that are left at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtReport {
    /// The memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// The dirty pages above which flushers write, in bytes.
    pub background_limit_bytes: u64,
    /// The dirty pages that writers do not exceed, in bytes.
    pub hard_limit_bytes: u64,
    /// The pages that are dirty or under writeback, in bytes.
    pub left_bytes: u64,
}

impl World<'_> {
    /// Returns the load.
    #[must_use]
    pub fn load(&self) -> Load {
        let depth = self.tasks.iter().map(|task| u64::from(task.outstanding())).sum();
        let in_flight = self.queues.iter().map(|queue| u64::from(queue.in_flight())).sum();
        let dirty_bytes = self.flushing.as_ref().map(|_| self.cache.levels().all() * PAGE_BYTES);
        Load { depth, in_flight, dirty_bytes }
    }

    /// Returns the limits on dirty pages and the pages that are left, if jobs write through the
    /// page cache.
    #[must_use]
    pub(crate) fn dirt(&self) -> Option<DirtReport> {
        let DirtyLimits { background, hard, .. } = self.flushing.as_ref()?.limits;
        Some(DirtReport {
            memory_bytes: self.machine.memory_bytes,
            background_limit_bytes: background * PAGE_BYTES,
            hard_limit_bytes: hard * PAGE_BYTES,
            left_bytes: self.cache.levels().all() * PAGE_BYTES,
        })
    }
}
