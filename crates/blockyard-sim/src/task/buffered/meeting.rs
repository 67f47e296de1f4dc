//! The part of direct I/O that the page cache does: writeback before an I/O, and syncs.

use super::disk_sync::DiskSync;
use super::sync::Sync;
use super::{Buffered, Call, Tried};
use crate::page_cache::{FileId, PageCache};
use crate::placement::Placement;
use blockyard::bio::Bio;
use blockyard::time::Instant;
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_fio::job::Job;
use core::ops::Range;

/// What a direct job knows of the pages of its files.
#[derive(Clone, Debug)]
pub(in super::super) struct Meeting {
    /// When the next I/O found dirty pages in its range, which are written back since.
    pub(in super::super) since: Option<Instant>,
    /// Whether the I/O that was submitted last waits in its call.
    pub(in super::super) waits: bool,
    /// Whether the write that was submitted last is durable when its bio ends.
    pub(in super::super) is_durable: bool,
    /// Whether the disk has FUA, or no cache that FUA would pass by.
    pub(in super::super) has_fua: bool,
}

impl Meeting {
    pub(super) const fn new(has_fua: bool) -> Self {
        Self { since: None, waits: false, is_durable: false, has_fua }
    }
}

/// Returns the pages of the bytes from `begin` to `end`.
pub(in super::super) fn pages_of((begin, end): (u64, u64)) -> Range<u64> {
    begin / PAGE_BYTES..end.div_ceil(PAGE_BYTES)
}

impl Buffered {
    /// Returns the syncs of a direct job, whose files also have pages in the cache, or an inode. A
    /// durable write passes the cache of the disk by if it `has_fua`, or no such cache.
    pub(in super::super) fn of_direct(
        job: &Job,
        placements: Vec<Placement>,
        has_fua: bool,
    ) -> Self {
        debug_assert!(job.direct, "only direct I/O passes the page cache by");
        Self { meeting: Some(Meeting::new(has_fua)), ..Self::new(job, placements) }
    }

    /// Returns file number `file` of the job, which is open.
    pub(in super::super) fn file(&self, file: u16) -> FileId {
        self.streams[usize::from(file)].file
    }

    /// Whether durable writes sync their data only.
    pub(in super::super) const fn is_dsync(&self) -> bool {
        self.is_dsync
    }

    /// Begins to write `pages` of `file` back.
    pub(in super::super) fn begin_range(
        &mut self,
        file: FileId,
        pages: Range<u64>,
        cache: &PageCache,
    ) {
        debug_assert!(!self.in_call(), "a direct I/O should begin between two calls");
        self.disk_sync = Some(DiskSync::of_range(file, pages, cache));
    }

    /// Begins the sync of `pages` behind the durable direct write of `slot`, which `flush` ends.
    pub(in super::super) fn begin_sync(
        &mut self,
        slot: u32,
        file: u16,
        pages: Range<u64>,
        flush: Bio,
        cache: &PageCache,
    ) {
        debug_assert!(!self.in_call(), "a write should end between two calls");
        let stream = usize::from(file);
        let dirt = cache.dirt(self.streams[stream].file);
        self.call = Some(Call {
            slot,
            writes: true,
            durable: None,
            sync: Some(Box::new(Sync::of(pages, dirt, flush).of_data(self.is_dsync))),
            stream,
            begin_bytes: 0,
            at_bytes: 0,
            end_bytes: 0,
            prio: flush.prio,
            tried: Tried::Nothing,
            failed: None,
        });
    }

    /// Whether the reads and writes of the task pass the cache by.
    pub(in super::super) const fn is_direct(&self) -> bool {
        self.meeting.is_some()
    }

    /// Whether a direct I/O of the bytes of `range` must wait until their pages are written back,
    /// which it begins at `now`.
    pub(in super::super) fn begins_writeback(
        &mut self,
        file: FileId,
        range: (u64, u64),
        cache: &PageCache,
        now: Instant,
    ) -> bool {
        let Some(meeting) = &mut self.meeting else { return false };
        let pages = pages_of(range);
        // One wait for each I/O, as in Linux: what is dirtied meanwhile is not waited for.
        if meeting.since.is_some() || !cache.dirt(file).is_unwritten_in(&pages) {
            return false;
        }
        meeting.since = Some(now);
        self.begin_range(file, pages, cache);
        true
    }
}
