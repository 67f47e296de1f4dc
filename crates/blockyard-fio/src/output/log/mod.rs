//! Logs of I/Os over time, in the files and the format of fio's `write_lat_log` and related
//! options.
//!
//! A line is `time, value, kind, bytes, offset, priority`: milliseconds since the start of
//! measuring; nanoseconds, kilobytes per second or I/Os per second; 0 for a read, 1 for a write, 2
//! for a trim; the length of the I/O; its offset, only with `log_offset`; 1 for real-time priority,
//! or the priority in Linux's encoding with `log_prio`.
//!
//! With windows (`log_avg_msec`) each I/O counts in exactly one window.
//!
//! Files are called `PREFIX_TYPE.N.log`, where N counts the instances of the whole job file from 1.
//! Without `per_job_logs` the instances share `PREFIX_TYPE.log`. Older files are overwritten.
//!
//! Without windows each I/O has a line. Its bandwidth is its length over its completion latency, in
//! units of 1000 bytes; its I/Os per second are 1. With windows, each kind of I/O has a latency
//! line per window: the first I/O that ends after a window still belongs to the window and closes
//! it. Bandwidth (in KiB per second) and I/Os per second have a line per sample. Length, offset and
//! priority are 0. An I/O of a synchronous engine has no submission latency: all of it is
//! completion latency. Syncs are not logged.
//!
//! Lines are written in large pieces. A file is open only during a write, so that there may be more
//! files than a process may open. The first write error ends all logging.

mod error;
mod file;
mod window;

pub use error::LogError;

use crate::job::{Job, LogPrefix, Op, PriorityClass, encoded};
use crate::measure::Taken;
use crate::measure::meter::Rate;
use blockyard::time::Duration;
use file::{Line, LogFile, Priority};
use window::Windows;

/// The logs of a run.
#[derive(Debug, Default)]
pub struct Logs {
    files: Vec<LogFile>,
    /// The logs of each instance.
    instances: Vec<InstanceLogs>,
    failed: Option<LogError>,
}

/// A log of one instance.
#[derive(Debug)]
struct Log {
    /// An index into [`Logs::files`].
    file: usize,
    /// The windows of latencies. `None` without windows, and for sampled values.
    windows: Option<Windows>,
}

/// The logs of one instance.
#[derive(Debug)]
struct InstanceLogs {
    slat: Option<Log>,
    clat: Option<Log>,
    lat: Option<Log>,
    bandwidth: Option<Log>,
    iops: Option<Log>,
    shape: Shape,
}

/// The form of an instance's lines.
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
                Priority::Encoded(encoded(job.priority_class, job.priority))
            } else {
                Priority::RealTime(job.priority_class == PriorityClass::RealTime)
            },
        }
    }

    /// Returns the line of one I/O.
    fn of_io(&self, op: Op, value: u64, at: Duration, taken: &Taken) -> Line {
        debug_assert!(!self.windowed, "a log with windows has no lines for I/Os");
        Line {
            at_ms: milliseconds(at),
            value,
            op,
            len_bytes: taken.len_bytes,
            offset_bytes: self.offset.then_some(taken.offset_bytes),
            priority: match (self.priority, taken.priority) {
                (of_job, None) => of_job,
                (Priority::RealTime(_), Some((class, _))) => {
                    Priority::RealTime(class == PriorityClass::RealTime)
                }
                (Priority::Encoded(_), Some((class, level))) => {
                    Priority::Encoded(encoded(class, Some(level)))
                }
            },
        }
    }

    /// Returns the line of a window.
    fn of_window(&self, op: Op, value: u64, at: Duration) -> Line {
        debug_assert!(self.windowed, "a log without windows has lines for I/Os only");
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

impl Logs {
    /// Whether any instance has a log.
    #[must_use]
    pub const fn any(&self) -> bool {
        !self.instances.is_empty()
    }

    /// Creates the logs of `jobs`, with empty files.
    ///
    /// # Errors
    ///
    /// A [`LogError`] for the first file that cannot be created.
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

    /// Creates the logs of instance `number` of the job file.
    fn instance(&mut self, job: &Job, number: u32) -> Result<InstanceLogs, LogError> {
        debug_assert!(number > 0, "instances are counted from 1");
        let reporting = &job.reporting;
        let logging = &reporting.logging;
        let latency = &logging.latency;
        Ok(InstanceLogs {
            slat: if reporting.disable_slat {
                None
            } else {
                self.log(job, number, latency, "slat", true)?
            },
            clat: self.log(job, number, latency, "clat", true)?,
            lat: if reporting.disable_lat {
                None
            } else {
                self.log(job, number, latency, "lat", true)?
            },
            // A value that is not measured leaves its file empty.
            bandwidth: self
                .log(job, number, &logging.bandwidth, "bw", false)?
                .filter(|_| !reporting.disable_bw),
            iops: self.log(job, number, &logging.iops, "iops", false)?,
            shape: Shape::of(job),
        })
    }

    /// Creates the log of instance `number` whose name ends in `kind`, if it has a prefix.
    fn log(
        &mut self,
        job: &Job,
        number: u32,
        prefix: &Option<LogPrefix>,
        kind: &str,
        averaged: bool,
    ) -> Result<Option<Log>, LogError> {
        let Some(prefix) = prefix else { return Ok(None) };
        let logging = &job.reporting.logging;
        let prefix = match prefix {
            LogPrefix::JobName => &job.name,
            LogPrefix::Given(prefix) => prefix,
        };
        let instance = if logging.per_instance { format!(".{number}") } else { String::new() };
        let file = self.file(format!("{prefix}_{kind}{instance}.log"))?;
        let windows = (averaged && logging.window_ms > 0)
            .then(|| Windows::new(logging.window_ms, logging.largest));
        Ok(Some(Log { file, windows }))
    }

    /// Returns the index of the file at `path`, which is created unless it is known.
    fn file(&mut self, path: String) -> Result<usize, LogError> {
        if let Some(at) = self.files.iter().position(|file| file.path() == path) {
            return Ok(at);
        }
        self.files.push(LogFile::create(path)?);
        Ok(self.files.len() - 1)
    }

    /// Logs that an instance, counted from 0, reaped an I/O of kind `op`, `at` after the start of
    /// measuring.
    pub fn io(&mut self, instance: u32, op: Op, taken: &Taken, at: Duration) {
        let Some(logs) = self.instances.get_mut(instance as usize) else { return };
        let shape = logs.shape;
        let slat = taken.slat.as_ns();
        let lat = taken.lat().as_ns();
        let clat = if shape.is_async { taken.clat.as_ns() } else { lat };
        let latencies = [(&mut logs.slat, slat), (&mut logs.clat, clat), (&mut logs.lat, lat)];
        for (log, ns) in latencies.into_iter().skip(usize::from(!shape.is_async)) {
            let Some(log) = log else { continue };
            let line = match &mut log.windows {
                None => Some(shape.of_io(op, ns, at, taken)),
                Some(windows) => {
                    let value = windows.add(op, ns, milliseconds(at));
                    value.map(|value| shape.of_window(op, value, at))
                }
            };
            if let Some(line) = line {
                self.files[log.file].put(line);
            }
        }
        if shape.windowed {
            return; // these logs take samples instead
        }
        let kilobytes = u64::from(taken.len_bytes) * 1_000_000;
        let kilobytes_per_s = kilobytes.checked_div(clat).unwrap_or(0);
        for (log, value) in [(&logs.bandwidth, kilobytes_per_s), (&logs.iops, 1)] {
            if let Some(log) = log {
                self.files[log.file].put(shape.of_io(op, value, at, taken));
            }
        }
    }

    /// Logs a sampled rate of an instance.
    pub fn rate(&mut self, instance: u32, rate: Rate) {
        let Some(logs) = self.instances.get(instance as usize).filter(|logs| logs.shape.windowed)
        else {
            return;
        };
        debug_assert!((logs.bandwidth.iter().chain(&logs.iops)).all(|log| log.windows.is_none()));
        let (log, sample) = match rate {
            Rate::Bandwidth(sample) => (&logs.bandwidth, sample),
            Rate::Iops(sample) => (&logs.iops, sample),
        };
        if let Some(log) = log {
            let line = logs.shape.of_window(sample.op, sample.value, sample.at);
            self.files[log.file].put(line);
        }
    }

    /// Logs the open windows of an instance that has ended, `at` after the start of measuring.
    pub fn end(&mut self, instance: u32, at: Duration) {
        let Some(logs) = self.instances.get_mut(instance as usize) else { return };
        for log in [&mut logs.slat, &mut logs.clat, &mut logs.lat].into_iter().flatten() {
            for (op, value) in log.windows.iter_mut().flat_map(Windows::rest) {
                self.files[log.file].put(logs.shape.of_window(op, value, at));
            }
        }
    }

    /// Writes the files that have a whole piece.
    ///
    /// # Errors
    ///
    /// The first [`LogError`], on every call after it.
    pub fn write_due(&mut self) -> Result<(), LogError> {
        self.write(LogFile::is_due)
    }

    /// Writes all files.
    ///
    /// # Errors
    ///
    /// Like `write_due`.
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
