//! How a trace is to be replayed, and whether it can be on a device.

use super::error::{TraceError, TraceFault};
use super::player::Player;
use super::summary::DiskSummary;
use super::{OUTSTANDING_MAX, Trace};
use crate::job::{JobFile, NoSource, Op, parse_args};
use crate::profile::Device;
use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};
use core::str::FromStr;
use std::collections::BTreeMap;
use std::fmt;

/// When a record is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At its own instant, whatever is outstanding: an open loop. Each processor of the trace is a
    /// submitter.
    Open,
    /// In the order of the trace, as soon as fewer than this many are outstanding: a closed loop,
    /// one submitter.
    Closed(u32),
    /// As long after what went before as in the trace. Each process is a submitter; what went
    /// before is its latest issue or completion, with no more I/Os outstanding than it had then.
    Think,
}

/// How much faster than it was recorded a trace goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Thousandths; 1000 is as recorded.
    thousandths: u64,
}

impl Speed {
    /// As recorded.
    pub const RECORDED: Self = Self { thousandths: 1000 };

    /// A span of the trace, in virtual time.
    pub(super) fn scale_ns(self, ns: u64) -> u64 {
        if self == Self::RECORDED {
            return ns;
        }
        let scaled = u128::from(ns) * 1000 / u128::from(self.thousandths);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// `2`, `2x`, `0.5x`: up to three decimals.
impl FromStr for Speed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a factor from 0.001 to 1000000, such as 2x or 0.5x";
        let digits = text.strip_suffix('x').unwrap_or(text);
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if digits { text.parse::<u64>().ok() } else { None }
        };
        let (Some(whole), Some(_)) = (plain(whole), plain(part)) else { return Err(WRONG) };
        if part.len() > 3 || whole > 1_000_000 {
            return Err(WRONG);
        }
        let part = plain(&format!("{part:0<3}")).ok_or(WRONG)?;
        let thousandths = whole * 1000 + part;
        if thousandths == 0 { Err(WRONG) } else { Ok(Self { thousandths }) }
    }
}

/// What becomes of addresses beyond the end of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// They begin again at its start. What was contiguous stays so.
    Wrap,
    /// All are scaled so that the end of the trace's disk is that of the device. Distances keep
    /// their proportions; what was contiguous does not stay so.
    Scale,
}

/// How a trace is to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a record is issued.
    pub pace: Pace,
    /// How fast the trace's clock goes. Without effect in a closed loop.
    pub speed: Speed,
    /// What becomes of addresses beyond the end; `None`: they are an error.
    pub map: Option<Map>,
    /// The one disk to replay, by name or by number; `None`: all.
    pub disk: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { pace: Pace::Open, speed: Speed::RECORDED, map: None, disk: None }
    }
}

/// Why a trace cannot be replayed as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// Something is wrong with the trace.
    Trace(TraceError),
    /// It reaches beyond the end of the device.
    BeyondDevice {
        /// The trace.
        trace: String,
        /// The disk in it.
        disk: String,
        /// Bytes that disk has at least.
        end_bytes: u64,
        /// Bytes of the device.
        device_bytes: u64,
    },
    /// One I/O is longer than the device.
    LongerThanDevice {
        /// The trace.
        trace: String,
    },
    /// It has more disks than the device.
    TooFewDisks {
        /// The trace.
        trace: String,
        /// Its disks.
        names: Vec<String>,
        /// How many the device has.
        disks: u16,
    },
    /// It has no such disk.
    NoSuchDisk {
        /// The trace.
        trace: String,
        /// What was asked for.
        found: String,
        /// Its disks.
        names: Vec<String>,
    },
    /// Its offsets or lengths are not multiples of the logical block.
    Misaligned {
        /// The trace.
        trace: String,
        /// What they are multiples of.
        alignment_bytes: u64,
        /// Bytes of a logical block.
        block_bytes: u64,
    },
    /// It discards, and the device does not.
    NoDiscard {
        /// The trace.
        trace: String,
        /// How often.
        discards: u64,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::BeyondDevice { trace, disk, end_bytes, device_bytes } => write!(
                f,
                "{trace}: disk `{disk}` has {end_bytes} bytes at least, the device {device_bytes}: \
                 map its addresses by `wrap` or `scale`, or take a larger device"
            ),
            Self::LongerThanDevice { trace } => {
                write!(f, "{trace}: an I/O is longer than the device")
            }
            Self::TooFewDisks { trace, names, disks } => write!(
                f,
                "{trace}: {} disks ({}), and the device has {disks}: choose one of them",
                names.len(),
                listed(names)
            ),
            Self::NoSuchDisk { trace, found, names } => {
                write!(f, "{trace}: no disk `{found}` (its disks: {})", listed(names))
            }
            Self::Misaligned { trace, alignment_bytes, block_bytes } => write!(
                f,
                "{trace}: offsets and lengths are multiples of {alignment_bytes} bytes only, and \
                 the device's logical block has {block_bytes}"
            ),
            Self::NoDiscard { trace, discards } => {
                write!(f, "{trace}: {discards} discards, and the device does not take them")
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

/// Names for a message, each with its number.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let name = |(number, name): (usize, &String)| format!("{number} = {name}");
    let mut shown: Vec<_> = names.iter().enumerate().take(SHOWN).map(name).collect();
    if names.len() > SHOWN {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}

/// Where the records of one disk of a trace go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placing {
    pub(super) queue: QueueId,
    pub(super) map: Option<Map>,
    pub(super) end_bytes: u64,
    pub(super) device_bytes: u64,
    pub(super) block_bytes: u64,
}

impl Placing {
    /// The first byte on the device of a range of the trace's disk; whole where that is.
    pub(super) fn place(&self, offset_bytes: u64, len_bytes: u32) -> u64 {
        let last = self.device_bytes - u64::from(len_bytes).min(self.device_bytes);
        match self.map {
            None => offset_bytes,
            Some(Map::Wrap) => (offset_bytes % self.device_bytes).min(last),
            Some(Map::Scale) => {
                let end = u128::from(self.end_bytes.max(1));
                let scaled = u128::from(offset_bytes) * u128::from(self.device_bytes) / end;
                let scaled = u64::try_from(scaled).unwrap_or(last);
                (scaled - scaled % self.block_bytes).min(last)
            }
        }
    }
}

/// What a record's submitter is told by.
#[derive(Clone, Debug)]
pub(super) enum Submitters {
    /// By the processor of the machine on which that of the trace falls.
    Cpus {
        /// Processors of the machine.
        cpus: u16,
        /// Each in use, with its task.
        tasks: BTreeMap<u16, u32>,
    },
    /// There is one.
    One,
    /// By the process.
    Processes(BTreeMap<u32, u32>),
}

/// A trace and how it is to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: Trace,
    options: Options,
    /// By number of the trace's disks: whether it is replayed.
    chosen: Vec<bool>,
}

impl Replay {
    /// `trace` is to be replayed as `options` say.
    ///
    /// # Errors
    ///
    /// If it has no such disk, or too many processes for that pace.
    pub fn new(trace: Trace, options: Options) -> Result<Self, ReplayError> {
        let summary = trace.summary();
        if options.pace == Pace::Think && summary.more_processes {
            return Err(trace.fault(TraceFault::TooManySubmitters).into());
        }
        let names = || summary.disks.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>();
        let chosen: Vec<bool> = match &options.disk {
            None => vec![true; summary.disks.len()],
            Some(asked) => {
                let named = summary.disks.iter().position(|disk| disk.name == *asked);
                let numbered = || asked.parse().ok().filter(|at| *at < summary.disks.len());
                let Some(at) = named.or_else(numbered) else {
                    let (trace, found) = (trace.name().to_owned(), asked.clone());
                    return Err(ReplayError::NoSuchDisk { trace, found, names: names() });
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

    /// How it is replayed.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The disks that are replayed, by number in the trace.
    fn disks(&self) -> impl Iterator<Item = (usize, &DiskSummary)> {
        let all = self.trace.summary().disks.iter().enumerate();
        all.filter(|(at, _)| self.chosen[*at])
    }

    /// Kinds of I/O in it.
    #[must_use]
    pub fn kinds(&self) -> Vec<Op> {
        let any = |of: fn(&DiskSummary) -> u64| self.disks().any(|(_, disk)| of(disk) > 0);
        let mut kinds = Vec::new();
        kinds.extend(any(|disk| disk.reads).then_some(Op::Read));
        kinds.extend(any(|disk| disk.writes).then_some(Op::Write));
        kinds.extend(any(|disk| disk.discards).then_some(Op::Trim));
        kinds
    }

    /// The job as which it appears in reports: named after the trace, its submitters the instances.
    ///
    /// # Panics
    ///
    /// Never: the options it is made of are sound.
    #[must_use]
    pub fn job_file(&self, device: &Device) -> JobFile {
        let submitters = self.submitters(device).1.len();
        let each = OUTSTANDING_MAX / u32::try_from(submitters).unwrap_or(u32::MAX).max(1);
        let depth = match self.options.pace {
            Pace::Closed(depth) => depth,
            Pace::Open | Pace::Think => each.max(1),
        };
        let longest = self.disks().map(|(_, disk)| disk.len_bytes_max).max().unwrap_or(0);
        let args = [
            format!("--name={}", self.trace.name()),
            "--direct=1".to_owned(),
            "--ioengine=libaio".to_owned(),
            format!("--iodepth={depth}"),
            format!("--numjobs={submitters}"),
            "--group_reporting".to_owned(),
            "--rw=rw".to_owned(),
            format!("--bs={}", longest.clamp(512, crate::job::BLOCK_BYTES_MAX)),
        ];
        parse_args(args.iter().map(String::as_str), &NoSource).expect("sound options")
    }

    /// Who submits: how records tell, and for each task its processor on the machine of `device`.
    pub(super) fn submitters(&self, device: &Device) -> (Submitters, Vec<CpuId>) {
        let summary = self.trace.summary();
        let cpus = device.machine.cpus;
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

    /// The processor of each task on the machine of `device`.
    #[must_use]
    pub fn task_cpus(&self, device: &Device) -> Vec<CpuId> {
        self.submitters(device).1
    }

    /// A player of it on `device`.
    ///
    /// # Errors
    ///
    /// A [`ReplayError`] if the device is too small for it, or lacks what it asks for.
    pub fn player(&self, device: &Device) -> Result<Player, ReplayError> {
        let placings = self.placings(device)?;
        let submitters = self.submitters(device).0;
        Ok(Player::new(self.trace.records()?, &self.options, placings, submitters))
    }

    /// By number of the trace's disks; `None`: it is not replayed.
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
        let mut placings = vec![None; self.chosen.len()];
        for ((at, disk), queue) in self.disks().zip(0..) {
            let end_bytes = disk.end_bytes;
            if self.options.map.is_none() && end_bytes > device_bytes {
                let (trace, disk) = (trace(), disk.name.clone());
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
            let (queue, map) = (QueueId(queue), self.options.map);
            placings[at] = Some(Placing { queue, map, end_bytes, device_bytes, block_bytes });
        }
        Ok(placings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor() {
        let ns = |text: &str| text.parse::<Speed>().map(|speed| speed.scale_ns(3_000));
        assert_eq!(ns("1"), Ok(3_000));
        assert_eq!(ns("2x"), Ok(1_500));
        assert_eq!(ns("0.5"), Ok(6_000));
        assert_eq!(ns("1.5x"), Ok(2_000));
        for wrong in ["", "x", "0", "-1", "2 x", "1e3", "0.0001", ".5", "0.+1", "2000000"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn mapped_addresses_lie_on_the_device() {
        let queue = QueueId(0);
        let placing = |map| Placing {
            queue,
            map,
            end_bytes: 10_000 * 512,
            device_bytes: 1000 * 512,
            block_bytes: 4096,
        };
        let wrap = placing(Some(Map::Wrap));
        assert_eq!(wrap.place(2008 * 512, 4096), 8 * 512);
        assert_eq!(wrap.place(999 * 512, 1024), 998 * 512, "not across the end");
        let scale = placing(Some(Map::Scale));
        assert_eq!(scale.place(0, 4096), 0);
        assert_eq!(scale.place(5000 * 512, 4096), 496 * 512, "the middle, on a block");
        assert_eq!(scale.place(9992 * 512, 4096), 992 * 512);
        assert_eq!(placing(None).place(123 * 512, 512), 123 * 512);
    }
}
