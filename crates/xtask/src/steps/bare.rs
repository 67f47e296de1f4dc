//! Steps that build programs without an operating system.

use crate::command::Run;
use crate::console::{Outcome, lacks, report_unchecked, say};
use crate::install::{has_target, need, need_compiler};
use crate::project::target;

/// Targets without an operating system. The first one that can be had builds `blockyard-spi`.
const BARE_TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "x86_64-unknown-none"];
/// The target of a bare PC.
const BARE_PC: &str = "x86_64-unknown-none";

/// `bare`
pub(super) fn bare(_: &[String]) -> Outcome {
    need_compiler()?;
    // Release: without link-time optimisation the prebuilt `alloc` needs an unwinder.
    Run::new("cargo run --release --manifest-path ci/bare/Cargo.toml").check()?;
    say("core, mmc and wire link and run without std");
    check_spi()
}

/// Checks that the driver of SD cards builds where std does not exist, and that its tests pass.
fn check_spi() -> Outcome {
    let manifest = "crates/blockyard-spi/Cargo.toml";
    Run::new("cargo test --manifest-path").arg(manifest).check()?;
    let Some(target) = BARE_TARGETS.into_iter().find(|target| has_target(target)) else {
        let first = BARE_TARGETS[0];
        report_unchecked(&format!("SD over SPI on a bare target: rustup target add {first}"));
        return Ok(());
    };
    let build = Run::new("cargo build --manifest-path").arg(manifest).words("--lib --target");
    build.arg(target).check()?;
    say(&format!("SD over SPI builds for {target}"));
    Ok(())
}

/// `sdhci`
pub(super) fn sdhci(_: &[String]) -> Outcome {
    need_compiler()?;
    if !has_target(BARE_PC) {
        report_unchecked(&format!("QEMU's SD host controller: rustup target add {BARE_PC}"));
        return Ok(());
    }
    if !need("qemu-system-x86_64", &["qemu-system-x86"]) || !need("python3", &["python3"]) {
        return lacks("QEMU and Python", "QEMU's SD host controller");
    }
    let build = Run::new("cargo build --release --target").arg(BARE_PC);
    build.words("--manifest-path ci/sdhci/Cargo.toml").check()?;
    Run::new("ci/sdhci/check.py")
        .arg(target().join(BARE_PC).join("release/blockyard-sdhci"))
        .check()
}
