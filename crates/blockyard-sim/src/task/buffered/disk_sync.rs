//! The sync of whole disks: when the last task closes it, and before its pages are dropped. Also
//! that of a part of a file, before direct I/O there, and the writeback of files whose pages are
//! dropped.
//!
//! Linux writes back all dirty pages of a block device and waits (`sync_blockdev`), without a
//! flush. It does so when nobody has the device open any more, and for the ioctl that drops its
//! pages (`BLKFLSBUF`), which is fio's `invalidate`.

use super::sync::{Sync, SyncStep};
use crate::page_cache::{FileId, PageCache, Run, Transfer};
use crate::placement::Placement;
use blockyard::unit::QueueId;
use blockyard_fio::job::RangeSync;
use core::ops::Range;

/// A sync of all files of some disks under way.
#[derive(Clone, Debug)]
pub(super) struct DiskSync {
    files: Vec<(FileId, Sync)>,
    /// Whether somebody waits for its bios.
    pub(super) is_awaited: bool,
}

/// The next step of a sync of disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiskStep {
    /// Write these pages back.
    Write(Run),
    /// Wait until the writeback of this page has ended.
    Await(FileId, u64),
    /// Nothing is left to do.
    Done,
}

impl DiskSync {
    /// Returns a sync of `disks`, unless nothing on them is dirty or under writeback.
    /// Files of a file system stay dirty.
    pub(super) fn of(disks: &[QueueId], cache: &PageCache) -> Option<Self> {
        if cache.has_file_system() {
            return None;
        }
        let files = disks.iter().flat_map(|disk| cache.unwritten_files(*disk));
        let files: Vec<_> = files.map(|file| (file, Sync::of_closing(cache.dirt(file)))).collect();
        (!files.is_empty()).then_some(Self { files, is_awaited: true })
    }

    /// Returns the writeback that begins before the pages of the files at `placements` are dropped,
    /// for which nobody waits, unless nothing of them is dirty. As `posix_fadvise` with
    /// `POSIX_FADV_DONTNEED` in Linux, which is fio's `invalidate` of a file.
    pub(super) fn of_files(placements: &[Placement], cache: &PageCache) -> Option<Self> {
        let known = placements.iter().filter_map(|placement| cache.find(*placement));
        let dirty = known.filter(|file| cache.dirt(*file).is_dirty());
        let writes = RangeSync { write: true, ..RangeSync::default() };
        let files: Vec<_> = dirty
            .map(|file| (file, Sync::of_range(0..u64::MAX, cache.dirt(file), writes)))
            .collect();
        (!files.is_empty()).then_some(Self { files, is_awaited: false })
    }

    /// Returns a sync of `pages` of `file`, as a direct I/O does before it begins.
    pub(super) fn of_range(file: FileId, pages: Range<u64>, cache: &PageCache) -> Self {
        Self { files: vec![(file, Sync::of_pages(pages, cache.dirt(file)))], is_awaited: true }
    }

    /// Returns the next step: of writes, one of at most `room` pages. Nobody waits before all pages
    /// that can be written are.
    pub(super) fn next(&self, cache: &PageCache, room: u64) -> DiskStep {
        let mut awaited = None;
        for (file, sync) in &self.files {
            match sync.next(cache.dirt(*file), 0) {
                SyncStep::Write(page) => {
                    // A bio of a raw disk has a page, and one of a file as many as it may.
                    let end = sync.end_of_tagged(page).min(cache.end_of_bio(*file, page));
                    let pages = page..end.min(page + room.max(1));
                    return DiskStep::Write(Run {
                        file: *file,
                        pages,
                        transfer: Transfer::WriteBack,
                    });
                }
                SyncStep::Await(page) => awaited = awaited.or(Some((*file, page))),
                SyncStep::Flush | SyncStep::Done | SyncStep::Fail(_) => {}
            }
        }
        awaited.map_or(DiskStep::Done, |(file, page)| DiskStep::Await(file, page))
    }

    /// Notes that the bio of `run` was submitted.
    pub(super) fn wrote(&mut self, run: &Run) {
        let written = self.files.iter_mut().find(|(file, _)| *file == run.file);
        let (_, sync) = written.expect("a sync of disks should write their files");
        sync.wrote(run.pages.end);
    }
}
