//! One priority class of mq-deadline: what goes next within it. The rules are the elevator's.

use crate::bio::Op;
use crate::elevator::sector_tree::{SectorNodes, SectorTree};
use crate::policy::DeadlineTunables;
use crate::request::List;
use crate::sector_hash::{HashNodes, SectorHash};
use crate::time::Instant;
use crate::unit::RequestId;

/// The start sectors of requests, shared by all directions and classes: the nodes of their trees,
/// and a hash for searches by one sector.
#[derive(Debug)]
pub(super) struct Order {
    nodes: SectorNodes,
    starts: SectorHash,
    start_nodes: HashNodes,
}

impl Order {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            nodes: SectorNodes::new(capacity),
            starts: SectorHash::new(capacity),
            start_nodes: HashNodes::new(capacity),
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) fn heap(capacity: usize) -> usize {
        SectorNodes::heap(capacity) + SectorHash::heap(capacity) + HashNodes::heap(capacity)
    }

    /// Returns the requests of any direction that start at `sector`, newest first.
    pub(super) fn starting_at(&self, sector: u64) -> impl Iterator<Item = RequestId> {
        self.starts.at(&self.start_nodes, sector)
    }
}

/// A direction of a class: the same requests twice, by sector and by arrival.
#[derive(Clone, Debug)]
pub(super) struct Side {
    tree: SectorTree,
    pub(super) fifo: List,
    /// The start of the request sent last.
    position: u64,
    /// The first request that starts at or after `position`, kept because following it costs less
    /// than a search.
    next: Option<RequestId>,
}

impl Side {
    /// Sorts in `id`, which starts at `sector`.
    pub(super) fn sort(&mut self, order: &mut Order, id: RequestId, sector: u64) {
        self.see(order, id, sector);
        self.file(order, id, sector);
    }

    /// Notes that `id`, which starts at `sector`, is among the requests by arrival: it may be the next one.
    pub(super) fn see(&mut self, order: &Order, id: RequestId, sector: u64) {
        // Of equal sectors the earlier one stays the next: `<`, not `<=`.
        let is_before_next = self.next.is_none_or(|next| sector < order.nodes.sector(next));
        if sector >= self.position && is_before_next {
            self.next = Some(id);
        }
    }

    /// Files `id`, which was seen, by `sector`.
    pub(super) fn file(&mut self, order: &mut Order, id: RequestId, sector: u64) {
        self.tree.insert(&mut order.nodes, id, sector);
        order.starts.insert(&mut order.start_nodes, id, sector);
    }

    /// Sends the only request, which starts at `sector` and was not filed.
    pub(super) fn send_lone(&mut self, sector: u64) {
        debug_assert!(self.fifo.is_empty(), "requests beside a lone one");
        self.position = sector;
        self.next = None;
    }

    pub(super) fn unsort(&mut self, order: &mut Order, id: RequestId) {
        if self.next == Some(id) {
            self.next = self.tree.behind(&order.nodes, id);
        }
        self.tree.remove(&mut order.nodes, id);
        order.starts.remove(&mut order.start_nodes, id);
    }

    /// Like [`Self::unsort`]; the order then continues from the start of `id`.
    pub(super) fn send(&mut self, order: &mut Order, id: RequestId) {
        let in_order = self.next == Some(id);
        self.position = order.nodes.sector(id);
        self.unsort(order, id); // which follows `next`, if that was `id`
        // A request out of order, such as an expired head, moves the position: the next one is searched for.
        if !in_order {
            self.next = self.tree.next_at_or_after(&order.nodes, self.position);
        }
    }
}

/// The direction whose turn it is.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Reads,
    Writes,
}

/// A priority class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) head: List,
    /// Requests that are queued or in flight.
    pub(super) unfinished: u32,
    reads: Side,
    writes: Side,
    turn: Turn,
    /// How many more requests the current batch may have.
    batch_left: u32,
    /// How many new batches have passed over waiting writes.
    starved: u32,
}

impl Class {
    pub(super) const fn new() -> Self {
        const EMPTY: Side =
            Side { tree: SectorTree::new(), fifo: List::new(), position: 0, next: None };
        Self {
            head: List::new(),
            unfinished: 0,
            reads: EMPTY,
            writes: EMPTY,
            turn: Turn::Reads,
            batch_left: 0,
            starved: 0,
        }
    }

    pub(super) const fn side_mut(&mut self, op: Op) -> &mut Side {
        if op.is_read() { &mut self.reads } else { &mut self.writes }
    }

    #[cfg(test)]
    pub(super) fn self_check(&self, order: &Order, lone: Option<RequestId>) {
        for side in [&self.reads, &self.writes] {
            let unfiled = usize::from(lone.is_some() && side.fifo.first() == lone);
            assert_eq!(side.tree.self_check(&order.nodes) + unfiled, side.fifo.len() as usize);
        }
    }

    /// Whether a request is queued or in flight.
    pub(super) const fn has_work(&self) -> bool {
        self.unfinished > 0
    }

    /// The number of requests that are queued.
    pub(super) const fn queued(&self) -> u32 {
        self.head.len() + self.reads.fifo.len() + self.writes.fifo.len()
    }

    /// Returns the earliest arrival among the heads of the lists.
    pub(super) fn oldest(&self, arrived: &[Instant]) -> Option<RequestId> {
        let heads = [self.head.first(), self.reads.fifo.first(), self.writes.fifo.first()];
        heads.into_iter().flatten().min_by_key(|id| arrived[id.index()])
    }

    /// Returns the request to send next; the caller sends it.
    pub(super) fn next(
        &mut self,
        arrived: &[Instant],
        tunables: &DeadlineTunables,
        now: Instant,
    ) -> Option<RequestId> {
        self.head
            .first()
            .or_else(|| self.continue_batch())
            .or_else(|| self.begin_batch(arrived, tunables, now))
    }

    /// Returns the next request of the current batch, unless the batch is full or its direction has none ahead.
    fn continue_batch(&mut self) -> Option<RequestId> {
        let left = self.batch_left.checked_sub(1)?;
        let id = match self.turn {
            Turn::Reads => self.reads.next,
            Turn::Writes => self.writes.next,
        }?;
        self.batch_left = left;
        Some(id)
    }

    /// Begins a batch with the head of the FIFO or the next request.
    fn begin_batch(
        &mut self,
        arrived: &[Instant],
        tunables: &DeadlineTunables,
        now: Instant,
    ) -> Option<RequestId> {
        self.turn = self.choose_turn(tunables.writes_starved)?;
        self.batch_left = tunables.fifo_batch.saturating_sub(1);
        let (side, expire) = match self.turn {
            Turn::Reads => (&self.reads, tunables.read_expire),
            Turn::Writes => (&self.writes, tunables.write_expire),
        };
        let oldest = side.fifo.first()?;
        let expired = now >= arrived[oldest.index()] + expire;
        // With nothing ahead, the direction begins again with its oldest request, not with its lowest sector.
        if expired { Some(oldest) } else { side.next.or(Some(oldest)) }
    }

    /// Returns the direction of a new batch: writes only if no reads wait, or if `writes_starved` batches of reads
    /// have passed over them.
    fn choose_turn(&mut self, writes_starved: u32) -> Option<Turn> {
        let reads = !self.reads.fifo.is_empty();
        let writes = !self.writes.fifo.is_empty();
        if writes && (!reads || self.starved >= writes_starved) {
            self.starved = 0;
            return Some(Turn::Writes);
        }
        self.starved += u32::from(writes);
        reads.then_some(Turn::Reads)
    }
}
