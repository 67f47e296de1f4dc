//! Checks the order in which hardware queues dispatch requests, from the events of the trace.
//! [`seam`](super::seam) checks [budget-given-back] and [tag-only-in-driver];
//! [`progress`](super::progress) checks [no-lost-wake-up].
//!
//! - [dispatch-list-first]: A run takes no request out of the elevator or software queues while a
//!   request waits on the dispatch list of its hardware queue. [`Dispatch::DrainAll`] breaks this
//!   rule on purpose and is exempt.
//! - [direct-requests-first]: A run first sends the requests that bypass the elevator and were
//!   waiting when it began. Three kinds are not checked: data behind a flush, which looks like
//!   other data in the events; requeued requests, which go to the dispatch list; and reserved
//!   commands under an elevator, which step aside if they find no tag.
//! - [no-overtaking-staged]: The driver gets no unstaged request while a request is staged in the
//!   software queues of its hardware queue. Requests that bypass the elevator are exempt, as in
//!   [direct-requests-first].

use crate::draw::Plan;
use crate::tally::Step;
use blockyard::bio::{Flags, Op};
use blockyard::policy::{Dispatch, ElevatorKind};
use blockyard::trace::Action;
use blockyard::unit::{HctxId, QueueId, RequestId};
use std::collections::{BTreeMap, BTreeSet};

type Ids = BTreeSet<RequestId>;

/// The properties of a design that decide the order.
#[derive(Clone, Copy, Debug)]
struct Design {
    drains_all: bool,
    shares_list: bool,
    has_elevator: bool,
    volatile: bool,
}

/// A run in progress, and the requests that waited when it began.
#[derive(Debug)]
struct Run {
    queue: QueueId,
    hctx: HctxId,
    leftovers: Ids,
    direct: Ids,
}

#[derive(Debug)]
pub(crate) struct HardwareQueues {
    designs: Vec<Design>,
    /// Requests on the dispatch list of each hardware queue.
    leftovers: BTreeMap<(QueueId, HctxId), Ids>,
    /// Requests that wait and bypass the elevator.
    direct: BTreeMap<(QueueId, HctxId), Ids>,
    /// Requests in the software queues of each hardware queue, if there is no elevator.
    staged: BTreeMap<(QueueId, HctxId), Ids>,
    /// Requests that were neither staged nor offered since they got their numbers.
    fresh: BTreeSet<(QueueId, RequestId)>,
    /// Requests that were requeued since they got their numbers.
    requeued: BTreeSet<(QueueId, RequestId)>,
    run: Option<Run>,
}

impl HardwareQueues {
    pub(super) fn new(plan: &Plan) -> Self {
        let designs = plan.queues.iter().map(|queue| Design {
            drains_all: queue.policies.dispatch == Dispatch::DrainAll,
            shares_list: queue.policies.dispatch == Dispatch::SharedList,
            has_elevator: queue.policies.elevator != ElevatorKind::None,
            volatile: queue.limits.write_cache,
        });
        Self {
            designs: designs.collect(),
            leftovers: BTreeMap::new(),
            direct: BTreeMap::new(),
            staged: BTreeMap::new(),
            fresh: BTreeSet::new(),
            requeued: BTreeSet::new(),
            run: None,
        }
    }

    pub(crate) fn run_begins(&mut self, queue: QueueId, hctx: HctxId) {
        let shared = self.designs[queue.index()].shares_list;
        let hctxs = if shared { HctxId(0)..=HctxId(u16::MAX) } else { hctx..=hctx };
        let of_list = self.leftovers.range((queue, *hctxs.start())..=(queue, *hctxs.end()));
        let leftovers = of_list.flat_map(|(_, ids)| ids).copied().collect();
        let direct = self.direct.get(&(queue, hctx)).cloned().unwrap_or_default();
        self.run = Some(Run { queue, hctx, leftovers, direct });
    }

    pub(crate) fn run_ended(&mut self) {
        self.run = None;
    }

    /// Whether a request bypasses the elevator; `None` if the event does not say.
    fn passes_by(&self, step: &Step) -> Option<bool> {
        let design = self.designs[step.queue.index()];
        if design.has_elevator && step.flags.contains(Flags::RESERVED) {
            return None;
        }
        let certainly = step.op == Op::Flush || step.op.is_passthrough();
        let perhaps = design.volatile && step.flags.contains(Flags::NO_MERGE);
        if !certainly && perhaps { None } else { Some(certainly) }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.stage(step);
        let design = self.designs[step.queue.index()];
        match step.action {
            Action::GetRequest => {
                self.gone(step);
                self.requeued.remove(&(step.queue, step.id));
                if step.op.is_passthrough() {
                    self.waits(step);
                }
            }
            Action::Schedule => {
                if let Some(run) = self.run.as_ref().filter(|_| !design.drains_all) {
                    let left = run.leftovers.first();
                    assert!(
                        left.is_none(),
                        "[dispatch-list-first] {step:?} while {left:?} waits: {run:?}"
                    );
                }
                self.waits(step);
            }
            Action::Refuse(_) => self.waits(step),
            Action::Issue => {
                self.gone(step);
                let own = |run: &&Run| (run.queue, run.hctx) == (step.queue, step.hctx);
                let run = self.run.as_ref().filter(own);
                let waits = run.and_then(|run| run.direct.first());
                let right = waits.is_none() || self.passes_by(step) != Some(false);
                assert!(right, "[direct-requests-first] {step:?} before {waits:?}");
            }
            Action::Complete(_) | Action::Join => {
                self.gone(step);
                if step.op == Op::Flush {
                    self.requeued.remove(&(step.queue, step.id));
                }
            }
            Action::Requeue => {
                self.requeued.insert((step.queue, step.id));
                if !design.has_elevator {
                    self.leftovers.entry((step.queue, step.hctx)).or_default().insert(step.id);
                }
            }
            _ => {}
        }
    }

    /// Follows the staged requests, and checks that none is overtaken ([no-overtaking-staged]).
    fn stage(&mut self, step: &Step) {
        let number = (step.queue, step.id);
        let staged = self.staged.entry((step.queue, step.hctx)).or_default();
        match step.action {
            Action::GetRequest => _ = self.fresh.insert(number),
            Action::Insert if !self.designs[step.queue.index()].has_elevator => {
                staged.insert(step.id);
                self.fresh.remove(&number);
            }
            Action::Schedule | Action::Complete(_) => {
                staged.remove(&step.id);
                self.fresh.remove(&number);
            }
            Action::Refuse(_) => _ = self.fresh.remove(&number),
            Action::Issue => {
                let waits = staged.first().copied();
                let goes_past = self.fresh.remove(&number) && self.passes_by(step) == Some(false);
                assert!(
                    waits.is_none() || !goes_past,
                    "[no-overtaking-staged] {step:?} before {waits:?}"
                );
            }
            _ => {}
        }
    }

    /// A request waits on a list of its hardware queue.
    fn waits(&mut self, step: &Step) {
        let at = (step.queue, step.hctx);
        let requeued = self.requeued.contains(&(step.queue, step.id));
        match self.passes_by(step) {
            Some(false) => _ = self.leftovers.entry(at).or_default().insert(step.id),
            Some(true) if !requeued => _ = self.direct.entry(at).or_default().insert(step.id),
            _ => {}
        }
    }

    fn gone(&mut self, step: &Step) {
        let at = (step.queue, step.hctx);
        for lists in [&mut self.leftovers, &mut self.direct] {
            if let Some(ids) = lists.get_mut(&at) {
                ids.remove(&step.id);
            }
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.queue == step.queue) {
            run.leftovers.remove(&step.id);
            run.direct.remove(&step.id);
        }
    }
}
