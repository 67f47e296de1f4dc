//! The state of each page of one file.

use super::folios::{Folios, folios_of};
use super::read_ahead::{Pages, Window};
use core::ops::Range;
use std::collections::BTreeMap;

/// Number of pages in a word.
const WORD_PAGES: u64 = 64;

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// The page is not in the cache.
    Absent,
    /// The page is being read.
    Reading,
    /// The page has been read.
    Ready,
}

/// Four bits for each of 64 pages. Ready, marked and transient pages are present.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    present: u64,
    ready: u64,
    marked: u64,
    transient: u64,
}

impl Word {
    /// Whether each ready, marked and transient page is present.
    const fn is_sound(self) -> bool {
        (self.ready | self.marked | self.transient) & !self.present == 0
    }
}

/// The pages of a file in words of 64. Words without present pages need no memory.
#[derive(Clone, Debug, Default)]
pub struct FilePages {
    words: BTreeMap<u64, Word>,
    /// The large folios of transient pages that were read.
    folios: Folios,
    /// Whether a page has been transient.
    had_transient: bool,
}

/// Returns the word of `page`, and its bit there.
const fn place(page: u64) -> (u64, u64) {
    (page / WORD_PAGES, 1 << (page % WORD_PAGES))
}

impl FilePages {
    fn word(&self, page: u64) -> (Word, u64) {
        let (at, bit) = place(page);
        (self.words.get(&at).copied().unwrap_or_default(), bit)
    }

    /// Returns the state of `page`.
    #[must_use]
    pub fn state(&self, page: u64) -> PageState {
        match self.word(page) {
            (Word { ready, .. }, bit) if ready & bit != 0 => PageState::Ready,
            (Word { present, .. }, bit) if present & bit != 0 => PageState::Reading,
            _ => PageState::Absent,
        }
    }

    fn is_absent(&self, page: u64) -> bool {
        self.state(page) == PageState::Absent
    }

    /// Whether `page` is marked.
    #[must_use]
    pub(crate) fn is_marked(&self, page: u64) -> bool {
        let (word, bit) = self.word(page);
        word.marked & bit != 0
    }

    /// Whether `page` is transient: it leaves the cache when it has been read, or when its data
    /// is on the disk.
    pub(super) fn is_transient(&self, page: u64) -> bool {
        let (word, bit) = self.word(page);
        word.transient & bit != 0
    }

    /// Whether a page has been transient.
    pub(super) const fn had_transient(&self) -> bool {
        self.had_transient
    }

    /// Makes `page`, which is in the cache, transient.
    pub(super) fn make_transient(&mut self, page: u64) {
        let (at, bit) = place(page);
        let word = self.words.get_mut(&at).expect("a transient page should be present");
        word.transient |= bit;
        self.had_transient = true;
        debug_assert!(word.is_sound(), "{word:?}");
    }

    /// Returns the transient pages of `range`.
    pub(super) fn transient_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        // Without uncached calls there are none to look for.
        let range = if self.had_transient { range } else { 0..0 };
        range.filter(|page| self.is_transient(*page))
    }

    /// Claims the absent pages of `window` as [`Self::claim`] does, for an uncached read: they are
    /// transient. Folios are large up to the first page that is there (`page_cache_ra_order`).
    pub(super) fn claim_transient(&mut self, window: &Window, each: impl FnMut(Range<u64>)) {
        let fresh: Vec<_> = window.pages.clone().filter(|page| self.is_absent(*page)).collect();
        let folios = folios_of(window.pages.clone(), window.order)
            .take_while(|folio| folio.clone().all(|page| self.is_absent(page)))
            .collect::<Vec<_>>();
        self.claim(window.pages.clone(), window.marker, each);
        for page in fresh {
            self.folios.forget(page);
            self.make_transient(page);
        }
        folios.into_iter().filter(|of| of.end - of.start > 1).for_each(|of| self.folios.add(of));
    }

    /// Drops the folios of `range`, which has been read, that are transient, except those of which
    /// a page must `stay`.
    pub(super) fn drop_read(&mut self, range: Range<u64>, stay: impl Fn(u64) -> bool) {
        debug_assert!(self.had_transient, "no page of {range:?} is transient");
        for page in range {
            let folio = self.folios.of(page);
            if self.is_transient(page) && !folio.clone().any(&stay) {
                self.folios.forget(page);
                folio.for_each(|page| self.drop_page(page));
            }
        }
    }

    /// Clears the mark of `page`. Returns whether the page had one.
    pub(crate) fn take_mark(&mut self, page: u64) -> bool {
        let (at, bit) = place(page);
        self.words.get_mut(&at).is_some_and(|word| {
            let marked = word.marked & bit != 0;
            word.marked &= !bit;
            marked
        })
    }

    /// Claims the absent pages among `pages`, and marks `marker` if it is one of them. Passes their
    /// maximal runs to `each`, in order.
    pub(crate) fn claim(
        &mut self,
        pages: Range<u64>,
        marker: Option<u64>,
        mut each: impl FnMut(Range<u64>),
    ) {
        let mut run = pages.start..pages.start;
        for page in pages {
            let (at, bit) = place(page);
            let word = self.words.entry(at).or_default();
            // A page that is here ends the run of absent ones before it.
            if word.present & bit != 0 {
                if !run.is_empty() {
                    each(run);
                }
                run = page + 1..page + 1;
                continue;
            }
            word.present |= bit;
            word.marked |= if marker == Some(page) { bit } else { 0 };
            debug_assert!(word.is_sound(), "{word:?}");
            run.end = page + 1;
        }
        if !run.is_empty() {
            each(run);
        }
    }

    /// Ends the reading of `pages`: makes them ready if `well`, otherwise absent again.
    pub fn finish(&mut self, pages: Range<u64>, well: bool) {
        for page in pages {
            let (at, bit) = place(page);
            let word = self.words.get_mut(&at).expect("a page being read should be present");
            // A page that its bio reads is present and becomes ready with the others of the bio.
            debug_assert!(word.present & !word.ready & bit != 0, "page {page} was not being read");
            if well {
                word.ready |= bit;
            } else {
                word.present &= !bit;
                word.marked &= !bit;
                word.transient &= !bit;
            }
            debug_assert!(word.is_sound(), "{word:?}");
        }
    }

    /// Puts `page` into the cache for a write, without a read, unless it is there. It is not being
    /// read. If the write `is_uncached`, a page that was not there is transient; if not, it stays.
    /// Returns whether the page was transient, and whether it is.
    pub(crate) fn fill(&mut self, page: u64, is_uncached: bool) -> (bool, bool) {
        let (at, bit) = place(page);
        let word = self.words.entry(at).or_default();
        debug_assert!((word.present & !word.ready) & bit == 0, "page {page} is being read");
        let was_transient = word.transient & bit != 0;
        let is_transient = is_uncached && (was_transient || word.present & bit == 0);
        if self.had_transient && word.present & bit == 0 {
            self.folios.forget(page);
        }
        word.present |= bit;
        word.ready |= bit;
        word.transient = if is_transient { word.transient | bit } else { word.transient & !bit };
        self.had_transient |= is_transient;
        debug_assert!(word.is_sound(), "{word:?}");
        (was_transient, is_transient)
    }

    /// Drops the pages of `range` that are ready, except those that must `stay`.
    pub(crate) fn drop_ready_in(&mut self, range: Range<u64>, stay: impl Fn(u64) -> bool) {
        let words = place(range.start).0..range.end.div_ceil(WORD_PAGES);
        let found: Vec<_> = self.words.range(words).map(|(at, _)| *at).collect();
        for at in found {
            let first = range.start.max(at * WORD_PAGES);
            let end = range.end.min((at + 1) * WORD_PAGES);
            for page in (first..end).filter(|page| !stay(*page)) {
                self.drop_page(page);
            }
        }
    }

    /// Drops `page` if it is ready.
    pub(super) fn drop_page(&mut self, page: u64) {
        let (at, bit) = place(page);
        let Some(word) = self.words.get_mut(&at).filter(|word| word.ready & bit != 0) else {
            return;
        };
        word.present &= !bit;
        word.ready &= !bit;
        word.marked &= !bit;
        word.transient &= !bit;
        debug_assert!(word.is_sound(), "{word:?}");
        if word.present == 0 {
            self.words.remove(&at);
        }
    }

    /// Drops every page that is ready, except those that must `stay`.
    pub(crate) fn drop_ready(&mut self, stay: impl Fn(u64) -> bool) {
        self.words.retain(|at, word| {
            let stays = (0..WORD_PAGES)
                .filter(|bit| word.ready & (1 << bit) != 0 && stay(at * WORD_PAGES + bit))
                .fold(0, |stays, bit| stays | 1 << bit);
            // Pages that are being read have waiters, and stay, too.
            word.present = (word.present & !word.ready) | stays;
            word.ready = stays;
            word.marked &= word.present;
            word.transient &= word.present;
            debug_assert!(word.is_sound(), "{word:?}");
            word.present != 0
        });
    }
}

impl Pages for FilePages {
    fn run_before(&self, page: u64, max: u64) -> u64 {
        let first = page.saturating_sub(max);
        let absent = (first..page).rev().find(|page| self.state(*page) == PageState::Absent);
        page - absent.map_or(first, |absent| absent + 1)
    }

    fn next_absent(&self, page: u64, max: u64) -> Option<u64> {
        (page..page + max).find(|page| self.is_absent(*page))
    }

    fn folio_pages(&self, page: u64) -> u64 {
        let folio = self.folios.of(page);
        folio.end - folio.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// For each present page, whether the page is ready and whether it is marked.
    #[derive(Default)]
    struct Oracle(BTreeMap<u64, (bool, bool)>);

    impl Oracle {
        fn claim(&mut self, pages: Range<u64>, marker: Option<u64>) -> Vec<u64> {
            let absent: Vec<_> = pages.filter(|page| !self.0.contains_key(page)).collect();
            self.0.extend(absent.iter().map(|page| (*page, (false, marker == Some(*page)))));
            absent
        }
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Claim(Range<u64>, u64),
        Finish(usize, bool),
        TakeMark(u64),
        DropReady,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0..200_u64, 0..70_u64, 0..280_u64)
                .prop_map(|(start, len, marker)| Operation::Claim(start..start + len, marker)),
            4 => (any::<usize>(), prop::bool::weighted(0.8))
                .prop_map(|(which, well)| Operation::Finish(which, well)),
            2 => (0..270_u64).prop_map(Operation::TakeMark),
            1 => Just(Operation::DropReady),
        ]
    }

    proptest! {
        #[test]
        fn pages_are_what_was_done_to_each(operations in prop::collection::vec(operation(), 1..60)) {
            let (mut pages, mut oracle) = (FilePages::default(), Oracle::default());
            let mut under_way: Vec<Range<u64>> = Vec::new();
            for operation in operations {
                match operation {
                    Operation::Claim(range, marker) => {
                        let mut runs = Vec::new();
                        pages.claim(range.clone(), Some(marker), |run| runs.push(run));
                        let claimed: Vec<_> = runs.iter().cloned().flatten().collect();
                        prop_assert_eq!(claimed, oracle.claim(range, Some(marker)));
                        prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
                        under_way.extend(runs);
                    }
                    Operation::Finish(which, well) if !under_way.is_empty() => {
                        let run = under_way.swap_remove(which % under_way.len());
                        pages.finish(run.clone(), well);
                        for page in run {
                            if well {
                                oracle.0.get_mut(&page).unwrap().0 = true;
                            } else {
                                oracle.0.remove(&page);
                            }
                        }
                    }
                    Operation::Finish(..) => {}
                    Operation::TakeMark(page) => {
                        let marked = oracle.0.get_mut(&page).map(|page| core::mem::take(&mut page.1));
                        prop_assert_eq!(pages.take_mark(page), marked.unwrap_or(false));
                    }
                    Operation::DropReady => {
                        pages.drop_ready(|_| false);
                        oracle.0.retain(|_, (ready, _)| !*ready);
                    }
                }
                for page in 0..280 {
                    let known = oracle.0.get(&page);
                    let state = match known {
                        None => PageState::Absent,
                        Some((false, _)) => PageState::Reading,
                        Some((true, _)) => PageState::Ready,
                    };
                    prop_assert_eq!(pages.state(page), state);
                    prop_assert_eq!(pages.is_marked(page), known.is_some_and(|known| known.1));
                    let before = (1..=page.min(40)).take_while(|back| oracle.0.contains_key(&(page - back)));
                    prop_assert_eq!(pages.run_before(page, 40), before.count() as u64);
                    let next = (page..page + 40).find(|page| !oracle.0.contains_key(page));
                    prop_assert_eq!(pages.next_absent(page, 40), next);
                }
            }
        }
    }
}
