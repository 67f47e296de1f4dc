//! An index of merge candidates: the request touched last, then a hash by end sector.
//!
//! An [`EndIndex`] belongs to one elevator or one software queue. The indexes of all software
//! queues share the nodes of their hashes, because a request is staged in one place at a time. A
//! request may be filed under an older end sector than its own; whoever lets it grow files it
//! again. Of requests with the same end the newest comes first.
//!
//! The index remembers the request filed last until it is removed, or the first one filed after the
//! last merge, if an elevator files the others behind it. Only this request is tried for front
//! merges, and for discards that merge as ranges wherever they lie.

use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Fit, Merge, fit};
use crate::request::Requests;
use crate::sector_hash::{HashNodes, SectorHash};
use crate::unit::RequestId;

/// The mergeable requests of one elevator or software queue. Every call takes the nodes that the
/// index was first used with, and costs a few loads.
#[derive(Clone, Debug)]
pub struct EndIndex {
    last: Option<RequestId>,
    ends: SectorHash,
}

impl EndIndex {
    /// Returns an empty index sized for `capacity` requests; it may hold more.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { last: None, ends: SectorHash::new(capacity) }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(capacity: usize) -> usize {
        SectorHash::heap(capacity)
    }

    /// Files `id`, which is not filed, under `end` and remembers it as the last one.
    pub fn insert(&mut self, nodes: &mut HashNodes, id: RequestId, end: u64) {
        self.ends.insert(nodes, id, end);
        self.last = Some(id);
    }

    /// Files `id`, which is not filed, under `end`. It becomes the last one only if there is none:
    /// the one that others tried first stays until it leaves.
    pub fn insert_behind_last(&mut self, nodes: &mut HashNodes, id: RequestId, end: u64) {
        let last = self.last;
        self.insert(nodes, id, end);
        self.last = last.or(Some(id));
    }

    /// Removes `id` if it is filed here.
    pub fn remove(&mut self, nodes: &mut HashNodes, id: RequestId) {
        if self.ends.remove(nodes, id) && self.last == Some(id) {
            self.last = None;
        }
    }

    /// Files `id`, which has grown, under its new `end`. Does nothing if `id` is not filed.
    pub fn refile(&mut self, nodes: &mut HashNodes, id: RequestId, end: u64) {
        if nodes.is_filed(id) {
            self.remove(nodes, id);
            self.insert(nodes, id, end);
        }
    }

    /// Returns the request filed last if it is still here.
    #[must_use]
    pub const fn last(&self) -> Option<RequestId> {
        self.last
    }

    /// Returns the requests filed under `end`, newest first.
    pub fn ending_at<'a>(
        &self,
        nodes: &'a HashNodes,
        end: u64,
    ) -> impl Iterator<Item = RequestId> + 'a {
        self.ends.at(nodes, end)
    }

    /// A request that `other` may join: the last one in any way, the rest at their backs.
    /// Joins at the front only if `fronts`.
    #[must_use]
    pub fn find_merge(
        &self,
        nodes: &HashNodes,
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

/// What [`fit`] says to `other` joining `id`, at the front only if `fronts`: the answer of an
/// elevator that has found `id` in an order of its own.
#[inline]
#[must_use]
pub fn candidate(
    requests: &Requests,
    limits: &Limits,
    id: RequestId,
    other: &Extent,
    fronts: bool,
) -> Option<Candidate> {
    let request = requests[id].extent();
    // A full request that touches at its front counts as no candidate either, or the caller would
    // mark it full.
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
