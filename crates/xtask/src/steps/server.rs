//! Steps for the server: clients of others, attackers, and a kernel that denies io_uring.

use super::number_of;
use crate::command::Run;
use crate::console::{Outcome, fail, in_ci, report_unchecked};
use crate::install::{install_packages, need_compiler, want, want_python};
use crate::project::{SERVED, program, target};
use std::path::PathBuf;
use std::{env, fs};

/// The exit code of a script whose foreign sources are not available.
const NO_SOURCES: i32 = 3;

/// `peers`
pub(super) fn peers(_: &[String]) -> Outcome {
    need_compiler()?;
    want("openssl", &["openssl"])?;
    let headers = "cc -fsyntax-only -include libnbd.h -include gnutls/gnutls.h -x c /dev/null";
    if !Run::new(headers).probe() {
        install_packages("libnbd's tests", &["libnbd-dev", "libgnutls28-dev"]);
    }
    Run::new("cargo build --locked --release -p blockyard-cli").check()?;
    let mut libnbd =
        Run::new("ci/libnbd/run.sh").arg(program()).arg(target().join("libnbd")).code();
    if libnbd == NO_SOURCES && !in_ci() {
        report_unchecked("libnbd's own tests: their source is not available");
        libnbd = 0;
    }
    let mut pmdk = run_pmdk_examples();
    // Not every mirror of Debian has the source, so even in CI it may not be had.
    if pmdk == NO_SOURCES {
        report_unchecked("PMDK's examples: their source is not available");
        pmdk = 0;
    }
    if libnbd != 0 {
        return fail(format!("libnbd's own tests: exit code {libnbd}"));
    }
    if pmdk != 0 {
        return fail(format!("PMDK's examples: exit code {pmdk}"));
    }
    Ok(())
}

/// Builds libpmemblk.so.1, and PMDK's example programs from `BLOCKYARD_PMDK`, a folder with PMDK
/// 1.12's sources, or from Debian's source package. Returns the exit code of the first command that
/// fails, or 0.
fn run_pmdk_examples() -> i32 {
    let sources = env::var_os("BLOCKYARD_PMDK").filter(|folder| !folder.is_empty());
    let sources = sources.map_or_else(|| target().join("pmdk"), PathBuf::from);
    let library = Run::new("ci/libpmemblk.sh").arg(target().join("libpmemblk"));
    if !library.env("PROFILE", "dev").succeeds() {
        return 1;
    }
    let fetched = Run::new("ci/debian-source.sh pmdk").arg(&sources).code();
    if fetched != 0 {
        return fetched;
    }
    Run::new("ci/pmdk-examples.sh").arg(&sources).env("PROFILE", "dev").code()
}

/// `hostile [SESSIONS]`
pub(super) fn hostile(arguments: &[String]) -> Outcome {
    let sessions = number_of(arguments, 50_000, "sessions")?;
    want("openssl", &["openssl"])?;
    want("python3", &["python3"])?;
    Run::new("cargo build --locked --release -p blockyard-cli").check()?;
    let attack = Run::new("ci/hostile.py").arg(program());
    attack.arg("--sessions").arg(sessions.to_string()).check()
}

/// `threads [SESSIONS]`: all that works with io_uring works without.
pub(super) fn threads(arguments: &[String]) -> Outcome {
    let sessions = number_of(arguments, 10_000, "sessions")?;
    need_compiler()?;
    for (command, package) in [
        ("python3", "python3"),
        ("nbdcopy", "libnbd-bin"),
        ("nbdsh", "python3-libnbd"),
        ("qemu-io", "qemu-utils"),
        ("openssl", "openssl"),
    ] {
        want(command, &[package])?;
    }
    // Tests run in the folders of their packages.
    let denied = fs::canonicalize("ci/without-io-uring.py").expect("filter of system calls");
    let runner = format!("target.'cfg(unix)'.runner = '{} timeout -s KILL 20m'", denied.display());
    let test = || {
        let test = Run::new("cargo").arg("--config").arg(&runner);
        test.words("test --locked --no-fail-fast -p")
    };
    test().words("blockyard-serve --tests").check()?;
    test().words("blockyard-std --test * --examples").check()?;
    test().arg("blockyard-cli").args(SERVED.map(|name| format!("--test={name}"))).check()?;
    Run::new("cargo build -q --locked --release -p blockyard-cli").check()?;
    let attack = Run::program(&denied).arg("ci/hostile.py").arg(program());
    attack.arg("--sessions").arg(sessions.to_string()).check()?;
    let Some(environment) = want_python()? else { return Ok(()) };
    Run::program(&denied)
        .arg(environment.join("bin/python"))
        .words("-m pytest -q -p no:cacheprovider examples/ci")
        .env("BLOCKYARD", program())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .check()
}
