//! The job of a command, from a file, standard input or options; or a trace.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use blockyard::stats::Histogram;
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

/// Reads the job and notes its options without effect, or reads the trace and notes its description.
pub(crate) fn read(job: &Job, setting: &Setting, device: &Device) -> Result<Given, Failure> {
    let playback = &setting.playback;
    if let Some(path) = &job.replay {
        return read_trace(path, playback, device);
    }
    if let Some(option) = playback.option_given() {
        return Err(Failure::Input(format!("--{option} is for traces: add --replay TRACE")));
    }
    let source = Environment { given: &setting.variables, taken: RefCell::default() };
    let given = match job.file.as_deref() {
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

/// Notes how much later than recorded the I/Os of a trace were issued under `design`.
pub(crate) fn note_lateness(replay: &Replay, design: &str, late_ns: Option<&Histogram>) {
    let open = replay.options().pace == Pace::Open;
    let Some(late_ns) = late_ns.filter(|late_ns| open && late_ns.count() > 0) else { return };
    note(&format!(
        "{design}: I/Os were issued later than recorded: {} (median), {} (p99), {} (max)",
        time(late_ns.percentile(50_000)),
        time(late_ns.percentile(99_000)),
        time(late_ns.max()),
    ));
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
