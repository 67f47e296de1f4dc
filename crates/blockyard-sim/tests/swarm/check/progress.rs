//! No wake-up is lost (H4), and none is given over and over.

use blockyard::time::{Duration, Instant};

/// Nothing here takes this long: think times, services and retries are a few ms at most.
const STILL_MAX: Duration = Duration::from_secs(1);

/// When something last moved.
#[derive(Debug)]
pub(crate) struct Progress {
    moved_at: Instant,
    /// Runs that sent nothing since anything else happened.
    fruitless: u64,
    /// Twice the turns of every hardware queue with every other.
    fruitless_max: u64,
}

impl Progress {
    pub(crate) fn new(hctxs_of_all: u64) -> Self {
        let fruitless_max = 2 * (hctxs_of_all + 1) * (hctxs_of_all + 1);
        Self { moved_at: Instant::ZERO, fruitless: 0, fruitless_max }
    }

    /// A bio entered, a request went to the driver or came back.
    pub(crate) fn moved(&mut self, now: Instant) {
        self.moved_at = now;
        self.fruitless = 0;
    }

    /// Somebody was told to look again although nothing had moved.
    pub(crate) fn retried(&mut self) {
        self.fruitless = 0;
    }

    pub(crate) fn ran(&mut self) {
        self.fruitless += 1;
        assert!(self.fruitless <= self.fruitless_max, "[spin] {} runs for nothing", self.fruitless);
    }

    /// An event comes at `now`, or none comes.
    pub(crate) fn next_event(&self, now: Option<Instant>, outstanding: u64) {
        let stuck = now.is_none_or(|now| now.since(self.moved_at) > STILL_MAX);
        assert!(!stuck || outstanding == 0, "[wake-up] {outstanding} bios wait for nothing");
    }
}
