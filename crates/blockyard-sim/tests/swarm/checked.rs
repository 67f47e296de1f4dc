//! A driver in a driver's contract: [`Checked`] asserts the rules D1 to D3 around every call, and
//! what the core owes a device: requests within its limits, that stay as they were prepared.

use blockyard::bio::{IoPrio, Op};
use blockyard::driver::{Accept, Driver, Issue};
use blockyard::limits::Limits;
use blockyard::merge::Extent;
use blockyard::request::{Piece, Request};
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId, RequestId};
use std::collections::{BTreeMap, BTreeSet};

/// A request as the driver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) queue: QueueId,
    pub(crate) hctx: HctxId,
    pub(crate) tag: DriverTag,
    pub(crate) op: Op,
    pub(crate) prio: IoPrio,
    pub(crate) write_hint: u8,
    pub(crate) answer: Accept,
    pub(crate) pieces: Vec<Piece>,
}

/// What is known of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    /// Whether the design takes budget.
    pub(crate) budget: bool,
}

/// The wrapper.
#[derive(Debug)]
pub(crate) struct Checked<D> {
    pub(crate) inner: D,
    terms: Vec<Terms>,
    shared_tags: bool,
    /// By hardware queue (0 where tags are shared) and tag.
    owned: BTreeMap<(HctxId, DriverTag), (QueueId, RequestId)>,
    budgets: BTreeSet<(QueueId, Budget)>,
    prepared: BTreeMap<(QueueId, RequestId), Extent>,
    uncommitted: BTreeSet<(QueueId, HctxId)>,
    /// What was taken or failed since the loop last looked.
    pub(crate) seen: Vec<Seen>,
}

impl<D> Checked<D> {
    pub(crate) fn new(inner: D, terms: Vec<Terms>, shared_tags: bool) -> Self {
        Self {
            inner,
            terms,
            shared_tags,
            owned: BTreeMap::new(),
            budgets: BTreeSet::new(),
            prepared: BTreeMap::new(),
            uncommitted: BTreeSet::new(),
            seen: Vec::new(),
        }
    }

    /// A call of the queue has returned: no run is open (D2).
    pub(crate) fn call_ended(&self) {
        assert!(self.uncommitted.is_empty(), "[D2] uncommitted: {:?}", self.uncommitted);
    }

    /// All is done: the driver holds nothing.
    pub(crate) fn all_ended(&self) {
        assert!(self.owned.is_empty(), "[leak] the driver owns {:?}", self.owned);
        assert!(self.budgets.is_empty(), "[budget] out at the end: {:?}", self.budgets);
        assert!(self.prepared.is_empty(), "[prepare] not finished: {:?}", self.prepared);
    }

    fn slot(&self, hctx: HctxId, tag: DriverTag) -> (HctxId, DriverTag) {
        (if self.shared_tags { HctxId(0) } else { hctx }, tag)
    }

    fn check_offer(&self, issue: &Issue<'_>) {
        let slot = self.slot(issue.hctx, issue.tag);
        assert!(!self.owned.contains_key(&slot), "[D1] {slot:?} is owned already");
        let terms = &self.terms[issue.queue.index()];
        assert_eq!(issue.budget.is_some(), terms.budget, "[budget] of {issue:?}");
        if let Some(budget) = issue.budget {
            assert!(
                self.budgets.contains(&(issue.queue, budget)),
                "[budget] {budget:?} is not out"
            );
        }
        let rq = issue.request();
        let prepared = self.prepared.get(&(issue.queue, issue.id()));
        let now = Extent { flags: blockyard::bio::Flags::NONE, ..rq.extent() };
        assert_eq!(prepared, Some(&now), "[prepare] changed, or not prepared");
        check_limits(rq, &terms.limits, issue.pieces());
    }
}

/// M3: whatever was merged, the request keeps every limit.
fn check_limits(rq: &Request, limits: &Limits, pieces: impl Iterator<Item = Piece>) {
    let max = match rq.ranges {
        1 => limits.max_sectors_at(rq.op, rq.sector),
        _ => limits.max_discard_sectors,
    };
    assert!(rq.sectors <= max, "[limits] {} sectors, at most {max}: {rq:?}", rq.sectors);
    assert!(rq.ranges <= limits.max_discard_segments.max(1), "[limits] ranges of {rq:?}");
    assert!(rq.op != Op::Flush, "[limits] a flush of a write-through device");
    if matches!(rq.op, Op::Read | Op::Write) {
        assert!(rq.segments <= limits.max_segments, "[limits] segments of {rq:?}");
    }
    assert!(rq.end_sector() <= limits.capacity_sectors || rq.ranges > 1, "[limits] end of {rq:?}");
    let (mut at, mut sectors, mut count) = (rq.sector, 0, 0);
    for piece in pieces {
        assert!(piece.sector == at || rq.ranges > 1, "[limits] a hole before {piece:?}");
        at = piece.sector + u64::from(piece.sectors);
        sectors += piece.sectors;
        count += 1;
    }
    assert_eq!(sectors, rq.sectors, "[limits] sectors of the pieces of {rq:?}");
    assert!(rq.ranges == 1 || rq.ranges == count, "[limits] {count} pieces in {rq:?}");
}

impl<D: Driver> Driver for Checked<D> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        assert!(self.terms[queue.index()].budget, "[budget] asked for by a design without");
        let budget = self.inner.take_budget(queue)?;
        assert!(self.budgets.insert((queue, budget)), "[budget] {budget:?} given twice");
        Some(budget)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        assert!(self.budgets.remove(&(queue, budget)), "[budget] {budget:?} is not out");
        self.inner.return_budget(queue, budget);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        let content = Extent { flags: blockyard::bio::Flags::NONE, ..issue.request().extent() };
        let before = self.prepared.insert((issue.queue, issue.id()), content);
        assert!(before.is_none(), "[prepare] twice: {issue:?}");
        self.inner.prepare(issue);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.check_offer(issue);
        let answer = self.inner.queue_rq(issue);
        let (queue, hctx, tag) = (issue.queue, issue.hctx, issue.tag);
        if answer == Accept::Queued {
            let slot = self.slot(hctx, tag);
            self.owned.insert(slot, (queue, issue.id()));
        }
        if let Accept::Failed(_) = answer {
            self.prepared.remove(&(queue, issue.id()));
        }
        if issue.last {
            self.uncommitted.remove(&(queue, hctx));
        } else if answer == Accept::Queued {
            self.uncommitted.insert((queue, hctx));
        }
        if !matches!(answer, Accept::Busy(_)) {
            let rq = issue.request();
            let (op, prio, write_hint) = (rq.op, rq.prio, rq.write_hint);
            let pieces = issue.pieces().collect();
            self.seen.push(Seen { queue, hctx, tag, op, prio, write_hint, answer, pieces });
        }
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.uncommitted.remove(&(queue, hctx));
        self.inner.commit(queue, hctx, now);
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        let owned = self.owned.remove(&self.slot(hctx, tag));
        let Some((owner, id)) = owned else { panic!("[D1] {hctx:?} {tag:?} is not owned") };
        assert_eq!(owner, queue, "[D1] {hctx:?} {tag:?} is another queue's");
        self.prepared.remove(&(queue, id));
        self.inner.finish(queue, hctx, tag, request);
    }
}
