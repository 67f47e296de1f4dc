//! Steps of a task: the task reaps results, submits more I/Os, and sleeps.

use super::actor::Actor;
use super::owner::Owner;
use super::{Event, Failure, World};
use crate::task::{Met, Plan};
use blockyard::bio::{self, Bio};
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};
use blockyard_devices::terms::Completion;
use blockyard_fio::measure::spent::Rest;
use blockyard_trace::observe::{TaskId, Work};

/// A job instance, as an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job(pub(super) TaskId);

impl Actor for Job {
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        let locks = world.locking.submitting;
        locks.then(|| world.tasks[self.0.0 as usize].likely_queue())
    }

    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.end_rest(self.0);
        world.step(self.0)
    }

    fn plan_next(&mut self, world: &mut World<'_>, _cpu: CpuId, cost: Duration) -> Duration {
        world.end_step(self.0, cost)
    }

    fn on_bio_end(&mut self, world: &mut World<'_>, slot: u32, status: Status) -> bool {
        if world.replay.is_some() {
            world.note_replayed_end(self.0, slot);
        }
        if world.tasks[self.0.0 as usize].meets_cache() {
            world.end_direct_write(self.0, slot, status);
        }
        let now = world.now;
        let task = &mut world.tasks[self.0.0 as usize];
        world.totals.call_flushes += task.flushing_for(now);
        task.completed(slot, status, now)
    }
}

impl World<'_> {
    /// Lets a task reap results and submit more I/Os. Returns the cost.
    pub(super) fn step(&mut self, id: TaskId) -> Duration {
        if self.tasks[id.0 as usize].return_from_driver() {
            return Duration::ZERO; // its call returns now, and it plans what comes next
        }
        if self.tasks[id.0 as usize].begin_due_sync(&self.cache) {
            return self.continue_buffered(id);
        }
        if let Some((queue, bio)) = self.tasks[id.0 as usize].due_flush() {
            return self.submit_due_flush(id, queue, bio);
        }
        // A buffered call is under way, and continues where it slept.
        if self.tasks[id.0 as usize].buffered_step(&self.cache).is_some() {
            return self.continue_buffered(id);
        }
        if self.tasks[id.0 as usize].is_pre_reading() {
            return self.read_before(id);
        }
        let mut cost = self.take_results(id);
        let task = &mut self.tasks[id.0 as usize];
        // The next I/O was chosen when the task went to sleep: of a job that reads for 55 ms, 20 ms
        // each time, the fourth read would begin at 60 ms.
        task.begin_no_call_if_over(self.now);
        if self.has_turn(id) && self.tasks[id.0 as usize].is_buffered_next(self.now) {
            return cost + self.continue_buffered(id);
        }
        let submitted = self.submit_batch(id, &mut cost);
        if submitted > 0 {
            cost += self.machine.syscall;
        }
        cost
    }

    /// Lets the task reap the results of one call.
    fn take_results(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        if let Some(taken) = self.tasks[at].take_returned(self.now) {
            self.count_result(id, &taken);
        }
        if !self.tasks[at].reaps_now() {
            return Duration::ZERO;
        }
        let mut results = 0;
        while results < self.tasks[at].reap_max() {
            let Some(taken) = self.tasks[at].take_completed(self.now) else { break };
            self.count_result(id, &taken);
            results += 1;
        }
        if let Some(stats) = self.stats_at(id, self.now) {
            stats.depths.completed(results);
        }
        if self.tasks[at].is_async() { self.machine.syscall } else { Duration::ZERO }
    }

    /// Submits the I/Os of one call of the task, and returns their number. Handles the consequences
    /// of each I/O before the next one, and adds their cost to `cost`.
    fn submit_batch(&mut self, id: TaskId, cost: &mut Duration) -> u32 {
        let at = id.0 as usize;
        let cpu = self.tasks[at].cpu;
        let call = self.tasks[at].call(self.now);
        // On persistent memory each I/O of a call ends before the next, so there is nothing to
        // plug.
        let completes_in_call = self.completion == Completion::WithinCall;
        let plugs_all = self.plugs_calls && self.tasks[at].is_async();
        let plugs = (call.plugs || plugs_all) && !completes_in_call;
        let mut submitted = 0;
        let mut syncs = 0;
        let mut used = None;
        let mut is_refused = false;
        while submitted < call.left && self.has_turn(id) {
            let Some((queue, bio)) = self.tasks[at].next_bio(self.now) else { break };
            // A plug belongs to one queue. An I/O for another disk waits for the next call.
            if used.is_some_and(|last| last != queue) {
                break;
            }
            let bio = match self.meet_cache(id, bio) {
                Met::Submits(bio) => bio,
                Met::Waits => break,
                Met::Zeros => {
                    *cost += self.read_zeros(id, &bio);
                    submitted += 1;
                    continue;
                }
            };
            if plugs && used.is_none() {
                self.queues[queue.index()].plug(cpu);
            }
            used = Some(queue);
            match self.submit_for_task(id, queue, bio) {
                Ok(()) => {
                    self.note_submitted(id);
                    submitted += 1;
                    syncs += u32::from(bio.op == bio::Op::Flush);
                    *cost += self.follow_up(queue, false);
                    if completes_in_call {
                        *cost += self.complete_at_once();
                    }
                }
                Err(reason) => {
                    self.handle_refusal(id, queue, &bio, reason);
                    is_refused = true;
                    break;
                }
            }
        }
        let outstanding = self.tasks[at].outstanding();
        if submitted > 0
            && let Some(stats) = self.stats_at(id, self.now)
        {
            debug_assert!(syncs <= submitted, "{syncs} flushes of {submitted} I/Os");
            stats.depths.submitted(submitted, submitted - syncs, outstanding);
        }
        if let Some(queue) = used.filter(|_| plugs) {
            self.queues[queue.index()].unplug(&mut self.host, cpu, self.now);
        }
        // Each accepted I/O was followed up above. A released plug and a new waiter leave more to
        // do.
        if let Some(queue) = used.filter(|_| plugs || is_refused) {
            *cost += self.follow_up(queue, false);
        }
        // A call that sleeps for a tag continues with the rest of its I/Os.
        if !self.tasks[at].waits_for_tag() {
            self.tasks[at].end_call();
        }
        submitted
    }

    /// Notes that the queue has accepted the bio of the task's next I/O.
    #[inline]
    fn note_submitted(&mut self, id: TaskId) {
        let at = id.0 as usize;
        let recorded_at = self.tasks[at].recorded_at();
        let waited = self.tasks[at].submitted(self.now);
        self.totals.tag_wait += waited;
        self.totals.tag_waits += u64::from(waited > Duration::ZERO);
        self.count_turn(id);
        if let Some(recorded_at) = recorded_at {
            self.note_replayed_issue(recorded_at);
        }
    }

    /// Lets the next I/O of a task, whose bio is `bio`, meet the pages of its file, if it is direct
    /// I/O that does.
    #[inline]
    fn meet_cache(&mut self, id: TaskId, bio: Bio) -> Met {
        let task = &mut self.tasks[id.0 as usize];
        if !task.meets_cache() {
            return Met::Submits(bio);
        }
        let met = task.meet(bio, &mut self.cache, self.now);
        self.set_alarms_of_journals();
        met
    }

    /// Does the next I/O of a task, whose bio is `bio`: a direct read of blocks without data.
    /// Returns the cost. To fill a page with zeros is assumed to take as long as to copy it.
    #[inline(never)] // few reads find no data
    fn read_zeros(&mut self, id: TaskId, bio: &Bio) -> Duration {
        self.tasks[id.0 as usize].read_zeros(self.now);
        self.count_turn(id);
        self.cost_of_copy(u64::from(bio.sectors) * u64::from(SECTOR_BYTES))
    }

    /// Notes the end of the I/O of `slot` in the pages of its file, and in the file, if it was a
    /// direct write.
    fn end_direct_write(&mut self, id: TaskId, slot: u32, status: Status) {
        let written = self.tasks[id.0 as usize].direct_write(slot);
        if let Some((file, range)) = written.filter(|_| status == Status::Ok) {
            self.cache.end_direct(file, range, self.now);
            self.set_alarms_of_journals();
        }
    }

    /// Submits the flush that ends the call of a durable write.
    fn submit_due_flush(&mut self, id: TaskId, queue: QueueId, bio: Bio) -> Duration {
        match self.submit_for_task(id, queue, bio) {
            Ok(()) => {
                self.count_tag_wait(id);
                self.tasks[id.0 as usize].flush_submitted();
            }
            Err(reason) => self.handle_refusal(id, queue, &bio, reason),
        }
        let mut cost = self.follow_up(queue, false);
        if self.completion == Completion::WithinCall {
            cost += self.complete_at_once();
        }
        cost
    }

    /// Submits a task's `bio` as one of its process, and notes if the task had waited for a tag
    /// ([woken-takes-next-queue]).
    pub(super) fn submit_for_task(
        &mut self,
        id: TaskId,
        queue: QueueId,
        bio: Bio,
    ) -> Result<(), SubmitError> {
        let task = &self.tasks[id.0 as usize];
        let cpu = task.cpu;
        let was_refused = task.was_refused();
        let bio = bio.with_submitter(Owner::Task(id).submitter(task.cgroup));
        self.submit(queue, cpu, bio)?;
        if was_refused {
            self.queues[queue.index()].waiter_entered(&mut self.host, cpu, &bio);
        }
        Ok(())
    }

    /// Handles a queue's refusal of a task's `bio` for `reason`: the task waits for a tag or for a
    /// place of throttled writeback, or the run fails.
    pub(super) fn handle_refusal(
        &mut self,
        id: TaskId,
        queue: QueueId,
        bio: &Bio,
        reason: SubmitError,
    ) {
        let task = &mut self.tasks[id.0 as usize];
        match reason {
            SubmitError::NoTag => task.sleep_for_tag(self.now),
            SubmitError::Throttled => task.sleep_for_place(),
            // Only tags and places come back by themselves.
            _ => {
                self.failure.get_or_insert(Failure::Refused(Some(id), reason));
                return;
            }
        }
        let cpu = task.cpu;
        self.queues[queue.index()]
            .wait(&mut self.host, cpu, bio, Owner::Task(id).waiter(), self.now)
            .expect("every task should have room to wait");
    }

    /// Ends a step that cost `cost`, and plans the task's next action. Returns how long the task
    /// computes first.
    pub(super) fn end_step(&mut self, id: TaskId, cost: Duration) -> Duration {
        let end = self.now + cost;
        self.tasks[id.0 as usize].end_step(end);
        let counts = !self.tasks[id.0 as usize].has_ended;
        if counts {
            self.judge_depth(id, end);
        }
        let buffered = self.plan_buffered(id, end);
        let has_turn = self.has_turn(id);
        let task = &mut self.tasks[id.0 as usize];
        let plan = match buffered {
            // The step continues when the tag is free, or when the driver lets it return.
            _ if task.waits_for_tag() || task.is_in_driver() => Plan::AwaitCompletions,
            Some(plan) => plan,
            None => task.plan(end, has_turn),
        };
        let spin = task.take_spin();
        if counts && let Some(stats) = self.stats_at(id, self.now) {
            stats.cpu_ns += (cost + spin).as_ns();
            stats.spent.thinking += spin;
            stats.spent.in_calls += cost;
        }
        let task = &mut self.tasks[id.0 as usize];
        let mut rest = Rest { since: end + spin, until: None, paced: task.keeps_pace() };
        match plan {
            // Other threads that are ready have their turn first.
            Plan::Step => self.cpus[task.cpu.index()].push(Work::Step(id)),
            // The pieces of a call go before other threads.
            Plan::Submit => self.cpus[task.cpu.index()].push_next(Work::Step(id)),
            Plan::CopyPage => self.cpus[task.cpu.index()].push_next(Work::Copy(id)),
            Plan::AwaitRecord => {
                rest.until = Some(Instant::MAX);
                task.measuring.rest = Some(rest);
            }
            Plan::AwaitCompletions => {
                // A task with polled I/Os does not sleep: its processor polls for it while it has
                // no other work.
                if task.polls() {
                    self.cpus[task.cpu.index()].pollers.push(id);
                } else {
                    task.measuring.rest = Some(rest);
                }
            }
            Plan::AwaitInstant(due) => {
                rest.until = Some(due);
                task.measuring.rest = Some(rest);
                self.events.push(due, Event::Alarm(id));
            }
            Plan::AwaitTurn(until) => {
                rest.until = Some(Instant::MAX);
                task.measuring.rest = Some(rest);
                // Another task of the flow wakes it for a turn. The alarm ends its job.
                if until < Instant::MAX {
                    self.events.push(until, Event::Alarm(id));
                }
            }
            Plan::End => self.end_task(id, end),
        }
        spin
    }
}
