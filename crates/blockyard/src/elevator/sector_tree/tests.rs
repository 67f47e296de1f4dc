//! Compares the tree with a `BTreeMap` keyed by sector and order of insertion ([tree-order],
//! [heap-priority], [parent-links]).

use super::*;
use alloc::collections::BTreeMap;
use proptest::prelude::*;

const REQUESTS: u32 = 40;

#[derive(Clone, Debug)]
enum Step {
    /// Insert the request, or remove it if it is in.
    Toggle(u32, u64),
    Ask(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..REQUESTS, 0..30_u64).prop_map(|(id, sector)| Step::Toggle(id, sector)),
        1 => (0..32_u64).prop_map(Step::Ask),
    ]
}

proptest! {
    #[test]
    fn the_tree_agrees_with_a_sorted_map(steps in prop::collection::vec(step(), 1..300)) {
        let mut nodes = SectorNodes::new(REQUESTS as usize);
        // Two trees over the same nodes: requests of odd number are in the second.
        let mut trees = [SectorTree::new(), SectorTree::new()];
        let mut maps: [BTreeMap<(u64, usize), RequestId>; 2] = Default::default();
        for (seq, step) in steps.into_iter().enumerate() {
            match step {
                Step::Toggle(id, sector) => {
                    let (which, id) = (id as usize % 2, RequestId(id));
                    let held = maps[which].iter().find(|(_, held)| **held == id);
                    if let Some(key) = held.map(|(key, _)| *key) {
                        maps[which].remove(&key);
                        trees[which].remove(&mut nodes, id);
                    } else {
                        maps[which].insert((sector, seq), id);
                        trees[which].insert(&mut nodes, id, sector);
                    }
                }
                Step::Ask(sector) => for (tree, map) in trees.iter().zip(&maps) {
                    let next = map.range((sector, 0)..).next().map(|(_, id)| *id);
                    prop_assert_eq!(tree.next_at_or_after(&nodes, sector), next);
                },
            }
            for (tree, map) in trees.iter().zip(&maps) {
                prop_assert_eq!(tree.self_check(&nodes), map.len());
                let order: Vec<_> = map.values().copied().collect();
                prop_assert_eq!(tree.first(&nodes), order.first().copied());
                for pair in order.windows(2) {
                    prop_assert_eq!(tree.behind(&nodes, pair[0]), Some(pair[1]));
                    prop_assert_eq!(tree.ahead_of(&nodes, pair[1]), Some(pair[0]));
                }
            }
        }
    }
}

/// The number of nodes on the longest way up to the root.
fn depth(nodes: &SectorNodes, count: u32) -> usize {
    let parent = |&at: &u32| Some(nodes.at(at).parent).filter(|&parent| parent != NIL);
    let climb = |id| core::iter::successors(Some(node_of(RequestId(id))), parent).count();
    (0..count).map(climb).max().unwrap_or(0)
}

#[test]
fn ascending_descending_and_equal_sectors_all_make_shallow_trees() {
    const COUNT: u32 = 50_000;
    let orders: [fn(u32) -> u64; 3] = [|id| u64::from(id), |id| u64::from(COUNT - id), |_| 7];
    for order in orders {
        let mut nodes = SectorNodes::new(COUNT as usize);
        let mut tree = SectorTree::new();
        for id in 0..COUNT {
            tree.insert(&mut nodes, RequestId(id), order(id));
        }
        assert_eq!(tree.self_check(&nodes), COUNT as usize);
        // Expected some 2.5 log2 n; a list would be 50000 deep.
        assert!(depth(&nodes, COUNT) < 60, "depth {}", depth(&nodes, COUNT));
        for id in 0..COUNT {
            tree.remove(&mut nodes, RequestId(id));
        }
        assert_eq!(tree.first(&nodes), None);
    }
}
