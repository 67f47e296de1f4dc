//! Requests indexed by one sector: where they start, or where they end.
//!
//! A [`SectorHash`] chains the requests of each bucket through [`HashNodes`], which has one node
//! for each request of the queue. Any number of hashes may share the nodes as long as a request is
//! in one hash.
//!
//! # Rules
//!
//! - **[filed-in-its-chain]** A filed request is in the chain of the sector that its node names.
//!
//! Within a chain the request that was filed last comes first.

use crate::unit::RequestId;
use alloc::boxed::Box;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
/// Stands for "not filed": the last sector of the largest device lies far below.
const UNFILED: u64 = u64::MAX;

/// One node for each request of a queue.
#[derive(Debug)]
pub struct HashNodes {
    slots: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    /// The sector that the request is filed under, or [`UNFILED`].
    sector: u64,
    next: u32,
    prev: u32,
}

impl HashNodes {
    /// Returns nodes for requests 0 to `capacity`, none filed.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { slots: alloc::vec![Node { sector: UNFILED, next: NONE, prev: NONE }; capacity] }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(capacity: usize) -> usize {
        capacity * size_of::<Node>()
    }

    /// Whether `id` is filed in a hash.
    #[must_use]
    pub fn is_filed(&self, id: RequestId) -> bool {
        self.slots[id.index()].sector != UNFILED
    }
}

/// A set of requests by sector. Every call takes the nodes that the hash was first used with, and
/// costs a few loads.
#[derive(Clone, Debug)]
pub struct SectorHash {
    /// The first request of each chain. A power of two.
    buckets: Box<[u32]>,
    /// The shift that reduces a product to an index.
    shift: u32,
}

impl SectorHash {
    /// Returns an empty hash whose chains have one request on average while it holds `capacity`.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let count = Self::buckets(capacity);
        Self {
            buckets: alloc::vec![NONE; count].into_boxed_slice(),
            shift: u64::BITS - count.ilog2(),
        }
    }

    fn buckets(capacity: usize) -> usize {
        capacity.next_power_of_two().max(2)
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(capacity: usize) -> usize {
        Self::buckets(capacity) * size_of::<u32>()
    }

    /// Files `id`, which is not filed, under `sector` ([filed-in-its-chain]), before those that are
    /// filed there.
    pub fn insert(&mut self, nodes: &mut HashNodes, id: RequestId, sector: u64) {
        debug_assert!(!nodes.is_filed(id), "request {} is filed already", id.0);
        let bucket = self.bucket(sector);
        let first = core::mem::replace(&mut self.buckets[bucket], id.0);
        nodes.slots[id.index()] = Node { sector, next: first, prev: NONE };
        if let Some(second) = nodes.slots.get_mut(first as usize) {
            second.prev = id.0;
        }
    }

    /// Removes `id` if it is filed here. Returns whether it was.
    pub fn remove(&mut self, nodes: &mut HashNodes, id: RequestId) -> bool {
        let node = &mut nodes.slots[id.index()];
        let Node { sector, next, prev } = *node;
        if sector == UNFILED {
            return false;
        }
        node.sector = UNFILED;
        match nodes.slots.get_mut(prev as usize) {
            Some(before) => before.next = next,
            // It was the first of its chain, which begins in the bucket of its sector.
            None => {
                let bucket = self.bucket(sector);
                self.buckets[bucket] = next;
            }
        }
        if let Some(behind) = nodes.slots.get_mut(next as usize) {
            behind.prev = prev;
        }
        true
    }

    /// Returns the requests filed under `sector`, newest first.
    pub fn at<'a>(
        &self,
        nodes: &'a HashNodes,
        sector: u64,
    ) -> impl Iterator<Item = RequestId> + 'a {
        let mut at = self.buckets[self.bucket(sector)];
        core::iter::from_fn(move || {
            // A chain has all sectors of its bucket: those of other sectors are passed over.
            loop {
                let node = nodes.slots.get(at as usize)?;
                let id = RequestId(at);
                at = node.next;
                if node.sector == sector {
                    return Some(id);
                }
            }
        })
    }

    /// Multiplicative hashing: the high bits depend on every bit of the sector.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what is left after the shift indexes the buckets, whose count is a usize"
    )]
    const fn bucket(&self, sector: u64) -> usize {
        (sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_removed_once() {
        let mut nodes = HashNodes::new(2);
        let mut hash = SectorHash::new(2);
        hash.insert(&mut nodes, RequestId(1), 8);
        let removed = [0, 1, 1].map(|id| hash.remove(&mut nodes, RequestId(id)));
        assert_eq!(removed, [false, true, false]);
        assert!(hash.at(&nodes, 8).next().is_none());
    }
}
