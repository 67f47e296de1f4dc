//! Processors: each runs one thing at a time.

use blockyard::driver::Finished;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, QueueId};
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
    /// Run a hardware queue from a worker thread.
    Run {
        /// Of which queue.
        queue: QueueId,
        /// Which.
        hctx: HctxId,
    },
    /// Let a job instance take its next step.
    Step(TaskId),
}

/// Which thread a processor ran last: another one costs a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Worker,
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
    /// Time spent running or spinning.
    pub busy: Duration,
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
            busy: Duration::ZERO,
            last: None,
        }
    }

    /// Gives it something to do, in turn; completions go first.
    pub fn push(&mut self, work: Work) {
        match work {
            Work::Complete { .. } => self.urgent.push_back(work),
            Work::Run { .. } | Work::Step(_) => self.ready.push_back(work),
        }
    }

    /// Whether it has something to do.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.urgent.is_empty() || !self.ready.is_empty()
    }

    /// What to do next.
    pub fn take_work(&mut self) -> Option<Work> {
        self.urgent.pop_front().or_else(|| self.ready.pop_front())
    }

    /// Whether `work` is another thread's than what ran last, which it then is.
    pub fn switches_to(&mut self, work: &Work) -> bool {
        let thread = match work {
            Work::Complete { .. } => return false,
            Work::Run { .. } => Thread::Worker,
            Work::Step(task) => Thread::Task(*task),
        };
        self.last.replace(thread) != Some(thread)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}
