//! The page cache for reads: the pages in the cache, the pages being read, and the waiting tasks.
//!
//! ```text
//! a call ─► page there? ─► copied to the caller, page by page
//!                 │ no, or marked
//!                 ▼
//!            read_ahead ─► a window ─► its absent pages: a bio for each run of them
//! ```
//!
//! # Rules
//!
//! - **[page-read-once]** A page is present from the moment it is claimed, and exactly one bio
//!   reads it.
//! - **[pages-ready-together]** All pages of a bio become ready when the bio ends. If the bio
//!   fails, they are absent again. A task that waits for one of these pages then reads that page
//!   alone, and fails if the second read fails.
//!
//! All readers of a file share its pages and wait for each other's reads. Each reader has its own
//! stream for read-ahead. Memory is never short. A page leaves the cache only when a starting job
//! drops the pages of its files (fio's `invalidate`). A task that ends does not wait for pages that
//! are still being read ahead; if the task is the last one, the run ends without them.
//!
//! Writing, mapping, and the effects of other programs on a real cache are not modelled.

mod pages;
mod read_ahead;

pub use pages::{FilePages, PageState};
pub use read_ahead::{Advice, Pages, ReadAhead, Trigger, Window};

use crate::placement::Placement;
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_trace::observe::TaskId;
use core::ops::Range;

/// A file whose pages may be in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(usize);

/// The pages of one bio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The file.
    pub file: FileId,
    /// Its pages.
    pub pages: Range<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    file: FileId,
    page: u64,
    task: TaskId,
}

#[derive(Clone, Debug)]
struct File {
    placement: Placement,
    pages: FilePages,
}

/// The page cache of a machine.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    files: Vec<File>,
    /// Runs with a bio in flight, by the number in the bio's cookie; `None` is a free number.
    runs: Vec<Option<Run>>,
    free: Vec<u32>,
    waiters: Vec<Waiter>,
}

impl PageCache {
    /// Returns the file at `placement`.
    pub fn open(&mut self, placement: Placement) -> FileId {
        let known = self.files.iter().position(|file| file.placement == placement);
        FileId(known.unwrap_or_else(|| {
            self.files.push(File { placement, pages: FilePages::default() });
            self.files.len() - 1
        }))
    }

    /// Returns the placement of `file`.
    #[must_use]
    pub fn placement(&self, file: FileId) -> Placement {
        self.files[file.0].placement
    }

    /// Returns the pages of `file`.
    #[must_use]
    pub fn pages(&self, file: FileId) -> &FilePages {
        &self.files[file.0].pages
    }

    /// Clears the mark of a page. Returns whether the page had one.
    pub(crate) fn take_mark(&mut self, file: FileId, page: u64) -> bool {
        self.files[file.0].pages.take_mark(page)
    }

    /// Claims the absent pages of `window` up to the end of the file ([page-read-once]). Passes to
    /// `each` the runs that need a bio.
    pub fn claim(&mut self, file: FileId, window: Window, mut each: impl FnMut(Run)) {
        let File { placement, pages } = &mut self.files[file.0];
        let end = window.pages.end.min(placement.len_bytes.div_ceil(PAGE_BYTES));
        pages.claim(window.pages.start..end, window.marker, |pages| each(Run { file, pages }));
    }

    /// Returns the number of the run that is submitted next, for [`Self::ended`].
    #[must_use]
    pub(crate) fn next_number(&self) -> u32 {
        match self.free.last() {
            Some(number) => *number,
            None => u32::try_from(self.runs.len()).expect("runs should fit in 32 bits"),
        }
    }

    /// Notes that the bio of `run` was submitted, with the number of `next_number`.
    pub fn submitted(&mut self, run: Run) {
        debug_assert!(run.pages.start < run.pages.end, "a run must have a page");
        match self.free.pop() {
            Some(number) => self.runs[number as usize] = Some(run),
            None => self.runs.push(Some(run)),
        }
    }

    /// Notes that the bio of run `number` has ended, successfully if `well`
    /// ([pages-ready-together]). Passes to `wake` each task that waited for one of its pages, in
    /// the order of their waits.
    ///
    /// # Panics
    ///
    /// Panics if no such run is in flight.
    pub fn ended(&mut self, number: u32, well: bool, mut wake: impl FnMut(TaskId)) {
        let run = self.runs[number as usize].take();
        let Run { file, pages } = run.expect("a run that ends should be in flight");
        self.free.push(number);
        self.files[file.0].pages.finish(pages.clone(), well);
        self.waiters.retain(|waiter| {
            let waits = waiter.file == file && pages.contains(&waiter.page);
            if waits {
                wake(waiter.task);
            }
            !waits
        });
    }

    /// Returns the number of bios in flight.
    #[must_use]
    pub fn under_way(&self) -> usize {
        debug_assert!(self.free.len() <= self.runs.len(), "free numbers are used numbers");
        self.runs.len() - self.free.len()
    }

    /// Notes that `task` waits for a page that is being read.
    pub fn wait(&mut self, file: FileId, page: u64, task: TaskId) {
        debug_assert!(self.pages(file).state(page) == PageState::Reading, "no bio reads {page}");
        self.waiters.push(Waiter { file, page, task });
    }

    /// Drops the pages of `file`, except those being read.
    pub(crate) fn drop_pages(&mut self, file: FileId) {
        self.files[file.0].pages.drop_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::unit::QueueId;

    fn placement(base_bytes: u64) -> Placement {
        Placement { queue: QueueId(0), base_bytes, len_bytes: 100 * PAGE_BYTES - 1 }
    }

    /// Claims `pages`. Returns the pages to read, which form one run.
    fn claim(cache: &mut PageCache, file: FileId, pages: Range<u64>) -> Range<u64> {
        let mut runs = Vec::new();
        let window = Window { pages, marker: None };
        cache.claim(file, window, |run| runs.push(run.pages));
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    #[test]
    fn the_same_file_is_the_same_cache() {
        let mut cache = PageCache::default();
        let (first, other) = (cache.open(placement(0)), cache.open(placement(1 << 20)));
        assert_eq!((cache.open(placement(0)), first == other), (first, false));
        assert_eq!(claim(&mut cache, first, 0..4), 0..4);
        assert_eq!(claim(&mut cache, first, 2..6), 4..6);
        assert_eq!(claim(&mut cache, other, 2..6), 2..6);
        assert_eq!(claim(&mut cache, first, 98..120), 98..100, "the file ends there");
    }

    // [page-read-once], [pages-ready-together]
    #[test]
    fn tasks_that_wait_for_a_page_are_woken_by_the_bio_that_reads_it() {
        let mut cache = PageCache::default();
        let file = cache.open(placement(0));
        claim(&mut cache, file, 0..8);
        let submit = |cache: &mut PageCache, pages| {
            let number = cache.next_number();
            cache.submitted(Run { file, pages });
            number
        };
        let (first, second) = (submit(&mut cache, 0..4), submit(&mut cache, 4..8));
        for (page, task) in [(3, 7), (4, 8), (0, 9)] {
            cache.wait(file, page, TaskId(task));
        }
        let mut woken = Vec::new();
        cache.ended(first, true, |task| woken.push(task.0));
        assert_eq!(woken, [7, 9]);
        cache.ended(second, false, |task| woken.push(task.0));
        assert_eq!(woken, [7, 9, 8]);
        let states = [3, 4].map(|page| cache.pages(file).state(page));
        assert_eq!(states, [PageState::Ready, PageState::Absent]);
        claim(&mut cache, file, 8..9);
        assert_eq!(submit(&mut cache, 8..9), second, "numbers are used again");
    }
}
