//! How much is under way in a world.

use super::World;

impl<O> World<O> {
    /// The I/Os that jobs have submitted and not reaped, and the requests in the driver, at this instant.
    #[must_use]
    pub fn load(&self) -> (u64, u64) {
        let depth = self.tasks.iter().map(|task| u64::from(task.outstanding())).sum();
        let in_flight = self.queues.iter().map(|queue| u64::from(queue.in_flight())).sum();
        (depth, in_flight)
    }
}
