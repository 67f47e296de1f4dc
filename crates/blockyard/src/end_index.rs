//! Finding what a bio may merge with: the request touched last, then a hash by end sector.
//!
//! An [`EndIndex`] belongs to one elevator or one software queue. Its chains run through
//! [`EndNodes`], one node per request of the queue, which any number of indexes share: a request is
//! staged in one place at a time. So an index costs 64 words, however many requests there are.
//!
//! # Rules
//!
//! - **N1.** A filed request is in the chain of the end sector that its node names, which may be
//!   older than the request's own: whoever lets it grow files it again.
//! - **N2.** Within a chain the request filed last comes first.
//! - **N3.** The request filed last is also remembered by itself, until it is removed. It alone is
//!   asked for front merges, and for discards that merge as ranges wherever they lie.

use crate::elevator::Candidate;
use crate::limits::Limits;
use crate::merge::{Extent, Fit, Merge, fit};
use crate::request::Requests;
use crate::unit::RequestId;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
/// No request ends here: the last sector of the largest device lies far below.
const UNFILED: u64 = u64::MAX;
const BUCKET_BITS: u32 = 6;

/// One node for each request of a queue.
#[derive(Debug)]
pub struct EndNodes {
    slots: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    /// The end sector it is filed under, or [`UNFILED`].
    end: u64,
    next: u32,
    prev: u32,
}

impl EndNodes {
    /// Memory for requests 0 to `capacity`, none filed.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { slots: alloc::vec![Node { end: UNFILED, next: NONE, prev: NONE }; capacity] }
    }

    fn is_filed(&self, id: RequestId) -> bool {
        self.slots[id.index()].end != UNFILED
    }
}

/// The mergeable requests of one elevator or software queue. Every call is given the nodes that
/// the index was first used with; each costs a few loads, a search one more for each request of
/// the chain.
#[derive(Clone, Debug)]
pub struct EndIndex {
    last: Option<RequestId>,
    buckets: [u32; 1 << BUCKET_BITS],
}

impl Default for EndIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl EndIndex {
    /// An index without requests.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: None, buckets: [NONE; 1 << BUCKET_BITS] }
    }

    /// Files `id`, which is not filed, under `end` and remembers it as the last one (N2, N3).
    pub fn insert(&mut self, nodes: &mut EndNodes, id: RequestId, end: u64) {
        debug_assert!(!nodes.is_filed(id), "request {} is filed already", id.0);
        let first = core::mem::replace(&mut self.buckets[bucket(end)], id.0);
        nodes.slots[id.index()] = Node { end, next: first, prev: NONE };
        if let Some(second) = nodes.slots.get_mut(first as usize) {
            second.prev = id.0;
        }
        self.last = Some(id);
    }

    /// Takes `id` out, if it is filed here.
    pub fn remove(&mut self, nodes: &mut EndNodes, id: RequestId) {
        let Node { end, next, prev } = nodes.slots[id.index()];
        if end == UNFILED {
            return;
        }
        match nodes.slots.get_mut(prev as usize) {
            Some(before) => before.next = next,
            None => self.buckets[bucket(end)] = next,
        }
        if let Some(behind) = nodes.slots.get_mut(next as usize) {
            behind.prev = prev;
        }
        nodes.slots[id.index()].end = UNFILED;
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// Files `id`, which has grown, under its new `end` (N1). Nothing happens if it is not filed.
    pub fn refile(&mut self, nodes: &mut EndNodes, id: RequestId, end: u64) {
        if nodes.is_filed(id) {
            self.remove(nodes, id);
            self.insert(nodes, id, end);
        }
    }

    /// The request filed last, if it is still here (N3).
    #[must_use]
    pub const fn last(&self) -> Option<RequestId> {
        self.last
    }

    /// The requests filed under `end`, the one filed last first (N2).
    pub fn ending_at<'a>(
        &self,
        nodes: &'a EndNodes,
        end: u64,
    ) -> impl Iterator<Item = RequestId> + 'a {
        let mut at = self.buckets[bucket(end)];
        core::iter::from_fn(move || {
            loop {
                let node = nodes.slots.get(at as usize)?;
                let id = RequestId(at);
                at = node.next;
                if node.end == end {
                    return Some(id);
                }
            }
        })
    }

    /// A request that `other` may join: the last one in any way, the rest at their backs (N3).
    /// Joins at the front only if `fronts`.
    #[must_use]
    pub fn find_merge(
        &self,
        nodes: &EndNodes,
        requests: &Requests,
        limits: &Limits,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        self.last
            .into_iter()
            .chain(self.ending_at(nodes, other.sector))
            .find_map(|id| candidate(requests, limits, id, other, fronts))
    }
}

/// Multiplicative hashing: the high bits depend on every bit of the end sector.
const fn bucket(end: u64) -> usize {
    (end.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKET_BITS)) as usize
}

/// What [`fit`] says to `other` joining `id`, at the front only if `fronts`.
pub(crate) fn candidate(
    requests: &Requests,
    limits: &Limits,
    id: RequestId,
    other: &Extent,
    fronts: bool,
) -> Option<Candidate> {
    let request = requests[id].extent();
    let in_front = other.end_sector() == request.sector;
    match fit(&request, other, limits) {
        Fit::Join(Merge::Front) | Fit::TooBig if in_front && !fronts => None,
        Fit::Join(merge) => Some(Candidate::Join(id, merge)),
        Fit::TooBig => Some(Candidate::TooBig(id)),
        Fit::No => None,
    }
}

#[cfg(test)]
mod tests;
