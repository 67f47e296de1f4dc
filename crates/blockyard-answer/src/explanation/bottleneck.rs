//! The bottleneck of a design.
//!
//! # Choices
//!
//! - A design is limited by the resource nearest to the device that is used up: a drive's medium,
//!   link, a drive's controller, depth, lock, CPUs, a card's memory, its bus. If none is, it is
//!   limited by the depth if requests wait for that and most of it is taken; on an MMC host that
//!   always has a request, by the larger part of the time: bus and card busy, or what the host does
//!   between transfers; otherwise by the latency of the device or the pace of its jobs.
//! - A queue fills up while writes wait for room in the medium. If they wait for much of the time,
//!   the medium is named, not the depth or the latency: unless jobs pause for more of their time
//!   than writes wait.
//! - Of the latency of the device and the pace of the jobs, the larger part of the jobs' time is
//!   named: pauses and think time, or the rest. Jobs that keep to a rate or to the pace of a trace
//!   would do no more on a faster device: their pace is named.
//! - CPU time spent polling uses nothing up: a CPU polls because it has nothing else to do.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::depth::{self, Occupied};
use super::evidence::{Bottleneck, CpuUse, FrontPart};
use super::medium;
use super::run::USED_UP;
use crate::drive::DriveFigures;
use crate::figures::Figures;
use crate::host::HostFigures;
use crate::locks::LockFigures;
use blockyard::time::Duration;
use blockyard_devices::profile::{Device, DeviceModel, DriveProfile, FrontProfile, HbaProfile};
use blockyard_text::number::{approximate, ratio};

/// The share of the CPU time from which waiting for locks, or polling, is worth naming, in percent.
const MUCH_SPINNING: f64 = 15.0;

/// The share of the time for which writes wait for the medium from which that is worth naming, in
/// percent.
const MUCH_FULL: f64 = 15.0;

/// What limits the run of `figures` on `device`.
pub(crate) fn bottleneck(device: &Device, figures: &Figures) -> Bottleneck {
    if let DeviceModel::Hba(hba) = device.model {
        let percent = link_percent(&hba, figures);
        if percent >= USED_UP {
            return Bottleneck::Link { percent };
        }
    }
    if let (DeviceModel::Drive(drive), Some(used)) = (&device.model, &figures.drive)
        && let Some(of_drive) = of_drive(drive, used, figures)
    {
        return of_drive;
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
    if let Some(of_host) = figures.mmc.as_ref().and_then(|host| of_host(host, figures)) {
        return of_host;
    }
    // A job that pauses for 60 % of its time would gain at most the other 40 % by a faster device.
    let paced = figures.jobs_ns.percent(figures.jobs_ns.paced);
    if paced > 100.0 - USED_UP || idle_by_choice_percent(figures) >= 50.0 {
        return of_jobs(figures);
    }
    Bottleneck::DeviceLatency { commands: figures.at_device, cpu }
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

/// What limits the run of `figures`, if that is a part of the `drive`.
fn of_drive(drive: &DriveProfile, used: &DriveFigures, figures: &Figures) -> Option<Bottleneck> {
    let commands = used.at_device;
    match used {
        _ if medium::is_used_up(used) => of_medium(used, commands),
        _ if used.link_percent >= USED_UP => Some(Bottleneck::Link { percent: used.link_percent }),
        _ if used.controller_percent >= USED_UP => {
            let part = front_part(drive);
            Some(Bottleneck::Controller { part, percent: used.controller_percent })
        }
        _ if used.engine_percent >= USED_UP => Some(Bottleneck::Controller {
            part: FrontPart::VirtioThread,
            percent: used.engine_percent,
        }),
        // While writes wait for room in the medium, the queue fills up: its depth is no cause.
        _ if used.load.buffer_full_percent >= MUCH_FULL => {
            let jobs_pause = idle_by_choice_percent(figures) > used.load.buffer_full_percent;
            if jobs_pause { Some(of_jobs(figures)) } else { of_medium(used, commands) }
        }
        _ if medium::queued_percent(used, commands).is_some() => of_medium(used, commands),
        _ => None,
    }
}

/// The medium as the bottleneck, if `commands` at the device load it.
fn of_medium(used: &DriveFigures, commands: f64) -> Option<Bottleneck> {
    medium::limit(used, commands).map(Bottleneck::Medium)
}

/// What takes the commands of a drive one at a time.
const fn front_part(drive: &DriveProfile) -> FrontPart {
    match drive.front {
        FrontProfile::Virtio(_) => FrontPart::VirtioThread,
        FrontProfile::Usb(_) => FrontPart::UsbBridge,
        _ => FrontPart::Controller,
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
    let idle_percent = present - busy;
    (present >= USED_UP).then_some(if busy >= idle_percent {
        Bottleneck::BusAndCard { percent: busy }
    } else {
        Bottleneck::BetweenTransfers { idle_percent }
    })
}

/// The share of the time in which the target's port works. Reads and writes are taken to have their
/// share of the commands by their share of the bytes.
fn link_percent(hba: &HbaProfile, figures: &Figures) -> f64 {
    let commands_per_byte = ratio(approximate(figures.commands), approximate(figures.bytes));
    let seconds = seconds_of(figures.read_bytes, hba.port_read, hba.link_read, commands_per_byte)
        + seconds_of(figures.written_bytes, hba.port_write, hba.link_write, commands_per_byte);
    100.0 * ratio(seconds * approximate(figures.bytes_per_s), approximate(figures.bytes))
}

/// Seconds for which `bytes` and their commands use the link in one direction.
fn seconds_of(bytes: u64, port: Duration, rate: u64, commands_per_byte: f64) -> f64 {
    let of_commands = commands_per_byte * approximate(port.as_ns()) / 1e9;
    approximate(bytes) * (of_commands + ratio(1.0, approximate(rate)))
}
