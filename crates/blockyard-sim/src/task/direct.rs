//! Direct I/O to files that also have pages in the cache, or that a file system has.
//!
//! ```text
//! dirty pages in the range? ─► written back, waited for ─► a write drops the pages ─► bio
//!                                               ─► the bio of a write ends ─► drops them once more
//! ```
//!
//! Linux 6.12 and 7.3: `filemap_write_and_wait_range` before a read or write, and
//! `invalidate_inode_pages2_range` around a write. A page that another thread dirties again after
//! the wait stays; Linux then writes through the cache instead. `io_uring` leaves a wait to a
//! worker, and here the call of the job waits.
//!
//! A write that makes a file longer ends within its call, whichever engine does it: ext4 waits
//! for it, and XFS lets the next one wait. A durable write (`O_DSYNC`) that changes nothing but
//! data has FUA. Any other one syncs its file when it has ended.

use super::Task;
use super::buffered::pages_of;
use super::calls::InCall;
use super::durable::Tail;
use crate::page_cache::{FileId, PageCache};
use blockyard::bio::{Bio, Flags, Op};
use blockyard::time::Instant;
use blockyard_fio::job;

impl Task {
    /// Whether the task does direct I/O to files whose pages or changes matter to it.
    #[inline]
    #[must_use]
    pub(crate) fn meets_cache(&self) -> bool {
        self.buffered.as_ref().is_some_and(|buffered| buffered.is_direct())
    }

    /// Prepares the next I/O of a task that [`Self::meets_cache`], whose bio is `bio`, at `now`.
    /// Returns the bio; `None` if a call through the cache or the end of an I/O comes first.
    pub(crate) fn meet(&mut self, bio: Bio, cache: &mut PageCache, now: Instant) -> Option<Bio> {
        let is_waiting = matches!(self.calls.in_call, InCall::Waits(_));
        if is_waiting || bio.op == Op::Flush || self.buffered().begin_to_drop(cache) {
            return None;
        }
        let is_async = self.is_async();
        let io = *self.feed.next().expect("a bio should come from an I/O");
        let is_retry = self.was_refused();
        let buffered = self.buffered();
        buffered.open(cache);
        let is_dsync = buffered.is_dsync();
        let file = buffered.file(io.file);
        let range = (io.offset_bytes, io.offset_bytes + u64::from(io.len_bytes));
        if bio.op == Op::Discard {
            return Some(bio);
        }
        if !is_retry && buffered.begins_writeback(file, range, cache, now) {
            return None;
        }
        let Some(meeting) = &mut buffered.meeting else { return Some(bio) };
        // The first try of a write that waits for a tag has made the file longer already.
        if !is_retry {
            meeting.waits = is_async && bio.op == Op::Write && cache.grows(file, range.1);
        }
        if bio.op != Op::Write {
            return Some(bio);
        }
        // On a raw disk each durable write has FUA, and a flush may follow (see `durable`).
        let is_asked = bio.flags.contains(Flags::FUA) && cache.has_file_system();
        let is_overwrite = is_asked && cache.is_overwrite(file, pages_of(range));
        meeting.is_durable = is_overwrite && meeting.has_fua && is_dsync;
        let syncs_behind = is_asked && !meeting.is_durable && self.tail != Tail::None;
        cache.begin_direct(file, range, now);
        let flags = if syncs_behind { bio.flags.without(Flags::FUA) } else { bio.flags };
        Some(Bio { flags, ..bio })
    }

    /// Ends the wait for writeback before the I/O that is submitted now. Returns when it began.
    pub(super) fn end_meeting(&mut self) -> Option<Instant> {
        self.buffered.as_mut()?.meeting.as_mut()?.since.take()
    }

    /// Whether the I/O that is submitted now ends within its call.
    pub(super) fn take_wait_in_call(&mut self) -> bool {
        let meeting = self.buffered.as_mut().and_then(|buffered| buffered.meeting.as_mut());
        meeting.is_some_and(|meeting| core::mem::take(&mut meeting.waits))
    }

    /// Returns the file and the bytes of the direct write of `slot`, if it is one.
    #[must_use]
    pub(crate) fn direct_write(&self, slot: u32) -> Option<(FileId, (u64, u64))> {
        let buffered = self.buffered.as_ref().filter(|buffered| buffered.is_direct())?;
        let io = self.slots.get(slot);
        let range = (io.offset_bytes, io.offset_bytes + u64::from(io.len_bytes));
        (io.op == Some(job::Op::Write)).then(|| (buffered.file(io.file), range))
    }

    /// Whether the write that has ended is durable without a sync.
    pub(super) fn is_durable(&self) -> bool {
        let meeting = self.buffered.as_ref().and_then(|buffered| buffered.meeting.as_ref());
        meeting.is_some_and(|meeting| meeting.is_durable)
    }

    /// Begins the sync that ends the call of a durable write, if it is due.
    pub(crate) fn begin_due_sync(&mut self, cache: &PageCache) -> bool {
        let Tail::Due(slot, since) = self.tail else { return false };
        if !self.meets_cache() {
            return false;
        }
        let io = *self.slots.get(slot);
        self.tail = Tail::Flushing(since);
        let range = (io.offset_bytes, io.offset_bytes + u64::from(io.len_bytes));
        let flush = Bio::new(Op::Flush, 0, 0, 0).with_flags(Flags::SYNC);
        self.buffered().begin_sync(slot, io.file, pages_of(range), flush, cache);
        true
    }
}
