//! The page cache, for reading: what buffered reads find, what is on its way for them, who waits.
//!
//! ```text
//! a call ─► page there? ─► copied to the caller, page by page
//!                 │ no, or it is marked
//!                 ▼
//!            read_ahead ─► a window ─► its absent pages: a bio for each run of them
//! ```
//!
//! # Rules
//!
//! - **G1.** There is one cache: whoever reads the same file finds what others have read, and waits for
//!   what others are having read. What a reader knows of his own stream is his own.
//! - **G2.** A page is asked for once: from then on it is present, and read by exactly one bio.
//! - **G3.** Pages become ready when their bio ends, all together. One that fails leaves them absent:
//!   who waits for one of them then asks for that page alone, and fails if that fails.
//! - **G4.** Memory is never short: a page leaves the cache when a job that begins drops what there is of
//!   its files (fio's `invalidate`), and not before.
//! - **G5.** Nobody waits at his end for what is still being read ahead of him. Where he was the last,
//!   the run ends over it.
//!
//! Not here: writing, mapping, and what other programs do to a real cache.

mod pages;
mod read_ahead;

pub use pages::{FilePages, PageState};
pub use read_ahead::{Advice, Pages, ReadAhead, Trigger, Window};

use crate::machine::cpu::TaskId;
use crate::placement::Placement;
use crate::profile::PAGE_BYTES;
use core::ops::Range;

/// A file of which pages may be in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(usize);

/// Pages that one bio reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of this file.
    pub file: FileId,
    /// These.
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

/// The cache of a machine.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    files: Vec<File>,
    /// Runs whose bios are under way, by the number in their cookie; `None` is free.
    runs: Vec<Option<Run>>,
    free: Vec<u32>,
    waiters: Vec<Waiter>,
}

impl PageCache {
    /// The file that lies at `placement`.
    pub fn open(&mut self, placement: Placement) -> FileId {
        let known = self.files.iter().position(|file| file.placement == placement);
        FileId(known.unwrap_or_else(|| {
            self.files.push(File { placement, pages: FilePages::default() });
            self.files.len() - 1
        }))
    }

    /// Where `file` lies.
    #[must_use]
    pub fn placement(&self, file: FileId) -> Placement {
        self.files[file.0].placement
    }

    /// The pages of `file`.
    #[must_use]
    pub fn pages(&self, file: FileId) -> &FilePages {
        &self.files[file.0].pages
    }

    /// Takes the mark of a page away; whether it had one.
    pub fn take_mark(&mut self, file: FileId, page: u64) -> bool {
        self.files[file.0].pages.take_mark(page)
    }

    /// Has `window` read, as far as the file goes and its pages are absent (G2): gives `each` the
    /// runs for which a bio is to be submitted.
    pub fn claim(&mut self, file: FileId, window: Window, mut each: impl FnMut(Run)) {
        let File { placement, pages } = &mut self.files[file.0];
        let end = window.pages.end.min(placement.len_bytes.div_ceil(PAGE_BYTES));
        pages.claim(window.pages.start..end, window.marker, |pages| each(Run { file, pages }));
    }

    /// The number by which [`Self::ended`] will know the run that is submitted next.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        let fresh = || u32::try_from(self.runs.len()).expect("as many as there is memory for bios");
        self.free.last().copied().unwrap_or_else(fresh)
    }

    /// The bio of `run` is under way, by the number that was next.
    pub fn submitted(&mut self, run: Run) {
        match self.free.pop() {
            Some(number) => self.runs[number as usize] = Some(run),
            None => self.runs.push(Some(run)),
        }
    }

    /// The bio of the run so numbered has ended, `well` or not (G3). Gives `wake` each task that
    /// waited for one of its pages, in the order in which they began to.
    ///
    /// # Panics
    ///
    /// If no such run is under way.
    pub fn ended(&mut self, number: u32, well: bool, mut wake: impl FnMut(TaskId)) {
        let Run { file, pages } = self.runs[number as usize].take().expect("it is under way");
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

    /// Bios under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.runs.len() - self.free.len()
    }

    /// `task` waits for a page that is on its way.
    pub fn wait(&mut self, file: FileId, page: u64, task: TaskId) {
        self.waiters.push(Waiter { file, page, task });
    }

    /// Drops what there is of `file` (G4).
    pub fn drop_pages(&mut self, file: FileId) {
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

    /// The pages that are to be read, of which `pages` leave one run.
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
        assert_eq!(claim(&mut cache, first, 98..120), 98..100, "that is where the file ends");
    }

    #[test]
    fn those_who_wait_for_a_page_are_woken_by_the_bio_that_reads_it() {
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
