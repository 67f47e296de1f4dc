//! `--set KEY=VALUE` of `run`, `whatif` and `replay`.

use std::process::{Command, Output};

const JOB: &str = "--name=r --rw=randread --bs=4k --size=1m --runtime=1 --time_based --direct=1";

fn blockyard(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blockyard"))
        .args(words.split(' '))
        .output()
        .expect("the program")
}

fn answer(words: &str) -> serde_json::Value {
    let output = blockyard(&format!("{words} --output-format json"));
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{words}: {told}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A read that takes 10 ms at the device leaves room for 100 in a second, and some time for
/// processors.
#[test]
fn a_job_waits_as_long_as_the_value_says() {
    let set = "--device null --set null.completion=timer --set null.completion-time=10ms";
    let run = answer(&format!("run {set} {JOB}"));
    let whatif = answer(&format!("whatif {set} --design mq-none,mq-deadline {JOB}"));
    let device = "null with null.completion=timer, null.completion-time=10ms";
    assert_eq!(whatif["device"], device);
    for iops in [
        &run["jobs"][0]["read"]["iops"],
        &whatif["designs"][0]["iops"],
        &whatif["designs"][1]["iops"],
    ] {
        let iops = iops.as_f64().expect("a number");
        assert!((98.0..=100.0).contains(&iops), "{iops}");
    }
}

#[test]
fn a_trace_is_replayed_on_the_device_with_its_new_values() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/database.csv");
    let [slow, quick] = ["50ms", "1ms"].map(|time| {
        let set =
            format!("--device null --set null.completion=timer --set null.completion-time={time}");
        let of = answer(&format!("replay {trace} --design mq-none,mq-none {set}"));
        of["designs"][0]["lat_ns"]["min"].as_u64().expect("a number")
    });
    assert!(slow >= 50_000_000);
    assert!((1_000_000..50_000_000).contains(&quick));
}

fn whatif_with(set: &str) -> serde_json::Value {
    let words = "whatif --device sd-hs --design mmc-blkmq,hsq --readings 4";
    answer(&format!("{words} --set {set} {JOB}"))
}

/// A reading varies what is assumed, but not what the user says.
#[test]
fn readings_keep_the_value() {
    let wide = whatif_with("card.access=800us");
    let narrow = whatif_with("card.access=1us");
    assert_eq!(wide["rests"], narrow["rests"]);
    assert_eq!(wide["readings"]["count"], 4);
    let stated = answer(&format!("whatif --device sd-hs --design mmc-blkmq,hsq {JOB}"));
    let [stated, varied] =
        [&stated, &wide].map(|of| of["rests"]["varied"].as_u64().expect("a count"));
    assert_eq!(stated, varied + 1);
}

#[test]
fn a_wrong_value_is_named_by_its_key() {
    for (set, words) in [
        ("card.read.acess=1us", "setting `card.read.acess`: unknown key `acess` in `[card.read]`"),
        ("card.access=900", "setting `card.access`: `access` is `900`, not a time with its unit"),
        ("card.access", "expected KEY=VALUE: card.read.access=900us"),
        ("=1", "setting ``: a key is a path of names, such as `card.read.access`"),
        (
            "null.depth=1",
            "setting `null.depth`: the device has no `[null]`, but `[card]` and `[host]`",
        ),
    ] {
        let output = blockyard(&format!("run --device sd-hs --set {set} {JOB}"));
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
