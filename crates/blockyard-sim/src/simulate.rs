//! From a job file, a device and a design to a report.

use crate::data::history::Cache;
use crate::data::medium::Media;
use crate::data::verify::{Verified, Verifier, Verify};
use crate::device::Model;
use crate::device::hba::Hba;
use crate::device::null::Null;
use crate::device::stack::{FaultCount, Layering, Stack};
use crate::fit::{self, IN_FLIGHT_MAX, Unfit};
use crate::job::{CpuPolicy, Job, JobError, JobFile, Resolved};
use crate::log::{LogError, Logs};
use crate::machine::cost::CostSink;
use crate::machine::cpu::TaskId;
use crate::machine::poll::PolledQueues;
use crate::measure::JobStats;
use crate::observe::{Observer, Setting};
use crate::profile::{Design, Device, DeviceModel, FaultRules, KindQueues};
use crate::profile::{POLL_QUEUES, READ_QUEUES};
use crate::replay::{Replay, ReplayError};
use crate::task::{Instance, Origin, Placement, Task};
use crate::workload::Prng;
use crate::world::{Failure, Totals, World};
use blockyard::hardware_queue::QueueMap;
use blockyard::host::Host;
use blockyard::layer::checked::Terms;
use blockyard::policy::{ElevatorKind, Model as Locking};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::stats::{Histogram, StageStats};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId, SECTOR_BYTES};
use std::fmt;

/// Why a simulation cannot be had, or ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulationError {
    /// The job does not fit the device.
    Job(JobError),
    /// The files of all instances together do not fit the device.
    FilesTooLarge {
        /// The job whose files begin beyond the end.
        job: String,
        /// Where it stands.
        place: crate::job::Place,
    },
    /// The job asks for what the device does not have.
    Unfit {
        /// Where.
        place: crate::job::Place,
        /// What.
        unfit: Unfit,
    },
    /// The trace cannot be replayed on the device.
    Replay(ReplayError),
    /// The job asks for a processor that the device's machine does not have.
    NoSuchCpu {
        /// The job.
        job: String,
        /// The processor.
        cpu: u16,
        /// How many there are.
        cpus: u16,
    },
    /// The design has more hardware queues for a kind of I/O than the machine has processors.
    TooManyQueues {
        /// The design's file, or its name.
        file: String,
        /// The line.
        line: usize,
        /// The key.
        key: &'static str,
        /// How many it wants.
        count: u16,
        /// How many processors there are.
        cpus: u16,
    },
    /// A log cannot be written.
    Log(LogError),
    /// The run failed at this virtual time.
    Failed {
        /// The job it failed for, where there is one.
        job: Option<String>,
        /// When.
        at: Instant,
        /// How.
        failure: Failure,
    },
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::FilesTooLarge { job, place } => {
                write!(
                    f,
                    "{place}: the files of all instances up to job `{job}` do not fit the device; name one file, or lower `size`"
                )
            }
            Self::Unfit { place, unfit } => write!(f, "{place}: {unfit}"),
            Self::Replay(error) => error.fmt(f),
            Self::NoSuchCpu { job, cpu, cpus } => {
                write!(
                    f,
                    "job `{job}` asks for CPU {cpu}; the device's machine has CPUs 0 to {}",
                    cpus - 1
                )
            }
            Self::TooManyQueues { file, line, key, count, cpus } => write!(
                f,
                "{file}:{line}: `{key}` is `{count}`, out of range (0 to {cpus}): the device's machine has {cpus} CPUs"
            ),
            Self::Failed { job, at, failure } => {
                if let Some(job) = job {
                    write!(f, "job `{job}`, at {at} s: ")?;
                }
                match failure {
                    Failure::Refused(_, why) => write!(f, "an I/O was refused: {why}"),
                    Failure::Io(_, status) => write!(f, "an I/O failed: {status}"),
                    Failure::Lost(count) => write!(
                        f,
                        "at {at} s nothing more can happen: {count} completions were lost by fault rules"
                    ),
                    Failure::Trace => f.write_str("the trace cannot be read any more"),
                    Failure::Stuck => write!(
                        f,
                        "at {at} s nothing more can happen and the jobs are not done: a defect, please report it with the seed"
                    ),
                }
            }
        }
    }
}

impl core::error::Error for SimulationError {}

impl From<JobError> for SimulationError {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

impl From<LogError> for SimulationError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<ReplayError> for SimulationError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

/// What one job, or one instance of it, did.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its name.
    pub name: String,
    /// Its reporting group, from 0.
    pub group: u32,
    /// The index of its job in the file.
    pub job: usize,
    /// What was measured.
    pub stats: JobStats,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the order of the file: one for each instance, or for each job that reports as a group.
    pub jobs: Vec<JobReport>,
    /// From the begin of measuring to the end of the last job.
    pub span: Duration,
    /// Processors of the machine.
    pub cpus: u16,
    /// Hardware queues, of all disks together.
    pub hctxs: u32,
    /// Counts of the machine.
    pub totals: Totals,
    /// Counts and times of the queues' stages.
    pub stages: StageStats,
    /// Time with at least one command at the device.
    pub device_busy: Duration,
    /// Mean time without a command at the device, between commands.
    pub mean_idle_gap: Duration,
    /// Sum over time of commands at the device, in command-nanoseconds.
    pub commands_held_ns: u128,
    /// Of a replay: how much later than its trace says each record was issued, nanoseconds.
    pub late_ns: Option<Histogram>,
    /// How often each fault rule was met, in the order of their file, ramp time included.
    pub faults: Vec<FaultCount>,
    /// What was found on the media, where it was looked at.
    pub verified: Option<Verified>,
}

/// What a simulation is subject to beside its job, device and design, and what comes with it.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// All random draws are from this.
    pub seed: u64,
    /// Recorded I/Os in place of those that jobs generate: the job file is then what
    /// [`Replay::job_file`] gave for the device.
    pub replay: Option<&'a Replay>,
    /// What the device does wrong.
    pub faults: Option<&'a FaultRules>,
    /// Where data is kept and verified: how. Changes nothing but speed.
    pub verify: Option<&'a Verify>,
    /// Whether each call of a driver is held against its contract. Changes nothing but speed.
    pub checked: bool,
    /// Whether the logs that the jobs ask for are written.
    pub logs: bool,
}

impl Conditions<'_> {
    /// I/Os as jobs say, no faults, no data, no logs; checked in builds with debug assertions.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let checked = cfg!(debug_assertions);
        Self { seed, replay: None, faults: None, verify: None, checked, logs: false }
    }
}

/// One job file on one device under one design.
#[derive(Debug)]
pub struct Simulation<O = ()> {
    world: World<O>,
    jobs: Vec<Job>,
    /// For each entry of the world's statistics: its job and reporting group.
    entries: Vec<(usize, u32)>,
    /// Instances that have not begun, by waves: a wave begins when the one before has ended.
    waves: Vec<Vec<Planned>>,
    next_task: u32,
    task_jobs: Vec<usize>,
    seed: u64,
    cpus: u16,
}

/// An instance to come, of the job with this index.
#[derive(Clone, Debug)]
struct Planned {
    job: usize,
    instance: Instance,
}

impl Simulation {
    /// A simulation of `jobs` on `device` under `design`, all random draws from `seed`.
    ///
    /// # Errors
    ///
    /// A [`SimulationError`] if a job does not fit the device or its machine.
    pub fn new(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        seed: u64,
    ) -> Result<Self, SimulationError> {
        Self::under(jobs, device, design, Conditions::new(seed))
    }

    /// As [`Self::new`], under `conditions`.
    ///
    /// # Errors
    ///
    /// As there; [`SimulationError::Log`] if a log cannot be made, [`SimulationError::Replay`] if a
    /// trace does not fit the device or cannot be read any more.
    pub fn under(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        conditions: Conditions<'_>,
    ) -> Result<Self, SimulationError> {
        Self::observed(jobs, device, design, conditions, ())
    }
}

impl<O: Observer> Simulation<O> {
    /// As [`Simulation::under`], told to `observer`.
    ///
    /// # Errors
    ///
    /// As [`Simulation::under`]; then the observer has been told nothing.
    pub fn observed(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        conditions: Conditions<'_>,
        observer: O,
    ) -> Result<Self, SimulationError> {
        check_queues(design, device.machine.cpus)?;
        let (mut waves, entries, stats) = match conditions.replay {
            None => plan(&jobs.jobs, device, design)?,
            Some(replay) => plan_replay(replay, device),
        };
        waves.reverse();
        let player = conditions.replay.map(|replay| replay.player(device)).transpose()?;
        let logs = if conditions.logs { Logs::create(&jobs.jobs)? } else { Logs::default() };
        let mut world = build_world(&jobs.jobs, device, design, conditions, observer);
        if let Some(verify) = conditions.verify {
            begin_verifying(&mut world, verify, device, conditions.seed);
        }
        world.stats = stats;
        world.logs = logs;
        if let Some(player) = player {
            world.replay(player);
        }
        let mut simulation = Self {
            world,
            jobs: jobs.jobs.clone(),
            entries,
            waves,
            next_task: 0,
            task_jobs: Vec::new(),
            seed: conditions.seed,
            cpus: device.machine.cpus,
        };
        simulation.begin_wave();
        Ok(simulation)
    }

    /// Checks the queues' accounts after every step; slow.
    pub const fn check_every_step(&mut self) {
        self.world.check_every_step();
    }

    /// Goes on for up to `max` events; whether there is more to do.
    ///
    /// # Errors
    ///
    /// [`SimulationError::Failed`], [`SimulationError::Log`].
    pub fn advance(&mut self, max: u64) -> Result<bool, SimulationError> {
        let more = self.world.advance(max).map_err(|failure| self.failed(failure))?;
        self.world.logs.write_due()?;
        if more || self.begin_wave() {
            return Ok(true);
        }
        self.world.logs.write_all()?;
        Ok(false)
    }

    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// As [`Self::advance`].
    pub fn finish(mut self) -> Result<Report, SimulationError> {
        while self.advance(1 << 20)? {}
        Ok(self.report())
    }

    /// The world.
    #[must_use]
    pub const fn world(&self) -> &World<O> {
        &self.world
    }

    /// Who watches.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.world.host.sink.1
    }

    /// I/Os that jobs have taken the results of so far.
    #[must_use]
    pub fn ios_done(&self) -> u64 {
        self.world.stats.iter().flat_map(JobStats::measured).map(|measured| measured.ios).sum()
    }

    /// What was measured so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let world = &self.world;
        let jobs = self.entries.iter().zip(&world.stats).map(|(&(job, group), stats)| JobReport {
            name: self.jobs[job].name.clone(),
            group,
            job,
            stats: stats.clone(),
        });
        let activity = world.host.driver.model().activity();
        Report {
            jobs: jobs.collect(),
            span: world.last_end().since(world.measured_from()),
            cpus: self.cpus,
            hctxs: world.hctxs(),
            totals: *world.totals(),
            stages: world.host.sink.0.1.clone(),
            device_busy: activity.busy(),
            mean_idle_gap: activity.mean_gap(),
            commands_held_ns: activity.held_ns(),
            faults: world.host.driver.fault_counts(),
            late_ns: world.late_ns().cloned(),
            verified: world.verified(),
        }
    }

    fn failed(&self, failure: Failure) -> SimulationError {
        let task = match failure {
            Failure::Refused(task, _) | Failure::Io(task, _) => Some(task),
            Failure::Lost(_) | Failure::Trace | Failure::Stuck => None,
        };
        if let Some(error) = self.world.trace_error() {
            return ReplayError::from(error.clone()).into();
        }
        SimulationError::Failed {
            job: task.map(|task| self.jobs[self.task_jobs[task.0 as usize]].name.clone()),
            at: self.world.now(),
            failure,
        }
    }

    /// Begins the next wave; whether there was one.
    fn begin_wave(&mut self) -> bool {
        let Some(wave) = self.waves.pop() else {
            self.world.end_measuring();
            return false;
        };
        let first = self.next_task == 0;
        let now = self.world.now().max(self.world.last_end());
        let mut earliest = Instant::MAX;
        for planned in wave {
            earliest = earliest.min(self.begin(planned, now));
        }
        if first {
            self.world.measure_from(earliest);
        }
        true
    }

    /// Begins an instance; when measuring it begins.
    fn begin(&mut self, planned: Planned, now: Instant) -> Instant {
        let job = &self.jobs[planned.job];
        let number = u64::from(job.first_instance + planned.instance.number);
        let (least, most) = job.startdelay_ns;
        let mut draws = Prng::new(self.seed).fork(1).fork(number);
        let delay = least + draws.below((most - least).saturating_add(1).max(1));
        let begin = now + Duration::from_ns(delay);
        let ramp = Duration::from_ns(job.ramp_time_ns);
        let limit = job.runtime_ns.map(Duration::from_ns);
        let id = TaskId(self.next_task);
        let task = Task::new(id, job, planned.instance, self.seed);
        self.world.host.sink.1.task_begins(id, &job.name);
        self.next_task += 1;
        self.task_jobs.push(planned.job);
        self.world.add_task(task, begin, ramp, limit);
        begin + ramp
    }
}

type Plans = (Vec<Vec<Planned>>, Vec<(usize, u32)>, Vec<JobStats>);

/// A kind of I/O has at most a hardware queue for each processor.
fn check_queues(design: &Design, cpus: u16) -> Result<(), SimulationError> {
    let kinds = [(READ_QUEUES, design.read_queues), (POLL_QUEUES, design.poll_queues)];
    let Some((key, KindQueues { count, line })) =
        kinds.into_iter().find(|(_, kind)| kind.count > cpus)
    else {
        return Ok(());
    };
    Err(SimulationError::TooManyQueues { file: design.name.clone(), line, key, count, cpus })
}

/// Every instance of `jobs`, in waves, and where it counts.
fn plan(jobs: &[Job], device: &Device, design: &Design) -> Result<Plans, SimulationError> {
    let mut waves = vec![Vec::new()];
    let mut entries: Vec<(usize, u32)> = Vec::new();
    let mut stats = Vec::new();
    let mut files = Files::new(device);
    let mut in_flight = 0;
    for (at, job) in jobs.iter().enumerate() {
        in_flight += u64::from(job.numjobs) * u64::from(job.depth());
        if in_flight > IN_FLIGHT_MAX {
            let place = job.place_of("iodepth").clone();
            return Err(SimulationError::Unfit { place, unfit: Unfit::TooDeep });
        }
        if job.hipri && design.poll_queues.count == 0 {
            let unfit = Unfit::NoPolledQueue { design: design.name.clone() };
            return Err(SimulationError::Unfit { place: job.place_of("hipri").clone(), unfit });
        }
        if job.stonewall && waves.last().is_some_and(|wave: &Vec<Planned>| !wave.is_empty()) {
            waves.push(Vec::new());
        }
        for number in 0..job.numjobs {
            let resolved = job.resolve(number, files.disk_bytes)?;
            fit::check(job, &resolved, &device.limits)
                .map_err(|(place, unfit)| SimulationError::Unfit { place, unfit })?;
            let placements = files.place(job, &resolved)?;
            let joins_group = job.group_reporting
                && entries
                    .last()
                    .is_some_and(|&(last, group)| group == job.group && jobs[last].group_reporting);
            if !joins_group {
                entries.push((at, job.group));
                stats.push(JobStats::new(job.pattern.mix.ops()));
            } else if let Some(group) = stats.last_mut() {
                group.add_kinds(job.pattern.mix.ops());
            }
            let cpu = cpu_for(job, number, device.machine.cpus)?;
            let stats = stats.len() - 1;
            let origin = Origin::Generated { resolved, placements };
            let instance = Instance { number, origin, cpu, stats };
            waves.last_mut().expect("there is a first wave").push(Planned { job: at, instance });
        }
    }
    Ok((waves, entries, stats))
}

/// The submitters of a replay, which all begin at once and count as one.
fn plan_replay(replay: &Replay, device: &Device) -> Plans {
    let cpus = replay.task_cpus(device).into_iter().zip(0..);
    let planned = cpus.map(|(cpu, number)| {
        let instance = Instance { number, origin: Origin::Recorded, cpu, stats: 0 };
        Planned { job: 0, instance }
    });
    (vec![planned.collect()], vec![(0, 0)], vec![JobStats::new(&replay.kinds())])
}

/// The processor of an instance: the machine's in turn, or those the job allows.
fn cpu_for(job: &Job, instance: u32, cpus: u16) -> Result<CpuId, SimulationError> {
    if let Some(&cpu) = job.cpus_allowed.iter().find(|cpu| **cpu >= cpus) {
        return Err(SimulationError::NoSuchCpu { job: job.name.clone(), cpu, cpus });
    }
    let number = match job.cpus_allowed_policy {
        CpuPolicy::Split => instance,
        CpuPolicy::Shared => job.first_instance + instance,
    } as usize;
    if job.cpus_allowed.is_empty() {
        let at = number % usize::from(cpus);
        return Ok(CpuId(u16::try_from(at).expect("below the number of processors")));
    }
    Ok(CpuId(job.cpus_allowed[number % job.cpus_allowed.len()]))
}

/// Where files lie: each name is a disk of its own; files without a
/// name lie one behind the other on the first disk.
struct Files {
    disk_bytes: u64,
    disks: u16,
    names: Vec<String>,
    next_byte: u64,
}

impl Files {
    fn new(device: &Device) -> Self {
        let disks = match device.model {
            DeviceModel::Null(_) => 1,
            DeviceModel::Hba(hba) => hba.luns,
        };
        let disk_bytes = device.limits.capacity_sectors * u64::from(SECTOR_BYTES);
        Self { disk_bytes, disks, names: Vec::new(), next_byte: 0 }
    }

    fn place(&mut self, job: &Job, resolved: &Resolved) -> Result<Vec<Placement>, SimulationError> {
        if !job.filenames.is_empty() {
            return job.filenames.iter().map(|name| self.disk_of(job, name)).collect();
        }
        let mut placements = Vec::new();
        for file in &resolved.files {
            let base_bytes = self.next_byte;
            let end =
                base_bytes.checked_add(file.end_bytes()).filter(|end| *end <= self.disk_bytes);
            self.next_byte = end.ok_or_else(|| SimulationError::FilesTooLarge {
                job: job.name.clone(),
                place: job.place.clone(),
            })?;
            placements.push(Placement { queue: QueueId(0), base_bytes });
        }
        Ok(placements)
    }

    fn disk_of(&mut self, job: &Job, name: &str) -> Result<Placement, SimulationError> {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        match u16::try_from(at).ok().filter(|disk| *disk < self.disks) {
            Some(disk) => Ok(Placement { queue: QueueId(disk), base_bytes: 0 }),
            None => Err(SimulationError::Unfit {
                place: job.place_of("filename").clone(),
                unfit: Unfit::TooFewDisks { disks: self.disks },
            }),
        }
    }
}

fn build_world<O: Observer>(
    jobs: &[Job],
    device: &Device,
    design: &Design,
    conditions: Conditions<'_>,
    mut observer: O,
) -> World<O> {
    let policies = design.policies;
    let machine = device.machine;
    let all_draws = Prng::new(conditions.seed);
    let draws = all_draws.fork(0);
    let (own_hctxs, depth, disks, shared_tags) = match device.model {
        DeviceModel::Null(null) => (null.submit_queues, null.depth, 1, null.shared_tags),
        DeviceModel::Hba(hba) => (hba.hw_queues, hba.can_queue, hba.luns, false),
    };
    let default = match policies.model {
        Locking::SingleLock => 1,
        Locking::Multi => design.hw_queues.unwrap_or(own_hctxs).min(own_hctxs).min(machine.cpus),
    };
    let (reads, polls) = (design.read_queues.count, design.poll_queues.count);
    let hctxs = default + reads + polls;
    let model = match device.model {
        DeviceModel::Null(null) => Model::Null(Null::new(null, hctxs, device.cache, draws)),
        DeviceModel::Hba(hba) => Model::Hba(Hba::new(hba, hctxs, device.cache, draws)),
    };
    let instances: u32 = jobs.iter().map(|job| job.numjobs).sum();
    let tags = TagSetConfig {
        hctxs,
        depth: design.depth.unwrap_or(depth).min(depth),
        reserved: 0,
        shared_over_hctxs: shared_tags,
        queues: disks,
        max_waiters: instances,
    };
    observer.world_begins(&Setting {
        design: design.name.clone(),
        device: device.name.clone(),
        cpus: machine.cpus,
        hctxs,
        depth: tags.depth,
        elevator: policies.elevator != ElevatorKind::None,
    });
    let counts = (CostSink::new(&machine, &policies), StageStats::watching(disks, hctxs));
    let config = QueueConfig {
        max_bios: bios_needed(jobs, device),
        max_waiters: instances,
        map: QueueMap::with_kinds(machine.cpus, default, reads, polls),
        ..QueueConfig::new(machine.cpus, hctxs, device.limits.clone(), policies)
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
    let queues: Vec<_> =
        (0..disks).map(|disk| RequestQueue::new(QueueId(disk), config.clone(), &host)).collect();
    let served_by = |hctx: u16| {
        let kinds = [&config.map.default, &config.map.read, &config.map.poll];
        let first = |kind: &Vec<HctxId>| kind.iter().position(|of_cpu| *of_cpu == HctxId(hctx));
        let cpu = kinds.into_iter().find_map(first).expect("every hardware queue serves one");
        CpuId(u16::try_from(cpu).expect("a processor of the machine"))
    };
    let worker_cpu = (0..hctxs).map(served_by).collect();
    World::new(machine, &policies, host, queues, worker_cpu, PolledQueues::new(&config.map))
}

/// Has `world`, whose stack keeps what is on `device`, verified.
fn begin_verifying<O: Observer>(world: &mut World<O>, verify: &Verify, device: &Device, seed: u64) {
    // Where the power is never cut, nobody sees what is durable.
    let volatile = device.limits.write_cache && verify.cuts_power();
    let cache = if volatile { Cache::Volatile } else { Cache::WriteThrough };
    let disks = u16::try_from(world.queues().len()).expect("disks are numbered by 16 bits");
    world.verify(Verifier::new(disks, cache, Prng::new(seed).fork(4)));
    for at in &verify.power_cuts {
        world.cut_power(Instant::ZERO + *at, Duration::ZERO);
    }
    if let Some(period) = verify.power_cut_every {
        world.cut_power(Instant::ZERO + period, period);
    }
}

/// As many bios as all jobs together can have under way, with the parts of split ones.
fn bios_needed(jobs: &[Job], device: &Device) -> u32 {
    let limits = &device.limits;
    let page_sectors = 4096 / SECTOR_BYTES;
    let chunk = if limits.chunk_sectors == 0 { u32::MAX } else { limits.chunk_sectors };
    let by_segments = u32::from(limits.max_segments) * page_sectors;
    let part = limits.max_sectors.min(by_segments).min(chunk).max(1);
    let of_job = |job: &Job| {
        let largest = job.block.each().into_iter().map(|block| block.max_bytes()).max();
        let parts = (largest.unwrap_or(0) / SECTOR_BYTES).div_ceil(part) + 1;
        u64::from(job.numjobs) * u64::from(job.depth()) * u64::from(parts + 1)
    };
    let needed: u64 = jobs.iter().map(of_job).sum();
    u32::try_from(needed).unwrap_or(u32::MAX).clamp(64, 1 << 22)
}
