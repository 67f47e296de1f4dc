//! Simulations: from a job file, a device and a design to a [`Report`].
//!
//! `plan` places the job instances, `build` makes the world, and [`Simulation`] advances it.

mod build;
mod error;
mod plan;
mod sharing;
mod starts;
mod steady;
mod stop;

pub use error::SimulationError;
pub use stop::Stop;

use crate::machine::locks::LockUse;
use crate::measure::series::{Series, SeriesSampler};
use crate::replay::{Replay, ReplayError};
use crate::task::{Origin, Task, start_of_files, syncs_behind_writes, waits_for_durable_writes};
use crate::world::{Actor, BfqReport, DirtReport, Failure, Totals, World};
use blockyard::elevator::Elevator;
use blockyard::request_queue::QueueConfig;
use blockyard::stats::{Histogram, StageStats};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_devices::FamilyReport;
use blockyard_devices::data::verify::{Verified, Verify};
use blockyard_devices::pairing;
use blockyard_devices::profile::{Design, Device, FaultRules, FileSystem};
use blockyard_devices::stack::FaultCount;
use blockyard_fio::job::{Job, JobFile};
use blockyard_fio::measure::{JobReport, Syncing};
use blockyard_fio::output::log::Logs;
use blockyard_trace::observe::{ActorId, Observer, TaskId};
use serde::{Deserialize, Serialize};
use starts::Starts;
use steady::Steady;

use build::{build_world, check_faults, disturb};
use plan::{Planned, plan, plan_replay};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// One entry for each instance, or for each job that reports as a group, in the order of the
    /// file.
    pub jobs: Vec<JobReport>,
    /// From the start of measurement to the end of the last job.
    pub span: Duration,
    /// The number of processors of the machine.
    pub cpus: u16,
    /// The number of hardware queues of all disks.
    pub hctxs: u32,
    /// The counts of the machine.
    pub totals: Totals,
    /// The use of locks and contended words, by kind.
    pub locks: Vec<LockUse>,
    /// The counts and times of the queues' stages.
    pub stages: StageStats,
    /// The time with at least one command at the device.
    pub device_busy: Duration,
    /// The mean idle time of the device between commands.
    pub mean_idle_gap: Duration,
    /// The commands at the device, summed over time, in command-nanoseconds.
    pub commands_held_ns: u128,
    /// What the device counted of its family's own.
    pub family: FamilyReport,
    /// Why the run was stopped before its jobs ended, if it was.
    pub stopped: Option<Stopped>,
    /// Rates and depths over time.
    pub series: Series,
    /// For a replay, the delay of each I/O's issue relative to the recording, in nanoseconds.
    pub late_ns: Option<Histogram>,
    /// How often each fault rule matched and fired, in the order of the fault file, including ramp
    /// time.
    pub faults: Vec<FaultCount>,
    /// The result of verifying the media, if the run was verified.
    pub verified: Option<Verified>,
    /// The limits on dirty pages and those that are left, if jobs write through the page cache.
    pub dirt: Option<DirtReport>,
    /// What BFQ has done, if it is the scheduler.
    pub bfq: Option<BfqReport>,
    /// Whether jobs are in control groups, and the elevator does not share the device among groups.
    pub ignores_groups: bool,
}

/// Why a run was stopped before its jobs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// [`Conditions::stop`] was set.
    Interrupted,
    /// The rates of all jobs were known within 1 %, and their 99th percentiles within 10 %: see
    /// [`Conditions::until_steady`].
    Steady,
}

/// The conditions of a simulation, apart from its jobs, device and design.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The seed of all random draws.
    pub seed: u64,
    /// Recorded I/Os to issue instead of generated ones. The job file must then come from
    /// [`Replay::job_file`] for the device.
    pub replay: Option<&'a Replay>,
    /// The file system on the disks, for the files of all jobs; `None`: jobs use raw disks.
    pub file_system: Option<&'a FileSystem>,
    /// The faults of the device.
    pub faults: Option<&'a FaultRules>,
    /// The verification of data, if data is kept. It changes only the speed of the simulation.
    pub verify: Option<&'a Verify>,
    /// When the system is suspended, from the start, and how long it sleeps.
    pub sleeps: &'a [(Duration, Duration)],
    /// Whether each driver call is checked against its contract. The checks find defects of
    /// Blockyard, make a run about a twentieth longer, and change nothing else.
    pub checked: bool,
    /// Whether the logs that the jobs request are written.
    pub logs: bool,
    /// Whether the run stops when the rate of each job in each direction is known within 1 %: when
    /// an interval of 95 % of the mean of at least 20 batches of at least 100 ms of virtual time is
    /// so narrow. The 99th percentile of each job, and of its syncs, must rest on at least 1,000
    /// I/Os then and be known within 10 %.
    pub until_steady: bool,
    /// Stops the run when it is requested. The report then has what was measured so far.
    pub stop: Option<&'a Stop>,
    /// The elevator of each disk, for a design with
    /// [`ElevatorKind::Other`](blockyard::policy::ElevatorKind::Other).
    pub elevator: Option<MakeElevator>,
}

/// Makes an elevator of the caller's own for a queue with this configuration, on a host with these
/// tags.
pub type MakeElevator = fn(&QueueConfig, &TagSetConfig) -> Box<dyn Elevator + Send>;

impl Conditions<'_> {
    /// Returns conditions with generated I/Os, but without faults, data or logs. Driver calls are
    /// checked in builds with debug assertions.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            replay: None,
            file_system: None,
            faults: None,
            verify: None,
            sleeps: &[],
            checked: cfg!(debug_assertions),
            logs: false,
            until_steady: false,
            stop: None,
            elevator: None,
        }
    }
}

/// One job file on one device under one design.
#[derive(Debug)]
pub struct Simulation<'o> {
    world: World<'o>,
    jobs: Vec<Job>,
    /// The job and reporting group of each entry of the world's statistics.
    entries: Vec<(usize, u32)>,
    starts: Starts,
    next_task: u32,
    task_jobs: Vec<usize>,
    seed: u64,
    cpus: u16,
    flushes_after_sync_writes: bool,
    sampler: SeriesSampler,
    steady: Option<Steady>,
    stop: Option<Stop>,
    stopped: Option<Stopped>,
    /// The I/Os reaped when one last was, and the events since then.
    progress: (u64, u64),
}

/// After so many events without the end of an I/O the run fails. A lone poll of a slow device takes
/// far fewer.
const FRUITLESS_EVENTS_MAX: u64 = 1 << 25;

impl<'o> Simulation<'o> {
    /// Returns a simulation of `jobs` on `device` under `design`, with all random draws from
    /// `seed`.
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

    /// Returns a simulation like [`Self::new`], but under `conditions`.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`]; [`SimulationError::Log`] if a log cannot be created,
    /// [`SimulationError::Replay`] if a trace does not fit the device or can no longer be read.
    pub fn under(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        conditions: Conditions<'_>,
    ) -> Result<Self, SimulationError> {
        Self::build(jobs, device, design, conditions, None)
    }

    /// Returns a simulation like [`Self::under`], with all events passed to `observer`.
    ///
    /// # Errors
    ///
    /// Those of [`Self::under`]. After an error the observer has received nothing.
    pub fn observed(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        conditions: Conditions<'_>,
        observer: &'o mut dyn Observer,
    ) -> Result<Self, SimulationError> {
        Self::build(jobs, device, design, conditions, Some(observer))
    }

    fn build(
        jobs: &JobFile,
        device: &Device,
        design: &Design,
        conditions: Conditions<'_>,
        observer: Option<&'o mut dyn Observer>,
    ) -> Result<Self, SimulationError> {
        pairing::check_queues(design, device.machine.cpus)?;
        pairing::check(design, device)?;
        let device = &*device.under(design);
        // A fault file may change the card itself.
        let struck = conditions.faults.map(|rules| check_faults(rules, device)).transpose()?;
        let device = struck.as_deref().unwrap_or(device);
        let asked = jobs.jobs.iter().any(|job| job.verify).then(Verify::default);
        let conditions = Conditions { verify: conditions.verify.or(asked.as_ref()), ..conditions };
        let (planned, entries, stats) = match conditions.replay {
            None => plan(&jobs.jobs, device, design, conditions.file_system)?,
            Some(replay) => plan_replay(replay, device),
        };
        assert_eq!(entries.len(), stats.len(), "every entry has statistics");
        assert!(!planned.is_empty(), "a simulation must have an instance");
        let player = conditions.replay.map(|replay| replay.player(device)).transpose()?;
        let logs = if conditions.logs { Logs::create(&jobs.jobs)? } else { Logs::default() };
        let mut world = build_world(&jobs.jobs, device, design, conditions, observer)?;
        disturb(&mut world, (device, design), conditions);
        world.stats = stats;
        world.logs = logs;
        if let Some(player) = player {
            world.replay(player);
        }
        let simulation = Self {
            world,
            starts: Starts::new(planned, &jobs.jobs, conditions.seed),
            jobs: jobs.jobs.clone(),
            entries,
            next_task: 0,
            task_jobs: Vec::new(),
            seed: conditions.seed,
            cpus: device.machine.cpus,
            // A disk without a volatile cache gets no bio.
            flushes_after_sync_writes: design.flushes_after_sync_writes
                && device.limits.write_cache,
            sampler: SeriesSampler::default(),
            steady: conditions.until_steady.then(Steady::new),
            stop: conditions.stop.cloned(),
            stopped: None,
            progress: (0, 0),
        };
        Ok(simulation.begun())
    }

    /// Lays out the files of all jobs, in their order, as fio does before the first one runs. Then
    /// begins the first instances.
    fn begun(mut self) -> Self {
        for Planned { job, instance, .. } in self.starts.planned() {
            if let Origin::Generated { placements, .. } = &instance.origin {
                self.world.lay_out(placements, start_of_files(&self.jobs[*job]));
            }
        }
        self.begin_next();
        self
    }

    /// Adds an actor to the world before the run: see `World::add_actor`.
    pub fn add_actor(
        &mut self,
        cpu: CpuId,
        begin: Instant,
        make: impl FnOnce(ActorId) -> Box<dyn Actor + Send>,
    ) -> ActorId {
        self.world.add_actor(cpu, begin, make)
    }

    /// Makes the queues check their accounts after every step, which is slow.
    pub const fn check_every_step(&mut self) {
        self.world.check_every_step();
    }

    /// Handles up to `max` events. Returns whether the simulation continues.
    ///
    /// # Errors
    ///
    /// [`SimulationError::Failed`], [`SimulationError::Log`].
    pub fn advance(&mut self, max: u64) -> Result<bool, SimulationError> {
        assert!(max > 0, "an advance must handle at least one event");
        let mut left = max;
        loop {
            let sample = self.sampler.next();
            let sample = self.steady.as_ref().map_or(sample, |steady| steady.next().min(sample));
            let start = self.starts.next();
            let due = sample.min(start);
            left -= self.world.advance(left, due).map_err(|failure| self.failed(failure))?;
            if !self.world.has_jobs() || left == 0 {
                break;
            }
            // No event is left before `due`.
            if due == Instant::MAX {
                return Err(self.failed(Failure::TimeIsOver));
            }
            let now = due.max(self.world.now());
            if start == due {
                self.begin_at(now, true);
            }
            if sample == due {
                self.take_samples(now);
            }
        }
        let more = self.world.has_jobs();
        self.check_progress(max)?;
        self.world.logs.write_due()?;
        if more && self.stop.as_ref().is_some_and(Stop::is_requested) {
            self.stopped = Some(Stopped::Interrupted);
            self.world.cut_measuring();
        } else if more || self.begin_next() {
            return Ok(true);
        }
        self.world.logs.write_all()?;
        Ok(false)
    }

    /// Takes the sample that is due at `now`, and stops the jobs that run if the rates of all are
    /// known well enough.
    fn take_samples(&mut self, now: Instant) {
        if self.sampler.is_due(now) {
            let load = self.world.load();
            self.sampler.sample(now, self.world.stats.iter(), load);
        }
        // Jobs that begin after those that are stopped have rates of their own, not known yet.
        let Some(steady) = self.steady.as_mut().filter(|steady| steady.is_due(now)) else { return };
        let entries = self.entries.iter().zip(&self.world.stats);
        if steady.batch(now, entries.map(|((job, _), stats)| (*job, stats))) {
            self.world.stop_tasks();
            self.stopped = Some(Stopped::Steady);
            *steady = Steady::new();
        }
    }

    /// Fails if too many events have passed since an I/O ended; `events` passed since the last
    /// call.
    fn check_progress(&mut self, events: u64) -> Result<(), SimulationError> {
        let reaped = self.world.totals().reaped;
        let (before, fruitless) = self.progress;
        self.progress = (reaped, if reaped == before { fruitless + events } else { 0 });
        if self.progress.1 > FRUITLESS_EVENTS_MAX {
            return Err(self.failed(Failure::Endless(self.world.standstill())));
        }
        Ok(())
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    ///
    /// Those of [`Self::advance`].
    pub fn finish(mut self) -> Result<Report, SimulationError> {
        while self.advance(1 << 16)? {}
        Ok(self.report())
    }

    /// Returns the world.
    #[must_use]
    pub const fn world(&self) -> &World<'o> {
        &self.world
    }

    /// Returns the observer, if there is one.
    #[must_use]
    pub fn observer(&self) -> Option<&dyn Observer> {
        self.world.host.sink.1.as_deref()
    }

    /// Returns the measurements so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let world = &self.world;
        debug_assert_eq!(self.entries.len(), world.stats.len(), "every entry has statistics");
        let jobs = self.entries.iter().zip(&world.stats).map(|(&(job, group), stats)| JobReport {
            name: self.jobs[job].name.clone(),
            group,
            job,
            syncing: Syncing::of(&self.jobs[job]),
            is_direct: self.jobs[job].direct,
            stats: stats.clone(),
        });
        let model = world.host.driver.model();
        Report {
            jobs: jobs.collect(),
            span: world.last_end().since(world.measured_from()),
            cpus: self.cpus,
            hctxs: world.hctxs(),
            totals: *world.totals(),
            locks: world.lock_uses(),
            stages: world.host.sink.0.1.clone(),
            device_busy: model.busy(world.now()),
            mean_idle_gap: model.mean_gap(),
            commands_held_ns: model.held_ns(),
            family: model.report(world.now()),
            faults: world.host.driver.fault_counts(),
            stopped: self.stopped,
            series: self.sampler.series(),
            late_ns: world.late_ns().cloned(),
            verified: world.verified(),
            dirt: world.dirt(),
            bfq: world.bfq(),
            ignores_groups: world.ignores_groups(),
        }
    }

    fn failed(&self, failure: Failure) -> SimulationError {
        let task = match failure {
            Failure::Refused(task, _) => task,
            Failure::Io(task, _) | Failure::Bound(task, _) => Some(task),
            Failure::Lost(_)
            | Failure::Trace
            | Failure::PowerCuts
            | Failure::Endless(_)
            | Failure::TimeIsOver
            | Failure::Stuck(_) => None,
        };
        if let Some(error) = self.world.trace_error() {
            return ReplayError::from(error.clone()).into();
        }
        SimulationError::Failed {
            job: task.map(|task| self.jobs[self.task_jobs[task.0 as usize]].name.clone()),
            at: self.world.now(),
            failure,
            fired: self
                .world
                .host
                .driver
                .fault_counts()
                .into_iter()
                .filter(|rule| rule.fired > 0)
                .map(|rule| rule.name)
                .collect(),
        }
    }

    /// Begins the next instances, while none runs. Returns whether there were any.
    fn begin_next(&mut self) -> bool {
        let now = self.world.now().max(self.world.last_end());
        self.starts.drop_groups(|group| self.world.ends_before_it_begins(group));
        if self.starts.is_empty() {
            self.world.end_measuring();
            return false;
        }
        self.begin_at(self.starts.first_after(now), false);
        true
    }

    /// Begins the instances that begin at `now`.
    fn begin_at(&mut self, now: Instant, others_run: bool) {
        self.starts.drop_groups(|group| self.world.ends_before_it_begins(group));
        for planned in self.starts.take(now, others_run) {
            self.begin(planned, now);
        }
    }

    fn begin(&mut self, planned: Planned, now: Instant) {
        let job = &self.jobs[planned.job];
        let ramp = Duration::from_ns(job.ramp_time_ns);
        let limit = job.runtime_ns.map(Duration::from_ns);
        let id = TaskId(self.next_task);
        let mut task = Task::new(id, job, planned.instance, self.seed);
        let is_synced = self.world.has_file_system() && syncs_behind_writes(job);
        if is_synced || self.flushes_after_sync_writes && waits_for_durable_writes(job) {
            task.flush_after_writes();
        }
        self.world.host.sink.1.task_begins(id, &job.name);
        self.next_task += 1;
        self.task_jobs.push(planned.job);
        debug_assert_eq!(
            self.task_jobs.len(),
            self.next_task as usize,
            "every task must have a job"
        );
        self.world.add_task(task, now, ramp, limit);
    }
}
