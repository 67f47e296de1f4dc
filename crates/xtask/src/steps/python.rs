//! The Python package.

use super::package::path_with;
use crate::command::Run;
use crate::console::{Outcome, fail};
use crate::install::{need_compiler, pip_install, want_python};
use crate::project::{glob, program};
use std::fs;
use std::path::Path;

/// The folder of the package.
const FOLDER: &str = "crates/blockyard-python";
/// The folders with other programs in Python, for which the package's rules of style hold too.
const SCRIPTS: [&str; 2] = ["ci", "examples/ci"];

/// `python`
pub(super) fn python(_: &[String]) -> Outcome {
    need_compiler()?;
    let Some(environment) = want_python()? else { return Ok(()) };
    Run::new("cargo build -q --locked --release -p blockyard-cli").check()?;
    install_wheel(&environment)?;
    check_style(&environment)?;
    Run::program(environment.join("bin/python"))
        .words("-m pytest -q -p no:cacheprovider")
        .arg(FOLDER)
        .env("BLOCKYARD_PROGRAM", program())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .check()?;
    draw_example(&environment)?;
    Run::new("ci/fio-plot.sh")
        .arg(program())
        .arg(environment.join("bin/fio-plot"))
        .arg(environment.join("fio-plot"))
        .check()
}

/// Builds the wheel and installs it.
fn install_wheel(environment: &Path) -> Outcome {
    let wheels = environment.join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    // The wheel's tests compare results, which no optimisation changes, so it is built without
    // link-time optimisation.
    Run::program(environment.join("bin/maturin"))
        .words("build -q --release --manifest-path")
        .arg(format!("{FOLDER}/Cargo.toml"))
        .arg("--out")
        .arg(&wheels)
        .env("PATH", path_with(&environment.join("bin")))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .check()?;
    let install = pip_install(environment).words("--no-deps --force-reinstall");
    install.args(glob(wheels.join("*.whl"))).check()
}

/// Checks the style of all Python, and the types of the package.
fn check_style(environment: &Path) -> Outcome {
    for line in ["check --no-cache", "format --no-cache --check"] {
        let ruff = Run::program(environment.join("bin/ruff")).words(line);
        ruff.arg("--config").arg(format!("{FOLDER}/pyproject.toml")).args(SCRIPTS).check()?;
    }
    // These run in the package's folder, so their paths must not depend on it.
    let absolute = fs::canonicalize(environment).expect("virtual environment");
    for line in ["check --no-cache .", "format --no-cache --check ."] {
        Run::program(absolute.join("bin/ruff")).words(line).folder(FOLDER).check()?;
    }
    let mypy = Run::program(absolute.join("bin/mypy")).folder(FOLDER);
    mypy.arg("--cache-dir").arg(absolute.join("mypy")).check()
}

/// Runs the example, which must draw both of its charts.
fn draw_example(environment: &Path) -> Outcome {
    let plots = environment.join("example");
    let _ = fs::remove_dir_all(&plots);
    fs::create_dir_all(&plots).expect("folder of charts");
    Run::program(environment.join("bin/python"))
        .arg(format!("{FOLDER}/examples/which_scheduler.py"))
        .arg(&plots)
        .env("MPLBACKEND", "Agg")
        .check()?;
    for name in ["reader.png", "sweep.png"] {
        if !fs::metadata(plots.join(name)).is_ok_and(|file| file.len() > 0) {
            return fail(format!("the example did not draw {name}"));
        }
    }
    Ok(())
}
