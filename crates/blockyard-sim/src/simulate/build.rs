//! Builds a world from a device, a design and the conditions of a run.

use super::{Conditions, MakeElevator, SimulationError};
use crate::machine::cost::CostSink;
use crate::machine::poll::PolledQueues;
use crate::task::READER_BIOS_MAX;
use crate::world::{ADDED_ACTORS_MAX, SimHost, World};
use blockyard::hardware_queue::QueueMap;
use blockyard::host::Host;
use blockyard::layer::checked::Terms;
use blockyard::layer::fault::{Action, FaultRule};
use blockyard::policy::{ElevatorKind, Model as Locking};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::stats::StageStats;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId, SECTOR_BYTES};
use blockyard_devices::data::history::Cache;
use blockyard_devices::data::medium::Media;
use blockyard_devices::data::verify::{Verifier, Verify};
use blockyard_devices::live::Live;
use blockyard_devices::profile::{
    Design, Device, DeviceModel, FaultRules, KindQueues, NoCard, POLL_QUEUES, READ_QUEUES, asked,
};
use blockyard_devices::stack::{Layering, Stack};
use blockyard_devices::{Model, NoHost, Queues, Setup};
use blockyard_fio::job::Job;
use blockyard_trace::observe::{Observer, Setting};
use std::borrow::Cow;

/// Returns the hardware queues that serve only one kind of I/O, with their keys.
fn kinds(design: &Design) -> [(&'static str, KindQueues); 2] {
    [(READ_QUEUES, design.read_queues), (POLL_QUEUES, design.poll_queues)]
}

/// Checks that a kind of I/O has at most one hardware queue for each processor.
pub(super) fn check_queues(design: &Design, cpus: u16) -> Result<(), SimulationError> {
    let Some((key, KindQueues { count, line })) =
        kinds(design).into_iter().find(|(_, kind)| kind.count > cpus)
    else {
        return Ok(());
    };
    Err(SimulationError::TooManyQueues { file: design.name.clone(), line, key, count, cpus })
}

pub(super) fn build_world<O: Observer>(
    jobs: &[Job],
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    mut observer: O,
) -> Result<World<O>, SimulationError> {
    let policies = design.policies;
    let machine = device.machine;
    let all_draws = Prng::new(conditions.seed);
    let draws = all_draws.fork(0);
    let Queues { hctxs: own_hctxs, disks, shared, .. } = device.model.queues(design.host);
    let default = match policies.model {
        Locking::SingleLock => 1,
        Locking::Multi => design.hw_queues.unwrap_or(own_hctxs).min(own_hctxs).min(machine.cpus),
    };
    let reads = design.read_queues.count;
    let polls = design.poll_queues.count;
    let hctxs = default + reads + polls;
    assert!(default > 0, "a disk must have a hardware queue");
    let mut model = model(device, design, hctxs, draws)?;
    if conditions.verify.is_some() {
        model.keep_data(all_draws.fork(5));
    }
    let instances: u32 = jobs.iter().map(|job| job.numjobs).sum();
    assert!(instances > 0, "a job file must have a job, or a trace a submitter");
    let tags = TagSetConfig {
        hctxs,
        depth: depth(device, design),
        reserved: 0,
        shared_over_hctxs: shared,
        queues: disks,
        max_waiters: instances + ADDED_ACTORS_MAX,
    };
    observer.world_begins(&Setting {
        name: design.name.clone(),
        device: device.name.clone(),
        cpus: machine.cpus,
        hctxs,
        depth: tags.depth,
        mmc: matches!(device.model, DeviceModel::Mmc(_)),
        lanes: None,
    });
    let costs = CostSink::new(&machine, &policies, design.lock_batch, &tags);
    let counts = (costs, StageStats::watching(disks, hctxs));
    let usual = QueueConfig::new(machine.cpus, hctxs, device.limits.clone(), policies);
    let config = QueueConfig {
        max_bios: bios_needed(jobs, device, design),
        max_waiters: instances + ADDED_ACTORS_MAX,
        map: QueueMap::with_kinds(machine.cpus, default, reads, polls),
        timeout: design.timeout.unwrap_or(usual.timeout),
        ..usual
    };
    let terms = vec![Terms::of(&config, &tags); usize::from(disks)];
    let limits = core::iter::repeat_n(&device.limits, usize::from(disks));
    let layers = Layering {
        media: conditions.verify.map(|_| Media::new(limits, &tags, all_draws.fork(3))),
        faults: conditions.faults,
        draws: all_draws.fork(2),
        terms: conditions.checked.then_some(&terms),
    };
    let stack = Stack::new(model, layers, &tags);
    let host = Host::new(stack, (counts, observer), tags);
    Ok(join_world(device, design, host, &config, tags, conditions.elevator))
}

/// Returns a world on the machine of `device`, with a queue of `config` for each disk of `host`.
fn join_world<O: Observer>(
    device: &Device,
    design: &Design,
    host: SimHost<O>,
    config: &QueueConfig,
    tags: TagSetConfig,
    elevator: Option<MakeElevator>,
) -> World<O> {
    let machine = device.machine;
    let queues: Vec<_> = (0..tags.queues)
        .map(|disk| match elevator {
            None => RequestQueue::new(QueueId(disk), config.clone(), &host),
            Some(make) => RequestQueue::with_elevator(
                QueueId(disk),
                config.clone(),
                &host,
                make(config, &tags),
            ),
        })
        .collect();
    let worker_cpu: Vec<_> =
        (0..tags.hctxs).map(|hctx| first_cpu_of(&config.map, HctxId(hctx))).collect();
    debug_assert!(
        worker_cpu.iter().all(|cpu| cpu.0 < machine.cpus),
        "a worker must run on a CPU of the machine"
    );
    let polled = PolledQueues::new(&config.map);
    let mut world = World::new(machine, &design.policies, host, queues, worker_cpu, polled);
    world.read_ahead(design.read_ahead.reach(&device.limits));
    if design.submitter_sleeps {
        world.let_submitters_sleep();
    }
    world
}

/// Returns the first CPU that a hardware queue serves. Its worker runs there.
fn first_cpu_of(map: &QueueMap, hctx: HctxId) -> CpuId {
    let cpu = [&map.default, &map.read, &map.poll]
        .into_iter()
        .find_map(|kind| kind.iter().position(|of_cpu| *of_cpu == hctx))
        .expect("every hardware queue should serve a CPU");
    CpuId(u16::try_from(cpu).expect("a CPU number should fit 16 bits"))
}

/// Returns the model of `device` with `hctxs` hardware queues. `draws` supplies its random numbers.
fn model(
    device: &Device,
    design: &Design,
    hctxs: u16,
    draws: Prng,
) -> Result<Model, SimulationError> {
    let setup = Setup {
        limits: &device.limits,
        cache: device.cache,
        cpus: device.machine.cpus,
        hctxs,
        polled: design.poll_queues.count.min(hctxs),
        host: design.host,
        unmaps: design.unmaps,
        btt: design.btt.as_ref(),
        draws,
    };
    device.model.build(setup).map_err(|NoHost { policy, why }| {
        let ask = asked(&policy, why);
        let (file, line) = (design.name.clone(), design.host_lines.of(ask.key));
        SimulationError::Host { file, line, ask, device: device.name.clone(), why }
    })
}

/// Returns `device` alone, with one hardware queue and the host of `design`. `seed` determines its
/// random draws.
///
/// # Errors
///
/// [`SimulationError::Host`], [`SimulationError::NotMmc`] or a similar error if the design does not
/// work on the device.
pub fn live(device: &Device, design: &Design, seed: u64) -> Result<Live, SimulationError> {
    check_host(design, device)?;
    check_pmem(design, device)?;
    if matches!(device.model, DeviceModel::Pmem(_)) {
        return Err(SimulationError::NotServed { device: device.name.clone() });
    }
    let draws = Prng::new(seed).fork(0);
    Ok(Live::new(model(device, design, 1, draws)?, &device.machine))
}

/// Returns the depth of one hardware queue of `device` under `design`, in requests.
#[must_use]
pub fn depth(device: &Device, design: &Design) -> u16 {
    let depth = device.model.queues(design.host).depth;
    design.depth.map_or(depth, |asked| asked.min(depth))
}

/// Checks that the design suits the kind of device, and the device its machine.
pub(super) fn check_host(design: &Design, device: &Device) -> Result<(), SimulationError> {
    let cpus = device.machine.cpus;
    match device.model {
        DeviceModel::Mmc(mmc) if mmc.host.interrupt_cpu >= cpus => {
            Err(SimulationError::NoInterruptCpu { device: device.name.clone(), cpus })
        }
        // An MMC host finds a request by its tag alone, and raises an interrupt for each.
        DeviceModel::Mmc(_) => match kinds(design).into_iter().find(|(_, kind)| kind.count > 0) {
            None => Ok(()),
            Some((key, KindQueues { line, .. })) => {
                Err(SimulationError::OneQueue { file: design.name.clone(), line, key })
            }
        },
        _ if design.host.is_some() => Err(SimulationError::NotMmc {
            design: design.name.clone(),
            device: device.name.clone(),
            kind: device.model.kind(),
        }),
        _ => Ok(()),
    }
}

/// Checks that only persistent memory, which takes bios without queueing them, has a block
/// translation table.
pub(super) fn check_pmem(design: &Design, device: &Device) -> Result<(), SimulationError> {
    if !matches!(device.model, DeviceModel::Pmem(_)) {
        if design.btt.is_none() {
            return Ok(());
        }
        return Err(SimulationError::NotPmem {
            design: design.name.clone(),
            device: device.name.clone(),
            kind: device.model.kind(),
        });
    }
    let queued = design.policies.elevator != ElevatorKind::None
        || design.policies.model == Locking::SingleLock
        || kinds(design).iter().any(|(_, kind)| kind.count > 0);
    if queued {
        return Err(SimulationError::Queued {
            design: design.name.clone(),
            device: device.name.clone(),
        });
    }
    Ok(())
}

/// Returns `device` with the faults of its card and host. Checks that the device has the disks and
/// sectors that the rules name.
pub(super) fn check_faults<'a>(
    rules: &FaultRules,
    device: &'a Device,
) -> Result<Cow<'a, Device>, SimulationError> {
    for rule in &rules.rules {
        if let Some(words) = misfit(rule, device) {
            let file = rules.name.clone();
            return Err(SimulationError::Faults { file, rule: rule.name.clone(), words });
        }
    }
    rules.strike(device).map_err(|NoCard| SimulationError::CardFaults {
        file: rules.name.clone(),
        device: device.name.clone(),
        kind: device.model.kind(),
    })
}

/// Returns why a fault rule does not fit `device`: it names a disk or a sector that the device does
/// not have.
fn misfit(rule: &FaultRule, device: &Device) -> Option<String> {
    let disks = device.disks();
    let capacity = device.limits.capacity_sectors;
    if let Some(disk) = rule.when.queue.filter(|disk| disk.0 >= disks) {
        return Some(format!("there is no disk {}: the device has {disks}", disk.0));
    }
    match rule.then {
        Action::MisdirectWrite(sector) if sector >= capacity => {
            Some(format!("sector {sector} is beyond the end of the disk, {capacity}"))
        }
        _ => None,
    }
}

/// Makes `world` verify the data of `device`, which its stack keeps.
pub(super) fn begin_verifying<O: Observer>(
    world: &mut World<O>,
    verify: &Verify,
    device: &Device,
    seed: u64,
) {
    // Durability matters only if power is cut or a card is reset: both lose the cache.
    let has_cache = match &device.model {
        DeviceModel::Mmc(mmc) => mmc.has_cache(),
        _ => verify.cuts_power(),
    };
    let volatile = device.limits.write_cache && has_cache;
    let cache = if volatile { Cache::Volatile } else { Cache::WriteThrough };
    let disks = u16::try_from(world.queues().len()).expect("a number of disks should fit 16 bits");
    let verifier = Verifier::new(disks, cache, Prng::new(seed).fork(4));
    world.verify(verifier.keeping(verify.violations_kept));
    for at in &verify.power_cuts {
        world.cut_power(Instant::ZERO + *at, Duration::ZERO);
    }
    if let Some(period) = verify.power_cut_every {
        world.cut_power(Instant::ZERO + period, period);
    }
}

/// Returns the maximum number of bios that all jobs can have in flight, including the parts of
/// split bios.
fn bios_needed(jobs: &[Job], device: &Device, design: &Design) -> u32 {
    let limits = &device.limits;
    let page_sectors = 4096 / SECTOR_BYTES;
    let chunk = if limits.chunk_sectors == 0 { u32::MAX } else { limits.chunk_sectors };
    let by_segments = u32::from(limits.max_segments) * page_sectors;
    let part = limits.max_sectors.min(by_segments).min(chunk).max(1);
    debug_assert!(part <= limits.max_sectors.max(1), "a part must not be longer than a request");
    let window = design.read_ahead.reach(limits).longest() * u64::from(page_sectors);
    let mut needed = 0;
    for job in jobs {
        let largest = job.block.each().into_iter().map(|block| block.max_bytes()).max();
        let (bios, sectors) = if job.direct {
            (job.depth(), u64::from(largest.unwrap_or(0) / SECTOR_BYTES))
        } else {
            (READER_BIOS_MAX, window)
        };
        // A bio of 64 sectors that begins in the middle of a chunk of 16 has five parts. The bio
        // that is split counts, too.
        let parts = sectors.div_ceil(part.into()) + 1;
        needed += u64::from(job.numjobs) * u64::from(bios) * (parts + 1);
    }
    u32::try_from(needed).unwrap_or(u32::MAX).clamp(64, 1 << 22)
}
