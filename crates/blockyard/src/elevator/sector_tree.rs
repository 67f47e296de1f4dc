//! Requests sorted by start sector.
//!
//! A [`SectorTree`] is a treap: sorted by sector from left to right, and by a random priority from
//! the root down, which keeps it balanced whatever the order of insertion. Its nodes are in
//! [`SectorNodes`], one per request of the queue, which any number of trees share: a request is in
//! one tree at a time, and no tree costs more than its root.
//!
//! # Rules
//!
//! - **S1.** In-order, sectors do not descend; requests of equal sectors stand in the order of
//!   insertion.
//! - **S2.** No child has a higher priority than its parent. Priorities come from a fixed sequence,
//!   one per insertion, so that equal runs build equal trees.
//! - **S3.** Each child's parent link names the node that has it as a child.

use crate::unit::RequestId;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// One node for each request of a queue.
#[derive(Debug)]
pub struct SectorNodes {
    slots: Vec<Node>,
    /// The priority drawn last.
    drawn: u32,
}

#[derive(Clone, Debug)]
struct Node {
    sector: u64,
    child: [u32; 2],
    parent: u32,
    priority: u32,
}

impl SectorNodes {
    /// Memory for requests 0 to `capacity`, none in a tree.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let unused = Node { sector: 0, child: [NONE; 2], parent: NONE, priority: 0 };
        Self { slots: alloc::vec![unused; capacity], drawn: 0x2545_f491 }
    }

    /// The next priority (S2): xorshift with period 2^32 - 1.
    const fn draw(&mut self) -> u32 {
        self.drawn ^= self.drawn << 13;
        self.drawn ^= self.drawn >> 17;
        self.drawn ^= self.drawn << 5;
        self.drawn
    }

    fn at(&self, at: u32) -> &Node {
        &self.slots[at as usize]
    }

    fn at_mut(&mut self, at: u32) -> &mut Node {
        &mut self.slots[at as usize]
    }

    /// On which side of `parent` its child `at` hangs.
    fn side_of(&self, parent: u32, at: u32) -> usize {
        usize::from(self.at(parent).child[RIGHT] == at)
    }

    /// The last node reached from `at` by going to `side` only.
    fn descend(&self, mut at: u32, side: usize) -> Option<RequestId> {
        let mut found = None;
        while let Some(node) = self.slots.get(at as usize) {
            found = Some(RequestId(at));
            at = node.child[side];
        }
        found
    }

    /// The in-order neighbour of `id` on `side`.
    fn step(&self, id: RequestId, side: usize) -> Option<RequestId> {
        let below = self.descend(self.at(id.0).child[side], 1 - side);
        if below.is_some() {
            return below;
        }
        let mut at = id.0;
        loop {
            let parent = self.at(at).parent;
            if parent == NONE {
                return None;
            }
            if self.side_of(parent, at) != side {
                return Some(RequestId(parent));
            }
            at = parent;
        }
    }
}

/// A set of requests sorted by start sector. Every call is given the nodes that the tree was first
/// used with; each costs O(log n) expected, [`Self::remove`] O(1) expected.
#[derive(Clone, Debug)]
pub struct SectorTree {
    root: u32,
}

impl Default for SectorTree {
    fn default() -> Self {
        Self::new()
    }
}

impl SectorTree {
    /// An empty tree.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: NONE }
    }

    /// Adds `id`, which is in no tree, behind all requests that start at or before `sector` (S1).
    pub fn insert(&mut self, nodes: &mut SectorNodes, id: RequestId, sector: u64) {
        let (mut parent, mut side, mut at) = (NONE, LEFT, self.root);
        while let Some(node) = nodes.slots.get(at as usize) {
            parent = at;
            side = usize::from(node.sector <= sector);
            at = node.child[side];
        }
        let priority = nodes.draw();
        *nodes.at_mut(id.0) = Node { sector, child: [NONE; 2], parent, priority };
        match nodes.slots.get_mut(parent as usize) {
            Some(node) => node.child[side] = id.0,
            None => self.root = id.0,
        }
        while nodes.slots.get(parent as usize).is_some_and(|above| above.priority < priority) {
            self.rotate_up(nodes, id.0); // S2
            parent = nodes.at(id.0).parent;
        }
    }

    /// Takes `id`, which is in this tree, out.
    pub fn remove(&mut self, nodes: &mut SectorNodes, id: RequestId) {
        loop {
            let Node { child: [left, right], parent, .. } = *nodes.at(id.0);
            if left == NONE || right == NONE {
                let only = if left == NONE { right } else { left };
                return self.replace(nodes, parent, id.0, only);
            }
            let left_is_higher = nodes.at(left).priority > nodes.at(right).priority;
            self.rotate_up(nodes, if left_is_higher { left } else { right });
        }
    }

    /// The request with the lowest sector.
    #[must_use]
    pub fn first(&self, nodes: &SectorNodes) -> Option<RequestId> {
        nodes.descend(self.root, LEFT)
    }

    /// The first request that starts at or after `sector`.
    #[must_use]
    pub fn next_at_or_after(&self, nodes: &SectorNodes, sector: u64) -> Option<RequestId> {
        let (mut found, mut at) = (None, self.root);
        while let Some(node) = nodes.slots.get(at as usize) {
            let before = node.sector < sector;
            found = if before { found } else { Some(RequestId(at)) };
            at = node.child[usize::from(before)];
        }
        found
    }

    /// The requests that start exactly at `sector`, in the order of insertion (S1).
    pub fn starting_at<'a>(
        &self,
        nodes: &'a SectorNodes,
        sector: u64,
    ) -> impl Iterator<Item = RequestId> + 'a {
        core::iter::successors(self.next_at_or_after(nodes, sector), |&id| nodes.step(id, RIGHT))
            .take_while(move |id| nodes.at(id.0).sector == sector)
    }

    /// The request before `id`, which is in this tree.
    #[must_use]
    pub fn before(&self, nodes: &SectorNodes, id: RequestId) -> Option<RequestId> {
        nodes.step(id, LEFT)
    }

    /// The request behind `id`, which is in this tree.
    #[must_use]
    pub fn behind(&self, nodes: &SectorNodes, id: RequestId) -> Option<RequestId> {
        nodes.step(id, RIGHT)
    }

    /// Checks S1 to S3 in every node and returns how many there are. For tests.
    ///
    /// # Panics
    ///
    /// If a rule does not hold.
    pub fn self_check(&self, nodes: &SectorNodes) -> usize {
        let (mut count, mut sector) = (0, 0);
        let mut at = self.first(nodes);
        while let Some(id) = at {
            let node = nodes.at(id.0);
            assert!(node.sector >= sector, "S1: {} is before {sector}", node.sector);
            assert!(node.parent != NONE || self.root == id.0, "S3: {} hangs on nothing", id.0);
            for child in node.child.iter().filter_map(|&at| nodes.slots.get(at as usize)) {
                assert!(child.priority <= node.priority, "S2 below {}", id.0);
                assert!(child.parent == id.0, "S3 below {}", id.0);
            }
            (count, sector, at) = (count + 1, node.sector, nodes.step(id, RIGHT));
        }
        count
    }

    /// Lets the child `at` and its parent change places, order kept.
    fn rotate_up(&mut self, nodes: &mut SectorNodes, at: u32) {
        let parent = nodes.at(at).parent;
        let above = nodes.at(parent).parent;
        let side = nodes.side_of(parent, at);
        let inner = core::mem::replace(&mut nodes.at_mut(at).child[1 - side], parent);
        self.replace(nodes, above, parent, at);
        let lowered = nodes.at_mut(parent);
        lowered.child[side] = inner;
        lowered.parent = at;
        if let Some(moved) = nodes.slots.get_mut(inner as usize) {
            moved.parent = parent;
        }
    }

    /// Hangs `new` where `old` hangs below `parent`, or makes it the root.
    fn replace(&mut self, nodes: &mut SectorNodes, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            self.root = new;
        } else {
            let side = nodes.side_of(parent, old);
            nodes.at_mut(parent).child[side] = new;
        }
        if let Some(node) = nodes.slots.get_mut(new as usize) {
            node.parent = parent; // S3
        }
    }
}

#[cfg(test)]
mod tests;
