//! Compares the index with a list of filed requests, newest last ([filed-in-its-chain]).

use super::*;
use crate::bio::Bio;
use crate::request::Bios;
use crate::time::Instant;
use crate::unit::{CpuId, HctxId};
use alloc::vec::Vec;
use proptest::prelude::*;

const REQUESTS: u32 = 40;

#[derive(Clone, Debug)]
enum Step {
    /// File the request in this index, or remove it from the one it is in.
    Toggle(u32, usize, u64),
    Refile(u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Few enough ends that chains hold both equal and different ones.
    let end = (0..150_u64).prop_map(|block| block * 8);
    prop_oneof![
        (0..REQUESTS, 0..2_usize, end.clone()).prop_map(|(id, at, end)| Step::Toggle(id, at, end)),
        (0..REQUESTS, end).prop_map(|(id, end)| Step::Refile(id, end)),
    ]
}

proptest! {
    #[test]
    fn the_index_agrees_with_a_list_searched_backwards(steps in prop::collection::vec(step(), 1..300)) {
        let mut nodes = HashNodes::new(REQUESTS as usize);
        let mut indexes = [EndIndex::new(8), EndIndex::new(8)];
        let mut lists: [Vec<(RequestId, u64)>; 2] = Default::default();
        let mut last = [None; 2];
        for step in steps {
            let (Step::Toggle(id, ..) | Step::Refile(id, _)) = step;
            let id = RequestId(id);
            let filed = lists.iter().position(|list| list.iter().any(|(held, _)| *held == id));
            let from = filed.unwrap_or(0);
            match (step, filed) {
                (Step::Toggle(_, _, _), Some(_)) => {
                    indexes[from].remove(&mut nodes, id);
                    indexes[from].remove(&mut nodes, id); // the second time does nothing
                    lists[from].retain(|(held, _)| *held != id);
                    last[from] = last[from].filter(|last| *last != id);
                }
                (Step::Toggle(_, to, end), None) => {
                    indexes[to].insert(&mut nodes, id, end);
                    lists[to].push((id, end));
                    last[to] = Some(id);
                }
                (Step::Refile(_, end), Some(_)) => {
                    indexes[from].refile(&mut nodes, id, end);
                    lists[from].retain(|(held, _)| *held != id);
                    lists[from].push((id, end));
                    last[from] = Some(id);
                }
                (Step::Refile(_, end), None) => indexes[0].refile(&mut nodes, id, end),
            }
            for at in 0..2 {
                prop_assert_eq!(indexes[at].last(), last[at]);
                for end in (0..150).map(|block| block * 8) {
                    let expected: Vec<_> = lists[at]
                        .iter()
                        .rev()
                        .filter(|(_, filed)| *filed == end)
                        .map(|(id, _)| *id)
                        .collect();
                    // Bounded, in case the links go in a circle.
                    let found: Vec<_> =
                        indexes[at].ending_at(&nodes, end).take(REQUESTS as usize).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}

fn found(
    requests: &Requests,
    limits: &Limits,
    id: u32,
    sector: u64,
    fronts: bool,
) -> Option<Candidate> {
    let other = Extent::from(&Bio::read(sector, 8, 0));
    candidate(requests, limits, RequestId(id), &other, fronts)
}

/// A request that touches in front is passed over where fronts do not join, full or not.
#[test]
fn a_front_is_passed_over_where_fronts_do_not_join() {
    let limits = Limits { max_sectors: 16, ..Limits::new(1 << 20) };
    let mut bios = Bios::new(2);
    let mut requests = Requests::new(2);
    for (id, sector, sectors) in [(0, 100, 8), (1, 200, 16)] {
        let bio = bios.take(Bio::read(sector, sectors, 0)).unwrap();
        requests.start(RequestId(id), bio, &bios[bio], CpuId(0), HctxId(0), Instant::ZERO);
    }
    let small = RequestId(0);
    let full = RequestId(1);
    assert_eq!(found(&requests, &limits, 0, 92, true), Some(Candidate::Join(small, Merge::Front)));
    assert_eq!(found(&requests, &limits, 1, 192, true), Some(Candidate::TooBig(full)));
    assert_eq!(
        (found(&requests, &limits, 0, 92, false), found(&requests, &limits, 1, 192, false)),
        (None, None)
    );
    assert_eq!(found(&requests, &limits, 0, 108, false), Some(Candidate::Join(small, Merge::Back)));
    assert_eq!(found(&requests, &limits, 1, 216, false), Some(Candidate::TooBig(full)));
}
