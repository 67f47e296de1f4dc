//! One measurement: the load, and its results.
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use super::client::{Client, Progress};
use super::cpu;
use super::peer::{Programs, Server};
use super::shape::Shape;
use blockyard::stats::Histogram;
use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

/// The time before a measurement.
const RAMP: Duration = Duration::from_millis(300);

/// A load: its length and its connections.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The requests of each connection.
    pub shape: Shape,
    /// The number of connections, each with a thread.
    pub connections: usize,
    /// Further connections, which send nothing.
    pub idle: usize,
    /// The time of the measurement.
    pub time: Duration,
}

/// The results of a measurement, which are printed and parsed as one line of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Replies.
    pub ios: u64,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// Processor time of the server, in nanoseconds.
    pub server_ns: u64,
    /// The median latency, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th percentile of latencies, in nanoseconds.
    pub p99_ns: u64,
}

impl Load {
    /// Runs the load in a process of its own, on these processors (a list for `taskset`).
    ///
    /// # Errors
    ///
    /// Returns an error if the process does not start, or with its message if it fails.
    pub(crate) fn run_apart(
        &self,
        programs: &Programs,
        cpus: &str,
        exports: &[String],
        server: &Server,
    ) -> io::Result<Measured> {
        let numbers = [
            ("--bytes", self.shape.bytes),
            ("--depth", self.shape.depth),
            ("--connections", self.connections),
            ("--idle", self.idle),
        ];
        let output = Command::new("taskset")
            .args(["-c", cpus])
            .arg(&programs.bare)
            .args(["load", self.shape.direction.word()])
            .arg(server.socket())
            .args(exports.iter().map(|export| format!("--export={export}")))
            .args(numbers.iter().map(|(option, number)| format!("{option}={number}")))
            .arg(format!("--ms={}", self.time.as_millis()))
            .arg(format!("--server={}", server.pid()))
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(said.trim().to_owned()));
        }
        String::from_utf8_lossy(&output.stdout).trim().parse().map_err(io::Error::other)
    }

    /// Loads the server, whose `exports` the connections open in turn, and measures its processor
    /// time.
    ///
    /// # Errors
    ///
    /// Returns an error if a connection breaks or the server's processor time cannot be read.
    ///
    /// # Panics
    ///
    /// Panics if a thread of the load panics, or if there are no exports.
    pub fn run(&self, socket: &Path, exports: &[String], server: u32) -> io::Result<Measured> {
        let connect = |at: usize| Client::connect(socket, &exports[at % exports.len()]);
        let idle = (0..self.idle).map(connect).collect::<io::Result<Vec<_>>>()?;
        let clients = (0..self.connections).map(connect).collect::<io::Result<Vec<_>>>()?;
        let progress: Vec<Progress> = clients.iter().map(|_| Progress::default()).collect();
        thread::scope(|scope| {
            let mut seed = 0;
            let threads: Vec<_> = clients
                .into_iter()
                .zip(&progress)
                .map(|(client, progress)| {
                    seed += 1;
                    scope.spawn(move || client.load(self.shape, seed, progress))
                })
                .collect();
            thread::sleep(RAMP);
            tell(&progress, |one| &one.measuring, true);
            let before = Reading::take(&progress, server);
            thread::sleep(self.time);
            let after = Reading::take(&progress, server);
            tell(&progress, |one| &one.measuring, false);
            tell(&progress, |one| &one.stopping, true);
            let mut latencies = Histogram::new();
            for thread in threads {
                latencies.merge(&thread.join().expect("thread of the load")?);
            }
            drop(idle);
            let before = before?;
            let after = after?;
            let wall = after.at - before.at;
            Ok(Measured {
                ios: after.ios - before.ios,
                wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
                server_ns: after.server_ns - before.server_ns,
                p50_ns: latencies.percentile(50_000),
                p99_ns: latencies.percentile(99_000),
            })
        })
    }
}

/// Sets a flag of every connection.
fn tell(progress: &[Progress], flag: fn(&Progress) -> &AtomicBool, value: bool) {
    progress.iter().for_each(|one| flag(one).store(value, Ordering::Relaxed));
}

/// The state of a load at an instant.
struct Reading {
    ios: u64,
    at: Instant,
    server_ns: u64,
}

impl Reading {
    fn take(progress: &[Progress], server: u32) -> io::Result<Self> {
        let ios = progress.iter().map(|one| one.ios.load(Ordering::Relaxed)).sum();
        Ok(Self { ios, at: Instant::now(), server_ns: cpu::nanoseconds(server)? })
    }
}

impl Measured {
    /// Processor time of the server for each I/O, in microseconds.
    #[must_use]
    pub(crate) fn server_us_per_io(&self) -> f64 {
        Duration::from_nanos(self.server_ns).as_secs_f64() * 1e6 / self.ios.max(1) as f64
    }

    /// I/Os per second, in thousands.
    #[must_use]
    pub(crate) fn thousand_iops(&self) -> f64 {
        self.ios as f64 / 1e3 / Duration::from_nanos(self.wall_ns).as_secs_f64()
    }

    /// The 99th percentile of latencies, in milliseconds.
    #[must_use]
    pub(crate) fn p99_ms(&self) -> f64 {
        Duration::from_nanos(self.p99_ns).as_secs_f64() * 1e3
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ios, wall_ns, server_ns, p50_ns, p99_ns } = self;
        write!(f, "{ios} {wall_ns} {server_ns} {p50_ns} {p99_ns}")
    }
}

impl FromStr for Measured {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let numbers = line.split_whitespace().map(|word| word.parse().map_err(|_| "no number"));
        let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
        let [ios, wall_ns, server_ns, p50_ns, p99_ns] = numbers[..] else {
            return Err("no line of five numbers");
        };
        Ok(Self { ios, wall_ns, server_ns, p50_ns, p99_ns })
    }
}
