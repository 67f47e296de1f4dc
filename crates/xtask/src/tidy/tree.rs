//! The files of the repository: its crates, and the module tree of each.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::{Attribute, File, Item, Meta};

/// The root of the repository: the nearest folder above the current one that has a `ci.sh`.
///
/// # Panics
///
/// Panics outside the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = env::current_dir().expect("current folder");
    let root = here.ancestors().find(|folder| folder.join("ci.sh").is_file());
    root.expect("folder of the repository").to_owned()
}

/// A file with a module of its own.
pub struct Module {
    /// The module's path from the root of the crate: empty for the root.
    pub path: Vec<String>,
    /// The file's path from the root of the repository.
    pub file: PathBuf,
    /// The parsed source.
    pub(crate) syntax: File,
}

/// The names of all crates under `crates/`, sorted.
#[must_use]
pub fn crates() -> Vec<String> {
    let folder = fs::read_dir(root().join("crates")).expect("the folder crates/");
    let mut names: Vec<String> = folder
        .map(|entry| entry.expect("entry of crates/").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// Every Rust file of the crates, those of tests and benchmarks included, sorted, with its text.
#[must_use]
pub(crate) fn rust_files() -> Vec<(PathBuf, String)> {
    let mut files = text_files();
    files.retain(|(file, _)| file.starts_with("crates") && ending_of(file) == "rs");
    files
}

/// The ends of names of files with text that people write. Scripts may have none.
const TEXT_ENDINGS: [&str; 6] = ["rs", "py", "sh", "bash", "md", ""];
/// Folders with files that nobody wrote.
const GENERATED: [&str; 5] = ["target", "corpus", "artifacts", "coverage", "__pycache__"];

fn ending_of(file: &Path) -> &str {
    file.extension().and_then(OsStr::to_str).unwrap_or("")
}

/// Every file with code, a document or a script, sorted, with its text. Hidden folders are not
/// read.
///
/// # Panics
///
/// Panics if a folder or a file cannot be read.
#[must_use]
pub(crate) fn text_files() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut files = vec![];
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("folder of the repository") {
            let path = entry.expect("entry of a folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || GENERATED.contains(&&*name) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if TEXT_ENDINGS.contains(&ending_of(&path)) {
                // Files without an ending may be anything, such as inputs of tests.
                let bytes = fs::read(&path).expect("file of the repository");
                let Ok(text) = String::from_utf8(bytes) else { continue };
                files.push((path.strip_prefix(&root).expect("path below the root").into(), text));
            }
        }
    }
    files.sort();
    files
}

/// The modules of a crate, without those that only tests have.
///
/// # Panics
///
/// Panics if a file is missing or is not Rust.
#[must_use]
pub fn modules(name: &str) -> Vec<Module> {
    let root = root();
    let source = Path::new("crates").join(name).join("src");
    let file = ["lib.rs", "main.rs"].map(|file| source.join(file));
    let file = file.into_iter().find(|file| root.join(file).exists()).expect("root of a crate");
    let mut modules = vec![];
    collect(&root, file, source, vec![], &mut modules);
    modules
}

/// Parses `file`, whose submodules lie in `folder`, and them.
fn collect(root: &Path, file: PathBuf, folder: PathBuf, path: Vec<String>, to: &mut Vec<Module>) {
    let text = fs::read_to_string(root.join(&file)).expect("file of a module");
    let syntax =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let children: Vec<String> = syntax
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() && !is_test(&module.attrs) => {
                Some(module.ident.to_string())
            }
            _ => None,
        })
        .collect();
    to.push(Module { path: path.clone(), file, syntax });
    for child in children {
        let flat = folder.join(format!("{child}.rs"));
        let nested = folder.join(&child).join("mod.rs");
        let file = if root.join(&flat).exists() { flat } else { nested };
        let path = path.iter().cloned().chain([child.clone()]).collect();
        collect(root, file, folder.join(child), path, to);
    }
}

/// The forgotten tests of a package that lists its tests: files `tests/*.rs` that are neither a
/// target nor a module of `tests/main.rs`. In other packages cargo finds each file by itself.
///
/// # Panics
///
/// Panics if a file or the folder cannot be read.
#[must_use]
pub fn forgotten_tests(package: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("manifest of a package");
    if !manifest.contains("autotests = false") {
        return vec![];
    }
    let main = fs::read_to_string(package.join("tests/main.rs")).expect("tests/main.rs");
    let files = fs::read_dir(package.join("tests")).expect("folder of tests");
    let mut names: Vec<String> = files
        .filter_map(|file| file.expect("file of tests").file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .filter(|name| !manifest.contains(&format!("\"tests/{name}.rs\"")))
        .filter(|name| !main.lines().any(|line| line == format!("mod {name};")))
        .collect();
    names.sort();
    names
}

/// Whether something is compiled for tests only.
#[must_use]
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let words = list.tokens.to_string();
            words.contains("test") && !words.contains("not")
        }
        _ => false,
    })
}
