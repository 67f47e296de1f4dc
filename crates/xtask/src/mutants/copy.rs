//! The copy of the repository that has the faults.

use crate::mutants::area::AREAS;
use crate::mutants::fault::Fault;
use crate::mutants::plant::{Planted, plant, switch};
use crate::tidy::tree;
use core::ops::Range;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The copy, and the folder of its builds.
pub struct Copy {
    source: PathBuf,
    target: PathBuf,
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable file.
    pub path: PathBuf,
    /// The package's folder, in which it runs.
    pub folder: PathBuf,
}

impl Copy {
    /// Copies the files of the repository into `folder` where they differ, so that only changes are
    /// compiled again. `git` names the files.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let copy = Self { source: folder.join("source"), target: folder.join("target") };
        let root = tree::root();
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git");
        assert!(listed.status.success(), "git ls-files failed");
        let listed = String::from_utf8(listed.stdout).expect("paths in UTF-8");
        let files: BTreeSet<_> = listed.split_terminator('\0').map(PathBuf::from).collect();
        for file in files.iter().filter(|file| root.join(file).is_file()) {
            copy.write(file, &fs::read(root.join(file)).expect("file of the repository"));
        }
        copy.remove_others(&copy.source.join("crates"), &files);
        copy
    }

    /// Removes files that the repository no longer has.
    fn remove_others(&self, folder: &Path, files: &BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).expect("folder of the copy") {
            let path = entry.expect("entry of a folder").path();
            if path.is_dir() {
                self.remove_others(&path, files);
            } else if !files.contains(path.strip_prefix(&self.source).expect("path in the copy")) {
                fs::remove_file(&path).expect("removal from the copy");
            }
        }
    }

    fn write(&self, file: &Path, content: &[u8]) {
        let path = self.source.join(file);
        if fs::read(&path).is_ok_and(|old| old == content) {
            return;
        }
        fs::create_dir_all(path.parent().expect("folder of a file")).expect("folder in the copy");
        fs::write(path, content).expect("write to the copy");
    }

    /// Runs cargo with `arguments`, and returns the test programs that it builds. An error is the
    /// `planted` faults that do not compile.
    pub fn cargo(
        &self,
        planted: &BTreeMap<String, Vec<Planted>>,
        arguments: &[&str],
    ) -> Result<Vec<Program>, BTreeSet<usize>> {
        let output = Command::new("cargo")
            .args(arguments)
            .args(["--locked", "--message-format=json"])
            .current_dir(&self.source)
            .env("CARGO_TARGET_DIR", &self.target)
            // Small and quick; faults may break any lint.
            .envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")])
            .env("RUSTFLAGS", "--cap-lints allow")
            .stderr(Stdio::null())
            .output()
            .expect("cargo");
        let lines = String::from_utf8(output.stdout).expect("JSON in UTF-8");
        let messages: Vec<Value> =
            lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if output.status.success() {
            return Ok(messages.iter().filter_map(program).collect());
        }
        let errors = messages.iter().map(|message| &message["message"]);
        let errors: Vec<_> = errors.filter(|message| message["level"] == "error").collect();
        let broken: BTreeSet<_> = errors.iter().flat_map(|error| blamed(error, planted)).collect();
        if broken.is_empty() {
            let texts: Vec<_> =
                errors.iter().filter_map(|error| error["rendered"].as_str()).collect();
            panic!("the copy does not build: {}", texts.join("\n"));
        }
        Err(broken)
    }

    /// Writes the files of all areas, with `faults` and no others.
    pub fn plant(&self, faults: &BTreeMap<usize, &Fault>) -> BTreeMap<String, Vec<Planted>> {
        let count = faults.keys().last().map_or(1, |last| last + 1);
        let mut all = BTreeMap::new();
        for area in AREAS {
            let library = format!("crates/{}/src/lib.rs", area.package);
            for file in tree::modules(area.package).into_iter().map(|module| module.file) {
                let name = file.to_str().expect("path in UTF-8").to_owned();
                let text = fs::read_to_string(tree::root().join(&file)).expect("source in UTF-8");
                let here = faults.iter().filter(|(_, fault)| fault.file == name);
                let here: Vec<_> = here.map(|(number, fault)| (*number, *fault)).collect();
                let (mut text, planted) = plant(&text, &here);
                if name == library {
                    text += &switch(count);
                }
                self.write(&file, text.as_bytes());
                all.insert(name, planted);
            }
        }
        all
    }
}

/// The test program that a message of cargo announces.
fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Program { path, folder })
}

/// The faults to which an error points: those whose own code it names, or else those around its
/// place, or else the statements between its first and last place, as without a `return` the code
/// behind it must be valid too, or else the next statement.
fn blamed(error: &Value, planted: &BTreeMap<String, Vec<Planted>>) -> Vec<usize> {
    let spans = error["spans"].as_array().into_iter().flatten();
    let places =
        spans.filter_map(|span| Some((planted.get(span["file_name"].as_str()?)?, bytes_of(span)?)));
    let places: Vec<_> = places.collect();
    let mut found = faults_at(&places, |fault| &fault.added);
    if found.is_empty() {
        found = faults_at(&places, |fault| &fault.whole);
    }
    if found.is_empty() {
        let first = places.iter().map(|(_, bytes)| bytes.start).min().unwrap_or(0);
        let last = places.iter().map(|(_, bytes)| bytes.end).max().unwrap_or(0);
        let statements = places.iter().flat_map(|(here, _)| here.iter());
        let between = statements
            .filter(|fault| fault.is_statement && (first..last).contains(&fault.whole.start));
        found = between.map(|fault| fault.number).collect();
        if found.is_empty() {
            // In a loop, what goes before depends on the statement at its end.
            let behind = places.iter().flat_map(|(here, _)| here.iter());
            let behind = behind.filter(|fault| fault.is_statement && fault.whole.start >= last);
            let next = behind.min_by_key(|fault| fault.whole.start);
            found.extend(next.map(|fault| fault.number));
        }
    }
    found
}

/// The bytes of a place in a message of the compiler.
fn bytes_of(span: &Value) -> Option<Range<usize>> {
    let start = usize::try_from(span["byte_start"].as_u64()?).ok()?;
    let end = usize::try_from(span["byte_end"].as_u64()?).ok()?;
    Some(start..end)
}

/// A file's faults, and the bytes of a place in it.
type PlaceInFile<'a> = (&'a Vec<Planted>, Range<usize>);

/// The faults whose `range` contains the start of one of `places`.
fn faults_at(places: &[PlaceInFile], range: fn(&Planted) -> &Range<usize>) -> Vec<usize> {
    let mut found = vec![];
    for (here, bytes) in places {
        let hit = here.iter().filter(|fault| range(fault).contains(&bytes.start));
        found.extend(hit.map(|fault| fault.number));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::fault::faults;
    use serde_json::json;

    #[test]
    fn an_error_in_a_loop_is_blamed_on_the_statement_at_its_end() {
        let text = "fn f(mut a: &mut [u8]) { while b(a) { let (c, d) = a.split_at_mut(1); e(c); a = d; } }";
        let found = faults("f.rs", text);
        let removed: Vec<_> =
            found.iter().filter(|fault| fault.block().contains("a = d;")).collect();
        let [removed] = removed[..] else { panic!("{found:?}") };
        let (text, planted) = plant(text, &[(7, removed)]);
        let planted = BTreeMap::from([("f.rs".to_owned(), planted)]);
        let start = text.find("a.split_at_mut").expect("code with a span");
        let span = json!({ "file_name": "f.rs", "byte_start": start, "byte_end": start + 1 });
        assert_eq!(blamed(&json!({ "spans": [span] }), &planted), [7]);
    }

    /// The place of `code` in a message of the compiler about `text`.
    fn span(text: &str, code: &str) -> Value {
        let start = text.find(code).expect("code with a span");
        json!({ "file_name": "f.rs", "byte_start": start, "byte_end": start + code.len() })
    }

    /// The code of the faults that an error at `spans` is blamed on.
    fn code_blamed<'a>(
        spans: &[Value],
        planted: &BTreeMap<String, Vec<Planted>>,
        found: &'a [Fault],
    ) -> BTreeSet<&'a str> {
        let numbers = blamed(&json!({ "spans": spans }), planted);
        numbers.into_iter().map(|number| found[number].before.as_str()).collect()
    }

    /// An error of the compiler is blamed on a fault, or else the whole sample is lost.
    #[test]
    fn an_error_is_blamed_on_the_return_without_which_the_code_is_invalid() {
        let text = "fn f(a: Vec<u8>) { let Some(b) = c() else { return; }; if b { drop(a); return; } e(a); }";
        let found = faults("f.rs", text);
        let numbered: Vec<_> = found.iter().enumerate().collect();
        let (text, planted) = plant(text, &numbered);
        let planted = BTreeMap::from([("f.rs".to_owned(), planted)]);
        let until = text.find("};").expect("end of the first statement") + 1;
        let diverging = &text[text.find("{ if").expect("block that returns")..until];
        assert_eq!(
            code_blamed(&[span(&text, diverging)], &planted, &found),
            BTreeSet::from(["return;"])
        );
        assert_eq!(
            code_blamed(&[span(&text, "a: Vec"), span(&text, "e(a)")], &planted, &found),
            BTreeSet::from(["e(a);"])
        );
        let behind = text.rfind('}').expect("end of the function");
        let end = json!({ "file_name": "f.rs", "byte_start": behind, "byte_end": behind + 1 });
        let all = BTreeSet::from(["return;", "drop(a);", "e(a);"]);
        assert_eq!(code_blamed(&[span(&text, "a: Vec"), end], &planted, &found), all);
    }
}
