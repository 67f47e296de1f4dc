//! `compare`: two saved answers of `whatif`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use blockyard_sim::answer::{Saved, SavedPair, Verdict};
use serde::Serialize;

use super::posted;
use crate::cli::{Compare, OutputFormat};
use crate::html::{Page, Shown, page};
use crate::message::Failure;
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
    let [first, second] = [read(files[0])?, read(files[1])?];
    let names = names(files);
    let pairs = first.pairs(&second, [&names[0], &names[1]]);
    if pairs.is_empty() {
        return Err(Failure::Input("an answer has no designs".to_owned()));
    }
    let text = match args.output_format {
        OutputFormat::Normal => text(&first, &second, &names, &pairs),
        OutputFormat::Json => {
            let compared = |pair: &SavedPair<'_>| pair.designs[1].name.clone();
            let designs: Vec<_> = pairs.iter().map(compared).collect();
            let all = designs.iter().zip(&pairs);
            let all: Vec<_> =
                all.map(|(design, of)| Compared { design, verdict: &of.verdict }).collect();
            render::json(&all)
        }
    };
    if let Some(file) = &args.html {
        // A page has one verdict: that of the first pair.
        let pair = &pairs[0];
        let shown = |at: usize| Shown {
            name: &pair
                .verdict
                .rows
                .first()
                .map_or(names[at].as_str(), |row| &row.designs[at].design),
            jobs: &pair.designs[at].jobs,
            series: &pair.designs[at].series,
            figures: None,
        };
        let [one, other] = [&first, &second].map(|of| format!("{} on {}", of.job, of.device));
        let saved = Page {
            title: format!("{} against {}: {}", names[1], names[0], pair.designs[1].name),
            command: posted::command_line(),
            verdict: &pair.verdict,
            goals: &[],
            unsuited: &[],
            designs: vec![shown(0), shown(1)],
            why: "",
            trust: vec![format!(
                "Two saved answers are compared: {one} (seed {}), and {other} (seed {}). Each says itself what it rests on.",
                first.seed, second.seed
            )],
            texts: Vec::new(),
        };
        posted::write(file, &page(&saved))?;
    }
    Ok(out.write_all(text.as_bytes())?)
}

fn read(path: &str) -> Result<Saved, Failure> {
    let unreadable = |error: std::io::Error| Failure::Input(format!("{path}: {error}"));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LEN_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LEN_MAX {
        return Err(Failure::Input(format!("{path}: longer than {} MiB", LEN_MAX >> 20)));
    }
    let saved: Saved = serde_json::from_str(&text).map_err(|error| {
        Failure::Input(format!("{path}: no answer of `whatif --output-format json`: {error}"))
    })?;
    let sound = |jobs: &blockyard_sim::answer::JobFigures| {
        let directions = [&jobs.read, &jobs.write, &jobs.trim].into_iter().flatten();
        directions.flat_map(|of| [&of.slat_ns, &of.clat_ns, &of.lat_ns]).all(|of| of.is_sound())
    };
    if saved.designs.iter().flat_map(|design| &design.jobs).all(sound) {
        Ok(saved)
    } else {
        Err(Failure::Input(format!("{path}: a histogram does not agree with its own counts")))
    }
}

/// Returns short names of the files that differ.
fn names(files: [&String; 2]) -> [String; 2] {
    let stem =
        |path: &String| Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    match files.map(stem) {
        [Some(first), Some(second)] if first != second => [first, second],
        _ => files.map(String::clone),
    }
}

fn text(first: &Saved, second: &Saved, names: &[String; 2], pairs: &[SavedPair<'_>]) -> String {
    let width = terminal::width();
    let mut head = format!("{} against {}: ", names[1], names[0]);
    for (what, of) in
        [("job", [&first.job, &second.job]), ("device", [&first.device, &second.device])]
    {
        head += &match of {
            [a, b] if a == b => format!("{what} {a}, "),
            [a, b] => format!("{what} {a} -> {b}, "),
        };
    }
    head += &match [first.seed, second.seed] {
        [a, b] if a == b => format!("seed {a}"),
        [a, b] => format!("seed {a} -> {b}"),
    };
    let mut text = render::wrapped(&head, width) + "\n";
    for pair in pairs {
        let [a, b] = pair.designs;
        let design =
            if a.name == b.name { a.name.clone() } else { format!("{} -> {}", a.name, b.name) };
        text += &format!("\n{design}\n");
        for sentence in &pair.verdict.sentences {
            text += &(render::wrapped(sentence, width) + "\n");
        }
        text += &render::verdict::table(&pair.verdict, &[], width);
    }
    text
}
