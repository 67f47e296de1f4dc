//! A device under a design: the checks that one suits the other, and the model that both build.

use crate::families::{DeviceModel, Model};
use crate::family::{NoHost, Queues, Setup};
use crate::profile::{
    Ask, Design, Device, KindQueues, POLL_QUEUES, READ_QUEUES, WbtLatency, asked,
};
use blockyard::policy::{
    AdiosBatchOrder, AdiosTunables, ElevatorKind, Model as Locking, Policies, SchedDepth,
    WbtTunables,
};
use blockyard::prng::Prng;
use blockyard::time::Duration;
use blockyard_mmc::block::Unsupported;
use std::fmt;

/// The reason why a design and a device do not suit each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Unsuited {
    /// The design has more hardware queues for a kind of I/O than the machine has processors.
    TooManyQueues {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: &'static str,
        /// The number of queues in the design.
        count: u16,
        /// The number of processors.
        cpus: u16,
    },
    /// The design has hardware queues for a kind of I/O, but an MMC host has one queue for all
    /// kinds.
    OneQueue {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// The design requires a feature that the MMC host or its card does not have.
    Host {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The required feature, and the values that would work.
        ask: Ask,
        /// The device.
        device: String,
        /// The reason.
        why: Unsupported,
    },
    /// The design is for an MMC host, but the device has none.
    NotMmc {
        /// The design.
        design: String,
        /// The device.
        device: String,
        /// The kind of that device, with an article.
        kind: &'static str,
    },
    /// The design has a block translation table, but the device is not persistent memory.
    NotPmem {
        /// The design.
        design: String,
        /// The device.
        device: String,
        /// The kind of that device, with an article.
        kind: &'static str,
    },
    /// The device cannot serve as the model of a served disk.
    NotServed {
        /// The device.
        device: String,
    },
    /// The design queues requests, but persistent memory takes bios without queueing them.
    Queued {
        /// The design.
        design: String,
        /// The device.
        device: String,
    },
    /// The design sorts batches of adios by sector, which ADIOS refuses (`EINVAL`) unless the disk
    /// rotates.
    Sweep {
        /// The design.
        design: String,
        /// The device.
        device: String,
    },
    /// The machine does not have the processor that takes the host's interrupts.
    NoInterruptCpu {
        /// The device.
        device: String,
        /// The number of processors.
        cpus: u16,
    },
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyQueues { file, line, key, count, cpus } => write!(
                f,
                "{file}:{line}: `{key}` is `{count}`, out of range (0 to {cpus}): the device's machine has {cpus} CPUs"
            ),
            Self::OneQueue { file, line, key } => write!(
                f,
                "{file}:{line}: `{key}` does not work on eMMC and SD devices: their host has one hardware queue"
            ),
            Self::Host { file, line, ask: Ask { key, value, remedy }, device, why } => write!(
                f,
                "{file}:{line}: `{key}` is `{value}`, and on device `{device}` {why}: {remedy}"
            ),
            Self::NotMmc { design, device, kind } => {
                write!(f, "`{design}` only works on eMMC and SD devices; `{device}` is {kind}")
            }
            Self::NotPmem { design, device, kind } => {
                write!(f, "`{design}` only works on persistent memory; `{device}` is {kind}")
            }
            Self::NotServed { device } => write!(
                f,
                "a disk cannot be served as `{device}`: persistent memory has no timing apart from its CPU's"
            ),
            Self::Queued { design, device } => write!(
                f,
                "`{design}` does not work on `{device}`: persistent memory has no scheduler, no shared lock and \
                 no queues; try `pmem-raw` or `btt`"
            ),
            Self::Sweep { design, device } => write!(
                f,
                "`{design}`: `batch-order` of `[queue.adios]` is 1, which ADIOS refuses for a device that does not \
                 rotate (EINVAL), as `{device}`: use 0"
            ),
            Self::NoInterruptCpu { device, cpus } => write!(
                f,
                "device `{device}`: `interrupt-cpu` of `[host]` is not among the machine's CPUs, 0 to {}",
                cpus - 1
            ),
        }
    }
}

impl core::error::Error for Unsuited {}

impl Unsuited {
    /// If another design may run on the device, returns what this one lacks or needs, in a few
    /// words.
    #[must_use]
    pub fn unsuited_design(&self) -> Option<String> {
        Some(match self {
            Self::Host { why: Unsupported::NoEngine | Unsupported::NoCardQueue, .. } => {
                "needs a command queue (CQE)".to_owned()
            }
            Self::Host { why, .. } => why.to_string(),
            Self::NotMmc { .. } => "needs eMMC or SD".to_owned(),
            Self::NotPmem { .. } => "needs persistent memory".to_owned(),
            Self::Queued { .. } => "persistent memory has no queue".to_owned(),
            Self::Sweep { .. } => "`batch-order = 1` needs a rotational disk".to_owned(),
            Self::OneQueue { key, .. } => format!("`{key}`: the host has one hardware queue"),
            Self::TooManyQueues { key, count, cpus, .. } => {
                format!("`{key} = {count}` on {cpus} CPUs")
            }
            Self::NotServed { .. } | Self::NoInterruptCpu { .. } => return None,
        })
    }
}

/// Returns the hardware queues that serve only one kind of I/O, with their keys.
fn kinds(design: &Design) -> [(&'static str, KindQueues); 2] {
    [(READ_QUEUES, design.read_queues), (POLL_QUEUES, design.poll_queues)]
}

/// Checks that a kind of I/O has at most one hardware queue for each of `cpus` processors.
///
/// # Errors
///
/// [`Unsuited::TooManyQueues`].
pub fn check_queues(design: &Design, cpus: u16) -> Result<(), Unsuited> {
    let Some((key, KindQueues { count, line })) =
        kinds(design).into_iter().find(|(_, kind)| kind.count > cpus)
    else {
        return Ok(());
    };
    Err(Unsuited::TooManyQueues { file: design.name.clone(), line, key, count, cpus })
}

/// Checks that the design suits the kind of device, and the device its machine. The driver of an
/// MMC host is checked by [`model`].
///
/// # Errors
///
/// Any [`Unsuited`] but [`Unsuited::TooManyQueues`], [`Unsuited::Host`] and
/// [`Unsuited::NotServed`].
pub fn check(design: &Design, device: &Device) -> Result<(), Unsuited> {
    check_host(design, device)?;
    check_batches(design, device)?;
    check_pmem(design, device)
}

/// Checks that only a disk that rotates has batches of adios by sector.
fn check_batches(design: &Design, device: &Device) -> Result<(), Unsuited> {
    match design.policies.elevator {
        ElevatorKind::Adios(AdiosTunables { batch_order: AdiosBatchOrder::Sweep, .. })
            if !device.limits.rotational =>
        {
            Err(Unsuited::Sweep { design: design.name.clone(), device: device.name.clone() })
        }
        _ => Ok(()),
    }
}

/// Checks that only an MMC host has a design for one, with one hardware queue and a processor for
/// its interrupts.
fn check_host(design: &Design, device: &Device) -> Result<(), Unsuited> {
    let cpus = device.machine.cpus;
    match device.model {
        DeviceModel::Mmc(mmc) if mmc.host.interrupt_cpu >= cpus => {
            Err(Unsuited::NoInterruptCpu { device: device.name.clone(), cpus })
        }
        // An MMC host finds a request by its tag alone, and raises an interrupt for each.
        DeviceModel::Mmc(_) => match kinds(design).into_iter().find(|(_, kind)| kind.count > 0) {
            None => Ok(()),
            Some((key, KindQueues { line, .. })) => {
                Err(Unsuited::OneQueue { file: design.name.clone(), line, key })
            }
        },
        _ if design.host.is_some() => Err(Unsuited::NotMmc {
            design: design.name.clone(),
            device: device.name.clone(),
            kind: device.model.kind(),
        }),
        _ => Ok(()),
    }
}

/// Checks that only persistent memory, which takes bios without queueing them, has a block
/// translation table.
fn check_pmem(design: &Design, device: &Device) -> Result<(), Unsuited> {
    if !matches!(device.model, DeviceModel::Pmem(_)) {
        if design.btt.is_none() {
            return Ok(());
        }
        return Err(Unsuited::NotPmem {
            design: design.name.clone(),
            device: device.name.clone(),
            kind: device.model.kind(),
        });
    }
    let queued = design.policies.elevator != ElevatorKind::None
        || design.policies.model == Locking::SingleLock
        || kinds(design).iter().any(|(_, kind)| kind.count > 0);
    if queued {
        return Err(Unsuited::Queued { design: design.name.clone(), device: device.name.clone() });
    }
    Ok(())
}

/// Returns the depth of one hardware queue of `device` under `design`, in requests. Of disks that
/// have tags of their own, it is that of one disk.
#[must_use]
pub fn depth(device: &Device, design: &Design) -> u16 {
    let depth = device.model.queues(design.host).depth;
    design.depth.map_or(depth, |asked| asked.min(depth))
}

/// Returns the driver tags of one hardware queue of `device` under `design`. Disks that have tags
/// of their own get them in one set, of which each uses its part: two disks of 32 tags have 64.
#[must_use]
pub fn driver_tags(device: &Device, design: &Design) -> u16 {
    let Queues { disks, own_tags, .. } = device.model.queues(design.host);
    let depth = depth(device, design);
    if own_tags { depth * disks } else { depth }
}

/// Returns the policies of `design` for `device`. An elevator has requests by the depth of a disk:
/// for each of two disks with 32 tags of their own it has 64, not twice all of their tags.
///
/// Writeback is throttled by the requests that Linux counts as those of the queue: the commands of
/// a SCSI disk, and otherwise those that the elevator holds or, without one, the driver tags. Bios
/// to persistent memory are not.
#[must_use]
pub fn policies(device: &Device, design: &Design) -> Policies {
    let Queues { own_tags, scsi_depth, .. } = device.model.queues(design.host);
    let depth = depth(device, design);
    let sched_depth = match design.policies.sched_depth {
        SchedDepth::FromDeviceDepth if own_tags => {
            SchedDepth::Fixed(SchedDepth::FromDeviceDepth.tags(depth.into()))
        }
        sched_depth => sched_depth,
    };
    let requests = match design.policies.elevator {
        ElevatorKind::None => depth.into(),
        _ => sched_depth.tags(depth.into()),
    };
    let queue_depth = scsi_depth.map_or(requests, |commands| commands.min(depth).into());
    let latency = match design.wbt_latency {
        _ if matches!(device.model, DeviceModel::Pmem(_)) => None,
        WbtLatency::Off => None,
        WbtLatency::Linux if device.limits.rotational => Some(Duration::from_ms(75)),
        WbtLatency::Linux => Some(Duration::from_ms(2)),
        WbtLatency::Target(latency) => Some(latency),
    };
    let wbt = latency.map(|latency| WbtTunables { latency, queue_depth });
    Policies { sched_depth, wbt, ..design.policies }
}

/// Returns the model of `device` with `hctxs` hardware queues. `draws` supplies its random numbers.
///
/// # Errors
///
/// [`Unsuited::Host`] if the MMC host or its card lacks a feature that the design requires.
pub fn model(device: &Device, design: &Design, hctxs: u16, draws: Prng) -> Result<Model, Unsuited> {
    let setup = Setup {
        limits: &device.limits,
        cache: device.cache,
        cpus: device.machine.cpus,
        hctxs,
        polled: design.poll_queues.count.min(hctxs),
        host: design.host,
        unmaps: design.unmaps,
        sd_cache: design.sd_cache,
        btt: design.btt.as_ref(),
        draws,
    };
    device.model.build(setup).map_err(|NoHost { policy, why }| {
        let ask = asked(&policy, why);
        let line = design.host_lines.of(ask.key);
        Unsuited::Host { file: design.name.clone(), line, ask, device: device.name.clone(), why }
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::profile::{Design, Device};

    /// The attribute `batch_order` of ADIOS 3.1.9 is at most 1 on a rotational disk, and 0 on any
    /// other device.
    #[test]
    fn only_a_rotational_disk_has_batches_by_sector() {
        let text = "base = \"mq-adios\"\n[queue.adios]\nbatch-order = 1\n";
        let design = Design::parse("mine", text).unwrap();
        check(&design, &Device::lookup("hdd-7200").unwrap()).unwrap();
        let error = check(&design, &Device::lookup("sata-ssd").unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`mine`: `batch-order` of `[queue.adios]` is 1, which ADIOS refuses for a device that \
             does not rotate (EINVAL), as `sata-ssd`: use 0"
        );
    }
}
