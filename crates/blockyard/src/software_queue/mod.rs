//! Software queues: where requests wait, per processor and kind of hardware queue, without an elevator.
//!
//! A [`SoftwareQueue`] (*ctx*) gives requests out in the order they came. [`SwqMerge`] chooses how it
//! finds a merge candidate among its own requests: [`SwqMerge::Last8`] looks at the eight requests
//! inserted last, newest first. [`SwqMerge::Hash`] tries every kind of merge with the request inserted
//! or merged last, and then back merges by hash; it finds a front merge, or a further range of a
//! discard, only at that last request.
//!
//! All software queues of a request queue share the nodes of their indexes: see
//! [`end_index`](crate::end_index). Only [`SwqMerge::Hash`] uses them; the other kinds work with nodes
//! for no request at all.
//!
//! Requests leave in the order of insertion. A merge changes no place.

use crate::end_index::{EndIndex, candidate};
use crate::limits::Limits;
use crate::merge::{Candidate, Extent};
use crate::policy::SwqMerge;
use crate::request::{List, Requests};
use crate::sector_hash::HashNodes;
use crate::unit::RequestId;

/// How far [`SwqMerge::Last8`] looks back.
const LOOK_BACK: usize = 8;
/// The size of the hash: one processor seldom stages more.
const HASHED: usize = 64;

/// The requests staged by one processor for one kind of hardware queue.
#[derive(Clone, Debug)]
pub struct SoftwareQueue {
    merge: SwqMerge,
    queued: List,
    ends: EndIndex,
}

impl SoftwareQueue {
    /// Returns an empty software queue that merges as `merge` says.
    #[must_use]
    pub fn new(merge: SwqMerge) -> Self {
        Self { merge, queued: List::new(), ends: EndIndex::new(hashed(merge)) }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(merge: SwqMerge) -> usize {
        EndIndex::heap(hashed(merge))
    }

    /// The number of requests in the queue.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.queued.len()
    }

    /// Whether the queue is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Returns a request of this queue that `other` may join.
    #[inline(always)] // of two callers, each on the path of every bio
    #[must_use]
    pub fn find_merge(
        &self,
        nodes: &HashNodes,
        requests: &Requests,
        limits: &Limits,
        other: &Extent,
    ) -> Option<Candidate> {
        match self.merge {
            SwqMerge::Off => None,
            SwqMerge::Last8 => {
                // A loop, because `find_map` keeps the position of the iterator in memory instead of registers.
                for id in self.queued.iter_back(requests).take(LOOK_BACK) {
                    let found = candidate(requests, limits, id, other, true);
                    if found.is_some() {
                        return found;
                    }
                }
                None
            }
            SwqMerge::Hash => self.ends.find_merge(nodes, requests, limits, other, true),
        }
    }

    /// Notes that a bio has joined `id`.
    pub fn merged(&mut self, nodes: &mut HashNodes, requests: &Requests, id: RequestId) {
        if self.merge == SwqMerge::Hash {
            self.ends.refile(nodes, id, requests[id].end_sector());
        }
    }

    /// Removes `id`, which is full, from the index. Call this before or after the request is
    /// marked.
    pub fn unmergeable(&mut self, nodes: &mut HashNodes, id: RequestId) {
        if self.merge == SwqMerge::Hash {
            self.ends.remove(nodes, id);
        }
    }

    /// Inserts `id`, which is on no list.
    pub fn insert(&mut self, nodes: &mut HashNodes, requests: &mut Requests, id: RequestId) {
        self.queued.push_back(requests, id);
        let rq = requests[id].extent();
        if self.merge == SwqMerge::Hash && rq.is_mergeable() {
            self.ends.insert(nodes, id, rq.end_sector());
        }
    }

    /// Takes the request that has waited longest.
    pub fn pop(&mut self, nodes: &mut HashNodes, requests: &mut Requests) -> Option<RequestId> {
        let id = self.queued.pop_front(requests)?;
        self.unmergeable(nodes, id);
        Some(id)
    }

    /// Moves all requests to the end of `list`. Takes constant time, and
    /// with [`SwqMerge::Hash`] a few stores for each request.
    pub fn drain_into(&mut self, nodes: &mut HashNodes, requests: &mut Requests, list: &mut List) {
        debug_assert!(
            self.queued.len() as usize <= requests.capacity(),
            "[on-one-list]: more requests than there are"
        );
        if self.merge == SwqMerge::Hash {
            self.queued.iter_back(requests).for_each(|id| self.ends.remove(nodes, id));
        }
        list.append(requests, &mut self.queued);
    }
}

/// The number of requests for which the hash is made.
fn hashed(merge: SwqMerge) -> usize {
    if merge == SwqMerge::Hash { HASHED } else { 0 }
}

#[cfg(test)]
mod tests;
