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
//! for it, and XFS lets the next one wait. A read of blocks without data does no I/O: its buffer
//! gets zeros (`iomap_dio_hole_iter`). One that finds data in a part of its range reads from the
//! first page with data to the last one. A durable write (`O_DSYNC`) that changes nothing but
//! data has FUA. Any other one syncs its file when it has ended.

use super::Task;
use super::buffered::pages_of;
use super::calls::InCall;
use super::durable::Tail;
use crate::page_cache::{FileId, PageCache};
use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_fio::job;
use core::ops::Range;

/// What a direct I/O does when it has met the pages of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Met {
    /// A call through the cache, or the end of an I/O, comes first.
    Waits,
    /// It submits this bio.
    Submits(Bio),
    /// It reads blocks without data: its buffer gets zeros, and nothing is submitted.
    Zeros,
}

impl Task {
    /// Whether the task does direct I/O to files whose pages or changes matter to it.
    #[inline]
    #[must_use]
    pub(crate) fn meets_cache(&self) -> bool {
        self.buffered.as_ref().is_some_and(|buffered| buffered.is_direct())
    }

    /// Prepares the next I/O of a task that [`Self::meets_cache`], whose bio is `bio`, at `now`.
    pub(crate) fn meet(&mut self, bio: Bio, cache: &mut PageCache, now: Instant) -> Met {
        let is_waiting = matches!(self.calls.in_call, InCall::Waits(_));
        if is_waiting || bio.op == Op::Flush {
            return Met::Waits;
        }
        self.close_after_pass(cache);
        if self.buffered().begin_to_drop(cache) {
            return Met::Waits;
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
            return Met::Submits(bio);
        }
        if !is_retry && buffered.begins_writeback(file, range, cache, now) {
            return Met::Waits;
        }
        let Some(meeting) = &mut buffered.meeting else { return Met::Submits(bio) };
        // The first try of a write that waits for a tag has made the file longer already.
        if !is_retry {
            meeting.waits = is_async && bio.op == Op::Write && cache.grows(file, range.1);
        }
        if bio.op != Op::Write {
            return without_holes(bio, range, cache.data_in(file, pages_of(range)));
        }
        // On a raw disk each durable write has FUA, and a flush may follow (see `durable`).
        let is_asked = bio.flags.contains(Flags::FUA) && cache.has_file_system();
        let is_overwrite = is_asked && cache.is_overwrite(file, pages_of(range));
        meeting.is_durable = is_overwrite && meeting.has_fua && is_dsync;
        let syncs_behind = is_asked && !meeting.is_durable && self.tail != Tail::None;
        cache.begin_direct(file, range, now);
        let flags = if syncs_behind { bio.flags.without(Flags::FUA) } else { bio.flags };
        Met::Submits(Bio { flags, ..bio })
    }

    /// Does the next I/O, a read of blocks without data, at `now`.
    pub(crate) fn read_zeros(&mut self, now: Instant) {
        let slot = self.slots.next_free().expect("an I/O should have a slot");
        self.submitted(now);
        self.completed(slot, Status::Ok, now);
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

/// Returns what a read of the bytes from `begin` to `end` by `bio` does, of which the pages in
/// `data` have data.
fn without_holes(bio: Bio, (begin, end): (u64, u64), data: Range<u64>) -> Met {
    if data.is_empty() {
        return Met::Zeros;
    }
    // Of the bytes 0 to 16384, pages 1 to 3 have data: the bio reads those from 4096 to 12288.
    let from = begin.max(data.start * PAGE_BYTES);
    let to = end.min(data.end * PAGE_BYTES);
    if (from, to) == (begin, end) {
        return Met::Submits(bio);
    }
    debug_assert!(from < to, "no byte from {from} to {to} has data");
    let skipped = (from - begin) / u64::from(SECTOR_BYTES);
    let sectors = (to - from) / u64::from(SECTOR_BYTES);
    let ends_page = (to - from).is_multiple_of(PAGE_BYTES);
    Met::Submits(Bio {
        sector: bio.sector + skipped,
        sectors: u32::try_from(sectors).unwrap_or(bio.sectors),
        segments: u16::try_from((to - from).div_ceil(PAGE_BYTES)).unwrap_or(bio.segments),
        flags: if ends_page { bio.flags.without(Flags::GAP_TAIL) } else { bio.flags },
        ..bio
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read of sectors 100 to 131, which are pages 0 to 3 of a file. Pages 1 and 2 have data: of
    /// eight sectors each, those from 108 on.
    #[test]
    fn a_read_leaves_out_blocks_without_data() {
        let bio = Bio { segments: 4, ..Bio::read(100, 32, 0) };
        let met = [0..4, 1..3, 0..1, 0..0].map(|data| without_holes(bio, (0, 16_384), data));
        let read = met.map(|met| match met {
            Met::Submits(bio) => Some((bio.sector, bio.sectors, bio.segments)),
            Met::Waits | Met::Zeros => None,
        });
        assert_eq!(read, [Some((100, 32, 4)), Some((108, 16, 2)), Some((100, 8, 1)), None]);
        let within = Bio { segments: 1, ..Bio::read(101, 2, 0) };
        let Met::Submits(whole) = without_holes(within, (512, 1536), 0..1) else { panic!("data") };
        assert_eq!((whole.sector, whole.sectors), (101, 2));
    }
}
