//! Builds jobs from sections of settings.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::blocks::BlockSizes;
use super::cgroup;
use super::check;
use super::engines;
use super::error::{Fault, JobError, Note, Place, Remark, ValueFault};
use super::expand::expand;
use super::model::{Job, SetAt};
use super::option::{Effect, OptionDef};
use super::reader::{Section, Setting, clip, read_args, read_file};
use super::source::Source;
use super::table::{find, nearest};
use super::value::{Value, before_comment};

/// The jobs of a file in the order of the file, and the notes about them.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The jobs: at least one.
    pub jobs: Vec<Job>,
    /// The notes. Each remark occurs once, at the first line that causes it.
    pub notes: Vec<Note>,
}

impl JobFile {
    /// Returns the same jobs with draws that depend on the seed of the run alone, as without
    /// `randrepeat`, `allrandrepeat` and `randseed`.
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

/// The parts of a job that a command line can give.
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    /// Options, as for [`parse_args`]. Without a `--name` they are global ones, which the file may
    /// override.
    pub options: &'a [String],
    /// The name of a job file, and its bytes.
    pub file: Option<(&'a str, &'a [u8])>,
    /// The only sections to read, besides `[global]`; all if it is empty.
    pub sections: &'a [String],
}

/// Reads the jobs of `input`.
///
/// # Errors
///
/// As [`parse_file`]; also if a section in [`Input::sections`] does not exist.
pub fn parse(input: Input<'_>, source: &dyn Source) -> Result<JobFile, JobError> {
    let name = input.file.map_or("command line", |(path, _)| path);
    let whole = Place { file: Arc::from(name), line: 0 };
    let mut sections = read_args(input.options.iter().map(String::as_str), source)?;
    if let Some((path, bytes)) = input.file {
        sections.extend(read_file(path, bytes, source)?);
    }
    if let Some(missing) = input
        .sections
        .iter()
        .find(|wanted| !sections.iter().any(|of| of.name.as_ref() == Some(*wanted)))
    {
        return Err(JobError { place: whole, fault: Fault::NoSuchSection(missing.clone()) });
    }
    sections.retain(|section| {
        let name = section.name.as_ref();
        input.sections.is_empty() || name.is_none_or(|name| input.sections.contains(name))
    });
    build(&sections, whole, source)
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

/// Reads a job file that is already in memory. Messages call the file `path`, and includes are
/// relative to `path`.
///
/// # Errors
///
/// As [`parse_file`].
pub fn parse_bytes(path: &str, bytes: &[u8], source: &dyn Source) -> Result<JobFile, JobError> {
    parse(Input { file: Some((path, bytes)), ..Input::default() }, source)
}

/// Reads jobs from arguments such as `--name=x --rw=read`. `--name` opens a job, and options before
/// the first `--name` are global. As in fio, one dash is as good as two, and the value of an option
/// that is no flag may be the next argument. Line numbers in errors count arguments from 1.
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
        job.cgroup_number = cgroup::number(&jobs, &job);
        cgroup::check(&jobs, &job)?;
        check::job(&job)?;
        check::instances(&job)?;
        check::remarks(&job).into_iter().for_each(|note| notes.say(note));
        jobs.push(job);
    }
    if jobs.is_empty() {
        return Err(JobError { place: whole, fault: Fault::NoJobs });
    }
    debug_assert!(jobs.windows(2).all(|pair| pair[0].group <= pair[1].group), "groups in order");
    // fio has one switch for the whole run.
    if global.exitall || jobs.iter().any(|job| job.exitall) {
        jobs.iter_mut().for_each(|job| job.exitall = true);
    }
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
    // `kb_base` applies to its whole section, so it is read first. So is the engine: if it is not
    // modelled, that explains more than an option of its own would.
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
    let mut value = Value { text: text.as_deref(), kb_base: job.kb_base };
    let direct = job.direct;
    let mut applied = (def.apply)(job, value);
    if applied == Err(ValueFault::Comment) {
        // fio reads `2m // bytes` as 2m.
        value.text = value.text.and_then(before_comment);
        applied = (def.apply)(job, value);
        let remark = Remark::Comment { option: def.name };
        notes.say(Note { place: setting.place.clone(), remark });
    }
    applied.map_err(|fault| Fault::Value { option: def.name, fault })?;
    check::same_section(job, def.name, direct)?;
    if let Some(bytes) = thousands(def, value) {
        let remark = Remark::Thousands { option: def.name, bytes };
        notes.say(Note { place: setting.place.clone(), remark });
    }
    if let Some(reason) = without_effect(def, value.text)? {
        let remark = Remark::NoEffect { option: def.name, reason };
        notes.say(Note { place: setting.place.clone(), remark });
    }
    if let Some(remark) = surprise(job, def.name) {
        notes.say(Note { place: setting.place.clone(), remark });
    }
    // [error-names-line]: later checks of this job name the line of its option.
    let text = value.text.unwrap_or_default().to_owned();
    let set = SetAt { place: setting.place.clone(), own: true, text };
    job.places.0.insert(def.name, set);
    Ok(())
}

/// Returns what an author may not expect of `option`, which was just applied to a job.
fn surprise(job: &Job, option: &'static str) -> Option<Remark> {
    let is_moot = |sizes: &&BlockSizes| !matches!(sizes, BlockSizes::Fixed(_));
    match option {
        "bs" if job.block.each().iter().any(is_moot) => {
            let reason = "as in fio, bsrange and bssplit hold, wherever they stand";
            Some(Remark::NoEffect { option, reason })
        }
        "filename" if job.is_set(option) => Some(Remark::AddsFiles),
        _ => None,
    }
}

/// Returns the bytes of the first number with a unit such as `KiB`, if units of this name count
/// 1000 bytes each.
fn thousands(def: &OptionDef, value: Value<'_>) -> Option<u64> {
    if value.kb_base != 1024 || def.is_text() {
        return None;
    }
    let is_counted = |part: &&str| {
        let lower = part.to_ascii_lowercase();
        lower.starts_with(|letter: char| letter.is_ascii_digit()) && lower.ends_with("ib")
    };
    let mut parts = value.text?.split(|letter: char| !letter.is_ascii_alphanumeric());
    let part = parts.find(is_counted)?;
    Value { text: Some(part), ..value }.count(0, u64::MAX).ok()
}

/// Returns the reason why the setting changes nothing, if it has no effect. A setting that would
/// matter but is not modelled is an error.
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
    use super::super::op::PerOp;
    use super::super::source::NoSource;
    use super::super::value::Amount;
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

    fn groups(text: &str) -> Vec<u32> {
        let jobs = jobs(&format!("[global]\ndirect=1\n{text}"));
        jobs.iter().map(|job| job.group).collect::<Vec<_>>()
    }

    #[test]
    fn groups_start_at_stonewall_and_new_group() {
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

    /// fio 3.33 reads a number, its unit and no more, so that a comment of another language ends
    /// it. It reads `60s // x` as 60 us, and refuses the comment behind a word.
    #[test]
    fn what_follows_a_number_is_dropped_with_a_note_where_it_looks_like_a_comment() {
        let file =
            parse("[a]\ndirect=1\nbs=8k,16k // two\nsize=2m    // bytes\nnumjobs=2 (jobs)\n")
                .unwrap();
        let job = &file.jobs[0];
        assert_eq!(
            (job.block.read.min_bytes(), job.size, job.numjobs),
            (8192, Some(Amount::Bytes(2 << 20)), 2)
        );
        assert_eq!(file.notes.len(), 3);
        let told = file.notes[1].to_string();
        assert!(told.starts_with("f:4: `size`: ") && told.contains("begin with ; or #"), "{told}");
        for (line, words) in [
            ("runtime=60s // x", "a number ends at a blank; comments begin with ; or #"),
            ("bs=8k 16k", "a number ends at a blank"),
            ("rw=write // x", "comments begin with ; or #"),
        ] {
            let error = parse(&format!("[a]\ndirect=1\n{line}\n")).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    /// fio 3.33 and 3.42: the name is ` Size`; `rw= read` is refused, and `bs= 8k` is 8 bytes.
    #[test]
    fn blanks_at_the_head_belong_to_texts_only() {
        let job = &jobs("[a]\nname= Size\nfilename= x\ndirect=1\n")[0];
        assert_eq!(
            (job.name.as_str(), job.filenames.as_slice()),
            (" Size", &[" x".to_owned()][..])
        );
        for line in ["rw= read", "bs= 8k", "thread= 1"] {
            let error = parse(&format!("[a]\n{line}\n")).unwrap_err();
            assert!(error.contains("write the value right after `=`"), "{error}");
        }
    }

    fn thread(value: &str) -> Result<bool, String> {
        parse(&format!("[a]\ndirect=1\nthread={value}\n")).map(|file| file.jobs[0].thread)
    }

    /// fio 3.33 and 3.42 take any number for a flag, and only 0 and 1 for other switches.
    #[test]
    fn a_flag_takes_any_number() {
        assert_eq!([thread("32"), thread("0"), thread("-5")], [Ok(true), Ok(false), Ok(true)]);
        assert!(thread("x").is_err());
        assert!(parse("[a]\ndirect=2\n").unwrap_err().contains("out of range"));
    }

    /// fio 3.33 and 3.42 read 4KiB as 4000 bytes, unless kb_base=1000 is set.
    #[test]
    fn a_unit_of_a_thousand_is_noted() {
        let notes = |text: &str| {
            let notes = parse(&format!("[a]\ndirect=1\n{text}")).unwrap().notes;
            notes.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let told = notes("bs=4KiB\n");
        assert!(told[0].starts_with("f:3: `bs` is 4000 bytes: "), "{told:?}");
        assert!(
            notes("size=64m\nbsrange=4k-8KiB\n")[0].starts_with("f:4: `bsrange` is 8000 bytes: ")
        );
        assert_eq!(notes("name=4KiB\nbs=4k\n"), [""; 0]);
        assert_eq!(notes("kb_base=1000\nbs=4KiB\n"), [""; 0]);
    }

    fn read(sections: &[&str]) -> Result<JobFile, String> {
        let text = b"[global]\ndirect=1\n[a]\nbs=4k\n[b]\n[c]\nnonsense=1\n";
        let sections: Vec<_> = sections.iter().map(|&name| name.to_owned()).collect();
        let options = ["--bs=8k".to_owned()];
        let input = Input { options: &options, file: Some(("f", text)), sections: &sections };
        super::parse(input, &NoSource).map_err(|error| error.to_string())
    }

    /// `fio --section=b job.fio`, and `fio --bs=8k job.fio`.
    #[test]
    fn sections_are_chosen_and_options_come_before_a_file() {
        let chosen = read(&["b", "a"]).unwrap().jobs;
        let bs: Vec<_> =
            chosen.iter().map(|job| (job.name.as_str(), job.min_block_bytes())).collect();
        assert_eq!(bs, [("a", 4096), ("b", 8192)]);
        assert_eq!(read(&["d"]), Err("f: there is no section [d]".to_owned()));
    }

    fn notes(text: &str) -> String {
        let notes = parse(text).unwrap().notes;
        notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// fio 3.33: its iolog has `x add, y add`, and the job reads half of `size` from each. In fio
    /// 3.42: options.c, `str_filename_cb`.
    #[test]
    fn filenames_add_up() {
        let text = "[global]\nfilename=x\ndirect=1\n[a]\nfilename=y:z\nfilename=y\n[b]\n";
        let jobs = jobs(text);
        assert_eq!(jobs[0].filenames, ["x", "y", "z", "y"]);
        assert_eq!(jobs[1].filenames, ["x"]);
        let told = notes(text);
        assert!(told.starts_with("f:5: as in fio, `filename` adds to the files"), "{told}");
        assert_eq!(notes("[a]\ndirect=1\nfilename=x\n[b]\ndirect=1\nfilename=y\n"), "");
        let many = "filename=x\n".repeat(4097);
        assert!(parse(&format!("[a]\n{many}")).unwrap_err().contains("more than 4096 parts"));
    }

    /// fio 3.33: 469 I/Os of 8k to 64k with the first, 487 of 8k and 64k with the second; 4096 of
    /// 4k would be those of `bs`. In fio 3.42: init.c, `fixup_options`.
    #[test]
    fn one_length_yields_to_a_range_or_a_split() {
        let range = BlockSizes::Range { min_bytes: 8192, max_bytes: 65536 };
        let text = "[global]\nbsrange=8k-64k\ndirect=1\n[a]\nbs=4k\n";
        assert_eq!(jobs(text)[0].block, PerOp::all(range));
        assert!(notes(text).starts_with("f:5: `bs` has no effect: as in fio"), "{}", notes(text));
        let split = BlockSizes::Split(vec![(8192, 50), (65536, 50)]);
        let text = "[a]\nbs=4k\nbssplit=8k/50:64k/50\ndirect=1\n";
        assert_eq!(jobs(text)[0].block, PerOp::all(split.clone()));
        assert_eq!(notes(text), "");
        // A split replaces a range, and a range behind a split cuts it.
        let text = "[a]\nbsrange=4k-32k\nbssplit=8k/50:64k/50\ndirect=1\n";
        assert_eq!(jobs(text)[0].block, PerOp::all(split));
        let error = parse("[a]\nbssplit=8k/50:64k/50\nbsrange=4k-32k\n").unwrap_err();
        assert!(
            error.starts_with("f:3: `bsrange`: `4k-32k` is not modelled: fio keeps"),
            "{error}"
        );
        // Trims have no range here.
        let text = "[a]\nbssplit=4k/50:8k/50,,\nbs=16k\n";
        assert_eq!(jobs(text)[0].block.trim, BlockSizes::Fixed(16384));
    }

    /// fio 3.33: one job, of 256 random reads of 64k. In fio 3.42: init.c, `strncmp(name, "global",
    /// 6)`.
    #[test]
    fn every_name_that_begins_with_global_is_global() {
        for header in ["[globals]", "[global-defaults]", "[global ]"] {
            let jobs = jobs(&format!("{header}\nbs=64k\ndirect=1\n[a]\n"));
            let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
            assert_eq!((names, jobs[0].min_block_bytes()), (vec!["a"], 65536), "{header}");
        }
        let args = ["--name=globals", "--bs=64k", "--direct=1", "--name=a"];
        assert_eq!(parse_args(args, &NoSource).unwrap().jobs.len(), 1);
    }

    /// fio 3.33: `thinktime=2h` sleeps 2905 s, which are 7,200,000,000 us less 2^32 us.
    #[test]
    fn a_pause_that_32_bits_do_not_hold_is_refused() {
        for option in ["thinktime", "thinktime_spin", "thinktime_iotime"] {
            assert!(parse(&format!("[a]\ndirect=1\n{option}=4294s\n")).is_ok(), "{option}");
            let error = parse(&format!("[a]\ndirect=1\n{option}=2h\n")).unwrap_err();
            assert!(error.contains("`2h` is not modelled: fio has 32 bits"), "{error}");
        }
    }

    fn error(options: &str) -> String {
        parse(&format!("[a]\ndirect=1\n{options}\n")).unwrap_err()
    }

    /// fio 3.33 ends the first after 3 reads and the others after 0, 3 and 17 of 1024, with
    /// success. It does 64 trims of 64k and 1009 writes of 4k in the last.
    #[test]
    fn jobs_that_fio_ends_at_once_are_refused() {
        for (options, other) in [
            ("rw=randrw\nbs=8k,64k\nrandom_distribution=zipf:1.1", "bs"),
            ("rw=randread\nbs=64k,4k\nrandom_distribution=zipf:1.1", "bs"),
            ("rw=randwrite\nbs=4k,64k\nrandom_distribution=normal:10", "bs"),
            (
                "rw=randread\nrandom_distribution=zipf:1.1\nzonemode=strided\nzonesize=64k\nzoneskip=64k",
                "zonemode",
            ),
        ] {
            let told = error(options);
            let words = format!("`random_distribution` contradicts `{other}`: fio counts");
            assert!(told.contains(&words), "{options}: {told}");
        }
        // Reads alone count what they use.
        assert!(
            parse("[a]\ndirect=1\nrw=randread\nbs=4k,64k\nrandom_distribution=zipf:1.1\n").is_ok()
        );
        let trims = error("rw=trimwrite\nbs=4k,4k,64k");
        assert!(trims.starts_with("f:4: `bs` contradicts `rw`: fio then moves"), "{trims}");
        // fio 3.33: 118 trims and 118 writes of the same lengths.
        assert!(parse("[a]\ndirect=1\nrw=trimwrite\nbsrange=4k-64k\n").is_ok());
    }

    /// [error-names-line]
    #[test]
    fn an_unknown_option_names_the_nearest_spelling() {
        let error = parse("[a]\ndirect=1\niodpeth=4\n").unwrap_err();
        assert_eq!(error, "f:3: unknown option `iodpeth`; did you mean `iodepth`?");
    }
}
