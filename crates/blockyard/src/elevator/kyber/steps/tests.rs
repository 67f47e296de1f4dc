//! Checks depths against a table of pairs of health.

use super::*;
use Status::{Awful, Bad, Good, Great};
use alloc::vec::Vec;
use core::cmp::Ordering::{Equal, Greater, Less};
use proptest::prelude::*;

/// The edges of the health of a domain with a target of 100 ns.
#[test]
fn the_mean_latency_decides_the_health_of_a_domain() {
    for (mean, status) in
        [(0, Great), (50, Great), (51, Good), (100, Good), (101, Bad), (199, Bad), (200, Awful)]
    {
        // Two latencies of which neither is the mean.
        let measured = Measured { sum_ns: 2 * mean + 1, count: 2 };
        assert_eq!(measured.status(Duration::from_ns(100)), Some(status), "{mean} ns");
    }
    assert_eq!(Measured::default().status(Duration::from_ns(100)), None);
}

fn beside(this: Option<Status>) -> [u32; 5] {
    [None, Some(Awful), Some(Bad), Some(Good), Some(Great)]
        .map(|other| depth_beside(80, this, other))
}

/// Each pair: the change of 80 tokens.
#[test]
fn a_depth_follows_from_the_health_of_both_domains() {
    assert_eq!(beside(None), [80; 5]);
    //                        nobody awful bad good great
    assert_eq!(beside(Some(Awful)), [81, 80, 80, 81, 82]);
    assert_eq!(beside(Some(Bad)), [81, 80, 80, 81, 81]);
    assert_eq!(beside(Some(Good)), [81, 60, 70, 80, 80]);
    assert_eq!(beside(Some(Great)), [81, 40, 60, 80, 80]);
    // At least one token goes.
    assert_eq!(depth_beside(3, Some(Good), Some(Bad)), 2);
    assert_eq!(depth_beside(3, Some(Great), Some(Bad)), 2);
}

/// The change of 40 tokens.
#[test]
fn others_follow_the_better_of_reads_and_writes() {
    let all = [None, Some(Awful), Some(Bad), Some(Good), Some(Great)];
    assert_eq!(all.map(|better| depth_of_others(40, better, true)), [42, 20, 30, 41, 42]);
    assert_eq!(all.map(|better| depth_of_others(40, better, false)), [42, 40, 40, 40, 40]);
}

fn completed(
    steps: &mut Steps,
    domain: Domain,
    ms: u64,
    due: &mut Option<Instant>,
) -> Option<Instant> {
    let device = Duration::from_ms(ms);
    steps.completed(domain, Took { total: device, device }, Instant::ZERO, due);
    *due
}

/// A latency at its target begins no window; at the end of one, each depth follows from both
/// domains.
#[test]
fn a_window_changes_both_depths() {
    let mut steps = Steps::new(&KyberTunables::default());
    let mut tokens = [256, 128, 64, 64].map(Tokens::new);
    let mut due = None;
    assert_eq!(completed(&mut steps, Domain::Read, 2, &mut due), None, "at its target");
    assert_eq!(completed(&mut steps, Domain::Write, 10, &mut due), None, "at its target");
    completed(&mut steps, Domain::Read, 4, &mut due);
    completed(&mut steps, Domain::Write, 5, &mut due);
    let _ = steps.adjust(Instant::ZERO, &mut tokens);
    assert_eq!(tokens.map(|tokens| tokens.depth()), [256, 64, 64, 64], "awful beside great");
    completed(&mut steps, Domain::Read, 1, &mut due);
    completed(&mut steps, Domain::Write, 20, &mut due);
    let _ = steps.adjust(Instant::ZERO, &mut tokens);
    assert_eq!(tokens.map(|tokens| tokens.depth()), [128, 66, 64, 64], "great beside awful");
}

/// Compares `completed` and `adjust` over time with lists of completions.
#[derive(Debug, Default)]
struct Slow {
    windows: Vec<(Domain, u64)>,
    ends: Option<Instant>,
}

proptest! {
    /// Which completions are measured, and when a window ends.
    #[test]
    fn windows_hold_what_completes_within_them(
        steps in prop::collection::vec((0..4_usize, 0..30_000_000_u64, 0..40_u64), 1..200),
    ) {
        let tunables = KyberTunables { other_depth: 64, ..KyberTunables::default() };
        let mut fast = Steps::new(&tunables);
        let mut tokens = [256, 128, 64, 64].map(Tokens::new);
        let mut slow = Slow::default();
        let (mut now, mut due) = (Instant::ZERO, None);
        for (at, device_ns, wait_ms) in steps {
            let domain = [Domain::Read, Domain::Write, Domain::Other, Domain::Other][at];
            let device = Duration::from_ns(device_ns);
            fast.completed(domain, Took { total: device, device }, now, &mut due);
            let target_ns = [2_000_000, 10_000_000, u64::MAX, u64::MAX][at];
            if slow.ends.is_none() && device_ns > target_ns {
                slow.ends = Some(now + Duration::from_ms(10));
            }
            if slow.ends.is_some() {
                slow.windows.push((domain, device_ns));
            }
            prop_assert_eq!(due, slow.ends);
            now = now + Duration::from_ms(wait_ms);
            while let Some(at) = due.filter(|due| *due <= now) {
                let completed = core::mem::take(&mut slow.windows);
                let mean = |domain| {
                    let of: Vec<_> = completed.iter().filter(|(of, _)| *of == domain).collect();
                    let count = u64::try_from(of.len()).expect("few");
                    of.iter().map(|(_, ns)| ns).sum::<u64>().checked_div(count)
                };
                let (read, write) = (mean(Domain::Read), mean(Domain::Write));
                let before = tokens.map(|tokens| tokens.depth());
                due = fast.adjust(at, &mut tokens);
                let slow_reads = read > Some(2_000_000);
                let slow_writes = write > Some(10_000_000);
                let is_cut = [0, 1].map(|at| tokens[at].depth() < before[at]);
                // A domain that misses its target is never cut, and none is beside one that meets
                // its target.
                prop_assert!(!(is_cut[0] && (slow_reads || !slow_writes)));
                prop_assert!(!(is_cut[1] && (slow_writes || !slow_reads)));
                // Others grow while one of the two meets its target or there is neither; where
                // those there are all miss it, they are cut once they complete.
                let others = mean(Domain::Other).is_some();
                let one_is_well = read.is_some() && !slow_reads || write.is_some() && !slow_writes;
                let neither = read.is_none() && write.is_none();
                let change = match () {
                    () if neither || (one_is_well && others) => Greater,
                    () if others => Less,
                    () => Equal,
                };
                let limited = before[3] == if change == Greater { 64 } else { 1 };
                let change = if limited { Equal } else { change };
                prop_assert_eq!(tokens[3].depth().cmp(&before[3]), change);
                let goes_on = slow_reads || slow_writes || tokens[3].depth() < 64;
                slow.ends = goes_on.then(|| at + Duration::from_ms(100));
                prop_assert_eq!(due, slow.ends);
            }
        }
    }
}
