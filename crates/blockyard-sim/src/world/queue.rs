//! The requests of queues to the world: runs, now or by a thread ([one-deferred-run-pending]),
//! wake-ups, and calls at an instant.

use super::actor::Actor;
use super::owner::Owner;
use super::{Event, World};
use crate::machine::cpu::idle_cpu;
use blockyard::time::{Duration, Instant};
use blockyard::trace::Action;
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_devices::terms::Dispatch;
use blockyard_trace::observe::{Runner, TaskId};
use core::cmp::Reverse;

/// The time for which a simulation continues while the driver accepts nothing and only timers of
/// queues are left. It is many times the timeout of a request.
const PATIENCE: Duration = Duration::from_secs(600);

/// The thread that runs a hardware queue, as an actor: a worker, or the dispatching thread of an
/// MMC host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker {
    pub(super) by: Runner,
    pub(super) queue: QueueId,
    pub(super) hctx: HctxId,
}

impl Actor for Worker {
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        world.locking.submitting.then_some(self.queue)
    }

    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        world.run_deferred(self.by, self.queue, self.hctx)
    }

    fn plan_next(&mut self, world: &mut World<'_>, cpu: CpuId, _cost: Duration) -> Duration {
        if self.by == Runner::HostThread {
            world.plan_after_run(cpu);
        }
        Duration::ZERO
    }
}

impl World<'_> {
    /// Handles a queue's timer, and leaves the queue's runs to threads. The timer is rare, and
    /// costs no processor time.
    pub(super) fn on_queue_timer(&mut self, queue: QueueId) {
        self.queue_timers[queue.index()] = None;
        let _ = self.follow_up(queue, true);
        self.host.sink.0.0.drop_unpaid();
        self.on_host_timer();
    }

    /// Whether the driver has accepted nothing for [`PATIENCE`] and only timers of queues are left.
    /// Such timers ask the driver again and again about requests that it never ends.
    pub(super) fn has_stalled(&mut self) -> bool {
        let issued = self.host.sink.0.1.count(Action::Issue);
        // The clock starts anew whenever the driver has accepted a request since the last look.
        if self.last_issue.0 != issued {
            self.last_issue = (issued, self.now);
        }
        let waits_long = self.now.since(self.last_issue.1) > PATIENCE;
        // The scan of all events comes last, because it takes the most time.
        waits_long
            && self.next_event.is_none()
            && self.events.pending().all(|event| matches!(event, Event::QueueTimer(_)))
    }

    fn schedule_queue_timer(&mut self, queue: QueueId) {
        let Some(at) = self.queues[queue.index()].poll_at() else { return };
        // An earlier timer stays: when it fires, the queue says what it wants next.
        let scheduled = &mut self.queue_timers[queue.index()];
        if scheduled.is_none_or(|earlier| at < earlier) {
            *scheduled = Some(at);
            self.events.push(at.max(self.now), Event::QueueTimer(queue));
        }
    }

    /// Returns the processor of the thread that runs `hctx` of `queue`.
    pub(super) fn cpu_of_run(&mut self, by: Runner, queue: QueueId, hctx: HctxId) -> CpuId {
        match by {
            Runner::Worker => self.cpu_of_worker(queue, hctx),
            Runner::HostThread => self.dispatching_cpu(),
            Runner::Submitter => {
                unreachable!("a submitter should run a hardware queue without an event")
            }
        }
    }

    pub(super) fn run_deferred(&mut self, by: Runner, queue: QueueId, hctx: HctxId) -> Duration {
        let was_pending = &mut self.deferred[queue.index()][hctx.index()];
        assert!(
            core::mem::take(was_pending),
            "[one-deferred-run-pending] a run that nobody deferred"
        );
        if by == Runner::HostThread {
            self.begin_run_of_host();
        }
        self.run_queue(queue, hctx);
        self.follow_up(queue, false)
    }

    fn run_queue(&mut self, queue: QueueId, hctx: HctxId) {
        debug_assert!(hctx.index() < self.worker_cpu.len(), "{hctx:?} of {queue:?}");
        self.totals.runs += 1;
        self.note_elevator(queue);
        let _ = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
    }

    /// Tells `queue` whether other work holds the lock of its elevator, if nobody waits for it.
    pub(super) fn note_elevator(&mut self, queue: QueueId) {
        if self.locking.tries {
            let taken = self.locks[queue.index()].is_taken(self.now);
            self.queues[queue.index()].note_elevator(taken);
        }
    }

    /// Does or schedules the work that a call on `queue` left. After a completion, threads do all
    /// runs.
    pub(super) fn follow_up(&mut self, queue: QueueId, after_completion: bool) -> Duration {
        let cost = self.follow_up_at(queue, after_completion);
        // Queues of one host share its tags: what one frees, another one may use. Linux leaves the
        // run of a hardware queue that waited for a tag to a worker (`blk_mq_dispatch_wake`). Of 3
        // queues that wait for one tag, the first is run, and names the second one afterwards.
        if let Some((starved, hctx)) = self.host.next_starved() {
            self.defer_run(runner_of(self.dispatch, true), starved, hctx);
        }
        cost
    }

    /// Handles runs, results, wake-ups and polls of one queue.
    fn follow_up_at(&mut self, queue: QueueId, after_completion: bool) -> Duration {
        while let Some(run) = self.queues[queue.index()].next_run(&mut self.host, self.now) {
            match runner_of(self.dispatch, run.deferred || after_completion) {
                Runner::Submitter => self.run_queue(queue, run.hctx),
                // After a completion the processor is in an interrupt, where it does not dispatch.
                thread => self.defer_run(thread, queue, run.hctx),
            }
        }
        debug_assert!(self.woken.is_empty(), "{:?} were woken before", self.woken);
        // First collect all waiters, because those that a wake-up has brought no tag before go
        // first.
        let mut cost = Duration::ZERO;
        while let Some(waiter) = self.queues[queue.index()].next_woken(&mut self.host) {
            match Owner::of_waiter(waiter) {
                Owner::Task(id) => self.woken.push((self.tasks[id.0 as usize].refused_wakes(), id)),
                Owner::Added(id) => cost += self.wake_waiting_actor(id, queue),
            }
        }
        let mut from = self.now;
        if !self.woken.is_empty() {
            let (cost_of_refused, after_refused) = self.wake_refused_waiters();
            cost += cost_of_refused;
            from = after_refused;
        }
        while let Some(ended) = self.queues[queue.index()].next_ended() {
            if self.verifier.is_some() {
                self.verify_end(queue, &ended);
            }
            cost += self.end_bio(ended.bio.cookie, ended.status, from);
        }
        // The rest of the waiters run after the tasks whose I/Os have ended, which may take the
        // tags again.
        for at in 0..self.woken.len() {
            cost += self.wake(self.woken[at].1, from);
        }
        self.woken.clear();
        self.schedule_queue_timer(queue);
        cost
    }

    /// Wakes those of the woken tasks that have found no tag before, and leaves the others. Returns
    /// the cost, and the instant from which other tasks may run.
    #[inline(never)] // most calls wake nobody
    fn wake_refused_waiters(&mut self) -> (Duration, Instant) {
        debug_assert!(!self.woken.is_empty(), "no waiter was woken");
        let mut woken = core::mem::take(&mut self.woken);
        woken.sort_by_key(|&(refused_wakes, _)| Reverse(refused_wakes));
        // Of waiters that found no tag 3, 1, 0 and 0 times, the first two run now, in this order.
        let refused = woken.partition_point(|&(refused_wakes, _)| refused_wakes > 0);
        let mut cost = Duration::ZERO;
        for at in 0..refused {
            self.move_waiter(woken[at].1, &woken[..at]);
            cost += self.wake(woken[at].1, self.now);
        }
        woken.drain(..refused);
        self.woken = woken;
        let wakeup = if refused > 0 { self.machine.wakeup } else { Duration::ZERO };
        (cost, self.now + wakeup)
    }

    /// Moves a task that has found no tag to an idle processor where none of the tasks `before` it
    /// goes, if its own is busy. A task that polls stays.
    fn move_waiter(&mut self, id: TaskId, before: &[(u32, TaskId)]) {
        let task = &self.tasks[id.0 as usize];
        if !task.may_move || task.polls() {
            return;
        }
        // The tasks before it have been woken, but their processors do not show that before they
        // are there.
        let cpu = idle_cpu(
            &self.cpus,
            task.cpu,
            |cpu| before.iter().any(|(_, other)| self.tasks[other.0 as usize].cpu == cpu),
            self.now,
        );
        self.tasks[id.0 as usize].cpu = cpu;
    }

    /// Leaves a run of a hardware queue to a thread ([one-deferred-run-pending]).
    fn defer_run(&mut self, thread: Runner, queue: QueueId, hctx: HctxId) {
        let pending = &mut self.deferred[queue.index()][hctx.index()];
        // The pending run will find what this one would.
        let is_pending = core::mem::replace(pending, true);
        match thread {
            Runner::Worker => self.ask_worker(queue, hctx, is_pending),
            Runner::HostThread if is_pending => {}
            Runner::HostThread => self.want_run(queue, hctx),
            Runner::Submitter => unreachable!("a submitter should not defer a run to itself"),
        }
    }
}

/// Returns the thread or processor that makes the next run of a hardware queue.
const fn runner_of(dispatch: Dispatch, is_deferred: bool) -> Runner {
    match dispatch {
        Dispatch::Direct if is_deferred => Runner::Worker,
        Dispatch::HostSubmitter if is_deferred => Runner::HostThread,
        Dispatch::Direct | Dispatch::HostSubmitter => Runner::Submitter,
        Dispatch::HostThread => Runner::HostThread,
    }
}
