//! Checks that no wake-up is lost ([no-lost-wake-up]), and that no queue runs in an endless loop.

use crate::draw::Plan;
use blockyard::time::{Duration, Instant};

/// The instant of the last progress, and the runs since then.
#[derive(Debug)]
pub(crate) struct Progress {
    moved_at: Instant,
    /// A time that no step exceeds.
    still_max: Duration,
    /// Runs without a dispatch since the last other event.
    fruitless: u64,
    /// Twice the number of turns that each hardware queue may take with each other one.
    fruitless_max: u64,
}

impl Progress {
    pub(crate) fn new(plan: &Plan) -> Self {
        let hctxs_of_all = u64::from(plan.tags.hctxs) * plan.queues.len() as u64;
        let fruitless_max = 2 * (hctxs_of_all + 1) * (hctxs_of_all + 1);
        let still_max = plan.still_max();
        Self { moved_at: Instant::ZERO, still_max, fruitless: 0, fruitless_max }
    }

    /// A bio entered, or a request went to the driver or came back.
    pub(crate) fn moved(&mut self, now: Instant) {
        self.moved_at = now;
        self.fruitless = 0;
    }

    /// A legitimate retry follows without progress.
    pub(crate) fn retried(&mut self) {
        self.fruitless = 0;
    }

    pub(crate) fn ran(&mut self) {
        self.fruitless += 1;
        assert!(
            self.fruitless <= self.fruitless_max,
            "[spin] {} runs without progress",
            self.fruitless
        );
    }

    /// Checks that progress was recent at the next event, or that nothing is outstanding if there
    /// is none.
    pub(crate) fn next_event(&self, now: Option<Instant>, outstanding: u64) {
        let stuck = now.is_none_or(|now| now.since(self.moved_at) > self.still_max);
        assert!(
            !stuck || outstanding == 0,
            "[no-lost-wake-up] {outstanding} bios wait for nothing"
        );
    }
}
