//! Every case of three bios on a few sectors, and the requests that the device gets.
//!
//! A slow check examines each request sector by sector: it is within the limits, its bios may share
//! it ([merged-sides-agree]), and every bio is sent once. Unless a rule forbids it, mq-deadline
//! sends contiguous bios as one request, in whatever order they arrive. (A plug may release them as
//! two requests: there requests join only at their backs, as in Linux.)

use blockyard::bio::{Bio, Flags, IoPrio, Op};
use blockyard::driver::{Accept, Driver, Issue};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{Dispatch, Policies, SwqMerge};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use std::collections::BTreeSet;

const CPU: CpuId = CpuId(0);
const SECTORS: u64 = 6;

/// The cookies of each request, in order of their sectors.
#[derive(Default)]
struct Device {
    requests: Vec<Vec<u64>>,
}

impl Driver for Device {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if issue.request().op != Op::Flush {
            self.requests.push(issue.pieces().map(|piece| piece.cookie).collect());
        }
        Accept::Queued
    }
}

/// Returns the requests that the device gets for `bios` in this order, as one batch or one by one.
fn requests(bios: &[Bio; 3], limits: &Limits, policies: Policies, batch: bool) -> Vec<Vec<u64>> {
    let tags = TagSetConfig {
        hctxs: 1,
        depth: 4,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 1,
        max_waiters: 1,
    };
    let mut host = Host::new(Device::default(), (), tags);
    let config = QueueConfig {
        max_bios: 4,
        max_waiters: 1,
        ..QueueConfig::new(1, 1, limits.clone(), policies)
    };
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    if batch {
        queue.plug(CPU);
    }
    for bio in bios {
        queue
            .submit(&mut host, CPU, *bio, Instant::ZERO)
            .expect("the queue should have room for three bios");
        queue.self_check(&host);
    }
    queue.unplug(&mut host, CPU, Instant::ZERO);
    while let Some(run) = queue.next_run(&mut host, Instant::ZERO) {
        let _ = queue.run(&mut host, run.hctx, Instant::ZERO);
    }
    queue.self_check(&host);
    let requests = core::mem::take(&mut host.driver.requests);
    drop(host); // with the requests that it owns, before the queue
    requests
}

/// The property by which the third bio may differ.
const APART: [fn(Bio) -> Bio; 6] = [
    |bio| bio,
    |bio| bio.with_flags(Flags::NO_MERGE),
    |bio| bio.with_flags(Flags::PREFLUSH | Flags::FUA),
    |bio| bio.with_prio(IoPrio { level: 3, ..bio.prio }),
    |bio| Bio { write_hint: 1, ..bio },
    |bio| Bio { op: if bio.op == Op::Read { Op::Write } else { Op::Read }, ..bio },
];

fn places() -> Vec<(u64, u32)> {
    let at = |sector| (1..=2_u32).map(move |sectors| (sector, sectors));
    let within = |place: &(u64, u32)| place.0 + u64::from(place.1) <= SECTORS;
    (0..SECTORS).flat_map(at).filter(within).collect()
}

/// Returns every three places that share no sector, in every order.
fn triples() -> Vec<[(u64, u32); 3]> {
    let mut triples = Vec::new();
    for a in places() {
        for b in places() {
            for c in places() {
                let all = [a, b, c].map(|(sector, len)| sector..sector + u64::from(len));
                let sectors: BTreeSet<u64> = all.iter().cloned().flatten().collect();
                if sectors.len() as u64 == all.iter().map(|range| range.end - range.start).sum() {
                    triples.push([a, b, c]);
                }
            }
        }
    }
    triples
}

/// Asserts that `request` is legal for these bios and limits.
fn check(request: &[u64], bios: &[Bio; 3], limits: &Limits) {
    let of = |cookie: &u64| {
        &bios[usize::try_from(*cookie).expect("a cookie should name one of three bios")]
    };
    let carried: Vec<&Bio> = request.iter().map(of).collect();
    let sectors: Vec<u64> = carried.iter().flat_map(|bio| bio.sector..bio.end_sector()).collect();
    let what = format!("{carried:?} under {limits:?}");
    assert!(sectors.len() <= limits.max_sectors as usize, "{what}");
    let last = sectors.last().expect("a request should have sectors");
    let [first_chunk, last_chunk] =
        [&sectors[0], last].map(|sector| sector.checked_div(u64::from(limits.chunk_sectors)));
    assert_eq!(first_chunk, last_chunk, "{what}");
    assert!(sectors.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{what}");
    if carried.len() > 1 {
        let mut natures = carried.iter().map(|bio| (bio.op, bio.prio, bio.write_hint, bio.flags));
        let first = natures.next().expect("several bios");
        assert!(natures.all(|nature| nature == first), "{what}");
        assert_eq!(carried[0].flags, Flags::NONE, "{what}");
    }
}

/// Returns the contiguous groups of bios, in order of their sectors.
fn pieces(bios: &[Bio; 3]) -> BTreeSet<Vec<u64>> {
    let mut sorted = bios.to_vec();
    sorted.sort_unstable_by_key(|bio| bio.sector);
    let mut pieces: Vec<Vec<u64>> = Vec::new();
    let mut end = None;
    for bio in sorted {
        match pieces.last_mut() {
            Some(piece) if end == Some(bio.sector) => piece.push(bio.cookie),
            _ => pieces.push(vec![bio.cookie]),
        }
        end = Some(bio.end_sector());
    }
    pieces.into_iter().collect()
}

/// Returns the limits that matter for bios of one or two sectors.
fn limits() -> impl Iterator<Item = Limits> {
    let of = |(max_sectors, chunk_sectors)| Limits {
        max_sectors,
        chunk_sectors,
        write_cache: true,
        fua: true,
        ..Limits::new(SECTORS)
    };
    [(64, 0), (3, 0), (2, 0), (64, 3), (64, 4)].into_iter().map(of)
}

/// Plays one case under every way of staging. Returns the number of ways.
fn play(bios: &[Bio; 3], limits: &Limits) -> u64 {
    let deadline = Policies::mq_deadline();
    let hashing =
        Policies { swq_merge: SwqMerge::Hash, dispatch: Dispatch::DrainAll, ..Policies::NONE };
    let ways = [(deadline, false), (deadline, true), (hashing, false), (Policies::NONE, true)];
    for (policies, batch) in ways {
        let requests = requests(bios, limits, policies, batch);
        requests.iter().for_each(|request| check(request, bios, limits));
        let mut carried: Vec<u64> = requests.concat();
        carried.sort_unstable();
        // A request that waits for its preflush has not arrived yet.
        let waits = |bio: &&Bio| !bio.flags.contains(Flags::PREFLUSH);
        let expected: Vec<_> = bios.iter().filter(waits).map(|bio| bio.cookie).collect();
        assert_eq!(carried, expected, "{bios:?}");
        let alike = bios[2] == Bio { op: bios[0].op, ..plain(bios[2]) };
        let unlimited = limits.max_sectors == 64 && limits.chunk_sectors == 0;
        if alike && unlimited && (policies, batch) == ways[0] {
            let requests: BTreeSet<_> = requests.into_iter().collect();
            assert_eq!(requests, pieces(bios), "{bios:?}");
        }
    }
    ways.len() as u64
}

/// A bio with only a range.
const fn plain(bio: Bio) -> Bio {
    Bio::new(bio.op, bio.sector, bio.sectors, bio.cookie)
}

#[test]
fn three_bios_merge_wherever_they_may() {
    let mut cases = 0;
    for (triple, op) in triples().into_iter().flat_map(|at| [(at, Op::Read), (at, Op::Write)]) {
        let [a, b, c] = [0, 1, 2].map(|at| Bio::new(op, triple[at].0, triple[at].1, at as u64));
        for apart in APART.map(|apart| apart(c)) {
            if apart.op == Op::Read && apart.flags.contains(Flags::FUA) {
                continue; // has no meaning for a read
            }
            let bios = [a, b, apart];
            for limits in limits() {
                // No bio may cross a boundary that a request must not cross.
                let fits = |bio: &Bio| bio.sectors <= limits.max_sectors_at(bio.op, bio.sector);
                if bios.iter().all(fits) {
                    cases += play(&bios, &limits);
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 50_000, "{cases} cases");
}
