//! Tasks that read through the page cache: they submit windows, wait for pages, and copy them.
//!
//! A step submits reads and copies nothing. A separate piece of work copies each page, so a
//! completion waits for at most one page, and reads reach the device before anything is copied.
//!
//! Between the pieces of a call no other thread of its processor runs, unless the call sleeps.

use super::World;
use super::actor::Actor;
use super::owner::{Owner, RUN_BIT};
use super::step::Job;
use crate::task::{Plan, ReadStep};
use blockyard::bio::Bio;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_trace::observe::{Observer, TaskId, Work};

/// A job that copies a page from the page cache, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageCopy(pub(super) TaskId);

impl<O: Observer> Actor<O> for PageCopy {
    fn act(&mut self, world: &mut World<O>, _cpu: CpuId) -> Duration {
        world.end_rest(self.0);
        world.copy_page(self.0)
    }

    fn plan_next(&mut self, world: &mut World<O>, cpu: CpuId, cost: Duration) -> Duration {
        Job(self.0).plan_next(world, cpu, cost)
    }
}

impl<O: Observer> World<O> {
    /// Begins or continues a task's call, and submits the reads that are due.
    pub(super) fn continue_read(&mut self, id: TaskId) -> Duration {
        let task = &mut self.tasks[id.0 as usize];
        let mut cost = Duration::ZERO;
        if !task.reader().in_call() {
            task.reader().open(&mut self.cache);
            task.begin_read(self.now);
            cost += self.machine.syscall;
            let outstanding = task.outstanding();
            if let Some(stats) = self.stats_at(id, self.now) {
                stats.depths.submitted(1, 1, outstanding);
            }
            self.count_turn(id);
        }
        let task = &mut self.tasks[id.0 as usize];
        if task.read_step(&self.cache) == Some(ReadStep::RequestPages) {
            task.reader().request_pages(&mut self.cache, self.reach);
            cost += self.submit_runs(id);
        }
        cost
    }

    /// Plugs and submits bios for the pages that the task has claimed, while there are tags and
    /// room.
    fn submit_runs(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        let cpu = self.tasks[at].cpu;
        let mut cost = Duration::ZERO;
        let mut plugged = None;
        while let Some((queue, bio)) = self.tasks[at].reader().next_bio(&self.cache) {
            if plugged.replace(queue).is_none() {
                self.queues[queue.index()].plug(cpu);
            }
            // The bio belongs to the run, not to an I/O: other tasks may wait for its pages, too.
            let run = self.cache.next_number();
            debug_assert_eq!(run & RUN_BIT, 0, "run {run} of pages");
            let cookie = Owner::Task(id).cookie(RUN_BIT | run);
            match self.submit_for_task(id, queue, Bio { cookie, ..bio }) {
                Ok(()) => {
                    let waited = self.tasks[at].end_tag_wait(self.now);
                    self.totals.tag_wait += waited;
                    self.totals.tag_waits += u64::from(waited > Duration::ZERO);
                    self.cache.submitted(self.tasks[at].reader().submitted());
                    cost += self.follow_up(queue, false);
                }
                Err(reason) => {
                    self.handle_refusal(id, queue, &bio, reason);
                    break;
                }
            }
        }
        if let Some(queue) = plugged {
            self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
            cost += self.follow_up(queue, false);
        }
        cost
    }

    /// Copies from the page that is due, if the page is still in the cache.
    fn copy_page(&mut self, id: TaskId) -> Duration {
        let task = &mut self.tasks[id.0 as usize];
        // Another job may have dropped the page since the task was woken for it.
        if task.read_step(&self.cache) != Some(ReadStep::CopyPage) {
            return Duration::ZERO;
        }
        let bytes = task.reader().copy_page();
        debug_assert!(bytes <= PAGE_BYTES, "{bytes} bytes of a page");
        // 1 KiB of a page of 4 KiB takes a quarter of the time of a page.
        Duration::from_ns(self.machine.page_copy.as_ns() * bytes / PAGE_BYTES)
    }

    /// Plans the next piece of a call that reads through the cache; the last piece ends at `end`
    ///. Returns `None` if the task is in no such call, or its call returns.
    pub(super) fn plan_reading(&mut self, id: TaskId, end: Instant) -> Option<Plan> {
        let task = &mut self.tasks[id.0 as usize];
        match task.read_step(&self.cache)? {
            _ if task.waits_for_tag() || task.is_in_driver() => Some(Plan::AwaitCompletions),
            ReadStep::Return(status) => {
                task.end_read(status, end);
                None
            }
            ReadStep::RequestPages => Some(Plan::RequestPages),
            ReadStep::CopyPage => Some(Plan::CopyPage),
            ReadStep::AwaitPage(file, page) => {
                task.sleep_for_page();
                self.cache.wait(file, page, id);
                Some(Plan::AwaitCompletions)
            }
            ReadStep::AwaitRoom => {
                task.sleep_for_page();
                Some(Plan::AwaitCompletions)
            }
        }
    }

    /// Returns the first work of a task that has been woken.
    pub(super) fn work_on_wake(&self, id: TaskId) -> Work {
        match self.tasks[id.0 as usize].read_step(&self.cache) {
            Some(ReadStep::CopyPage) => Work::Copy(id),
            _ => Work::Step(id),
        }
    }

    /// Ends the bio of `owner` that read run number `run`.
    #[inline(never)] // few jobs read through the page cache
    pub(super) fn end_page_run(&mut self, owner: TaskId, run: u32, status: Status) -> Duration {
        let mut woken = Vec::new();
        self.cache.ended(run, status == Status::Ok, |task| woken.push(task));
        self.tasks[owner.0 as usize].reader().bio_ended();
        let task = &self.tasks[owner.0 as usize];
        // The owner may have waited for room for another bio, not for a page of this one.
        if task.waits_for_page()
            && !woken.contains(&owner)
            && task.read_step(&self.cache) == Some(ReadStep::RequestPages)
        {
            woken.push(owner);
        }
        let mut cost = Duration::ZERO;
        for id in woken {
            let task = &mut self.tasks[id.0 as usize];
            // The pages are absent again. Each waiter tries once more, with a bio for its page
            // alone ([pages-ready-together]).
            if status != Status::Ok {
                task.reader().fail_page(status);
            }
            task.wake();
            cost += self.wake(id, self.now);
        }
        cost
    }
}
