//! Compares software queues with plain lists that are searched whole.

use super::*;
use crate::bio::{Bio, Flags, Op};
use crate::merge::{Fit, Merge, fit};
use crate::request::Bios;
use crate::time::Instant;
use crate::unit::{CpuId, HctxId};
use alloc::vec::Vec;
use proptest::prelude::*;

const REQUESTS: u32 = 40;

#[derive(Clone, Debug)]
enum Step {
    /// To the first or the second software queue.
    Submit(usize, Bio),
    Pop(usize),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Discard)];
    let flags = prop_oneof![9 => Just(Flags::NONE), 1 => Just(Flags::NO_MERGE)];
    let bio = (op, 0..60_u64, 1..4_u32, flags).prop_map(|(op, sector, sectors, flags)| {
        Bio::new(op, sector, sectors, 0).with_flags(flags)
    });
    prop_oneof![
        12 => (0..2_usize, bio).prop_map(|(at, bio)| Step::Submit(at, bio)),
        2 => (0..2_usize).prop_map(Step::Pop),
        1 => (0..2_usize).prop_map(Step::Drain),
    ]
}

fn policy() -> impl Strategy<Value = SwqMerge> {
    prop_oneof![Just(SwqMerge::Off), Just(SwqMerge::Last8), Just(SwqMerge::Hash)]
}

/// The requests of a software queue, oldest first, and those inserted or merged, latest last.
#[derive(Default)]
struct Slow {
    queued: Vec<RequestId>,
    touched: Vec<RequestId>,
    /// Whether the last one of `touched` is the one touched last of all.
    last_is_here: bool,
}

impl Slow {
    fn touch(&mut self, id: RequestId) {
        self.touched.retain(|other| *other != id);
        self.touched.push(id);
        self.last_is_here = true;
    }

    fn forget(&mut self, id: RequestId) {
        self.last_is_here &= self.touched.last() != Some(&id);
        self.touched.retain(|other| *other != id);
    }

    fn find_merge(
        &self,
        merge: SwqMerge,
        requests: &Requests,
        limits: &Limits,
        other: &Extent,
    ) -> Option<Candidate> {
        let ask = |id: &RequestId| match fit(&requests[*id].extent(), other, limits) {
            Fit::Join(merge) => Some(Candidate::Join(*id, merge)),
            Fit::TooBig => Some(Candidate::TooBig(*id)),
            Fit::No => None,
        };
        let ends_there = |id: &&RequestId| requests[**id].end_sector() == other.sector;
        match merge {
            SwqMerge::Off => None,
            SwqMerge::Last8 => self.queued.iter().rev().take(8).find_map(ask),
            SwqMerge::Hash => {
                let last = self.touched.last().filter(|_| self.last_is_here);
                last.and_then(ask)
                    .or_else(|| self.touched.iter().rev().filter(ends_there).find_map(ask))
            }
        }
    }
}

proptest! {
    #[test]
    fn software_queues_agree_with_plain_lists(
        merge in policy(),
        ranges in 1..3_u16,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let limits = Limits {
            max_sectors: 8,
            max_discard_sectors: 8,
            max_discard_segments: ranges,
            ..Limits::new(1024)
        };
        let mut requests = Requests::new(REQUESTS as usize);
        let mut bios = Bios::new(512);
        let mut nodes = HashNodes::new(if merge == SwqMerge::Hash { REQUESTS as usize } else { 0 });
        let mut fast = [SoftwareQueue::new(merge), SoftwareQueue::new(merge)];
        let mut slow = [Slow::default(), Slow::default()];
        let mut idle: Vec<_> = (0..REQUESTS).map(RequestId).collect();
        for step in steps {
            match step {
                Step::Submit(at, bio) => {
                    let (fast, slow) = (&mut fast[at], &mut slow[at]);
                    let other = Extent::from(&bio);
                    let found = fast.find_merge(&nodes, &requests, &limits, &other);
                    prop_assert_eq!(found, slow.find_merge(merge, &requests, &limits, &other));
                    let taken = bios.take(bio).expect("enough bios");
                    if let Some(Candidate::Join(id, merge)) = found {
                        requests.add_bio(id, &mut bios, taken, merge);
                        fast.merged(&mut nodes, &requests, id);
                        slow.touch(id);
                        continue;
                    }
                    if let Some(Candidate::TooBig(id)) = found {
                        fast.unmergeable(&mut nodes, id);
                        slow.forget(id);
                        requests[id].flags |= Flags::NO_MERGE;
                    }
                    let Some(id) = idle.pop() else { continue };
                    requests.start(id, taken, &bios[taken], CpuId(0), HctxId(0), Instant::ZERO);
                    fast.insert(&mut nodes, &mut requests, id);
                    slow.queued.push(id);
                    if requests[id].extent().is_mergeable() {
                        slow.touch(id);
                    }
                }
                Step::Pop(at) => {
                    let id = fast[at].pop(&mut nodes, &mut requests);
                    prop_assert_eq!(id, slow[at].queued.first().copied());
                    if let Some(id) = id {
                        slow[at].queued.remove(0);
                        slow[at].forget(id);
                        requests.make_idle(id);
                        idle.push(id);
                    }
                }
                Step::Drain(at) => {
                    let mut list = List::new();
                    fast[at].drain_into(&mut nodes, &mut requests, &mut list);
                    prop_assert!(fast[at].is_empty());
                    for expected in core::mem::take(&mut slow[at]).queued {
                        let id = list.pop_front(&mut requests);
                        prop_assert_eq!(id, Some(expected));
                        requests.make_idle(expected);
                        idle.push(expected);
                    }
                    prop_assert!(list.is_empty());
                }
            }
            for (fast, slow) in fast.iter().zip(&slow) {
                prop_assert_eq!(fast.len() as usize, slow.queued.len());
            }
        }
    }
}

/// A small case in which the hash differs from a search of all requests.
#[test]
fn the_hash_finds_front_merges_only_at_the_request_touched_last() {
    let limits = Limits::new(1024);
    let mut requests = Requests::new(2);
    let mut bios = Bios::new(2);
    let mut nodes = HashNodes::new(2);
    let mut queue = SoftwareQueue::new(SwqMerge::Hash);
    for (id, sector) in [(RequestId(0), 100), (RequestId(1), 200)] {
        let bio = bios.take(Bio::read(sector, 8, 0)).expect("two bios");
        requests.start(id, bio, &bios[bio], CpuId(0), HctxId(0), Instant::ZERO);
        queue.insert(&mut nodes, &mut requests, id);
    }
    let found = [192, 92, 108].map(|sector| {
        let other = Extent::from(&Bio::read(sector, 8, 0));
        queue.find_merge(&nodes, &requests, &limits, &other)
    });
    let front = Candidate::Join(RequestId(1), Merge::Front);
    let back = Candidate::Join(RequestId(0), Merge::Back);
    assert_eq!(found, [Some(front), None, Some(back)]);
}
