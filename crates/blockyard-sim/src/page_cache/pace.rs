//! The pace of those that dirty the pages of a disk: as fast as the disk writes them back.
//!
//! Linux 6.12 (`balance_dirty_pages`): a writer that has dirtied so many pages looks at the number
//! of dirty pages. Above the free run it pauses so that its pages per second are the rate of the
//! disk's writers, times a factor that is 1 at the setpoint, 2 near the free run and 0 at the hard
//! limit. The rate follows the measured rate of writeback, every 200 ms. All writers of a disk have
//! the same rate, so that several share evenly.
//!
//! Rates are in pages per second, and times in jiffies.

use super::jiffies::{HZ, JIFFY, jiffies};
use super::limits::DirtyLimits;
use blockyard::time::Instant;

/// The time between two looks at the rate of writeback (`BANDWIDTH_INTERVAL`).
const LOOK: u64 = HZ / 5;

/// The longest pause (`MAX_PAUSE`).
const PAUSE_MAX: u64 = HZ / 5;

/// The weight of the past in the rate of writeback: about 3 s, a power of two.
const PERIOD: u64 = (3 * HZ).next_power_of_two();

/// The rate of a disk whose rate is unknown: 100 MiB per second (`INIT_BW`).
const RATE_BEGIN: u64 = (100 << 20) / 4096;

/// A writer that pauses looks again after so many pages or more (`DIRTY_POLL_THRESH`).
const POLL_MIN: u64 = 32;

/// A writer to a disk above its limit looks after so few pages.
const POLL_OVER: u64 = 8;

/// The number that stands for a factor of 1.
const ONE: u64 = 1 << 10;

/// The chunk of a flusher is a multiple of so many pages (`MIN_WRITEBACK_PAGES`).
const CHUNK_MIN: u64 = 1024;

/// Dirty pages and pages under writeback, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Those of all disks.
    pub(crate) all: u64,
    /// Those of the disk.
    pub(crate) of_disk: u64,
    /// The disk's part of the hard limit, by its part of all writeback.
    pub(crate) part: u64,
}

/// The rates of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    limits: DirtyLimits,
    /// The rate of writeback, and the same without its peaks.
    written_rate: u64,
    written_smooth: u64,
    /// The rate of writers before the factor, and the one at which the level would not change.
    rate: u64,
    balanced: u64,
    /// The pages that were dirtied and written back, now and at the last look.
    dirtied: u64,
    written: u64,
    looked: Look,
    /// Whether the disk and all disks together are above their limits.
    is_over: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Look {
    at: u64,
    dirtied: u64,
    written: u64,
}

/// What a writer has dirtied since it last looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirtier {
    pages: u64,
    look_after: u64,
    /// The end of its last pause.
    paused: Option<u64>,
}

impl Default for Dirtier {
    fn default() -> Self {
        Self { pages: 0, look_after: POLL_MIN, paused: None }
    }
}

/// What a writer does after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Continue,
    /// It pauses until this instant, and then goes on.
    Pause(Instant),
    /// It pauses until this instant, and looks again.
    PauseAndLook(Instant),
}

impl Dirtier {
    /// Notes that the writer has dirtied a page of a disk with this `pace`. Returns whether it must
    /// look now.
    pub(crate) const fn dirtied(&mut self, pace: &mut Pace) -> bool {
        self.pages += 1;
        pace.dirtied += 1;
        let after =
            if pace.is_over && self.look_after > POLL_OVER { POLL_OVER } else { self.look_after };
        self.pages >= after
    }
}

impl Pace {
    pub(crate) fn new(limits: DirtyLimits) -> Self {
        Self {
            limits,
            written_rate: RATE_BEGIN,
            written_smooth: RATE_BEGIN,
            rate: RATE_BEGIN,
            balanced: RATE_BEGIN,
            dirtied: 0,
            written: 0,
            looked: Look::default(),
            is_over: false,
        }
    }

    /// Notes that `pages` were written back.
    pub(crate) const fn wrote(&mut self, pages: u64) {
        self.written += pages;
    }

    /// Returns the number of pages that a flusher writes of a file before it turns to the next:
    /// half a second's, but at most an eighth of the limit, and no more than are `wanted`, in whole
    /// steps of 4 MiB.
    pub(crate) fn chunk(&self, wanted: u64) -> u64 {
        let pages = (self.written_smooth / 2).min(self.limits.hard / 8).min(wanted);
        (pages + CHUNK_MIN) / CHUNK_MIN * CHUNK_MIN
    }

    /// Notes that writeback begins, of an `idle` disk or not. The time for which a disk was idle
    /// says nothing about its rate.
    pub(crate) const fn begin(&mut self, now: Instant, idle: bool) {
        let at = jiffies(now);
        if idle && at - self.looked.at > HZ {
            self.looked = Look { at, dirtied: self.dirtied, written: self.written };
        }
    }

    /// Measures the rate of writeback, if the last look is long ago.
    pub(crate) fn measure(&mut self, now: Instant) {
        let elapsed = jiffies(now) - self.looked.at;
        if elapsed > LOOK {
            self.look(elapsed);
        }
    }

    fn look(&mut self, elapsed: u64) {
        let written = (self.written - self.looked.written) * HZ;
        let old = self.written_rate;
        if elapsed > PERIOD {
            self.written_rate = written / elapsed;
            self.written_smooth = self.written_rate;
        } else {
            self.written_rate = (written + old * (PERIOD - elapsed)) / PERIOD;
            // The smooth rate moves an eighth of the way, and only where the rate moves away from
            // it.
            let smooth = self.written_smooth;
            if smooth > old && old >= self.written_rate {
                self.written_smooth -= (smooth - old) >> 3;
            }
            if smooth < old && old <= self.written_rate {
                self.written_smooth += (old - smooth) >> 3;
            }
        }
        self.written_smooth = self.written_smooth.max(1);
        let at = self.looked.at + elapsed;
        self.looked = Look { at, dirtied: self.dirtied, written: self.written };
    }

    /// Returns the factor of the rate at `level`, in parts of [`ONE`] (`wb_position_ratio`).
    fn factor(&self, level: Level) -> u64 {
        let limit = self.limits.hard;
        if level.all >= limit {
            return 0;
        }
        let setpoint = self.limits.setpoint();
        let factor = cubic(setpoint, level.all, limit);
        let part = level.part.min(limit).max((limit - level.all) / 8);
        let share = (part << 16) / (limit | 1);
        // The setpoint of the disk, and the level at which its factor is 0.
        let own = (setpoint * share) >> 16;
        let span = ((limit - part + 8 * self.written_smooth) * share) >> 16;
        let zero = own + span;
        let factor = if level.of_disk < zero - span / 4 {
            factor * (zero - level.of_disk) / ((zero - own) | 1)
        } else {
            factor / 4
        };
        // A disk with few dirty pages gets more of them.
        let reserve = part / 2;
        match level.of_disk {
            few if few >= reserve => factor,
            few if few > reserve / 8 => factor * reserve / few,
            _ => factor * 8,
        }
    }

    /// Moves the rate of writers towards the balanced one (`wb_update_dirty_ratelimit`).
    fn adapt(&mut self, level: Level, factor: u64, elapsed: u64) {
        let dirty_rate = (self.dirtied - self.looked.dirtied) * HZ / elapsed;
        let of_task = ((self.rate * factor) >> 10) + 1;
        let balanced = (of_task * self.written_smooth / (dirty_rate | 1)).min(self.written_smooth);
        let (low, high) = [self.balanced, of_task]
            .into_iter()
            .fold((balanced, balanced), |(low, high), rate| (low.min(rate), high.max(rate)));
        // Below the setpoint the rate only rises, and above it only falls.
        let step = if level.all < self.limits.setpoint() {
            low.saturating_sub(self.rate)
        } else {
            self.rate.saturating_sub(high)
        };
        let shift = self.rate / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        let rate = if self.rate < balanced { self.rate + step } else { self.rate - step };
        self.rate = rate.max(1);
        self.balanced = balanced;
    }

    /// Lets a writer look at the `level`, and returns what it does.
    pub(crate) fn judge(&mut self, dirtier: &mut Dirtier, now: Instant, level: Level) -> Verdict {
        let at = jiffies(now);
        if level.all <= self.limits.free_run() {
            let left = self.limits.hard - level.all;
            *dirtier = Dirtier { pages: 0, look_after: 1 << (left.ilog2() / 2), paused: Some(at) };
            return Verdict::Continue;
        }
        self.is_over = level.of_disk > level.part && level.all > self.limits.hard;
        let factor = self.factor(level);
        let elapsed = at - self.looked.at;
        if elapsed > LOOK {
            self.adapt(level, factor, elapsed);
            self.look(elapsed);
        }
        let rate = (self.rate * factor) >> 10;
        let longest = self.longest_pause(level.of_disk);
        let (shortest, look_after) = self.shortest_pause(longest, rate);
        let period = (HZ * dirtier.pages).checked_div(rate).unwrap_or(longest);
        // The last pause may end in the future, where it was due for longer than it took.
        let due = dirtier.paused.unwrap_or(at) + period;
        let pause = if rate == 0 { longest } else { due.saturating_sub(at) };
        if rate > 0 && pause < shortest {
            self.go_on(dirtier, at, period, due);
            return Verdict::Continue;
        }
        // A pause that is due for longer is made up for later, by as much again at most.
        let more = pause.saturating_sub(longest).min(longest);
        let pause = pause.min(longest);
        dirtier.paused = Some(at + more + pause);
        // A timer of n jiffies ends at a tick, and never early: 4 ms last from 4 to 8 ms.
        let until = Instant::from_ns((at + pause + 1) * JIFFY.as_ns());
        if rate == 0 {
            return Verdict::PauseAndLook(until);
        }
        dirtier.pages = 0;
        dirtier.look_after = look_after;
        Verdict::Pause(until)
    }

    /// Lets a writer go on whose pause would be too short.
    const fn go_on(&self, dirtier: &mut Dirtier, at: u64, period: u64, due: u64) {
        // A writer that was slower than its rate for more than a second has no credit for it.
        if at > due + HZ {
            dirtier.paused = Some(at);
            dirtier.pages = 0;
        } else if period > 0 {
            dirtier.paused = match dirtier.paused {
                Some(paused) => Some(paused + period),
                None => Some(at),
            };
            dirtier.pages = 0;
        } else if dirtier.look_after <= dirtier.pages {
            dirtier.look_after += dirtier.pages;
        }
    }

    /// Returns the longest pause of a writer, so that the disk has enough to write meanwhile
    /// (`wb_max_pause`).
    fn longest_pause(&self, of_disk: u64) -> u64 {
        let pages = 1 + self.written_smooth / (1 + HZ / 8).next_power_of_two();
        (of_disk / pages + 1).min(PAUSE_MAX)
    }

    /// Returns the shortest pause of a writer, and the pages after which it looks again
    /// (`wb_min_pause`).
    fn shortest_pause(&self, longest: u64, rate: u64) -> (u64, u64) {
        let second = HZ.next_power_of_two();
        let more = self.written_smooth.ilog2().saturating_sub(self.rate.ilog2());
        // 10 ms for one writer, and 10 ms more where several share the rate of half, a quarter...
        let mut pause = ((HZ / 100).max(1) + u64::from(more) * 10 * HZ / 1024).min(1 + longest / 2);
        let mut pages = self.rate * pause / second;
        if pages < POLL_MIN {
            pause = longest;
            pages = self.rate * pause / second;
            if pages > POLL_MIN {
                pages = POLL_MIN;
                pause = HZ * POLL_MIN / self.rate;
            }
        }
        if HZ * pages / (rate + 1) > longest {
            pause = longest;
            pages = rate * pause / second;
        }
        (if pages >= POLL_MIN { 1 + pause / 2 } else { pause }, pages)
    }
}

/// Returns 1 + x^3, where x falls from 1 over 0 at the setpoint to -1 at the limit.
fn cubic(setpoint: u64, level: u64, limit: u64) -> u64 {
    let span = i128::from((limit - setpoint) | 1);
    let x = ((i128::from(setpoint) - i128::from(level)) << 10) / span;
    let factor = ((((x * x) >> 10) * x) >> 10) + i128::from(ONE);
    u64::try_from(factor.clamp(0, i128::from(2 * ONE))).expect("a factor from 0 to 2 should fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of the recordings of a writer that is four times as fast as its disk: 8 MiB and
    /// 32 MiB, so that the setpoint is 6656 pages.
    fn pace() -> Pace {
        Pace::new(DirtyLimits { background: 2048, hard: 8192, raises_part: true })
    }

    const fn level(all: u64, of_disk: u64, part: u64) -> Level {
        Level { all, of_disk, part }
    }

    /// A line of `balance_dirty_pages` of Linux 6.12: limit 8192, setpoint 6656, 7994 dirty pages,
    /// setpoint of the disk 6274, of which 7992 are its own, rate 100,580 KiB/s, and 33,884 KiB/s
    /// for the writer. The smooth rate of writeback was 82,704 KiB/s, by the next line of
    /// `bdi_dirty_ratelimit`; a part of 7723 pages has that setpoint.
    #[test]
    fn the_rate_of_a_writer_is_that_of_a_recording() {
        let pace = Pace { written_smooth: 82_704 / 4, rate: 100_580 / 4, ..pace() };
        let factor = pace.factor(level(7994, 7992, 7723));
        assert_eq!(((pace.rate * factor) >> 10) * 4, 33_884);
        assert_eq!(pace.factor(level(8192, 8190, 7723)), 0);
    }

    /// The first line of `bdi_dirty_ratelimit`: writers dirtied 153,724 KiB/s at a rate of 102,400
    /// KiB/s, which the factor made 50,504. The balanced rate is 33,640 KiB/s. The level is above
    /// the setpoint, where the rate does not fall below the last balanced one, 102,400.
    #[test]
    fn the_balanced_rate_is_that_of_a_recording() {
        let mut pace = Pace { dirtied: 153_724 / 4, ..pace() };
        pace.adapt(level(8000, 8000, 1368), 505, HZ);
        assert_eq!((pace.balanced * 4, pace.rate * 4), (33_640, 102_400));
    }

    /// The next two lines: the rate of writeback falls from 102,400 KiB/s to 99,320 and 95,984. The
    /// smooth rate follows one look later: an eighth of 3080 less, 102,016. That is the writeback
    /// of 2171 and 1749 pages in 52 jiffies: (2171 * 250 + 25600 * 972) / 1024 = 24830 pages per
    /// second.
    #[test]
    fn the_rate_of_writeback_is_that_of_a_recording() {
        let mut pace = pace();
        let mut rates = Vec::new();
        for (jiffies, pages) in [(52, 2171), (104, 1749)] {
            pace.wrote(pages);
            pace.measure(Instant::from_ns(jiffies * JIFFY.as_ns()));
            rates.push((pace.written_rate * 4, pace.written_smooth * 4));
        }
        assert_eq!(rates, [(99_320, 102_400), (95_984, 102_016)]);
    }

    /// In the recording a writer with a rate of 100,580 KiB/s dirties 196 pages and then pauses. At
    /// 33,884 KiB/s they take 5 jiffies of 4 ms, of which it has used one: it pauses for 4, which
    /// end with the fifth tick.
    #[test]
    fn a_pause_is_that_of_a_recording() {
        let mut pace = Pace { written_smooth: 82_704 / 4, rate: 100_580 / 4, ..pace() };
        pace.looked.at = 990;
        let mut dirtier = Dirtier { pages: 196, look_after: 196, paused: Some(999) };
        let now = Instant::from_ns(1000 * JIFFY.as_ns());
        let verdict = pace.judge(&mut dirtier, now, level(7994, 7992, 7723));
        assert_eq!(verdict, Verdict::Pause(Instant::from_ns(1005 * JIFFY.as_ns())));
        assert_eq!((dirtier.pages, dirtier.look_after, dirtier.paused), (0, 196, Some(1004)));
    }

    /// The same writer, whose last pause should have lasted until jiffy 1006: one of 11 jiffies is
    /// due. The longest is one of 7992 / (1 + 20,676 / 32) + 1 = 13 jiffies. Of one of 40 that is
    /// due, 13 are made up for later, from the end of the pause on.
    #[test]
    fn a_pause_that_was_cut_short_is_made_up_for() {
        let now = Instant::from_ns(1000 * JIFFY.as_ns());
        for (paused, pause, next) in [(1006, 11, 1011), (1035, 13, 1026)] {
            let mut pace = Pace { written_smooth: 82_704 / 4, rate: 100_580 / 4, ..pace() };
            pace.looked.at = 990;
            let mut dirtier = Dirtier { pages: 196, look_after: 196, paused: Some(paused) };
            let verdict = pace.judge(&mut dirtier, now, level(7994, 7992, 7723));
            let until = Instant::from_ns((1000 + pause + 1) * JIFFY.as_ns());
            assert_eq!((verdict, dirtier.paused), (Verdict::Pause(until), Some(next)));
        }
    }

    /// Up to 5120 pages nobody pauses. With 3072 pages left to the limit a writer looks after 32:
    /// two to the half of 11, rounded down.
    #[test]
    fn nobody_pauses_in_the_free_run() {
        let mut dirtier = Dirtier { pages: 32, ..Dirtier::default() };
        let verdict = pace().judge(&mut dirtier, Instant::ZERO, level(5120, 5120, 0));
        assert_eq!((verdict, dirtier.look_after), (Verdict::Continue, 32));
        let mut dirtier = Dirtier::default();
        let verdict = pace().judge(&mut dirtier, Instant::ZERO, level(8192, 8192, 8192));
        // At 25,600 pages per second the disk has 8192 / (1 + 25600 / 32) = 10 jiffies to do, and
        // one more. The pause ends with the tick after them.
        assert_eq!(verdict, Verdict::PauseAndLook(Instant::from_ns(12 * JIFFY.as_ns())));
    }
}
