//! Reading ahead: what follows a read is fetched while the host is away.
//!
//! - **A1.** A read that begins at the end of what was read last, or in the window before that, needs
//!   no access: its data comes from the buffer, or as it is fetched.
//! - **A2.** The card fetches at one rate, and no further ahead than the window. Over a longer time
//!   it sends no more than it fetches, and what was in the window is fetched again when it is read
//!   again: a card keeps a stream, not a copy.

use crate::profile::AheadTiming;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// Where the card reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// The sector behind the last that was read.
    pub(super) next: u64,
    /// When all is fetched that was read.
    due: Instant,
}

impl AheadTiming {
    /// How long it takes to fetch so many sectors.
    pub(super) fn fetch(&self, sectors: u64) -> Duration {
        Duration::from_ns((self.per_kib.as_ns() * sectors).div_ceil(2))
    }

    fn window_sectors(&self) -> u64 {
        self.window_bytes / u64::from(SECTOR_BYTES)
    }
}

impl Stream {
    /// Of a read elsewhere whose last sector before `next` was sent at `now`.
    pub(super) const fn begin(next: u64, now: Instant) -> Self {
        Self { next, due: now }
    }

    /// When all is fetched that was read.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Whether a read from `sector` on goes on in it (A1).
    pub(super) fn has(&self, timing: &AheadTiming, sector: u64) -> bool {
        sector <= self.next && self.next - sector <= timing.window_sectors()
    }

    /// A read goes on in it at `now`: no more has been fetched than fits (A2).
    pub(super) fn go_on(&mut self, timing: &AheadTiming, now: Instant) {
        let window_ns = timing.fetch(timing.window_sectors()).as_ns();
        let earliest = Instant::from_ns(now.as_ns().saturating_sub(window_ns));
        self.due = self.due.max(earliest);
    }

    /// So many sectors up to `next` are sent: when the first of them is there, and when the last.
    pub(super) fn send(
        &mut self,
        timing: &AheadTiming,
        sectors: u32,
        next: u64,
    ) -> (Instant, Instant) {
        let first = self.due + timing.fetch(1);
        self.due = self.due + timing.fetch(u64::from(sectors));
        self.next = self.next.max(next);
        (first, self.due)
    }
}
