//! The device, which gives the answers of the test and checks its requests.

use super::account::Accounts;
use blockyard::bio::{Flags, Op};
use blockyard::driver::{Accept, Driver, Issue, Outcome, TimedOut};
use blockyard::policy::Dispatch;
use blockyard::request::{Piece, Request};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId, RequestId};
use std::collections::{BTreeSet, VecDeque};

/// A request that the device owns.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) queue: QueueId,
    pub(super) hctx: HctxId,
    pub(super) tag: DriverTag,
    id: RequestId,
    pieces: Vec<Piece>,
    /// The sectors of a read or write, which may complete in part; otherwise 0.
    pub(super) divisible: u32,
    /// The instant at which a flush was sent.
    flush_sent_at: Option<u64>,
}

/// One disk behind the device.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) accounts: Accounts,
    pub(super) dispatch: Dispatch,
    /// No request may arrive.
    pub(super) quiesced: bool,
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) disks: Vec<Disk>,
    /// The answers to the next offers. After these every request is accepted.
    pub(super) answers: VecDeque<Accept>,
    /// The answers to timeouts. After these the device keeps waiting.
    pub(super) timeouts: VecDeque<TimedOut>,
    pub(super) budget: usize,
    pub(super) owned: Vec<Owned>,
    next_budget: u32,
    pub(super) budgets: BTreeSet<(QueueId, u32)>,
    pub(super) prepared: BTreeSet<(QueueId, RequestId)>,
    /// The request that the device has just ended, which the queue must clean up.
    finishing: Option<(QueueId, RequestId)>,
    /// Hardware queues with a run that has not ended ([last-or-commit]).
    pub(super) open_runs: BTreeSet<(QueueId, HctxId)>,
    /// The number of requests accepted so far.
    pub(super) taken: u64,
}

impl Device {
    pub(super) const fn new(disks: Vec<Disk>, budget: usize) -> Self {
        Self {
            disks,
            answers: VecDeque::new(),
            timeouts: VecDeque::new(),
            budget,
            owned: Vec::new(),
            next_budget: 0,
            budgets: BTreeSet::new(),
            prepared: BTreeSet::new(),
            finishing: None,
            open_runs: BTreeSet::new(),
            taken: 0,
        }
    }

    pub(super) fn accounts(&mut self, queue: QueueId) -> &mut Accounts {
        &mut self.disks[queue.index()].accounts
    }

    /// Returns whether the device owns a request under that tag, with `shared` of any hardware
    /// queue.
    pub(super) fn owns(&self, queue: QueueId, hctx: HctxId, tag: DriverTag, shared: bool) -> bool {
        let mut of_tag = self.owned.iter().filter(|owned| owned.queue == queue && owned.tag == tag);
        of_tag.any(|owned| shared || owned.hctx == hctx)
    }

    /// Ends the request at index `at`.
    pub(super) fn let_go(&mut self, at: usize, outcome: Outcome) -> Owned {
        let owned = self.owned.remove(at);
        assert_eq!(self.finishing, None, "the last ended request should be cleaned up");
        self.finishing = (outcome != Outcome::AgainPrepared).then_some((owned.queue, owned.id));
        let accounts = self.accounts(owned.queue);
        let mut end = 0;
        for piece in &owned.pieces {
            end += piece.sectors;
            match outcome {
                Outcome::Partial { sectors, .. } if end <= sectors => accounts.done(piece),
                Outcome::Partial { status, .. } => accounts.failed(piece, status),
                Outcome::Done(Status::Ok) => accounts.done(piece),
                Outcome::Done(status) => accounts.failed(piece, status),
                Outcome::Again | Outcome::AgainPrepared => accounts.back(piece),
            }
        }
        if let (Some(sent_at), Outcome::Done(status)) = (owned.flush_sent_at, outcome) {
            accounts.flush_ended(sent_at, status);
        }
        owned
    }

    /// Checks [steps-from-flags] and [one-flush-at-a-time]. The device does not see the start of a
    /// flush, and so cannot check [flush-waits-for-data].
    fn check_flush(&self, issue: &Issue<'_>) {
        let accounts = &self.disks[issue.queue.index()].accounts;
        assert!(
            accounts.limits().write_cache,
            "[steps-from-flags]: a disk without a cache should get no flush"
        );
        assert_eq!(issue.pieces().count(), 0, "a flush should have no data");
        let at = (issue.queue, issue.hctx);
        let mut with_device = self.owned.iter().filter(|owned| (owned.queue, owned.hctx) == at);
        assert!(with_device.all(|owned| owned.flush_sent_at.is_none()), "[one-flush-at-a-time]");
    }

    /// Checks that the bios of a request may share it, and that the request is within the limits.
    fn check_data(&self, issue: &Issue<'_>) {
        let accounts = &self.disks[issue.queue.index()].accounts;
        let rq = issue.request();
        let limits = accounts.limits();
        let pieces: Vec<_> = issue.pieces().collect();
        let bios: Vec<_> = pieces.iter().map(|piece| accounts.bio(piece)).collect();
        for (bio, piece) in bios.iter().zip(&pieces) {
            assert_eq!(
                (bio.op, bio.prio.class, bio.write_hint),
                (rq.op, rq.prio.class, rq.write_hint),
                "[merged-sides-agree]"
            );
            let alone = bio.flags.contains(Flags::NO_MERGE) || accounts.is_sequenced(piece);
            let alone = alone || bio.op.is_passthrough() || accounts.has_native_fua(bio);
            assert!(bios.len() == 1 || !alone, "{bio:?} is not alone");
        }
        let fua = accounts.has_native_fua(&bios[0]);
        assert_eq!(rq.flags.contains(Flags::FUA), fua, "[steps-from-flags]: {rq:?}");
        assert!(!rq.flags.contains(Flags::PREFLUSH), "[steps-from-flags]: {rq:?}");
        let sectors = pieces.iter().map(|piece| piece.sectors).sum::<u32>();
        assert_eq!(sectors, rq.sectors);
        if rq.ranges == 1 {
            let mut at = rq.sector;
            for piece in &pieces {
                assert_eq!(piece.sector, at, "{pieces:?} do not lie behind each other");
                at += u64::from(piece.sectors);
            }
            let most = limits.max_sectors_at(rq.op, rq.sector);
            assert!(rq.op.is_passthrough() || rq.sectors <= most, "[merged-within-limits]: {rq:?}");
        }
        assert!(
            rq.ranges == 1 || rq.ranges <= limits.max_discard_segments,
            "[merged-within-limits]: {rq:?}"
        );
        assert!(rq.sectors <= limits.max_sectors_of(rq.op), "[merged-within-limits]: {rq:?}");
    }
}

impl Driver for Device {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        if self.budgets.len() >= self.budget {
            return None;
        }
        self.next_budget += 1;
        self.budgets.insert((queue, self.next_budget));
        Some(Budget(self.next_budget))
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        assert!(
            self.budgets.remove(&(queue, budget.0)),
            "[budget-given-back]: {budget:?} was not out"
        );
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        assert!(self.prepared.insert((issue.queue, issue.id())), "{issue:?} is prepared already");
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        assert!(self.prepared.remove(&(issue.queue, issue.id())), "{issue:?} is not prepared");
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let disk = &self.disks[issue.queue.index()];
        assert!(!disk.quiesced, "[quiesced-sends-none]: {issue:?}");
        assert!(self.prepared.contains(&(issue.queue, issue.id())), "{issue:?} is not prepared");
        let budget = issue.budget.map(|budget| (issue.queue, budget.0));
        assert_eq!(budget.is_some(), disk.dispatch == Dispatch::Budget, "{issue:?}");
        assert!(
            budget.is_none_or(|budget| self.budgets.contains(&budget)),
            "[budget-given-back]: {issue:?}"
        );
        let place = (issue.hctx, issue.tag);
        assert!(
            self.owned.iter().all(|owned| (owned.hctx, owned.tag) != place),
            "[one-owner-per-tag]: {issue:?}"
        );
        let is_flush = issue.request().op == Op::Flush;
        if is_flush {
            self.check_flush(issue)
        } else {
            self.check_data(issue)
        }

        let answer = self.answers.pop_front().unwrap_or(Accept::Queued);
        let run = (issue.queue, issue.hctx);
        match answer {
            Accept::Queued if !issue.last => _ = self.open_runs.insert(run),
            Accept::Queued => _ = self.open_runs.remove(&run),
            _ => {}
        }
        let accounts = self.accounts(issue.queue);
        match answer {
            Accept::Queued => {
                let pieces: Vec<_> = issue.pieces().collect();
                pieces.iter().for_each(|piece| accounts.sent(piece));
                let flush_sent_at = is_flush.then(|| accounts.flush_sent());
                let Issue { queue, hctx, tag, .. } = *issue;
                let id = issue.id();
                let request = issue.request();
                let divides = matches!(request.op, Op::Read | Op::Write) && request.ranges == 1;
                let divisible = if divides { request.sectors } else { 0 };
                self.owned.push(Owned { queue, hctx, tag, id, pieces, divisible, flush_sent_at });
                self.taken += 1;
            }
            Accept::Failed(status) => {
                issue.pieces().for_each(|piece| accounts.failed(&piece, status));
                if is_flush {
                    accounts.flush_refused(status);
                }
            }
            Accept::Busy(_) => {}
        }
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, _now: Instant) {
        self.open_runs.remove(&(queue, hctx));
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        _request: &Request,
        _now: Instant,
    ) -> TimedOut {
        let answer = self.timeouts.pop_front().unwrap_or(TimedOut::Reset);
        let is_it = |owned: &Owned| (owned.queue, owned.hctx, owned.tag) == (queue, hctx, tag);
        let at = self
            .owned
            .iter()
            .position(is_it)
            .expect("[asked-each-timeout]: a timed-out request should be in the device");
        if let TimedOut::Ended(outcome) = answer {
            let _ = self.let_go(at, outcome);
        }
        answer
    }

    fn finish(&mut self, queue: QueueId, _hctx: HctxId, _tag: DriverTag, request: &Request) {
        let of = self.finishing.take();
        let (of_queue, id) = of.unwrap_or_else(|| panic!("{request:?} is not to be cleaned up"));
        assert!(of_queue == queue && self.prepared.remove(&(queue, id)), "{request:?}");
    }
}
