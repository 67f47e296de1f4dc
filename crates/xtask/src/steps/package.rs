//! Steps that make what users install.

use crate::command::Run;
use crate::console::{Outcome, fail, report_unchecked};
use crate::install::{has, need_compiler};
use crate::project::{glob, packages, target};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// `package`
pub(super) fn package(_: &[String]) -> Outcome {
    need_compiler()?;
    let packages = packages()?;
    let private = packages.iter().filter(|package| package.is_private());
    remove_unpacked();
    // Dirty, so that a change can be checked before it is committed; the crates see each other's
    // tarballs.
    Run::new("cargo package --locked --allow-dirty --workspace")
        .args(private.flat_map(|package| ["--exclude", &package.name]))
        .check()
}

/// Removes what cargo unpacked from earlier tarballs. Cargo keeps it by its version, whatever the
/// tarball has today.
fn remove_unpacked() {
    let home = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    for kind in ["cache", "src"] {
        for path in glob(home.join("registry").join(kind).join("*/blockyard-*")) {
            if !path.file_name().is_some_and(|name| is_ours(&name.to_string_lossy())) {
                continue;
            }
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("removal of an old tarball");
        }
    }
}

/// Whether a name in cargo's registry is that of one of our crates with a version.
fn is_ours(name: &str) -> bool {
    let mut words = name.split('-');
    words.next() == Some("blockyard")
        && words.any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// `msrv`
pub(super) fn msrv(_: &[String]) -> Outcome {
    let manifest = fs::read_to_string("Cargo.toml").expect("manifest of the workspace");
    let oldest = manifest.lines().find_map(|line| {
        let (version, _) = line.strip_prefix("rust-version = \"")?.rsplit_once('"')?;
        Some(version)
    });
    let Some(oldest) = oldest else { return fail("Cargo.toml names no rust-version") };
    let toolchain = format!("+{oldest}");
    let is_installed = Run::new("cargo").arg(&toolchain).arg("--version").probe();
    let install = Run::new("rustup toolchain install").arg(oldest);
    if !is_installed && !install.words("--profile minimal --no-self-update").succeeds() {
        report_unchecked(&format!(
            "Rust {oldest}, the oldest supported, is not installed: rustup toolchain install {oldest}"
        ));
        return Ok(());
    }
    need_compiler()?;
    let check = Run::new("cargo").arg(&toolchain).words("check --locked --workspace");
    check.env("CARGO_TARGET_DIR", target().join("msrv")).check()
}

/// `deb`
pub(super) fn deb(_: &[String]) -> Outcome {
    need_compiler()?;
    if !has("dpkg-deb") {
        report_unchecked("the Debian package: this is no Debian");
        return Ok(());
    }
    let folder = target().join("deb");
    let tool = target().join("cargo-deb");
    if !Run::new("cargo deb --version").probe() {
        // A debug build of the tool: its build takes longer than its work.
        let install = Run::new("cargo install -q cargo-deb --locked --debug --root");
        install.arg(&tool).check()?;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("removal of the last package");
    }
    let path = path_with(&tool.join("bin"));
    Run::new("ci/deb.sh").arg(&folder).env("PATH", path).check()?;
    let listed = Run::new("dpkg-deb --contents").args(glob(folder.join("*.deb"))).output()?;
    for part in [
        "usr/bin/blockyard",
        "man1/blockyard-whatif.1",
        "completions/blockyard",
        "system/blockyard.service",
    ] {
        if !listed.contains(part) {
            return fail(format!("the package has no {part}"));
        }
    }
    print!("{listed}");
    Ok(())
}

/// Returns the value of `PATH` with `folder` before all others.
pub(super) fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_tarballs_are_removed() {
        for name in ["blockyard-0.1.0", "blockyard-0.1.0.crate", "blockyard-sim-0.1.0"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["blockyard", "blockyards-0.1.0", "blockyard-sim", "syn-2.0.1"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
