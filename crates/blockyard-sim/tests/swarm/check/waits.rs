//! Checks [elevator-starves-none]: a bio that is submitted while there are no faults ends within a
//! bound.
//!
//! # The bound
//!
//! At most `ahead` requests are ahead of a bio's own: all parts of as many bios as the queue holds.
//! Each may let later requests pass:
//!
//! - under mq-deadline `fifo_batch` x (`writes_starved` + 1), after its deadline has passed and its
//!   class has aged;
//! - under kyber a batch of each other domain;
//! - under bfq as many as the shares of their processes allow, which depend on all others;
//! - under adios as many as pay less than it, for which there is no bound;
//! - under an elevator from outside the core 16 reads; the one that idles may wait before each
//!   request;
//! - without an elevator one of each other software queue, as software queues take turns.
//!
//! All requests that bypass the elevator may go first ([direct-requests-first]): each such bio of
//! the phase, with a flush before it and another after it. A request takes the longest service time
//! and run delay, and this for each queue that shares the host. It may wait once for the retry.
//! In-flight data may delay each of a bio's two flushes ([flush-held-bounded]). There are no
//! freezes in this phase.

use crate::anticipatory::WAIT;
use blockyard::policy::{DeadlineTunables, ElevatorKind, Policies};
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

use crate::draw::{Plan, SubmitterPlan};
use blockyard::bio::Op;
use std::collections::BTreeMap;

const RETRY_NS: u64 = blockyard::hardware_queue::RETRY_DELAY.as_ns();
/// The time until the first timer after [`HOLD_MAX`](blockyard::flush::HOLD_MAX).
const FLUSH_HELD_NS: u64 = blockyard::flush::HOLD_MAX.as_ns() + 1_000_000_000;

/// The reads that each elevator from outside lets pass a request, and the request itself.
const READS_FIRST: u64 = 17;

/// The batches of all kyber domains together: 16, 8 and 8 with steps, the larger case.
const KYBER_BATCHES: u64 = 32;

#[derive(Debug)]
pub(crate) struct Waits {
    bounds: Vec<Duration>,
    since: BTreeMap<u64, Instant>,
    pub(crate) longest: Duration,
}

impl Waits {
    pub(crate) fn new(plan: &Plan) -> Self {
        let bounds = (0..plan.queues.len()).map(|queue| bound(plan, queue)).collect();
        Self { bounds, since: BTreeMap::new(), longest: Duration::ZERO }
    }

    pub(crate) fn entered(&mut self, cookie: u64, now: Instant) {
        self.since.insert(cookie, now);
    }

    pub(crate) fn ended(&mut self, queue: usize, cookie: u64, now: Instant) {
        let Some(since) = self.since.remove(&cookie) else { return };
        let waited = now.since(since);
        let bound = self.bounds[queue];
        self.longest = self.longest.max(waited);
        assert!(
            waited <= bound,
            "[elevator-starves-none] bio {cookie} took {waited:?}, longer than {bound:?}"
        );
    }
}

fn bound(plan: &Plan, queue: usize) -> Duration {
    let config = &plan.queues[queue];
    let hctxs = u64::from(plan.tags.hctxs);
    let cpus = config.map.default.len() as u64;
    let depth = u64::from(plan.tags.depth);
    let (held, passes, patience_ns) = of_elevator(&config.policies, depth, 3 * cpus);
    let parts = parts(plan, queue);
    let ahead = (held * hctxs).min(u64::from(config.max_bios)) * parts;
    let idle = if plan.idles { WAIT } else { Duration::ZERO };
    let step =
        plan.device.service_max.as_ns() + plan.run_delay_max.as_ns() + plug_ns(plan) + idle.as_ns();
    let turns = plan.queues.len() as u64 * hctxs;
    let moves = (ahead + parts).saturating_mul(passes).saturating_add(passers_by(plan));
    let flush_ns = if plan.is_volatile() { 2 * (FLUSH_HELD_NS + RETRY_NS) } else { 0 };
    let ns =
        moves.saturating_mul(step * turns).saturating_add(patience_ns).saturating_add(RETRY_NS);
    Duration::from_ns(ns.saturating_add(flush_ns))
}

/// Returns the requests that the elevator never sees: passthrough, flushes, and data between them.
fn passers_by(plan: &Plan) -> u64 {
    let passes = |submitter: &&SubmitterPlan| {
        let flushes = submitter.ops.contains(&Op::Flush) || submitter.durable_one_in > 0;
        submitter.ops.contains(&Op::DriverIn) || (plan.is_volatile() && flushes)
    };
    let bios = plan.submitters.iter().filter(passes).map(|submitter| submitter.bios[1]);
    3 * bios.sum::<u64>()
}

/// Returns the largest number of parts of a bio.
fn parts(plan: &Plan, queue: usize) -> u64 {
    let limits = &plan.queues[queue].limits;
    let chunk = if limits.chunk_sectors == 0 { u32::MAX } else { limits.chunk_sectors };
    let page_sectors = 4096 / SECTOR_BYTES;
    let least = [
        chunk,
        limits.max_sectors,
        limits.max_discard_sectors,
        limits.max_write_zeroes_sectors,
        u32::from(limits.max_segments) * page_sectors,
    ];
    let least = least.into_iter().filter(|sectors| *sectors > 0).min().unwrap_or(u32::MAX);
    let longest = plan.submitters.iter().map(|submitter| submitter.sectors_max).max().unwrap_or(0);
    longest.div_ceil(least.into()) + 1
}

/// Returns the requests that the elevator holds for a hardware queue, the number that may pass each
/// of them, and the longest wait of one in ns.
fn of_elevator(policies: &Policies, depth: u64, ctxs: u64) -> (u64, u64, u64) {
    let device_depth = u32::try_from(depth).expect("a depth should fit 16 bits");
    let held = u64::from(policies.sched_depth.tags(device_depth));
    let tunables = match &policies.elevator {
        ElevatorKind::None => return (depth, ctxs, 0),
        ElevatorKind::Kyber(_) => return (held, KYBER_BATCHES, 0),
        // A process of a weight of 1 may wait for budgets of many of 1000: tests of its own bound
        // the shares.
        ElevatorKind::Bfq(_) => return (held, u64::MAX, 0),
        // Requests that pass an earlier one pay by their predicted latencies, of which 1 ns is one.
        // So only tests of its own bound the waits.
        ElevatorKind::Adios(_) => return (held, u64::MAX, 0),
        ElevatorKind::Other => return (held, READS_FIRST, 0),
        ElevatorKind::Deadline(tunables) => tunables,
    };
    let DeadlineTunables { fifo_batch, writes_starved, .. } = *tunables;
    let passes = u64::from(fifo_batch.max(1)).saturating_mul(u64::from(writes_starved) + 1);
    let aging = if tunables.classes { tunables.prio_aging_expire } else { Duration::ZERO };
    let patience = tunables.read_expire.max(tunables.write_expire) + aging;
    (held, passes, patience.as_ns())
}

fn plug_ns(plan: &Plan) -> u64 {
    plan.submitters.iter().map(|submitter| submitter.plug_hold_max.as_ns()).max().unwrap_or(0)
}
