//! Behaviours of the whole path, seen from a driver that a test controls.

mod dispatch;
mod end;
mod enter;
mod events;
mod expire;
mod pause;
mod sequence;
mod share;
mod stop;

use super::*;
use crate::bio::{Bio, Flags, Op};
use crate::driver::{Accept, Issue, TimedOut};
use crate::layer::checked::{Checked, Terms};
use crate::request::Piece;
use crate::status::{Status, SubmitError};
use crate::tag::TagSetConfig;
use crate::unit::Budget;
use alloc::string::String;
use core::ops::{Deref, DerefMut};
use std::vec;

const H0: HctxId = HctxId(0);
const CPU: CpuId = CpuId(0);
const OTHER_CPU: CpuId = CpuId(1);
const CAPACITY_SECTORS: u64 = 1 << 20;

/// A request that the driver accepted.
struct Sent {
    hctx: HctxId,
    tag: DriverTag,
    op: Op,
    flags: Flags,
    sector: u64,
    sectors: u32,
    last: bool,
    pieces: Vec<Piece>,
}

/// A driver that gives the answers of a test first, and then accepts every request while it has
/// budget.
struct Obedient {
    answers: VecDeque<Accept>,
    budget: u32,
    sent: VecDeque<Sent>,
    prepared: u32,
    finished: u32,
    commits: u32,
    /// The answers to timeouts; [`TimedOut::Reset`] if there is none.
    timeouts: VecDeque<TimedOut>,
}

impl Driver for Obedient {
    crate::leaf_calls!(unprepare);

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
            let Request { op, flags, sector, sectors, .. } = *issue.request();
            let pieces = issue.pieces().collect();
            let hctx = issue.hctx;
            let tag = issue.tag;
            let last = issue.last;
            self.sent.push_back(Sent { hctx, tag, op, flags, sector, sectors, last, pieces });
        }
        answer
    }

    fn prepare(&mut self, _issue: &Issue<'_>) {
        self.prepared += 1;
    }

    fn commit(&mut self, _queue: QueueId, _hctx: HctxId, _now: Instant) {
        self.commits += 1;
    }

    fn finish(&mut self, _queue: QueueId, _hctx: HctxId, _tag: DriverTag, _request: &Request) {
        self.finished += 1;
    }

    fn timed_out(
        &mut self,
        _queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        _request: &Request,
        _now: Instant,
    ) -> TimedOut {
        let answer = self.timeouts.pop_front().unwrap_or(TimedOut::Reset);
        if answer != TimedOut::Reset {
            self.sent.retain(|sent| (sent.hctx, sent.tag) != (hctx, tag));
        }
        answer
    }
}

/// The driver answers as a test says, and may break [busy-promise-kept].
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

fn tags(hctxs: u16, depth: u16, reserved: u16, queues: u16) -> TagSetConfig {
    TagSetConfig { hctxs, depth, reserved, shared_over_hctxs: false, queues, max_waiters: 8 }
}

/// Returns a host whose queues are made by `config`.
fn host(tags: TagSetConfig, config: &QueueConfig) -> Host<Watched> {
    let terms = vec![Terms::of(config, &tags); usize::from(tags.queues)];
    let driver = Obedient {
        answers: VecDeque::new(),
        budget: 1000,
        sent: VecDeque::new(),
        prepared: 0,
        finished: 0,
        commits: 0,
        timeouts: VecDeque::new(),
    };
    Host::new(Checked::new(driver, terms, &tags).trusting_promises(true), (), tags)
}

/// One queue and its host; two processors.
struct Rig {
    host: Host<Watched>,
    queue: RequestQueue,
    now: Instant,
}

impl Rig {
    fn new(hctxs: u16, depth: u16, policies: Policies, limits: Limits) -> Self {
        Self::on(tags(hctxs, depth, 0, 1), policies, limits)
    }

    fn on(tags: TagSetConfig, policies: Policies, limits: Limits) -> Self {
        let usual = QueueConfig::new(2, tags.hctxs, limits, policies);
        Self::by(tags, QueueConfig { max_bios: 64, ..usual })
    }

    fn by(tags: TagSetConfig, config: QueueConfig) -> Self {
        let host = host(tags, &config);
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

    /// Runs all marked hardware queues. The count proves that the runs end.
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
        self.complete_with(Status::Ok);
    }

    fn complete_with(&mut self, status: Status) {
        let Sent { hctx, tag, .. } = self.host.driver.sent.pop_front().expect("in flight");
        self.queue.complete(&mut self.host, hctx, tag, status, self.now).expect("in flight");
        self.check();
    }

    /// The cookies and statuses of the bios that have ended.
    fn ended(&mut self) -> Vec<(u64, Status)> {
        core::iter::from_fn(|| self.queue.next_ended())
            .map(|ended| (ended.bio.cookie, ended.status))
            .collect()
    }

    /// The ops of the requests in flight, in the order of acceptance: `f` is a flush.
    fn sent_ops(&self) -> String {
        let letter = |sent: &Sent| match sent.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Flush => 'f',
            Op::DriverIn | Op::DriverOut => 'p',
            _ => '?',
        };
        self.host.driver.sent.iter().map(letter).collect()
    }

    /// Checks after a call that no run is open and the accounts agree.
    fn check(&self) {
        self.host.driver.call_ended();
        self.queue.self_check(&self.host);
    }

    /// The start sectors of the requests in flight, in the order of acceptance.
    fn sent_sectors(&self) -> Vec<u64> {
        self.host.driver.sent.iter().map(|sent| sent.sector).collect()
    }
}

#[test]
#[should_panic(expected = "hardware queues with a retry instant")]
fn the_self_check_looks_at_the_runs_to_come() {
    let mut rig = Rig::none(4);
    rig.queue.runs.miscount();
    rig.queue.self_check(&rig.host);
}
