//! Assigns job instances to CPUs and files.

use super::SimulationError;
use super::sharing::Sharing;
use crate::fit;
use crate::fit::{IN_FLIGHT_MAX, PLANNED_IOS_MAX, Unfit};
use crate::page_cache::place_of_journal;
use crate::placement::Placement;
use crate::replay::Replay;
use crate::task::{Instance, Origin, has_data};
use blockyard_devices::profile::{Design, Device, FileSystem, PAGE_BYTES};
use blockyard_fio::job::{CpuPolicy, Job, Op, Resolved, SyncMode};
use blockyard_fio::measure::JobStats;
use core::ops::Range;
use std::collections::BTreeMap;

use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};

/// An instance that has not begun, with the index of its job.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) job: usize,
    pub(super) instance: Instance,
    /// It begins when those that began before have ended (`stonewall`).
    pub(super) waits: bool,
}

pub(super) type Plans = (Vec<Planned>, Vec<(usize, u32)>, Vec<JobStats>);

/// Plans every instance of `jobs`, in their order, with its entry in the statistics.
pub(super) fn plan(
    jobs: &[Job],
    device: &Device,
    design: &Design,
    file_system: Option<&FileSystem>,
) -> Result<Plans, SimulationError> {
    let mut planned = Vec::new();
    let mut entries: Vec<(usize, u32)> = Vec::new();
    let mut stats = Vec::new();
    let mut files = Files::new(device, file_system);
    files.measure(jobs)?;
    let mut in_flight = 0;
    let mut planned_ios = 0_u64;
    let mut sharing = Sharing::default();
    let meets_cache = meets_cache(jobs, file_system);
    let has_fua = device.limits.fua || !device.limits.write_cache;
    for (at, job) in jobs.iter().enumerate() {
        in_flight += u64::from(job.numjobs) * u64::from(job.depth());
        if in_flight > IN_FLIGHT_MAX {
            let place = job.place_of("iodepth").clone();
            return Err(SimulationError::Unfit { place, unfit: Unfit::TooDeep });
        }
        check_job(job, design, file_system.is_some() && syncs_in_worker(job, has_fua))?;
        for number in 0..job.numjobs {
            let resolved = job.resolve(number, files.disk_bytes)?;
            fit::check(job, &resolved, device)
                .map_err(|(place, unfit)| SimulationError::Unfit { place, unfit })?;
            planned_ios = planned_ios.saturating_add(fewest_ios(job, &resolved));
            if planned_ios > PLANNED_IOS_MAX {
                let place = job.place_of(if job.loops > 1 { "loops" } else { "size" }).clone();
                return Err(SimulationError::Unfit { place, unfit: Unfit::TooLong });
            }
            let placements = files.place(job, number, &resolved)?;
            sharing.add(at, job, &placements);
            // Consecutive jobs of one group that report as a group share an entry.
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
            let origin = Origin::Generated { resolved, placements, meets_cache, has_fua };
            let instance = Instance { number, origin, cpu, stats };
            planned.push(Planned { job: at, instance, waits: job.stonewall && number == 0 });
        }
    }
    if let Some(unfit) = sharing.unfit() {
        let place = jobs[unfit].place_of("filename").clone();
        return Err(SimulationError::Unfit { place, unfit: Unfit::SharesDirty });
    }
    debug_assert_eq!(entries.len(), stats.len(), "every entry has statistics");
    debug_assert!(planned.iter().all(|of| of.instance.stats < stats.len()));
    Ok((planned, entries, stats))
}

/// Checks that `job` polls only where a queue of `design` is polled, that its calls are uncached
/// only where they may be, and that no worker syncs behind its writes.
fn check_job(job: &Job, design: &Design, syncs_in_worker: bool) -> Result<(), SimulationError> {
    if job.hipri && design.poll_queues.count == 0 {
        let unfit = Unfit::NoPolledQueue { design: design.name.clone() };
        return Err(SimulationError::Unfit { place: job.place_of("hipri").clone(), unfit });
    }
    if job.uncached && !design.takes_uncached {
        let unfit = Unfit::RefusesUncached { design: design.name.clone() };
        return Err(SimulationError::Unfit { place: job.place_of("uncached").clone(), unfit });
    }
    if syncs_in_worker {
        let place = job.place_of("sync").clone();
        return Err(SimulationError::Unfit { place, unfit: Unfit::SyncsInWorker });
    }
    Ok(())
}

/// Whether direct jobs look at the pages and the changes of their files: one of `jobs` uses the
/// page cache, or writes files of a file system.
fn meets_cache(jobs: &[Job], file_system: Option<&FileSystem>) -> bool {
    jobs.iter().any(|job| !job.direct || file_system.is_some() && writes(job))
}

/// Whether `job` writes.
pub(super) fn writes(job: &Job) -> bool {
    job.pattern.mix.ops().contains(&Op::Write)
}

/// Whether several durable writes of `job` to files can be in flight, and each syncs its file in a
/// worker afterwards. Writes with FUA to files that have their data need no sync.
fn syncs_in_worker(job: &Job, has_fua: bool) -> bool {
    let is_overwrite = has_fua && job.sync == SyncMode::Dsync && has_data(job);
    let is_durable = writes(job) && job.direct && job.sync != SyncMode::None;
    is_durable && job.depth() > 1 && !is_overwrite
}

/// Returns the smallest number of I/Os that an instance can do, unless time or something else ends
/// it: then 0.
fn fewest_ios(job: &Job, resolved: &Resolved) -> u64 {
    if job.runtime_ns.is_some() || job.time_based || job.number_ios.is_some() {
        return 0;
    }
    let sizes = job.pattern.mix.ops().iter().map(|op| job.block.of(*op).max_bytes());
    let longest = u64::from(sizes.max().unwrap_or(1).max(1));
    resolved.moved_bytes() / longest
}

/// Plans the submitters of a replay. All begin at the same time and share one entry.
pub(super) fn plan_replay(replay: &Replay, device: &Device) -> Plans {
    let cpus = replay.task_cpus(device).into_iter().zip(0..);
    debug_assert!(device.machine.cpus > 0, "a machine must have a CPU");
    let planned = cpus.map(|(cpu, number)| {
        let instance = Instance { number, origin: Origin::Recorded, cpu, stats: 0 };
        Planned { job: 0, instance, waits: false }
    });
    (planned.collect(), vec![(0, 0)], vec![JobStats::new(&replay.kinds())])
}

/// Returns the CPU of an instance. Instances take turns on the machine's CPUs or on those that the
/// job allows.
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
        return Ok(CpuId(
            u16::try_from(at).expect("the remainder should be below the number of CPUs"),
        ));
    }
    Ok(CpuId(job.cpus_allowed[number % job.cpus_allowed.len()]))
}

/// The longest name of a file, as in Linux.
const NAME_MAX: usize = 255;

/// Returns the name of file `at` of instance `number` of `job`.
fn formatted(format: &str, job: &Job, number: u32, at: u32) -> String {
    let name = format
        .replace("$jobname", &job.name)
        .replace("$jobnum", &number.to_string())
        .replace("$filenum", &at.to_string())
        .replace("$clientuid", "localhost");
    name.chars().take(NAME_MAX).collect()
}

/// Places files. On raw disks each name is a disk. Files without a name, and those of a file
/// system, take the disks in turn, and follow one another on a disk.
struct Files {
    disk_bytes: u64,
    /// The place of the journal on each disk, if there is a file system.
    journal: Option<Range<u64>>,
    /// Bytes of a logical block, or of a block of a file.
    block_bytes: u64,
    names: Vec<String>,
    /// The lengths of the files that have names, in bytes.
    lengths: BTreeMap<String, u64>,
    /// The places of the files whose names follow from a format.
    formatted: BTreeMap<String, Placement>,
    /// The end of the files without a name, on each disk.
    ends: Vec<u64>,
    /// The number of files without a name.
    unnamed: usize,
}

impl Files {
    fn new(device: &Device, file_system: Option<&FileSystem>) -> Self {
        let disk_bytes = device.limits.capacity_sectors * u64::from(SECTOR_BYTES);
        let block_bytes = u64::from(device.limits.logical_block_sectors) * u64::from(SECTOR_BYTES);
        // Files have blocks of a page.
        let block_bytes = if file_system.is_some() { PAGE_BYTES } else { block_bytes };
        let ends = vec![0; usize::from(device.disks())];
        Self {
            disk_bytes,
            journal: file_system.map(|profile| place_of_journal(&profile.rules, disk_bytes)),
            block_bytes,
            names: Vec::new(),
            lengths: BTreeMap::new(),
            formatted: BTreeMap::new(),
            ends,
            unnamed: 0,
        }
    }

    /// Whether the names of `job` are those of files, not of disks.
    fn names_files(&self, job: &Job) -> bool {
        if job.filenames.is_empty() {
            job.filename_format.is_some()
        } else {
            self.journal.is_some()
        }
    }

    /// Finds out how long the files with names are: as long as the job needs that reaches farthest.
    ///
    /// If one job writes the first MiB of a file and the next one its fourth MiB, the file has 4
    /// MiB.
    fn measure(&mut self, jobs: &[Job]) -> Result<(), SimulationError> {
        for job in jobs.iter().filter(|job| self.names_files(job)).collect::<Vec<_>>() {
            for number in 0..job.numjobs {
                let resolved = job.resolve(number, self.disk_bytes)?;
                for (file, at) in resolved.files.iter().zip(0..) {
                    let Some(name) = self.name_of(job, number, at)? else { continue };
                    let len = self.lengths.entry(name).or_default();
                    *len = (*len).max(file.end_bytes());
                }
            }
        }
        Ok(())
    }

    /// Places the files of instance `number` of `job`.
    fn place(
        &mut self,
        job: &Job,
        number: u32,
        resolved: &Resolved,
    ) -> Result<Vec<Placement>, SimulationError> {
        if !job.filenames.is_empty() && self.journal.is_none() {
            return job.filenames.iter().map(|name| self.disk_of(job, name)).collect();
        }
        let mut placements = Vec::new();
        for (file, at) in resolved.files.iter().zip(0..) {
            let name = self.name_of(job, number, at)?;
            if let Some(known) = name.as_ref().and_then(|name| self.formatted.get(name)) {
                debug_assert!(known.len_bytes >= file.end_bytes(), "{name:?} was measured");
                placements.push(*known);
                continue;
            }
            let measured = name.as_ref().and_then(|name| self.lengths.get(name));
            let len = measured.copied().unwrap_or_else(|| file.end_bytes());
            // The fifth file without a name on four disks comes after the first one, on the first
            // disk.
            let disk = self.unnamed % self.ends.len();
            self.unnamed += 1;
            let base_bytes = self.base_of(self.ends[disk], len);
            let end = base_bytes.checked_add(len).filter(|end| *end <= self.disk_bytes);
            let end = end.ok_or_else(|| SimulationError::FilesTooLarge {
                job: job.name.clone(),
                place: job.place.clone(),
            })?;
            // A buffered file may end within a block, the next one begins at a block.
            self.ends[disk] = end.next_multiple_of(self.block_bytes);
            let len_bytes = len.next_multiple_of(self.block_bytes);
            let queue = QueueId(u16::try_from(disk).expect("a device has at most 1024 disks"));
            let placement = Placement { queue, base_bytes, len_bytes };
            if let Some(name) = name {
                self.formatted.insert(name, placement);
            }
            placements.push(placement);
        }
        Ok(placements)
    }

    /// Returns the first byte from `from` on where a file of `len` bytes has room: a file is in one
    /// piece, before the journal or behind it.
    fn base_of(&self, from: u64, len: u64) -> u64 {
        match &self.journal {
            Some(journal) if from < journal.end && from.saturating_add(len) > journal.start => {
                journal.end
            }
            _ => from,
        }
    }

    /// Returns the name of file `at` of an instance, if it has one by which others find it.
    fn name_of(&self, job: &Job, number: u32, at: u32) -> Result<Option<String>, SimulationError> {
        if let Some(name) = job.filenames.get(at as usize) {
            if name.starts_with("/dev/") {
                let place = job.place_of("filename").clone();
                return Err(SimulationError::Unfit { place, unfit: Unfit::DiskOfFileSystem });
            }
            return Ok(Some(name.clone()));
        }
        Ok(job.filename_format.as_ref().map(|format| formatted(format, job, number, at)))
    }

    fn disk_of(&mut self, job: &Job, name: &str) -> Result<Placement, SimulationError> {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let disks = u16::try_from(self.ends.len()).expect("a device has at most 1024 disks");
        match u16::try_from(at).ok().filter(|disk| *disk < disks) {
            Some(disk) => {
                Ok(Placement { queue: QueueId(disk), base_bytes: 0, len_bytes: self.disk_bytes })
            }
            None => Err(SimulationError::Unfit {
                place: job.place_of("filename").clone(),
                unfit: Unfit::TooFewDisks { disks },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_fio::job::{NoSource, parse_bytes};

    /// The second job reaches 4 KiB behind the first MiB. Both write to one file, which has 257
    /// pages: once the second one, whose part did not fit the place of the first, got a file of its
    /// own. The third job's file follows.
    #[test]
    fn a_file_is_as_long_as_the_job_needs_that_reaches_farthest() {
        let text = "[global]\nrw=write\nbs=4k\nsize=4k\n[a]\nfilename=f\n\
                    [b]\nfilename=f\noffset=1m\n[c]\nfilename=g\n";
        let jobs = parse_bytes("test", text.as_bytes(), &NoSource).unwrap();
        let device = Device::lookup("null").unwrap();
        let design = Design::lookup("mq-none").unwrap();
        let file_system = FileSystem::lookup("ext4").unwrap();
        let (planned, ..) = plan(&jobs.jobs, &device, &design, Some(&file_system)).unwrap();
        let places = planned.iter().map(|planned| match &planned.instance.origin {
            Origin::Generated { placements, .. } => placements[0],
            Origin::Recorded => unreachable!("no trace"),
        });
        let pages = places.map(|of| (of.base_bytes / PAGE_BYTES, of.len_bytes / PAGE_BYTES));
        assert_eq!(pages.collect::<Vec<_>>(), [(0, 257), (0, 257), (257, 1)]);
    }
}
