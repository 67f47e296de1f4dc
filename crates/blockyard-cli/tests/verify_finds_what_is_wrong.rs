//! `--verify` and `--power-cut` on the command line.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs in the folder of the examples.
fn blockyard(args: &str) -> Output {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args.split(' ')).current_dir(examples).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

const RUN: &str = "run fsync.fio --device cached-disk.toml";

#[test]
fn a_sound_device_loses_only_unflushed_sectors() {
    let output = blockyard(&format!("{RUN} --power-cut 10ms --power-cut 0.02s"));
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let said = text(output.stdout);
    assert!(said.contains(": no errors\n"), "{said}");
    let cuts: Vec<_> = said.lines().filter(|line| line.contains("power lost at")).collect();
    assert_eq!(cuts.len(), 2, "{said}");
    assert!(cuts[0].contains("at 0.010") && cuts[1].contains("at 0.020"), "{cuts:?}");
    assert!(
        cuts.iter().all(|cut| cut.ends_with(" unflushed sectors lost, 0 sectors wrong")),
        "{cuts:?}"
    );
    let many = text(blockyard(&format!("{RUN} --power-cut-every 1ms")).stdout);
    assert!(many.contains("power lost ") && many.contains(" times: "), "{many}");
}

#[test]
fn errors_are_shown_and_fail_the_run() {
    let folder = std::env::temp_dir().join(format!("blockyard-verify-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rules = folder.join("rules.toml");
    let rule = "[[rule]]\nname = \"liar\"\nevery = 50\nlost-write = true\n";
    std::fs::write(&rules, rule).unwrap();
    let faults = rules.to_str().unwrap();
    let output = blockyard(&format!("{RUN} --verify --faults {faults}"));
    let said = text(output.stdout);
    let errors = text(output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(said.contains("  wrong: disk 0, at the end of the run: sectors "), "{said}");
    assert!(errors.contains("verification failed: "), "{errors}");

    let json = format!("{RUN} --verify --output-format=json --faults {faults}");
    let object: Value = serde_json::from_slice(&blockyard(&json).stdout).unwrap();
    let verified = &object["verified"];
    assert!(verified["violation_count"].as_u64().unwrap() > 0, "{verified}");
    assert_eq!(verified["writes"], 2048 + 128, "{verified}");
    let whatif = "whatif fsync.fio --device cached-disk.toml --design mq-none,mq-deadline";
    let output = blockyard(&format!("{whatif} --verify --faults {faults}"));
    assert_eq!(output.status.code(), Some(1));
    let said = text(output.stdout);
    let verdicts: Vec<_> = said.lines().filter(|line| line.contains(": verified: ")).collect();
    assert_eq!(verdicts.len(), 2, "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A power cut that never happened used to be reported as a success.
#[test]
fn a_power_cut_after_the_end_is_a_warning_and_too_many_are_an_error() {
    let late = blockyard(&format!("{RUN} --power-cut 10ms --power-cut 5s"));
    let errors = text(late.stderr);
    assert!(errors.contains("warning: 1 of 2 power cuts"), "{errors}");
    let few_writes = "--name=x --rw=write --bs=4k --size=64k --direct=1";
    let run = "run --device cached-disk.toml --power-cut-every 1ns";
    let many = blockyard(&format!("{run} -- {few_writes}"));
    assert_eq!(many.status.code(), Some(1));
    let errors = text(many.stderr);
    assert!(errors.contains("more than the 100000th time"), "{errors}");
}

#[test]
fn a_time_without_a_unit_is_bad_usage() {
    for (option, words) in [
        ("--power-cut 10", "a time with its unit"),
        ("--power-cut-every 0ms", "must be longer than 0"),
    ] {
        let output = blockyard(&format!("{RUN} {option}"));
        assert_eq!(output.status.code(), Some(2));
        let errors = text(output.stderr);
        assert!(errors.contains(words), "{errors}");
    }
}
