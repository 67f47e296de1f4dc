//! Writeback throttling (wbt): bounds writeback and discards in flight, so that reads stay fast.
//!
//! As in Linux 6.12 to 7.3 (`blk-wbt.c`). Writeback is what a page cache writes
//! ([`Flags::WRITEBACK`]); a direct write is none, whether somebody waits for it or not. Each bio
//! of writeback that joins no request needs a place in its line before it gets a tag. Discards
//! have a line of their own. A request keeps its place until it has ended, or joins another one.
//!
//! | bio | requests in flight at most, at step 0 |
//! |---|---|
//! | writeback with [`Flags::SYNC`] or of metadata; any, for 1 s after a pause | 16 |
//! | other writeback, unless a read came or ended within 100 ms | 8 |
//! | other writeback, [`Flags::BACKGROUND`], discards | 4 |
//!
//! At the end of each window of 100 ms the depth goes a step down if the fastest read of the window
//! took longer than the target in the device, or if one read has been there for longer than the
//! window. It goes a step up if reads are fast, or if there are only writes. The windows of smaller
//! depths are shorter. There are no windows while nothing is throttled: a disk with direct I/O
//! alone has none.
//!
//! A submitter that finds no place sleeps. Those that sleep are woken in the order in which they
//! came, in batches: when nothing is in flight any more if the device has a write cache and no
//! writer paused lately, and otherwise when enough places for half of the smallest limit are free.
//!
//! # Rules
//!
//! - **[throttled-wait-ends]** While a submitter sleeps in a line, the window has an end. The last
//!   request of the line that ends wakes as many as there are places, and so does the end of a
//!   window without any: so a woken submitter that does not come delays the others by a window.
//!
//! Linux gives a place to the submitter that it wakes. Here the next one that comes takes the
//! place, which is another one only if several submit writeback to one disk. Linux counts ticks of
//! 4 ms.

mod depth;
#[cfg(test)]
mod tests;

use crate::bio::{Flags, Op};
use crate::policy::WbtTunables;
use crate::tag::Full;
use crate::time::{Duration, Instant};
use crate::unit::RequestId;
use alloc::collections::VecDeque;
use core::cmp::Ordering;
use depth::Depth;

/// The length of a window at step 0 and above.
const WINDOW: Duration = Duration::from_ms(100);

/// The time after a read for which writeback counts as competing with reads.
const READ_IS_RECENT: Duration = Duration::from_ms(100);

/// The time after the pause of a writer for which pages must be cleaned faster.
const PAUSE_IS_RECENT: Duration = Duration::from_secs(1);

/// The fewest writes of a window with which its reads say something about writeback.
const WRITES_MIN: u32 = 3;

/// After so many windows in a row that say nothing, the depth goes a step towards the usual one.
const UNKNOWN_MAX: u32 = 5;

/// The line in which a bio or request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Writeback,
    Discard,
}

impl Class {
    /// Returns the line of a bio or request, if it is throttled.
    #[inline]
    pub(crate) const fn of(op: Op, flags: Flags) -> Option<Self> {
        match op {
            Op::Write if flags.contains(Flags::WRITEBACK) => Some(Self::Writeback),
            Op::Discard => Some(Self::Discard),
            _ => None,
        }
    }
}

/// A submitter that sleeps, and the flags of its bio.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    waiter: u64,
    flags: Flags,
}

/// The requests of a class in flight, and the submitters that wait for a place among them.
#[derive(Debug)]
struct Line {
    in_flight: u32,
    sleepers: VecDeque<Sleeper>,
    /// Places for submitters that were woken and have not come yet.
    promised: u32,
}

impl Line {
    fn new(max_waiters: u32) -> Self {
        let sleepers = VecDeque::with_capacity(max_waiters as usize);
        Self { in_flight: 0, sleepers, promised: 0 }
    }
}

/// The conclusion from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    ReadsAreSlow,
    ReadsAreFast,
    OnlyWrites,
    Unknown,
}

/// The ends of requests since the window began.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    reads: u32,
    /// The time of the fastest read in the device.
    fastest: Duration,
    writes: u32,
}

/// The throttle of one disk.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// The target: the time in the device that the fastest read of a window may have.
    latency: Duration,
    has_write_cache: bool,
    depth: Depth,
    /// One for each [`Class`].
    lines: [Line; 2],
    /// The end of the window; [`Instant::MAX`]: there is none.
    window_ends: Instant,
    window: Duration,
    samples: Samples,
    /// Windows in a row that said nothing.
    unknown: u32,
    /// One read that the driver owns, and since when.
    watched: Option<(RequestId, Instant)>,
    /// When a read was last submitted or ended.
    last_read: Option<Instant>,
    /// When a writer last paused.
    last_pause: Option<Instant>,
}

impl Throttle {
    /// Returns a throttle with memory for `max_waiters` in each line.
    pub(crate) fn new(tunables: WbtTunables, has_write_cache: bool, max_waiters: u32) -> Self {
        Self {
            latency: tunables.latency,
            has_write_cache,
            depth: Depth::new(tunables.queue_depth),
            lines: [Line::new(max_waiters), Line::new(max_waiters)],
            window_ends: Instant::MAX,
            window: WINDOW,
            samples: Samples::default(),
            unknown: 0,
            watched: None,
            last_read: None,
            last_pause: None,
        }
    }

    /// The heap that a throttle takes, with itself, in bytes.
    pub(crate) const fn heap(max_waiters: u32) -> usize {
        size_of::<Self>() + 2 * max_waiters as usize * size_of::<Sleeper>()
    }

    /// The end of the window; [`Instant::MAX`]: there is none.
    #[inline]
    pub(crate) const fn window_ends(&self) -> Instant {
        self.window_ends
    }

    /// The requests of a class in flight.
    pub(crate) const fn in_flight(&self, class: Class) -> u32 {
        self.lines[class as usize].in_flight
    }

    /// Notes a read that is submitted or has ended.
    #[inline]
    pub(crate) const fn note_read(&mut self, now: Instant) {
        self.last_read = Some(now);
    }

    /// Notes that a writer pauses because it dirties pages faster than they are written back.
    pub(crate) const fn note_pause(&mut self, now: Instant) {
        self.last_pause = Some(now);
    }

    fn paused_lately(&self, now: Instant) -> bool {
        self.last_pause.is_some_and(|at| now.since(at) < PAUSE_IS_RECENT)
    }

    /// Returns how many requests of `class` may be in flight with one that has `flags`.
    fn limit(&self, class: Class, flags: Flags, now: Instant) -> u32 {
        let competes = self.last_read.is_some_and(|at| now.since(at) < READ_IS_RECENT);
        let is_urgent = flags.intersects(Flags::SYNC | Flags::META) || self.paused_lately(now);
        if class == Class::Discard {
            self.depth.background()
        } else if is_urgent {
            self.depth.most()
        } else if competes || flags.contains(Flags::BACKGROUND) {
            self.depth.background()
        } else {
            self.depth.normal()
        }
    }

    /// Whether a bio of `class` has a place. One that `begins` stands behind those that sleep,
    /// unless one of them was woken: it is taken to be that one. A later part of a split bio goes
    /// before all.
    pub(crate) fn admits(&self, class: Class, flags: Flags, begins: bool, now: Instant) -> bool {
        let line = &self.lines[class as usize];
        let stands_behind = begins && line.promised == 0 && !line.sleepers.is_empty();
        !stands_behind && line.in_flight < self.limit(class, flags, now)
    }

    /// Gives a bio that [`Self::admits`] has let in its place.
    pub(crate) fn entered(&mut self, class: Class, begins: bool, now: Instant) {
        let line = &mut self.lines[class as usize];
        line.promised = line.promised.saturating_sub(u32::from(begins));
        line.in_flight += 1;
        self.begin_window(now);
    }

    /// Lets `waiter` sleep, whose bio of `class` found no place.
    pub(crate) fn wait(
        &mut self,
        class: Class,
        flags: Flags,
        waiter: u64,
        now: Instant,
    ) -> Result<(), Full> {
        let line = &mut self.lines[class as usize];
        if line.sleepers.len() == line.sleepers.capacity() {
            return Err(Full);
        }
        // A part of a split bio has taken the place of one that was woken: it sleeps on as the
        // first one.
        let sleeper = Sleeper { waiter, flags };
        match line.promised.checked_sub(1) {
            Some(left) => {
                line.promised = left;
                line.sleepers.push_front(sleeper);
            }
            None => line.sleepers.push_back(sleeper),
        }
        self.begin_window(now); // [throttled-wait-ends]
        Ok(())
    }

    /// Notes that the driver owns `id`.
    #[inline]
    pub(crate) fn issued(&mut self, id: RequestId, op: Op, now: Instant) {
        if op.is_read() && self.watched.is_none() {
            self.watched = Some((id, now));
        }
    }

    /// Notes that the driver no longer owns `id`.
    #[inline]
    pub(crate) fn left_driver(&mut self, id: RequestId) {
        self.watched.take_if(|(watched, _)| *watched == id);
    }

    /// Notes that a request has ended that was in the device for `latency`.
    #[inline]
    pub(crate) fn sample(&mut self, op: Op, latency: Duration) {
        if self.window_ends == Instant::MAX {
            return;
        }
        let samples = &mut self.samples;
        match op {
            Op::Read => {
                let is_fastest = samples.reads == 0 || latency < samples.fastest;
                samples.fastest = if is_fastest { latency } else { samples.fastest };
                samples.reads += 1;
            }
            Op::Write | Op::Discard | Op::WriteZeroes | Op::SecureErase => samples.writes += 1,
            Op::Flush | Op::DriverIn | Op::DriverOut => {}
        }
    }

    /// Takes back the place of a request of `class` that has ended or joined another one. Names the
    /// waiters to wake.
    pub(crate) fn ended(&mut self, class: Class, now: Instant, woken: &mut VecDeque<u64>) {
        let paused_lately = self.paused_lately(now);
        let line = &mut self.lines[class as usize];
        debug_assert!(line.in_flight > 0, "[throttled-wait-ends]: {class:?} ends without a place");
        line.in_flight -= 1;
        // With a write cache the line runs empty, so that reads find an idle device between two
        // batches.
        let limit = match class {
            Class::Discard => self.depth.background(),
            Class::Writeback if self.has_write_cache && !paused_lately => 0,
            Class::Writeback => self.depth.normal(),
        };
        // With limits of 4 and 8: the first of 8 places wakes nobody, the second one does.
        let places = limit.saturating_sub(line.in_flight);
        let is_enough = places > 0 && places >= self.depth.background() / 2;
        if line.in_flight == 0 || is_enough {
            self.wake(class, now, woken);
        }
    }

    /// Wakes those that sleep in a line, from the first on, while they find places.
    fn wake(&mut self, class: Class, now: Instant, woken: &mut VecDeque<u64>) {
        while let Some(&Sleeper { waiter, flags }) = self.lines[class as usize].sleepers.front() {
            let limit = self.limit(class, flags, now);
            let line = &mut self.lines[class as usize];
            if line.in_flight + line.promised >= limit {
                return;
            }
            line.sleepers.pop_front();
            line.promised += 1;
            woken.push_back(waiter);
        }
    }

    /// Wakes all that sleep: the queue ends.
    pub(crate) fn wake_all(&mut self, woken: &mut VecDeque<u64>) {
        let sleepers = self.lines.iter_mut().flat_map(|line| line.sleepers.drain(..));
        woken.extend(sleepers.map(|sleeper| sleeper.waiter));
    }

    /// Begins a window, unless there is one.
    fn begin_window(&mut self, now: Instant) {
        if self.window_ends < Instant::MAX {
            return;
        }
        // A window of 100 ms becomes one of 72.7, 59.3 and 50 ms at steps 1, 2 and 3.
        let scale = u64::try_from(self.depth.step()).map_or(16, |step| ((step + 1) << 8).isqrt());
        self.window = Duration::from_ns((WINDOW.as_ns() << 4) / scale);
        self.window_ends = now + self.window;
        self.samples = Samples::default();
    }

    fn judge(&self, now: Instant) -> Verdict {
        let Samples { reads, fastest, writes } = self.samples;
        // A read that does not end leaves no sample.
        let waits = self.watched.map_or(Duration::ZERO, |(_, since)| now.since(since));
        let writes_are_in_flight = self.lines.iter().any(|line| line.in_flight > 0);
        if waits > self.window || (waits > self.latency && reads == 0) {
            Verdict::ReadsAreSlow
        } else if reads > 0 && writes >= WRITES_MIN {
            match fastest > self.latency {
                true => Verdict::ReadsAreSlow,
                false => Verdict::ReadsAreFast,
            }
        } else if writes > 0 || self.paused_lately(now) || writes_are_in_flight {
            Verdict::OnlyWrites
        } else {
            Verdict::Unknown
        }
    }

    /// Ends the window, moves the depth by a step, and begins the next window if there is anything
    /// to watch. Names the waiters to wake.
    #[cold]
    pub(crate) fn end_window(&mut self, now: Instant, woken: &mut VecDeque<u64>) {
        debug_assert!(self.window_ends <= now, "a window until {}", self.window_ends);
        let was_in_flight = self.lines.iter().any(|line| line.in_flight > 0);
        let step = self.depth.step();
        let moved = match self.judge(now) {
            Verdict::ReadsAreSlow => self.depth.lower(true),
            Verdict::ReadsAreFast | Verdict::OnlyWrites => self.depth.raise(),
            Verdict::Unknown => {
                self.unknown += 1;
                match self.depth.step().cmp(&0) {
                    _ if self.unknown < UNKNOWN_MAX => false,
                    Ordering::Greater => self.depth.raise(),
                    Ordering::Less => self.depth.lower(false),
                    Ordering::Equal => false,
                }
            }
        };
        if moved {
            self.unknown = 0;
        }
        // Steps count downwards: step -1 is above step 0.
        let is_raised = self.depth.step() < step;
        self.window_ends = Instant::MAX;
        for class in [Class::Writeback, Class::Discard] {
            let line = &mut self.lines[class as usize];
            if line.in_flight == 0 {
                line.promised = 0; // [throttled-wait-ends]: those that were woken may not come
            }
            // Reads were slow at a step down: those that sleep wait for the writes in flight.
            if is_raised || line.in_flight == 0 {
                self.wake(class, now, woken);
            }
        }
        let sleep = self.lines.iter().any(|line| !line.sleepers.is_empty());
        if self.depth.step() != 0 || was_in_flight || sleep {
            self.begin_window(now);
        }
    }
}
