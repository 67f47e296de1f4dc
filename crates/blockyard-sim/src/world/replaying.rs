//! Replay: hands the records of a trace to tasks when they are due.

use super::{Event, Failure, World};
use crate::replay::Player;
use blockyard::stats::Histogram;
use blockyard::time::Instant;
use blockyard_trace::TraceError;
use blockyard_trace::observe::{TaskId, Work};

/// The replay of a trace.
#[derive(Debug)]
pub(super) struct Replaying {
    player: Player,
    /// The instant when the next records are due.
    scheduled: Option<Instant>,
    /// Whether the tasks know that there are no more records.
    ended: bool,
    /// The delay of each record's issue relative to its trace, in nanoseconds.
    late_ns: Histogram,
    error: Option<TraceError>,
}

impl World<'_> {
    /// Replays the records of `player` to tasks. Call this before the tasks are added.
    pub fn replay(&mut self, player: Player) {
        assert!(
            self.tasks.is_empty() && self.replay.is_none(),
            "a replay must be set before its tasks are added"
        );
        self.replay = Some(Replaying {
            player,
            scheduled: None,
            ended: false,
            late_ns: Histogram::new(),
            error: None,
        });
        self.schedule_records(Instant::ZERO);
    }

    /// Returns the delay of each record's issue relative to its trace, in nanoseconds; `None`
    /// without a replay.
    #[must_use]
    pub fn late_ns(&self) -> Option<&Histogram> {
        self.replay.as_ref().map(|replay| &replay.late_ns)
    }

    /// Returns the error in the trace after [`Failure::Trace`].
    #[must_use]
    pub(crate) fn trace_error(&self) -> Option<&TraceError> {
        self.replay.as_ref().and_then(|replay| replay.error.as_ref())
    }

    /// Hands out the records that are due, and makes their tasks run.
    pub(super) fn deliver_records(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        if replay.scheduled != Some(self.now) {
            return; // An event scheduled later has handed these records out.
        }
        replay.scheduled = None;
        let mut woken = Vec::new();
        loop {
            match replay.player.take(self.now) {
                Ok(Some((id, delivery))) => {
                    if self.tasks[id.0 as usize].deliver(&delivery) {
                        woken.push(id);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    replay.error = Some(error);
                    self.failure.get_or_insert(Failure::Trace);
                    return;
                }
            }
        }
        if replay.player.ended() && !replay.ended {
            replay.ended = true;
            for task in &mut self.tasks {
                if task.end_of_records() {
                    woken.push(task.id);
                }
            }
        }
        let next_at = replay.player.next_at();
        // A task that sleeps for something else is not woken. It finds its records afterwards.
        for id in woken {
            self.give_work(self.tasks[id.0 as usize].cpu, Work::Step(id));
        }
        if let Some(at) = next_at {
            self.schedule_records(at.max(self.now));
        }
    }

    fn schedule_records(&mut self, at: Instant) {
        debug_assert!(at >= self.now, "records are due at {at}, in the past");
        let Some(replay) = &mut self.replay else { return };
        if replay.scheduled.is_none_or(|earlier| at < earlier) {
            replay.scheduled = Some(at);
            self.events.push(at, Event::Records);
        }
    }

    /// Notes that a task has submitted a record that its trace issued at `at`.
    pub(super) fn note_replayed_issue(&mut self, at: Instant) {
        let Some(replay) = &mut self.replay else { return };
        replay.late_ns.record(self.now.since(at).as_ns());
        // The player may hold records back for lack of room, or until an earlier one was issued.
        let room = replay.player.submitted();
        let earlier = replay.player.reached(at, self.now);
        if room || earlier {
            self.schedule_records(self.now);
        }
    }

    /// Notes that the I/O in `slot` of `task` has ended, and tells the player that the trace has
    /// reached that end.
    ///
    /// # Panics
    ///
    /// Panics if the run replays no trace.
    #[inline(never)] // few runs replay
    pub(super) fn note_replayed_end(&mut self, task: TaskId, slot: u32) {
        let replay = self.replay.as_mut().expect("a trace that is replayed");
        if let Some(end) = self.tasks[task.0 as usize].recorded_end(slot)
            && replay.player.reached(end, self.now)
        {
            self.schedule_records(self.now);
        }
    }
}
