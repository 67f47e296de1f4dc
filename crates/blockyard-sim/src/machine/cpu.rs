//! Processors: each runs one thing at a time.

use crate::device::mmc::contexts::Doing;
use crate::device::terms::Runner;
use blockyard::driver::Finished;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, QueueId};
use blockyard_mmc::block::{ActKind, Context};
use blockyard_mmc::controller::SlotId;
use std::collections::VecDeque;

/// A job instance, as the machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(pub u32);

/// A piece of work for a processor.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Handle a completion, by interrupt or without.
    Complete {
        /// The completion.
        finished: Finished,
        /// Whether an interrupt announced it.
        interrupt: bool,
    },
    /// Run a hardware queue from a thread.
    Run {
        /// The thread.
        by: Runner,
        /// The request queue.
        queue: QueueId,
        /// The hardware queue.
        hctx: HctxId,
    },
    /// Let a job instance take its next step.
    Step(TaskId),
    /// Let a job instance copy from a page of the page cache.
    Copy(TaskId),
    /// Let a job instance poll its processor's hardware queue, for every instance that waits for it.
    Look(TaskId),
    /// Take an interrupt of an MMC host.
    Interrupt,
    /// Take the interrupt of a timer that threads of an MMC host sleep for.
    Timer,
    /// Let a thread of an MMC host's driver work.
    Host(Context),
    /// An act of such a driver, for the request in a slot or for none. Observers see it; no processor is given
    /// one.
    Act(ActKind, Option<SlotId>),
}

/// A job instance that polls its processor's hardware queue again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// The instance.
    pub task: TaskId,
    /// When the first poll began; the next ones follow at the time of a poll each.
    pub since: Instant,
    /// The spin has been counted up to here.
    pub counted: Instant,
}

/// The thread that a processor ran last: a change costs a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// The worker, or the thread of an MMC host that dispatches.
    Worker,
    /// The thread of an MMC host's deferred work.
    Deferred,
    Task(TaskId),
}

/// One processor.
#[derive(Debug)]
pub struct Cpu {
    /// Completions and interrupts, before everything else ([completions-before-threads]).
    urgent: VecDeque<Work>,
    /// Threads that are ready, in turn.
    ready: VecDeque<Work>,
    /// Whether it spins or has work to begin when it is free.
    pub running: bool,
    /// When its current work ends.
    pub busy_until: Instant,
    /// The work for which it waits for the lock, and since when it spins.
    pub spinning: Option<(Work, Instant)>,
    /// Job instances that wait for polled I/Os: they do not sleep.
    pub pollers: Vec<TaskId>,
    /// The poller that spins, as there is nothing else to do.
    pub polling: Option<Spin>,
    /// The pollers have polled since a thread ran.
    looked: bool,
    /// Time spent running or spinning.
    pub busy: Duration,
    /// The work for the driver of an MMC host that it pays for.
    pub doing: Option<Doing>,
    last: Option<Thread>,
}

impl Cpu {
    /// An idle processor.
    #[must_use]
    pub const fn new() -> Self {
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
            doing: None,
            last: None,
        }
    }

    /// Gives it work, behind earlier work; completions go first.
    pub fn push(&mut self, work: Work) {
        match work {
            Work::Complete { .. } | Work::Interrupt | Work::Timer => self.urgent.push_back(work),
            Work::Run { .. } | Work::Step(_) | Work::Copy(_) | Work::Look(_) | Work::Host(_) => {
                self.ready.push_back(work);
            }
            Work::Act(..) => unreachable!("{work:?} was given to a processor"),
        }
    }

    /// Gives more work to the thread that runs, before any other thread; completions go first.
    pub fn push_next(&mut self, work: Work) {
        debug_assert!(
            matches!(work, Work::Step(_) | Work::Copy(_) | Work::Host(_)),
            "{work:?} is not the work of a thread"
        );
        self.ready.push_front(work);
    }

    /// Whether completions or interrupts wait.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether it will be idle at `at`, as far as is known.
    #[must_use]
    pub fn is_idle(&self, at: Instant) -> bool {
        !self.running && self.busy_until <= at && self.polling.is_none()
    }

    /// Whether it has work, if only to spin.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.urgent.is_empty() || !self.ready.is_empty() || !self.pollers.is_empty()
    }

    /// Takes the next work. Between two threads that are ready, the pollers poll once.
    pub fn take_work(&mut self) -> Option<Work> {
        debug_assert!(self.doing.is_none(), "new work during {:?}", self.doing);
        if let Some(work) = self.urgent.pop_front() {
            return Some(work);
        }
        let looks = !self.looked && !self.ready.is_empty();
        if let Some(task) = self.looker().filter(|_| looks) {
            self.looked = true;
            return Some(Work::Look(task));
        }
        self.looked = false;
        self.ready.pop_front()
    }

    /// The instance that polls: the one that ran last if it is a poller, for that costs no switch.
    #[must_use]
    pub fn looker(&self) -> Option<TaskId> {
        let ran_last = |task: &&TaskId| self.last == Some(Thread::Task(**task));
        self.pollers.iter().find(ran_last).or(self.pollers.last()).copied()
    }

    /// Notes the thread of `work` as the last one. Returns whether another thread ran before.
    pub fn switches_to(&mut self, work: &Work) -> bool {
        debug_assert!(self.spinning.is_none(), "{work:?} on a processor that waits for the lock");
        let thread = match work {
            Work::Complete { .. } | Work::Interrupt | Work::Timer | Work::Act(..) => return false,
            Work::Host(Context::Interrupt) => return false,
            Work::Host(Context::Deferred) => Thread::Deferred,
            Work::Run { .. } | Work::Host(Context::Thread) => Thread::Worker,
            Work::Step(task) | Work::Copy(task) | Work::Look(task) => Thread::Task(*task),
        };
        self.last.replace(thread) != Some(thread)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}
