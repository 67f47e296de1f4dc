//! Builds jobs from sections of settings.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::check;
use super::engines;
use super::error::{Fault, JobError, Note, Place, Remark};
use super::expand::expand;
use super::model::{Job, SetAt};
use super::option::{Effect, OptionDef};
use super::reader::{Section, Setting, clip, read_args, read_file};
use super::source::Source;
use super::table::{find, nearest};
use super::value::Value;

/// The jobs of a file in the order of the file, and the notes about them.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The jobs: at least one.
    pub jobs: Vec<Job>,
    /// The notes. Each remark occurs once, at the first line that causes it.
    pub notes: Vec<Note>,
}

impl JobFile {
    /// Returns the same jobs with draws that depend on the seed of the run alone, as without `randrepeat`, `allrandrepeat` and
    /// `randseed`.
    #[must_use]
    pub fn with_fresh_draws(&self) -> Self {
        let mut fresh = self.clone();
        for job in &mut fresh.jobs {
            job.randrepeat = false;
            job.allrandrepeat = false;
            job.randseed = None;
        }
        fresh
    }
}

/// Reads the job file at `path` through `source`.
///
/// # Errors
///
/// Returns the first fault, with its line ([error-names-line]).
pub fn parse_file(path: &str, source: &dyn Source) -> Result<JobFile, JobError> {
    let whole = Place { file: Arc::from(path), line: 0 };
    let bytes = source
        .read(path)
        .map_err(|kind| JobError { place: whole, fault: Fault::Unreadable(kind) })?;
    parse_bytes(path, &bytes, source)
}

/// Reads a job file that is already in memory. Messages call the file `path`, and includes are relative to `path`.
///
/// # Errors
///
/// As [`parse_file`].
pub fn parse_bytes(path: &str, bytes: &[u8], source: &dyn Source) -> Result<JobFile, JobError> {
    let whole = Place { file: Arc::from(path), line: 0 };
    build(&read_file(path, bytes, source)?, whole, source)
}

/// Reads jobs from arguments such as `--name=x --rw=read`. `--name` opens a job, and options before the first
/// `--name` are global. Only `--option=value` and `--flag` are understood. Line numbers in errors count
/// arguments from 1.
///
/// # Errors
///
/// As [`parse_file`].
pub fn parse_args<'a>(
    args: impl IntoIterator<Item = &'a str>,
    source: &dyn Source,
) -> Result<JobFile, JobError> {
    let whole = Place { file: Arc::from("command line"), line: 0 };
    build(&read_args(args, source)?, whole, source)
}

fn build(sections: &[Section], whole: Place, source: &dyn Source) -> Result<JobFile, JobError> {
    let mut global = Job::new("", whole.clone());
    let mut jobs: Vec<Job> = Vec::new();
    let mut notes = Notes::default();
    for section in sections {
        let Some(name) = &section.name else {
            apply_all(&mut global, &section.settings, source, &mut notes)?;
            continue;
        };
        let mut job = derive(&global, name, &section.place);
        apply_all(&mut job, &section.settings, source, &mut notes)?;
        engines::settle(&mut job);
        job.group = group_after(jobs.last(), &job);
        job.first_instance = jobs.last().map_or(0, |last| last.first_instance + last.numjobs);
        check::job(&job)?;
        check::instances(&job)?;
        check::remarks(&job).into_iter().for_each(|note| notes.say(note));
        jobs.push(job);
    }
    if jobs.is_empty() {
        return Err(JobError { place: whole, fault: Fault::NoJobs });
    }
    debug_assert!(jobs.windows(2).all(|pair| pair[0].group <= pair[1].group), "groups in order");
    Ok(JobFile { jobs, notes: notes.list })
}

/// Returns a job that starts with the global settings.
fn derive(global: &Job, name: &str, place: &Place) -> Job {
    let mut job = global.clone();
    job.place = place.clone();
    name.clone_into(&mut job.name);
    for set in job.places.0.values_mut() {
        set.own = false;
    }
    debug_assert_eq!(job.name, name, "the header names a job, whatever the global settings say");
    job
}

/// Returns the reporting group of `job`, which follows `previous` in the file.
fn group_after(previous: Option<&Job>, job: &Job) -> u32 {
    let starts_group = job.stonewall || job.new_group;
    previous.map_or(0, |previous| previous.group + u32::from(starts_group))
}

#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    said: BTreeSet<Remark>,
}

impl Notes {
    /// Adds `note` unless the same remark was made before.
    fn say(&mut self, note: Note) {
        if self.said.insert(note.remark) {
            self.list.push(note);
        }
    }
}

fn apply_all(
    job: &mut Job,
    settings: &[Setting],
    source: &dyn Source,
    notes: &mut Notes,
) -> Result<(), JobError> {
    // `kb_base` applies to its whole section, so it is read first. So is the engine: if it is not modelled, that
    // explains more than an option of its own would.
    let is_first = |setting: &&Setting| matches!(setting.option.as_str(), "kb_base" | "ioengine");
    let (first, rest): (Vec<_>, Vec<_>) = settings.iter().partition(is_first);
    for setting in first.into_iter().chain(rest) {
        apply(job, setting, source, notes)
            .map_err(|fault| JobError { place: setting.place.clone(), fault })?;
    }
    Ok(())
}

fn apply(
    job: &mut Job,
    setting: &Setting,
    source: &dyn Source,
    notes: &mut Notes,
) -> Result<(), Fault> {
    let name = setting.option.as_str();
    let def = find(name).ok_or_else(|| Fault::UnknownOption {
        name: clip(name).to_owned(),
        nearest: nearest(clip(name)),
    })?;
    let text = setting.value.as_deref().map(|text| expand(text, source)).transpose()?;
    let value = Value { text: text.as_deref(), kb_base: job.kb_base };
    let direct = job.direct;
    (def.apply)(job, value).map_err(|fault| Fault::Value { option: def.name, fault })?;
    check::same_section(job, def.name, direct)?;
    if let Some(reason) = without_effect(def, text.as_deref())? {
        let remark = Remark::NoEffect { option: def.name, reason };
        notes.say(Note { place: setting.place.clone(), remark });
    }
    // [error-names-line]: later checks of this job name the line of its option.
    let set = SetAt { place: setting.place.clone(), own: true, text: text.unwrap_or_default() };
    job.places.0.insert(def.name, set);
    Ok(())
}

/// Returns the reason why the setting changes nothing, if it has no effect. A setting that would matter but is
/// not modelled is an error.
fn without_effect(def: &OptionDef, text: Option<&str>) -> Result<Option<&'static str>, Fault> {
    let off = matches!(text, Some("0" | "none" | "inline"));
    match def.effect {
        Effect::Modelled => Ok(None),
        Effect::NoEffect(reason) => Ok(Some(reason)),
        Effect::Refused(_) if off => Ok(None),
        Effect::Refused(reason) => Err(Fault::Unsupported { option: def.name, reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::BlockSizes;
    use super::super::op::PerOp;
    use super::super::source::NoSource;
    use super::*;

    fn parse(text: &str) -> Result<JobFile, String> {
        parse_bytes("f", text.as_bytes(), &NoSource).map_err(|e| e.to_string())
    }

    fn jobs(text: &str) -> Vec<Job> {
        parse(text).unwrap().jobs
    }

    #[test]
    fn a_global_section_holds_for_the_sections_after_it() {
        let jobs = jobs("[global]\ndirect=1\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=1k\n");
        let bs: Vec<_> = jobs.iter().map(|job| job.block.read.min_bytes()).collect();
        assert_eq!(bs, [8192, 16384, 1024]);
    }

    #[test]
    fn kb_base_holds_for_its_section_wherever_it_stands() {
        let job = &jobs("[a]\ndirect=1\nbs=4k\nkb_base=1000\n")[0];
        assert_eq!(job.block, PerOp::all(BlockSizes::Fixed(4000)));
    }

    #[test]
    fn groups_start_at_stonewall_and_new_group() {
        let groups = |text: &str| {
            let jobs = jobs(&format!("[global]\ndirect=1\n{text}"));
            jobs.iter().map(|job| job.group).collect::<Vec<_>>()
        };
        assert_eq!(groups("[a]\nstonewall\n[b]\n[c]\nstonewall\n"), [0, 0, 1]);
        assert_eq!(groups("new_group\n[a]\n[b]\n"), [0, 1]);
        assert_eq!(groups("[a]\n[b]\nstonewall=0\n"), [0, 0]);
    }

    #[test]
    fn a_section_has_the_name_of_its_header_whatever_the_global_one_says() {
        let jobs = jobs("[global]\nname=all\ndirect=1\n[a]\n[b]\nname=c\n");
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn an_option_without_effect_is_noted_once() {
        let file = parse("[global]\ndirect=1\nunlink=1\n[a]\nunlink=0\nverify=0\n").unwrap();
        assert_eq!(file.notes.len(), 1);
        assert!(file.notes[0].to_string().starts_with("f:3: `unlink` has no effect: "));
    }

    #[test]
    fn arguments_read_like_a_file() {
        let args = ["--direct=1", "--bs=8k", "--name=a", "--thread", "--name=b", "--bs=4k"];
        let file = parse_args(args, &NoSource).unwrap();
        let shape: Vec<_> =
            file.jobs.iter().map(|j| (j.name.as_str(), j.thread, j.min_block_bytes())).collect();
        assert_eq!(shape, [("a", true, 8192), ("b", false, 4096)]);
        let error = parse_args(["--name=a", "rw=read"], &NoSource).unwrap_err();
        assert!(error.to_string().starts_with("command line:2: `rw=read` is not an option"));
    }

    /// [error-names-line]
    #[test]
    fn an_unknown_option_names_the_nearest_spelling() {
        let error = parse("[a]\ndirect=1\niodpeth=4\n").unwrap_err();
        assert_eq!(error, "f:3: unknown option `iodpeth`; did you mean `iodepth`?");
    }
}
