//! The load of a world: the I/Os and requests in flight.

use super::World;

impl<O> World<O> {
    /// Returns the number of I/Os that jobs have submitted and not reaped, and of requests in the
    /// driver.
    #[must_use]
    pub fn load(&self) -> (u64, u64) {
        let depth = self.tasks.iter().map(|task| u64::from(task.outstanding())).sum();
        let in_flight = self.queues.iter().map(|queue| u64::from(queue.in_flight())).sum();
        (depth, in_flight)
    }
}
