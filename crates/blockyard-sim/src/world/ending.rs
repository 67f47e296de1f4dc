//! The end of a task: its measurement ends, and if it is the last one that has a disk open, the
//! disk gets the dirty pages, and its pages leave the cache.
//!
//! As in Linux, the task waits for them: a job behind a `stonewall` begins afterwards. As in fio,
//! the time is not part of the job's.

use super::World;
use blockyard::time::Instant;
use blockyard::unit::QueueId;
use blockyard_trace::observe::{TaskId, Work};

impl World<'_> {
    /// Ends a task whose last step ends at `end`, or lets it write back before.
    pub(super) fn end_task(&mut self, id: TaskId, end: Instant) {
        let at = id.0 as usize;
        let disks = self.disks_to_close(id);
        if !core::mem::replace(&mut self.tasks[at].has_ended, true) {
            self.end_job_of(id, end);
        }
        if !disks.is_empty() && self.tasks[at].begin_to_close(&disks, &self.cache) {
            let cpu = self.tasks[at].cpu;
            self.cpus[cpu.index()].push_next(Work::Step(id));
            return;
        }
        if !disks.is_empty() {
            self.tasks[at].buffered().drop_closed(&disks, &mut self.cache);
        }
        debug_assert!(self.alive > 0, "{id:?} ended after all tasks");
        self.alive -= 1;
        self.last_end = self.last_end.max(end);
    }

    /// Ends the measurement of a task at `end`, and what ends with it.
    fn end_job_of(&mut self, id: TaskId, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let stats = &mut self.stats[task.stats];
        stats.depth_found = task.depth_found().or(stats.depth_found);
        stats.ended = stats.ended.max(end);
        stats.spent.alive += end.since(task.measured_from().min(end));
        self.report_ramp(id, end);
        self.end_jobs_with(id, end);
        self.leave_flow(id);
        self.end_measuring_of(id, end);
    }

    /// Returns the disks that only this task had open through the page cache, before its end.
    pub(super) fn disks_to_close(&self, id: TaskId) -> Vec<QueueId> {
        let task = &self.tasks[id.0 as usize];
        let mut disks = task.disks_used(&self.cache);
        for other in self.tasks.iter().filter(|other| other.id != id) {
            if disks.is_empty() {
                break;
            }
            let open = other.open_disks(&self.cache);
            disks.retain(|disk| !open.contains(disk));
        }
        disks
    }
}
