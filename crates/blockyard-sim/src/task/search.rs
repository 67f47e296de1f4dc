//! The search of a job for the greatest depth at which its I/Os keep a latency (`latency_target`).
//!
//! As in fio, the depth doubles from 1 until a window misses the target, and then halves the
//! distance between a depth that kept it and one that missed it. The last window, at the depth that
//! was found, is what the job reports.

use blockyard::time::{Duration, Instant};
use blockyard_fio::job::{Job, LatencyTarget};

/// The successes at the depth below a miss, after which that depth is tried again.
const TRIES_AGAIN_AFTER: u32 = 3;

/// The thousandths of a percent in the whole.
const WHOLE: u32 = 100_000;

#[derive(Debug)]
pub(super) struct Search {
    target: LatencyTarget,
    depth_max: u32,
    /// The depth that is tried now.
    depth: u32,
    /// The greatest depth that kept the target, and the least one that missed it.
    low: u32,
    high: u32,
    /// Successes in a row just below the miss.
    stable: u32,
    since: Instant,
    ios: u64,
    missed: u64,
    state: State,
    /// I/O in flight belongs to another depth, and no more is issued before it has ended.
    settles: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Looking,
    /// The depth is found. A last window measures it, from its begin on if it has not begun.
    Measuring {
        begun: bool,
    },
    Done,
}

impl Search {
    /// Returns the search of `job`, if it has a target.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let target = job.targets.latency;
        (target.target_ns > 0).then(|| Self {
            target,
            depth_max: job.depth(),
            depth: 1,
            low: 1,
            high: job.depth(),
            stable: 0,
            since: Instant::ZERO,
            ios: 0,
            missed: 0,
            state: State::Looking,
            settles: false,
        })
    }

    pub(super) const fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) const fn target(&self) -> Duration {
        Duration::from_ns(self.target.target_ns)
    }

    pub(super) const fn settles(&self) -> bool {
        self.settles
    }

    /// Notes that no I/O is in flight at `now`. Returns whether the last window begins, which alone
    /// is reported.
    pub(super) fn end_settling(&mut self, now: Instant) -> bool {
        if !core::mem::take(&mut self.settles) {
            return false;
        }
        self.new_window(now);
        let begins = self.state == State::Measuring { begun: false };
        if begins {
            self.state = State::Measuring { begun: true };
        }
        begins
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Notes the latency of an I/O. Returns whether it misses the target of all I/Os at the least
    /// depth, so that no depth keeps it.
    pub(super) fn count(&mut self, latency: Duration) -> bool {
        if self.settles || self.is_done() {
            return false; // it was issued at a depth that has been judged
        }
        self.ios += 1;
        if latency.as_ns() <= self.target.target_ns {
            return false;
        }
        // Where all I/Os must keep the target, one that misses it decides.
        if self.target.share == WHOLE {
            return self.lower_depth();
        }
        self.missed += 1;
        false
    }

    /// Judges the window if it is over at `now`.
    pub(super) fn judge(&mut self, now: Instant) {
        // A window judges only I/Os of one depth, and must be long enough to say something.
        if self.settles || self.is_done() || now.since(self.since).as_ns() < self.target.window_ns {
            return;
        }
        debug_assert!(self.missed <= self.ios, "{self:?}");
        let kept = u128::from(self.ios - self.missed) * u128::from(WHOLE);
        let asked = u128::from(self.ios) * u128::from(self.target.share);
        if self.ios > 0 && kept >= asked {
            self.raise_depth(now);
        } else if self.lower_depth() {
            self.new_window(now);
        }
    }

    fn new_window(&mut self, now: Instant) {
        self.since = now;
        self.ios = 0;
        self.missed = 0;
    }

    /// Tries a lower depth. Returns true if there is none.
    const fn lower_depth(&mut self) -> bool {
        if self.depth == 1 {
            return true;
        }
        debug_assert!(0 < self.low && self.low <= self.depth, "a depth is not below the least");
        self.high = self.depth;
        // A depth that kept the target has missed it now. Continue from the one below it.
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low);
        self.stable = 0;
        self.settles = true;
        false
    }

    /// Tries a higher depth.
    fn raise_depth(&mut self, now: Instant) {
        debug_assert!(self.low <= self.depth && self.depth <= self.depth_max, "{self:?}");
        let before = self.depth;
        self.low = before;
        // The depth is the greatest that may keep the target. A miss at the next one may have been
        // chance, so it is tried again after some successes.
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= TRIES_AGAIN_AFTER {
                self.high += 1;
                self.stable = 0;
            }
        }
        let missed_before = self.high != self.depth_max;
        // After a miss at 64, a success at 48 leads to 56. Without a miss the depth doubles.
        let next = if missed_before { u32::midpoint(before, self.high) } else { before * 2 };
        self.depth = next.min(self.depth_max);
        self.new_window(now);
        if self.depth != before || self.target.goes_on {
            return;
        }
        match self.state {
            State::Looking => {
                self.state = State::Measuring { begun: false };
                self.settles = true;
            }
            State::Measuring { .. } | State::Done => self.state = State::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_fio::job::{NoSource, parse_args};

    const WINDOW_NS: u64 = 1_000_000;

    fn search(options: &[&str]) -> Search {
        let args = ["--name=a", "--direct=1", "--ioengine=libaio", "--latency_target=100"];
        let args = args.into_iter().chain(["--latency_window=1000"]).chain(options.iter().copied());
        let job = parse_args(args, &NoSource).unwrap().jobs.remove(0);
        Search::of(&job).unwrap()
    }

    /// Lets I/Os of a device with 10 us for each I/O in flight pass for window after window.
    /// Returns the depths.
    fn depths(search: &mut Search, windows: u64) -> Vec<u32> {
        let mut all = Vec::new();
        for window in 0..windows {
            let now = Instant::from_ns(window * WINDOW_NS);
            search.end_settling(now);
            all.push(search.depth());
            for _ in 0..100 {
                search.count(Duration::from_ns(u64::from(search.depth()) * 10_000));
            }
            search.judge(Instant::from_ns((window + 1) * WINDOW_NS));
            if search.is_done() {
                break;
            }
        }
        all
    }

    /// Ten I/Os in flight take 100 us.
    #[test]
    fn the_greatest_depth_that_keeps_the_target_is_found() {
        let mut search = search(&["--iodepth=64", "--latency_percentile=90"]);
        let all = depths(&mut search, 100);
        assert_eq!(all[..5], [1, 2, 4, 8, 16]);
        assert_eq!(all.last(), Some(&10));
        assert!(search.is_done());
    }

    #[test]
    fn a_depth_that_is_enough_is_kept_while_the_job_goes_on() {
        let mut search = search(&["--iodepth=4", "--latency_percentile=90", "--latency_run"]);
        assert_eq!(depths(&mut search, 20).last(), Some(&4));
        assert!(!search.is_done());
    }

    #[test]
    fn one_late_io_is_enough_where_all_must_be_in_time() {
        let mut search = search(&["--iodepth=8"]);
        assert_eq!(depths(&mut search, 3), [1, 2, 4]);
        assert_eq!(search.depth(), 8);
        assert!(!search.count(Duration::from_us(101)));
        assert_eq!((search.depth(), search.settles()), (6, true));
        let mut lowest = self::search(&["--iodepth=8"]);
        assert!(lowest.count(Duration::from_us(101)), "no depth is lower");
    }

    #[test]
    fn the_last_window_begins_without_io_in_flight() {
        let mut search = search(&["--iodepth=1"]);
        search.count(Duration::from_us(1));
        search.judge(Instant::from_ns(WINDOW_NS));
        assert!(search.settles() && !search.is_done());
        assert!(search.end_settling(Instant::from_ns(WINDOW_NS + 1)), "the last window begins");
        search.count(Duration::from_us(1));
        search.judge(Instant::from_ns(2 * WINDOW_NS + 1));
        assert!(search.is_done());
    }
}
