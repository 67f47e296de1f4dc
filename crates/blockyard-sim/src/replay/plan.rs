//! A replay: a trace, its pace and its place on a device.

use super::limits::OUTSTANDING_MAX;
use super::options::{Options, Pace};
use super::placing::{Placing, Submitters};
use super::player::Player;
use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};
use blockyard_devices::profile::Device;
use blockyard_fio::job::{JobFile, NoSource, Op, parse_args};
use blockyard_trace::{DiskSummary, Trace, TraceError, TraceFault};
use std::collections::BTreeMap;
use std::fmt;

/// The reason why a trace cannot be replayed as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The trace is at fault.
    Trace(TraceError),
    /// The trace reaches beyond the end of the device.
    BeyondDevice {
        /// The trace.
        trace: String,
        /// The disk in it.
        disk: String,
        /// The smallest size that disk can have, bytes.
        end_bytes: u64,
        /// Size of the device, bytes.
        device_bytes: u64,
    },
    /// An I/O is longer than the device.
    LongerThanDevice {
        /// The trace.
        trace: String,
    },
    /// The trace has more disks than the device.
    TooFewDisks {
        /// The trace.
        trace: String,
        /// Its disks.
        names: Vec<String>,
        /// Number of disks of the device.
        disks: u16,
    },
    /// The trace has no such disk.
    NoSuchDisk {
        /// The trace.
        trace: String,
        /// The requested disk.
        found: String,
        /// Its disks.
        names: Vec<String>,
    },
    /// Offsets or lengths are not multiples of the logical block.
    Misaligned {
        /// The trace.
        trace: String,
        /// The largest power of two that divides all of them.
        alignment_bytes: u64,
        /// Size of a logical block, bytes.
        block_bytes: u64,
    },
    /// The trace has discards, and the device does not support them.
    NoDiscard {
        /// The trace.
        trace: String,
        /// Number of discards.
        discards: u64,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::BeyondDevice { trace, disk, end_bytes, device_bytes } => write!(
                f,
                "{trace}: disk `{disk}` has at least {end_bytes} bytes, the device {device_bytes}: \
                 map its addresses with `wrap` or `scale`, or choose a larger device"
            ),
            Self::LongerThanDevice { trace } => {
                write!(f, "{trace}: an I/O is longer than the device")
            }
            Self::TooFewDisks { trace, names, disks } => write!(
                f,
                "{trace}: {} disks ({}), but the device has {disks}: choose one of them",
                names.len(),
                listed(names)
            ),
            Self::NoSuchDisk { trace, found, names } => {
                write!(f, "{trace}: no disk `{found}` (its disks: {})", listed(names))
            }
            Self::Misaligned { trace, alignment_bytes, block_bytes } => write!(
                f,
                "{trace}: offsets and lengths are multiples of only {alignment_bytes} bytes, but \
                 the device's logical block has {block_bytes}"
            ),
            Self::NoDiscard { trace, discards } => {
                write!(f, "{trace}: {discards} discards, but the device does not support discard")
            }
        }
    }
}

impl core::error::Error for ReplayError {}

impl From<TraceError> for ReplayError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// Lists names for a message, each with its number.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let name = |(number, name): (usize, &String)| format!("{number} = {name}");
    let mut shown: Vec<_> = names.iter().enumerate().take(SHOWN).map(name).collect();
    if names.len() > SHOWN {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}

/// A trace with its options for a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: Trace,
    options: Options,
    /// By number of the trace's disks: whether the disk is replayed.
    chosen: Vec<bool>,
}

impl Replay {
    /// Returns a replay of `trace` with `options`.
    ///
    /// # Errors
    ///
    /// If the trace has no such disk, or too many processes for that pace.
    pub fn new(trace: Trace, options: Options) -> Result<Self, ReplayError> {
        let summary = trace.summary();
        if options.pace == Pace::Think && summary.more_processes {
            return Err(trace.fault(TraceFault::TooManySubmitters).into());
        }
        let chosen: Vec<bool> = match &options.disk {
            None => vec![true; summary.disks.len()],
            Some(asked) => {
                let named = summary.disks.iter().position(|disk| disk.name == *asked);
                let numbered = || asked.parse().ok().filter(|at| *at < summary.disks.len());
                let Some(at) = named.or_else(numbered) else {
                    let trace = trace.name().to_owned();
                    let found = asked.clone();
                    return Err(ReplayError::NoSuchDisk {
                        trace,
                        found,
                        names: summary.disks.iter().map(|disk| disk.name.clone()).collect(),
                    });
                };
                (0..summary.disks.len()).map(|disk| disk == at).collect()
            }
        };
        Ok(Self { trace, options, chosen })
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The disks to replay, with their numbers in the trace.
    fn disks(&self) -> impl Iterator<Item = (usize, &DiskSummary)> {
        let all = self.trace.summary().disks.iter().enumerate();
        all.filter(|(at, _)| self.chosen[*at])
    }

    /// The kinds of I/O in the trace.
    #[must_use]
    pub(crate) fn kinds(&self) -> Vec<Op> {
        let ios = self.disks().fold([0; 3], |sums: [u64; 3], (_, disk)| {
            [sums[0] + disk.reads, sums[1] + disk.writes, sums[2] + disk.discards]
        });
        let kinds = ios.into_iter().zip([Op::Read, Op::Write, Op::Trim]);
        kinds.filter(|(ios, _)| *ios > 0).map(|(_, op)| op).collect()
    }

    /// Returns the job that stands for the replay in answers. It has the name of the trace's file,
    /// without its folder, and each submitter is an instance.
    ///
    /// # Panics
    ///
    /// Never: the options of the job are valid.
    #[must_use]
    pub fn job_file(&self, device: &Device) -> JobFile {
        let submitters = self.submitters(device).1.len();
        debug_assert!(submitters > 0, "a trace has a record, so it has a submitter");
        let each = OUTSTANDING_MAX / u32::try_from(submitters).unwrap_or(u32::MAX).max(1);
        let depth = match self.options.pace {
            Pace::Closed(depth) => depth,
            Pace::Open | Pace::Think => each.max(1),
        };
        let longest = self.disks().map(|(_, disk)| disk.len_bytes_max).max().unwrap_or(0);
        let path = self.trace.name();
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path);
        // The percentiles of completion latency leave out by how much I/Os were late; those of
        // total latency have it.
        let args = [
            format!("--name={name}"),
            "--lat_percentiles=1".to_owned(),
            "--direct=1".to_owned(),
            "--ioengine=libaio".to_owned(),
            format!("--iodepth={depth}"),
            format!("--numjobs={submitters}"),
            "--group_reporting".to_owned(),
            "--rw=rw".to_owned(),
            format!("--bs={}", longest.clamp(512, blockyard_fio::job::BLOCK_BYTES_MAX)),
        ];
        let parsed = parse_args(args.iter().map(String::as_str), &NoSource);
        parsed.expect("options of a replay's job should be valid")
    }

    /// Returns the submitters, and for each task its processor on the machine of `device`.
    pub(super) fn submitters(&self, device: &Device) -> (Submitters, Vec<CpuId>) {
        let summary = self.trace.summary();
        let cpus = device.machine.cpus;
        assert!(cpus > 0, "a machine has a processor");
        match self.options.pace {
            Pace::Closed(_) => (Submitters::One, vec![CpuId(0)]),
            Pace::Open => {
                let in_use: BTreeMap<u16, u32> =
                    summary.cpus.iter().map(|cpu| (cpu % cpus, 0)).collect();
                let tasks = in_use.into_keys().zip(0..).collect::<BTreeMap<_, _>>();
                let places = tasks.keys().map(|cpu| CpuId(*cpu)).collect();
                (Submitters::Cpus { cpus, tasks }, places)
            }
            Pace::Think => {
                let places = summary.processes.values().map(|cpu| CpuId(cpu % cpus)).collect();
                let tasks = summary.processes.keys().copied().zip(0..).collect();
                (Submitters::Processes(tasks), places)
            }
        }
    }

    /// Returns the processor of each task on the machine of `device`.
    #[must_use]
    pub(crate) fn task_cpus(&self, device: &Device) -> Vec<CpuId> {
        self.submitters(device).1
    }

    /// Returns a player for `device`.
    ///
    /// # Errors
    ///
    /// A [`ReplayError`] if the device is too small or lacks a feature that the trace needs.
    pub fn player(&self, device: &Device) -> Result<Player, ReplayError> {
        let placings = self.placings(device)?;
        let submitters = self.submitters(device).0;
        Ok(Player::new(self.trace.records()?, &self.options, placings, submitters))
    }

    /// Returns the place of each disk of the trace; `None` for a disk that is not replayed.
    fn placings(&self, device: &Device) -> Result<Vec<Option<Placing>>, ReplayError> {
        let trace = || self.trace.name().to_owned();
        let limits = &device.limits;
        let device_bytes = limits.capacity_sectors * u64::from(SECTOR_BYTES);
        let block_bytes = u64::from(limits.logical_block_sectors) * u64::from(SECTOR_BYTES);
        let disks = device.disks();
        if self.disks().count() > usize::from(disks) {
            let names = self.trace.summary().disks.iter().map(|disk| disk.name.clone()).collect();
            return Err(ReplayError::TooFewDisks { trace: trace(), names, disks });
        }
        debug_assert!(block_bytes.is_power_of_two(), "logical block of {block_bytes} bytes");
        let mut placings = vec![None; self.chosen.len()];
        for ((at, disk), queue) in self.disks().zip(0..) {
            let end_bytes = disk.end_bytes;
            if self.options.map.is_none() && end_bytes > device_bytes {
                let trace = trace();
                let disk = disk.name.clone();
                return Err(ReplayError::BeyondDevice { trace, disk, end_bytes, device_bytes });
            }
            if u64::from(disk.len_bytes_max) > device_bytes {
                return Err(ReplayError::LongerThanDevice { trace: trace() });
            }
            let alignment_bytes = disk.alignment_bytes();
            if !alignment_bytes.is_multiple_of(block_bytes) {
                return Err(ReplayError::Misaligned {
                    trace: trace(),
                    alignment_bytes,
                    block_bytes,
                });
            }
            if disk.discards > 0 && limits.max_discard_sectors == 0 {
                let discards = disk.discards;
                return Err(ReplayError::NoDiscard { trace: trace(), discards });
            }
            let queue = QueueId(queue);
            let map = self.options.map;
            placings[at] = Some(Placing { queue, map, end_bytes, device_bytes, block_bytes });
        }
        Ok(placings)
    }
}
