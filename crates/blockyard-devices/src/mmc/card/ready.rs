//! The readiness of the tasks in a card's queue.
//!
//! A read is ready when the card has its data. A write is ready when the card has taken it, is no
//! longer busy with an earlier one, and its buffer has room for a page of it. Room for the writes
//! that it has reported is no longer free: with room for two pages, it reports two of four writes
//! of a page, and the others when programming has made room. Room goes to the write that the card
//! took first: by number, tasks 0 and 1, described anew each time, would keep the others waiting.

use super::Card;
use super::queue::Task;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Direction;

impl Card {
    /// Returns the next instant after `at` at which a queued task will be ready, or `None` if there
    /// is none.
    #[must_use]
    pub(crate) fn next_task_ready(&self, at: Instant) -> Option<Instant> {
        let given = self.given_room();
        let ready = self.tasks.queued().filter_map(|task| self.ready_with(task, given));
        ready.filter(|&ready| ready > at).min()
    }

    /// Returns whether the card can execute `task` at `at`.
    pub(super) fn is_ready(&self, task: &Task, at: Instant) -> bool {
        self.ready_with(task, self.given_room()).is_some_and(|ready| ready <= at)
    }

    /// Returns the tasks that are ready at `at`, one bit each, and reports them.
    pub(super) fn report_tasks(&mut self, at: Instant) -> u32 {
        while let Some(number) = self.next_report(at) {
            self.tasks.report(number);
        }
        self.tasks.ready(at)
    }

    /// Returns the number of the oldest write that is ready at `at` and not reported.
    fn next_report(&self, at: Instant) -> Option<u8> {
        let given = self.given_room();
        let new = self.tasks.queued().filter(|task| self.is_unreported_write(task));
        let ready = new
            .filter(|task| self.ready_with(task, given).is_some_and(|ready| ready <= at))
            .min_by_key(|task| task.ready_at);
        ready.map(|task| task.parameters.number)
    }

    fn is_unreported_write(&self, task: &Task) -> bool {
        task.parameters.direction == Direction::Write && !self.tasks.is_reported(task)
    }

    /// Returns when `task` is ready with `given` bytes of room for others, or `None` if it must
    /// wait for one of those.
    fn ready_with(&self, task: &Task, given: u64) -> Option<Instant> {
        if !self.is_unreported_write(task) {
            return Some(task.ready_at);
        }
        let capacity = self.buffer_bytes();
        let bytes = given + self.room_of(task);
        let taken = task.ready_at.max(self.busy_until().unwrap_or(Instant::ZERO));
        (bytes <= capacity).then(|| self.engine.room_at(bytes, capacity, taken))
    }

    /// Returns the bytes of room that the writes have which were reported.
    fn given_room(&self) -> u64 {
        let reported = self.tasks.queued().filter(|task| self.tasks.is_reported(task));
        reported.map(|task| self.room_of(task)).sum()
    }

    /// Returns the bytes of a write for which the buffer has room once it is ready.
    fn room_of(&self, task: &Task) -> u64 {
        let bytes = u64::from(task.parameters.blocks) * u64::from(SECTOR_BYTES);
        bytes.min(self.timing.write.page_bytes.into())
    }
}
