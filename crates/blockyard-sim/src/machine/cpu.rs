//! Processors. Each does one thing at a time.

use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_trace::observe::{ActorId, TaskId, Work};
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
            running: false,
            busy_until: Instant::ZERO,
            spinning: None,
            pollers: Vec::new(),
            polling: None,
            looked: false,
            busy: Duration::ZERO,
            last: None,
            idled: false,
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

    /// Whether the processor will be idle at `at`, as far as is known now.
    #[must_use]
    pub(crate) fn is_idle(&self, at: Instant) -> bool {
        !self.running && self.busy_until <= at && self.polling.is_none()
    }

    /// Whether the processor has work or spins.
    #[must_use]
    pub(crate) fn has_work(&self) -> bool {
        !self.urgent.is_empty() || !self.ready.is_empty() || !self.pollers.is_empty()
    }

    /// Takes the next work. The pollers poll once between two ready threads.
    pub(crate) fn take_work(&mut self) -> Option<Work> {
        if let Some(work) = self.urgent.pop_front() {
            return Some(work);
        }
        // One poll, one thread, one poll: neither keeps the other waiting.
        let looks = !self.looked && !self.ready.is_empty();
        if let Some(task) = self.looker().filter(|_| looks) {
            self.looked = true;
            return Some(Work::Poll(task));
        }
        self.looked = false;
        self.ready.pop_front()
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
        let thread = match work {
            Work::Complete { .. }
            | Work::Vector(_)
            | Work::Interrupt
            | Work::Timer
            | Work::MmcDriverStep(..) => {
                return Switch::None;
            }
            Work::Run { .. } | Work::MmcDriver(_) if work.dispatches() => Thread::Worker,
            Work::Run { .. } | Work::MmcDriver(_) => Thread::Deferred,
            Work::Step(task) | Work::Copy(task) | Work::Poll(task) => Thread::Task(*task),
            Work::Actor(actor) => Thread::Actor(*actor),
        };
        let has_idled = core::mem::take(&mut self.idled);
        match self.last.replace(thread) {
            Some(last) if last == thread && !has_idled => Switch::None,
            Some(last) if last == thread => Switch::FromIdle,
            _ => Switch::FromThread,
        }
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
        cpus.iter_mut().for_each(|cpu| cpu.running = true);
        assert_eq!(chosen(&cpus, 2, Some(2)), 2, "where all are busy, where it was");
    }
}
