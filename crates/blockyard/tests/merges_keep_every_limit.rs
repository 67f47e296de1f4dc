//! [merged-within-limits]: compares `merge::fit` with an oracle that lays both sides out sector by
//! sector and checks the resulting request, for every pair of a small space and random pairs of a
//! larger one.

use blockyard::bio::{Flags, IoPrio, Op, PrioClass, Submitter};
use blockyard::limits::Limits;
use blockyard::merge::{Extent, Fit, Merge, fit};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn sectors_of(extent: &Extent) -> BTreeSet<u64> {
    (0..u64::from(extent.sectors)).map(|offset| extent.sector + offset).collect()
}

/// Returns the position of `b` relative to `a`, from their sectors alone: contiguous or not, and
/// which is lower.
fn how_they_touch(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> Option<Merge> {
    let union: BTreeSet<u64> = a.union(b).copied().collect();
    let first = union.first()?;
    let last = union.last()?;
    let in_one_piece = last - first + 1 == union.len() as u64;
    if !in_one_piece || !a.is_disjoint(b) {
        return None;
    }
    Some(if a.first() < b.first() { Merge::Back } else { Merge::Front })
}

fn excluded(side: &Extent) -> bool {
    const NEVER: [Flags; 3] = [Flags::NO_MERGE, Flags::PREFLUSH, Flags::FUA];
    NEVER.iter().any(|&flag| side.flags.contains(flag))
}

fn oracle(a: &Extent, b: &Extent, limits: &Limits) -> Fit {
    let differ = (a.op, a.prio, a.write_hint) != (b.op, b.prio, b.write_hint);
    let never = matches!(a.op, Op::Flush | Op::DriverIn | Op::DriverOut);
    if excluded(a) || excluded(b) || differ || never {
        return Fit::No;
    }
    let as_ranges = a.op == Op::Discard && limits.max_discard_segments > 1;
    let in_a = sectors_of(a);
    let in_b = sectors_of(b);
    let merge = if as_ranges { Some(Merge::Discard) } else { how_they_touch(&in_a, &in_b) };
    let Some(merge) = merge else { return Fit::No };

    let count = in_a.len() + in_b.len();
    let most = match a.op {
        Op::Discard | Op::SecureErase => limits.max_discard_sectors,
        Op::WriteZeroes => limits.max_write_zeroes_sectors,
        _ => limits.max_sectors,
    };
    let chunk_of = |sector: &u64| sector.checked_div(u64::from(limits.chunk_sectors));
    let chunks: BTreeSet<_> = in_a.union(&in_b).map(chunk_of).collect();
    let has_payload = matches!(a.op, Op::Read | Op::Write);
    let (lower, upper) = if merge == Merge::Front { (b, a) } else { (a, b) };
    let hole = lower.flags.contains(Flags::GAP_TAIL) || upper.flags.contains(Flags::GAP_HEAD);

    let broken = [
        count > most as usize,
        !as_ranges && chunks.len() > 1,
        as_ranges && a.ranges + b.ranges > limits.max_discard_segments,
        has_payload && a.segments + b.segments > limits.max_segments,
        limits.virt_boundary && hole,
    ];
    if broken.contains(&true) { Fit::TooBig } else { Fit::Join(merge) }
}

fn mostly_none(flags: &'static [Flags]) -> impl Strategy<Value = Flags> {
    prop_oneof![6 => Just(Flags::NONE), 1 => prop::sample::select(flags)]
}

prop_compose! {
    fn extent(op: Op)(
        sector in 0..24_u64,
        sectors in 1..8_u32,
        segments in 1..4_u16,
        ranges in 1..3_u16,
        level in prop_oneof![9 => Just(0_u8), 1 => Just(1)],
        write_hint in prop_oneof![9 => Just(0_u8), 1 => Just(1)],
        process in 0..2_u32, // decides nothing
        never in mostly_none(&[Flags::NO_MERGE, Flags::PREFLUSH, Flags::FUA]),
        gap in mostly_none(&[Flags::GAP_HEAD, Flags::GAP_TAIL]),
    ) -> Extent {
        let ranges = if op == Op::Discard { ranges } else { 1 };
        let flags = never | gap;
        let prio = IoPrio { class: PrioClass::BestEffort, level };
        let submitter = Submitter { process, group: 0 };
        Extent { sector, sectors, segments, ranges, op, flags, prio, write_hint, submitter }
    }
}

prop_compose! {
    fn limits()(
        max_sectors in 4..20_u32,
        max_segments in 2..6_u16,
        max_discard_sectors in 0..20_u32,
        max_discard_segments in 1..5_u16,
        max_write_zeroes_sectors in 0..20_u32,
        chunk_sectors in prop_oneof![Just(0_u32), Just(8), Just(12)],
        virt_boundary in any::<bool>(),
    ) -> Limits {
        Limits {
            max_sectors,
            max_segments,
            max_discard_sectors,
            max_discard_segments,
            max_write_zeroes_sectors,
            chunk_sectors,
            virt_boundary,
            ..Limits::new(1024)
        }
    }
}

fn pair() -> impl Strategy<Value = (Extent, Extent)> {
    const OPS: [Op; 6] =
        [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes, Op::SecureErase];
    let ops = prop_oneof![
        4 => prop::sample::select(&OPS[..]).prop_map(|op| (op, op)),
        1 => (prop::sample::select(&OPS[..]), prop::sample::select(&OPS[..])),
    ];
    let apart = ops.prop_flat_map(|(a, b)| (extent(a), extent(b)));
    // Half of the pairs are moved so that they touch.
    (apart, 0..4_u8).prop_map(|((a, mut b), how)| {
        match how {
            0 => b.sector = a.end_sector(),
            1 => b.sector = a.sector.saturating_sub(u64::from(b.sectors)),
            _ => {}
        }
        (a, b)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn fit_agrees_with_the_oracle((a, b) in pair(), limits in limits()) {
        prop_assert_eq!(fit(&a, &b, &limits), oracle(&a, &b, &limits), "{:?} and {:?}", a, b);
    }
}

const ALL_OPS: [Op; 8] = [
    Op::Read,
    Op::Write,
    Op::Flush,
    Op::Discard,
    Op::WriteZeroes,
    Op::SecureErase,
    Op::DriverIn,
    Op::DriverOut,
];

fn plain(op: Op, sector: u64, sectors: u32) -> Extent {
    let flags = Flags::NONE;
    let prio = IoPrio::default();
    let submitter = Submitter::NONE;
    Extent { sector, sectors, segments: 1, ranges: 1, op, flags, prio, write_hint: 0, submitter }
}

/// Returns every limit that matters for extents of one to three sectors and one or two segments.
fn small_limits() -> Vec<Limits> {
    let mut all = Vec::new();
    for max_sectors in [2, 4, 6] {
        for max_segments in [2, 3, 4] {
            for max_discard_segments in [1, 2, 3] {
                for chunk_sectors in [0, 3, 4] {
                    all.push(Limits {
                        max_sectors,
                        max_segments,
                        max_discard_sectors: 8 - max_sectors,
                        max_discard_segments,
                        max_write_zeroes_sectors: max_sectors - 1,
                        chunk_sectors,
                        ..Limits::new(1024)
                    });
                }
            }
        }
    }
    all
}

/// Counts each answer, so that the test sees all of them.
fn compare(cases: impl Iterator<Item = (Extent, Extent)>, limits: &Limits, answers: &mut [u64; 3]) {
    for (a, b) in cases {
        let answer = fit(&a, &b, limits);
        assert_eq!(answer, oracle(&a, &b, limits), "{a:?} and {b:?} under {limits:?}");
        answers[match answer {
            Fit::Join(_) => 0,
            Fit::TooBig => 1,
            Fit::No => 2,
        }] += 1;
    }
}

/// Extents of up to three sectors, two segments and two ranges that begin at `first` to `last`.
fn small_extents(op: Op, first: u64, last: u64) -> impl Iterator<Item = Extent> {
    let ranges_max = if op == Op::Discard { 2 } else { 1 };
    let places = (first..=last).flat_map(|sector| (1..=3).map(move |sectors| (sector, sectors)));
    places.flat_map(move |(sector, sectors)| {
        (1..=2).flat_map(move |segments| {
            (1..=ranges_max).map(move |ranges| Extent {
                segments,
                ranges,
                ..plain(op, sector, sectors)
            })
        })
    })
}

/// Every position of two extents of up to three sectors, under every limit.
#[test]
fn every_place_of_two_small_extents() {
    let mut answers = [0; 3];
    for limits in small_limits() {
        for op in ALL_OPS {
            let pairs =
                small_extents(op, 4, 6).flat_map(|a| small_extents(op, 0, 10).map(move |b| (a, b)));
            compare(pairs, &limits, &mut answers);
        }
    }
    println!("joined, too big, apart: {answers:?}");
    assert!(answers.iter().all(|count| *count > 10_000), "{answers:?}");
}

/// Extents of every operation, flag, priority and hint.
fn natures() -> impl Iterator<Item = Extent> {
    const FLAGS: [Flags; 7] = [
        Flags::NONE,
        Flags::SYNC,
        Flags::NO_MERGE,
        Flags::PREFLUSH,
        Flags::FUA,
        Flags::GAP_HEAD,
        Flags::GAP_TAIL,
    ];
    ALL_OPS.into_iter().flat_map(|op| {
        FLAGS.into_iter().flat_map(move |flags| {
            (0..4_u8).map(move |apart| {
                let prio = IoPrio { level: apart & 1, ..IoPrio::default() };
                Extent { flags, prio, write_hint: apart >> 1, ..plain(op, 8, 2) }
            })
        })
    })
}

/// Every pair of operations, flags, priorities and hints of two extents that touch.
#[test]
fn every_nature_of_two_extents() {
    let mut answers = [0; 3];
    for virt_boundary in [false, true] {
        for max_discard_segments in [1, 2] {
            let limits = Limits {
                virt_boundary,
                max_discard_segments,
                max_discard_sectors: 8,
                max_write_zeroes_sectors: 8,
                ..Limits::new(1024)
            };
            for sector in [5, 6, 10, 11] {
                let pairs =
                    natures().flat_map(|a| natures().map(move |b| (a, Extent { sector, ..b })));
                compare(pairs, &limits, &mut answers);
            }
        }
    }
    println!("joined, too big, apart: {answers:?}");
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
}
