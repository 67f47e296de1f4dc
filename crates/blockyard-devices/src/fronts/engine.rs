//! The host's thread of a virtual disk that does not go on while the medium works: a synchronous
//! engine.
//!
//! The thread takes one command, waits for the medium, and takes the next. It looks at its queues
//! after each command, and lets the guest know of all that have ended when it finds nothing more.
//! Firecracker serves its disks so by default (`io_engine` = `Sync`), on a file in the host's page
//! cache.
//!
//! One command is at the medium, in the order in which they were posted. The guest learns of all
//! commands of a batch at its end, when no command waits.

use crate::load::Lasting;
use blockyard::time::{Duration, Instant};
use std::collections::VecDeque;

/// The thread.
#[derive(Debug)]
pub(super) struct SyncEngine {
    /// Time until the thread works, if it slept.
    wakeup: Duration,
    /// Whether a command is on its way through the medium.
    works: bool,
    /// For how long the thread woke up, took commands and waited for the medium.
    working: Lasting,
    /// Slots of commands that wait.
    waiting: VecDeque<u32>,
    /// Slots of commands that have ended in this batch.
    batch: Vec<u32>,
}

/// What follows the end of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The thread takes the command in this slot.
    Command(u32),
    /// The thread answers these commands, and sleeps.
    Answers(Vec<u32>),
}

impl SyncEngine {
    pub(super) fn new(wakeup: Duration) -> Self {
        Self {
            wakeup,
            works: false,
            working: Lasting::new(),
            waiting: VecDeque::new(),
            batch: Vec::new(),
        }
    }

    /// Whether the thread sleeps.
    pub(super) const fn sleeps(&self) -> bool {
        !self.works
    }

    /// Lets the thread know of the command in `slot` at `now`. Returns when the thread takes it;
    /// `None` if it waits, as the medium has one command at a time.
    pub(super) fn take(&mut self, slot: u32, now: Instant) -> Option<Instant> {
        if self.works {
            self.waiting.push_back(slot);
            return None;
        }
        debug_assert!(
            self.waiting.is_empty() && self.batch.is_empty(),
            "a thread that sleeps has answered all commands"
        );
        self.works = true;
        self.working.note(true, false, now);
        Some(now + self.wakeup)
    }

    /// Returns for how long the thread worked on commands until the last one began or ended. Its
    /// answers are not in it.
    pub(super) const fn used(&self) -> Duration {
        self.working.time()
    }

    /// Starts counting again.
    pub(super) const fn forget(&mut self) {
        self.working.forget();
    }

    /// Notes that the medium is done with the command in `slot` at `now`.
    pub(super) fn ended(&mut self, slot: u32, now: Instant) -> Next {
        debug_assert!(self.works, "slot {slot} ended while the thread slept");
        self.batch.push(slot);
        self.working.note(!self.waiting.is_empty(), false, now);
        self.waiting.pop_front().map_or_else(
            || {
                self.works = false;
                // No command waits, so the guest learns of the whole batch.
                Next::Answers(core::mem::take(&mut self.batch))
            },
            Next::Command,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    /// Commands that come while the thread works are of its batch.
    #[test]
    fn commands_go_one_by_one_and_are_answered_together() {
        let us = Duration::from_us;
        let mut engine = SyncEngine::new(us(20));
        assert!(engine.sleeps());
        assert_eq!(engine.take(7, at(100)), Some(at(120)));
        assert_eq!([engine.take(3, at(101)), engine.take(9, at(140))], [None; 2]);
        assert_eq!(engine.ended(7, at(125)), Next::Command(3));
        assert_eq!(engine.take(5, at(150)), None, "it is in time for the batch");
        assert_eq!(engine.ended(3, at(155)), Next::Command(9));
        assert_eq!(engine.ended(9, at(160)), Next::Command(5));
        assert!(!engine.sleeps());
        assert_eq!(engine.ended(5, at(170)), Next::Answers(vec![7, 3, 9, 5]));
        assert!(engine.sleeps());
        assert_eq!(engine.take(7, at(200)), Some(at(220)));
        assert_eq!(engine.ended(7, at(225)), Next::Answers(vec![7]), "the next batch");
        assert_eq!(engine.used(), us(170 - 100 + 225 - 200), "it slept between the batches");
    }
}
