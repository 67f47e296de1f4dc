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

/// One thing for a processor to do.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Handle a completion, by interrupt or without.
    Complete {
        /// The completion.
        finished: Finished,
        /// Whether an interrupt told of it.
        interrupt: bool,
    },
    /// Run a hardware queue from a thread.
    Run {
        /// The thread.
        by: Runner,
        /// Of which queue.
        queue: QueueId,
        /// Which.
        hctx: HctxId,
    },
    /// Let a job instance take its next step.
    Step(TaskId),
    /// Let a job instance copy from a page of the page cache.
    Copy(TaskId),
    /// Let a job instance look at its processor's polled hardware queue, for all that wait for it.
    Look(TaskId),
    /// Take an interrupt of an MMC host.
    Interrupt,
    /// Take the interrupt of a timer that threads of an MMC host sleep for.
    Timer,
    /// Let a thread of an MMC host's driver work.
    Host(Context),
    /// What such a driver does at a time, for the request in a slot, or for none; only told, never
    /// given.
    Act(ActKind, Option<SlotId>),
}

/// A job instance that looks at its processor's polled hardware queue again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// Which.
    pub task: TaskId,
    /// When the first look began: another one begins after each time that a look takes.
    pub since: Instant,
    /// Up to here it has been counted.
    pub counted: Instant,
}

/// Which thread a processor ran last: another one costs a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// The worker, or the thread of an MMC host that does its work.
    Worker,
    /// The one of an MMC host's deferred work.
    Deferred,
    Task(TaskId),
}

/// One processor.
#[derive(Debug)]
pub struct Cpu {
    /// Completions, before everything else.
    urgent: VecDeque<Work>,
    /// Threads that are ready, in turn.
    ready: VecDeque<Work>,
    /// Whether it spins, or has work for when it is free.
    pub running: bool,
    /// When it is done with what it does.
    pub busy_until: Instant,
    /// What it wants the lock for, and since when it spins.
    pub spinning: Option<(Work, Instant)>,
    /// Job instances that wait for polled I/Os: they do not sleep.
    pub pollers: Vec<TaskId>,
    /// One of these spins, as there is nothing else to do.
    pub polling: Option<Spin>,
    /// They have looked since a thread ran.
    looked: bool,
    /// Time spent running or spinning.
    pub busy: Duration,
    /// What it does for the driver of an MMC host.
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

    /// Gives it something to do, in turn; completions go first.
    pub fn push(&mut self, work: Work) {
        match work {
            Work::Complete { .. } | Work::Interrupt | Work::Timer => self.urgent.push_back(work),
            Work::Run { .. } | Work::Step(_) | Work::Copy(_) | Work::Look(_) | Work::Host(_) => {
                self.ready.push_back(work);
            }
            Work::Act(..) => unreachable!("acts are not given"),
        }
    }

    /// Gives the thread that runs something more to do, before any other thread; completions go
    /// first.
    pub fn go_on(&mut self, work: Work) {
        self.ready.push_front(work);
    }

    /// Whether completions or interrupts wait.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether it does nothing at `at`, for all that is known.
    #[must_use]
    pub fn is_idle(&self, at: Instant) -> bool {
        !self.running && self.busy_until <= at && self.polling.is_none()
    }

    /// Whether it has something to do, if only to spin.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.urgent.is_empty() || !self.ready.is_empty() || !self.pollers.is_empty()
    }

    /// What to do next: between two threads that are ready those that poll have a look.
    pub fn take_work(&mut self) -> Option<Work> {
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

    /// Who looks: the one that ran last if it is one of them, for that costs no switch.
    #[must_use]
    pub fn looker(&self) -> Option<TaskId> {
        let ran_last = |task: &&TaskId| self.last == Some(Thread::Task(**task));
        self.pollers.iter().find(ran_last).or(self.pollers.last()).copied()
    }

    /// Whether `work` is another thread's than what ran last, which it then is.
    pub fn switches_to(&mut self, work: &Work) -> bool {
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
