//! What limits a design.
//!
//! # Rules
//!
//! - **[nearest-used-up-resource]** A design is limited by the resource nearest to the device that is used
//!   up: a drive's medium, link, a drive's controller, depth, lock, CPUs, a card's memory, its bus; otherwise by what an MMC host does between
//!   transfers, if it always has a request; otherwise by the latency of the device, if the device is always busy or
//!   jobs neither pause nor think (faults delay requests while the device is idle); and otherwise by the pace of its jobs.
//! - **[depth-fills-while-writes-wait]** A queue fills up while writes wait for room in the medium. If they wait for much of the time,
//!   the medium is named, not the depth or the latency.
//! - **[polling-uses-nothing-up]** CPU time spent polling uses nothing up: a CPU polls because it has
//!   nothing else to do.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::evidence::{Bottleneck, CpuUse};
use super::medium;
use super::run::USED_UP;
use crate::answer::drive::DriveFigures;
use crate::answer::figures::Figures;
use crate::answer::host::HostFigures;
use crate::answer::locks::LockFigures;
use crate::answer::number::{approximate, ratio};
use crate::profile::{Device, DeviceModel, DriveProfile, HbaProfile};
use blockyard::time::Duration;

/// The share of the CPU time from which waiting for locks, or polling, is worth naming, in percent.
const MUCH_SPINNING: f64 = 15.0;

/// The share of the time for which writes wait for the medium from which that is worth naming, in percent.
const MUCH_PRESSED: f64 = 15.0;

/// What limits the run of `figures` on `device` ([nearest-used-up-resource]).
pub(super) fn bottleneck(device: &Device, figures: &Figures) -> Bottleneck {
    let commands = figures.at_device;
    if let DeviceModel::Hba(hba) = device.model {
        let percent = link_percent(&hba, figures);
        if percent >= USED_UP {
            return Bottleneck::Link { percent };
        }
        let depth = f64::from(hba.cmd_per_lun) * f64::from(hba.luns);
        debug_assert!(depth > 0.0, "a host takes a command");
        if 100.0 * commands >= USED_UP * depth {
            return Bottleneck::Depth { commands, depth };
        }
    }
    if let (DeviceModel::Drive(drive), Some(used)) = (&device.model, &figures.drive)
        && let Some(of_drive) = of_drive(drive, used, figures)
    {
        return of_drive;
    }
    let polling = figures.polling_percent;
    let cpu = CpuUse {
        percent: figures.jobs_cpu_percent,
        polling_percent: (polling >= MUCH_SPINNING).then_some(polling),
    };
    if let Some(lock) = most_wanted(&figures.locks)
        && (figures.spinning_percent >= MUCH_SPINNING || lock.held_percent >= USED_UP)
    {
        let (held_percent, spinning_percent) = (lock.held_percent, figures.spinning_percent);
        return Bottleneck::Lock { lock: lock.kind, held_percent, cpu, spinning_percent };
    }
    // [polling-uses-nothing-up]
    if figures.jobs_cpu_percent * (100.0 - polling) >= USED_UP * 100.0 {
        return Bottleneck::Cpus { cpu };
    }
    if let Some(of_host) = figures.mmc.as_ref().and_then(|host| of_host(host, figures)) {
        return of_host;
    }
    let of_jobs = figures.jobs_ns;
    let by_choice = of_jobs.pausing + of_jobs.thinking;
    let asking = of_jobs.alive.saturating_sub(by_choice);
    let asking = 100.0 * ratio(approximate(asking), approximate(of_jobs.alive));
    if figures.device_busy_percent >= USED_UP || asking >= USED_UP {
        return Bottleneck::DeviceLatency { commands, cpu };
    }
    Bottleneck::Jobs { commands, cpu }
}

/// The lock for which CPUs wait most.
fn most_wanted(locks: &[LockFigures]) -> Option<&LockFigures> {
    let waited = |of: &LockFigures| of.per_io * of.mean_wait_ns;
    locks.iter().max_by(|a, b| waited(a).total_cmp(&waited(b)))
}

/// What limits the run of `figures`, if that is a part of the `drive`.
fn of_drive(drive: &DriveProfile, used: &DriveFigures, figures: &Figures) -> Option<Bottleneck> {
    let (commands, depth) = (figures.at_device, f64::from(drive.depth()));
    debug_assert!(depth > 0.0, "a drive takes a command");
    match used {
        _ if medium::is_used_up(used) => medium::limit(used).map(Bottleneck::Medium),
        _ if used.link_percent >= USED_UP => Some(Bottleneck::Link { percent: used.link_percent }),
        _ if used.controller_percent >= USED_UP => {
            Some(Bottleneck::Controller { percent: used.controller_percent })
        }
        // [depth-fills-while-writes-wait]
        _ if used.load.pressed_percent >= MUCH_PRESSED => {
            medium::limit(used).map(Bottleneck::Medium)
        }
        // Of several queues, only some may be in use.
        _ if drive.hw_queues() == 1 && 100.0 * commands >= USED_UP * depth => {
            Some(Bottleneck::Depth { commands, depth })
        }
        _ => None,
    }
}

/// What limits the run of `figures`, if that is its MMC `host` or the card.
fn of_host(host: &HostFigures, figures: &Figures) -> Option<Bottleneck> {
    let busy = figures.device_busy_percent;
    if host.memory_percent >= USED_UP {
        return Some(Bottleneck::CardMemory { percent: host.memory_percent });
    }
    if busy >= USED_UP {
        return Some(Bottleneck::BusAndCard { percent: busy });
    }
    let present = 100.0 - host.absent_percent;
    (present >= USED_UP).then_some(Bottleneck::BetweenTransfers { idle_percent: present - busy })
}

/// The share of the time in which the target's port works. Reads and writes are taken to have their share of the
/// commands by their share of the bytes.
fn link_percent(hba: &HbaProfile, figures: &Figures) -> f64 {
    let commands_per_byte = ratio(approximate(figures.commands), approximate(figures.bytes));
    let seconds_of = |bytes, port: Duration, rate| {
        let of_commands = commands_per_byte * approximate(port.as_ns()) / 1e9;
        approximate(bytes) * (of_commands + ratio(1.0, approximate(rate)))
    };
    let seconds = seconds_of(figures.read_bytes, hba.port_read, hba.link_read)
        + seconds_of(figures.written_bytes, hba.port_write, hba.link_write);
    100.0 * ratio(seconds * approximate(figures.bytes_per_s), approximate(figures.bytes))
}
