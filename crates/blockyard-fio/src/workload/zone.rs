//! Zones with gaps between them (`zonemode=strided`).

use crate::job::{Job, Strides};

/// The progress of a job in its zones. As in fio, all its files count together.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    /// Bytes of I/O in a zone, before the next one begins.
    zone_bytes: u64,
    /// Bytes that a zone spans. With fewer than `zone_bytes`, I/O goes around in the zone.
    range_bytes: u64,
    /// Bytes between two zones.
    gap_bytes: u64,
    /// Bytes of I/O in the current zone so far.
    done_bytes: u64,
}

impl Zone {
    /// Returns the zones of `job`, if it has any. fio forgets about them if the job asks for several open files.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let Strides { on, zone_bytes, range_bytes, gap_bytes } = job.strides;
        let range_bytes = if range_bytes == 0 { zone_bytes } else { range_bytes };
        (on && job.open_files <= 1).then_some(Self {
            zone_bytes,
            range_bytes,
            gap_bytes,
            done_bytes: 0,
        })
    }

    pub(super) const fn range_bytes(&self) -> u64 {
        self.range_bytes
    }

    pub(super) const fn start_pass(&mut self) {
        self.done_bytes = 0;
    }

    /// Leaves the zone if it has had its I/O. Returns how far away the next one begins.
    pub(super) const fn leave(&mut self) -> Option<u64> {
        if self.done_bytes < self.zone_bytes {
            return None;
        }
        self.done_bytes = 0;
        Some(self.range_bytes.saturating_add(self.gap_bytes))
    }

    /// Whether I/O is at the start of the zone, for the first time or again.
    pub(super) const fn begins_range(&self) -> bool {
        self.done_bytes.is_multiple_of(self.range_bytes)
    }

    pub(super) const fn count(&mut self, len_bytes: u32) {
        self.done_bytes += len_bytes as u64;
    }
}
