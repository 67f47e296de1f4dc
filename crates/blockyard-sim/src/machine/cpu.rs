//! Processors. Each does one thing at a time.

use super::worker::Worker;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_trace::observe::{ActorId, Runner, TaskId, Work};
use std::collections::VecDeque;

/// A job instance that polls its processor's hardware queue again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spin {
    /// The instance.
    pub task: TaskId,
    /// The start of the first poll. Later polls follow without a gap.
    pub since: Instant,
    /// The instant up to which the spin has been counted.
    pub counted: Instant,
}

/// The thread that a processor last ran. A change of thread costs a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// The worker, or the thread of an MMC host that dispatches.
    Worker,
    /// The thread of an MMC host's deferred work.
    Deferred,
    Task(TaskId),
    Actor(ActorId),
}

/// One processor.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// Completions and interrupts, before everything else.
    urgent: VecDeque<Work>,
    /// Threads that are ready, in turn.
    ready: VecDeque<Work>,
    /// The worker, if it runs by its lag; otherwise it takes its turn.
    pub(crate) worker: Option<Worker>,
    /// Whether the processor spins, or has work to begin when it is free.
    pub running: bool,
    /// The end of the current work.
    pub(crate) busy_until: Instant,
    /// The work that waits for the lock, and the start of the spin.
    pub spinning: Option<(Work, Instant)>,
    /// Job instances that wait for polled I/Os without sleeping.
    pub(crate) pollers: Vec<TaskId>,
    /// The poller that spins while there is no other work.
    pub polling: Option<Spin>,
    /// Whether the pollers have polled since a thread last ran.
    looked: bool,
    /// Time spent running or spinning.
    pub busy: Duration,
    last: Option<Thread>,
    /// Whether the processor has idled since a thread last ran.
    idled: bool,
    /// Whether its last piece of work was that of a thread, not of an interrupt.
    in_thread: bool,
    /// Until when it leaves its idle task for a thread that an interrupt has woken. Interrupts may
    /// come meanwhile.
    threads_from: Instant,
}

/// What a piece of work means to the thread that ran before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// That thread continues, or the work is no thread's.
    None,
    /// The processor has idled, and the thread that ran last continues.
    FromIdle,
    /// Another thread ran last.
    FromThread,
}

impl Cpu {
    /// Returns an idle processor.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            urgent: VecDeque::new(),
            ready: VecDeque::new(),
            worker: None,
            running: false,
            busy_until: Instant::ZERO,
            spinning: None,
            pollers: Vec::new(),
            polling: None,
            looked: false,
            busy: Duration::ZERO,
            last: None,
            idled: false,
            in_thread: false,
            threads_from: Instant::ZERO,
        }
    }

    /// Gives the processor work, to be done after earlier work. Completions go first.
    pub(crate) fn push(&mut self, work: Work) {
        match work {
            Work::Complete { .. } | Work::Vector(_) | Work::Interrupt | Work::Timer => {
                self.urgent.push_back(work);
            }
            Work::Run { .. }
            | Work::Step(_)
            | Work::Copy(_)
            | Work::Poll(_)
            | Work::Actor(_)
            | Work::MmcDriver(_) => {
                self.ready.push_back(work);
            }
            Work::MmcDriverStep(..) => unreachable!("{work:?} was given to a processor"),
        }
    }

    /// Wakes a thread at `now` to do `work`.
    pub(crate) fn wake(&mut self, work: Work, now: Instant) {
        match (&mut self.worker, work) {
            (Some(worker), Work::Run { by: Runner::Worker, .. }) => {
                let others_ready = !self.ready.is_empty() || !self.pollers.is_empty();
                worker.wake(work, now, others_ready);
            }
            (worker, _) => {
                if let Some(worker) = worker
                    && self.last.is_some_and(|last| thread_of(&work) == Some(last))
                {
                    worker.begin_slice();
                }
                self.push(work);
            }
        }
    }

    /// Takes a run back from the worker. Returns whether it had not begun.
    pub(crate) fn withdraw(&mut self, queue: QueueId, hctx: HctxId) -> bool {
        self.worker.as_mut().is_some_and(|worker| worker.withdraw(queue, hctx))
    }

    /// Gives more work to the running thread, to be done before any other thread's. Completions go
    /// first.
    pub(crate) fn push_next(&mut self, work: Work) {
        debug_assert!(
            matches!(work, Work::Step(_) | Work::Copy(_) | Work::Actor(_) | Work::MmcDriver(_)),
            "{work:?} is not the work of a thread"
        );
        self.ready.push_front(work);
    }

    /// Whether completions or interrupts wait.
    #[must_use]
    pub(crate) fn has_completions(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether the processor will be idle at `at`, as far as is known now. One that still leaves
    /// its idle task for a thread is not, as for `idle_cpu` of Linux, which counts ready threads.
    #[must_use]
    pub(crate) fn is_idle(&self, at: Instant) -> bool {
        let runs = self.running || self.polling.is_some() || self.busy_until > at;
        !runs && self.ready.is_empty() && !self.worker_waits()
    }

    /// Whether the processor has work or spins.
    #[must_use]
    pub(crate) fn has_work(&self) -> bool {
        !self.urgent.is_empty()
            || !self.ready.is_empty()
            || !self.pollers.is_empty()
            || self.worker_waits()
    }

    /// Whether a thread runs or is ready at `at`. Otherwise the processor is in its idle task, or
    /// in an interrupt of it.
    #[must_use]
    pub(crate) fn has_thread(&self, at: Instant) -> bool {
        let runs = self.in_thread && !self.is_idle(at);
        runs || !self.ready.is_empty() || !self.pollers.is_empty() || self.worker_waits()
    }

    /// Lets no thread begin before `at`, as the processor leaves its idle task until then.
    pub(crate) fn hold_threads(&mut self, at: Instant) {
        self.threads_from = self.threads_from.max(at);
    }

    /// Returns when the first thread may begin; `None` if one may at `now`, or if a completion or
    /// an interrupt is to be done first.
    #[must_use]
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        (now < self.threads_from && self.urgent.is_empty()).then_some(self.threads_from)
    }

    fn worker_waits(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::has_work)
    }

    /// Takes the next work. The pollers poll once between two ready threads.
    pub(crate) fn take_work(&mut self) -> Option<Work> {
        if let Some(work) = self.urgent.pop_front() {
            return Some(work);
        }
        // One poll, one thread, one poll: neither keeps the other waiting.
        let looks = !self.looked && (!self.ready.is_empty() || self.worker_waits());
        if let Some(task) = self.looker().filter(|_| looks) {
            self.looked = true;
            return Some(Work::Poll(task));
        }
        self.looked = false;
        if self.worker.is_some() { self.take_thread() } else { self.ready.pop_front() }
    }

    /// Takes the work of the next thread, where the worker runs by its lag.
    fn take_thread(&mut self) -> Option<Work> {
        let last = self.last;
        let sleeps = !self.ready.iter().any(|work| thread_of(work) == last);
        let worker = self.worker.as_mut()?;
        // A task that polls never sleeps, so the worker does not wait for that.
        if let Some(work) = worker.take(sleeps || !self.pollers.is_empty()) {
            return Some(work);
        }
        if sleeps && last != Some(Thread::Worker) {
            worker.begin_slice();
        }
        self.ready.pop_front()
    }

    /// Notes that `work` occupies the processor for `time`, until `end`.
    pub(crate) fn occupy(&mut self, work: &Work, time: Duration, end: Instant) {
        self.busy += time;
        self.busy_until = end;
        if let (Some(worker), Some(thread)) = (&mut self.worker, thread_of(work)) {
            worker.note(thread == Thread::Worker, time, end);
        }
    }

    /// Returns the task whose thread has just run until `now`, if it is ready and nothing else is.
    #[must_use]
    pub(crate) fn only_task(&self, now: Instant) -> Option<TaskId> {
        let worker_rests = self.worker.as_ref().is_none_or(Worker::rests);
        let others = !self.urgent.is_empty() || !self.pollers.is_empty() || !worker_rests;
        let is_held = self.spinning.is_some() || self.threads_from > now || self.idled;
        if self.busy_until != now || self.ready.len() != 1 || others || is_held {
            return None;
        }
        match self.ready.front() {
            Some(Work::Step(task)) if self.last == Some(Thread::Task(*task)) => Some(*task),
            _ => None,
        }
    }

    /// Notes that the thread that ran last has gone on for `time`, until `end`.
    pub(crate) fn go_on(&mut self, time: Duration, end: Instant) {
        self.busy += time;
        self.busy_until = end;
        if let Some(worker) = &mut self.worker {
            worker.note(false, time, end);
        }
    }

    /// Returns the instance that polls. A poller that ran last is preferred, as it costs no switch.
    #[must_use]
    pub(crate) fn looker(&self) -> Option<TaskId> {
        let last = self.pollers.iter().find(|task| self.last == Some(Thread::Task(**task)));
        last.or(self.pollers.last()).copied()
    }

    /// Notes that the processor has idled until `now`, if it has. Work that follows other work
    /// without a gap finds it busy.
    pub(crate) fn idle(&mut self, now: Instant) {
        self.idled |= self.busy_until < now;
    }

    /// Records the thread of `work` as the last thread. Returns what that means to the one before.
    pub(crate) fn switches_to(&mut self, work: &Work) -> Switch {
        debug_assert!(
            self.spinning.is_none(),
            "a processor that waits for the lock must not begin {work:?}"
        );
        let thread = thread_of(work);
        self.in_thread = thread.is_some();
        let Some(thread) = thread else { return Switch::None };
        let has_idled = core::mem::take(&mut self.idled);
        match self.last.replace(thread) {
            Some(last) if last == thread && !has_idled => Switch::None,
            Some(last) if last == thread => Switch::FromIdle,
            _ => Switch::FromThread,
        }
    }
}

/// Returns the thread that does `work`; `None` for interrupts.
const fn thread_of(work: &Work) -> Option<Thread> {
    match work {
        Work::Complete { .. }
        | Work::Vector(_)
        | Work::Interrupt
        | Work::Timer
        | Work::MmcDriverStep(..) => None,
        Work::Run { .. } | Work::MmcDriver(_) if work.dispatches() => Some(Thread::Worker),
        Work::Run { .. } | Work::MmcDriver(_) => Some(Thread::Deferred),
        Work::Step(task) | Work::Copy(task) | Work::Poll(task) => Some(Thread::Task(*task)),
        Work::Actor(actor) => Some(Thread::Actor(*actor)),
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the processor for a thread that is woken at `at`: the first one from `preferred` on that
/// will be idle and is not taken by another woken thread, or `preferred` if there is none.
pub(crate) fn idle_cpu(
    cpus: &[Cpu],
    preferred: CpuId,
    is_taken: impl Fn(CpuId) -> bool,
    at: Instant,
) -> CpuId {
    debug_assert!(preferred.index() < cpus.len(), "{preferred:?} of {}", cpus.len());
    // From processor 2 of 4 the order is 2, 3, 0, 1.
    for step in 0..cpus.len() {
        let number = u16::try_from((preferred.index() + step) % cpus.len());
        let cpu = CpuId(number.expect("a processor number should fit 16 bits"));
        if cpus[cpu.index()].is_idle(at) && !is_taken(cpu) {
            return cpu;
        }
    }
    preferred
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(cpus: &[Cpu], preferred: u16, taken: Option<u16>) -> u16 {
        let at = Instant::from_ns(1000);
        idle_cpu(cpus, CpuId(preferred), |cpu| taken == Some(cpu.0), at).0
    }

    /// An interrupt at 1000 ns finds the processor idle, and wakes a worker that is there at
    /// 3000 ns. Another interrupt comes first. Where a thread ran, the worker does not wait.
    #[test]
    fn an_idle_processor_turns_to_threads_later_and_to_interrupts_at_once() {
        let ns = Instant::from_ns;
        let mut cpu = Cpu::new();
        assert_eq!(cpu.switches_to(&Work::Interrupt), Switch::None);
        cpu.running = true;
        assert!(!cpu.has_thread(ns(1000)));
        cpu.hold_threads(ns(3000));
        cpu.push(Work::Step(TaskId(0)));
        assert_eq!(cpu.held_until(ns(2999)), Some(ns(3000)));
        assert_eq!(cpu.held_until(ns(3000)), None);
        cpu.running = false;
        assert!(!cpu.is_idle(ns(2000)), "it leaves its idle task");
        cpu.running = true;
        cpu.push(Work::Interrupt);
        assert_eq!(cpu.held_until(ns(2000)), None, "an interrupt is to be done");
        let mut busy = Cpu::new();
        assert_eq!(busy.switches_to(&Work::Step(TaskId(0))), Switch::FromThread);
        busy.running = true;
        assert!(busy.has_thread(ns(1000)));
        assert_eq!(busy.switches_to(&Work::Interrupt), Switch::None);
        assert!(!busy.has_thread(ns(1000)), "the thread sleeps");
        busy.push(Work::Step(TaskId(0)));
        assert!(busy.has_thread(ns(1000)), "the interrupt interrupted it");
    }

    #[test]
    fn a_thread_goes_where_nobody_is_or_is_on_the_way_to() {
        let at = Instant::from_ns(1000);
        let mut cpus: Vec<_> = (0..4).map(|_| Cpu::new()).collect();
        assert_eq!(chosen(&cpus, 2, None), 2);
        assert_eq!(chosen(&cpus, 2, Some(2)), 3);
        assert_eq!(chosen(&cpus, 3, Some(3)), 0, "past the last is the first");
        cpus[3].running = true;
        assert_eq!(chosen(&cpus, 2, Some(2)), 0);
        cpus[2].busy_until = at + Duration::from_ns(1);
        assert_eq!(chosen(&cpus, 2, Some(1)), 0);
        cpus[2].busy_until = at;
        assert_eq!(chosen(&cpus, 2, Some(1)), 2, "it is idle by then");
        // The worker of 2 was woken at 999 ns by an interrupt, and begins at 2999 ns.
        cpus[2].worker = Some(Worker::new(4));
        let run = Work::Run { by: Runner::Worker, queue: QueueId(0), hctx: HctxId(0) };
        cpus[2].wake(run, Instant::from_ns(999));
        cpus[2].hold_threads(Instant::from_ns(2999));
        assert_eq!(chosen(&cpus, 2, Some(1)), 0, "its worker is ready");
        cpus.iter_mut().for_each(|cpu| cpu.running = true);
        assert_eq!(chosen(&cpus, 2, Some(2)), 2, "where all are busy, where it was");
    }
}
