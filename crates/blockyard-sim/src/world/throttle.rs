//! Writers that are too fast for their disk pause.
//!
//! [`Pace`](crate::page_cache::Pace) decides when and for how long.
//!
//! # Rules
//!
//! - **[writer-resumes]** Each pause of a writer has an end, at which the writer looks again.

use super::{Event, World};
use crate::page_cache::{FileId, Verdict};
use crate::task::Plan;
use blockyard::time::{Duration, Instant};
use blockyard_trace::observe::TaskId;

impl World<'_> {
    /// Notes that a task has dirtied a page of `file`, and lets it look at the number of dirty
    /// pages if it must. Returns the cost.
    pub(super) fn dirtied(&mut self, id: TaskId, file: FileId) -> Duration {
        if self.flushing.is_none() {
            return Duration::ZERO;
        }
        let disk = self.cache.placement(file).queue;
        self.plan_look(disk);
        let pace = &mut self.flushing.as_mut().expect("there are flushers").disk(disk).pace;
        let buffered = self.tasks[id.0 as usize].buffered();
        if !buffered.dirtier.dirtied(pace) {
            return Duration::ZERO;
        }
        buffered.looks = Some(disk);
        self.look(id)
    }

    /// Lets a task look at the number of dirty pages, if it is to. It may pause afterwards. Returns
    /// the cost.
    pub(super) fn look(&mut self, id: TaskId) -> Duration {
        let Some(disk) = self.tasks[id.0 as usize].buffered().looks.take() else {
            return Duration::ZERO;
        };
        let limits = self.flushing.as_ref().expect("there are flushers").limits;
        let is_over = self.cache.levels().are_over_background(limits);
        let cost = if is_over { self.wake_flusher(disk) } else { Duration::ZERO };
        let level = self.cache.level(disk, limits, self.now);
        let now = self.now;
        let mut dirtier = self.tasks[id.0 as usize].buffered().dirtier;
        let verdict = self.writeback(disk).pace.judge(&mut dirtier, now, level);
        let buffered = self.tasks[id.0 as usize].buffered();
        buffered.dirtier = dirtier;
        if verdict != Verdict::Continue {
            self.queues[disk.index()].note_paused_writer(now);
        }
        match verdict {
            Verdict::Continue => {}
            Verdict::Pause(until) => buffered.pause = Some(until),
            Verdict::PauseAndLook(until) => {
                buffered.pause = Some(until);
                buffered.looks = Some(disk);
            }
        }
        cost
    }

    /// Lets a task pause whose pause has not begun.
    pub(super) fn plan_pause(&mut self, id: TaskId, end: Instant) -> Option<Plan> {
        let task = &mut self.tasks[id.0 as usize];
        let until = task.buffered().pause.take().filter(|until| *until > end)?;
        // [writer-resumes]
        task.pause_until(until);
        self.events.push(until, Event::Alarm(id));
        Some(Plan::AwaitCompletions)
    }
}
