//! Read-ahead: which pages of a file are read, and when, by somebody who asks for some of them.
//!
//! This is Linux's on-demand read-ahead, as its documentation and its source tell it (4.10 to 6.6).
//! A [`ReadAhead`] belongs to a file as one reader has it open. It is asked where the reader misses a
//! page ([`Trigger::Miss`]) and where he comes to a page that an earlier window left marked
//! ([`Trigger::Marker`]); it answers with the [`Window`] to read.
//!
//! # Rules
//!
//! - **A1.** A window is no longer than the reach, which a single request can widen
//!   ([`Reach::for_request`]).
//! - **A2.** Who begins at the front of the file, asks for more than the reach, or goes on where he
//!   stopped begins a stream: its first window grows with the request (four times a small one, twice
//!   a middling one).
//! - **A3.** In a stream each window follows on the one before and is twice as long, four times
//!   while it is small, until it is as long as the reach.
//! - **A4.** What of a window was not asked for begins with its marker. Windows of a stream that is under
//!   way are marked at their first page: whoever comes to it has the next window read while this one
//!   may still be on its way, so that up to two are.
//! - **A5.** A first window nothing of which is ahead is joined with the next one if both fit the
//!   reach; if not, it is marked in its middle.
//! - **A6.** Where neither the reader nor the cache knows of pages before, what is asked for is read,
//!   and nothing else: a random read. It leaves the stream as it was.

use crate::profile::Reach;
use core::ops::Range;

/// What the reader said he would do (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Normal,
    /// Read in order: windows reach twice as far.
    Sequential,
    /// Read at random: what is asked for is read, and nothing else.
    Random,
}

/// Why a window is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page is not in the cache.
    Miss,
    /// The page is there, and marked.
    Marker,
}

/// Pages to read, as far as they are not in the cache and the file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The pages.
    pub pages: Range<u64>,
    /// Which of them is marked.
    pub marker: Option<u64>,
}

/// What the cache has of a file.
pub trait Pages {
    /// How many pages directly before `page` are there, `max` at most.
    fn run_before(&self, page: u64, max: u64) -> u64;
    /// The first page from `page` on that is not there, among the next `max`.
    fn next_absent(&self, page: u64, max: u64) -> Option<u64>;
}

/// The stream of one reader in one file.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    advice: Advice,
    /// The latest window.
    start: u64,
    len: u64,
    /// Its last pages, which begin with the marker.
    ahead: u64,
    /// The page that was read last.
    last: Option<u64>,
}

impl ReadAhead {
    /// A file just opened, with `advice`.
    #[must_use]
    pub const fn new(advice: Advice) -> Self {
        Self { advice, start: 0, len: 0, ahead: 0, last: None }
    }

    /// The reader has read of `page`.
    pub const fn has_read(&mut self, page: u64) {
        self.last = Some(page);
    }

    /// The window to read because of `trigger` at `page`, where the reader still wants `wanted`
    /// pages (at least 1) from it on; `None`: nothing is read ahead.
    pub fn window(
        &mut self,
        trigger: Trigger,
        page: u64,
        wanted: u64,
        reach: Reach,
        cache: &impl Pages,
    ) -> Option<Window> {
        let reach = match self.advice {
            Advice::Normal => reach,
            Advice::Sequential => Reach { usual: reach.usual * 2, ..reach },
            Advice::Random if trigger == Trigger::Marker => return None,
            Advice::Random => {
                let most = wanted.min(reach.usual.max(reach.widest).max(1));
                return Some(Window { pages: page..page + most, marker: None });
            }
        };
        let max = reach.for_request(wanted);
        if reach.usual == 0 {
            return None;
        }
        if page == 0 {
            self.begin(page, wanted, max);
        } else if page == self.start + self.len - self.ahead || page == self.start + self.len {
            self.set(self.start + self.len, longer(self.len, max)); // A3
        } else if trigger == Trigger::Marker {
            // The marker of another stream, or of one that has gone elsewhere meanwhile: go on
            // behind what is there.
            let begin = cache.next_absent(page + 1, max)?;
            self.set(begin, longer(begin - page + wanted, max));
        } else if wanted > max || self.last.is_some_and(|last| page.wrapping_sub(last) <= 1) {
            self.begin(page, wanted, max);
        } else {
            let before = cache.run_before(page, max);
            if before <= wanted {
                return Some(Window { pages: page..page + wanted, marker: None }); // A6
            }
            let all = if before >= page { before * 2 } else { before };
            self.set(page, (all + wanted).min(max));
            self.ahead = 1;
        }
        if self.start == page && self.len == self.ahead {
            let more = longer(self.len, max); // A5
            if self.len + more <= max {
                self.ahead = more;
                self.len += more;
            } else {
                self.len = max;
                self.ahead = max / 2;
            }
        }
        let end = self.start + self.len;
        Some(Window { pages: self.start..end, marker: Some(end - self.ahead) })
    }

    /// A window of a stream that is under way (A4).
    const fn set(&mut self, start: u64, len: u64) {
        (self.start, self.len, self.ahead) = (start, len, len);
    }

    /// The first window of a stream (A2).
    const fn begin(&mut self, page: u64, wanted: u64, max: u64) {
        self.set(page, first(wanted, max));
        if self.len > wanted {
            self.ahead = self.len - wanted;
        }
    }
}

/// Pages of the first window for a request of so many (A2).
const fn first(wanted: u64, max: u64) -> u64 {
    let whole = if wanted >= max { max } else { wanted.next_power_of_two() };
    if whole <= max / 32 {
        whole * 4
    } else if whole <= max / 4 {
        whole * 2
    } else {
        max
    }
}

/// Pages of the window after one of so many (A3).
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

    /// 128 KiB, whatever is asked for.
    const REACH: Reach = Reach { usual: 32, widest: 32 };

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

    /// A reader with a cache that answers at once, and the windows he had read.
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
            let Some(Window { pages, marker }) = window else { return };
            self.windows.push((pages.start, pages.end - pages.start, marker));
            let fresh = |page: &u64| !self.cache.0.contains(page);
            self.marked.extend(marker.filter(fresh));
            self.cache.0.extend(pages);
        }

        /// One call that reads `pages`; which windows it led to.
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

    /// Page by page from the front: 4 pages, of which 3 are ahead, then 8, 16, 32 and 32 for ever,
    /// each asked for where the one before begins.
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

    /// `dd bs=1M`: a first window marked in its middle (A5), then full ones, one ahead.
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

    /// A request longer than the reach is read as it is asked for, as far as the device lets it.
    #[test]
    fn a_long_request_widens_the_windows() {
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 32, widest: 128 });
        let first = reader.read(0..256);
        assert_eq!(first[..2], [(0, 128, Some(64)), (128, 128, Some(128))]);
        // What is left of the request at the marker decides: 128 of 256 pages, then 64 of them.
        assert_eq!(first[2], (256, 128, Some(256)));
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 32, widest: 128 });
        assert_eq!(reader.read(0..33)[0], (0, 33, Some(17)), "33 / 2 = 16 pages are ahead");
        assert_eq!(Reach { usual: 32, widest: 16 }.for_request(256), 32);
    }

    /// 8 KiB at a time: 2 pages become 4, of which 2 are ahead.
    #[test]
    fn a_first_window_grows_with_the_request() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(0..2), [(0, 4, Some(2))]);
        assert_eq!(reader.read(2..4), [(4, 8, Some(4))]);
        // 16 pages are more than a quarter of the reach: they become all of it.
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(0..16), [(0, 32, Some(16))]);
    }

    #[test]
    fn random_reads_read_what_was_asked_for() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        assert_eq!(reader.read(1000..1001), [(1000, 1, None)]);
        assert_eq!(reader.read(500..504), [(500, 4, None)]);
        assert_eq!(reader.read(9000..9001), [(9000, 1, None)]);
        // The next page: somebody goes on where he stopped, so a stream begins.
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

    /// Pages before that somebody else read are as good as a stream of one's own.
    #[test]
    fn history_in_the_cache_begins_a_stream() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(100..105);
        assert_eq!(reader.read(105..106), [(105, 6, Some(110))]);
        // From the very front on it counts twice.
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(0..5);
        assert_eq!(reader.read(5..6), [(5, 11, Some(15))]);
    }

    /// A marker that another reader left: on behind what is there, at the next length.
    #[test]
    fn a_foreign_marker_goes_on_behind_what_is_there() {
        let mut reader = Reader::new(Advice::Normal, REACH);
        reader.cache.0.extend(200..208);
        reader.marked.insert(202);
        // 6 pages ahead and 1 asked for: 7, then twice that.
        assert_eq!(reader.read(202..203), [(208, 14, Some(208))]);
    }

    #[test]
    fn advice_is_heeded() {
        let mut reader = Reader::new(Advice::Sequential, REACH);
        assert_eq!(reader.read(0..64)[0], (0, 64, Some(32)));
        let mut reader = Reader::new(Advice::Random, REACH);
        assert_eq!(reader.read(0..4), [(0, 4, None)]);
        assert_eq!(reader.read(4..8), [(4, 4, None)]);
        let asked: u64 = reader.read(100..164).iter().map(|window| window.1).sum();
        assert_eq!(asked, 64, "in two pieces, as the reach is 32");
    }

    #[test]
    fn without_reach_nothing_is_read_ahead() {
        let mut reader = Reader::new(Advice::Normal, Reach { usual: 0, widest: 0 });
        assert_eq!(reader.read(0..64), []);
    }
}
