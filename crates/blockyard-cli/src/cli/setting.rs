//! The options that `run`, `whatif` and `replay` share: the conditions of a run, and where its
//! answer goes.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use blockyard::time::Duration;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile;
use blockyard_devices::profile::{DISKS_MAX, Device, FaultRules, FileSystem, Override};
use blockyard_sim::replay::{OUTSTANDING_MAX, Pace, Speed};
use blockyard_sim::simulate::Conditions;
use clap::{Args, ValueEnum};

use super::{FaultSource, JobChoice};
use crate::message::Failure;
use crate::{interrupt, log};

/// The options that `run`, `whatif` and `replay` share.
#[derive(Clone, Debug, Args)]
pub(crate) struct Setting {
    #[command(flatten)]
    pub(crate) playback: Playback,

    #[command(flatten)]
    pub(crate) variables: Variables,

    #[command(flatten)]
    pub(crate) choice: JobChoice,

    /// The number of disks on the device's host, which share its tags, except with AHCI
    ///
    /// Each file name of a job is a disk; files without a name take the disks in turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(DISKS_MAX)))]
    disks: Option<u16>,

    /// The run time of each job, in place of the job's own: 10s; a number alone is in seconds
    ///
    /// A job that would end earlier starts over.
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    pub(crate) runtime: Option<Duration>,

    /// When to stop before the jobs end
    #[arg(long, value_name = "CONDITION", value_enum)]
    pub(crate) until: Option<Until>,

    /// Print neither progress nor notes
    #[arg(long)]
    pub(crate) quiet: bool,

    /// The capacity of each disk, in place of the device's own: 64GiB or 64g
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,

    /// The memory of the machine, in place of the device's own: 16GiB or 16g
    ///
    /// Buffered writes are written back above 10 % of it, and held back below 20 %.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// The file system of the jobs' files: ext4, xfs, none or a TOML file
    ///
    /// Without it, or with none, jobs write to the raw disk, which has no journal. A file that a
    /// job only writes is new, with preallocated blocks unless the job has `fallocate` or
    /// `overwrite`.
    #[arg(long, value_name = "FILESYSTEM")]
    filesystem: Option<String>,

    /// Replace a value of the device or the designs: queue.nomerges=2
    ///
    /// `card.read.access=900us` is one of a device. The option may be repeated. `blockyard show`
    /// prints the keys. Tables in the middle of the key may be missing if only one figure of the
    /// device fits: card.access.
    #[arg(long, value_name = "KEY=VALUE", value_parser = replaced)]
    set: Vec<Override>,

    /// Faults to inject: a TOML file of rules, - for standard input, or a rule
    #[arg(long, alias = "fault", value_name = "RULES")]
    faults: Option<FaultSource>,

    /// Check what reads return and what is on the device at the end
    #[arg(long)]
    verify: bool,

    /// Verify, and check what a loss of power at this time would leave: 2s
    #[arg(long, value_name = "TIME", value_parser = time)]
    power_cut: Vec<Duration>,

    /// Verify, and check at this interval what a loss of power would leave: 10ms
    #[arg(long, value_name = "TIME", value_parser = time_that_passes)]
    power_cut_every: Option<Duration>,

    /// Write a trace for ui.perfetto.dev (Chrome's JSON)
    ///
    /// It shows what ran on each CPU, the stages of each request, holds and merges. Each design has
    /// its own tracks.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Write the answer as a page to post: one HTML file with charts, which loads nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// When each job's rate is known within 1 % and its p99 (of 1,000 I/Os or more) within 10 %, at
    /// the latest after --runtime, the job's own run time or 10 minutes
    Steady,
}

/// The name of no file system.
const NO_FILE_SYSTEM: &str = "none";

impl Setting {
    /// Makes signals end runs early, and silences notes if the options ask for it. Fails if a page
    /// could not be written.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if self.quiet {
            log::drop_notes();
        }
        if let Some(folder) = self.html.as_deref().and_then(Path::parent)
            && !folder.as_os_str().is_empty()
            && !folder.is_dir()
        {
            return Err(Failure::Input(format!("--html: there is no folder {}", folder.display())));
        }
        Ok(interrupt::catch()?)
    }

    /// Returns the device with this name, or at this path, as the options change it.
    pub(crate) fn device(&self, name_or_path: &str) -> Result<Device, Failure> {
        self.device_with(name_or_path, &[])
    }

    /// Returns the device as [`Self::device`] returns it, with these `values`, too.
    pub(crate) fn device_with(
        &self,
        name_or_path: &str,
        values: &[Override],
    ) -> Result<Device, Failure> {
        self.with_disks(Device::lookup_with(name_or_path, &self.of_device(values))?)
    }

    /// Returns the values that replace those of designs.
    pub(crate) fn of_designs(&self) -> Vec<Override> {
        self.set.iter().filter(|set| set.is_of_design()).cloned().collect()
    }

    /// Returns the values that replace those of the device's profile, `values` among them.
    fn of_device(&self, values: &[Override]) -> Vec<Override> {
        let sizes = [("limits.capacity", &self.capacity), ("cpu.memory", &self.memory)];
        let sizes = sizes.into_iter().filter_map(|(key, size)| {
            let value = in_units_of_profiles(size.as_deref()?);
            Some(Override { key: key.to_owned(), value })
        });
        let set = self.set.iter().filter(|set| !set.is_of_design());
        set.chain(values).cloned().chain(sizes).collect()
    }

    /// Returns `count` readings of the device, as [`Self::device_with`] returns it.
    pub(crate) fn readings(
        &self,
        name_or_path: &str,
        values: &[Override],
        count: u32,
    ) -> Result<Vec<Device>, Failure> {
        let seed = self.answer.seed;
        let readings = Device::readings(name_or_path, &self.of_device(values), seed, count)?;
        readings.into_iter().map(|device| self.with_disks(device)).collect()
    }

    /// Returns `device` with the disks that the options ask for.
    fn with_disks(&self, device: Device) -> Result<Device, Failure> {
        let Some(disks) = self.disks else { return Ok(device) };
        if let Some(several) = device.clone().with_disks(disks) {
            return Ok(several);
        }
        let name = &device.name;
        Err(Failure::Input(if device.clone().with_disks(2).is_some() {
            format!("--disks: an AHCI host as that of `{name}` has at most 32 ports")
        } else {
            format!(
                "--disks: `{name}` is one disk; a null device, a SCSI host or an AHCI host can have several"
            )
        }))
    }

    /// Returns the name of the file system of the jobs' files, if the options ask for one.
    pub(crate) fn file_system_name(&self) -> Option<&str> {
        self.filesystem.as_deref().filter(|name| *name != NO_FILE_SYSTEM)
    }

    /// Returns the file system, if the options ask for one.
    fn file_system(&self) -> Result<Option<FileSystem>, Failure> {
        Ok(self.file_system_name().map(FileSystem::lookup).transpose()?)
    }

    /// Reads the files that the options name.
    pub(crate) fn read(&self) -> Result<Subject, Failure> {
        let verify = Verify {
            power_cuts: self.power_cut.clone(),
            power_cut_every: self.power_cut_every,
            ..Verify::default()
        };
        Ok(Subject {
            seed: self.answer.seed,
            until_steady: self.until.is_some(),
            file_system: self.file_system()?,
            faults: self.faults.as_ref().map(FaultSource::read).transpose()?,
            verify: (self.verify || verify.cuts_power()).then_some(verify),
        })
    }
}

/// The conditions of a run.
pub(crate) struct Subject {
    seed: u64,
    until_steady: bool,
    file_system: Option<FileSystem>,
    faults: Option<FaultRules>,
    verify: Option<Verify>,
}

impl Subject {
    /// The conditions, as a simulation takes them. The first signal to end stops it.
    pub(crate) fn conditions(&self) -> Conditions<'_> {
        Conditions {
            until_steady: self.until_steady,
            stop: Some(interrupt::stop()),
            file_system: self.file_system.as_ref(),
            faults: self.faults.as_ref(),
            verify: self.verify.as_ref(),
            ..Conditions::new(self.seed)
        }
    }
}

fn replaced(text: &str) -> Result<Override, &'static str> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE: card.read.access=900us")?;
    Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned() })
}

fn time(text: &str) -> Result<Duration, String> {
    profile::read_time(text, "20us, 1.5ms, 2s")
}

fn time_that_passes(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("the time must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// Returns a capacity as a profile writes it, if it has one letter as for fio: `64GiB` for `64g`.
fn in_units_of_profiles(text: &str) -> String {
    let end = text.char_indices().last().map_or(0, |(at, _)| at);
    let (number, letter) = text.split_at(end);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let upper = letter.to_ascii_uppercase();
    let is_unit = matches!(upper.as_str(), "K" | "M" | "G" | "T");
    if is_number && is_unit { format!("{number}{upper}iB") } else { text.to_owned() }
}

/// Parses a run time. As in fio, a number alone is in seconds.
fn run_time(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(seconds) => time_that_passes(&format!("{seconds}s")),
        Err(_) => time_that_passes(text),
    }
}

/// The replay of a trace.
#[derive(Clone, Debug, Args)]
pub(crate) struct Playback {
    /// When recorded I/O is issued: `open`, `closed:N` or `think`
    ///
    /// What a thread submitted under one plug is submitted together. A trace of blktrace without
    /// plugs is judged by threads and times.
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pub(crate) pace: Option<Pace>,

    /// The speed of the replay relative to the recording: 2x, 0.5x
    #[arg(long, value_name = "FACTOR")]
    pub(crate) speed: Option<Speed>,

    /// The treatment of addresses beyond the end of the device
    #[arg(long, value_name = "MAPPING", value_enum)]
    pub(crate) map: Option<Addresses>,

    /// The disk of the trace to replay: its name, or its number from 0
    ///
    /// Without this option all disks are replayed.
    #[arg(long, value_name = "DISK")]
    pub(crate) disk: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Addresses {
    /// Wrap around to the start of the device
    Wrap,
    /// Scale the disk of the trace to the device
    Scale,
}

/// `open`, `think`, `closed` or `closed:N`.
fn pace(text: &str) -> Result<Pace, String> {
    let wrong =
        || format!("expected one of open, think, closed:N with N from 1 to {OUTSTANDING_MAX}");
    match text.split_once(':').unwrap_or((text, "")) {
        ("open", "") => Ok(Pace::Open),
        ("think", "") => Ok(Pace::Think),
        ("closed", depth) => {
            let depth = if depth.is_empty() { Ok(1) } else { depth.parse() };
            let depth = depth.ok().filter(|depth| (1..=OUTSTANDING_MAX).contains(depth));
            depth.map(Pace::Closed).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// The variables of a job file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Variables {
    /// Set ${NAME} of the job file; may be repeated; also ncpus and mb_memory
    ///
    /// A variable that is not set here is taken from the environment, as fio does, with a note.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) given: Vec<(String, String)>,
}

fn variable(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE"),
    }
}

/// The seed of an answer, and where the answer goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Answer {
    /// The seed of all random draws
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the answer to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Answer {
    /// Writes `text` to the file asked for, without escape sequences, or else to `out`.
    pub(crate) fn deliver(&self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(file) = &self.output else { return Ok(out.write_all(text.as_bytes())?) };
        let plain = anstream::adapter::strip_str(text).to_string();
        fs::write(file, plain).map_err(|error| Failure::Run(format!("{}: {error}", file.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(output: Option<PathBuf>) -> Answer {
        Answer { seed: 1, output }
    }

    #[test]
    fn a_capacity_may_have_one_letter() {
        let units = ["64g", "8T", "64GiB", "1tb", "g", "", "512", "64\u{b5}"];
        let read = ["64GiB", "8TiB", "64GiB", "1tb", "g", "", "512", "64\u{b5}"];
        assert_eq!(units.map(in_units_of_profiles), read);
    }

    #[test]
    fn an_answer_goes_to_its_file_without_colours_or_else_to_the_output() {
        let file = std::env::temp_dir().join(format!("blockyard-answer-{}", std::process::id()));
        let text = "seed \u{1b}[32m1\u{1b}[0m\n";
        let mut out = Vec::new();
        answer(Some(file.clone())).deliver(text, &mut out).unwrap();
        assert!(out.is_empty());
        let written = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(written, "seed 1\n");
        answer(None).deliver(text, &mut out).unwrap();
        assert_eq!(out, text.as_bytes());
    }

    #[test]
    fn a_file_that_cannot_be_written_fails_the_run() {
        let nowhere = answer(Some("/no/such/folder/x".into()));
        let failure = nowhere.deliver("", &mut Vec::new()).unwrap_err();
        assert!(matches!(failure, Failure::Run(words) if words.starts_with("/no/such/folder/x: ")));
    }
}
