//! Logs of I/Os over time, in the files and the format of fio's `write_lat_log` and its kin.
//!
//! A line is `time, value, kind, bytes, offset, priority`: milliseconds since measuring began, then
//! nanoseconds, kilobytes or I/Os per second; 0 for a read, 1 for a write, 2 for a trim; the length
//! of the I/O; its offset, only where the job says `log_offset`; 1 for real-time priority, or with
//! `log_prio` the priority as Linux encodes it.
//!
//! # Rules
//!
//! - **L1.** Files are called `PREFIX_TYPE.N.log`, where N counts the instances of the whole job
//!   file from 1; without `per_job_logs` `PREFIX_TYPE.log`, which instances then share. What was in
//!   them is gone.
//! - **L2.** Without windows there is a line for each I/O. Its bandwidth is its length over its
//!   completion latency, in units of 1000 bytes; as I/Os per second it is 1.
//! - **L3.** With windows (`log_avg_msec`) latencies are told once a window, kind by kind: the first
//!   I/O that ends beyond a window is still of it, and closes it. Bandwidth, in KiB per second, and
//!   I/Os per second are told as they are sampled. Length, offset and priority are 0.
//! - **L4.** An I/O of a synchronous engine has no submission latency: all of it is completion
//!   latency. Syncs are not logged.
//! - **L5.** Lines are written as they come, in large pieces. A file is open only meanwhile, so that
//!   there may be more of them than a process may open. The first that cannot be written ends all
//!   logging.

mod file;
mod window;

use crate::job::{Job, LogPrefix, Op, PriorityClass};
use crate::machine::cpu::TaskId;
use crate::measure::meter::Rate;
use crate::task::Taken;
use crate::words::Words;
use blockyard::time::Duration;
use file::{Line, LogFile, Priority};
use std::fmt;
use std::io;
use window::Windows;

/// Why a log cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// The file.
    pub path: String,
    /// Why.
    pub kind: io::ErrorKind,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot write the log: {}", self.path, Words(self.kind))
    }
}

impl core::error::Error for LogError {}

/// The logs of a run.
#[derive(Debug, Default)]
pub struct Logs {
    files: Vec<LogFile>,
    /// By task.
    instances: Vec<InstanceLogs>,
    failed: Option<LogError>,
}

/// A log of one instance.
#[derive(Debug)]
struct Log {
    /// An index into [`Logs::files`].
    file: usize,
    /// L3; `None` without windows, and for what is sampled.
    windows: Option<Windows>,
}

/// What one instance logs.
#[derive(Debug)]
struct InstanceLogs {
    slat: Option<Log>,
    clat: Option<Log>,
    lat: Option<Log>,
    bandwidth: Option<Log>,
    iops: Option<Log>,
    shape: Shape,
}

/// What lines of an instance look like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_async: bool,
    windowed: bool,
    offset: bool,
    priority: Priority,
}

impl Shape {
    fn of(job: &Job) -> Self {
        let logging = &job.reporting.logging;
        Self {
            is_async: job.engine.is_async(),
            windowed: logging.window_ms > 0,
            offset: logging.offset,
            priority: if logging.priority {
                Priority::Encoded(encoded_priority(job))
            } else {
                Priority::RealTime(job.priority_class == PriorityClass::RealTime)
            },
        }
    }

    /// The line of one I/O (L2).
    fn of_io(&self, op: Op, value: u64, at: Duration, taken: &Taken) -> Line {
        Line {
            at_ms: milliseconds(at),
            value,
            op,
            len_bytes: taken.len_bytes,
            offset_bytes: self.offset.then_some(taken.offset_bytes),
            priority: self.priority,
        }
    }

    /// The line of a window (L3).
    fn of_window(&self, op: Op, value: u64, at: Duration) -> Line {
        Line {
            at_ms: milliseconds(at),
            value,
            op,
            len_bytes: 0,
            offset_bytes: self.offset.then_some(0),
            priority: match self.priority {
                Priority::RealTime(_) => Priority::RealTime(false),
                Priority::Encoded(_) => Priority::Encoded(0),
            },
        }
    }
}

const fn milliseconds(time: Duration) -> u64 {
    time.as_ns() / 1_000_000
}

/// The priority of a job as Linux encodes it: the class from bit 13 on, the level below.
fn encoded_priority(job: &Job) -> u16 {
    let class = match (job.priority_class, job.priority) {
        (PriorityClass::None, None) => 0,
        (PriorityClass::RealTime, _) => 1,
        (PriorityClass::BestEffort | PriorityClass::None, _) => 2,
        (PriorityClass::Idle, _) => 3,
    };
    class << 13 | u16::from(job.priority.unwrap_or(0))
}

impl Logs {
    /// The logs that `jobs` ask for (L1), their files made and empty.
    ///
    /// # Errors
    ///
    /// A [`LogError`] for the first file that cannot be made.
    pub fn create(jobs: &[Job]) -> Result<Self, LogError> {
        let mut logs = Self::default();
        if !jobs.iter().any(|job| job.reporting.logging.any()) {
            return Ok(logs);
        }
        for job in jobs {
            for instance in 0..job.numjobs {
                let logged = logs.instance(job, job.first_instance + instance + 1)?;
                logs.instances.push(logged);
            }
        }
        Ok(logs)
    }

    /// The logs of the instance that counts as number `number`.
    fn instance(&mut self, job: &Job, number: u32) -> Result<InstanceLogs, LogError> {
        let reporting = &job.reporting;
        let logging = &reporting.logging;
        let windowed = logging.window_ms > 0;
        let mut log = |prefix: &Option<LogPrefix>, kind, averaged: bool| {
            let Some(prefix) = prefix else { return Ok(None) };
            let prefix = match prefix {
                LogPrefix::JobName => &job.name,
                LogPrefix::Given(prefix) => prefix,
            };
            let path = if logging.per_instance {
                format!("{prefix}_{kind}.{number}.log")
            } else {
                format!("{prefix}_{kind}.log")
            };
            let windows = || Windows::new(logging.window_ms, logging.largest);
            let file = self.file(path)?;
            Ok(Some(Log { file, windows: (averaged && windowed).then(windows) }))
        };
        let latency = &logging.latency;
        Ok(InstanceLogs {
            slat: if reporting.disable_slat { None } else { log(latency, "slat", true)? },
            clat: log(latency, "clat", true)?,
            lat: if reporting.disable_lat { None } else { log(latency, "lat", true)? },
            // What is not measured leaves the file empty.
            bandwidth: log(&logging.bandwidth, "bw", false)?.filter(|_| !reporting.disable_bw),
            iops: log(&logging.iops, "iops", false)?,
            shape: Shape::of(job),
        })
    }

    /// The file at `path`, made unless it is there already.
    fn file(&mut self, path: String) -> Result<usize, LogError> {
        if let Some(at) = self.files.iter().position(|file| file.path() == path) {
            return Ok(at);
        }
        self.files.push(LogFile::create(path)?);
        Ok(self.files.len() - 1)
    }

    /// A task took the result of an I/O of kind `op`, `at` so long after measuring it began.
    pub fn io(&mut self, task: TaskId, op: Op, taken: &Taken, at: Duration) {
        let Some(logs) = self.instances.get_mut(task.0 as usize) else { return };
        let shape = logs.shape;
        let (slat, lat) = (taken.slat.as_ns(), taken.slat.as_ns() + taken.clat.as_ns());
        let clat = if shape.is_async { taken.clat.as_ns() } else { lat }; // L4
        let latencies = [(&mut logs.slat, slat), (&mut logs.clat, clat), (&mut logs.lat, lat)];
        for (log, ns) in latencies.into_iter().skip(usize::from(!shape.is_async)) {
            let Some(log) = log else { continue };
            let line = match &mut log.windows {
                None => Some(shape.of_io(op, ns, at, taken)),
                Some(windows) => {
                    let told = windows.add(op, ns, milliseconds(at));
                    told.map(|value| shape.of_window(op, value, at))
                }
            };
            if let Some(line) = line {
                self.files[log.file].put(line);
            }
        }
        if shape.windowed {
            return; // L3
        }
        let kilobytes = u64::from(taken.len_bytes) * 1_000_000;
        let kilobytes_per_s = kilobytes.checked_div(clat).unwrap_or(0);
        for (log, value) in [(&logs.bandwidth, kilobytes_per_s), (&logs.iops, 1)] {
            if let Some(log) = log {
                self.files[log.file].put(shape.of_io(op, value, at, taken)); // L2
            }
        }
    }

    /// A rate of a task was sampled (L3).
    pub fn rate(&mut self, task: TaskId, rate: Rate) {
        let Some(logs) = self.instances.get(task.0 as usize).filter(|logs| logs.shape.windowed)
        else {
            return;
        };
        let (log, sample) = match rate {
            Rate::Bandwidth(sample) => (&logs.bandwidth, sample),
            Rate::Iops(sample) => (&logs.iops, sample),
        };
        if let Some(log) = log {
            let line = logs.shape.of_window(sample.op, sample.value, sample.at);
            self.files[log.file].put(line);
        }
    }

    /// A task has ended, `at` so long after measuring it began: what its windows hold is told.
    pub fn end(&mut self, task: TaskId, at: Duration) {
        let Some(logs) = self.instances.get_mut(task.0 as usize) else { return };
        for log in [&mut logs.slat, &mut logs.clat, &mut logs.lat].into_iter().flatten() {
            for (op, value) in log.windows.iter_mut().flat_map(Windows::rest) {
                self.files[log.file].put(logs.shape.of_window(op, value, at));
            }
        }
    }

    /// Writes what has come together and is due.
    ///
    /// # Errors
    ///
    /// A [`LogError`], from then on always (L5).
    pub fn write_due(&mut self) -> Result<(), LogError> {
        self.write(LogFile::is_due)
    }

    /// Writes everything.
    ///
    /// # Errors
    ///
    /// As [`Self::write_due`].
    pub fn write_all(&mut self) -> Result<(), LogError> {
        self.write(|_| true)
    }

    fn write(&mut self, which: impl Fn(&LogFile) -> bool) -> Result<(), LogError> {
        for file in self.files.iter_mut().filter(|file| which(file)) {
            if self.failed.is_none() {
                self.failed = file.write().err();
            }
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}
