//! An oracle: the order of mq-deadline, written as plainly as possible. It answers every question
//! by a search of all held requests.

use super::*;
use std::vec::Vec;

#[derive(Clone, Debug)]
struct Held {
    id: RequestId,
    op: Op,
    class: usize,
    arrived: Instant,
    sector: u64,
    /// The order among equal sectors: when it was sorted in.
    placed: u64,
}

#[derive(Clone, Debug, Default)]
struct Turn {
    reads: bool,
    sent: u32,
    passed_over: u32,
    in_flight: u32,
    read_position: u64,
    write_position: u64,
}

pub(super) struct Slow {
    tunables: DeadlineTunables,
    /// Head lists, first to last, all classes mixed.
    heads: Vec<Held>,
    /// All other requests by arrival, all classes and directions mixed.
    sorted: Vec<Held>,
    /// The mergeable requests and their ends, in the order of filing.
    filed: Vec<(RequestId, u64)>,
    /// The last one of `filed`, unless it has left.
    last: Option<RequestId>,
    turns: [Turn; 3],
    placed: u64,
}

impl Slow {
    pub(super) fn new(tunables: DeadlineTunables) -> Self {
        // No batch is current: a finished one has the same effect.
        let turn = Turn { sent: u32::MAX, ..Turn::default() };
        Self {
            tunables,
            heads: Vec::new(),
            sorted: Vec::new(),
            filed: Vec::new(),
            last: None,
            turns: [turn.clone(), turn.clone(), turn],
            placed: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.heads.len() + self.sorted.len()
    }

    fn class_of(&self, prio: IoPrio) -> usize {
        match prio.class {
            PrioClass::BestEffort | PrioClass::None if self.tunables.classes => 1,
            PrioClass::Idle if self.tunables.classes => 2,
            _ => 0,
        }
    }

    fn ask(
        requests: &Requests,
        limits: &Limits,
        id: RequestId,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let held = requests[id].extent();
        let before = other.sector + u64::from(other.sectors) == held.sector;
        match fit(&held, other, limits) {
            Fit::Join(Merge::Front) if !fronts => None,
            Fit::Join(merge) => Some(Candidate::Join(id, merge)),
            Fit::TooBig if before && !fronts => None,
            Fit::TooBig => Some(Candidate::TooBig(id)),
            Fit::No => None,
        }
    }

    /// The last one filed; then ends, newest first; then starts, newest first.
    pub(super) fn find_merge(
        &self,
        requests: &Requests,
        limits: &Limits,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let ask = |id| Self::ask(requests, limits, id, other, fronts);
        if let Some(found) = self.last.and_then(ask) {
            return Some(found);
        }
        let backs = self.filed.iter().rev().filter(|(_, end)| *end == other.sector);
        if let Some(found) = backs.map(|(id, _)| *id).find_map(ask) {
            return Some(found);
        }
        if !(fronts && self.tunables.front_merges) {
            return None;
        }
        self.starting_at(other.end_sector()).into_iter().map(|held| held.id).find_map(ask)
    }

    fn starting_at(&self, sector: u64) -> Vec<&Held> {
        let mut found: Vec<_> = self.sorted.iter().filter(|held| held.sector == sector).collect();
        found.sort_by_key(|held| core::cmp::Reverse(held.placed));
        found
    }

    fn file(&mut self, id: RequestId, end: u64) {
        self.filed.push((id, end));
        self.last = Some(id);
    }

    pub(super) fn unmergeable(&mut self, id: RequestId) {
        self.filed.retain(|(filed, _)| *filed != id);
        self.last = self.last.filter(|last| *last != id);
    }

    pub(super) fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        self.placed += 1;
        let held = self.sorted.iter_mut().find(|held| held.id == id).expect("held");
        if merge == Merge::Front {
            held.sector = requests[id].sector;
            held.placed = self.placed;
        }
        if self.filed.iter().any(|(filed, _)| *filed == id) {
            self.unmergeable(id);
            self.file(id, requests[id].end_sector());
        }
    }

    pub(super) fn neighbour(
        &self,
        requests: &Requests,
        id: RequestId,
        merge: Merge,
    ) -> Option<RequestId> {
        let rq = &requests[id];
        let same_class = |held: &&&Held| held.op == rq.op && held.class == self.class_of(rq.prio);
        match merge {
            Merge::Back => {
                self.starting_at(rq.end_sector()).iter().find(same_class).map(|held| held.id)
            }
            Merge::Front => self
                .filed
                .iter()
                .rev()
                .find(|(other, end)| *end == rq.sector && requests[*other].op == rq.op)
                .map(|(id, _)| *id),
            Merge::Discard => None,
        }
    }

    /// The earlier arrival stays.
    pub(super) fn joined(&mut self, kept: RequestId, absorbed: RequestId) {
        let at_kept = self.sorted.iter().position(|held| held.id == kept).expect("kept is held");
        let at_gone =
            self.sorted.iter().position(|held| held.id == absorbed).expect("absorbed is held");
        let arrived = self.sorted[at_gone].arrived;
        if arrived < self.sorted[at_kept].arrived {
            self.sorted[at_gone] = Held { arrived, ..self.sorted[at_kept].clone() };
            self.sorted.remove(at_kept);
        } else {
            self.sorted.remove(at_gone);
        }
        self.unmergeable(absorbed);
    }

    pub(super) fn insert(
        &mut self,
        requests: &Requests,
        id: RequestId,
        place: Place,
        now: Instant,
    ) {
        self.placed += 1;
        let rq = &requests[id];
        let held = Held {
            id,
            op: rq.op,
            class: self.class_of(rq.prio),
            arrived: now,
            sector: rq.sector,
            placed: self.placed,
        };
        if place == Place::Head {
            self.heads.insert(0, held);
        } else if rq.op == Op::Flush {
            self.heads.push(held);
        } else {
            self.sorted.push(held);
            if rq.extent().is_mergeable() {
                self.file(id, rq.end_sector());
            }
        }
    }

    pub(super) fn finished(&mut self, request: &Request) {
        let class = self.class_of(request.prio);
        self.turns[class].in_flight -= 1;
    }

    pub(super) fn dispatch(&mut self, requests: &Requests, now: Instant) -> Option<RequestId> {
        let head = self.heads.first().filter(|_| self.tunables.heads == HeadLists::One);
        let head = head.map(|held| held.id);
        let id = head.or_else(|| self.aged(now)).or_else(|| self.in_order(now))?;
        let rq = &requests[id];
        let class = self.class_of(rq.prio);
        self.turns[class].in_flight += 1;
        if self.sorted.iter().any(|held| held.id == id) {
            let turn = &mut self.turns[class];
            *(if rq.op.is_read() { &mut turn.read_position } else { &mut turn.write_position }) =
                rq.sector;
        }
        self.heads.retain(|held| held.id != id);
        self.sorted.retain(|held| held.id != id);
        self.unmergeable(id);
        Some(id)
    }

    fn all(&self) -> impl Iterator<Item = &Held> {
        self.heads.iter().chain(&self.sorted)
    }

    fn has_work(&self, class: usize) -> bool {
        self.turns[class].in_flight > 0 || self.all().any(|held| held.class == class)
    }

    /// The aged request: for each class the oldest head of its lists; of equally old ones the
    /// first in this order.
    fn aged(&self, now: Instant) -> Option<RequestId> {
        if (0..3).filter(|&class| self.has_work(class)).count() < 2 {
            return None;
        }
        (1..3).find_map(|class| {
            let head = self.heads.iter().find(|held| held.class == class);
            let oldest = [head, self.fifo(class, true).next(), self.fifo(class, false).next()]
                .into_iter()
                .flatten()
                .min_by_key(|held| held.arrived)?;
            (now >= oldest.arrived + self.tunables.prio_aging_expire).then_some(oldest.id)
        })
    }

    fn fifo(&self, class: usize, reads: bool) -> impl Iterator<Item = &Held> {
        self.sorted.iter().filter(move |held| held.class == class && held.op.is_read() == reads)
    }

    /// The lowest sector at or after the position; of equal ones the one sorted in first.
    fn next_sorted(&self, class: usize, reads: bool) -> Option<&Held> {
        let turn = &self.turns[class];
        let position = if reads { turn.read_position } else { turn.write_position };
        self.fifo(class, reads)
            .filter(|held| held.sector >= position)
            .min_by_key(|held| (held.sector, held.placed))
    }

    /// The next request: classes in order, then the batch, then a new batch.
    fn in_order(&mut self, now: Instant) -> Option<RequestId> {
        let class = (0..3).find(|&class| self.has_work(class))?;
        if let Some(head) = self.heads.iter().find(|held| held.class == class) {
            return Some(head.id);
        }
        let turn = self.turns[class].clone();
        if turn.sent < self.tunables.fifo_batch
            && let Some(id) = self.next_sorted(class, turn.reads).map(|next| next.id)
        {
            self.turns[class].sent += 1;
            return Some(id);
        }
        let reads_wait = self.fifo(class, true).next().is_some();
        let writes_wait = self.fifo(class, false).next().is_some();
        let reads = match (reads_wait, writes_wait) {
            (false, false) => return None,
            (true, true) if turn.passed_over < self.tunables.writes_starved => {
                self.turns[class].passed_over += 1;
                true
            }
            (true, false) => true,
            (_, true) => {
                self.turns[class].passed_over = 0;
                false
            }
        };
        self.turns[class].reads = reads;
        self.turns[class].sent = 1;
        let expire = if reads { self.tunables.read_expire } else { self.tunables.write_expire };
        let oldest = self.fifo(class, reads).next()?;
        if now >= oldest.arrived + expire {
            return Some(oldest.id);
        }
        Some(self.next_sorted(class, reads).unwrap_or(oldest).id)
    }
}
