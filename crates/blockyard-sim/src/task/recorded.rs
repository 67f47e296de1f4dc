//! Tasks that replay a trace: records are delivered to them, and each has its own instant.

use super::source::{Recorded, Source};
use super::{Asleep, Plan, Task};
use crate::replay::Delivery;
use blockyard::time::Instant;

impl Task {
    /// Plans like [`Self::plan`], but for recorded I/Os with times. `more` says whether records may follow.
    /// Results are reaped as they arrive, and an I/O that is due does not wait for them.
    pub(super) fn plan_recorded(&mut self, now: Instant, more: bool) -> Plan {
        let outstanding = self.outstanding();
        if !more {
            return if outstanding > 0 { self.await_completions(1) } else { Plan::End };
        }
        self.taking = !self.completed.is_empty();
        let due = if self.drawn.is_some() { self.next_due() } else { Some(Instant::MAX) };
        if self.taking || (due.is_some_and(|due| due <= now) && outstanding < self.shape.depth) {
            return Plan::Go;
        }
        if due.is_none() || outstanding == self.shape.depth {
            return self.await_completions(1);
        }
        match due.filter(|_| self.drawn.is_some()) {
            Some(due) => {
                self.asleep = Asleep::InstantOrCompletion(due);
                Plan::AwaitInstant(due)
            }
            None => {
                self.asleep = Asleep::Record;
                Plan::AwaitRecord
            }
        }
    }

    /// Returns when the trace completed the I/O of `slot`, if that is known.
    #[must_use]
    pub fn recorded_end(&self, slot: u32) -> Option<Instant> {
        self.slots[slot as usize].recorded_end
    }

    /// Returns when the trace issued the record of [`Self::next_bio`].
    #[must_use]
    pub fn recorded_at(&self) -> Option<Instant> {
        self.drawn.and_then(|ask| ask.recorded_at)
    }

    /// Delivers a record, to be issued after all earlier records. Returns whether the task must run.
    ///
    /// # Panics
    ///
    /// If the task's I/Os are generated.
    pub fn deliver(&mut self, delivery: &Delivery) -> bool {
        self.recorded().push(delivery);
        self.stop_waiting_for_records()
    }

    /// Notes that there are no more records. Returns whether the task must run.
    ///
    /// # Panics
    ///
    /// If the task's I/Os are generated.
    pub fn end_of_records(&mut self) -> bool {
        self.recorded().end();
        self.stop_waiting_for_records()
    }

    fn recorded(&mut self) -> &mut Recorded {
        match &mut self.source {
            Source::Recorded(recorded) => recorded,
            Source::Generated(_) => panic!("{:?} generates its I/Os and takes no records", self.id),
        }
    }

    fn stop_waiting_for_records(&mut self) -> bool {
        let waits = self.asleep == Asleep::Record;
        if waits {
            self.asleep = Asleep::No;
        }
        waits
    }
}
