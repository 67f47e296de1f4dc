//! The packages, folders and lists of targets that the steps go through.

use crate::console::{Outcome, fail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Tests of the command line, `crates/blockyard-cli/tests/TARGET.rs`, that start a server.
pub(crate) const SERVED: [&str; 15] = [
    "a_failed_flush_is_reported",
    "a_flood_of_clients_leaves_the_operator_descriptors",
    "a_power_cut_loses_nothing_that_was_flushed",
    "a_refused_command_changes_nothing",
    "a_served_btt_keeps_sectors_whole",
    "an_operator_commands_a_server",
    "exports_come_and_go_while_a_server_runs",
    "force_ends_requests_that_never_end",
    "peers_agree_on_what_is_served",
    "racing_commands_change_no_byte",
    "serve_begins_and_ends_as_it_says",
    "serve_runs_beside_other_processes",
    "serve_stands_misuse",
    "signals_end_a_server_in_order_or_not_at_all",
    "traces_of_a_served_disk_tell_every_request",
];

/// A target of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The package, which has the name of its folder below `crates/`.
    pub package: &'static str,
    /// The target, which has the name of its file.
    pub name: &'static str,
}

const fn target_of(package: &'static str, name: &'static str) -> Target {
    Target { package, name }
}

/// Benchmarks, `crates/PACKAGE/benches/TARGET.rs`. Each existing one must be here.
pub(crate) const BENCHES: [Target; 2] =
    [target_of("blockyard-bench", "elevator"), target_of("blockyard-bench", "histogram")];

/// Swarms, `crates/PACKAGE/tests/TARGET.rs`, which read `BLOCKYARD_SWARM_SEEDS`,
/// `BLOCKYARD_SWARM_SEED` and `BLOCKYARD_SWARM_SOAK`. Each existing one must be here.
pub(crate) const SWARMS: [Target; 3] = [
    target_of("blockyard-sim", "swarm"),
    target_of("blockyard-sim", "swarm_buffered"),
    target_of("blockyard-sim", "swarm_mmc"),
];

/// The manifests outside the workspace.
pub(crate) const OUTSIDE: [&str; 6] = [
    "fuzz/Cargo.toml",
    "ci/bare/Cargo.toml",
    "ci/sdhci/Cargo.toml",
    "examples/embed/Cargo.toml",
    "crates/blockyard-spi/Cargo.toml",
    "crates/blockyard-python/Cargo.toml",
];

/// The target folder of all manifests, which `ci.sh` sets.
#[must_use]
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::tidy::tree::root().join("target"), PathBuf::from)
}

/// The program of a release build.
#[must_use]
pub fn program() -> PathBuf {
    target().join("release/blockyard")
}

/// The paths that match `pattern`, sorted, as a shell finds them: a `*` is any part of one name
/// that does not begin with a dot. No match is an empty list.
#[must_use]
pub(crate) fn glob(pattern: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.as_ref() {
        let part = part.to_string_lossy();
        let Some((start, end)) = part.split_once('*') else {
            found.iter_mut().for_each(|path| path.push(&*part));
            continue;
        };
        let matches = |name: &str| {
            let rest = name.strip_prefix(start).unwrap_or("");
            (!name.starts_with('.') || start.starts_with('.'))
                && name.starts_with(start)
                && rest.ends_with(end)
        };
        found = found.iter().flat_map(|folder| entries(folder, matches)).collect();
    }
    found.retain(|path| path.exists());
    // By letters, as a shell sorts them: `a-b/c` before `a/c`.
    found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    found
}

/// The entries of `folder` whose names `matches` takes. A folder that cannot be read has none.
fn entries(folder: &Path, matches: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folder_to_read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = fs::read_dir(folder_to_read).into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name())
        .filter(|name| matches(&name.to_string_lossy()))
        .map(|name| folder.join(name))
        .collect()
}

/// The name of a package of the workspace, and the text of its manifest.
#[derive(Debug)]
pub(crate) struct Package {
    /// The package's name, which is that of its folder.
    pub name: String,
    /// The text of its `Cargo.toml`.
    pub manifest: String,
}

/// The packages of the workspace, sorted.
///
/// # Errors
///
/// If there is none.
pub(crate) fn packages() -> Outcome<Vec<Package>> {
    let mut found = vec![];
    for path in glob("crates/*/Cargo.toml") {
        let manifest = fs::read_to_string(&path).expect("manifest of a package");
        if !manifest.lines().any(|line| line.starts_with("[workspace]")) {
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            found.push(Package { name: folder.to_string_lossy().into_owned(), manifest });
        }
    }
    if found.is_empty() { fail("crates/ has no package") } else { Ok(found) }
}

impl Package {
    /// Whether the package is not published.
    #[must_use]
    pub(crate) fn is_private(&self) -> bool {
        self.manifest.lines().any(|line| line.starts_with("publish = false"))
    }

    /// The keys of the manifest's table `[features]`.
    #[must_use]
    pub(crate) fn features(&self) -> Vec<&str> {
        let mut within = false;
        let mut found = vec![];
        for line in self.manifest.lines() {
            if line.starts_with('[') {
                within = line == "[features]";
            } else if within && line.starts_with(|first: char| first.is_ascii_lowercase()) {
                found.extend(line.split_whitespace().next());
            }
        }
        found
    }
}

/// The packages of Blockyard that `package` needs, directly or through others, and itself; none if
/// it is not below `crates/`. Those of its tests do not count.
///
/// # Panics
///
/// Panics outside the repository.
#[must_use]
pub fn needed_by(package: &str) -> BTreeSet<String> {
    let crates = crate::tidy::tree::root().join("crates");
    let mut needed = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(name) = open.pop() {
        let Ok(manifest) = fs::read_to_string(crates.join(&name).join("Cargo.toml")) else {
            continue;
        };
        let next = dependencies(&manifest).filter(|next| !needed.contains(*next));
        open.extend(next.map(str::to_owned));
        needed.insert(name);
    }
    needed
}

/// The keys of a manifest's table `[dependencies]`.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split(['.', '=', ' ']).next()).filter(|key| !key.is_empty())
}

/// Checks that each of `targets` has a file in its package's `folder`, and that each file there
/// whose name matches `pattern` is one of `targets`, so that a forgotten line is an error.
///
/// # Errors
///
/// The first target without a file, or file without a target.
pub(crate) fn check_listed(folder: &str, pattern: &str, targets: &[Target]) -> Outcome {
    for Target { package, name } in targets {
        let path = format!("crates/{package}/{folder}/{name}.rs");
        if !Path::new(&path).is_file() {
            return fail(format!("{package}:{name} is listed, but there is no {path}"));
        }
    }
    for path in glob(format!("crates/*/{folder}/{pattern}.rs")) {
        // crates/PACKAGE/FOLDER/NAME.rs
        let package = path.iter().nth(1).unwrap_or_default().to_string_lossy();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_listed = |target: &Target| target.package == package && target.name == name;
        if path.is_file() && !targets.iter().any(is_listed) {
            let path = path.display();
            return fail(format!("{path} is not listed in crates/xtask/src/project.rs"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(manifest: &str) -> Package {
        Package { name: "any".into(), manifest: manifest.into() }
    }

    #[test]
    fn features_are_the_keys_of_their_table_alone() {
        let text = "[package]\nname = \"any\"\n[features]\ndefault = []\n# none\nstd = [\n  \"x\"\n]\n[lints]\nworkspace = true\n";
        assert_eq!(package(text).features(), ["default", "std"]);
        assert_eq!(package("[package]\nname = \"any\"\n").features(), [""; 0]);
    }

    /// The paths below this crate that match a pattern.
    fn names(pattern: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = vec![];
        for path in glob(folder.join(pattern)) {
            found.push(path.strip_prefix(folder).expect("path below").display().to_string());
        }
        found
    }

    #[test]
    fn a_star_is_a_part_of_one_name() {
        assert_eq!(names("src/lib.rs"), ["src/lib.rs"]);
        assert_eq!(names("src/l*.rs"), ["src/lib.rs"]);
        assert_eq!(names("s*/lib.rs"), ["src/lib.rs"]);
        assert_eq!(names("src/li*ib.rs"), [""; 0], "the parts do not overlap");
        assert_eq!(names("src/no-such*"), [""; 0]);
        assert_eq!(names("no-such/lib.rs"), [""; 0]);
    }

    #[test]
    fn dependencies_are_the_keys_of_their_table_alone() {
        let text = "[package]\nname = \"any\"\n[dependencies]\none.workspace = true\ntwo = \"1\"\n\n[dev-dependencies]\nthree = \"1\"\n";
        assert_eq!(dependencies(text).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn the_command_line_needs_the_simulator_by_way_of_answers() {
        assert!(needed_by("blockyard-answer").contains("blockyard-sim"));
        assert!(!needed_by("blockyard-devices").contains("blockyard-sim"));
        assert!(needed_by("no-such-package").is_empty());
    }

    #[test]
    fn a_package_is_private_if_its_manifest_says_so() {
        assert!(package("[package]\npublish = false\n").is_private());
        assert!(!package("[package]\nname = \"publish = false\"\n").is_private());
    }
}
