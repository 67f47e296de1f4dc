//! The volatile write cache of a device, as far as it takes time: the cost of a flush.

use crate::profile::CacheProfile;
use blockyard::bio::{Flags, Op};
use blockyard::driver::Issue;
use blockyard::request::Request;
use blockyard::time::Duration;
use blockyard::unit::{QueueId, SECTOR_BYTES};

const MIB_BYTES: u64 = 1 << 20;

/// The bytes written to each disk since its last flush, which set the cost of the next.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    profile: CacheProfile,
    /// By disk.
    dirty_bytes: Vec<u64>,
}

impl Cache {
    pub(super) fn new(profile: CacheProfile, disks: u16) -> Self {
        assert!(disks > 0, "a cache of no disk");
        Self { profile, dirty_bytes: vec![0; usize::from(disks)] }
    }

    /// Begins `request`: a flush writes out all earlier writes but those that went past the cache.
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

/// The time that `cache` adds to a request that begins.
#[inline]
pub(super) fn longer(cache: &mut Option<Cache>, issue: &Issue<'_>) -> Duration {
    match cache {
        None => Duration::ZERO,
        Some(cache) => cache.begin(issue.queue, issue.request()),
    }
}
