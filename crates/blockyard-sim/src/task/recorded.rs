//! Tasks that replay a trace: records are delivered to them, and each has its own instant.

use super::Task;
use super::source::{Recorded, Source};
use crate::replay::Delivery;
use blockyard::time::Instant;

impl Task {
    /// Returns when the trace completed the I/O of `slot`, if that is known.
    #[must_use]
    pub(crate) fn recorded_end(&self, slot: u32) -> Option<Instant> {
        self.slots.get(slot).recorded_end
    }

    /// Returns when the trace issued the record of [`Self::next_bio`].
    #[must_use]
    pub(crate) fn recorded_at(&self) -> Option<Instant> {
        self.feed.next().and_then(|io| io.recorded_at)
    }

    /// Delivers a record, to be issued after all earlier records. Returns whether the task must
    /// run.
    ///
    /// # Panics
    ///
    /// If the task's I/Os are generated.
    pub(crate) fn deliver(&mut self, delivery: &Delivery) -> bool {
        self.recorded().push(delivery);
        self.wake_for_record()
    }

    /// Notes that there are no more records. Returns whether the task must run.
    ///
    /// # Panics
    ///
    /// If the task's I/Os are generated.
    pub(crate) fn end_of_records(&mut self) -> bool {
        self.recorded().end();
        self.wake_for_record()
    }

    fn recorded(&mut self) -> &mut Recorded {
        match &mut self.feed.source {
            Source::Recorded(recorded) => recorded,
            Source::Generated(_) => panic!("{:?} generates its I/Os and takes no records", self.id),
        }
    }
}
