//! `--sweep KEY=VALUE,...` of `whatif` and `replay`, and how to set what was found.

use std::process::{Command, Output};

const JOB: &str = "--name=r --rw=randread --bs=4k --size=1m --runtime=1 --time_based --direct=1 \
                   --ioengine=libaio --iodepth=8";

fn blockyard_in(width: &str, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blockyard"))
        .args(words.split_whitespace())
        .env("COLUMNS", width)
        .output()
        .expect("the program")
}

fn text(words: &str) -> String {
    let output = blockyard_in("80", words);
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{words}: {told}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn an_answer_names_the_best_values_and_how_to_set_them() {
    let page = std::env::temp_dir().join(format!("blockyard-sweep-{}.html", std::process::id()));
    let words = format!(
        "whatif --device hdd-7200 --sweep queue.deadline.fifo-batch=1,64 --sweep limits.rotational=true,false \
         --goal p99<1s --seeds 2 --readings 0 --html {} {JOB}",
        page.display()
    );
    for width in ["80", "120"] {
        let output = blockyard_in(width, &words);
        assert_eq!(output.status.code(), Some(0), "{:?}", String::from_utf8(output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let most: usize = width.parse().expect("a width");
        assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
        assert!(text.contains("p99<1s: "), "{text}");
        assert!(text.contains("mq-deadline fifo-batch=64 rotational=false"), "{text}");
    }
    let html = std::fs::read_to_string(&page).expect("a page");
    std::fs::remove_file(&page).expect("a file");
    assert!(html.contains("mq-deadline fifo-batch=1 rotational=true"));
    assert!(html.contains("Design: mq-deadline<") || html.contains("Design: mq-deadline"));
}

#[test]
fn the_winner_is_written_as_commands_and_as_a_rule() {
    let words = "--device null --design none --set null.completion=timer --sweep null.completion-time=2ms,1ms";
    let answer = text(&format!("whatif {words} --sweep queue.nomerges=0 --seeds 2 {JOB}"));
    assert!(answer.contains("Best for IOPS: none completion-time=1ms nomerges=0 ("), "{answer}");
    for line in [
        "  echo none > /sys/block/DEV/queue/scheduler\n",
        "  echo 0 > /sys/block/DEV/queue/nomerges\n",
        "    KERNEL==\"nullb[0-9]*\", \\\n",
        "    ATTR{queue/nomerges}=\"0\"\n",
        "null.completion-time: a property of the device or the machine: nothing to set.\n",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
}

#[test]
fn a_trace_can_be_replayed_with_several_values() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/database.csv");
    let words = "--device null --sweep queue.kyber.read-latency=1ms,4ms --readings 0 --seeds 1";
    let answer = text(&format!("replay {trace} {words} --output-format json"));
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["sweep"]["keys"][0], "queue.kyber.read-latency");
    let names: Vec<_> = (0..2).map(|at| answer["designs"][at]["name"].clone()).collect();
    assert_eq!(names, ["kyber read-latency=1ms", "kyber read-latency=4ms"]);
    assert_eq!(answer["sweep"]["variants"][1]["base"], "kyber");
}

#[test]
fn a_value_of_a_design_can_be_set() {
    let set = "--set queue.deadline.fifo-batch=4 --set queue.nomerges=2";
    let run = text(&format!("run --design mq-deadline {set} {JOB}"));
    assert!(run.contains(" on null, mq-deadline fifo-batch=4 nomerges=2, seed 1"), "{run}");
}

#[test]
fn show_says_how_to_set_a_design_and_stays_a_profile() {
    let shown = text("show mq-kyber --device sd-a1");
    assert!(shown.contains("#   echo kyber > /sys/block/DEV/queue/scheduler\n"), "{shown}");
    assert!(shown.contains("KERNEL==\"mmcblk[0-9]|mmcblk[0-9][0-9]\", ATTRS{type}==\"SD\""));
    let file = std::env::temp_dir().join(format!("blockyard-show-{}.toml", std::process::id()));
    std::fs::write(&file, &shown).expect("a file");
    let again = text(&format!("show {}", file.display()));
    std::fs::remove_file(&file).expect("a file");
    assert!(again.contains("elevator = \"kyber\""), "{again}");
    assert!(!text("show hdd-7200").contains("echo"));
}

#[test]
fn bad_values_are_refused_by_the_name_of_the_option() {
    for (words, message) in [
        (
            "--sweep queue.nomerges=0,3",
            "--sweep: setting `queue.nomerges`: `nomerges` is `3`, out of range (0 to 2)",
        ),
        (
            "--sweep queue.deadline.fifo=1",
            "--sweep: setting `queue.deadline.fifo`: unknown key `fifo` in `[queue.deadline]`",
        ),
        (
            "--sweep fifo-batch=1",
            "--sweep: setting `fifo-batch`: unknown key: did you mean `queue.deadline.fifo-batch`?",
        ),
        (
            "--design kyber --sweep queue.deadline.fifo-batch=1,2",
            "--sweep: setting `queue.deadline.fifo-batch`: `[queue.deadline]` goes only with `elevator = \"mq-deadline\"`",
        ),
        (
            "--sweep null.depht=1,2",
            "--sweep: setting `null.depht`: unknown key `depht` in `[null]`: did you mean `depth`?",
        ),
        (
            "--sweep queue.nomerges=",
            "invalid value 'queue.nomerges=' for '--sweep <KEY=VALUE,...>': `queue.nomerges` has an empty value, or none",
        ),
        (
            "--sweep queue.nomerges",
            "invalid value 'queue.nomerges' for '--sweep <KEY=VALUE,...>': expected KEY=VALUE,VALUE,...",
        ),
        (
            "--sweep queue.nomerges=1,1",
            "invalid value 'queue.nomerges=1,1' for '--sweep <KEY=VALUE,...>': `queue.nomerges=1` is there twice",
        ),
        (
            "--design none,kyber --sweep null.depth=1,2,3,4,5,6,7,8 --sweep queue.nomerges=0,1,2 --sweep queue.timeout=1s,2s",
            "--sweep: 2 designs x 8 x 3 x 2 values are more than 64 runs",
        ),
        (
            "--set queue.kyber.read-latency=1ms",
            "setting `queue.kyber.read-latency`: `[queue.kyber]` goes only with `elevator = \"kyber\"`",
        ),
    ] {
        let output = blockyard_in("80", &format!("whatif --device null {words} {JOB}"));
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{words}: {told}");
        assert!(told.contains(message), "{words}: {told}");
    }
}
