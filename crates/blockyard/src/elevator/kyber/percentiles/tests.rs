//! Compares depths from counted buckets with depths from sorted lists of latencies.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Every latency since the list was last cleared, and the rest of the state.
#[derive(Clone, Debug, Default)]
struct Slow {
    total_ns: Vec<u64>,
    device_ns: Vec<u64>,
    /// The start of the current second of counting.
    since: Option<Instant>,
    kept: Option<u64>,
}

/// Returns the quarters, 1 to 8, of `target_ns` that cover the latency at the `percent`th place of
/// 100, and clears the list; `None` while there are too few.
fn percentile(
    list: &mut Vec<u64>,
    since: &mut Option<Instant>,
    percent: usize,
    target_ns: u64,
    at: Instant,
) -> Option<u64> {
    if list.is_empty() {
        return None;
    }
    let began = *since.get_or_insert(at);
    if list.len() < 500 && at.as_ns() - began.as_ns() < 1_000_000_000 {
        return None;
    }
    *since = None;
    let mut sorted = core::mem::take(list);
    sorted.sort_unstable();
    let latency = sorted[(sorted.len() * percent).div_ceil(100) - 1];
    let quarter = (target_ns / 4).max(1);
    Some((1..8).find(|quarters| latency <= quarters * quarter).unwrap_or(8))
}

/// The new depths, at most 256, 128 and 64.
fn adjust(slow: &mut [Slow; 3], targets_ns: [u64; 3], depths: [u64; 3], at: Instant) -> [u64; 3] {
    let mut congested = false;
    for (one, target_ns) in slow.iter_mut().zip(targets_ns) {
        let p90 = percentile(&mut one.device_ns, &mut one.since, 90, target_ns, at);
        congested = congested || p90 > Some(4);
    }
    let mut new = depths;
    for at_domain in 0..3 {
        let one = &mut slow[at_domain];
        let target_ns = targets_ns[at_domain];
        let p99 = percentile(&mut one.total_ns, &mut one.since, 99, target_ns, at);
        let factor = match (congested, p99) {
            (true, Some(p99)) => Some(p99),
            (true, None) => one.kept,
            (false, Some(p99)) if p99 > 4 => Some(p99),
            (false, _) => None,
        };
        one.kept = if congested { None } else { p99.or(one.kept) };
        if let Some(factor) = factor {
            let max = [256, 128, 64][at_domain];
            new[at_domain] = (depths[at_domain] * factor / 4).clamp(1, max);
        }
    }
    new
}

#[derive(Clone, Debug)]
enum Step {
    /// This many requests of a domain complete.
    Complete {
        domain: usize,
        total_ns: u64,
        device_ns: u64,
        count: u32,
    },
    Wait(Duration),
}

/// Latencies. The discards' target is 5 s: only some are near it.
fn ns() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..4_000_000_u64, 1 => 0..12_000_000_000_u64]
}

fn step() -> impl Strategy<Value = Step> {
    let count = prop_oneof![6 => 1..20_u32, 2 => 100..600_u32];
    let complete = (0..4_usize, ns(), ns(), count).prop_map(|(domain, total, device, count)| {
        let total_ns = total.max(device);
        Step::Complete { domain, total_ns, device_ns: device, count }
    });
    let ms = prop_oneof![4 => 0..150_u64, 1 => 500..1_500_u64];
    prop_oneof![3 => complete, 2 => ms.prop_map(|ms| Step::Wait(Duration::from_ms(ms)))]
}

/// 900 of 1000 requests take their target, and the others eight quarters of it.
#[test]
fn a_domain_is_congested_if_more_than_a_tenth_of_it_misses_the_target() {
    for (slow, congested) in [(100, false), (101, true)] {
        let target = Duration::from_ns(100);
        let mut measured = Measured::new(Domain::Read, target);
        for nth in 0..1000 {
            let latency = Duration::from_ns(if nth < slow { 800 } else { 100 });
            measured.device.add(latency, target);
        }
        assert_eq!(measured.is_congested(Instant::ZERO), congested, "{slow} of 1000");
    }
}

/// A quarter of a tiny target is one nanosecond.
#[test]
fn a_tiny_target_has_quarters() {
    let mut counts = Counts::default();
    counts.add(Duration::from_ns(3), Duration::from_ns(1));
    assert_eq!(counts.0[2], 1);
}

proptest! {
    #[test]
    fn depths_follow_sorted_lists(
        read_ns in prop_oneof![Just(0_u64), 0..10_u64, 0..4_000_000_u64],
        write_ns in 0..4_000_000_u64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let tunables = KyberTunables {
            read_latency: Duration::from_ns(read_ns),
            write_latency: Duration::from_ns(write_ns),
            ..KyberTunables::default()
        };
        let mut fast = Percentiles::new(&tunables);
        let mut tokens = [256, 128, 64, 16].map(Tokens::new);
        let mut slow = [(); 3].map(|()| Slow::default());
        let targets_ns = [read_ns, write_ns, 5_000_000_000];
        let mut depths = [256, 128, 64];
        let mut now = Instant::ZERO;
        let mut due = None;
        for step in steps {
            match step {
                Step::Complete { domain, total_ns, device_ns, count } => {
                    let (total, device) = (Duration::from_ns(total_ns), Duration::from_ns(device_ns));
                    for _ in 0..count {
                        fast.completed(Domain::ALL[domain], Took { total, device }, now, &mut due);
                        if let Some(slow) = slow.get_mut(domain) {
                            slow.total_ns.push(total_ns);
                            slow.device_ns.push(device_ns);
                        }
                    }
                }
                Step::Wait(span) => now = now + span,
            }
            if let Some(at) = due.filter(|due| *due <= now) {
                due = fast.adjust(at, &mut tokens);
                prop_assert_eq!(due, None);
                depths = adjust(&mut slow, targets_ns, depths, at);
                let found = [0, 1, 2].map(|domain| u64::from(tokens[domain].depth()));
                prop_assert_eq!(found, depths);
                prop_assert_eq!(tokens[3].depth(), 16);
            }
        }
    }
}

/// The edges of the quarters: a quarter of a target of 400 ns is 100.
#[test]
fn a_latency_counts_in_the_quarter_it_ends_in() {
    for (latency, bucket) in
        [(0, 0), (1, 0), (100, 0), (101, 1), (400, 3), (401, 4), (700, 6), (701, 7), (u64::MAX, 7)]
    {
        let mut counts = Counts::default();
        counts.add(Duration::from_ns(latency), Duration::from_ns(400));
        assert_eq!(counts.0.iter().position(|count| *count == 1), Some(bucket), "{latency} ns");
    }
}

/// Few latencies are counted for one second, to the nanosecond.
#[test]
fn a_percentile_of_few_is_found_after_a_second() {
    let mut counts = Counts::default();
    counts.add(Duration::ZERO, DISCARD_LATENCY);
    let mut patience = None;
    let first = Instant::from_ns(7);
    let mut take = |ns| counts.take_percentile(99, first + Duration::from_ns(ns), &mut patience);
    assert_eq!([0, 999_999_999].map(&mut take), [None; 2]);
    assert_eq!(take(1_000_000_000), Some(1));
    assert_eq!(take(3_000_000_000), None, "they were cleared");
}

/// 100 ms from the first completion, whatever follows; without a completion nothing is due.
#[test]
fn depths_are_adjusted_100_ms_after_a_first_completion() {
    let mut fast = Percentiles::new(&KyberTunables::default());
    let took = Took { total: Duration::ZERO, device: Duration::ZERO };
    let mut due = None;
    fast.completed(Domain::Other, took, Instant::ZERO, &mut due);
    assert_eq!(due, None, "only reads and writes are measured");
    for ms in [7, 8, 106] {
        let now = Instant::ZERO + Duration::from_ms(ms);
        fast.completed(Domain::Read, took, now, &mut due);
        assert_eq!(due, Some(Instant::ZERO + Duration::from_ms(107)));
    }
}

/// Total and device latency share the second: with fewer than 500 completions a second the device's
/// percentile is taken about every second, and the total's only once there are 500.
#[test]
fn with_few_completions_the_total_latency_waits_for_500() {
    let tunables = KyberTunables::default();
    let mut fast = Percentiles::new(&tunables);
    let mut tokens = [256, 128, 64, 16].map(Tokens::new);
    let slow_read = Took { total: Duration::from_ms(8), device: Duration::from_ms(3) };
    let quick_write = Took { total: Duration::from_ms(1), device: Duration::from_us(500) };
    let mut due = None;
    let mut cut_at = None;
    // 10 of each every 100 ms.
    for tenth in 0..100_u64 {
        let now = Instant::ZERO + Duration::from_ms(100 * tenth);
        if let Some(at) = due.filter(|due| *due <= now) {
            due = fast.adjust(at, &mut tokens);
            if cut_at.is_none() && tokens[1].depth() < 128 {
                cut_at = Some(10 * tenth);
            }
        }
        for _ in 0..10 {
            fast.completed(Domain::Read, slow_read, now, &mut due);
            fast.completed(Domain::Write, quick_write, now, &mut due);
        }
    }
    let completions = cut_at.expect("reads miss their target for 10 s");
    assert!(completions >= 500, "writes were cut after {completions}");
}
