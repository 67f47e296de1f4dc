//! Behaviours of the whole path, seen from a driver that does as it is told.

mod dispatch;
mod end;
mod enter;

use super::*;
use crate::bio::Bio;
use crate::driver::{Accept, Issue};
use crate::layer::checked::{Checked, Terms};
use crate::request::Piece;
use crate::status::{Status, SubmitError};
use crate::tag::TagSetConfig;
use crate::unit::Budget;
use core::ops::{Deref, DerefMut};
use std::vec;

const H0: HctxId = HctxId(0);
const CPU: CpuId = CpuId(0);
const OTHER_CPU: CpuId = CpuId(1);
const CAPACITY_SECTORS: u64 = 1 << 20;

/// What a driver was given.
struct Sent {
    hctx: HctxId,
    tag: DriverTag,
    sector: u64,
    sectors: u32,
    pieces: Vec<Piece>,
}

/// Takes everything, but for what it is told to say first, and while it has budget.
struct Obedient {
    answers: VecDeque<Accept>,
    budget: u32,
    sent: VecDeque<Sent>,
}

impl Driver for Obedient {
    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        self.budget = self.budget.checked_sub(1)?;
        Some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        self.budget += 1;
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.answers.pop_front().unwrap_or(Accept::Queued);
        if answer == Accept::Queued {
            let Request { sector, sectors, .. } = *issue.request();
            let pieces = issue.pieces().collect();
            self.sent.push_back(Sent { hctx: issue.hctx, tag: issue.tag, sector, sectors, pieces });
        }
        answer
    }
}

/// It says what a test tells it to, promises that it cannot keep (D4) among that.
type Watched = Checked<Obedient>;

impl Deref for Watched {
    type Target = Obedient;
    fn deref(&self) -> &Obedient {
        &self.below
    }
}

impl DerefMut for Watched {
    fn deref_mut(&mut self) -> &mut Obedient {
        &mut self.below
    }
}

/// A host whose queues are made by `config`.
fn host(hctxs: u16, depth: u16, queues: u16, config: &QueueConfig) -> Host<Watched> {
    let terms = |tags: &TagSetConfig| vec![Terms::of(config, tags); usize::from(queues)];
    let tags = TagSetConfig {
        hctxs,
        depth,
        reserved: 0,
        shared_over_hctxs: false,
        queues,
        max_waiters: 8,
    };
    let driver = Obedient { answers: VecDeque::new(), budget: 1000, sent: VecDeque::new() };
    let driver = Checked::new(driver, terms(&tags), &tags).trusting_promises(true);
    Host::new(driver, (), tags)
}

/// One queue and its host; two processors.
struct Rig {
    host: Host<Watched>,
    queue: RequestQueue,
    now: Instant,
}

impl Rig {
    fn new(hctxs: u16, depth: u16, policies: Policies, limits: Limits) -> Self {
        let config = QueueConfig { max_bios: 64, ..QueueConfig::new(2, hctxs, limits, policies) };
        let host = host(hctxs, depth, 1, &config);
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, queue, now: Instant::ZERO }
    }

    fn none(depth: u16) -> Self {
        Self::new(1, depth, Policies::NONE, Limits::new(CAPACITY_SECTORS))
    }

    fn mq_deadline(depth: u16) -> Self {
        Self::new(1, depth, Policies::mq_deadline(), Limits::new(CAPACITY_SECTORS))
    }

    fn submit(&mut self, cpu: CpuId, bio: Bio) -> Result<(), SubmitError> {
        let submitted = self.queue.submit(&mut self.host, cpu, bio, self.now);
        self.check();
        submitted
    }

    /// Runs all that is to be run; the count says that it ends.
    fn settle(&mut self) -> usize {
        let mut runs = 0;
        while let Some(hctx) = self.next_to_run() {
            let _ = self.queue.run(&mut self.host, hctx, self.now);
            self.check();
            runs += 1;
            assert!(runs < 100, "runs go round in circles");
        }
        runs
    }

    fn next_to_run(&mut self) -> Option<HctxId> {
        let marked = self.queue.next_run(&mut self.host, self.now).map(|run| run.hctx);
        marked.or_else(|| self.host.next_starved().map(|(_, hctx)| hctx))
    }

    /// Completes the oldest request in flight.
    fn complete(&mut self) {
        let Sent { hctx, tag, .. } = self.host.driver.sent.pop_front().expect("in flight");
        self.queue.complete(&mut self.host, hctx, tag, Status::Ok, self.now).expect("in flight");
        self.check();
    }

    /// A call has returned: no run is open, and the accounts agree.
    fn check(&self) {
        self.host.driver.call_ended();
        self.queue.self_check(&self.host);
    }

    /// Where the requests in flight start, in the order the driver took them.
    fn sent_sectors(&self) -> Vec<u64> {
        self.host.driver.sent.iter().map(|sent| sent.sector).collect()
    }
}
