//! The service tree of B-WF2Q+: who is eligible, and who of them finishes first.
//!
//! Each entity has a start and a finish in virtual time. An entity is eligible when its start has
//! come. A [`Tree`] is a treap by finish; each node knows the earliest start below it, so that the
//! eligible entity with the earliest finish is found on one way down. Nodes are in [`Nodes`], one
//! for each entity, and an entity is in one tree at a time. Node 0 stands for "none": it has the
//! lowest priority and the latest start.
//!
//! Virtual time is service divided by weight: sectors × 2^22 / weight. In 64 bits a queue of weight
//! 100 can be served 200 petabytes.
//!
//! # Rules
//!
//! - **[earliest-start-below]** Each node has the earliest start of its subtree.
//! - **[finish-order]** In-order, finishes do not descend; entities of equal finish stand in the
//!   order of insertion.

use crate::elevator::priorities::Priorities;
use alloc::vec::Vec;

const NIL: usize = 0;
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Virtual time.
pub(super) type Stamp = u64;

/// One node for each entity.
#[derive(Debug)]
pub(super) struct Nodes {
    slots: Vec<Node>,
    priorities: Priorities,
    /// The number of insertions.
    turns: u64,
}

#[derive(Clone, Debug)]
struct Node {
    start: Stamp,
    /// The finish, then the number of the insertion.
    key: (Stamp, u64),
    /// The earliest start of the subtree.
    earliest: Stamp,
    child: [usize; 2],
    priority: u32,
}

impl Nodes {
    /// Returns nodes for entities 0 to `capacity`.
    pub(super) fn new(capacity: usize) -> Self {
        let none =
            Node { start: 0, key: (0, 0), earliest: Stamp::MAX, child: [NIL; 2], priority: 0 };
        Self { slots: alloc::vec![none; capacity + 1], priorities: Priorities::new(), turns: 0 }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) const fn heap(capacity: usize) -> usize {
        (capacity + 1) * size_of::<Node>()
    }

    /// Makes `child` the child of `at` on `side`.
    fn attach(&mut self, at: usize, side: usize, child: usize) {
        self.slots[at].child[side] = child;
    }

    /// Restores [earliest-start-below] at `at`, whose children have it.
    fn refresh(&mut self, at: usize) {
        debug_assert!(at != NIL, "none has no start");
        let Node { start, child, .. } = self.slots[at];
        let below = child.map(|child| self.slots[child].earliest);
        self.slots[at].earliest = start.min(below[LEFT]).min(below[RIGHT]);
    }

    /// Adds `at` to the subtree `top`. Returns the new top.
    fn add(&mut self, top: usize, at: usize) -> usize {
        if self.slots[top].priority < self.slots[at].priority {
            let halves = self.split(top, self.slots[at].key);
            self.slots[at].child = [halves.0, halves.1];
            self.refresh(at);
            return at;
        }
        let side = usize::from(self.slots[top].key < self.slots[at].key);
        let child = self.add(self.slots[top].child[side], at);
        self.attach(top, side, child);
        self.refresh(top);
        top
    }

    /// Splits the subtree `top` into the nodes before `key` and those behind it.
    fn split(&mut self, top: usize, key: (Stamp, u64)) -> (usize, usize) {
        if top == NIL {
            return (NIL, NIL);
        }
        let is_before = self.slots[top].key < key;
        let inner = if is_before { RIGHT } else { LEFT };
        let (before, behind) = self.split(self.slots[top].child[inner], key);
        self.attach(top, inner, if is_before { before } else { behind });
        self.refresh(top);
        if is_before { (top, behind) } else { (before, top) }
    }

    /// Takes `at` out of the subtree `top`. Returns the new top.
    fn cut(&mut self, top: usize, at: usize) -> usize {
        if top == at {
            let [left, right] = self.slots[at].child;
            return self.join(left, right);
        }
        debug_assert!(top != NIL, "entity {at} is in another tree");
        let side = usize::from(self.slots[top].key < self.slots[at].key);
        let child = self.cut(self.slots[top].child[side], at);
        self.attach(top, side, child);
        self.refresh(top);
        top
    }

    /// Joins two subtrees, of which all nodes of `left` come first. Returns the top.
    fn join(&mut self, left: usize, right: usize) -> usize {
        if left == NIL || right == NIL {
            return left.max(right);
        }
        let (top, side, halves) = if self.slots[left].priority >= self.slots[right].priority {
            (left, RIGHT, (self.slots[left].child[RIGHT], right))
        } else {
            (right, LEFT, (left, self.slots[right].child[LEFT]))
        };
        let child = self.join(halves.0, halves.1);
        self.attach(top, side, child);
        self.refresh(top);
        top
    }

    /// Returns the outermost node of `top` on `side`.
    fn outermost(&self, mut top: usize, side: usize) -> Option<usize> {
        debug_assert_eq!(self.slots[NIL].earliest, Stamp::MAX, "none is never eligible");
        let mut last = NIL;
        while top != NIL {
            last = top;
            top = self.slots[top].child[side];
        }
        last.checked_sub(1)
    }
}

/// A set of entities by finish.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tree {
    root: usize,
}

impl Tree {
    /// Whether there is no entity.
    pub(super) const fn is_empty(self) -> bool {
        self.root == NIL
    }

    /// Inserts `entity`, which is in no tree.
    pub(super) fn insert(&mut self, nodes: &mut Nodes, entity: usize, start: Stamp, finish: Stamp) {
        let at = entity + 1;
        nodes.turns += 1;
        let priority = nodes.priorities.draw();
        let key = (finish, nodes.turns);
        nodes.slots[at] = Node { start, key, earliest: start, child: [NIL; 2], priority };
        self.root = nodes.add(self.root, at);
    }

    /// Removes `entity`, which is in this tree.
    pub(super) fn remove(&mut self, nodes: &mut Nodes, entity: usize) {
        self.root = nodes.cut(self.root, entity + 1);
    }

    /// Returns the entity that finishes first of all.
    pub(super) fn first(self, nodes: &Nodes) -> Option<usize> {
        nodes.outermost(self.root, LEFT)
    }

    /// Returns the entity that finishes last of all.
    pub(super) fn last(self, nodes: &Nodes) -> Option<usize> {
        nodes.outermost(self.root, RIGHT)
    }

    /// Returns the earliest start, or the latest stamp if there is no entity.
    pub(super) fn earliest_start(self, nodes: &Nodes) -> Stamp {
        nodes.slots[self.root].earliest
    }

    /// Returns the entity that finishes first of those whose start is `vtime` or earlier.
    pub(super) fn first_eligible(self, nodes: &Nodes, vtime: Stamp) -> Option<usize> {
        let mut at = self.root;
        while nodes.slots[at].earliest <= vtime {
            let Node { start, child, .. } = nodes.slots[at];
            if nodes.slots[child[LEFT]].earliest <= vtime {
                at = child[LEFT];
            } else if start <= vtime {
                return at.checked_sub(1);
            } else {
                at = child[RIGHT];
            }
        }
        None
    }

    /// Checks [earliest-start-below] and [finish-order]. Returns the number of entities.
    #[cfg(test)]
    pub(super) fn self_check(self, nodes: &Nodes) -> usize {
        fn check(nodes: &Nodes, top: usize) -> (usize, Stamp) {
            if top == NIL {
                return (0, Stamp::MAX);
            }
            let Node { start, key, earliest, child, .. } = nodes.slots[top];
            let below = child.map(|child| check(nodes, child));
            for (side, child) in child.into_iter().enumerate().filter(|(_, child)| *child != NIL) {
                let in_order = (nodes.slots[child].key < key) == (side == LEFT);
                assert!(in_order, "[finish-order] at {top}");
            }
            let least = start.min(below[0].1).min(below[1].1);
            assert_eq!(earliest, least, "[earliest-start-below] at {top}");
            (below[0].0 + below[1].0 + 1, least)
        }
        check(nodes, self.root).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    /// The search on one way down finds what a look at every entity finds ([earliest-start-below],
    /// [finish-order]).
    #[test]
    fn the_tree_finds_the_eligible_entity_that_finishes_first() {
        let mut prng = Prng::new(1);
        for _ in 0..50 {
            let mut nodes = Nodes::new(24);
            let mut tree = Tree::default();
            let mut inside: Vec<(Stamp, u64, Stamp, usize)> = Vec::new();
            for turn in 0..400 {
                let entity = prng.pick(&(0..24).collect::<Vec<usize>>());
                if let Some(at) = inside.iter().position(|held| held.3 == entity) {
                    inside.remove(at);
                    tree.remove(&mut nodes, entity);
                } else {
                    let start = prng.below(40);
                    let finish = start + prng.below(8);
                    inside.push((finish, turn, start, entity));
                    tree.insert(&mut nodes, entity, start, finish);
                }
                let vtime = prng.below(44);
                let eligible = inside.iter().filter(|held| held.2 <= vtime).min();
                assert_eq!(tree.first_eligible(&nodes, vtime), eligible.map(|held| held.3));
                assert_eq!(tree.first(&nodes), inside.iter().min().map(|held| held.3));
                assert_eq!(tree.last(&nodes), inside.iter().max().map(|held| held.3));
                assert_eq!(tree.self_check(&nodes), inside.len());
            }
        }
    }
}
