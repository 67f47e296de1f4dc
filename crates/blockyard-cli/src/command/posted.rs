//! Writes an answer as a page.

use std::fs;
use std::path::Path;

use blockyard_answer::{Answer, Outcome, Verdict};
use blockyard_devices::profile::{Design, Device};

use crate::cli::Job;
use crate::html::{Page, Shown, page};
use crate::job::fio_command;
use crate::message::Failure;
use crate::render::{self, certainty, recipe};

/// What an answer was made of: the job, and the names of the device and the designs without values
/// that replace theirs.
pub(super) struct Origin<'a> {
    pub(super) job: &'a Job,
    pub(super) device: &'a str,
    pub(super) designs: &'a [String],
}

/// Writes the page of `answer` to `file`.
pub(super) fn of_answer(file: &Path, origin: &Origin<'_>, answer: &Answer) -> Result<(), Failure> {
    let mut trust = vec![certainty::rests(answer.rests)];
    trust.extend(certainty::lines(answer, &fio_command(origin.job)));
    let shown = Page {
        title: render::whatif::title(answer),
        command: command_line(),
        findings: render::whatif::findings(&answer.designs),
        verdict: &answer.verdict,
        goals: render::whatif::goals(answer),
        unsuited: &answer.unsuited,
        designs: answer.designs.iter().map(shown).collect(),
        why: render::whatif::why(answer),
        recipe: recipe::of_winner(answer),
        trust,
        texts: texts(origin),
    };
    write(file, &page(&[shown]))
}

/// Writes the page of a single run to `file`.
pub(super) fn of_run(
    file: &Path,
    origin: &Origin<'_>,
    device: &Device,
    outcome: &Outcome,
    seed: u64,
) -> Result<(), Failure> {
    let verdict = Verdict::of(core::slice::from_ref(outcome));
    let rests = blockyard_answer::certainty::Rests::of(device);
    let job = origin.job;
    let name = job.file.as_ref().or(job.replay.as_ref()).map_or("a job", String::as_str);
    let shown = Page {
        title: format!("{name} on {}, {}, seed {seed}", device.name, outcome.name),
        command: command_line(),
        findings: render::whatif::findings(core::slice::from_ref(outcome)),
        verdict: &verdict,
        goals: Vec::new(),
        unsuited: &[],
        designs: vec![shown(outcome)],
        why: Vec::new(),
        recipe: Vec::new(),
        trust: vec![certainty::rests(rests)],
        texts: texts(origin),
    };
    write(file, &page(&[shown]))
}

fn shown(of: &Outcome) -> Shown<'_> {
    Shown { name: &of.name, jobs: &of.jobs, series: &of.series, figures: Some(&of.figures) }
}

pub(super) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure::Run(format!("{}: {error}", file.display())))
}

/// Returns the command line as a shell reads it.
pub(super) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let quoted = |word: String| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+%@".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words: Vec<_> = ["blockyard".to_owned()].into_iter().chain(words.map(quoted)).collect();
    words.join(" ")
}

/// Returns the texts of the job, the device and the designs, with their headings.
fn texts(origin: &Origin<'_>) -> Vec<(String, String)> {
    let Origin { job, device, designs } = *origin;
    let mut texts: Vec<(String, String)> = Vec::new();
    if let Some(path) = job.file.as_deref().filter(|path| *path != "-")
        && let Ok(text) = fs::read_to_string(path)
    {
        texts.push((format!("Job: {path}"), text));
    }
    if !job.options.is_empty() {
        texts.push(("Job".to_owned(), job.options.join("\n")));
    }
    if let Ok(text) = Device::text(device) {
        texts.push((format!("Device: {device}"), text));
    }
    for part in designs.iter().flat_map(|design| design.split('+')) {
        let heading = format!("Design: {part}");
        let is_new = texts.iter().all(|(known, _)| *known != heading);
        if let Some(text) = Design::text(part).ok().filter(|_| is_new) {
            texts.push((heading, text));
        }
    }
    texts
}
