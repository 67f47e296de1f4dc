//! The peak rate of the device, which is estimated from dispatches.
//!
//! In intervals of a second, the sectors dispatched are divided by the time; the device must have
//! been busy all along. The estimate follows by a part of the difference that grows with the part
//! of sequential dispatches and with the length of the interval. From it come the largest budget,
//! which is what the device transfers in the time of a slot, and the time of interactive raising.

use crate::time::{Duration, Instant};

/// The bits of the fraction of a rate.
const SHIFT: u32 = 16;
/// Dispatches and time that an estimate needs.
const LEAST_SAMPLES: u64 = 32;
const LEAST_INTERVAL: Duration = Duration::from_ms(300);
/// The time of a whole interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// Without a dispatch for as long, and nothing in the device, the interval ends.
const PAUSE: Duration = Duration::from_ms(100);
/// Rates above 20 sectors in a microsecond (10 GB/s) are taken for an error.
const HIGHEST: u64 = 20 << SHIFT;

/// Sectors in a microsecond, times 2^16, of the devices for which interactive raising was measured:
/// 104 MiB/s for a disk, 246 MiB/s without moving parts. New devices are taken to have two thirds
/// of it.
pub(super) const fn reference(rotational: bool) -> u32 {
    if rotational { 14_000 } else { 33_000 }
}

/// The estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    /// Sectors in a microsecond, times 2^16.
    rate: u32,
    /// Dispatches in this interval, and those that were sequential.
    samples: u64,
    sequential: u64,
    /// Sectors dispatched in this interval, and the most of one request.
    sectors: u64,
    largest: u32,
    first: Instant,
    last: Instant,
    took: Duration,
    pub(super) last_completion: Instant,
}

impl PeakRate {
    pub(super) const fn new(rotational: bool) -> Self {
        Self {
            rate: reference(rotational) * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first: Instant::ZERO,
            last: Instant::ZERO,
            took: Duration::ZERO,
            last_completion: Instant::ZERO,
        }
    }

    /// Returns the rate in sectors in a microsecond, times 2^16.
    pub(super) const fn rate(&self) -> u32 {
        self.rate
    }

    /// Returns the sectors that the device transfers in `time`, which is counted in milliseconds.
    pub(super) fn sectors_in(&self, time: Duration) -> u32 {
        let sectors =
            (u64::from(self.rate) * 1000).saturating_mul(time.as_ns() / 1_000_000) >> SHIFT;
        u32::try_from(sectors).unwrap_or(u32::MAX)
    }

    /// Notes a dispatch. Returns whether the estimate has changed.
    pub(super) fn dispatched(
        &mut self,
        sectors: u32,
        is_seek: bool,
        in_driver: u32,
        now: Instant,
    ) -> bool {
        let mut has_changed = false;
        if self.samples == 0 {
            self.restart(Some(sectors), now);
        } else if now.since(self.last) > PAUSE && in_driver == 0 {
            has_changed = self.end_interval(Some(sectors), now);
        } else {
            self.samples += 1;
            let is_busy = in_driver > 0 || now.since(self.last_completion) < super::MIN_THINK;
            self.sequential += u64::from(is_busy && !is_seek);
            self.sectors += u64::from(sectors);
            // The largest request of the last 32.
            let is_due = self.samples.is_multiple_of(32);
            self.largest = if is_due { sectors } else { self.largest.max(sectors) };
            self.took = now.since(self.first);
            if self.took >= INTERVAL {
                has_changed = self.end_interval(Some(sectors), now);
            }
        }
        self.last = now;
        has_changed
    }

    /// Notes a completion. After a long time with a low rate the interval ends: the device was not
    /// kept busy. Returns whether the estimate has changed.
    pub(super) fn completed(&mut self, now: Instant) -> bool {
        let pause = now.since(self.last_completion);
        let pause_us = pause.as_ns() / 1000;
        // Less than 1/1024 of a sector in a microsecond: 500 KB/s.
        let is_slow = pause > super::MIN_THINK
            && (u64::from(self.largest) << SHIFT) / pause_us < 1 << (SHIFT - 10);
        let has_changed = is_slow && self.end_interval(None, now);
        self.last_completion = now;
        has_changed
    }

    fn end_interval(&mut self, sectors: Option<u32>, now: Instant) -> bool {
        let has_changed = self.estimate();
        self.restart(sectors, now);
        has_changed
    }

    const fn restart(&mut self, sectors: Option<u32>, now: Instant) {
        let Some(sectors) = sectors else {
            self.samples = 0;
            return;
        };
        self.first = now;
        self.last = now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sectors as u64;
        self.largest = sectors;
    }

    /// Moves the estimate by what the interval has measured.
    fn estimate(&mut self) -> bool {
        if self.samples < LEAST_SAMPLES || self.took < LEAST_INTERVAL {
            return false;
        }
        // The requests of the interval may have ended after its last dispatch.
        debug_assert!(self.sequential <= self.samples, "{} of {}", self.sequential, self.samples);
        let took = self.took.max(self.last_completion.since(self.first));
        let measured = (self.sectors << SHIFT) / (took.as_ns() / 1000);
        let is_random = self.sequential < 3 * self.samples / 4;
        if (is_random && measured <= u64::from(self.rate)) || measured > HIGHEST {
            return false;
        }
        // A part of 1/10 to 1/2: the more, the more sequential and the longer the interval was.
        let part = 9 * self.sequential / self.samples * took.as_ns() / INTERVAL.as_ns();
        let divisor = 10 - part.min(8);
        let moved = u64::from(self.rate) * (divisor - 1) / divisor + measured / divisor;
        self.rate = u32::try_from(moved.max(1)).unwrap_or(u32::MAX);
        true
    }
}

/// Whether the device serves several requests at a time, which is found out by watching it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queueing {
    /// `None`: not known yet.
    found: Option<bool>,
    samples: u32,
    /// The most requests in the device since the last judgement.
    pub(super) most_in_driver: u32,
}

/// More requests than this in the device at a time: it queues.
const DEEP: u32 = 3;
const JUDGED_AFTER: u32 = 32;

impl Queueing {
    pub(super) const fn new() -> Self {
        Self { found: None, samples: 0, most_in_driver: 0 }
    }

    /// Whether the device is known to queue, or nothing is known yet.
    pub(super) const fn is_found(&self) -> bool {
        !matches!(self.found, Some(false))
    }

    /// Notes a completion with as many requests in the device and held. `few`: the process in
    /// service has too few requests to show anything.
    pub(super) fn completed(&mut self, in_driver: u32, held: u32, few: bool) {
        self.most_in_driver = self.most_in_driver.max(in_driver);
        if self.found == Some(true) || in_driver + held <= DEEP || (few && in_driver < DEEP) {
            return;
        }
        self.samples += 1;
        if self.samples > JUDGED_AFTER {
            self.found = Some(self.most_in_driver > DEEP);
            self.most_in_driver = 0;
            self.samples = 0;
        }
    }
}
