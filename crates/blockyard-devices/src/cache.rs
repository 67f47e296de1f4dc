//! The time cost of a device's volatile write cache: the cost of a flush.

use blockyard::bio::{Flags, Op};
use blockyard::driver::Issue;
use blockyard::request::Request;
use blockyard::time::Duration;
use blockyard::unit::{QueueId, SECTOR_BYTES};

/// The time of a flush of a volatile write cache, beyond that of the command itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheProfile {
    /// Time of any flush.
    pub flush: Duration,
    /// Time for each MiB written since the last flush.
    pub(crate) flush_per_mib: Duration,
}

const MIB_BYTES: u64 = 1 << 20;

/// The bytes written to each disk since its last flush. They determine the cost of the next flush.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    profile: CacheProfile,
    /// The bytes of each disk.
    dirty_bytes: Vec<u64>,
}

impl Cache {
    pub(super) fn new(profile: CacheProfile, disks: u16) -> Self {
        assert!(disks > 0, "a cache needs at least one disk");
        Self { profile, dirty_bytes: vec![0; usize::from(disks)] }
    }

    /// Begins `request`. A flush writes out all earlier writes except those that bypassed the
    /// cache.
    fn begin(&mut self, queue: QueueId, request: &Request) -> Duration {
        let dirty = &mut self.dirty_bytes[queue.index()];
        match request.op {
            Op::Write if !request.flags.contains(Flags::FUA) => {
                *dirty += u64::from(request.sectors) * u64::from(SECTOR_BYTES);
                Duration::ZERO
            }
            Op::Flush => {
                let bytes = u128::from(core::mem::take(dirty));
                let per_mib_ns = u128::from(self.profile.flush_per_mib.as_ns());
                let ns = (bytes * per_mib_ns).div_ceil(u128::from(MIB_BYTES));
                let ns = u64::try_from(ns).unwrap_or(u64::MAX);
                Duration::from_ns(self.profile.flush.as_ns().saturating_add(ns))
            }
            _ => Duration::ZERO,
        }
    }
}

/// Returns the time that `cache` adds to a request that begins.
#[inline]
pub(super) fn longer(cache: &mut Option<Cache>, issue: &Issue<'_>) -> Duration {
    match cache {
        None => Duration::ZERO,
        Some(cache) => cache.begin(issue.queue, issue.request()),
    }
}
