//! Requests sorted by start sector.
//!
//! A [`SectorTree`] is a treap: sorted by sector from left to right, and by a random priority from
//! the root down, which keeps it balanced whatever the order of insertion. Its nodes are in
//! [`SectorNodes`], one for each request of the queue, which any number of trees share: a request
//! is in one tree at a time, and a tree costs no more than its root. `NIL` is a node in no tree
//! that stands for "none", with a priority below all others, so that no step must ask whether there
//! is a child; its links mean nothing.
//!
//! # Rules
//!
//! - **[tree-order]** In-order, sectors do not descend; requests of equal sectors stand in the
//!   order of insertion.
//! - **[heap-priority]** No child has a higher priority than its parent. Priorities come from a
//!   fixed sequence, one for each insertion, so that equal runs build equal trees.
//! - **[parent-links]** The parent link of each child names the node that has it as a child.

use super::priorities::Priorities;
use crate::unit::RequestId;
use alloc::vec::Vec;

const NIL: u32 = 0;
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// One node for each request of a queue.
#[derive(Debug)]
pub struct SectorNodes {
    /// [`NIL`], then request 0, request 1, and so on.
    slots: Vec<Node>,
    priorities: Priorities,
}

#[derive(Clone, Debug)]
struct Node {
    sector: u64,
    child: [u32; 2],
    parent: u32,
    priority: u32,
}

impl SectorNodes {
    /// Returns memory for `capacity` requests, numbered from 0, none in a tree.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let unused = Node { sector: 0, child: [NIL; 2], parent: NIL, priority: 0 };
        Self { slots: alloc::vec![unused; capacity + 1], priorities: Priorities::new() }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(capacity: usize) -> usize {
        (capacity + 1) * size_of::<Node>()
    }

    /// Returns the sector under which `id` was inserted last.
    #[must_use]
    pub fn sector(&self, id: RequestId) -> u64 {
        self.at(node_of(id)).sector
    }

    fn at(&self, at: u32) -> &Node {
        &self.slots[at as usize]
    }

    fn at_mut(&mut self, at: u32) -> &mut Node {
        &mut self.slots[at as usize]
    }

    /// Returns the side of `parent` that its child `at` is on.
    fn side_of(&self, parent: u32, at: u32) -> usize {
        usize::from(self.at(parent).child[RIGHT] == at)
    }

    /// Returns the outermost node of the subtree `at` on a side.
    fn outermost<const SIDE: usize>(&self, mut at: u32) -> u32 {
        let mut last = NIL;
        while at != NIL {
            last = at;
            at = self.at(at).child[SIDE];
        }
        last
    }

    /// Returns the request beside `id`, in order, on one side; `OTHER` is the other one.
    fn beside<const SIDE: usize, const OTHER: usize>(&self, id: RequestId) -> Option<RequestId> {
        let mut at = node_of(id);
        let below = self.outermost::<OTHER>(self.at(at).child[SIDE]);
        if below != NIL {
            return request_of(below);
        }
        // Nothing lies below on that side: the next one is the first ancestor that the way up
        // reaches from its other side.
        loop {
            let parent = self.at(at).parent;
            if parent == NIL || self.side_of(parent, at) != SIDE {
                return request_of(parent);
            }
            at = parent;
        }
    }
}

const fn node_of(id: RequestId) -> u32 {
    id.0 + 1
}

const fn request_of(at: u32) -> Option<RequestId> {
    if at == NIL { None } else { Some(RequestId(at - 1)) }
}

/// A set of requests sorted by start sector. Every call is given the nodes that the tree was first
/// used with, and costs O(log n) expected.
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
    /// Returns an empty tree.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: NIL }
    }

    /// Inserts `id`, which is in no tree, behind all requests that start at or before `sector`
    /// ([tree-order]).
    pub fn insert(&mut self, nodes: &mut SectorNodes, id: RequestId, sector: u64) {
        let priority = nodes.priorities.draw();
        // The new node goes where the first node of a lower priority is on the way down. Below NIL
        // nothing is: its priority is 0, and none that is drawn is.
        let mut parent = NIL;
        let mut side = LEFT;
        let mut below = self.root;
        while nodes.at(below).priority > priority {
            parent = below;
            side = usize::from(nodes.at(below).sector <= sector);
            below = nodes.at(below).child[side];
        }
        let at = node_of(id);
        self.attach(nodes, parent, side, at);
        let node = nodes.at_mut(at);
        node.sector = sector;
        node.priority = priority;
        split_below(nodes, at, below);
    }

    /// Removes `id`, which is in this tree. Its subtrees are joined in its place, the higher
    /// priority on top ([heap-priority]).
    pub fn remove(&mut self, nodes: &mut SectorNodes, id: RequestId) {
        let at = node_of(id);
        let mut parent = nodes.at(at).parent;
        let mut side = nodes.side_of(parent, at);
        let mut halves = nodes.at(at).child;
        loop {
            let higher =
                usize::from(nodes.at(halves[LEFT]).priority < nodes.at(halves[RIGHT]).priority);
            let top = halves[higher];
            self.attach(nodes, parent, side, top);
            if halves[1 - higher] == NIL {
                return; // `top` keeps its subtrees, and nothing is left to join
            }
            // The other half goes below `top`, on the side where it belongs by sector; what hangs
            // there competes with it.
            parent = top;
            side = 1 - higher;
            halves[higher] = nodes.at(top).child[side];
        }
    }

    /// Returns the request with the lowest sector.
    #[must_use]
    pub fn first(&self, nodes: &SectorNodes) -> Option<RequestId> {
        request_of(nodes.outermost::<LEFT>(self.root))
    }

    /// Returns the first request that starts at or after `sector`.
    #[must_use]
    pub fn next_at_or_after(&self, nodes: &SectorNodes, sector: u64) -> Option<RequestId> {
        let mut found = NIL;
        let mut at = self.root;
        while at != NIL {
            let node = nodes.at(at);
            let before = node.sector < sector;
            found = if before { found } else { at };
            at = node.child[usize::from(before)];
        }
        request_of(found)
    }

    /// Returns the request behind `id`, which is in this tree.
    #[must_use]
    pub fn behind(&self, nodes: &SectorNodes, id: RequestId) -> Option<RequestId> {
        nodes.beside::<RIGHT, LEFT>(id)
    }

    /// Returns the request ahead of `id`, which is in this tree.
    #[must_use]
    pub fn ahead_of(&self, nodes: &SectorNodes, id: RequestId) -> Option<RequestId> {
        nodes.beside::<LEFT, RIGHT>(id)
    }

    /// Checks [tree-order], [heap-priority] and [parent-links] in every node. Returns how many
    /// nodes there are.
    ///
    /// # Panics
    ///
    /// Panics if a rule does not hold.
    pub fn self_check(&self, nodes: &SectorNodes) -> usize {
        assert!(nodes.at(NIL).priority == 0, "the priority of NIL is below all others");
        assert!(
            self.root == NIL || nodes.at(self.root).parent == NIL,
            "[parent-links] at the root"
        );
        let mut count = 0;
        let mut sector = 0;
        let mut next = self.first(nodes);
        while let Some(id) = next {
            let node = nodes.at(node_of(id));
            assert!(node.sector >= sector, "[tree-order]: {} is behind {sector}", node.sector);
            for child in node.child.into_iter().filter(|&child| child != NIL) {
                assert!(
                    nodes.at(child).priority <= node.priority,
                    "[heap-priority] below {}",
                    id.0
                );
                assert!(nodes.at(child).parent == node_of(id), "[parent-links] below {}", id.0);
            }
            assert!(count < nodes.slots.len(), "the links go in a circle");
            count += 1;
            sector = node.sector;
            next = nodes.beside::<RIGHT, LEFT>(id);
        }
        count
    }

    /// Makes `at` the child of `parent` on `side`, or the root ([parent-links]).
    fn attach(&mut self, nodes: &mut SectorNodes, parent: u32, side: usize, at: u32) {
        if parent == NIL {
            self.root = at;
        } else {
            nodes.at_mut(parent).child[side] = at;
        }
        nodes.at_mut(at).parent = parent;
    }
}

/// Splits the tree `below` by sector between both sides of `at`: each node on the way down goes,
/// with one of its subtrees, to the edge that faces the split.
fn split_below(nodes: &mut SectorNodes, at: u32, mut below: u32) {
    let sector = nodes.at(at).sector;
    // Where the next lower node of each side hangs: at first the two sides of `at` itself.
    let mut edges = [(at, LEFT), (at, RIGHT)];
    while below != NIL {
        let half = usize::from(nodes.at(below).sector > sector);
        let (parent, side) = edges[half];
        nodes.at_mut(parent).child[side] = below;
        nodes.at_mut(below).parent = parent;
        edges[half] = (below, 1 - half);
        below = nodes.at(below).child[1 - half];
    }
    for (parent, side) in edges {
        nodes.at_mut(parent).child[side] = NIL;
    }
}

#[cfg(test)]
mod tests;
