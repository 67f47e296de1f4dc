//! The job of a command, from a file, standard input or options; or a trace.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use blockyard::time::Duration;
use blockyard_fio::job as jobs;
use blockyard_fio::job::{FILE_BYTES_MAX, Input, JobFile, Note, Op, Source as _, SystemSource};

use blockyard_devices::profile::Device;
use blockyard_sim::replay::{Map, Options, Pace, Replay, Speed};
use blockyard_trace::{Source, Trace};

use crate::cli::{Addresses, Job, JobChoice, Playback, Setting, Variables};
use crate::message::{Failure, note, warning};
use blockyard_text::number::{mebibytes, time};

/// A job or a trace, with its name.
pub(crate) struct Given {
    /// The job file or trace, `-` for standard input, or the names of the jobs given by options.
    pub(crate) name: String,
    /// The jobs. A trace has one job that represents it.
    pub(crate) jobs: JobFile,
    /// The trace, if any.
    pub(crate) replay: Option<Replay>,
}

impl Given {
    const fn job(name: String, jobs: JobFile) -> Self {
        Self { name, jobs, replay: None }
    }
}

/// The time after which a run that is not steady ends nevertheless.
const STEADY_AT_LAST: Duration = Duration::from_secs(600);

/// Reads the job and notes its options without effect, or reads the trace and notes its
/// description.
pub(crate) fn read(job: &Job, setting: &Setting, device: &Device) -> Result<Given, Failure> {
    let playback = &setting.playback;
    if let Some(path) = &job.replay {
        let choice = &setting.choice;
        let of_jobs = [
            ("runtime", setting.runtime.is_some()),
            ("until", setting.until.is_some()),
            ("filesystem", setting.file_system_name().is_some()),
            ("section", !choice.section.is_empty()),
            ("readonly", choice.readonly),
            ("parse-only", choice.parse_only),
        ];
        if let Some((option, _)) = of_jobs.iter().find(|(_, given)| *given) {
            return Err(Failure::Input(format!("--{option} is for jobs: a trace ends by itself")));
        }
        return read_trace(path, playback, device);
    }
    if let Some(option) = playback.option_given() {
        return Err(Failure::Input(format!("--{option} is for traces: add --replay TRACE")));
    }
    let source = Environment { given: &setting.variables, taken: RefCell::default() };
    let mut given = parsed(job, &setting.choice, &source)?;
    for (name, value) in source.taken.take() {
        note(&format!("${{{name}}} is `{value}`, from the environment; --env sets it"));
    }
    let has_files = setting.file_system_name().is_some();
    let told = given.jobs.notes.iter().filter(|told| !has_files || !told.is_of_raw_disks());
    told.for_each(|told| note(&told.to_string()));
    let writes_files = given.jobs.notes.iter().any(Note::is_of_raw_disks);
    if let Some(name) = setting.file_system_name().filter(|_| writes_files) {
        note(&format!(
            "buffered writes go to files on {name}: syncs wait for its journal; metadata is not written \
             to its place, and direct I/O is to files that have their data"
        ));
    }
    for job in &mut given.jobs.jobs {
        let until_steady = setting.until.map(|_| job.runtime_ns.unwrap_or(STEADY_AT_LAST.as_ns()));
        if let Some(runtime_ns) = setting.runtime.map(Duration::as_ns).or(until_steady) {
            (job.runtime_ns, job.time_based) = (Some(runtime_ns), true);
        }
    }
    Ok(given)
}

/// Reads the job from its file, standard input or its options.
fn parsed(job: &Job, choice: &JobChoice, source: &Environment<'_>) -> Result<Given, Failure> {
    let path = job.file.as_deref();
    let bytes = match path {
        Some("-") => from_standard_input()?,
        Some(path) => source.read(path).map_err(|kind| unreadable(path, kind))?,
        None => Vec::new(),
    };
    let file = path.map(|path| (path, bytes.as_slice()));
    let input = Input { options: &job.options, file, sections: &choice.section };
    let jobs = jobs::parse(input, source)?;
    let writes = |job: &&jobs::Job| job.pattern.mix.ops().iter().any(|op| *op != Op::Read);
    if let Some(job) = jobs.jobs.iter().find(writes).filter(|_| choice.readonly) {
        let place = job.place_of("rw");
        return Err(Failure::Input(format!(
            "{place}: job `{}` writes or trims: --readonly forbids it",
            job.name
        )));
    }
    let names: Vec<_> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
    let name = path.map_or_else(|| names.join(","), str::to_owned);
    Ok(Given::job(name, jobs))
}

/// The failure to read the job file at `path`.
fn unreadable(path: &str, kind: io::ErrorKind) -> Failure {
    let place = jobs::Place { file: path.into(), line: 0 };
    jobs::JobError { place, fault: jobs::Fault::Unreadable(kind) }.into()
}

/// The files of this machine, and the variables of `--env` and of this process.
struct Environment<'a> {
    given: &'a Variables,
    /// The variables that were taken from this process.
    taken: RefCell<BTreeMap<String, String>>,
}

impl jobs::Source for Environment<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind> {
        SystemSource.read(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let own = || SystemSource.variable(name).inspect(|value| self.takes(name, value));
        self.given(name).or_else(own)
    }

    fn given(&self, name: &str) -> Option<String> {
        let mut given = self.given.given.iter().rev();
        given.find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }
}

impl Environment<'_> {
    fn takes(&self, name: &str, value: &str) {
        self.taken.borrow_mut().insert(name.to_owned(), value.to_owned());
    }
}

impl Playback {
    /// Returns the name of an option that was given, if any.
    fn option_given(&self) -> Option<&'static str> {
        let options = [
            ("pace", self.pace.is_some()),
            ("speed", self.speed.is_some()),
            ("map", self.map.is_some()),
            ("disk", self.disk.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    fn options(&self) -> Result<Options, Failure> {
        let pace = self.pace.unwrap_or(Pace::Open);
        if matches!(pace, Pace::Closed(_)) && self.speed.is_some() {
            return Err(Failure::Input("--speed cannot be used with --pace closed".to_owned()));
        }
        Ok(Options {
            pace,
            speed: self.speed.unwrap_or(Speed::RECORDED),
            map: self.map.map(|addresses| match addresses {
                Addresses::Wrap => Map::Wrap,
                Addresses::Scale => Map::Scale,
            }),
            disk: self.disk.clone(),
        })
    }
}

fn read_trace(path: &str, playback: &Playback, device: &Device) -> Result<Given, Failure> {
    let options = playback.options()?;
    let trace = Trace::open(Source::at(path)?)?;
    note(&described(&trace));
    trace.summary().warnings.iter().for_each(|told| warning(&format!("{path}: {told}")));
    let replay = Replay::new(trace, options)?;
    let jobs = replay.job_file(device);
    Ok(Given { name: path.to_owned(), jobs, replay: Some(replay) })
}

/// Returns a line that describes `trace`.
fn described(trace: &Trace) -> String {
    let all = trace.summary();
    let timed = match all.timed {
        0 => "no completions".to_owned(),
        timed if timed == all.records => "all with completions".to_owned(),
        timed => format!("{timed} with completions"),
    };
    let names: Vec<_> = all.disks.iter().take(8).map(|disk| disk.name.as_str()).collect();
    let more = if all.disks.len() > names.len() { ", ..." } else { "" };
    format!(
        "{}: {} in {}: {} I/Os of {} MiB in {} on {} ({}{more}), {timed}",
        trace.name(),
        all.format,
        plural(trace.files(), "file"),
        all.records,
        mebibytes(all.bytes()),
        time(all.span.as_ns()),
        plural(all.disks.len(), "disk"),
        names.join(", "),
    )
}

/// A number of things, such as `1 file` or `2 files`.
fn plural(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

fn from_standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    io::stdin()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Input(format!("standard input: {error}")))?;
    Ok(bytes)
}

/// Returns the job as a command for fio.
pub(crate) fn fio_command(job: &Job) -> String {
    let quoted = |word: &String| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    let words: Vec<_> = job.file.iter().chain(&job.options).map(quoted).collect();
    match &job.replay {
        Some(trace) => format!("fio --read_iolog={trace}"),
        None => format!("fio {}", words.join(" ")),
    }
}
