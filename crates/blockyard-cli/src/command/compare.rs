//! `compare`: two saved answers of `whatif`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use blockyard_answer::{Row, Saved, SavedDesign, SavedPair, SavedRest, Verdict};
use serde::Serialize;

use super::posted;
use crate::cli::{Compare, OutputFormat};
use crate::html::{Page, Shown, page};
use crate::message::Failure;
use crate::render::buffered::Buffered;
use crate::{render, terminal};

/// The longest answer that is read, in bytes.
const LEN_MAX: u64 = 1 << 28;

/// A comparison as data.
#[derive(Serialize)]
struct Compared<'a> {
    design: &'a str,
    verdict: &'a Verdict,
}

pub(super) fn compare(args: &Compare, out: &mut dyn Write) -> Result<(), Failure> {
    let files = [&args.first, &args.second];
    let saved = [read(files[0])?, read(files[1])?];
    let compared = Comparison::of(&saved, names(files))?;
    let text = match args.output_format {
        OutputFormat::Normal => compared.text(terminal::width()),
        OutputFormat::Json => compared.json(),
    };
    if let Some(file) = &args.html {
        posted::write(file, &compared.page())?;
    }
    Ok(out.write_all(text.as_bytes())?)
}

/// Returns the comparison of two answers, given as JSON, in all forms.
pub(crate) fn in_all_forms(first: &str, second: &str) -> Result<String, Failure> {
    let saved = [parse("A", first)?, parse("B", second)?];
    let compared = Comparison::of(&saved, ["A".to_owned(), "B".to_owned()])?;
    Ok(compared.text(80) + &compared.json() + &compared.page())
}

fn read(path: &str) -> Result<Saved, Failure> {
    let unreadable = |error: std::io::Error| Failure::Input(format!("{path}: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LEN_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LEN_MAX {
        return Err(Failure::Input(format!("{path}: longer than {} MiB", LEN_MAX >> 20)));
    }
    parse(path, &text)
}

fn parse(path: &str, text: &str) -> Result<Saved, Failure> {
    let saved: Saved = serde_json::from_str(text).map_err(|error| {
        Failure::Input(format!("{path}: not an answer of `whatif --output-format json`: {error}"))
    })?;
    if saved.is_sound() {
        Ok(saved)
    } else {
        Err(Failure::Input(format!("{path}: a histogram does not agree with its own counts")))
    }
}

/// Two answers, their names, and their designs in pairs.
struct Comparison<'a> {
    saved: &'a [Saved; 2],
    names: [String; 2],
    pairs: Vec<SavedPair<'a>>,
    /// The designs without a counterpart.
    rest: Option<SavedRest<'a>>,
}

impl<'a> Comparison<'a> {
    fn of(saved: &'a [Saved; 2], names: [String; 2]) -> Result<Self, Failure> {
        let pairs = saved[0].pairs(&saved[1], [&names[0], &names[1]]);
        if pairs.is_empty() {
            return Err(Failure::Input("an answer has no designs".to_owned()));
        }
        let is_shared = |row: &Row| row.designs.iter().all(|cell| cell.ios > 0);
        if !pairs.iter().flat_map(|pair| &pair.verdict.rows).any(is_shared) {
            return Err(Failure::Input(format!(
                "the answers have no job and direction in common: {} and {}",
                saved[0].job, saved[1].job
            )));
        }
        let rest = saved[0].rest(&saved[1], &pairs, [&names[0], &names[1]]);
        Ok(Self { saved, names, pairs, rest })
    }

    fn json(&self) -> String {
        let pairs = self.pairs.iter();
        let all: Vec<_> = pairs
            .map(|pair| Compared { design: &pair.designs[1].name, verdict: &pair.verdict })
            .collect();
        render::json(&all)
    }

    fn text(&self, width: usize) -> String {
        let Self { saved: [first, second], names, pairs, rest } = self;
        let mut head = format!("{} against {}: ", names[1], names[0]);
        for (what, one, other) in
            [("job", &first.job, &second.job), ("device", &first.device, &second.device)]
        {
            head += &changed(what, one, other);
            head += ", ";
        }
        if [first, second].iter().any(|saved| saved.file_system.is_some()) {
            head += &changed("file system", &on_disk(first), &on_disk(second));
            head += ", ";
        }
        head += &changed("seed", &first.seed, &second.seed);
        let mut text = render::wrapped(&head, width) + "\n";
        for sentence in self.findings() {
            text += &(render::wrapped(&sentence, width) + "\n");
        }
        for pair in pairs {
            let [one, other] = pair.designs;
            text += &format!("\n{}\n", changed("design", &one.name, &other.name));
            for sentence in &pair.verdict.sentences {
                text += &(render::wrapped(sentence, width) + "\n");
            }
            text += &render::verdict::table(&pair.verdict, &[], width);
            let labels = pair.verdict.rows.first().map_or(&[][..], |row| &row.designs);
            let runs = labels.iter().zip(pair.designs);
            let writes = runs.filter_map(|(of, saved)| Buffered::of_saved(&of.design, saved));
            text += &render::buffered::text(&writes.collect::<Vec<_>>(), width);
        }
        if let Some(rest) = rest {
            text += &format!("\n{}\n", render::wrapped(&rest.verdict.sentences.join(" "), width));
            text += &render::verdict::table(&rest.verdict, &[], width);
        }
        text
    }

    /// Says that file systems of one name have other figures, and which runs were stopped early.
    fn findings(&self) -> Vec<String> {
        let [first, second] = self.saved.each_ref().map(|saved| saved.file_system.as_ref());
        let others =
            first.zip(second).filter(|(one, other)| one.name == other.name && one != other);
        let of_disks = others.map(|(one, _)| {
            format!("Both answers assume {}, but with different figures of it.", one.name)
        });
        of_disks.into_iter().chain(self.stopped()).collect()
    }

    /// Says which runs were stopped early.
    fn stopped(&self) -> Vec<String> {
        let each = self.saved.iter().zip(&self.names);
        let of = |(saved, name): (&Saved, &String)| {
            let stopped = |design: &SavedDesign| {
                Some(design.stopped?.words(&format!("{} of {name}", design.name)) + ".")
            };
            saved.designs.iter().filter_map(stopped).collect::<Vec<_>>()
        };
        each.flat_map(of).collect()
    }

    /// Returns a page with a part for each pair.
    fn page(&self) -> String {
        let pairs = self.pairs.iter().map(|pair| self.part(pair));
        let mut parts: Vec<_> =
            pairs.chain(self.rest.iter().map(|rest| self.rest_part(rest))).collect();
        if let Some(first) = parts.first_mut() {
            first.findings = self.findings();
        }
        if let Some(last) = parts.last_mut() {
            last.command = posted::command_line();
        }
        page(&parts)
    }

    /// Returns the part of the designs without a counterpart.
    fn rest_part<'b>(&'b self, rest: &'b SavedRest<'_>) -> Page<'b> {
        let cells = rest.verdict.rows.first().map_or(&[][..], |row| &row.designs);
        let names = cells.iter().map(|cell| cell.design.as_str());
        let shown = |(name, of): (&'b str, &&'b SavedDesign)| Shown {
            name,
            jobs: &of.jobs,
            series: &of.series,
            figures: None,
        };
        Page {
            title: "Designs without a counterpart".to_owned(),
            command: String::new(),
            findings: Vec::new(),
            verdict: &rest.verdict,
            goals: Vec::new(),
            unsuited: &[],
            designs: names.zip(&rest.designs).map(shown).collect(),
            why: Vec::new(),
            recipe: Vec::new(),
            trust: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn part<'b>(&'b self, pair: &'b SavedPair<'_>) -> Page<'b> {
        let Self { saved: [first, second], names, .. } = self;
        let design = changed("", &pair.designs[0].name, &pair.designs[1].name);
        Page {
            title: format!("{} against {}:{design}", names[1], names[0]),
            command: String::new(),
            findings: Vec::new(),
            verdict: &pair.verdict,
            goals: Vec::new(),
            unsuited: &[],
            designs: Vec::from([0, 1].map(|at| Shown {
                name: pair.verdict.rows.first().map_or(&names[at], |row| &row.designs[at].design),
                jobs: &pair.designs[at].jobs,
                series: &pair.designs[at].series,
                figures: None,
            })),
            why: Vec::new(),
            recipe: Vec::new(),
            trust: vec![format!(
                "Two saved answers are compared: {}, and {}. Each says itself what it rests on.",
                source_of(first),
                source_of(second)
            )],
            texts: Vec::new(),
        }
    }
}

/// The job, the device with its file system if it has one, and the seed of a saved answer.
fn source_of(saved: &Saved) -> String {
    let Saved { job, device, seed, .. } = saved;
    match &saved.file_system {
        Some(of) => format!("{job} on {device} with {} (seed {seed})", of.name),
        None => format!("{job} on {device} (seed {seed})"),
    }
}

/// The name of the file system of a saved answer.
fn on_disk(saved: &Saved) -> &str {
    saved.file_system.as_ref().map_or("none", |of| of.name.as_str())
}

/// Returns `what` and its value in both answers.
fn changed<T: PartialEq + core::fmt::Display>(what: &str, one: &T, other: &T) -> String {
    if one == other { format!("{what} {one}") } else { format!("{what} {one} -> {other}") }
}

/// Returns short names of the files that differ.
fn names(files: [&String; 2]) -> [String; 2] {
    let stems = files.map(|path| {
        Path::new(path)
            .file_stem()
            .map_or_else(|| path.clone(), |stem| stem.to_string_lossy().into_owned())
    });
    let [first, second] = &stems;
    // A whole path would not fit into tables and drawings.
    if first == second { [format!("{first} (A)"), format!("{second} (B)")] } else { stems }
}
