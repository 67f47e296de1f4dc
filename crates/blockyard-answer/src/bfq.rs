//! BFQ: its slots and budgets, what idling cost and bought, raised weights, injections, and the
//! service of control groups.

#![expect(clippy::float_arithmetic, reason = "figures are for reading: nothing is ordered by them")]

use blockyard::unit::SECTOR_BYTES;
use blockyard_fio::job::{Cgroup, Job, cgroups};
use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, ratio, share_percent};
use serde::Serialize;

/// What BFQ did in a run, on all disks together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BfqFigures {
    /// Slots, in each of which one process has the device.
    pub slots: u64,
    /// Slots that ended because the process let the device wait for too long.
    pub too_idle: u64,
    /// Slots that ended because their time was over.
    pub timeout: u64,
    /// Slots that ended because their budget was used up.
    pub exhausted: u64,
    /// Slots that ended because the process had no more requests.
    pub no_more_requests: u64,
    /// Slots that ended because another process went first.
    pub preempted: u64,
    /// The mean budget of a slot, in bytes.
    pub mean_budget_bytes: f64,
    /// The share of all budgets that was used.
    pub budget_used_percent: f64,
    /// How often the device was held for the next request of the process in service.
    pub waits: u64,
    /// How often that request came in time.
    pub met: u64,
    /// How often it was near the end of the last one, so that the wait bought a seek.
    pub near: u64,
    /// The share of the time for which the device was held.
    pub held_percent: f64,
    /// The share of the time in which the device was held, had nothing to do, and requests of
    /// others waited: what idling cost.
    pub withheld_percent: f64,
    /// How often a weight was raised for a process that starts.
    pub raised_interactive: u64,
    /// How often a weight was raised for a soft real-time process.
    pub raised_soft_real_time: u64,
    /// The share of the time in which a process with requests was raised.
    pub raised_percent: f64,
    /// Requests of others that were served while the process in service had none.
    pub injected: u64,
    /// Queues of cooperating processes that were merged.
    pub merged: u64,
    /// Merged queues that were split again.
    pub split: u64,
    /// The service of each control group, if jobs are in groups: first the processes of none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupFigures>,
}

/// The service of a control group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupFigures {
    /// Its name; null for the processes of no group.
    pub name: Option<String>,
    /// Its weight; null for the processes of no group, each of which has its own.
    pub weight: Option<u32>,
    /// Bytes of its requests that went to the device, those written back in its name included.
    pub bytes: u64,
    /// The same, as a share of the bytes of all groups.
    pub percent: f64,
}

impl BfqFigures {
    /// The figures of `report`, the run of `jobs`, if BFQ was the scheduler.
    #[must_use]
    pub fn of(report: &Report, jobs: &[Job]) -> Option<Self> {
        let bfq = report.bfq.as_ref()?;
        let counts = &bfq.counts;
        let slots = counts.slots;
        let time = approximate(report.span.as_ns()) * f64::from(bfq.queues);
        Some(Self {
            slots: slots.all(),
            too_idle: slots.too_idle,
            timeout: slots.timeout,
            exhausted: slots.exhausted,
            no_more_requests: slots.no_more_requests,
            preempted: slots.preempted,
            mean_budget_bytes: f64::from(SECTOR_BYTES)
                * ratio(approximate(counts.budgets), approximate(slots.all())),
            budget_used_percent: share_percent(counts.charged, approximate(counts.budgets)),
            waits: counts.idled.waits,
            met: counts.idled.met,
            near: counts.idled.near,
            held_percent: share_percent(counts.idled.time.as_ns(), time),
            withheld_percent: share_percent(counts.idled.withheld.as_ns(), time),
            raised_interactive: counts.raised.interactive,
            raised_soft_real_time: counts.raised.soft_real_time,
            raised_percent: share_percent(counts.raised.time.as_ns(), time),
            injected: counts.injected,
            merged: counts.merged,
            split: counts.split,
            groups: groups(report, &cgroups(jobs)),
        })
    }
}

/// Returns the service of each of `known` groups, after that of the root; nothing without groups.
fn groups(report: &Report, known: &[Cgroup<'_>]) -> Vec<GroupFigures> {
    let served = report.bfq.iter().flat_map(|bfq| &bfq.counts.groups);
    let served: Vec<_> = served.map(|of| (of.group, of.sync_sectors + of.async_sectors)).collect();
    let all: u64 = served.iter().map(|of| of.1).sum();
    let root = (None, None, 0);
    let named = known.iter().map(|group| (Some(group.name), Some(group.weight), group.number));
    let rows = core::iter::once(root).chain(named).filter(|_| !known.is_empty());
    let figures = rows.map(|(name, weight, number)| {
        let sectors: u64 = served.iter().filter(|of| of.0 == number).map(|of| of.1).sum();
        GroupFigures {
            name: name.map(str::to_owned),
            weight,
            bytes: sectors * u64::from(SECTOR_BYTES),
            percent: share_percent(sectors, approximate(all)),
        }
    });
    figures.collect()
}
