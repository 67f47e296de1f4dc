//! What hardware queues send when, in the events ([dispatch-list-first], [direct-requests-first], [no-overtaking-staged]); for [budget-given-back] and [tag-only-in-driver] see [`seam`](super::seam),
//! for [no-lost-wake-up] [`progress`](super::progress).
//!
//! - [dispatch-list-first]: A run takes nothing out of the elevator or software queues while something waits on
//!   its hardware queue's dispatch list: what was scheduled or refused, and not taken since. Not by
//!   [`Dispatch::DrainAll`], which breaks this on purpose.
//! - [direct-requests-first]: A run sends nothing else before what passes the elevator by and waited when it began.
//!   Data behind a flush cannot be told from other data in the events and is left out; so is what
//!   was requeued, which goes to the dispatch list; and so are reserved commands under an elevator,
//!   which stand aside where they find no tag.
//! - [no-overtaking-staged]: What was never staged is not taken by the driver while something is staged in the
//!   software queues of its hardware queue. What passes the elevator by is left out, as for [direct-requests-first].

use crate::draw::Plan;
use crate::tally::Step;
use blockyard::bio::{Flags, Op};
use blockyard::policy::{Dispatch, ElevatorKind};
use blockyard::trace::Action;
use blockyard::unit::{HctxId, QueueId, RequestId};
use std::collections::{BTreeMap, BTreeSet};

type Ids = BTreeSet<RequestId>;

/// What matters of a design.
#[derive(Clone, Copy, Debug)]
struct Design {
    drains_all: bool,
    shares_list: bool,
    has_elevator: bool,
    volatile: bool,
}

/// A run under way, and what waited when it began.
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
    /// On the dispatch list of each hardware queue.
    leftovers: BTreeMap<(QueueId, HctxId), Ids>,
    /// Waiting to pass the elevator by.
    direct: BTreeMap<(QueueId, HctxId), Ids>,
    /// In the software queues of each hardware queue, where there is no elevator.
    staged: BTreeMap<(QueueId, HctxId), Ids>,
    /// Neither staged nor offered since they got their numbers.
    fresh: BTreeSet<(QueueId, RequestId)>,
    /// Requeued since they got their numbers.
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

    /// A run begins.
    pub(crate) fn run_begins(&mut self, queue: QueueId, hctx: HctxId) {
        let shared = self.designs[queue.index()].shares_list;
        let hctxs = if shared { HctxId(0)..=HctxId(u16::MAX) } else { hctx..=hctx };
        let of_list = self.leftovers.range((queue, *hctxs.start())..=(queue, *hctxs.end()));
        let leftovers = of_list.flat_map(|(_, ids)| ids).copied().collect();
        let direct = self.direct.get(&(queue, hctx)).cloned().unwrap_or_default();
        self.run = Some(Run { queue, hctx, leftovers, direct });
    }

    /// Its steps have been told.
    pub(crate) fn run_ended(&mut self) {
        self.run = None;
    }

    /// Whether a request passes the elevator by, as far as an event tells; `None`: it does not tell.
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

    /// What is staged, and that nothing goes past it ([no-overtaking-staged]).
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
