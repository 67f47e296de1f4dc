//! The job of a command, from a file, standard input or options; or a trace.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use blockyard::time::Duration;
use blockyard_sim::job::{
    self as jobs, FILE_BYTES_MAX, JobFile, SystemSource, parse_args, parse_bytes, parse_file,
};

use blockyard_sim::profile::Device;
use blockyard_sim::replay::{Map, Options, Pace, Replay, Source, Speed, Trace};

use crate::cli::{Addresses, Job, Playback, Setting, Variables};
use crate::message::{Failure, note, warning};
use blockyard_sim::answer::number::{mebibytes, time};

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

/// Reads the job and notes its options without effect, or reads the trace and notes its description.
pub(crate) fn read(job: &Job, setting: &Setting, device: &Device) -> Result<Given, Failure> {
    let playback = &setting.playback;
    if let Some(path) = &job.replay {
        let of_jobs = [("runtime", setting.runtime.is_some()), ("until", setting.until.is_some())];
        if let Some((option, _)) = of_jobs.iter().find(|(_, given)| *given) {
            return Err(Failure::Input(format!("--{option} is for jobs: a trace ends by itself")));
        }
        return read_trace(path, playback, device);
    }
    if let Some(option) = playback.option_given() {
        return Err(Failure::Input(format!("--{option} is for traces: add --replay TRACE")));
    }
    let source = Environment { given: &setting.variables, taken: RefCell::default() };
    let mut given = match job.file.as_deref() {
        Some("-") => Given::job("-".to_owned(), from_standard_input(&source)?),
        Some(path) => Given::job(path.to_owned(), parse_file(path, &source)?),
        None => {
            let jobs = parse_args(job.options.iter().map(String::as_str), &source)?;
            let names: Vec<_> = jobs.jobs.iter().map(|job| job.name.as_str()).collect();
            Given::job(names.join(","), jobs)
        }
    };
    for (name, value) in source.taken.take() {
        note(&format!("${{{name}}} is `{value}`, from the environment; --env sets it"));
    }
    given.jobs.notes.iter().for_each(|told| note(&told.to_string()));
    for job in &mut given.jobs.jobs {
        let until_steady = setting.until.map(|_| job.runtime_ns.unwrap_or(STEADY_AT_LAST.as_ns()));
        if let Some(runtime_ns) = setting.runtime.map(Duration::as_ns).or(until_steady) {
            (job.runtime_ns, job.time_based) = (Some(runtime_ns), true);
        }
    }
    Ok(given)
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
    let plural = |number: usize, one: &str| {
        if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
    };
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

fn from_standard_input(source: &dyn jobs::Source) -> Result<JobFile, Failure> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    io::stdin()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Input(format!("standard input: {error}")))?;
    Ok(parse_bytes("-", &bytes, source)?)
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
