//! Builds a world from a device, a design and the conditions of a run.

use super::plan::writes;
use super::{Conditions, MakeElevator, SimulationError};
use crate::machine::cost::CostSink;
use crate::machine::poll::PolledQueues;
use crate::page_cache::FileSystem;
use crate::task::{READER_BIOS_MAX, SYNC_PAGES_MAX};
use crate::world::{ADDED_ACTORS_MAX, FLUSHER_PAGES_MAX, SimHost, World};
use blockyard::elevator::bfq::GROUPS_MAX;
use blockyard::hardware_queue::QueueMap;
use blockyard::host::Host;
use blockyard::layer::checked::Terms;
use blockyard::layer::fault::{Action, FaultRule};
use blockyard::policy::Model as Locking;
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::stats::StageStats;
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId, SECTOR_BYTES};
use blockyard_devices::Queues;
use blockyard_devices::data::history::Cache;
use blockyard_devices::data::medium::Media;
use blockyard_devices::data::verify::{Verifier, Verify};
use blockyard_devices::pairing;
use blockyard_devices::profile::{
    self, Design, Device, DeviceModel, FaultRules, NoCard, WorkerTurn,
};
use blockyard_devices::stack::{Layering, Stack};
use blockyard_fio::job::{CGROUPS_MAX, Job, cgroups};
use blockyard_trace::observe::{Observer, Setting};
use std::borrow::Cow;

// A group that jobs may name is one that bfq tells apart.
const _: () = assert!(CGROUPS_MAX as usize == GROUPS_MAX);

pub(super) fn build_world<'o>(
    jobs: &[Job],
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    mut observer: Option<&'o mut dyn Observer>,
) -> Result<World<'o>, SimulationError> {
    let policies = pairing::policies(device, design);
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
    let mut model = pairing::model(device, design, hctxs, draws)?;
    if conditions.verify.is_some() {
        model.keep_data(all_draws.fork(5));
    }
    let instances: u32 = jobs.iter().map(|job| job.numjobs).sum();
    assert!(instances > 0, "a job file must have a job, or a trace a submitter");
    let tags = TagSetConfig {
        hctxs,
        depth: pairing::driver_tags(device, design),
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
        max_bios: bios_needed(jobs, device, design, conditions.file_system),
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
    let mut host = Host::new(stack, (counts, observer), tags);
    host.limit_queues(pairing::depth(device, design));
    let mut world = join_world(device, design, host, &config, tags, conditions.elevator);
    world.weigh_groups(&cgroups(jobs));
    let file_system = conditions.file_system.filter(|_| jobs.iter().any(uses_files));
    write_back(&mut world, (device, design), jobs.iter().any(dirties_pages), file_system);
    Ok(world)
}

/// Whether it matters to `job` that its files are those of a file system: it writes, or has pages,
/// which stay in the cache when those of a device leave it.
fn uses_files(job: &Job) -> bool {
    !job.direct || writes(job)
}

/// Lets `world` write dirty pages of the device back, if there may be some, and puts `file_system`
/// on each disk.
fn write_back(
    world: &mut World<'_>,
    (device, design): (&Device, &Design),
    dirties: bool,
    file_system: Option<&profile::FileSystem>,
) {
    if dirties {
        world.flush(design.raises_background_part);
    }
    if let Some(profile) = file_system {
        let disk_bytes = device.limits.capacity_sectors * u64::from(SECTOR_BYTES);
        let disks = usize::from(device.disks());
        world.put_file_system(FileSystem::new(profile, disks, disk_bytes));
    }
}

/// Returns a world on the machine of `device`, with a queue of `config` for each disk of `host`.
fn join_world<'o>(
    device: &Device,
    design: &Design,
    host: SimHost<'o>,
    config: &QueueConfig,
    tags: TagSetConfig,
    elevator: Option<MakeElevator>,
) -> World<'o> {
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
        (0..tags.hctxs).map(|hctx| cpus_of(&config.map, HctxId(hctx))[0]).collect();
    debug_assert!(
        worker_cpu.iter().all(|cpu| cpu.0 < machine.cpus),
        "a worker must run on a CPU of the machine"
    );
    let polled = PolledQueues::new(&config.map);
    let mut world = World::new(machine, &design.policies, host, queues, worker_cpu, polled);
    world.read_ahead(design.read_ahead.reach(&device.limits));
    if design.worker == WorkerTurn::ByLag {
        let cpus = (0..tags.hctxs).map(|hctx| cpus_of(&config.map, HctxId(hctx))).collect();
        world.run_workers_by_lag(cpus);
    }
    if design.submitter_sleeps {
        world.let_submitters_sleep();
    }
    world
}

/// Returns the CPUs that a hardware queue serves. Its worker runs on the first one, or on all in
/// turn.
fn cpus_of(map: &QueueMap, hctx: HctxId) -> Vec<CpuId> {
    let kinds = [&map.default, &map.read, &map.poll];
    // A hardware queue serves one kind.
    let kind = kinds.into_iter().find(|kind| kind.contains(&hctx));
    let kind = kind.expect("every hardware queue should serve a CPU");
    let served = (0..).zip(kind).filter(|(_, of_cpu)| **of_cpu == hctx);
    served.map(|(cpu, _)| CpuId(cpu)).collect()
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

/// Lets `world` verify its data, lose power and sleep, as `conditions` say.
pub(super) fn disturb(world: &mut World<'_>, on: (&Device, &Design), conditions: Conditions<'_>) {
    if let Some(verify) = conditions.verify {
        begin_verifying(world, verify, on, conditions.seed);
    }
    for (at, span) in conditions.sleeps {
        world.suspend(Instant::ZERO + *at, *span);
    }
}

/// Makes `world` verify the data of `device` under `design`, which its stack keeps.
fn begin_verifying(
    world: &mut World<'_>,
    verify: &Verify,
    (device, design): (&Device, &Design),
    seed: u64,
) {
    // Durability matters only if power is cut or a card is reset: both lose the cache, and the page
    // of an open transfer.
    let has_cache = match &device.model {
        DeviceModel::Mmc(mmc) => mmc.has_cache() || design.leaves_transfers_open(),
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
fn bios_needed(
    jobs: &[Job],
    device: &Device,
    design: &Design,
    file_system: Option<&profile::FileSystem>,
) -> u32 {
    let limits = &device.limits;
    let page_sectors = 4096 / SECTOR_BYTES;
    let chunk = if limits.chunk_sectors == 0 { u32::MAX } else { limits.chunk_sectors };
    let by_segments = u32::from(limits.max_segments) * page_sectors;
    let part = limits.max_sectors.min(by_segments).min(chunk).max(1);
    debug_assert!(part <= limits.max_sectors.max(1), "a part must not be longer than a request");
    let bios_of_page = if file_system.is_some() { 2 } else { 1 };
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
        // A page of writeback is a bio of its own, which no limit splits. A flush is one, too. A
        // bio of several pages, as of files, has at most as many parts, and itself counts, too.
        // Direct I/O writes the pages of its range back.
        if jobs.iter().any(dirties_pages) {
            needed += u64::from(job.numjobs) * u64::from(bios_of_page * SYNC_PAGES_MAX + 1);
        }
    }
    if jobs.iter().any(dirties_pages) {
        needed += u64::from(bios_of_page * FLUSHER_PAGES_MAX);
    }
    // A commit is at most as long as the journal, and is submitted without a pause: 64 MiB in bios
    // of 4 KiB are 16,384 bios.
    if let Some(profile::FileSystem { rules, commit, .. }) = file_system
        && jobs.iter().any(writes)
    {
        needed += rules.journal_bytes / commit.write_bytes.max(1);
    }
    u32::try_from(needed).unwrap_or(u32::MAX).clamp(64, 1 << 22)
}

/// Whether `job` writes through the page cache.
fn dirties_pages(job: &Job) -> bool {
    !job.direct && writes(job)
}
