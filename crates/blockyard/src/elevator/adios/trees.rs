//! The deadline trees: one of reads, and one of everything else.
//!
//! Deadlines count in steps of 2^20 ns, about 1 ms. Within a step requests go as they came.

use super::Held;
use crate::elevator::sector_tree::{SectorNodes, SectorTree};
use crate::request::{List, Requests};
use crate::time::Instant;
use crate::unit::RequestId;

/// The priority of the rest, which no tunable changes.
const REST_PRIORITY: i32 = 0;
/// A step of deadlines is 2 to this power in ns.
const STEP_SHIFT: u32 = 20;
/// The weight of priority 0.
const WEIGHT_SHIFT: u32 = 10;

/// The weight of each priority from -20 to 19: those of Linux's levels of nice.
const WEIGHTS: [u64; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9548, 7620,
    6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172,
    137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// A tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Reads,
    Rest,
}

impl Side {
    /// Returns the side of reads, or of the rest.
    pub(super) const fn of(is_read: bool) -> Self {
        if is_read { Self::Reads } else { Self::Rest }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// The request that goes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) id: RequestId,
    side: Side,
    /// Whether its side pays for it.
    pays: bool,
}

/// Both trees, and which of them goes first.
///
/// While both have requests, reads go if the bias is not negative, and the rest if it is. The side
/// that goes pays only if its deadline is the later one: then the bias moves towards the other side
/// by the predicted latency times the weight of the priority. At priority 8 the weight is
/// 172 / 1024, so a read of 1 ms that passes an earlier write moves the bias by 168 us. A request
/// without a prediction sets the bias to just beyond 0.
#[derive(Debug)]
pub(super) struct Trees {
    trees: [SectorTree; 2],
    lens: [u32; 2],
    nodes: SectorNodes,
    weights: [u64; 2],
    bias_ns: i64,
}

impl Trees {
    /// Returns empty trees for `capacity` requests.
    ///
    /// # Panics
    ///
    /// Panics if `read_priority` is not from -20 to 19.
    pub(super) fn new(capacity: usize, read_priority: i32) -> Self {
        Self {
            trees: [SectorTree::new(), SectorTree::new()],
            lens: [0; 2],
            nodes: SectorNodes::new(capacity),
            weights: [read_priority, REST_PRIORITY].map(weight),
            bias_ns: 0,
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) const fn heap(capacity: usize) -> usize {
        SectorNodes::heap(capacity)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lens[0] == 0 && self.lens[1] == 0
    }

    /// Sorts in `id`, behind all of its step.
    pub(super) fn insert(&mut self, side: Side, id: RequestId, deadline: Instant) {
        self.trees[side.index()].insert(&mut self.nodes, id, deadline.as_ns() >> STEP_SHIFT);
        self.lens[side.index()] += 1;
    }

    pub(super) fn remove(&mut self, side: Side, id: RequestId) {
        debug_assert!(self.lens[side.index()] > 0, "{id:?} is in no tree of {side:?}");
        self.trees[side.index()].remove(&mut self.nodes, id);
        self.lens[side.index()] -= 1;
    }

    /// Returns the request that goes next.
    pub(super) fn next(&self, held: &[Held]) -> Option<Next> {
        let favoured = if self.bias_ns < 0 { Side::Rest } else { Side::Reads };
        let other = if self.bias_ns < 0 { Side::Reads } else { Side::Rest };
        Some(match (self.first(favoured), self.first(other)) {
            (Some(id), Some(passed)) => {
                let pays = held[id.index()].deadline > held[passed.index()].deadline;
                Next { id, side: favoured, pays }
            }
            (Some(id), None) => Next { id, side: favoured, pays: true },
            (None, Some(id)) => Next { id, side: other, pays: false },
            (None, None) => return None,
        })
    }

    /// Takes `next` out, with what its side pays for a request of `predicted_ns`.
    pub(super) fn take(&mut self, next: Next, predicted_ns: u64) {
        self.remove(next.side, next.id);
        if !next.pays {
            return;
        }
        let weight = self.weights[next.side.index()];
        // ADIOS pays nothing where less than 1 ns results, which would starve the other side.
        let price = (predicted_ns.saturating_mul(weight) >> WEIGHT_SHIFT).max(1);
        let price = i64::try_from(price).unwrap_or(i64::MAX);
        let before = if predicted_ns == 0 { 0 } else { self.bias_ns };
        self.bias_ns = match next.side {
            Side::Reads => before.saturating_sub(price),
            Side::Rest => before.saturating_add(price),
        };
    }

    /// Sorts the requests of `list`, which are in no tree, by sector.
    pub(super) fn sort_list(&mut self, requests: &mut Requests, list: &mut List) {
        let mut sorted = SectorTree::new();
        while let Some(id) = list.pop_front(requests) {
            sorted.insert(&mut self.nodes, id, requests[id].sector);
        }
        while let Some(id) = sorted.first(&self.nodes) {
            sorted.remove(&mut self.nodes, id);
            list.push_back(requests, id);
        }
    }

    #[cfg(test)]
    pub(super) const fn bias_ns(&self) -> i64 {
        self.bias_ns
    }

    fn first(&self, side: Side) -> Option<RequestId> {
        if self.lens[side.index()] == 0 {
            return None;
        }
        self.trees[side.index()].first(&self.nodes)
    }
}

fn weight(priority: i32) -> u64 {
    let at = usize::try_from(priority + 20).ok().and_then(|at| WEIGHTS.get(at));
    *at.expect("a priority is from -20 to 19")
}
