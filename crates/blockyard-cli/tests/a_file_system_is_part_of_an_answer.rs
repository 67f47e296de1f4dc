//! The file system that an answer assumes: in its title, in JSON, and where two answers are
//! compared. Power cuts of files on it.

mod folder;

use std::process::Command;

use folder::Folder;
use serde_json::Value;

/// A log that grows: each of its syncs commits.
const LOG: &str =
    "[log]\nrw=write\nioengine=sync\nbs=2300\nsize=230k\nfdatasync=1\nfallocate=none\n";

/// Returns what a command prints, which must succeed.
fn said(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    let output = command.args(args).env_remove("COLUMNS").output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns `text` in one line, as its sentences are before they are wrapped.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns an answer about the log in `folder`, with `more` options.
fn asked(folder: &Folder, more: &[&str]) -> String {
    let job = folder.file("log.fio", LOG);
    let device = "--device=nvme-tlc";
    said(
        &[&["whatif", &job, device, "--design=mq-none", "--seeds=1", "--readings=0"], more]
            .concat(),
    )
}

#[test]
fn an_answer_says_which_file_system_it_assumes() {
    let folder = Folder::new("on-disk");
    let own = "base = \"ext4\"\n[filesystem]\ncommit-interval = \"30s\"\n";
    let own = format!("--filesystem={}", folder.file("slow.toml", own));
    let json = "--output-format=json";
    let saved: Vec<_> = [vec![json], vec![json, "--filesystem=ext4"], vec![json, &own]]
        .iter()
        .map(|more| asked(&folder, more))
        .collect();
    let answers: Vec<Value> =
        saved.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
    assert_eq!(answers[0].get("file_system"), None, "a raw disk");
    let assumed = [1, 2].map(|at| &answers[at]["file_system"]);
    assert_eq!(assumed[0]["journal"], "ordered");
    assert_eq!(assumed[0]["commit"]["unit_bytes"], 4096);
    let intervals = assumed.map(|of| of["commit_interval_ns"].as_u64());
    assert_eq!(intervals, [Some(5_000_000_000), Some(30_000_000_000)]);
    let text = asked(&folder, &["--filesystem=ext4"]);
    let title = text.lines().next().unwrap_or_default();
    assert!(title.ends_with("log.fio on nvme-tlc with ext4, seed 1"), "{title}");

    let [raw, ext4] = [0, 1].map(|at| folder.file(&format!("{at}.json"), &saved[at]));
    let compared = unwrapped(&said(&["compare", &raw, &ext4]));
    assert!(compared.contains("file system none -> ext4, seed 1"), "{compared}");
    let same = said(&["compare", &raw, &raw]);
    assert!(!same.contains("file system"), "{same}");
    let longer =
        saved[1].replace("\"commit_interval_ns\": 5000000000", "\"commit_interval_ns\": 6");
    assert_ne!(longer, saved[1]);
    let other = unwrapped(&said(&["compare", &ext4, &folder.file("other.json", &longer)]));
    assert!(
        other.contains("Both answers assume ext4, but with different figures of it."),
        "{other}"
    );
}

/// Bios of one commit had one number, by which a verified run took the data of one for that of
/// another.
#[test]
fn power_is_cut_while_a_journal_commits() {
    let folder = Folder::new("cuts-on-disk");
    for name in ["ext4", "xfs"] {
        let on = format!("--filesystem={name}");
        let text = asked(&folder, &["--output-format=json", &on, "--power-cut-every=50us"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let verified = &answer["designs"][0]["verified"];
        let cuts = verified["power_cuts"].as_array().expect("power cuts");
        assert!(cuts.len() > 100, "{} cuts", cuts.len());
        assert!(cuts.iter().all(|cut| cut["lost_by_wrong"] == 0), "{verified}");
        assert!(cuts.iter().any(|cut| cut["lost_from_memory"].as_u64() > Some(0)), "{verified}");
        assert_eq!(verified["violation_count"], 0, "{verified}");
    }
}
