//! [`Audited`]: bfq under the checks of its theory, at every call.
//!
//! Tests run it in place of [`Bfq`], below [`Checked`](crate::elevator::checked::Checked).
//! What a rule allows follows from the tunables and weights that the auditor was told, so bfq is
//! caught if it goes by others. It panics with the name of the rule:
//!
//! - [budget-kept]: the sectors that a queue is given in a slot fit into its budget.
//! - [idling-bounded]: the device is held for the time that the tunables say.
//! - [service-near-share]: queues of one group that have requests all the time, and groups, are
//!   given sectors by their weights.
//! - [class-starves-none]: while an entity waits, the others of its level are given no more than
//!   what its weight and their budgets allow.
//!
//! The last two hold while weights count alone: nothing was injected, raised or merged, and all
//! entities of a level are of one class. Else they are not checked.

use super::entity::GROUP_WEIGHT;
use super::idling::RAISED_WAIT;
use super::process::level_of;
use super::queue::{class_and_level, weight_of_level};
use super::shares::{Account, check_shares};
use super::{Bfq, Counts};
use crate::bio::Submitter;
use crate::elevator::{AfterFinish, Ctx, Elevator, Place};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::policy::BfqTunables;
use crate::request::{Request, Requests};
use crate::time::Instant;
use crate::unit::{HctxId, RequestId};
use alloc::vec::Vec;

/// How often the bound of shares may be reached: an entity may be as far behind at first as it may
/// be ahead at last.
const SLACK: u64 = 2;

/// The slot in which the last request was given.
#[derive(Clone, Copy, Debug)]
struct Slot {
    queue: usize,
    /// Slots that had ended before.
    number: u64,
    sectors: u64,
}

/// An entity with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    entity: usize,
    weight: u64,
    is_served: bool,
}

/// What is kept of an entity.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    given: u64,
    /// What it had been given when its level got the members that it has.
    base: u64,
    /// The largest budget that it had.
    budget: u64,
    /// What its level had been given when its wait began, if it waits.
    waits_since: Option<u64>,
}

/// The entities of a level that have requests, and what the level was given.
#[derive(Clone, Debug, Default)]
struct Window {
    members: Vec<Member>,
    given: u64,
    /// The largest sum of weights, and the largest budget, that there were.
    weights: u64,
    budget: u64,
}

/// The auditor, and bfq below it.
#[derive(Debug)]
pub struct Audited {
    below: Bfq,
    told: BfqTunables,
    /// For each level; and the weights of their groups.
    windows: Vec<Window>,
    group_weights: Vec<u64>,
    /// Queues, then groups.
    entities: Vec<History>,
    /// For each queue, what bfq counted as served at the last look.
    served: Vec<u32>,
    slot: Option<Slot>,
    /// Whether anything but weights has counted.
    is_disturbed: bool,
}

impl Audited {
    /// Audits `below`, which is to go by these tunables.
    #[must_use]
    pub fn new(below: Bfq, told: BfqTunables) -> Self {
        let queues = below.queues.len();
        let levels = below.counts.groups.len();
        Self {
            told,
            windows: alloc::vec![Window::default(); levels],
            group_weights: alloc::vec![u64::from(GROUP_WEIGHT); levels],
            entities: alloc::vec![History::default(); queues + levels],
            served: alloc::vec![0; queues],
            slot: None,
            is_disturbed: told.low_latency,
            below,
        }
    }

    /// Checks that the request that was given just now fits into the budget of its queue.
    fn check_budget(&mut self, id: RequestId, sectors: u32) {
        let queue = self.below.held[id.index()].queue as usize;
        if self.below.serving != Some(queue) {
            return; // a flush, an injected one, or the slot has ended with it
        }
        let number = self.below.counts.slots.all();
        let before = self.slot.filter(|slot| (slot.queue, slot.number) == (queue, number));
        let sectors = before.map_or(0, |slot| slot.sectors) + u64::from(sectors);
        self.slot = Some(Slot { queue, number, sectors });
        let entity = self.below.scheduler.of(queue);
        assert!(
            sectors <= entity.budget.into() && entity.left() >= 0,
            "[budget-kept] queue {queue} gets {sectors} sectors: {entity:?}"
        );
    }

    /// Checks how long the device is held.
    fn check_idling(&self) {
        let Some(until) = self.below.idle_until else { return };
        let mut most = self.told.slice_idle;
        if self.told.strict_guarantees {
            most = most.max(super::SLICE_IDLE);
        }
        if self.told.low_latency {
            most = most.max(RAISED_WAIT);
        }
        let held = until.since(self.below.idled_since);
        assert!(held <= most, "[idling-bounded] {held:?}, and {most:?} were told");
    }

    /// Looks at all that has changed with a call.
    fn audit(&mut self) {
        self.check_idling();
        let Counts { injected, merged, .. } = self.below.counts;
        self.is_disturbed |= injected > 0 || merged > 0;
        if self.is_disturbed {
            return;
        }
        let Some(of_levels) = self.members() else {
            self.is_disturbed = true;
            return;
        };
        for (level, members) in of_levels.into_iter().enumerate() {
            self.note_members(level, members);
            self.check_level(level);
        }
    }

    /// Returns the entities of each level that have requests, after noting what they were given;
    /// `None` if not only weights count among them.
    fn members(&mut self) -> Option<Vec<Vec<Member>>> {
        let mut of_levels = alloc::vec![Vec::<Member>::new(); self.windows.len()];
        let mut queues: Vec<_> = self.below.scheduler.active_queues().collect();
        queues.extend(self.below.serving);
        queues.sort_unstable();
        let mut class = None;
        for queue in queues {
            let entity = self.below.scheduler.of(queue);
            if class.replace(entity.class).is_some_and(|other| other != entity.class) {
                return None;
            }
            let level = entity.level;
            let budget = u64::from(entity.budget.max(entity.service));
            let weight = self.asked_weight(queue)?;
            let is_served = self.below.serving == Some(queue);
            let served = self.below.queues[queue].served;
            // It is counted from zero again when a queue gets requests.
            let more = served.checked_sub(self.served[queue]).unwrap_or(served);
            self.served[queue] = served;
            self.give(level, queue, more.into(), budget);
            of_levels[level].push(Member { entity: queue, weight, is_served });
            let Some(group) = self.below.scheduler.group(level) else { continue };
            self.give(0, group, more.into(), budget);
            match of_levels[0].iter_mut().find(|member| member.entity == group) {
                Some(member) => member.is_served |= is_served,
                None => {
                    let weight = self.group_weights[level];
                    of_levels[0].push(Member { entity: group, weight, is_served });
                }
            }
        }
        of_levels[0].sort_unstable_by_key(|member| member.entity);
        Some(of_levels)
    }

    /// Returns the weight that the process of `queue` asks for; `None` if the queue is not that of
    /// a process.
    fn asked_weight(&self, queue: usize) -> Option<u64> {
        let owner = self.below.processes.all().find(|process| process.sync == Some(queue))?;
        Some(weight_of_level(class_and_level(owner.prio).1).into())
    }

    /// Notes that `entity` of `level` was given as many sectors, and its budget.
    fn give(&mut self, level: usize, entity: usize, sectors: u64, budget: u64) {
        debug_assert!(level < self.windows.len(), "entity {entity} of level {level}");
        let window = &mut self.windows[level];
        window.given += sectors;
        window.budget = window.budget.max(budget);
        let history = &mut self.entities[entity];
        history.given += sectors;
        history.budget = history.budget.max(budget);
    }

    /// Notes which entities of `level` have requests. If these are others than before, accounts
    /// begin anew.
    fn note_members(&mut self, level: usize, members: Vec<Member>) {
        debug_assert!(members.is_sorted_by_key(|member| member.entity), "{members:?}");
        let window = &mut self.windows[level];
        window.weights = window.weights.max(members.iter().map(|of| of.weight).sum());
        let keys = [&window.members, &members].map(|of| of.iter().map(|of| (of.entity, of.weight)));
        let [before, now] = keys;
        let has_changed = !before.eq(now);
        for gone in &window.members {
            if !members.iter().any(|member| member.entity == gone.entity) {
                self.entities[gone.entity].waits_since = None;
            }
        }
        for member in &members {
            let history = &mut self.entities[member.entity];
            if has_changed {
                history.base = history.given;
            }
            history.waits_since =
                if member.is_served { None } else { history.waits_since.or(Some(window.given)) };
        }
        window.members = members;
    }

    /// Checks [service-near-share] and [class-starves-none] of the entities of `level`.
    fn check_level(&self, level: usize) {
        let window = &self.windows[level];
        let accounts: Vec<_> = window
            .members
            .iter()
            .map(|member| {
                let History { given, base, budget, .. } = self.entities[member.entity];
                Account { weight: member.weight, served: given - base, budget }
            })
            .collect();
        if let Err(broken) = check_shares(&accounts, SLACK) {
            panic!("{broken}");
        }
        for member in &window.members {
            let history = self.entities[member.entity];
            let Some(since) = history.waits_since else { continue };
            // Virtual time reaches the finish of the entity, and the slots that were chosen until
            // then end.
            debug_assert!(since <= window.given, "{member:?} waits since {since}");
            let bound =
                SLACK * (history.budget * window.weights / member.weight + 2 * window.budget);
            let passed = window.given - since;
            assert!(
                passed <= bound,
                "[class-starves-none] {member:?} of level {level} waits while others get {passed} \
                 sectors, more than {bound}"
            );
        }
    }
}

impl Elevator for Audited {
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        self.below.find_merge(requests, limits, ctx, other, fronts)
    }

    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        self.below.merged(requests, id, merge);
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId> {
        self.below.neighbour(requests, id, merge)
    }

    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId) {
        self.below.joined(requests, kept, absorbed);
        self.audit();
    }

    fn unmergeable(&mut self, requests: &Requests, id: RequestId) {
        self.below.unmergeable(requests, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.below.insert(requests, id, place, now);
        self.audit();
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        // A request that came back was charged before.
        let is_back = self.below.head.first();
        let id = self.below.dispatch(requests, hctx, now);
        if let Some(id) = id.filter(|id| is_back != Some(*id)) {
            self.check_budget(id, requests[id].sectors);
        }
        self.audit();
        id
    }

    fn poll_at(&self, hctx: HctxId) -> Option<Instant> {
        self.below.poll_at(hctx)
    }

    fn ask_again_at(&self, now: Instant) -> Option<Instant> {
        self.below.ask_again_at(now)
    }

    fn after_finish(&self) -> AfterFinish {
        self.below.after_finish()
    }

    fn len(&self) -> u32 {
        self.below.len()
    }

    fn finished(&mut self, id: RequestId, request: &Request, now: Instant) {
        self.below.finished(id, request, now);
        self.audit();
    }

    fn submitter_ended(&mut self, submitter: Submitter, now: Instant) -> bool {
        let asks = self.below.submitter_ended(submitter, now);
        self.audit();
        asks
    }

    fn async_depth(&self, depth: u32) -> u32 {
        self.below.async_depth(depth)
    }

    fn weigh_group(&mut self, group: u32, weight: u32) -> bool {
        let is_weighed = self.below.weigh_group(group, weight);
        if is_weighed {
            let level = level_of(&mut self.below.groups, group);
            self.group_weights[level] = weight.into();
        }
        is_weighed
    }

    fn bfq_counts(&self) -> Option<Counts> {
        self.below.bfq_counts()
    }

    fn reset_counts(&mut self, now: Instant) {
        self.below.reset_counts(now);
        self.slot = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Bio;
    use crate::request::Bios;
    use crate::unit::CpuId;

    /// A process has 40 requests of 512 sectors, and a first budget of 10922: 21 of them. If bfq
    /// forgets that it has served it, the 22nd goes, too.
    #[test]
    #[should_panic(expected = "[budget-kept]")]
    fn a_queue_that_gets_more_than_its_budget_is_caught() {
        let tunables = BfqTunables { low_latency: false, ..BfqTunables::default() };
        let mut bios = Bios::new(40);
        let mut requests = Requests::new(40);
        let mut audited = Audited::new(Bfq::new(40, true, tunables), tunables);
        let hctx = HctxId(0);
        for id in (0..40).map(RequestId) {
            let bio = Bio::read(u64::from(id.0) * 1000, 512, 0);
            let bio = bio.with_submitter(Submitter { process: 1, group: 0 });
            let bio = bios.take(bio).expect("room for 40");
            requests.start(id, bio, &bios[bio], CpuId(0), hctx, Instant::ZERO);
            audited.insert(&mut requests, id, Place::Sorted, Instant::ZERO);
        }
        for count in 1..=40 {
            let id = audited.dispatch(&mut requests, hctx, Instant::ZERO).expect("it is served");
            let queue = audited.below.held[id.index()].queue as usize;
            assert!(count <= 21, "request {count}");
            audited.below.scheduler.of_mut(queue).service = 0;
        }
    }
}
