//! No wake-up is lost ([no-lost-wake-up]), and none is given over and over.

use crate::draw::Plan;
use blockyard::time::{Duration, Instant};

/// When something last moved.
#[derive(Debug)]
pub(crate) struct Progress {
    moved_at: Instant,
    /// Nothing takes this long.
    still_max: Duration,
    /// Runs that sent nothing since anything else happened.
    fruitless: u64,
    /// Twice the turns of every hardware queue with every other.
    fruitless_max: u64,
}

impl Progress {
    pub(crate) fn new(plan: &Plan) -> Self {
        let hctxs_of_all = u64::from(plan.tags.hctxs) * plan.queues.len() as u64;
        let fruitless_max = 2 * (hctxs_of_all + 1) * (hctxs_of_all + 1);
        let still_max = plan.still_max();
        Self { moved_at: Instant::ZERO, still_max, fruitless: 0, fruitless_max }
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
        let stuck = now.is_none_or(|now| now.since(self.moved_at) > self.still_max);
        assert!(
            !stuck || outstanding == 0,
            "[no-lost-wake-up] {outstanding} bios wait for nothing"
        );
    }
}
