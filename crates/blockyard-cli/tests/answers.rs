//! `whatif`, `run` and `replay` on the repository's examples and on bad input.

mod folder;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use folder::Folder;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn blockyard<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args).current_dir(ROOT).env_remove("COLUMNS").output().unwrap()
}

/// Returns the standard output of a command that must succeed with an empty standard error.
fn answer(args: &[&str]) -> String {
    let output = blockyard(args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the path of an example from the root of the repository, where programs run: a longer
/// path would break lines elsewhere.
fn example(name: &str) -> String {
    format!("examples/{name}")
}

/// Returns the answer of `whatif` for one random reader on a SCSI host under `designs`.
fn reader(designs: &str, more: &[&str]) -> Value {
    let job = "--name=x --rw=randread --direct=1 --ioengine=io_uring --size=4m";
    let setting = ["whatif", "--device", "srp", "--output-format", "json", "--design", designs];
    let args: Vec<_> =
        setting.into_iter().chain(job.split(' ')).chain(more.iter().copied()).collect();
    serde_json::from_str(&answer(&args)).unwrap()
}

fn figure(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap()
}

#[test]
fn polling_buys_latency_with_processor_time() {
    let polled = example("polled.toml");
    let slept = reader(&format!("mq-none,{polled}"), &[]);
    let spun = reader(&polled, &["--hipri"]);
    // Without `hipri` no request uses the poll queues.
    let [without, with] = [0, 1].map(|at| &slept["designs"][at]);
    assert_eq!((&without["lat_ns"], &without["iops"]), (&with["lat_ns"], &with["iops"]));
    let spun = &spun["designs"][0];
    assert!(spun["lat_ns"]["mean"].as_u64() < with["lat_ns"]["mean"].as_u64());
    // The job keeps one of 16 processors fully busy.
    assert_eq!(figure(spun, "cpu_percent"), 100.0 / 16.0);
    assert!(figure(with, "cpu_percent") * 50.0 < figure(spun, "cpu_percent"));
    assert_eq!((figure(with, "wakeups_per_io"), figure(spun, "wakeups_per_io")), (1.0, 0.0));
}

#[test]
fn polling_without_a_polled_queue_is_refused_with_the_missing_key() {
    let job = "--name=x --rw=randread --direct=1 --ioengine=io_uring --size=4m --hipri";
    let args = ["whatif", "--device", "srp", "--design", "mq-none"];
    let output = blockyard(&args.into_iter().chain(job.split(' ')).collect::<Vec<_>>());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("`hipri`") && told.contains("`poll-queues` in `[queue]`"), "{told}");
}

/// Twenty jobs on an eMMC device, each with one I/O of 4 KiB in flight.
const WRITERS: &str = "--name=x --filename=/dev/mmcblk0 --direct=1 --bs=4k --size=1m --numjobs=20 \
                       --group_reporting --device=emmc-hs400-sprd";

fn asked(rw: &str, more: &[&str]) -> String {
    let rw = format!("--rw={rw}");
    let designs = ["whatif", "--design=mmc-blkmq,hsq", &rw];
    let args = designs.into_iter().chain(more.iter().copied());
    answer(&args.chain(WRITERS.split(' ')).collect::<Vec<_>>())
}

fn is_shared(words: &str) -> bool {
    ["Each transfer carries", "I/Os per transfer"].iter().any(|w| words.contains(w))
}

#[test]
fn an_explanation_names_the_time_between_mmc_transfers() {
    let random: Value =
        serde_json::from_str(&asked("randwrite", &["--output-format=json"])).unwrap();
    let why = random["why"].as_str().unwrap();
    assert!(why.starts_with("mmc-blkmq reaches ") && why.contains(" % of hsq's IOPS: "), "{why}");
    assert!(why.contains("A transfer starts "), "{why}");
    assert!(
        why.contains("Between two transfers there are 1.00 CMD13s instead of 0.00 and "),
        "{why}"
    );
    assert!(!is_shared(why), "{why}");
    let [blkmq, hsq] = [0, 1].map(|design| &random["designs"][design]["mmc"]);
    assert_eq!([&blkmq["status_per_write"], &hsq["status_per_write"]], [1.0, 0.0]);
    assert_eq!(blkmq["commands"]["CMD13"], blkmq["commands"]["CMD25"]);
    assert!(hsq["commands"].get("CMD13").is_none());

    // Merged I/Os share the time that is lost between transfers.
    let sequential = asked("write", &["--details"]);
    let words = sequential.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(is_shared(&words), "{sequential}");
    assert!(words.contains("design CMD13 CMD23 CMD25 CMD13/write"), "{sequential}");
    assert!(sequential.lines().all(|line| line.chars().count() <= 80), "{sequential}");
}

fn run_of_writers(format: &str) -> String {
    let format = format!("--output-format={format}");
    let args = ["run", "--design=mmc-blkmq", "--rw=randwrite", &format];
    answer(&args.into_iter().chain(WRITERS.split(' ')).collect::<Vec<_>>())
}

#[test]
fn a_run_shows_its_mmc_host_if_it_has_one() {
    let lines = run_of_writers("normal");
    assert!(lines.contains("\nMMC host:\n  commands     : CMD13="), "{lines}");
    assert!(lines.contains(", CMD13/write=1.00\n  bus          : busy="), "{lines}");
    let object: Value = serde_json::from_str(&run_of_writers("json")).unwrap();
    assert_eq!(object["mmc"]["status_per_write"], 1.0);
    assert!(object["mmc"]["wakeups_per_io"].as_f64() > Some(1.0), "{}", object["mmc"]);

    let args = ["run", "--device=null", "--name=x", "--rw=read", "--size=1m", "--direct=1"];
    assert!(!answer(&args).contains("MMC"));
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

const QUICK: &str = "[x]\nrw=read\nioengine=libaio\niodepth=32\ndirect=1\nsize=64m\nnumjobs=4\n";

/// The fio command lines of the host software queue's patch series: 20 jobs on the same gigabyte.
/// Each job has one I/O in flight, whatever its iodepth. `number_ios` limits each job, which has
/// 2^18 I/Os.
#[test]
fn published_command_lines_run_as_they_are() {
    for rw in ["read", "randread", "write", "randwrite"] {
        let options = format!(
            "--filename=/dev/mmcblk0p30 --direct=1 --iodepth=20 --rw={rw} --bs=4K --size=1G \
             --group_reporting --numjobs=20 --name=test_read --number_ios=256"
        );
        let setting = ["run", "--device=null", "--output-format=json"];
        let output = blockyard(&setting.into_iter().chain(options.split(' ')).collect::<Vec<_>>());
        let notes = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{notes}");
        let about = "`iodepth` has no effect: a synchronous engine has one I/O in flight\n";
        assert_eq!(notes, format!("blockyard: note: command line:3: {about}"));
        let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
        let jobs = whole["jobs"].as_array().unwrap();
        assert_eq!((jobs.len(), &jobs[0]["job options"]["numjobs"]), (1, &Value::from("20")));
        let kind = &jobs[0][rw.trim_start_matches("rand")];
        assert_eq!(kind["total_ios"], 20 * 256);
        assert_eq!(jobs[0]["iodepth_level"]["1"], 100.0);
    }
}

fn jobs(name: &str) -> Vec<Value> {
    let text = answer(&["run", &example(name), "--device=null", "--output-format=json"]);
    serde_json::from_str::<Value>(&text).unwrap()["jobs"].as_array().unwrap().clone()
}

/// Each file of `examples/mmc` does what the comment at its top says.
#[test]
fn workloads_of_the_mmc_series_report_each_of_their_jobs() {
    let iozone = jobs("mmc/iozone.fio");
    let records = (0..13).map(|at| 4_u64 << at);
    let kinds = ["write", "rewrite", "read", "reread", "randread", "randwrite"];
    let expected = records.flat_map(|kib| kinds.map(|kind| (kind, kib)));
    assert_eq!(iozone.len(), 13 * 6);
    for (job, (kind, kib)) in iozone.iter().zip(expected) {
        assert_eq!(job["jobname"], format!("{kind}-{kib}k"));
        let done = if kind.contains("write") { "write" } else { "read" };
        assert_eq!(job[done]["total_ios"], 20_480 / kib, "{kind} {kib}");
        assert_eq!(job[done]["io_kbytes"], 20_480 / kib * kib);
    }
    let dd = &jobs("mmc/dd.fio")[0]["read"];
    assert_eq!((&dd["total_ios"], &dd["io_bytes"]), (&1024.into(), &(1_u64 << 30).into()));
    let find = &jobs("mmc/find.fio")[0];
    assert_eq!(
        (&find["read"]["total_ios"], &find["read"]["bw_bytes"].is_u64()),
        (&2600.into(), &true)
    );
}

/// The answer reports the time that `find` waits and the time that it computes.
#[test]
fn a_dependent_reader_reports_waiting_and_computing() {
    let find = example("mmc/find.fio");
    let args = ["whatif", &find, "--device=srp", "--design=mq-none", "--details"];
    let text = answer(&args);
    assert!(text.contains("\nTime of jobs, all jobs together:\n"), "{text}");
    let whole: Value =
        serde_json::from_str(&answer(&[&args[..], &["--output-format=json"]].concat())).unwrap();
    let [alive, thinking, in_calls, ready, waiting, pausing] =
        ["alive", "thinking", "in_calls", "ready", "waiting", "pausing"]
            .map(|part| whole["designs"][0]["jobs_ns"][part].as_u64().unwrap());
    assert_eq!(thinking, 2599 * 715_000);
    assert_eq!(alive, thinking + in_calls + ready + waiting + pausing);
    // A command is in service for 245 us on average, and the job waits for each.
    assert!(waiting > 2600 * 240_000 && ready == 0 && pausing == 0, "{waiting} {ready} {pausing}");
    assert!(!answer(&["run", &example("scsi-seqread.fio"), "--device=srp"]).contains("thinking"));
}

#[test]
fn whatif_compares_designs_and_explains_the_difference() {
    let job = example("scsi-seqread.fio");
    let designs = ["legacy-deadline", "mq-deadline-2017", "mq-deadline"];
    let table = answer(&["whatif", &job, "--device=srp", "--design", &designs.join(",")]);
    for design in designs {
        // The name, IOPS, MiB/s, three latencies with their units, and the ratio.
        let cells = |line: &str| line.split_whitespace().count();
        let row = table.lines().find(|line| line.split("  ").next() == Some(design));
        assert_eq!(row.map(cells), Some(10), "{table}");
    }
    let verdict = table.lines().nth(1).unwrap();
    assert_eq!(verdict, "mq-deadline is fastest.");
    assert!(table.contains("\nmq-deadline-2017 reaches 2"), "{table}");
    assert!(table.contains("I/Os per command"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn every_example_runs() {
    for name in ["scsi-seqread.fio", "scsi-randread.fio", "mixed.fio"] {
        let summary = answer(&["run", &example(name), "--device=srp", "--design=mq-deadline"]);
        assert!(summary.contains("IOPS=") && summary.contains("Run status group 0"), "{summary}");
    }
}

/// Returns the place where `value` does not match `schema`, if any. `root` is the whole schema.
fn mismatch(value: &Value, schema: &Value, root: &Value, place: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer =
            reference.strip_prefix('#').expect("a reference should point into the schema");
        let mut whole =
            root.pointer(pointer).expect("the schema that a reference names should exist").clone();
        // A tagged variant adds its tag to the properties of the type that it refers to.
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            whole["properties"][key] = property.clone();
        }
        return mismatch(value, &whole, root, place);
    }
    for choice in ["anyOf", "oneOf"] {
        let Some(schemas) = schema[choice].as_array() else { continue };
        let of_choices = schemas.iter().map(|schema| mismatch(value, schema, root, place));
        let mismatches: Option<Vec<_>> = of_choices.collect();
        return mismatches.map(|all| all.join("; "));
    }
    if let Some(wanted) = schema.get("const") {
        return (value != wanted).then(|| format!("{place}: {value} is not {wanted}"));
    }
    match value {
        Value::Object(object) => {
            let known = &schema["properties"];
            let others = &schema["additionalProperties"];
            for key in schema["required"].as_array().into_iter().flatten() {
                if object.get(key.as_str().expect("a required key should be a string")).is_none() {
                    return Some(format!("{place}: {key} is missing"));
                }
            }
            object.iter().find_map(|(key, value)| {
                let schema = known.get(key).or(others.is_object().then_some(others));
                let Some(schema) = schema else { return Some(format!("{place}: unknown {key}")) };
                mismatch(value, schema, root, &format!("{place}/{key}"))
            })
        }
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            let schema = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
            mismatch(item, schema, root, &format!("{place}/{at}"))
        }),
        _ => {
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::String(_) => "string",
                Value::Number(number) if number.is_f64() => "number",
                _ => "integer",
            };
            let kinds = schema["type"].as_str().map(|one| vec![Value::from(one)]);
            let kinds = kinds.or_else(|| schema["type"].as_array().cloned()).unwrap_or_default();
            // JSON has no NaN: a ratio to zero is null.
            let allows = kinds.iter().any(|allowed| allowed == kind)
                || (kinds.contains(&"number".into()) && ["integer", "null"].contains(&kind));
            (!allows).then(|| format!("{place}: {value} is not {kinds:?}"))
        }
    }
}

fn ask(job: &str, device: &str, designs: &str, more: &[&str]) -> Value {
    let setting = ["whatif", job, "--output-format=json", "--device", device, "--design", designs];
    serde_json::from_str(&answer(&[&setting[..], more].concat())).unwrap()
}

#[test]
fn whatif_json_matches_its_schema() {
    let schema: Value = serde_json::from_str(&answer(&["schema", "whatif"])).unwrap();
    let folder = Folder::new("schema");
    let job = folder.file("quick.fio", QUICK);
    for (device, designs, more) in [
        ("srp", "mq-none,mq-deadline", &["--verify", "--power-cut=1ms"][..]),
        ("emmc-hs400-sprd", "mmc-blkmq,hsq", &[]),
        ("pmem-dram", "pmem-raw,btt", &[]),
        ("null", "mq-none", &[]),
    ] {
        let whole = ask(&job, device, designs, more);
        assert_eq!(mismatch(&whole, &schema, &schema, ""), None, "{device}");
        assert_eq!(whole["device"], device);
        let outcomes = whole["designs"].as_array().unwrap();
        assert_eq!(outcomes.len(), designs.split(',').count());
        assert_eq!(outcomes[0]["ratio"], 1.0);
        for outcome in outcomes {
            agrees_with_itself(outcome);
        }
    }
    let mut wrong = ask(&job, "null", "mq-none", &[]);
    wrong["designs"][0]["surplus"] = 1.into();
    assert!(mismatch(&wrong, &schema, &schema, "").is_some(), "the checker should find a mismatch");
}

/// The figures of jobs, histograms and series add up to those of the run.
fn agrees_with_itself(outcome: &Value) {
    let of_jobs = outcome["jobs"].as_array().unwrap().iter();
    let directions = of_jobs.flat_map(|job| ["read", "write", "trim"].map(|of| &job[of]));
    let ios: u64 = directions.clone().filter_map(|of| of["ios"].as_u64()).sum();
    assert_eq!(outcome["ios"], ios);
    for of in directions.chain([outcome]).filter(|of| !of.is_null()) {
        let counts = of["lat_ns"]["histogram"]["count"].as_array().unwrap();
        assert_eq!(of["ios"], counts.iter().filter_map(Value::as_u64).sum::<u64>());
    }
    let series = &outcome["series"];
    let len = series["at_ns"].as_array().unwrap().len();
    assert!(len > 0, "a series should have samples");
    for list in [&series["depth"], &series["in_flight"], &series["read"]["iops"]] {
        assert_eq!(list.as_array().unwrap().len(), len);
    }
}

#[test]
fn faults_are_counted_in_every_answer() {
    let folder = Folder::new("faults");
    let job = folder.file("quick.fio", QUICK.replace("rw=read", "rw=randread"));
    let rules = "[[rule]]\nname = \"bad\"\nnth = 9\nerror = \"medium\"\n\
                 [[rule]]\nname = \"slow\"\nevery = 100\ndelay = \"1ms\"\n";
    let faults = format!("--faults={}", folder.file("faults.toml", rules));
    let failed = blockyard(&["run", &job, "--device=srp", &faults]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let told = String::from_utf8(failed.stderr).unwrap();
    assert!(told.contains("a read of ") && told.contains(" failed: medium error"), "{told}");
    assert!(told.contains("(rules that had fired: bad, slow); "), "{told}");

    let goes_on = QUICK.replace("rw=read", "rw=randread") + "continue_on_error=all\n";
    let job = folder.file("goes-on.fio", goes_on);
    let summary = answer(&["run", &job, "--device=srp", &faults]);
    assert!(summary.contains("errors    : total=1, first_error=61/<medium error>"), "{summary}");
    let lines: Vec<Vec<_>> = summary.lines().map(|l| l.split_whitespace().collect()).collect();
    let header = lines.iter().position(|line| *line == ["rule", "matched", "fired"]).unwrap();
    assert_eq!((lines[header + 1][0], lines[header + 1][2]), ("bad", "1"));

    let json = answer(&["run", &job, "--device=srp", &faults, "--output-format=json"]);
    let whole: Value = serde_json::from_str(&json).unwrap();
    let [bad, slow] = &whole["faults"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&bad["name"], &bad["fired"]), (&"bad".into(), &1.into()));
    let matched = slow["matched"].as_u64().unwrap();
    let fired = slow["fired"].as_u64().unwrap();
    assert_eq!(fired, matched / 100);
    assert_eq!(whole["jobs"][0]["total_err"], 1);
    assert_eq!(whole["jobs"][0]["first_error"], 61);

    let whatif = ["whatif", &job, "--device=srp", "--design=mq-none,mq-deadline", &faults];
    let table = answer(&whatif);
    assert!(table.contains("\ndesign       rule  matched  fired\n"), "{table}");
    let json = answer(&[&whatif[..], &["--output-format=json"]].concat());
    let whole: Value = serde_json::from_str(&json).unwrap();
    for design in whole["designs"].as_array().unwrap() {
        assert_eq!(design["faults"].as_array().unwrap().len(), 2);
        assert_eq!(keys(&design["faults"][0]), ["fired", "matched", "name"]);
    }
}

#[test]
fn an_error_in_a_fault_file_is_reported_by_line() {
    let folder = Folder::new("bad-faults");
    let file = folder.file("faults.toml", "[[rule]]\nname = \"x\"\ndealy = \"1ms\"\n");
    let job = folder.file("quick.fio", QUICK);
    let output = blockyard(&["run", &job, "--faults", &file]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("faults.toml:3: unknown key `dealy`") && told.contains("`delay`"),
        "{told}"
    );
}

#[test]
fn the_example_of_faults_does_what_it_says() {
    let faults = format!("--faults={}", example("faults.toml"));
    let job = example("scsi-randread.fio");
    let json = answer(&["run", &job, "--device=srp", &faults, "--output-format=json"]);
    let whole: Value = serde_json::from_str(&json).unwrap();
    for rule in whole["faults"].as_array().unwrap() {
        assert!(rule["fired"].as_u64().unwrap() > 0, "{rule}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = Folder::new("seed");
    let job = folder.file("quick.fio", QUICK.replace("rw=read", "rw=randrw"));
    for format in ["--output-format=json", "--output-format=normal"] {
        let whatif =
            ["whatif", &job, "--device=srp", "--design=legacy-deadline,mq-deadline", format];
        assert_eq!(answer(&whatif), answer(&whatif));
        let [first, again, other] = ["--seed=7", "--seed=7", "--seed=8"]
            .map(|seed| answer(&["run", &job, "--device=srp", format, seed]));
        assert_eq!(first, again);
        assert_ne!(first, other);
    }
}

#[test]
fn options_and_a_job_file_give_the_same_answer() {
    let folder = Folder::new("options");
    let job = folder.file("quick.fio", QUICK);
    let options: Vec<_> = QUICK.lines().skip(1).map(|option| format!("--{option}")).collect();
    let mut args = vec!["run", "--device=null", "--name=x"];
    args.extend(options.iter().map(String::as_str));
    // The first line names the job: `x`, or the file.
    let body = |args: &[&str]| answer(args).split_once('\n').map(|(_, body)| body.to_owned());
    assert_eq!(body(&args), body(&["run", "--device=null", &job]));
}

#[test]
fn the_output_option_writes_the_answer_to_a_file() {
    let folder = Folder::new("output");
    let job = folder.file("quick.fio", QUICK);
    let file = folder.path("answer.json");
    let run = ["run", &job, "--device=null", "--output-format=json"];
    let shown = answer(&run);
    assert_eq!(answer(&[&run[..], &["--output", &file]].concat()), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), shown);
}

/// A job file, the start of the message after the file's name, and a part of the message.
const BAD: &[(&str, &str, &str)] = &[
    ("", ": ", "no jobs"),
    ("[x]\nrw=read\0\n", ": ", "binary data"),
    ("[x]\ndirect=1\niodpeth=4\n", ":3: ", "did you mean `iodepth`?"),
    ("[x]\ndirect=1\nbs=0\n", ":3: ", "`bs`: 0 is out of range"),
    ("[x]\ndirect=1\nsize=2k\nbs=4k\n", ":3: ", "size too small"),
    ("[x]\ndirect=1\niodepth=0\n", ":3: ", "`iodepth`: 0 is out of range"),
    ("[x]\ndirect=1\nnumjobs=10000\n", ":3: ", "10000"),
    ("[x]\ndirect=1\nsize=2t\n", ":3: ", "device smaller than the job"),
    ("[x]\ndirect=1\nbuffered=1\n", ":3: ", "`buffered` contradicts `direct`"),
    ("[x]\ndirect=1\nsize=8g\n[y]\nsize=8g\nrw=trim\ndirect=0\n", ":7: ", "add direct=1"),
    ("[x]\ndirect=1\nsize=20g\nnumjobs=64\n", ":1: ", "do not fit the device"),
    ("[x]\nioengine=rados\npool=x\n", ":2: ", "`rados` is not modelled: its I/O goes to a server"),
    ("[x]\nrw=trim\n", ":1: ", "trims of a buffered job are not modelled"),
    ("[x]\ndirect=1\nbs=${NO_SUCH_VARIABLE}\n", ":3: ", "--env NAME=VALUE"),
];

#[test]
fn bad_input_is_reported_by_file_and_line_and_leaves_no_output() {
    let folder = Folder::new("bad");
    let output = folder.path("answer");
    for (text, place, words) in BAD {
        let job = folder.file("bad.fio", text);
        for command in [
            &["run", &job, "--device=srp", "--output", &output][..],
            &["whatif", &job, "--device=srp", "--design=mq-none", "--output", &output],
        ] {
            let got = blockyard(command);
            let message = String::from_utf8(got.stderr).unwrap();
            assert_eq!(got.status.code(), Some(2), "{text:?}: {message}");
            let begin = format!("blockyard: error: {job}{place}");
            assert!(message.starts_with(&begin), "{text:?}: {message}");
            assert!(message.contains(words), "{text:?}: {message}");
            assert!(got.stdout.is_empty() && !Path::new(&output).exists(), "{text:?}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let got = blockyard(&["run", "/no/such/file.fio"]);
    assert_eq!(got.status.code(), Some(2));
    let message = String::from_utf8(got.stderr).unwrap();
    assert!(message.starts_with("blockyard: error: /no/such/file.fio: cannot read"), "{message}");
}

fn replay(args: &[&str]) -> (String, String) {
    let output = blockyard(args);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    (String::from_utf8(output.stdout).unwrap(), told)
}

/// The description of the trace goes to standard error; the answer equals that of `run` or
/// `whatif`.
#[test]
fn a_trace_is_answered_like_a_job() {
    let trace = example("traces/database");
    let (run, told) = replay(&["replay", &trace]);
    assert!(run.contains("issued rwts: total=98,24,4,4"), "{run}");
    let sniffed = "blktrace in 2 files: 130 I/Os of 10.5 MiB in 9.80 ms";
    assert!(
        told.contains(sniffed) && told.contains("on 1 disk (8,0), all with completions"),
        "{told}"
    );
    assert!(
        told.contains("mq-none: I/Os were issued ") && told.contains("later than recorded"),
        "{told}"
    );
    assert_eq!(replay(&["run", "--replay", &trace, "--device=null"]).0, run);
    let designs = "--design=mq-none,mq-deadline";
    // Only an open loop has recorded instants.
    let (open, _) = replay(&["replay", &trace, designs]);
    let words = open.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("mq-deadline: I/Os were issued "), "{open}");
    assert!(words.contains("Latencies count from the recorded instants."), "{open}");
    let (table, _) = replay(&["replay", &trace, designs, "--pace=think"]);
    assert!(!table.contains("recorded"), "{table}");
    for row in ["database.blktrace.0, read\n  mq-none ", "\n  mq-deadline "] {
        assert!(table.contains(row), "{table}");
    }
    let whatif = ["whatif", "--replay", &trace, "--device=null", designs, "--pace=think"];
    assert_eq!(replay(&whatif).0, table);
    assert_ne!(replay(&["replay", &trace, "--pace=closed:4"]).0, run);
}

/// `replay` issues the I/Os of a trace that `--blktrace` wrote, at the same instants.
#[test]
fn a_run_is_replayed_from_its_own_trace() {
    const MIXED: &str = "[x]\nrw=randrw\nioengine=libaio\niodepth=8\ndirect=1\nsize=8m\nnumjobs=2\n\
                         group_reporting\n";
    let folder = Folder::new("round-trip");
    let job = folder.file("job.fio", MIXED);
    let prefix = folder.path("trace");
    let on = ["--device=srp", "--design=mq-deadline", "--output-format=json"];
    let ran = answer(&[&["run", &job, "--blktrace", &prefix], &on[..]].concat());
    let replayed = blockyard(&[&["replay", prefix.as_str()], &on[..]].concat());
    assert_eq!(replayed.status.code(), Some(0));
    let [ran, replayed] = [ran.into_bytes(), replayed.stdout]
        .map(|json| serde_json::from_slice::<Value>(&json).unwrap()["jobs"][0].clone());
    for kind in ["read", "write"] {
        let ran = &ran[kind];
        let replayed = &replayed[kind];
        assert!(ran["total_ios"].as_u64().unwrap() > 1500);
        assert_eq!(replayed["total_ios"], ran["total_ios"]);
        assert_eq!(replayed["io_bytes"], ran["io_bytes"]);
        let [was, is] = [ran, replayed].map(|times| times["clat_ns"]["mean"].as_f64().unwrap());
        assert!((is / was - 1.0).abs() < 0.02, "{kind}: {was} ns, replayed {is} ns");
    }
}

#[test]
fn options_of_a_trace_are_checked() {
    let folder = Folder::new("replay");
    let bad = folder.file("bad.csv", "128166372003061629,a,0,Read,8,8,1\n");
    let job = folder.file("quick.fio", QUICK);
    let trace = example("traces/database.csv");
    for (args, words) in [
        (&["replay", &bad][..], "bad.csv:1: offset 8: expected bytes, a multiple of 512"),
        (&["replay", "/no/such/trace"], "/no/such/trace: cannot read the file"),
        (&["replay", &job], "quick.fio: not a trace of a known format"),
        (&["replay", &trace, "--pace=closed:0"], "one of open, think, closed:N"),
        (&["replay", &trace, "--speed=fast"], "a factor from 0.001"),
        (
            &["replay", &trace, "--pace=closed:2", "--speed=2x"],
            "--speed cannot be used with --pace closed",
        ),
        (&["replay", &trace, "--disk=sda"], "no disk `sda` (its disks: 0 = web.0)"),
        (&["run", &job, "--pace=think"], "--pace is for traces: add --replay TRACE"),
        (&["replay", "/"], "it is a directory"),
        (&["replay", "-"], "a trace is read more than once"),
        (&["replay", &trace, "--design=mq-none,mq-deadline", "--lat-log=x"], "under one design"),
        (&["replay", &trace, "--design=mq-none,mq-kyber", "--output-format=terse"], "one design"),
        (&["run", &job, "--replay", &trace], "cannot be used with"),
    ] {
        let output = blockyard(args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(words), "{args:?}: {told}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_trace_changes_no_answer_and_is_the_same_every_time() {
    let folder = Folder::new("trace");
    let job = folder.file("job.fio", QUICK);
    let plain = answer(&["run", &job, "--device=null", "--output-format=json"]);
    let [first, second] = ["first", "second"].map(|name| {
        let trace = folder.path(&format!("{name}.json"));
        let prefix = folder.path(name);
        let options = ["--output-format=json", "--trace", &trace, "--blktrace", &prefix];
        assert_eq!(answer(&[&["run", &job, "--device=null"], &options[..]].concat()), plain);
        (fs::read(&trace).unwrap(), fs::read(format!("{prefix}.blktrace.0")).unwrap())
    });
    assert!(first == second && first.1.len() > 48);
    assert_eq!(first.1.len() % 8, 0, "records and payloads are multiples of 8 bytes");
}

#[test]
fn whatif_traces_every_design_into_one_file() {
    let folder = Folder::new("trace-whatif");
    let job = folder.file("job.fio", QUICK);
    let trace = folder.path("trace.json");
    let designs = "--design=mq-none,mq-deadline";
    answer(&["whatif", &job, "--device=srp", designs, "--trace", &trace]);
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let processes: Vec<_> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| (event["pid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
        .collect();
    for name in ["mq-none: processors", "mq-deadline: processors", "mq-deadline: requests"] {
        let (pid, _) = processes.iter().find(|(_, process)| *process == name).unwrap();
        assert!(events.iter().any(|event| event["ph"] != "M" && event["pid"] == *pid), "{name}");
        assert_eq!(processes.iter().filter(|(other, _)| other == pid).count(), 1, "{name}");
    }
}

/// An interrupted run reports what it has measured, and leaves a readable trace.
#[test]
fn an_interrupted_run_closes_its_trace() {
    let folder = Folder::new("interrupted");
    let trace = folder.path("trace.json");
    let job = ["--", "--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--time_based"];
    let args = [&["run", "--trace", &trace], &job[..], &["--runtime=1000", "--size=1g"]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    let mut child =
        command.args(args).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    while fs::metadata(&trace).map_or(0, |file| file.len()) == 0 {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "the run should write its trace before it ends"
        );
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(" of virtual time: its figures are partial"), "{told}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("IOPS="));
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    assert!(!trace["traceEvents"].as_array().unwrap().is_empty());
}

#[test]
fn a_trace_that_cannot_be_written_fails_the_run() {
    let folder = Folder::new("trace-fails");
    let job = folder.file("job.fio", QUICK);
    let missing = folder.path("missing/trace");
    let mut cases = vec![
        (["--trace", missing.as_str()], missing.clone()),
        (["--blktrace", &missing], format!("{missing}.blktrace.0")),
    ];
    if Path::new("/dev/full").exists() {
        cases.push((["--trace", "/dev/full"], "/dev/full".to_owned()));
    }
    for (option, file) in cases {
        let output = blockyard(&[&["run", &job, "--device=null"], &option[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{option:?}");
        assert!(output.stdout.is_empty(), "{option:?}: no partial answer");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with(&format!("blockyard: error: {file}: ")), "{error}");
    }
}
