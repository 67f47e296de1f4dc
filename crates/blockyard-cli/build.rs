//! Tells the program its commit: that of the packaged source, or of the working tree. Builds
//! without optimisation do not ask, so that a commit does not make them build anew.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The length of a commit as it is shown.
const LEN: usize = 10;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = if env::var("PROFILE").as_deref() == Ok("release") { commit() } else { None };
    let shown = commit.map(|commit| format!(" ({})", &commit[..LEN])).unwrap_or_default();
    println!("cargo::rustc-env=BLOCKYARD_VERSION={}{shown}", env!("CARGO_PKG_VERSION"));
}

/// Returns the commit, if it is known.
fn commit() -> Option<String> {
    let packaged = Path::new(".cargo_vcs_info.json");
    let text = if packaged.exists() {
        let info = fs::read_to_string(packaged).ok()?;
        info.split_once("\"sha1\": \"")?.1.to_owned()
    } else {
        let head = ["../../.git/HEAD", "../../.git/logs/HEAD"];
        head.iter().for_each(|file| println!("cargo::rerun-if-changed={file}"));
        String::from_utf8(Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?.stdout)
            .ok()?
    };
    let commit: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
    (commit.len() >= LEN).then_some(commit)
}
