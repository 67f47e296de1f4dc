//! [`Checked`]: asserts on every call the contract between a driver and its callers.
//!
//! It may stand anywhere in a stack. Calls from above are checked against the core's duties, answers from
//! below against the driver's. The layer changes nothing, answers nothing itself, and costs some table
//! look-ups for each call: use it in every test.
//!
//! A broken rule panics with its name in brackets at the start of the message. The rules of
//! [`driver`](crate::driver) and [`hardware_queue`](crate::hardware_queue) are checked like this:
//!
//! - [owned-until-completed]: nothing is offered under a tag that is owned. A request is reported as
//!   finished, or ended on time-out, only while it is owned, and once; it is given back only while it is
//!   owned.
//! - [prepared-until-undone]: a request is prepared when it is offered, not twice, and does not change
//!   meanwhile. A request that failed is unprepared before any other call for its queue. A request that is
//!   owned is not unprepared.
//! - [last-or-commit]: no run of a hardware queue is open when the caller's call has returned
//!   ([`Checked::call_ended`]).
//! - [budget-given-back]: only a design with budget takes permits; each of its requests carries one, and
//!   each permit goes back once.
//! - [busy-promise-kept]: the driver answers [`Busy::Device`] only while a request of the queue is owned,
//!   and [`Busy::Host`] only while one of any queue is.
//!
//! # Rules
//!
//! - **[partial-completion-valid]** Only a read or write of one range completes in part, for less than all
//!   of its sectors, and the rest has failed.
//! - **[limits-kept]** A request keeps the limits of its queue, and its pieces tile it.
//! - **[time-moves-forward]** Time does not go backwards.
//! - **[no-idle-polling]** A device that has just reported nothing does not ask to be polled at once.
//! - **[nothing-left-over]** Nothing is owned, prepared or permitted when everything has ended
//!   ([`Checked::all_ended`]).

use super::tagged::{Slot, Tagged};
use crate::bio::{Flags, Op};
use crate::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::limits::Limits;
use crate::merge::Extent;
use crate::policy::Dispatch;
use crate::request::{Piece, Request};
use crate::request_queue::QueueConfig;
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::Instant;
use crate::unit::{Budget, DriverTag, HctxId, QueueId, RequestId};
use alloc::vec::Vec;

/// The properties of a queue that uses the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The limits of its requests.
    pub limits: Limits,
    /// Whether its design takes budget.
    pub budget: bool,
    /// The number of its requests.
    pub requests: usize,
}

impl Terms {
    /// Returns the terms of a queue made by `config` on a host with `tags`.
    #[must_use]
    pub fn of(config: &QueueConfig, tags: &TagSetConfig) -> Self {
        Self {
            limits: config.limits.clone(),
            budget: config.policies.dispatch == Dispatch::Budget,
            requests: config.requests(tags),
        }
    }
}

/// A request that the driver owns.
#[derive(Clone, Copy, Debug)]
struct Owned {
    queue: QueueId,
    id: RequestId,
    /// Sectors that may complete in part.
    divisible: u32,
    /// Whether the driver has reported it as finished.
    named: bool,
}

/// The state of one queue.
#[derive(Clone, Debug)]
struct Account {
    terms: Terms,
    owned: u32,
    permits: Vec<Budget>,
    /// By request number, the request as it was when it was prepared.
    prepared: Vec<Option<Extent>>,
    /// The request that the driver has just failed, until it is unprepared.
    failed: Option<RequestId>,
    /// Whether each hardware queue has a run that has not ended.
    open: Vec<bool>,
}

impl Account {
    fn new(terms: Terms, hctxs: u16) -> Self {
        Self {
            owned: 0,
            permits: Vec::with_capacity(terms.requests + 1),
            prepared: alloc::vec![None; terms.requests],
            failed: None,
            open: alloc::vec![false; usize::from(hctxs)],
            terms,
        }
    }

    /// Checks that no request that failed is still prepared.
    fn check_none_failed(&self) {
        let failed = self.failed;
        assert!(failed.is_none(), "[prepared-until-undone] {failed:?} failed and stays prepared");
    }
}

/// The layer.
#[derive(Clone, Debug)]
pub struct Checked<D> {
    /// The device that is checked.
    pub below: D,
    tags_are_shared: bool,
    accounts: Vec<Account>,
    owned: Tagged<Option<Owned>>,
    now: Instant,
    trusts_promises: bool,
}

impl<D> Checked<D> {
    /// Checks `below`, on a host with `tags` and with the queues of `terms`, in the order of their
    /// numbers.
    #[must_use]
    pub fn new(below: D, terms: Vec<Terms>, tags: &TagSetConfig) -> Self {
        Self {
            below,
            tags_are_shared: tags.shared_over_hctxs,
            accounts: terms.into_iter().map(|terms| Account::new(terms, tags.hctxs)).collect(),
            owned: Tagged::new(None, tags),
            now: Instant::ZERO,
            trusts_promises: false,
        }
    }

    /// Returns the same layer, which skips [busy-promise-kept] if `trusts`: for a driver that
    /// breaks it on purpose.
    #[must_use]
    pub fn trusting_promises(self, trusts: bool) -> Self {
        Self { trusts_promises: trusts, ..self }
    }

    /// Checks that a call on a queue has left no run open.
    ///
    /// # Panics
    ///
    /// Panics if a run is open ([last-or-commit]).
    pub fn call_ended(&self) {
        for (queue, account) in self.accounts.iter().enumerate() {
            account.check_none_failed();
            let open = account.open.iter().position(|open| *open);
            assert!(
                open.is_none(),
                "[last-or-commit] queue {queue}, hardware queue {open:?}: not committed"
            );
        }
    }

    /// Checks that nothing is left after every bio has ended.
    ///
    /// # Panics
    ///
    /// Panics if something is left ([nothing-left-over], [last-or-commit]).
    pub fn all_ended(&self) {
        self.call_ended();
        for (queue, account) in self.accounts.iter().enumerate() {
            assert_eq!(
                account.owned, 0,
                "[nothing-left-over] requests of queue {queue} that the driver owns"
            );
            assert!(account.permits.is_empty(), "[nothing-left-over] permits of queue {queue}");
            let prepared = account.prepared.iter().flatten().count();
            assert_eq!(
                prepared, 0,
                "[nothing-left-over] requests of queue {queue} that stay prepared"
            );
        }
    }

    /// Returns the account of a tag: tags that hardware queues share belong to the first.
    const fn slot(&self, hctx: HctxId, tag: DriverTag) -> Slot {
        (if self.tags_are_shared { HctxId(0) } else { hctx }, tag)
    }

    /// Checks [time-moves-forward].
    fn check_time(&mut self, now: Instant) {
        assert!(now >= self.now, "[time-moves-forward] {now} after {}", self.now);
        self.now = now;
    }

    fn check_offer(&self, issue: &Issue<'_>) {
        let owned = self.owned[self.slot(issue.hctx, issue.tag)];
        assert!(owned.is_none(), "[owned-until-completed] {issue:?} under the tag of {owned:?}");
        let account = &self.accounts[issue.queue.index()];
        account.check_none_failed();
        assert_eq!(
            issue.budget.is_some(),
            account.terms.budget,
            "[budget-given-back] the permit of {issue:?}"
        );
        if let Some(budget) = issue.budget {
            assert!(
                account.permits.contains(&budget),
                "[budget-given-back] {budget:?} is not out: {issue:?}"
            );
        }
        // [prepared-until-undone]
        let prepared = account.prepared[issue.id().index()].as_ref();
        let now = content(issue.request());
        assert_eq!(
            prepared,
            Some(&now),
            "[prepared-until-undone] changed, or not prepared: {issue:?}"
        );
        check_limits(issue.request(), &account.terms.limits, issue.pieces());
    }

    fn check_promise(&self, queue: QueueId, busy: Busy) {
        let kept = match busy {
            Busy::Device => self.accounts[queue.index()].owned > 0,
            Busy::Host => self.accounts.iter().any(|account| account.owned > 0),
            Busy::Resource => true,
        };
        assert!(
            kept || self.trusts_promises,
            "[busy-promise-kept] {busy:?} for queue {queue:?}: nothing will do"
        );
    }

    /// Notes that the driver reports a request as finished. A request that stays prepared gets no
    /// `finish`, so it is not owned from here on.
    fn name(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, outcome: Outcome) {
        let slot = self.slot(hctx, tag);
        let owned = self.owned[slot].as_mut().filter(|owned| owned.queue == queue);
        let Some(owned) = owned else {
            panic!("[owned-until-completed] {queue:?} {hctx:?} {tag:?} is not owned")
        };
        assert!(!owned.named, "[owned-until-completed] {queue:?} {hctx:?} {tag:?} finishes twice");
        owned.named = true;
        // [partial-completion-valid]
        if let Outcome::Partial { sectors, status } = outcome {
            let rightly = sectors < owned.divisible && status != Status::Ok;
            assert!(rightly, "[partial-completion-valid] {outcome:?} of {owned:?}");
        }
        if outcome == Outcome::AgainPrepared {
            self.owned[slot] = None;
            self.accounts[queue.index()].owned -= 1;
        }
    }

    fn drop_preparation(&mut self, queue: QueueId, id: RequestId) {
        let before = self.accounts[queue.index()].prepared[id.index()].take();
        assert!(before.is_some(), "[prepared-until-undone] {id:?} of {queue:?} was not prepared");
    }
}

/// Returns the properties that a request must keep once it is prepared. Flags are the core's own
/// matter.
fn content(request: &Request) -> Extent {
    Extent { flags: Flags::NONE, ..request.extent() }
}

/// Checks [limits-kept] and [merged-within-limits]: whatever was merged, the request keeps every limit.
fn check_limits(rq: &Request, limits: &Limits, pieces: impl Iterator<Item = Piece>) {
    let flushes = rq.op == Op::Flush;
    assert!(limits.write_cache || !flushes, "[limits-kept] a flush of a write-through device");
    let max = match rq.ranges {
        1 if rq.op.is_passthrough() => limits.max_sectors_of(rq.op),
        1 => limits.max_sectors_at(rq.op, rq.sector),
        _ => limits.max_discard_sectors,
    };
    assert!(rq.sectors <= max, "[limits-kept] {} sectors, at most {max}: {rq:?}", rq.sectors);
    assert!(rq.ranges <= limits.max_discard_segments.max(1), "[limits-kept] ranges of {rq:?}");
    if matches!(rq.op, Op::Read | Op::Write) {
        assert!(rq.segments <= limits.max_segments, "[limits-kept] segments of {rq:?}");
    }
    let has_range = rq.ranges == 1 && !rq.op.is_passthrough();
    let ends_within = rq.end_sector() <= limits.capacity_sectors;
    assert!(ends_within || !has_range, "[limits-kept] end of {rq:?}");
    // Pieces follow each other without a gap, but for those of a discard of several ranges.
    let mut at = rq.sector;
    let mut sectors = 0;
    let mut count = 0;
    for piece in pieces {
        assert!(piece.sector == at || rq.ranges > 1, "[limits-kept] a hole before {piece:?}");
        at = piece.sector + u64::from(piece.sectors);
        sectors += piece.sectors;
        count += 1;
    }
    assert_eq!(sectors, rq.sectors, "[limits-kept] sectors of the pieces of {rq:?}");
    assert!(rq.ranges == 1 || rq.ranges == count, "[limits-kept] {count} pieces in {rq:?}");
}

impl<D: Driver> Driver for Checked<D> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        let account = &mut self.accounts[queue.index()];
        assert!(
            account.terms.budget,
            "[budget-given-back] asked for by {queue:?}, a design without"
        );
        let budget = self.below.take_budget(queue)?;
        let room = account.permits.len() < account.permits.capacity();
        assert!(room, "[budget-given-back] more permits of {queue:?} than requests");
        account.permits.push(budget);
        Some(budget)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        let permits = &mut self.accounts[queue.index()].permits;
        let at = permits.iter().rposition(|out| *out == budget);
        let Some(at) = at else { panic!("[budget-given-back] {budget:?} of {queue:?} is not out") };
        permits.swap_remove(at);
        self.below.return_budget(queue, budget);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        let prepared = &mut self.accounts[issue.queue.index()].prepared[issue.id().index()];
        let before = prepared.replace(content(issue.request()));
        assert!(before.is_none(), "[prepared-until-undone] twice: {issue:?}");
        self.below.prepare(issue);
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        let owned = self.owned[self.slot(issue.hctx, issue.tag)];
        let is_owned =
            owned.is_some_and(|owned| (owned.queue, owned.id) == (issue.queue, issue.id()));
        assert!(!is_owned, "[prepared-until-undone] unprepared while it is owned: {issue:?}");
        self.accounts[issue.queue.index()].failed.take_if(|failed| *failed == issue.id());
        self.drop_preparation(issue.queue, issue.id());
        self.below.unprepare(issue);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.check_time(issue.now);
        self.check_offer(issue);
        let Issue { queue, hctx, .. } = *issue;
        let answer = self.below.queue_rq(issue);
        match answer {
            Accept::Queued => {
                let slot = self.slot(hctx, issue.tag);
                let rq = issue.request();
                // Only such a request may complete in part.
                let divides = matches!(rq.op, Op::Read | Op::Write) && rq.ranges == 1;
                let divisible = if divides { rq.sectors } else { 0 };
                self.owned[slot] = Some(Owned { queue, id: issue.id(), divisible, named: false });
                self.accounts[queue.index()].owned += 1;
            }
            Accept::Busy(busy) => self.check_promise(queue, busy),
            Accept::Failed(_) => self.accounts[queue.index()].failed = Some(issue.id()),
        }
        // A run that had accepted requests stays open through a refusal, until its last request or a commit.
        let open = &mut self.accounts[queue.index()].open[hctx.index()];
        *open = !issue.last && (*open || answer == Accept::Queued);
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.check_time(now);
        self.accounts[queue.index()].check_none_failed();
        self.accounts[queue.index()].open[hctx.index()] = false;
        self.below.commit(queue, hctx, now);
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        let slot = self.slot(hctx, tag);
        let owned = self.owned[slot].take().filter(|owned| owned.queue == queue);
        let Some(owned) = owned else {
            panic!("[owned-until-completed] {queue:?} {hctx:?} {tag:?} is not owned")
        };
        self.accounts[queue.index()].owned -= 1;
        self.drop_preparation(queue, owned.id);
        self.below.finish(queue, hctx, tag, request);
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        self.check_time(now);
        let answer = self.below.timed_out(queue, hctx, tag, request, now);
        if let TimedOut::Ended(outcome) = answer {
            self.name(queue, hctx, tag, outcome);
        }
        answer
    }
}

impl<D: Device> Device for Checked<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.check_time(now);
        let Some(finished) = self.below.next_finished(now) else {
            let at = self.below.poll_at(); // [no-idle-polling]
            assert!(
                at.is_none_or(|at| at > now),
                "[no-idle-polling] at {at:?}, with nothing at {now}"
            );
            return None;
        };
        self.name(finished.queue, finished.hctx, finished.tag, finished.outcome);
        Some(finished)
    }

    crate::pass_on!(below: poll_at);
}

#[cfg(test)]
mod tests;
