//! Checks that a permit is held only with a request that the driver owns ([budget-given-back]),
//! and, if there is an elevator, that a driver tag is too ([tag-only-in-driver]).

use crate::draw::Plan;
use crate::flaw::Meddler;
use crate::recorder::{Key, Seen};
use blockyard::bio::Op;
use blockyard::host::Host;
use blockyard::policy::{Dispatch, ElevatorKind};
use blockyard::request::Piece;
use blockyard::tag::TagSetConfig;
use blockyard::trace::Sink;
use blockyard::unit::{DriverTag, HctxId, QueueId};
use std::collections::BTreeMap;

/// The requests that the driver owns, and their permits and tags.
#[derive(Debug)]
pub(crate) struct Seam {
    tags: TagSetConfig,
    /// Whether each queue takes permits.
    budget: Vec<bool>,
    /// Whether all queues have elevators.
    elevators: bool,
    owned: BTreeMap<Key, Seen>,
    owned_of: Vec<u64>,
    permits: Vec<u64>,
    /// Driver tags in use that are not reserved, by pool and queue.
    normal: Vec<Vec<u32>>,
}

impl Seam {
    pub(super) fn new(plan: &Plan) -> Self {
        let policies = || plan.queues.iter().map(|queue| &queue.policies);
        let count = plan.queues.len();
        let pools = if plan.tags.shared_over_hctxs { 1 } else { plan.tags.hctxs };
        Self {
            tags: plan.tags,
            budget: policies().map(|policies| policies.dispatch == Dispatch::Budget).collect(),
            elevators: policies().all(|policies| policies.elevator != ElevatorKind::None),
            owned: BTreeMap::new(),
            owned_of: vec![0; count],
            permits: vec![0; count],
            normal: vec![vec![0; count]; usize::from(pools)],
        }
    }

    const fn pool(&self, hctx: HctxId) -> usize {
        if self.tags.shared_over_hctxs { 0 } else { hctx.index() }
    }

    const fn is_normal(&self, tag: DriverTag) -> bool {
        tag.0 >= self.tags.reserved
    }

    pub(super) fn taken(&mut self, seen: &Seen) {
        let before = self.owned.insert(seen.key(), seen.clone());
        assert!(before.is_none(), "[cover] {seen:?} under the tag of {before:?}");
        self.owned_of[seen.queue.index()] += 1;
        let pool = self.pool(seen.hctx);
        self.normal[pool][seen.queue.index()] += u32::from(self.is_normal(seen.tag));
    }

    pub(super) fn finished(&mut self, key: Key) -> Seen {
        let Some(seen) = self.owned.remove(&key) else {
            panic!("[bio-ends-once] {key:?} completes and the driver does not own it")
        };
        self.owned_of[key.0.index()] -= 1;
        let pool = self.pool(key.1);
        self.normal[pool][key.0.index()] -= u32::from(self.is_normal(key.2));
        seen
    }

    /// Returns whether the driver owns a request of that queue under that tag. If hardware queues
    /// share tags, the request may have come through any of them.
    pub(crate) fn owns(&self, (queue, hctx, tag): Key) -> bool {
        let same = |key: &&Key| self.tags.shared_over_hctxs || key.1 == hctx;
        self.owned.keys().filter(same).any(|key| key.0 == queue && key.2 == tag)
    }

    pub(crate) fn op(&self, key: Key) -> Option<Op> {
        self.owned.get(&key).map(|seen| seen.op)
    }

    pub(crate) fn pieces(&self, key: Key) -> Vec<Piece> {
        self.owned.get(&key).map(|seen| seen.pieces.clone()).unwrap_or_default()
    }

    pub(crate) fn first(&self) -> Option<Key> {
        self.owned.keys().next().copied()
    }

    /// Returns how many non-reserved tags the queue of `seen` holds in its pool, and how many
    /// queues hold such a tag in any pool; `None` if the tag of `seen` is reserved.
    pub(super) fn holders(&self, seen: &Seen) -> Option<(u32, u32)> {
        let of = seen.queue.index();
        let holds = |at: &usize| *at == of || self.normal.iter().any(|pool| pool[*at] > 0);
        let users = (0..self.permits.len()).filter(holds).count();
        let users = u32::try_from(users).expect("the number of queues should fit 32 bits");
        self.is_normal(seen.tag).then(|| (self.normal[self.pool(seen.hctx)][of], users))
    }

    pub(crate) fn permit(&mut self, queue: QueueId) {
        self.permits[queue.index()] += 1;
    }

    pub(crate) fn returned(&mut self, queue: QueueId) {
        self.permits[queue.index()] -= 1;
    }

    /// Checks the permits and tags after a call.
    pub(crate) fn call_ended<S: Sink>(&self, host: &Host<Meddler, S>) {
        for (queue, permits) in self.permits.iter().enumerate().filter(|(at, _)| self.budget[*at]) {
            let owned = self.owned_of[queue];
            assert_eq!(
                *permits, owned,
                "[budget-given-back] permits of queue {queue}, and requests that the driver owns"
            );
        }
        let pools = if self.elevators { &self.normal[..] } else { &[] };
        for (hctx, pool) in (0..).map(HctxId).zip(pools) {
            let owned = pool.iter().sum::<u32>();
            assert_eq!(
                host.tags().in_use(hctx),
                owned,
                "[tag-only-in-driver] tags of {hctx:?}, and requests that the driver owns"
            );
        }
    }
}
