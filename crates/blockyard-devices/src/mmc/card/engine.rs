//! The programming of a card's memory: a buffer of pages, programmed one after the other.
//!
//! The programming of a page begins as soon as its data is complete and the pages before it are
//! done. A page leaves the buffer when it is programmed, not before. A read goes between two pages:
//! it waits for the page in progress and delays the next one.

use blockyard::time::{Duration, Instant};
use std::collections::VecDeque;

/// A page that is not programmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    cost: Duration,
    bytes: u64,
}

/// Pages that are not programmed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Engine {
    pages: VecDeque<Page>,
    /// When programming of the front page began. Without pages, when programming of the last one
    /// ended.
    since: Instant,
    cost: Duration,
    bytes: u64,
    /// The number of pages ever added, and the number that have left.
    came: u64,
    left: u64,
}

impl Engine {
    /// Removes the pages that are programmed at `now`.
    pub(super) fn advance_to(&mut self, now: Instant) {
        while let Some(page) = self.pages.front().filter(|page| self.since + page.cost <= now) {
            self.since = self.since + page.cost;
            self.cost = self.cost - page.cost;
            self.bytes -= page.bytes;
            self.pages.pop_front();
            self.left += 1;
        }
        debug_assert!(!self.pages.is_empty() || (self.bytes, self.cost) == (0, Duration::ZERO));
    }

    /// Returns the number of the last page added, from 1.
    pub(super) const fn last_page(&self) -> u64 {
        self.came
    }

    /// Returns the number up to which all pages were programmed at the last advance.
    pub(super) const fn programmed_page(&self) -> u64 {
        self.left
    }

    /// Returns the bytes in the buffer at the last advance.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns when all pages will be programmed.
    pub(super) fn done_at(&self) -> Instant {
        self.since + self.cost
    }

    /// Returns when, from `now` on, there is room for `bytes` in a buffer of `capacity`, which is
    /// at least `bytes`.
    pub(super) fn room_at(&self, bytes: u64, capacity: u64, now: Instant) -> Instant {
        debug_assert!(bytes <= capacity, "a page of {bytes} bytes never fits into {capacity}");
        let mut at = self.since;
        let mut used = self.bytes;
        for page in &self.pages {
            if used + bytes <= capacity {
                break;
            }
            at = at + page.cost;
            used -= page.bytes;
        }
        if used == self.bytes { now } else { now.max(at) }
    }

    /// Adds a page of `bytes` that is complete at `at` and takes `cost` to program. Returns when it
    /// will be programmed.
    pub(super) fn push(&mut self, at: Instant, bytes: u64, cost: Duration) -> Instant {
        self.advance_to(at);
        if self.pages.is_empty() {
            self.since = self.since.max(at); // no page is before it
        }
        self.pages.push_back(Page { cost, bytes });
        self.came += 1;
        debug_assert_eq!(
            self.came - self.left,
            self.pages.len() as u64,
            "pages are numbered in order"
        );
        self.cost += cost;
        self.bytes += bytes;
        self.done_at()
    }

    /// Begins a read at `at` that occupies the memory for `access`. Returns when the read has its
    /// data.
    pub(super) fn read(&mut self, at: Instant, access: Duration) -> Instant {
        self.advance_to(at);
        let Some(front) = self.pages.front_mut() else { return at + access };
        let begin = at.max(self.since + front.cost);
        front.cost += access;
        self.cost += access;
        begin + access
    }

    /// Drops the pages that are not programmed at `now`. Returns their size in bytes.
    pub(super) fn drop_all(&mut self, now: Instant) -> u64 {
        self.advance_to(now);
        self.pages.clear();
        self.left = self.came;
        self.since = now;
        self.cost = Duration::ZERO;
        core::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    #[test]
    fn pages_are_programmed_one_after_the_other_and_make_room_when_they_are() {
        let mut engine = Engine::default();
        let page = Duration::from_us(100);
        assert_eq!(engine.push(us(10), 4096, page), us(110));
        assert_eq!(engine.push(us(20), 4096, page), us(210));
        // The buffer has room for two pages. Both places are used until 110.
        assert_eq!(engine.room_at(4096, 12_288, us(30)), us(30));
        assert_eq!(engine.room_at(4096, 8192, us(30)), us(110));
        assert_eq!(engine.room_at(8192, 8192, us(30)), us(210));
        engine.advance_to(us(110));
        assert_eq!((engine.bytes(), engine.done_at()), (4096, us(210)));
        // The engine was idle from 210 to 300.
        assert_eq!(engine.push(us(300), 512, page), us(400));
        assert_eq!(engine.drop_all(us(350)), 512);
        assert_eq!(engine.push(us(350), 512, page), us(450));
    }

    #[test]
    fn a_read_waits_for_the_page_in_work_and_holds_up_the_rest() {
        let mut engine = Engine::default();
        let access = Duration::from_us(30);
        assert_eq!(engine.read(us(0), access), us(30));
        engine.push(us(100), 4096, Duration::from_us(100));
        engine.push(us(100), 4096, Duration::from_us(100));
        // The first page ends at 200. The second would end at 300, and the read delays it by 30.
        assert_eq!(engine.read(us(150), access), us(230));
        assert_eq!(engine.done_at(), us(330));
    }

    /// A slow model: a list of pages with the start, the end and the size of each.
    #[derive(Default)]
    struct Slow(Vec<(Instant, Instant, u64)>);

    impl Slow {
        fn bytes(&self, at: Instant) -> u64 {
            self.0.iter().filter(|page| page.1 > at).map(|page| page.2).sum()
        }

        fn room_at(&self, bytes: u64, capacity: u64, now: Instant) -> Instant {
            let ends = self.0.iter().map(|page| page.1).filter(|&end| end > now);
            let fits = |at: &Instant| self.bytes(*at) + bytes <= capacity;
            core::iter::once(now).chain(ends).find(fits).expect("an empty buffer should have room")
        }

        fn push(&mut self, at: Instant, bytes: u64, cost: Duration) -> Instant {
            let begin = self.0.last().map_or(at, |page| page.1.max(at));
            self.0.push((begin, begin + cost, bytes));
            begin + cost
        }

        fn read(&mut self, at: Instant, access: Duration) -> Instant {
            let Some(first) = self.0.iter().position(|page| page.1 > at) else {
                return at + access;
            };
            let ready = self.0[first].1 + access;
            // The page in progress counts as programmed only once the read is done, too.
            self.0[first].1 = ready;
            for page in &mut self.0[first + 1..] {
                *page = (page.0 + access, page.1 + access, page.2);
            }
            ready
        }
    }

    proptest! {
        #[test]
        fn pages_come_and_go_as_those_written_down_one_by_one(
            steps in prop::collection::vec((0u64..300, 0u64..120, 1u64..9, any::<bool>()), 1..60)
        ) {
            let mut engine = Engine::default();
            let mut slow = Slow::default();
            let mut now = us(0);
            for (wait, span, sectors, reads) in steps {
                now = now + Duration::from_us(wait);
                let span = Duration::from_us(span);
                let bytes = sectors * 512;
                if reads {
                    prop_assert_eq!(engine.read(now, span), slow.read(now, span));
                } else {
                    engine.advance_to(now);
                    let room = engine.room_at(bytes, 8192, now);
                    prop_assert_eq!(room, slow.room_at(bytes, 8192, now));
                    now = room;
                    prop_assert_eq!(engine.push(now, bytes, span), slow.push(now, bytes, span));
                }
                engine.advance_to(now);
                prop_assert_eq!(engine.bytes(), slow.bytes(now));
                prop_assert!(engine.bytes() <= 8192);
            }
        }
    }
}
