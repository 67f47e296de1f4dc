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
    /// The files of which nothing is left to do, from the first one on.
    done: usize,
    /// The file that was written last, which is looked at first: a page costs the same on a disk
    /// with many files, as long as there are pages to write.
    at: usize,
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
    fn new(files: Vec<(FileId, Sync)>, is_awaited: bool) -> Self {
        debug_assert!(!files.is_empty(), "a sync of no files");
        Self { files, done: 0, at: 0, is_awaited }
    }

    /// Returns a sync of `disks`, unless nothing on them is dirty or under writeback.
    /// Files of a file system stay dirty.
    pub(super) fn of(disks: &[QueueId], cache: &PageCache) -> Option<Self> {
        if cache.has_file_system() {
            return None;
        }
        let files = disks.iter().flat_map(|disk| cache.unwritten_files(*disk));
        let files: Vec<_> = files.map(|file| (file, Sync::of_closing(cache.dirt(file)))).collect();
        (!files.is_empty()).then(|| Self::new(files, true))
    }

    /// Returns the writeback that begins before the pages of the files at `placements` are dropped,
    /// for which nobody waits, unless nothing of them is dirty. As `posix_fadvise` with
    /// `POSIX_FADV_DONTNEED` in Linux, which is fio's `invalidate` of a file.
    pub(super) fn of_files(
        placements: impl Iterator<Item = Placement>,
        cache: &PageCache,
    ) -> Option<Self> {
        let known = placements.filter_map(|placement| cache.find(placement));
        let dirty = known.filter(|file| cache.dirt(*file).is_dirty());
        let writes = RangeSync { write: true, ..RangeSync::default() };
        let files: Vec<_> = dirty
            .map(|file| (file, Sync::of_range(0..u64::MAX, cache.dirt(file), writes)))
            .collect();
        (!files.is_empty()).then(|| Self::new(files, false))
    }

    /// Returns a sync of `pages` of `file`, as a direct I/O does before it begins.
    pub(super) fn of_range(file: FileId, pages: Range<u64>, cache: &PageCache) -> Self {
        Self::new(vec![(file, Sync::of_pages(pages, cache.dirt(file)))], true)
    }

    /// Returns the next step: of writes, one of at most `room` pages. Nobody waits before all pages
    /// that can be written are.
    pub(super) fn next(&self, cache: &PageCache, room: u64) -> DiskStep {
        let mut awaited = None;
        let from_last = &self.files[self.at..];
        let before = &self.files[self.done.min(self.at)..self.at];
        for (file, sync) in from_last.iter().chain(before) {
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
        // Mostly the file of the last bio, or the one behind it.
        let mut from_last = (self.at..self.files.len()).chain(0..self.at);
        let at = from_last.find(|at| self.files[*at].0 == run.file);
        self.at = at.expect("a sync of disks should write their files");
        self.files[self.at].1.wrote(run.pages.end);
    }

    /// Notes that a bio has ended: the first files may be done.
    pub(super) fn bio_ended(&mut self, cache: &PageCache) {
        debug_assert!(self.done <= self.files.len(), "{} are done", self.done);
        let left = &self.files[self.done..];
        let first = left.iter().position(|(file, sync)| !is_done(sync, cache, *file));
        self.done = first.map_or(self.files.len(), |first| self.done + first);
        // All writes have been submitted: the first file that is waited for comes first.
        if self.at < self.done {
            self.at = self.done.min(self.files.len() - 1);
        }
    }
}

fn is_done(sync: &Sync, cache: &PageCache, file: FileId) -> bool {
    !matches!(sync.next(cache.dirt(file), 0), SyncStep::Write(_) | SyncStep::Await(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::status::Status;
    use blockyard::time::Instant;

    const DISK: QueueId = QueueId(0);

    /// Submits the next bio, which must be of this file and page. Returns its number.
    fn write(sync: &mut DiskSync, cache: &mut PageCache, file: FileId, page: u64) -> u32 {
        let DiskStep::Write(run) = sync.next(cache, 1) else { panic!("{sync:?}") };
        assert_eq!((run.file, run.pages.start), (file, page));
        sync.wrote(&run);
        submit(cache, run)
    }

    fn submit(cache: &mut PageCache, run: Run) -> u32 {
        let number = cache.next_number();
        cache.submitted(run);
        number
    }

    fn end(sync: &mut DiskSync, cache: &mut PageCache, number: u32) {
        cache.ended(number, (Status::Ok, Instant::ZERO), |_| {});
        sync.bio_ended(cache);
    }

    /// The first of two files of 2 MiB has a page that is dirty and under writeback. So the second
    /// one is written, and goes on when the page of the first could be written: each step begins
    /// with the file of the last one. The first file comes again before anybody waits, and nothing
    /// is left when all three bios have ended.
    #[test]
    fn a_sync_goes_on_with_the_file_that_it_wrote_last() {
        let mut cache = PageCache::default();
        let files = [0, 2 << 20].map(|base_bytes| {
            cache.open(Placement { queue: DISK, base_bytes, len_bytes: 2 << 20 })
        });
        cache.written(files[0], 7, false, Instant::ZERO);
        let run = Run { file: files[0], pages: 7..8, transfer: Transfer::WriteBack };
        let before = submit(&mut cache, run);
        for (file, page) in [(0, 7), (1, 0), (1, 1)] {
            cache.written(files[file], page, false, Instant::ZERO);
        }
        let mut sync = DiskSync::of(&[DISK], &cache).unwrap();
        let first = write(&mut sync, &mut cache, files[1], 0);
        end(&mut sync, &mut cache, before);
        let second = write(&mut sync, &mut cache, files[1], 1);
        let third = write(&mut sync, &mut cache, files[0], 7);
        end(&mut sync, &mut cache, third);
        assert_eq!((sync.done, sync.next(&cache, 1)), (1, DiskStep::Await(files[1], 0)));
        for number in [first, second] {
            end(&mut sync, &mut cache, number);
        }
        assert_eq!((sync.done, sync.next(&cache, 1)), (2, DiskStep::Done));
    }
}
