//! The rows of modules in docs/ARCHITECTURE.md, made from the headers of the modules.
//!
//! Each crate has a table. A row is a module at the top of the crate, or one with a folder; its
//! text is the first sentence of the header.

use crate::console::{Failure, Outcome};
use crate::tidy::tree::root;
use core::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The document, below the root of the repository.
pub(crate) const DOCUMENT: &str = "docs/ARCHITECTURE.md";
/// The lines between which the tables are.
const BEGIN: &str = "<!-- The rows of modules begin here. -->\n";
const END: &str = "<!-- The rows of modules end here. -->\n";
/// The most characters of a cell.
const CELL_MAX: usize = 100;

/// Returns `document` with the tables of the crates below `root`.
///
/// # Panics
///
/// Panics if the document lacks one of the two marks, or a file cannot be read.
#[must_use]
pub(crate) fn updated(document: &str, root: &Path) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("the begin of the rows");
    let (_, after) = rest.split_once(END).expect("the end of the rows");
    format!("{before}{BEGIN}{}\n{END}{after}", tables(root))
}

/// Writes today's rows into the document.
///
/// # Errors
///
/// If the document cannot be written.
pub fn write() -> Outcome {
    let file = root().join(DOCUMENT);
    let text = fs::read_to_string(&file).expect("the document");
    let today = updated(&text, &root());
    fs::write(&file, today).map_err(|error| Failure(format!("{DOCUMENT}: {error}")))
}

/// Returns the files of Rust whose headers begin with a question instead of naming a thing.
#[cfg(test)]
pub(crate) fn questions(root: &Path) -> Vec<PathBuf> {
    let is_question = |file: &PathBuf| {
        let header = header(file);
        let first = header.split_whitespace().next();
        matches!(first, Some("What" | "Who" | "Whether" | "How"))
    };
    sources(&root.join("crates")).into_iter().filter(is_question).collect()
}

/// Returns a table for each crate that has modules.
fn tables(root: &Path) -> String {
    let mut text = String::new();
    for folder in entries(&root.join("crates")) {
        let source = folder.join("src");
        let rows: String = sources(&source).iter().filter_map(|file| row(&source, file)).collect();
        if !rows.is_empty() {
            let name = folder.file_name().expect("name of a folder").to_string_lossy();
            write!(text, "\n### `{name}`\n\n| module | contents |\n|---|---|\n{rows}")
                .expect("a string takes all text");
        }
    }
    text
}

/// Returns the row of the module in `file`; `None` if it has none.
fn row(source: &Path, file: &Path) -> Option<String> {
    let path = file.strip_prefix(source).expect("a file of the folder").with_extension("");
    let mut parts: Vec<_> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let is_root = parts.len() == 1 && matches!(parts[0].as_str(), "lib" | "main");
    let is_for_tests = parts.iter().any(|part| matches!(part.as_str(), "tests" | "bin"));
    if is_root || is_for_tests {
        return None;
    }
    if parts.last().is_some_and(|part| part == "mod") {
        parts.pop();
    } else if parts.len() > 1 {
        return None;
    }
    Some(format!("| `{}` | {} |\n", parts.join("/"), cell(&header(file))))
}

/// Returns the first sentence of a header as a cell. A long sentence ends before its colon,
/// semicolon or last comma that fits.
fn cell(header: &str) -> String {
    let sentence = header.split_once(". ").map_or(header, |(first, _)| first);
    let mut text = without_links(sentence.trim_end_matches('.')).replace('|', "\\|");
    for end in [": ", "; "] {
        if text.chars().count() > CELL_MAX
            && let Some((name, _)) = text.split_once(end)
        {
            text = name.to_owned();
        }
    }
    while text.chars().count() > CELL_MAX
        && let Some((name, _)) = text.rsplit_once(", ")
    {
        text = name.to_owned();
    }
    text
}

/// Returns the text with `[name](path)` as the name alone, and with a name in backticks without its
/// brackets.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, after)) = link.split_once(']') else { break };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        plain += before;
        // Other brackets, such as those of a rule, stay.
        plain += &match target {
            None if !name.starts_with('`') => format!("[{name}]"),
            _ => name.to_owned(),
        };
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

/// Returns the first paragraph of a file's header as one line; nothing if it has none.
fn header(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("Rust source in UTF-8");
    let lines = text.lines().skip_while(|line| !line.starts_with("//!"));
    let lines = lines.map_while(|line| line.strip_prefix("//!")).map(str::trim);
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the files of Rust below `folder`, sorted.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries(folder).into_iter().partition(|path| path.is_dir());
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.extend(folders.iter().flat_map(|folder| sources(folder)));
    files.sort();
    files
}

/// Returns the entries of `folder`, sorted; none if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry of a folder").path()).collect();
    paths.retain(|path| !path.ends_with("target"));
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_modules_are_those_of_their_headers() {
        let shown = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let today = updated(&shown, &root());
        let other = shown.lines().zip(today.lines()).find(|(shown, today)| shown != today);
        let is_current = shown == today;
        assert!(is_current, "{DOCUMENT} is not current, {other:?}: ./ci.sh tidy architecture");
    }

    #[test]
    fn no_header_begins_with_a_question() {
        let found = questions(&root());
        assert!(found.is_empty(), "name a thing instead: {found:?}");
    }

    #[test]
    fn a_cell_is_the_first_sentence_within_100_characters() {
        assert_eq!(cell("The limits of a device. More."), "The limits of a device");
        assert_eq!(
            cell("From a [`Card`](crate::card::Card) to a [`Bus`]."),
            "From a `Card` to a `Bus`"
        );
        assert_eq!(cell("A [card](super::card), [whole-rule]."), "A card, [whole-rule]");
        let long = format!("A thing: {}", "part ".repeat(30));
        assert_eq!(cell(&long), "A thing");
        let commas = format!("A thing, made of atomic words, {}", "part ".repeat(30));
        assert_eq!(cell(&commas), "A thing, made of atomic words");
    }
}
