//! B-WF2Q+ over two levels: queues and groups at the root, and the queues of each group.
//!
//! A level serves one entity at a time. The others that have requests are in the active tree of
//! their class; those that have none stay in its idle tree until virtual time has passed their
//! finish, so that nobody gains by leaving and coming back. Classes go in order, but the idle class
//! goes first at the first choice after 200 ms, unless a queue of another class comes before it is
//! served. A slot is not cut short for it.
//!
//! The virtual time of a tree grows by the service of its entities divided by the sum of their
//! weights. Who goes next is chosen when the entity before it is put in service, and again when an
//! entity comes that is eligible and finishes earlier.
//!
//! # Rules
//!
//! - **[service-near-share]** While a set of entities of one class stays active, none of them lags
//!   behind its share by more than its own budget and the largest budget of the others, nor leads
//!   by more.
//! - **[class-starves-none]** Within a class, an active entity goes after a bounded number of
//!   slots: virtual time reaches its start, and then only entities that finish earlier go first.

use super::entity::{Entity, GROUP_WEIGHT, Seat, WEIGHTS, span};
use super::tree::{Nodes, Stamp, Tree};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// The classes of entities, in the order in which they are served.
pub(super) const CLASSES: usize = 3;
pub(super) const IDLE_CLASS: usize = CLASSES - 1;
/// The longest time in which the idle class is not served.
const IDLE_CLASS_WAIT: Duration = Duration::from_ms(200);

/// The trees of one class.
#[derive(Clone, Debug, Default)]
struct Service {
    active: Tree,
    idle: Tree,
    vtime: Stamp,
    /// The sum of the weights of all counted entities.
    weights: u64,
}

/// The root, or the inside of a group.
#[derive(Clone, Debug)]
struct Level {
    serving: Option<usize>,
    /// Who goes next if nothing changes.
    next: Option<usize>,
    classes: [Service; CLASSES],
    /// Entities in active trees.
    active: u32,
    idle_class_served: Instant,
}

impl Level {
    fn new() -> Self {
        Self {
            serving: None,
            next: None,
            classes: core::array::from_fn(|_| Service::default()),
            active: 0,
            idle_class_served: Instant::ZERO,
        }
    }
}

/// The scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    /// Queues, then groups.
    entities: Vec<Entity>,
    queues: usize,
    nodes: Nodes,
    levels: Vec<Level>,
    /// The weights of queues that are not raised and have requests, and how many queues have each,
    /// the lightest first.
    in_use: Vec<(u32, u32)>,
    /// Busy queues of each class.
    busy: [u32; CLASSES],
    /// Busy queues that are raised.
    pub(super) raised: u32,
    /// The queue that was put into an active tree last.
    newest: Option<usize>,
}

impl Scheduler {
    /// Returns a scheduler for as many queues and groups.
    pub(super) fn new(queues: usize, groups: usize) -> Self {
        let entities = queues + groups;
        Self {
            entities: (0..entities).map(|_| Entity::new(0, 1, GROUP_WEIGHT)).collect(),
            queues,
            nodes: Nodes::new(entities),
            levels: (0..=groups).map(|_| Level::new()).collect(),
            in_use: Vec::with_capacity(queues),
            busy: [0; CLASSES],
            raised: 0,
            newest: None,
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) const fn heap(queues: usize, groups: usize) -> usize {
        (queues + groups) * size_of::<Entity>()
            + Nodes::heap(queues + groups)
            + (groups + 1) * size_of::<Level>()
            + queues * size_of::<(u32, u32)>()
    }

    pub(super) fn of(&self, queue: usize) -> &Entity {
        &self.entities[queue]
    }

    pub(super) fn of_mut(&mut self, queue: usize) -> &mut Entity {
        &mut self.entities[queue]
    }

    /// Makes `queue`, which is in no tree, a new queue of this level and class.
    pub(super) fn renew(&mut self, queue: usize, level: usize, class: usize, weight: u32) {
        debug_assert!(!self.entities[queue].counted, "queue {queue} is in a tree or in service");
        debug_assert!(WEIGHTS.contains(&weight) && class < CLASSES, "{weight}, class {class}");
        self.entities[queue] = Entity::new(level, class, weight);
    }

    /// Returns the entity of the group whose inside is `level`.
    pub(super) const fn group(&self, level: usize) -> Option<usize> {
        match level.checked_sub(1) {
            Some(group) => Some(self.queues + group),
            None => None,
        }
    }

    fn parent(&self, entity: usize) -> Option<usize> {
        self.group(self.entities[entity].level)
    }

    fn is_queue(&self, entity: usize) -> bool {
        entity < self.queues
    }

    /// Returns the level inside `entity`, if it is a group.
    const fn inside(&self, entity: usize) -> Option<usize> {
        match entity.checked_sub(self.queues) {
            Some(group) => Some(group + 1),
            None => None,
        }
    }

    fn service_mut(&mut self, entity: usize) -> &mut Service {
        let Entity { level, class, .. } = self.entities[entity];
        &mut self.levels[level].classes[class]
    }

    /// The number of busy queues.
    pub(super) const fn busy(&self) -> u32 {
        self.busy[0] + self.busy[1] + self.busy[2]
    }

    /// The number of busy queues of each class.
    pub(super) const fn busy_by_class(&self) -> [u32; CLASSES] {
        self.busy
    }

    /// Whether queues of different weights have requests, and `queue` has not the least of them.
    pub(super) fn weights_differ(&self, queue: usize) -> bool {
        let lightest = self.in_use.first().map(|lightest| lightest.0);
        let own = self.entities[queue].in_use;
        self.in_use.len() > 1 && (own.is_none() || own != lightest)
    }

    /// Counts the weight of `queue` among those in use.
    pub(super) fn use_weight(&mut self, queue: usize) {
        let Entity { weight, in_use, .. } = self.entities[queue];
        if in_use.is_some() {
            return;
        }
        self.entities[queue].in_use = Some(weight);
        match self.in_use.binary_search_by_key(&weight, |known| known.0) {
            Ok(at) => self.in_use[at].1 += 1,
            Err(at) => self.in_use.insert(at, (weight, 1)),
        }
    }

    /// Takes the weight of `queue` out of those in use, if it is there.
    pub(super) fn leave_weight(&mut self, queue: usize) {
        let Some(weight) = self.entities[queue].in_use.take() else { return };
        if let Ok(at) = self.in_use.binary_search_by_key(&weight, |known| known.0) {
            self.in_use[at].1 -= 1;
            if self.in_use[at].1 == 0 {
                self.in_use.remove(at);
            }
        }
    }

    /// Marks `queue` as busy or not.
    pub(super) fn set_busy(&mut self, queue: usize, is_busy: bool) {
        let Entity { class, raise, is_busy: was_busy, .. } = self.entities[queue];
        debug_assert_ne!(was_busy, is_busy, "queue {queue}");
        self.entities[queue].is_busy = is_busy;
        let raised = u32::from(raise > 1);
        if is_busy {
            self.busy[class] += 1;
            self.raised += raised;
        } else {
            self.busy[class] -= 1;
            self.raised -= raised;
        }
    }

    /// Changes the factor of the weight of `queue`.
    pub(super) fn set_raise(&mut self, queue: usize, raise: u32) {
        debug_assert!(raise > 0, "a weight of nothing");
        let entity = &mut self.entities[queue];
        if entity.is_busy {
            self.raised -= u32::from(entity.raise > 1);
            self.raised += u32::from(raise > 1);
        }
        entity.is_changed |= entity.raise != raise;
        entity.raise = raise;
    }

    /// Asks for another class and weight of `entity`, from its next activation.
    pub(super) fn ask(&mut self, entity: usize, class: usize, weight: u32) {
        let entity = &mut self.entities[entity];
        entity.asked_class = class;
        entity.asked_weight = weight;
        entity.is_changed = true;
    }

    /// Gives the group whose inside is `level` another weight, from its next activation. Returns
    /// false if that is the root, which has none.
    pub(super) fn weigh_level(&mut self, level: usize, weight: u32) -> bool {
        let Some(group) = self.group(level) else { return false };
        let class = self.entities[group].class;
        self.ask(group, class, weight);
        true
    }

    /// Gives `queue`, which is counted, the weight that was asked for, and the class if
    /// `with_class`.
    pub(super) fn update_weight(&mut self, entity: usize, with_class: bool) {
        if !self.entities[entity].is_changed {
            return;
        }
        let Entity { weight, counted, seat, .. } = self.entities[entity];
        debug_assert!(counted && seat == Seat::Nowhere, "entity {entity} is at {seat:?}");
        self.service_mut(entity).weights -= u64::from(weight);
        let is_queue = self.is_queue(entity);
        let of = &mut self.entities[entity];
        let old_class = of.class;
        of.own_weight = of.asked_weight.clamp(*WEIGHTS.start(), *WEIGHTS.end());
        if with_class {
            of.class = of.asked_class;
        }
        of.is_changed = of.class != of.asked_class;
        let new_weight = of.own_weight * of.raise;
        let raise = of.raise;
        let class = of.class;
        if class != old_class && of.is_busy {
            self.busy[old_class] -= 1;
            self.busy[class] += 1;
        }
        if weight != new_weight && is_queue {
            self.leave_weight(entity);
        }
        self.entities[entity].weight = new_weight;
        if weight != new_weight && is_queue && raise == 1 {
            self.use_weight(entity);
        }
        let service = self.service_mut(entity);
        service.weights += u64::from(new_weight);
        let vtime = service.vtime;
        if class != old_class {
            self.entities[entity].start = vtime;
        }
    }

    /// Returns the active queues, the newest first.
    pub(super) fn active_queues(&self) -> impl Iterator<Item = usize> {
        core::iter::successors(self.newest, |queue| self.entities[*queue].older)
    }

    fn link(&mut self, queue: usize) {
        let older = self.newest.replace(queue);
        self.entities[queue].older = older;
        self.entities[queue].newer = None;
        if let Some(older) = older {
            self.entities[older].newer = Some(queue);
        }
    }

    fn unlink(&mut self, queue: usize) {
        let newer = self.entities[queue].newer.take();
        let older = self.entities[queue].older.take();
        match newer {
            Some(newer) => self.entities[newer].older = older,
            None => self.newest = older,
        }
        if let Some(older) = older {
            self.entities[older].newer = newer;
        }
    }

    fn set_finish(&mut self, entity: usize, service: u32) {
        let of = &mut self.entities[entity];
        of.finish = of.start + span(service, u64::from(of.weight));
    }

    fn put_active(&mut self, entity: usize) {
        let Entity { level, class, start, finish, .. } = self.entities[entity];
        debug_assert!(start <= finish, "entity {entity} starts at {start}, after {finish}");
        let active = &mut self.levels[level].classes[class].active;
        active.insert(&mut self.nodes, entity, start, finish);
        self.levels[level].active += 1;
        self.entities[entity].seat = Seat::Active;
        if self.is_queue(entity) {
            self.link(entity);
        }
    }

    fn take_active(&mut self, entity: usize) {
        let Entity { level, class, seat, .. } = self.entities[entity];
        debug_assert_eq!(seat, Seat::Active, "entity {entity}");
        self.levels[level].classes[class].active.remove(&mut self.nodes, entity);
        self.levels[level].active -= 1;
        self.entities[entity].seat = Seat::Nowhere;
        if self.is_queue(entity) {
            self.unlink(entity);
        }
    }

    fn take_idle(&mut self, entity: usize) {
        let Entity { level, class, seat, .. } = self.entities[entity];
        debug_assert_eq!(seat, Seat::Idle, "entity {entity}");
        self.levels[level].classes[class].idle.remove(&mut self.nodes, entity);
        self.entities[entity].seat = Seat::Nowhere;
    }

    /// Forgets `entity`: its past no longer counts.
    fn forget(&mut self, entity: usize) {
        let Entity { weight, counted, seat, .. } = self.entities[entity];
        debug_assert!(counted && seat == Seat::Nowhere, "entity {entity} is at {seat:?}");
        self.entities[entity].counted = false;
        self.service_mut(entity).weights -= u64::from(weight);
    }

    /// Takes an idle `queue` out of its tree, so that it may become another one.
    pub(super) fn forget_idle_queue(&mut self, queue: usize) {
        if self.entities[queue].seat == Seat::Idle {
            self.take_idle(queue);
            self.forget(queue);
        }
    }

    /// Forgets the idle entity that finished first if virtual time has passed its finish. With no
    /// active entity, virtual time need not be later than the last finish.
    fn forget_passed(&mut self, level: usize, class: usize) {
        let Service { active, idle, .. } = self.levels[level].classes[class];
        let Some(first) = idle.first(&self.nodes) else { return };
        let service = &mut self.levels[level].classes[class];
        if active.is_empty()
            && let Some(last) = idle.last(&self.nodes)
        {
            service.vtime = service.vtime.min(self.entities[last].finish);
        }
        if self.entities[first].finish <= service.vtime {
            self.take_idle(first);
            self.forget(first);
        }
    }

    /// Notes that `queue` was served as many sectors.
    pub(super) fn served(&mut self, queue: usize, sectors: u32) {
        let mut at = Some(queue);
        while let Some(entity) = at {
            let Entity { level, class, .. } = self.entities[entity];
            let service = self.entities[entity].service;
            self.entities[entity].service = service.saturating_add(sectors);
            // Virtual time grows as if all were served at once ([service-near-share]).
            let service = &mut self.levels[level].classes[class];
            debug_assert!(service.weights > 0, "entity {entity} is served and not counted");
            service.vtime += span(sectors, service.weights);
            self.forget_passed(level, class);
            at = self.parent(entity);
        }
    }

    /// Gives `entity` its finish, and puts it into the active tree.
    fn enqueue(&mut self, entity: usize, is_late: bool) {
        self.update_weight(entity, true);
        self.set_finish(entity, self.entities[entity].budget);
        let vtime = self.service_mut(entity).vtime;
        let of = &mut self.entities[entity];
        if is_late && vtime > of.finish {
            // A queue that came back a little too late keeps its old stamps, but not so old that
            // it would be served for a long time without a break.
            let shift = (vtime - of.finish) / u64::from(of.raise);
            of.start += shift;
            of.finish += shift;
        }
        self.put_active(entity);
    }

    /// Puts `entity`, which had no requests, among the active ones. `in_time`: its next request
    /// came so soon that it keeps what was left of its budget.
    fn activate_idle(&mut self, entity: usize, in_time: bool) {
        let vtime = self.service_mut(entity).vtime;
        let Entity { finish, seat, weight, .. } = self.entities[entity];
        let is_late = in_time && vtime > finish;
        let earliest = if is_late { finish } else { vtime };
        if seat == Seat::Idle {
            self.take_idle(entity);
            self.entities[entity].start = earliest.max(finish);
        } else {
            self.entities[entity].start = earliest;
            self.service_mut(entity).weights += u64::from(weight);
            self.entities[entity].counted = true;
        }
        self.enqueue(entity, is_late);
    }

    /// Gives `entity`, which is active or in service, new stamps by its budget.
    fn requeue_one(&mut self, entity: usize) {
        let Entity { level, seat, service, .. } = self.entities[entity];
        if self.levels[level].serving == Some(entity) {
            self.set_finish(entity, service);
            self.entities[entity].start = self.entities[entity].finish;
        }
        if seat == Seat::Active {
            self.take_active(entity);
        }
        self.enqueue(entity, false);
    }

    /// Activates `queue` and its group, or gives them new stamps. `in_time`: see
    /// [`Self::activate_idle`]. `is_over`: the slot of the queue in service has ended.
    pub(super) fn activate(&mut self, queue: usize, in_time: bool, is_over: bool, now: Instant) {
        let was_served = self.levels[self.entities[queue].level].serving == Some(queue);
        let mut at = Some(queue);
        while let Some(entity) = at {
            let Entity { level, seat, .. } = self.entities[entity];
            if self.levels[level].serving == Some(entity) || seat == Seat::Active {
                self.requeue_one(entity);
            } else {
                self.activate_idle(entity, in_time);
            }
            if !self.choose_next(level, Some(entity), is_over, now) && !was_served {
                return;
            }
            at = self.parent(entity);
        }
    }

    /// Takes `entity` out of service and of its tree. Returns false if it was in none.
    fn deactivate_one(&mut self, entity: usize) -> bool {
        let Entity { level, seat, service, counted, .. } = self.entities[entity];
        if !counted {
            return false;
        }
        self.set_finish(entity, service);
        if self.levels[level].serving == Some(entity) {
            self.levels[level].serving = None;
        } else {
            self.entities[entity].service = 0;
        }
        match seat {
            Seat::Active => self.take_active(entity),
            Seat::Idle => self.take_idle(entity),
            Seat::Nowhere => {}
        }
        let Entity { class, start, finish, .. } = self.entities[entity];
        if finish <= self.levels[level].classes[class].vtime {
            self.forget(entity);
        } else {
            let idle = &mut self.levels[level].classes[class].idle;
            idle.insert(&mut self.nodes, entity, start, finish);
            self.entities[entity].seat = Seat::Idle;
        }
        true
    }

    /// Deactivates `queue`, which has no requests, and its group if it was the last one there.
    pub(super) fn deactivate(&mut self, queue: usize, is_over: bool, now: Instant) {
        let mut at = Some(queue);
        while let Some(entity) = at {
            let level = self.entities[entity].level;
            if !self.deactivate_one(entity) {
                return;
            }
            if self.levels[level].next == Some(entity) {
                self.choose_next(level, None, is_over, now);
            }
            at = self.parent(entity);
            let Level { next, serving, .. } = self.levels[level];
            if next.is_some() || serving.is_some() {
                break;
            }
        }
        while let Some(entity) = at {
            let level = self.entities[entity].level;
            self.requeue_one(entity);
            if !self.choose_next(level, Some(entity), is_over, now) && !is_over {
                return;
            }
            at = self.parent(entity);
        }
    }

    /// Chooses who goes next in `level`. `new` has just got its stamps. Returns whether the group
    /// of this level may have to go earlier.
    fn choose_next(
        &mut self,
        level: usize,
        new: Option<usize>,
        is_over: bool,
        now: Instant,
    ) -> bool {
        let before = self.levels[level].next;
        let wins = match (new, before) {
            (Some(new), Some(before)) => new != before && self.goes_before(new, before),
            (new, None) => new.is_some(),
            (None, Some(_)) => false,
        };
        let next = if wins { new } else { self.look_up(level, is_over, now) };
        self.levels[level].next = next;
        let Some(next) = next else { return false };
        let had_larger = self.hand_up_budget(next);
        before.is_none() || had_larger
    }

    /// Whether `new` is eligible and finishes earlier than `other`, of the same class.
    fn goes_before(&self, new: usize, other: usize) -> bool {
        let new = &self.entities[new];
        let other = &self.entities[other];
        let vtime = self.levels[new.level].classes[new.class].vtime;
        new.class == other.class && new.start <= vtime && new.finish < other.finish
    }

    /// Gives the group of `next` its budget. Returns whether the group had a larger one.
    fn hand_up_budget(&mut self, next: usize) -> bool {
        let Some(group) = self.parent(next) else { return false };
        let budget = self.entities[next].budget;
        core::mem::replace(&mut self.entities[group].budget, budget) > budget
    }

    fn look_up(&mut self, level: usize, is_over: bool, now: Instant) -> Option<usize> {
        let of = &mut self.levels[level];
        let mut first = 0;
        if now > of.idle_class_served + IDLE_CLASS_WAIT {
            if !of.classes[IDLE_CLASS].active.is_empty() {
                first = IDLE_CLASS;
            }
            of.idle_class_served = now;
        }
        // While an entity is in service, virtual time may only be moved by its service.
        let is_fixed = of.serving.is_some() && !is_over;
        (first..CLASSES).find_map(|class| {
            let Service { active, vtime, .. } = self.levels[level].classes[class];
            if active.is_empty() {
                return None;
            }
            let jumped = vtime.max(active.earliest_start(&self.nodes));
            if !is_fixed && jumped > vtime {
                self.levels[level].classes[class].vtime = jumped;
                self.forget_passed(level, class);
            }
            // [class-starves-none]: nobody who has not yet begun goes before those who have.
            let first = active.first_eligible(&self.nodes, jumped);
            debug_assert!(first.is_some(), "the earliest start has come");
            first
        })
    }

    /// Puts the next queue in service, if one is active.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<usize> {
        let mut level = 0;
        let queue = loop {
            let entity = self.levels[level].next?;
            self.levels[level].serving = Some(entity);
            let Some(inside) = self.inside(entity) else {
                self.take_active(entity);
                break entity;
            };
            // A group of several active queues may go next again.
            if self.levels[inside].active == 1 {
                self.take_active(entity);
            }
            level = inside;
        };
        let mut at = Some(queue);
        while let Some(entity) = at {
            if !self.choose_next(self.entities[entity].level, None, false, now) {
                break;
            }
            at = self.parent(entity);
        }
        Some(queue)
    }

    /// Notes that `queue` is no longer in service.
    pub(super) fn leave_service(&mut self, queue: usize) {
        let mut at = Some(queue);
        while let Some(entity) = at {
            self.levels[self.entities[entity].level].serving = None;
            at = self.parent(entity);
        }
    }

    /// Sets the service of the group of `queue` to zero.
    pub(super) fn clear_service_above(&mut self, queue: usize) {
        if let Some(group) = self.parent(queue) {
            self.entities[group].service = 0;
        }
    }

    /// Whether another entity than the one in service goes next.
    pub(super) fn may_preempt(&self) -> bool {
        self.levels[0].next != self.levels[0].serving
    }
}
