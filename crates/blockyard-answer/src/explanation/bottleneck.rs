//! The bottleneck of a design.
//!
//! # Choices
//!
//! - A design is limited by the resource nearest to the device that is used up: a part of the
//!   device, its depth, a lock, the CPUs, what its host does. If none is, it is limited by the
//!   depth if requests wait for that and most of it is taken; otherwise by the latency of the
//!   device or the pace of its jobs.
//! - Of the latency of the device and the pace of the jobs, the larger part of the jobs' time is
//!   named: pauses and think time, or the rest. Jobs that keep to a rate or to the pace of a trace
//!   would do no more on a faster device: their pace is named.
//! - CPU time spent polling uses nothing up: a CPU polls because it has nothing else to do.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::depth::{self, Occupied};
use super::evidence::{Bottleneck, CpuUse};
use crate::figures::Figures;
use crate::locks::LockFigures;
use blockyard_devices::Limit;
use blockyard_devices::compare::{RunLoad, USED_UP};
use blockyard_devices::profile::Device;

/// The share of the CPU time from which waiting for locks, or polling, is worth naming, in percent.
const MUCH_SPINNING: f64 = 15.0;

/// What limits the run of `figures` on `device`.
pub(crate) fn bottleneck(device: &Device, figures: &Figures) -> Bottleneck {
    let load = load(figures);
    match device.model.limit(&figures.family, &load) {
        Some(Limit::Part(limit)) => return Bottleneck::Family(limit),
        Some(Limit::Jobs) => return of_jobs(figures),
        None => {}
    }
    if let Some(of_depth) = depth::limit(device, figures, Occupied::Always) {
        return of_depth;
    }
    let cpu = cpu_use(figures);
    let polling = figures.polling_percent;
    if let Some(lock) = most_wanted(&figures.locks)
        && (figures.spinning_percent >= MUCH_SPINNING || lock.all.held_percent >= USED_UP)
    {
        let held_percent = lock.all.held_percent;
        let spinning_percent = figures.spinning_percent;
        return Bottleneck::Lock { lock: lock.kind, held_percent, cpu, spinning_percent };
    }
    // Of CPUs in use for 100 %, half of it polling, 50 % are work: they are not used up.
    if figures.jobs_cpu_percent * (100.0 - polling) >= USED_UP * 100.0 {
        return Bottleneck::Cpus { cpu };
    }
    if let Some(of_depth) = depth::limit(device, figures, Occupied::Mostly) {
        return of_depth;
    }
    if let Some(limit) = device.model.last_limit(&figures.family, &load) {
        return Bottleneck::Family(limit);
    }
    // A job that pauses for 60 % of its time would gain at most the other 40 % by a faster device.
    let paced = figures.jobs_ns.percent(figures.jobs_ns.paced);
    if paced > 100.0 - USED_UP || idle_by_choice_percent(figures) >= 50.0 {
        return of_jobs(figures);
    }
    Bottleneck::DeviceLatency { commands: figures.at_device, cpu }
}

/// The load of a run on its device.
pub(crate) fn load(figures: &Figures) -> RunLoad {
    RunLoad {
        commands: figures.commands,
        bytes: figures.bytes,
        read_bytes: figures.read_bytes,
        written_bytes: figures.written_bytes,
        bytes_per_s: figures.bytes_per_s,
        device_busy_percent: figures.device_busy_percent,
        pausing_percent: idle_by_choice_percent(figures),
    }
}

/// The pace of the jobs, as the limit.
fn of_jobs(figures: &Figures) -> Bottleneck {
    Bottleneck::Jobs { commands: figures.at_device, cpu: cpu_use(figures) }
}

fn cpu_use(figures: &Figures) -> CpuUse {
    let polling = figures.polling_percent;
    CpuUse {
        percent: figures.jobs_cpu_percent,
        polling_percent: (polling >= MUCH_SPINNING).then_some(polling),
    }
}

/// The share of their time for which jobs pause or think.
fn idle_by_choice_percent(figures: &Figures) -> f64 {
    let of_jobs = figures.jobs_ns;
    of_jobs.percent(of_jobs.pausing + of_jobs.thinking)
}

/// The lock for which CPUs wait most.
fn most_wanted(locks: &[LockFigures]) -> Option<&LockFigures> {
    locks.iter().max_by(|a, b| waited(a).total_cmp(&waited(b)))
}

/// The time that an I/O waits for a lock, in nanoseconds.
fn waited(of: &LockFigures) -> f64 {
    of.all.per_io * of.all.mean_wait_ns
}
