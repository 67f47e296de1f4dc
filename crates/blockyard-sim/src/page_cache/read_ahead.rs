//! Read-ahead: which pages of a file to read, and when, for a reader that needs some of them.
//!
//! This is Linux's on-demand read-ahead (4.10 to 6.6; with [`Reach::aligned`], 6.17 to 7.3). A
//! [`ReadAhead`] belongs to a file that one reader has open. The reader calls it when a page is
//! missing ([`Trigger::Miss`]), and at a page that an earlier window has marked
//! ([`Trigger::Marker`]). The call returns the [`Window`] to read.
//!
//! The part of a window that was not requested begins with its marker. Later windows of a stream
//! are marked at their first page. A reader that reaches the marker starts the next window while
//! this one may still be in flight, so at most two windows are in flight. If neither the reader nor
//! the cache knows of earlier pages, only the requested pages are read, and the stream does not
//! change.
//!
//! # Rules
//!
//! - **[window-within-reach]** A window is no longer than the reach, which a long request can widen
//!   ([`Reach::for_request`]).
//!
//! A reader starts a stream when it begins at the front of the file, requests more than the reach,
//! or continues where it stopped. The first window grows with the request: four times a small
//! request, twice a medium one. Each later window follows the previous one and is twice as long
//! (four times while it is small), up to the reach. If the whole first window was requested, it is
//! joined with the next window when both fit the reach, and otherwise marked in its middle.
//!
//! Since Linux 6.17 a window that is read at a marker ends aligned to a power of two, as far as
//! that leaves something of it: to four times the alignment of the window before, which was at most
//! the size of that window. So large pages fit into it.

use blockyard_devices::profile::Reach;
use core::cmp::Ordering;
use core::ops::Range;

/// The reader's announced access pattern (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No announcement.
    Normal,
    /// Sequential: windows reach twice as far.
    Sequential,
    /// Random: only the requested pages are read.
    Random,
}

/// The reason to read a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page is not in the cache.
    Miss,
    /// The page is in the cache and marked.
    Marker,
}

/// Pages to read, except those in the cache and those beyond the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The pages.
    pub pages: Range<u64>,
    /// The page to mark.
    pub(crate) marker: Option<u64>,
    /// The binary logarithm of the pages of its largest folios, with [`Reach::aligned`].
    pub(crate) order: u32,
}

/// The pages of a file in the cache.
pub trait Pages {
    /// Returns how many pages directly before `page` are present, at most `max`.
    fn run_before(&self, page: u64, max: u64) -> u64;
    /// Returns the first absent page from `page` on, among the next `max`.
    fn next_absent(&self, page: u64, max: u64) -> Option<u64>;
    /// Returns the number of pages of the folio that has `page`, as far as it is known.
    fn folio_pages(&self, page: u64) -> u64 {
        let _ = page;
        1
    }
}

impl Window {
    /// Returns `pages` alone, without a marker.
    pub(crate) const fn of(pages: Range<u64>) -> Self {
        Self { pages, marker: None, order: 0 }
    }
}

/// Slots of a node of Linux's tree of pages.
const NODE_PAGES: u64 = 64;

/// The read-ahead stream of one reader in one file.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    advice: Advice,
    /// The latest window.
    start: u64,
    len: u64,
    /// The number of pages from the marker to the end of the window.
    ahead: u64,
    /// The page read last.
    last: Option<u64>,
    /// The binary logarithm of the alignment of the latest window, with [`Reach::aligned`].
    order: u32,
}

impl ReadAhead {
    /// Returns the stream of a file that was just opened, with `advice`.
    #[must_use]
    pub const fn new(advice: Advice) -> Self {
        Self { advice, start: 0, len: 0, ahead: 0, last: None, order: 0 }
    }

    /// Notes that the reader has read from `page`.
    pub(crate) const fn has_read(&mut self, page: u64) {
        self.last = Some(page);
    }

    /// Returns the window to read because of `trigger` at `page`; `None` if nothing is read ahead.
    /// The reader still needs `wanted` pages (at least 1) from `page` on.
    pub fn window(
        &mut self,
        trigger: Trigger,
        page: u64,
        wanted: u64,
        reach: Reach,
        cache: &impl Pages,
    ) -> Option<Window> {
        debug_assert!(wanted > 0, "a reader must want at least one page");
        if reach.usual == 0 {
            return None; // each page is read alone, whatever was advised
        }
        let reach = match self.advice {
            Advice::Normal => reach,
            Advice::Sequential => Reach { usual: reach.usual * 2, ..reach },
            Advice::Random if trigger == Trigger::Marker => return None,
            Advice::Random => {
                let len = wanted.min(reach.usual.max(reach.widest).max(1));
                return Some(Window::of(page..page + len));
            }
        };
        let max = reach.for_request(wanted);
        if page == 0 {
            self.begin(page, wanted, max);
        } else if self.is_expected(trigger, page, reach, cache) {
            self.set(self.start + self.len, longer(self.len, max));
        } else if trigger == Trigger::Marker {
            // The marker belongs to another stream, or to an earlier one of this reader. Continue
            // after the pages in the cache.
            let begin = next_absent(page, max, cache)?;
            self.set(begin, longer(begin - page + wanted, max));
        } else if wanted > max || self.last.is_some_and(|last| page.wrapping_sub(last) <= 1) {
            self.begin(page, wanted, max);
        } else {
            let before = cache.run_before(page, max);
            if before <= wanted {
                return Some(Window::of(page..page + wanted));
            }
            // Pages from the front of the file count twice: whoever read them has read the file
            // from its beginning.
            let all = if before >= page { before * 2 } else { before };
            self.set(page, (all + wanted).min(max));
            self.ahead = 1;
        }
        // The whole window was requested, so nothing of it is ahead of the reader. The next window
        // is read with it, if the reach allows; otherwise the second half of this one gets the
        // marker.
        if self.start == page && self.len == self.ahead {
            let more = longer(self.len, max);
            if self.len + more <= max {
                self.ahead = more;
                self.len += more;
            } else {
                self.len = max;
                self.ahead = max / 2;
            }
        }
        if reach.aligned && trigger == Trigger::Marker {
            self.align_end(max);
        } else {
            self.order = 0;
        }
        debug_assert!(0 < self.len && self.len <= max, "[window-within-reach]: {self:?}, {max}");
        debug_assert!(self.ahead <= self.len, "the marker must be in its window: {self:?}");
        let end = self.start + self.len;
        Some(Window { pages: self.start..end, marker: Some(end - self.ahead), order: self.order })
    }

    /// Whether the reader is at the marker of the latest window, or at its end: the stream
    /// continues. In Linux 7.3 only the folio of the marker continues it (`page_cache_async_ra`);
    /// at a page that is missing next to the last one that was read, it begins anew.
    fn is_expected(&self, trigger: Trigger, page: u64, reach: Reach, cache: &impl Pages) -> bool {
        let end = self.start + self.len;
        let marker = end - self.ahead;
        if !reach.aligned {
            return page == marker || page == end;
        }
        // Window 60 to 79 begins in a folio of pages 48 to 63, which has a marker of its own.
        let folio_pages = cache.folio_pages(page);
        trigger == Trigger::Marker && page == marker / folio_pages * folio_pages
    }

    /// Sets the next window of a stream.
    const fn set(&mut self, start: u64, len: u64) {
        self.start = start;
        self.len = len;
        self.ahead = len;
    }

    /// Aligns the end of the latest window, of at most `max` pages, which was read at a marker.
    fn align_end(&mut self, max: u64) {
        // Behind 8 pages from page 4 on, which end at a multiple of 4, come 16 from page 12 on.
        // They would end at page 28. With an alignment of 16 they end at page 16, and are 4.
        let align = 1 << (self.order + 2).min(max.trailing_zeros());
        let end = (self.start + self.len) / align * align;
        if end > self.start {
            self.len = end - self.start;
        }
        self.ahead = self.len;
        self.order = (self.order + 2).min(self.len.ilog2());
    }

    /// Sets the first window of a stream.
    const fn begin(&mut self, page: u64, wanted: u64, max: u64) {
        self.set(page, first(wanted, max));
        if self.len > wanted {
            self.ahead = self.len - wanted;
        }
    }
}

/// Returns the first page behind the marked `page`, within `max`, that Linux takes for absent.
///
/// `page_cache_next_miss` begins in the middle of a large folio with the slot of its first page, so
/// that it finds each slot under the number of the page behind it. Only its step into the next
/// node, of 64 slots, goes by the number again, and passes the first slot. So behind page 80 of a
/// large folio it takes page 121 for the first one absent, if that is page 120.
fn next_absent(page: u64, max: u64, cache: &impl Pages) -> Option<u64> {
    let first = cache.next_absent(page + 1, max)?;
    let node_end = (page / NODE_PAGES + 1) * NODE_PAGES;
    match first.cmp(&node_end) {
        _ if cache.folio_pages(page) == 1 => Some(first),
        Ordering::Less => Some(first + 1),
        Ordering::Equal => cache.next_absent(first + 1, max),
        Ordering::Greater => Some(first),
    }
}

/// Returns the length of the first window for a request of `wanted` pages.
const fn first(wanted: u64, max: u64) -> u64 {
    let whole = if wanted >= max { max } else { wanted.next_power_of_two() };
    // With a reach of 128 pages, requests of 1, 3 and 40 pages begin with windows of 4, 16 (4
    // pages, four times) and 128 pages.
    if whole <= max / 32 {
        whole * 4
    } else if whole <= max / 4 {
        whole * 2
    } else {
        max
    }
}

/// Returns the length of the window after one of `len` pages.
const fn longer(len: u64, max: u64) -> u64 {
    if len < max / 16 {
        len * 4
    } else if len <= max / 2 {
        len * 2
    } else {
        max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// 128 KiB, for any request.
    const REACH: Reach = Reach { usual: 32, widest: 32, aligned: false };

    #[derive(Default)]
    struct Cached(BTreeSet<u64>);

    impl Pages for Cached {
        fn run_before(&self, page: u64, max: u64) -> u64 {
            (0..max.min(page)).take_while(|back| self.0.contains(&(page - 1 - back))).count() as u64
        }

        fn next_absent(&self, page: u64, max: u64) -> Option<u64> {
            (page..page + max).find(|page| !self.0.contains(page))
        }
    }

    /// A reader with a cache that reads at once, and its windows.
    struct Reader {
        ahead: ReadAhead,
        reach: Reach,
        cache: Cached,
        marked: BTreeSet<u64>,
        windows: Vec<(u64, u64, Option<u64>)>,
    }

    impl Reader {
        fn new(advice: Advice, reach: Reach) -> Self {
            Self {
                ahead: ReadAhead::new(advice),
                reach,
                cache: Cached::default(),
                marked: BTreeSet::new(),
                windows: Vec::new(),
            }
        }

        fn ask(&mut self, trigger: Trigger, page: u64, wanted: u64) {
            let window = self.ahead.window(trigger, page, wanted, self.reach, &self.cache);
            let Some(Window { pages, marker, .. }) = window else { return };
            self.windows.push((pages.start, pages.end - pages.start, marker));
            let fresh = |page: &u64| !self.cache.0.contains(page);
            self.marked.extend(marker.filter(fresh));
            self.cache.0.extend(pages);
        }

        /// Reads `pages` in one call. Returns the windows that this caused.
        fn read(&mut self, pages: Range<u64>) -> Vec<(u64, u64, Option<u64>)> {
            for page in pages.clone() {
                if !self.cache.0.contains(&page) {
                    self.ask(Trigger::Miss, page, pages.end - page);
                }
                if self.marked.remove(&page) {
                    self.ask(Trigger::Marker, page, pages.end - page);
                }
                self.cache.0.insert(page);
                self.ahead.has_read(page);
            }
            core::mem::take(&mut self.windows)
        }
    }

    /// Page by page from the front: 4 pages, of which 3 are ahead, then 8, 16, 32 and always 32.
    /// Each is requested at the start of the previous one.
    #[test]
    fn a_stream_of_single_pages_doubles_its_windows() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        let mut windows = Vec::new();
        for page in 0..124 {
            windows.extend(reader.read(page..page + 1).into_iter().map(|window| (page, window)));
        }
        let expected = [
            (0, (0, 4, Some(1))),
            (1, (4, 8, Some(4))),
            (4, (12, 16, Some(12))),
            (12, (28, 32, Some(28))),
            (28, (60, 32, Some(60))),
            (60, (92, 32, Some(92))),
            (92, (124, 32, Some(124))),
        ];
        assert_eq!(windows, expected);
    }

    /// Returns the sectors of the first ten windows of a reader that reads page by page.
    fn sectors_read(aligned: bool) -> Vec<u64> {
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 64, widest: 64, aligned });
        let windows = (0..130).flat_map(|page| reader.read(page..page + 1));
        windows.map(|window| window.1 * 8).take(10).collect()
    }

    /// Page by page since Linux 6.17, which a recording of its sectors shows: 4 pages; 8, which end
    /// at page 12, a multiple of 4; 16, cut to 4 as they are to end at a multiple of 16; 8; 16, cut
    /// to 8 at page 32; 16, of which the end at page 48 stays; 32, cut to 16 at page 64; and so on.
    #[test]
    fn windows_end_aligned_since_linux_6_17() {
        assert_eq!(sectors_read(true), [32, 64, 32, 64, 64, 128, 128, 256, 256, 512]);
        assert_eq!(sectors_read(false)[..5], [32, 64, 128, 256, 512]);
    }

    /// `dd bs=1M`: a first window marked in its middle, then full windows, one ahead
    /// ([window-within-reach]).
    #[test]
    fn long_requests_take_full_windows() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        let first = reader.read(0..256);
        let starts: Vec<_> = first.iter().map(|window| window.0).collect();
        assert_eq!(first[0], (0, 32, Some(16)));
        assert!(first[1..].iter().all(|window| (window.1, window.2) == (32, Some(window.0))));
        assert_eq!(starts, [0, 32, 64, 96, 128, 160, 192, 224, 256]);
        assert_eq!(reader.read(256..512).len(), 8);
    }

    /// A request longer than the reach is read as one, as far as the device allows.
    #[test]
    fn a_long_request_widens_the_windows() {
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 32, widest: 128, ..REACH });
        let first = reader.read(0..256);
        assert_eq!(first[..2], [(0, 128, Some(64)), (128, 128, Some(128))]);
        // The rest of the request at the marker counts: 128 of 256 pages, then 64 of them.
        assert_eq!(first[2], (256, 128, Some(256)));
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 32, widest: 128, ..REACH });
        assert_eq!(reader.read(0..33)[0], (0, 33, Some(17)), "33 / 2 = 16 pages are ahead");
        assert_eq!(Reach { usual: 32, widest: 16, ..REACH }.for_request(256), 32);
    }

    /// 8 KiB at a time: 2 pages become 4, of which 2 are ahead.
    #[test]
    fn a_first_window_grows_with_the_request() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(0..2), [(0, 4, Some(2))]);
        assert_eq!(reader.read(2..4), [(4, 8, Some(4))]);
        // 16 pages are more than a quarter of the reach, so the window is the whole reach.
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(0..16), [(0, 32, Some(16))]);
    }

    #[test]
    fn a_random_read_reads_only_the_requested_pages() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(1000..1001), [(1000, 1, None)]);
        assert_eq!(reader.read(500..504), [(500, 4, None)]);
        assert_eq!(reader.read(9000..9001), [(9000, 1, None)]);
        // The next page continues where the reader stopped, so a stream begins.
        assert_eq!(reader.read(9001..9002), [(9001, 4, Some(9002))]);
    }

    /// A jump out of a stream and back: the stream's markers are still there.
    #[test]
    fn a_miss_elsewhere_leaves_the_stream_as_it_was() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.read(0..1);
        reader.read(1..2);
        assert_eq!(reader.read(700..701), [(700, 1, None)]);
        assert_eq!(reader.read(4..5), [(12, 16, Some(12))]);
    }

    /// Earlier pages that another reader has read count like the reader's own stream.
    #[test]
    fn earlier_pages_in_the_cache_start_a_stream() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(100..105);
        assert_eq!(reader.read(105..106), [(105, 6, Some(110))]);
        // A run from the front of the file counts twice.
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(0..5);
        assert_eq!(reader.read(5..6), [(5, 11, Some(15))]);
    }

    /// At another reader's marker the stream continues after the cached pages, with the next
    /// length.
    #[test]
    fn a_foreign_marker_continues_after_the_cached_pages() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(200..208);
        reader.marked.insert(202);
        // 6 pages ahead and 1 requested are 7; the window is twice as long.
        assert_eq!(reader.read(202..203), [(208, 14, Some(208))]);
    }

    #[test]
    fn advice_changes_the_windows() {
        let mut reader = Reader::new(Advice::Sequential, REACH);
        assert_eq!(reader.read(0..64)[0], (0, 64, Some(32)));
        let mut reader = Reader::new(Advice::Random, REACH);
        assert_eq!(reader.read(0..4), [(0, 4, None)]);
        assert_eq!(reader.read(4..8), [(4, 4, None)]);
        let asked: u64 = reader.read(100..164).iter().map(|window| window.1).sum();
        assert_eq!(asked, 64, "in two pieces, as the reach is 32 pages");
    }

    #[test]
    fn without_reach_nothing_is_read_ahead() {
        for advice in [Advice::Normal, Advice::Sequential, Advice::Random] {
            let mut reader = Reader::new(advice, Reach { usual: 0, widest: 0, ..REACH });
            assert_eq!(reader.read(0..64), []);
        }
    }
}
