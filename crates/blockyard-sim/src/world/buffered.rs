//! Tasks with buffered I/O: they submit bios of pages, wait for pages, copy them, and flush.
//!
//! A separate piece of work copies each page, so that a completion waits for at most one page. Only
//! a step that begins a call, not the first one, copies its first page, too, if nothing must be
//! waited for. A step that submits bios copies nothing, so that reads reach the device before
//! anything is copied.
//!
//! Between the pieces of a call no other thread of its processor runs, unless the call sleeps.

use super::World;
use super::actor::Actor;
use super::owner::{Owner, RUN_BIT};
use super::step::Job;
use crate::page_cache::{Run, Transfer};
use crate::task::{BufferedStep, Plan};
use blockyard::bio::{Bio, Op};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, SECTOR_BYTES};
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_fio::measure::call_time::CallPart;
use blockyard_trace::observe::{TaskId, Work};

/// The maximum number of bios that one piece of work submits, so that completions wait no longer.
pub(super) const PIECE_BIOS_MAX: u32 = 64;

/// A job that copies from or to a page of the page cache, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageCopy(pub(super) TaskId);

impl Actor for PageCopy {
    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.end_rest(self.0);
        world.copy_page(self.0)
    }

    fn plan_next(&mut self, world: &mut World<'_>, cpu: CpuId, cost: Duration) -> Duration {
        Job(self.0).plan_next(world, cpu, cost)
    }
}

impl World<'_> {
    /// Begins or continues a task's call, and submits the bios that are due.
    pub(super) fn continue_buffered(&mut self, id: TaskId) -> Duration {
        let task = &mut self.tasks[id.0 as usize];
        let mut cost = Duration::ZERO;
        let mut copies = false;
        if !task.buffered().in_call() {
            task.close_after_pass(&self.cache);
        }
        if !task.buffered().in_call() && !task.buffered().begin_to_drop(&self.cache) {
            // All files that are opened at an instant are open before anything is dirty.
            copies = task.buffered().open(&mut self.cache);
            let ios = u32::from(!task.begin_buffered(self.now, &self.cache));
            cost += self.machine.syscall;
            let outstanding = task.outstanding();
            if let Some(stats) = self.stats_at(id, self.now) {
                stats.depths.submitted(1, ios, outstanding);
            }
            self.count_turn(id);
        }
        let task = &mut self.tasks[id.0 as usize];
        match task.buffered_step(&self.cache) {
            Some(BufferedStep::RequestPages) => {
                task.buffered().request_pages(&mut self.cache, self.reach);
                cost + self.submit_runs(id)
            }
            Some(BufferedStep::WriteBack) => cost + self.submit_runs(id),
            Some(BufferedStep::CopyPage) if copies => cost + self.copy_due_page(id),
            Some(BufferedStep::Look) => cost + self.look(id),
            Some(BufferedStep::Commit) => {
                let disk = task.buffered().ask_for_commit(&mut self.cache, id);
                cost + self.wake_committer(disk)
            }
            _ if task.buffered().plugged.is_some() => cost + self.submit_runs(id),
            Some(BufferedStep::Flush) => cost + self.submit_flush(id),
            _ => cost,
        }
    }

    /// Plugs and submits bios for the pages that the task has claimed or writes back, while there
    /// are tags and room. After [`PIECE_BIOS_MAX`] of them the plug stays for the next piece.
    fn submit_runs(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        let cpu = self.tasks[at].cpu;
        let mut cost = Duration::ZERO;
        let mut submitted = 0;
        let mut plugged = self.tasks[at].buffered().plugged.take();
        while let Some((queue, bio)) = self.tasks[at].buffered().next_bio(&self.cache) {
            if submitted == PIECE_BIOS_MAX {
                self.tasks[at].buffered().plugged = plugged;
                return cost;
            }
            let plugs = bio.op == Op::Read || self.cache.plugs();
            if plugs && plugged.replace(queue).is_none() {
                self.queues[queue.index()].plug(cpu);
            }
            // The bio belongs to the run, not to an I/O: other tasks may wait for its pages, too.
            let run = self.cache.next_number();
            debug_assert_eq!(run & RUN_BIT, 0, "run {run} of pages");
            let cookie = Owner::Task(id).cookie(RUN_BIT | run);
            match self.submit_for_task(id, queue, Bio { cookie, ..bio }) {
                Ok(()) => {
                    self.count_tag_wait(id);
                    let run = self.tasks[at].buffered().submitted(&self.cache);
                    self.cache.submitted(run);
                    cost += self.follow_up(queue, false);
                    submitted += 1;
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

    /// Ends the wait of a task for a tag, if it had one, and counts it.
    pub(super) fn count_tag_wait(&mut self, id: TaskId) {
        let waited = self.tasks[id.0 as usize].end_tag_wait(self.now);
        self.totals.tag_wait += waited;
        self.totals.tag_waits += u64::from(waited > Duration::ZERO);
    }

    /// Submits the flush at the end of a sync. Its end ends the call.
    fn submit_flush(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        let (queue, bio, slot) = self.tasks[at].buffered().flush(&self.cache);
        let bio = Bio { cookie: Owner::Task(id).cookie(slot), ..bio };
        match self.submit_for_task(id, queue, bio) {
            Ok(()) => {
                self.count_tag_wait(id);
                let buffered = self.tasks[at].buffered();
                buffered.turn_clock(CallPart::Flush, self.now);
                buffered.end_call(&self.cache);
            }
            Err(reason) => self.handle_refusal(id, queue, &bio, reason),
        }
        self.follow_up(queue, false)
    }

    /// Copies from or to the page that is due, if the page is still in the cache.
    fn copy_page(&mut self, id: TaskId) -> Duration {
        // Another job may have dropped the page since the task was woken for it.
        match self.tasks[id.0 as usize].buffered_step(&self.cache) {
            Some(BufferedStep::CopyPage) => self.copy_due_page(id),
            _ => Duration::ZERO,
        }
    }

    /// Returns what it costs to copy so many bytes: 1 KiB takes a quarter of the time of a page.
    pub(super) const fn cost_of_copy(&self, bytes: u64) -> Duration {
        Duration::from_ns(self.machine.page_copy.as_ns() * bytes / PAGE_BYTES)
    }

    /// Copies from or to the page that is due.
    fn copy_due_page(&mut self, id: TaskId) -> Duration {
        let task = &mut self.tasks[id.0 as usize];
        let (bytes, dirtied) = task.buffered().copy_page(&mut self.cache, self.now);
        debug_assert!(bytes <= PAGE_BYTES, "{bytes} bytes of a page");
        let copy = self.cost_of_copy(bytes);
        self.set_alarms_of_journals();
        let task = &mut self.tasks[id.0 as usize];
        let cpu = task.cpu;
        let kicked = task.buffered().kicks(&self.cache);
        copy + dirtied.map_or(Duration::ZERO, |file| self.dirtied(id, file))
            + kicked.map_or(Duration::ZERO, |disk| self.kick_flusher(disk, cpu, copy))
    }

    /// Plans the next piece of a buffered call; the last piece ends at `end`. Returns `None` if the
    /// task is in no such call, or its call returns.
    pub(super) fn plan_buffered(&mut self, id: TaskId, end: Instant) -> Option<Plan> {
        let step = self.tasks[id.0 as usize].buffered_step(&self.cache)?;
        // The piece that ends has begun now, and the call slept or waited until then.
        self.tasks[id.0 as usize].buffered().turn_clock(CallPart::InMemory, self.now);
        if let Some(plan) = self.plan_pause(id, end) {
            self.tasks[id.0 as usize].buffered().turn_clock(CallPart::Throttled, end);
            return Some(plan);
        }
        let task = &mut self.tasks[id.0 as usize];
        match step {
            _ if task.waits_for_tag() || task.is_in_driver() => {
                task.buffered().turn_clock(step.sleep(), end);
                Some(Plan::AwaitCompletions)
            }
            // Nothing waits under a plug, and the call does not return with it.
            _ if task.buffered().plugged.is_some() => Some(Plan::Submit),
            BufferedStep::Return(status) => {
                task.end_buffered(status, end, &self.cache);
                None
            }
            BufferedStep::RequestPages
            | BufferedStep::WriteBack
            | BufferedStep::Flush
            | BufferedStep::Commit
            | BufferedStep::Look => Some(Plan::Submit),
            BufferedStep::CopyPage => Some(Plan::CopyPage),
            BufferedStep::AwaitPage(file, page, transfer) => {
                task.buffered().turn_clock(step.sleep(), end);
                task.sleep_for_page();
                self.cache.wait(file, page, transfer, id);
                Some(Plan::AwaitCompletions)
            }
            BufferedStep::AwaitRoom(_) => {
                task.buffered().turn_clock(step.sleep(), end);
                task.sleep_for_room();
                Some(Plan::AwaitCompletions)
            }
            BufferedStep::AwaitCommit => {
                task.buffered().turn_clock(step.sleep(), end);
                task.sleep_for_page();
                Some(Plan::AwaitCompletions)
            }
        }
    }

    /// Returns the first work of a task that has been woken.
    pub(super) fn work_on_wake(&self, id: TaskId) -> Work {
        match self.tasks[id.0 as usize].buffered_step(&self.cache) {
            Some(BufferedStep::CopyPage) => Work::Copy(id),
            _ => Work::Step(id),
        }
    }

    /// Ends the bio of `owner` that moved run `number`.
    #[inline(never)] // few jobs use the page cache
    pub(super) fn end_page_run(&mut self, owner: Owner, number: u32, status: Status) -> Duration {
        let mut woken = Vec::new();
        let run = self.cache.ended(number, (status, self.now), |task| woken.push(task));
        if run.transfer == Transfer::WriteBack {
            let sectors = u64::from(self.cache.bio_of(&run).sectors);
            self.totals.written_back_bytes += sectors * u64::from(SECTOR_BYTES);
            self.end_writeback(owner, &run, status);
        }
        let mut cost = match owner {
            Owner::Added(id) => self.end_bio_of_actor(id, number, status),
            Owner::Task(id) => {
                if self.has_room_for_bio(id, &run) && !woken.contains(&id) {
                    woken.push(id);
                }
                Duration::ZERO
            }
        };
        for id in woken {
            let task = &mut self.tasks[id.0 as usize];
            // The pages are absent again. Each waiter tries once more, with a bio for its page
            // alone.
            if status != Status::Ok && run.transfer == Transfer::Read {
                task.buffered().fail_page(status);
            }
            task.wake();
            cost += self.wake(id, self.now);
        }
        cost
    }

    /// Notes that the bio of `owner` that wrote `run` back has ended.
    fn end_writeback(&mut self, owner: Owner, run: &Run, status: Status) {
        let pages = run.pages.end - run.pages.start;
        let disk = self.cache.placement(run.file).queue;
        if let Some(flushing) = &mut self.flushing {
            flushing.disk(disk).ended(pages, matches!(owner, Owner::Added(_)));
        }
        if status == Status::Ok {
            self.set_alarms_of_journals();
        }
    }

    /// Notes that the bio of `run` of a task has ended. Returns whether the task has waited for
    /// room for another one, and not for a page of this one. What it wanted to write may be gone:
    /// while a sync waits for room, a flusher may have taken the pages that were left.
    fn has_room_for_bio(&mut self, id: TaskId, run: &Run) -> bool {
        let task = &mut self.tasks[id.0 as usize];
        task.buffered().bio_ended(run, &self.cache);
        task.waits_for_room()
            && !matches!(task.buffered_step(&self.cache), Some(BufferedStep::AwaitRoom(_)))
    }
}
