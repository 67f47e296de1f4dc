//! From latencies to depths, as kyber does it since Linux 4.20.
//!
//! Reads, writes and discards (whose target is 5 s) are measured; others are not. A latency is
//! counted by the quarter of its target in which it ends: four buckets meet the target, and four
//! miss it, of which the last has no end. Depths are adjusted 100 ms after the first completion
//! since the last adjustment.
//!
//! A percentile is taken, and its counts are cleared, once there are 500 counts or they are 1 s
//! old. Total and device latency of a domain share that second, and the device latency comes first:
//! if a second passes before there are 500 of either, the total latency starts a new second, as in
//! Linux.
//!
//! The device is congested if the 90th percentile of device latency of any domain misses its
//! target. The depth of a domain is multiplied by the quarters of the target, 1 to 8, that the 99th
//! percentile of its total latency takes, if that percentile misses the target or the device is
//! congested. A percentile found without congestion is kept: at the next congestion it is used,
//! once, if there is no new one.

use super::adjust::{Adjust, Took};
use super::domain::{DOMAINS, Domain, Tokens};
use crate::policy::KyberTunables;
use crate::time::{Duration, Instant};

/// The number of buckets into which one target is divided.
const QUARTERS: u32 = 4;
/// The number of all buckets: up to twice the target, and beyond.
const BUCKETS: usize = 2 * QUARTERS as usize;
/// The target of discards.
const DISCARD_LATENCY: Duration = Duration::from_secs(5);
/// The time from the first completion to the adjustment.
const PERIOD: Duration = Duration::from_ms(100);
/// The number of counts at which a percentile is taken.
const ENOUGH: u64 = 500;
/// The age of the counts at which a percentile is taken.
const PATIENCE: Duration = Duration::from_secs(1);

/// Latencies by bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Counts([u64; BUCKETS]);

impl Counts {
    /// Counts a latency by the quarter of its target in which it ends.
    fn add(&mut self, latency: Duration, target: Duration) {
        let width = (target.as_ns() / u64::from(QUARTERS)).max(1);
        let at = latency.as_ns().saturating_sub(1) / width;
        let last = BUCKETS - 1;
        self.0[usize::try_from(at).map_or(last, |at| at.min(last))] += 1;
    }

    /// Takes a percentile: the quarters, 1 to 8, that `percent` of 100 latencies take at most.
    /// Returns `None`, and keeps the counts, if there are too few.
    fn take_percentile(
        &mut self,
        percent: u64,
        at: Instant,
        patience: &mut Option<Instant>,
    ) -> Option<u32> {
        let all: u64 = self.0.iter().sum();
        if all == 0 {
            return None;
        }
        let patience_ends = *patience.get_or_insert(at + PATIENCE);
        if all < ENOUGH && at < patience_ends {
            return None;
        }
        *patience = None;
        let wanted = (all * percent).div_ceil(100);
        let counts = core::mem::take(&mut self.0);
        let mut below = 0;
        (1..).zip(counts).find_map(|(quarters, count)| {
            below += count;
            (below >= wanted).then_some(quarters)
        })
    }
}

/// The measurements of one domain.
#[derive(Clone, Copy, Debug)]
struct Measured {
    domain: Domain,
    target: Duration,
    total: Counts,
    device: Counts,
    /// When a percentile is taken of however many counts there are.
    patience: Option<Instant>,
    /// The last percentile of total latency, if it may be used at the next congestion.
    kept: Option<u32>,
}

impl Measured {
    const fn new(domain: Domain, target: Duration) -> Self {
        const NONE: Counts = Counts([0; BUCKETS]);
        Self { domain, target, total: NONE, device: NONE, patience: None, kept: None }
    }

    /// Whether the device latency misses the target.
    fn is_congested(&mut self, at: Instant) -> bool {
        let p90 = self.device.take_percentile(90, at, &mut self.patience);
        p90.is_some_and(misses_target)
    }

    /// Returns the quarters of the target by which the depth is to be multiplied, if any.
    fn depth_factor(&mut self, congested: bool, at: Instant) -> Option<u32> {
        let p99 = self.total.take_percentile(99, at, &mut self.patience);
        if congested {
            let kept = self.kept.take();
            return p99.or(kept);
        }
        self.kept = p99.or(self.kept);
        p99.filter(|p99| misses_target(*p99))
    }
}

/// Whether a latency of so many quarters of its target misses the target.
const fn misses_target(quarters: u32) -> bool {
    quarters > QUARTERS
}

/// The measured domains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percentiles([Measured; 3]);

impl Percentiles {
    pub(super) const fn new(tunables: &KyberTunables) -> Self {
        Self([
            Measured::new(Domain::Read, tunables.read_latency),
            Measured::new(Domain::Write, tunables.write_latency),
            Measured::new(Domain::Discard, DISCARD_LATENCY),
        ])
    }
}

impl Adjust for Percentiles {
    fn completed(&mut self, domain: Domain, took: Took, now: Instant, due: &mut Option<Instant>) {
        let Some(measured) = self.0.iter_mut().find(|measured| measured.domain == domain) else {
            return;
        };
        measured.total.add(took.total, measured.target);
        measured.device.add(took.device, measured.target);
        due.get_or_insert(now + PERIOD);
    }

    fn adjust(&mut self, at: Instant, tokens: &mut [Tokens; DOMAINS]) -> Option<Instant> {
        let mut congested = false;
        for measured in &mut self.0 {
            congested |= measured.is_congested(at);
        }
        for measured in &mut self.0 {
            if let Some(factor) = measured.depth_factor(congested, at) {
                let tokens = &mut tokens[measured.domain.index()];
                let scaled = u64::from(tokens.depth()) * u64::from(factor) / u64::from(QUARTERS);
                tokens.resize(u32::try_from(scaled).unwrap_or(u32::MAX));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
