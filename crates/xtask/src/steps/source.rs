//! Steps that look at the source without running it.

use crate::command::Run;
use crate::console::{Outcome, fail, report_unchecked};
use crate::install::{need_compiler, need_cpp_compiler};
use crate::project::{OUTSIDE, Package, packages};

/// `format`
pub(super) fn format(_: &[String]) -> Outcome {
    Run::new("cargo fmt --all --check").check()?;
    for manifest in OUTSIDE {
        Run::new("cargo fmt --manifest-path").arg(manifest).arg("--check").check()?;
    }
    Ok(())
}

/// `lint`: a warning in one package does not hide those of the others.
pub(super) fn lint(_: &[String]) -> Outcome {
    need_compiler()?;
    let mut passes = true;
    // One by one: in a run over the workspace, the features of one package would hide those that
    // another lacks.
    for package in packages()? {
        let clippy = Run::new("cargo clippy --locked -p").arg(&package.name);
        passes &= clippy.words("--all-targets -- -D warnings").succeeds();
    }
    need_cpp_compiler()?;
    // Without --locked, because these lock files must follow a new dependency of a package.
    for manifest in OUTSIDE {
        let clippy = Run::new("cargo clippy --manifest-path").arg(manifest);
        passes &= clippy.words("-- -D warnings").succeeds();
    }
    // Its tests too, which no workspace covers.
    let spi =
        "cargo clippy --manifest-path crates/blockyard-spi/Cargo.toml --all-targets -- -D warnings";
    passes &= Run::new(spi).succeeds();
    if passes { Ok(()) } else { fail("clippy has warnings") }
}

/// `docs`
pub(super) fn docs(_: &[String]) -> Outcome {
    need_compiler()?;
    for line in [
        "cargo doc --locked --no-deps --workspace",
        "cargo doc --no-deps --manifest-path crates/blockyard-spi/Cargo.toml",
    ] {
        Run::new(line).env("RUSTDOCFLAGS", "-D warnings").check()?;
    }
    Ok(())
}

/// The build of a package without the others, whose features would hide those that it lacks.
fn check_alone(package: &Package) -> Run {
    Run::new("cargo check --locked -p").arg(&package.name)
}

/// `features`
pub(super) fn features(_: &[String]) -> Outcome {
    need_compiler()?;
    for package in packages()? {
        check_alone(&package).check()?;
        check_alone(&package).arg("--no-default-features").check()?;
        for feature in package.features() {
            let check = check_alone(&package).words("--no-default-features --features");
            check.arg(feature).check()?;
        }
    }
    Ok(())
}

/// `deny`
pub(super) fn deny(_: &[String]) -> Outcome {
    if !Run::new("cargo deny --version").probe() {
        report_unchecked(
            "licences: cargo-deny is not installed: cargo install cargo-deny --locked",
        );
        return Ok(());
    }
    // Advisories need a database from the network: `cargo deny check advisories`.
    Run::new("cargo deny --all-features check bans licenses sources").check()?;
    for folder in ["crates/blockyard-python", "examples/embed", "crates/blockyard-spi"] {
        let deny = Run::new("cargo deny --manifest-path").arg(format!("{folder}/Cargo.toml"));
        deny.words("check --config deny.toml bans licenses sources").check()?;
    }
    Ok(())
}
