//! The end of a task: its measurement ends, and if it is the last one that has a disk open, the
//! disk gets the dirty pages, and its pages leave the cache.
//!
//! As in Linux, the task waits for them: a job behind a `stonewall` begins afterwards. As in fio,
//! the time is not part of the job's.

use super::owner::Owner;
use super::{Event, World};
use blockyard::request_queue::RequestQueue;
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
        // A job of an asynchronous engine first gives up its context. The kernel ends that after
        // more time than it holds a disk for: in recordings of bfq, disks are held for 8 ms after
        // the last request of such a job, and for 1.6 ms after that of any other.
        let exits_soon = !self.tasks[at].is_async();
        if exits_soon && self.queues.iter().any(RequestQueue::knows_submitters) {
            self.events.push(end, Event::Exit(id));
        }
        self.last_end = self.last_end.max(end);
    }

    /// The process of a task is gone: elevators that tell processes apart hold no disk for it.
    pub(super) fn on_exit(&mut self, id: TaskId) {
        let task = &self.tasks[id.0 as usize];
        let cpu = task.cpu;
        let submitter = Owner::Task(id).submitter(task.cgroup);
        for at in 0..self.queues.len() {
            self.queues[at].submitter_ended(cpu, submitter, self.now);
            let _ = self.follow_up(self.queues[at].id(), true);
        }
        self.host.sink.0.0.drop_unpaid();
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
