//! Reading ahead: the card fetches the sectors that follow a read while the host is away.
//!
//! A read that begins where the last one ended, or in the window before that, needs no access: its data
//! comes from the buffer, or as the card fetches it. The card fetches at one rate, and no further ahead than
//! the window. In the long run it sends no more than it fetches. It fetches sectors of the window
//! again when the host reads them again: a card keeps a stream, not a copy.

use crate::profile::AheadTiming;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// The place where the card reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// The sector after the last one that was read.
    pub(super) next: u64,
    /// When every sector that was read has been fetched.
    due: Instant,
}

impl AheadTiming {
    /// Returns the time to fetch `sectors`.
    pub(super) fn fetch(&self, sectors: u64) -> Duration {
        Duration::from_ns((self.per_kib.as_ns() * sectors).div_ceil(2))
    }

    fn window_sectors(&self) -> u64 {
        self.window_bytes / u64::from(SECTOR_BYTES)
    }
}

impl Stream {
    /// Returns a new stream after a read elsewhere, whose last sector before `next` was sent at `now`.
    pub(super) const fn begin(next: u64, now: Instant) -> Self {
        Self { next, due: now }
    }

    /// When every sector that was read has been fetched.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Returns whether a read that starts at `sector` continues the stream.
    pub(super) fn has(&self, timing: &AheadTiming, sector: u64) -> bool {
        sector <= self.next && self.next - sector <= timing.window_sectors()
    }

    /// Continues the stream at `now`. The card has fetched no more than fits into the window.
    pub(super) fn continue_at(&mut self, timing: &AheadTiming, now: Instant) {
        debug_assert!(timing.window_bytes > 0, "a card that does not read ahead has a stream");
        let window_ns = timing.fetch(timing.window_sectors()).as_ns();
        let earliest = Instant::from_ns(now.as_ns().saturating_sub(window_ns));
        self.due = self.due.max(earliest);
    }

    /// Sends `sectors` sectors up to `next`. Returns when the first and the last of them are fetched.
    pub(super) fn send(
        &mut self,
        timing: &AheadTiming,
        sectors: u32,
        next: u64,
    ) -> (Instant, Instant) {
        debug_assert!(sectors > 0 && u64::from(sectors) <= next, "{sectors} sectors before {next}");
        let first = self.due + timing.fetch(1);
        self.due = self.due + timing.fetch(u64::from(sectors));
        self.next = self.next.max(next);
        (first, self.due)
    }
}
