//! The verdict of `whatif`: each job under each design, goals, grids of designs, and runs that end
//! early.

mod folder;

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use folder::Folder;

/// A log of large writes beside a reader of small blocks.
const MIXED: &str = "[global]\ndirect=1\nsize=1g\nruntime=2\ntime_based\n\
                     [log]\nrw=write\nbs=64k\n[reader]\nrw=randread\nbs=4k\n";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args).env_remove("COLUMNS");
    command
}

fn blockyard(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Returns the standard output of a command that must end with this exit code.
fn said(args: &[&str], code: i32) -> String {
    let output = blockyard(args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn told(args: &[&str], code: i32) -> String {
    let output = blockyard(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn each_job_has_a_row_under_each_design() {
    let folder = Folder::new("rows");
    let job = folder.file("mixed.fio", MIXED);
    let args = ["whatif", &job, "--device=emmc-hs400", "--design=mmc-serial,cqe", "--readings=0"];
    let text = said(&args, 0);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1], "cqe is fastest for every job.");
    assert!(lines[2].starts_with("cqe against mmc-serial: log +"), "{text}");
    assert!(!text.contains("Device utilisation"), "{text}");
    let whole: Value =
        serde_json::from_str(&said(&[&args[..], &["--output-format=json"]].concat(), 0)).unwrap();
    let rows = whole["verdict"]["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| (row["job"].as_str().unwrap(), row["direction"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("log", "write"), ("reader", "read")]);
    // A row has the figures of its job alone.
    for (at, row) in rows.iter().enumerate() {
        let of_job = &whole["designs"][1]["jobs"][at][names[at].1];
        let cell = &row["designs"][1];
        assert_eq!((&cell["iops"], &cell["p99_ns"]), (&of_job["iops"], &of_job["lat_ns"]["p99"]));
        let first = row["designs"][0]["iops"].as_f64().unwrap();
        // Both are rounded in their last bit.
        let ratio = cell["iops"].as_f64().unwrap() / first;
        assert!((cell["ratio"].as_f64().unwrap() - ratio).abs() < 1e-12, "{cell} for {ratio}");
    }
}

fn ask(whatif: &[&str], goals: &[&str], code: i32) -> String {
    said(&[whatif, goals].concat(), code)
}

#[test]
fn a_goal_is_met_or_missed_and_check_says_so() {
    let folder = Folder::new("goals");
    let job = folder.file("mixed.fio", MIXED);
    let whatif = ["whatif", &job, "--device=emmc-hs400", "--design=mmc-blkmq,cqe", "--readings=0"];
    let easy = ask(
        &whatif,
        &["--goal", "reader.read.p99<1s", "--goal", "log.write.bw>=1MiB/s", "--check"],
        0,
    );
    assert_eq!(easy.lines().nth(1), Some("All 2 designs meet all goals."), "{easy}");
    let hard = ask(&whatif, &["--goal", "max<1us", "--check"], 1);
    assert_eq!(hard.lines().nth(1), Some("No design meets the goal."), "{hard}");
    assert!(hard.contains("cqe misses max<1us ("), "{hard}");
    // What one seed reaches, another may miss.
    let json = said(&[&whatif[..], &["--output-format=json"]].concat(), 0);
    let whole: Value = serde_json::from_str(&json).unwrap();
    let max = whole["verdict"]["rows"][1]["designs"][0]["max_ns"].as_u64().unwrap();
    let reached = format!("reader.max<={max}ns");
    let goal = ["--goal", &reached, "--check"];
    ask(&whatif, &[&goal[..], &["--seeds=1"]].concat(), 0);
    let eight = said(&[&whatif[..], &goal, &["--seeds=8"]].concat(), 1);
    let counts = eight.lines().find(|line| line.starts_with("Goals met, of 8 seeds: ")).unwrap();
    let met = counts.split("mmc-blkmq with ").nth(1).and_then(|rest| rest.split(',').next());
    assert!((1..8).contains(&met.unwrap().parse().unwrap()), "{counts}");
    let easy = said(&[&whatif[..], &["--goal=max<99s", "--check", "--seeds=2"]].concat(), 0);
    assert!(easy.contains("Goals met, of 2 seeds: mmc-blkmq with 2, cqe with 2."), "{easy}");
    // Without --check a missed goal is an answer like any other.
    ask(&whatif, &["--goal", "max<1us"], 0);
    for (goal, words) in [
        ("p99<20", "a time with its unit"),
        ("writer.p99<20ms", "no job `writer`; the jobs are log, reader"),
        ("reader.write.p99<20ms", "does a write"),
        ("reader", "expected [JOB.]"),
    ] {
        let errors = told(&[&whatif[..], &["--goal", goal]].concat(), 2);
        assert!(errors.contains(words) && errors.lines().count() == 1, "{errors}");
    }
    let errors = told(&[&whatif[..], &["--check"]].concat(), 2);
    assert!(errors.contains("--goal"), "{errors}");
}

fn alone(job: &str, design: &str) -> Value {
    let args = ["whatif", job, "--device=sd-hs", "--readings=0", "--output-format=json"];
    let text = said(&[&args[..], &["--design", design]].concat(), 0);
    serde_json::from_str::<Value>(&text).unwrap()["designs"][0]["jobs"].clone()
}

#[test]
fn a_grid_has_each_scheduler_with_each_host() {
    let folder = Folder::new("grid");
    let job = folder.file("mixed.fio", MIXED);
    let grid = ["--scheduler=none,kyber", "--host=blkmq,cqe", "--readings=0"];
    let whatif = [&["whatif", &job, "--device=sd-hs"], &grid[..]].concat();
    let text = said(&whatif, 0);
    for row in ["none+cqe", "kyber+cqe"] {
        let found = text.lines().find_map(|line| line.strip_prefix(row));
        assert_eq!(found.map(str::trim), Some("n/a: needs a command queue (CQE)"), "{text}");
    }
    let json = [&whatif[..], &["--output-format=json"]].concat();
    let whole: Value = serde_json::from_str(&said(&json, 0)).unwrap();
    let names: Vec<_> = whole["designs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["none+blkmq", "kyber+blkmq"]);
    assert_eq!(whole["unsuited"].as_array().unwrap().len(), 2);
    // The host of the grid is that of the named design.
    assert_eq!(alone(&job, "deadline+hsq"), alone(&job, "hsq"));
    assert_ne!(alone(&job, "none+hsq"), alone(&job, "hsq"));
    // Hosts of one grid are those of one kernel, 7.3.
    assert_eq!(alone(&job, "deadline+blkmq"), alone(&job, "mmc-blkmq"));
    assert_ne!(alone(&job, "deadline+blkmq"), alone(&job, "mmc-blkmq-6.12"));
    // If no design can run, that is an error.
    let errors = told(&["whatif", &job, "--device=sd-hs", "--design=cqe,btt"], 2);
    assert!(errors.contains("command queue"), "{errors}");
    let errors = told(&["whatif", &job, "--device=sd-hs", "--design=none+kyber"], 2);
    assert!(errors.contains("has no `[host]`"), "{errors}");
}

fn run_under(design: &str) -> String {
    let job = ["--name=x", "--rw=read", "--size=1m", "--direct=1", "--output-format=json"];
    said(&[&["run", "--design", design], &job[..]].concat(), 0)
}

#[test]
fn short_names_are_understood_everywhere() {
    for (short, full) in [("none", "mq-none"), ("deadline", "mq-deadline"), ("kyber", "mq-kyber")] {
        assert_eq!(said(&["show", short], 0), said(&["show", full], 0));
        assert_eq!(run_under(short), run_under(full));
    }
    assert_eq!(said(&["show", "blkmq"], 0), said(&["show", "mmc-blkmq"], 0));
    // Former names are understood as before.
    for (former, now) in [("mmc-blkmq-6.6", "blkmq-6.12"), ("mmc-blkmq-7.3", "blkmq")] {
        assert_eq!(said(&["show", former], 0), said(&["show", now], 0));
    }
    let shown = said(&["show", "mq-deadline"], 0);
    assert!(shown.contains("has the host of `mmc-blkmq`"), "{shown}");
    // Without any design, the schedulers of Linux are compared.
    let usual =
        said(&["whatif", "--device=null", "--name=x", "--rw=read", "--size=1m", "--direct=1"], 0);
    assert!(usual.contains("\nnone ") && usual.contains("\nkyber "), "{usual}");
}

#[test]
fn lines_fit_the_terminal() {
    let folder = Folder::new("width");
    let job = folder.file("mixed.fio", MIXED);
    for width in [80, 120] {
        for (device, designs) in
            [("emmc-hs400", "mmc-blkmq,cqe,kyber+hsq"), ("srp", "legacy-deadline,kyber")]
        {
            let args =
                ["whatif", &job, "--device", device, "--design", designs, "--details", "--seeds=2"];
            let output = command(&args).env("COLUMNS", width.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width) && longest > Some(width - 20), "{longest:?}\n{text}");
        }
    }
}

#[test]
fn a_run_time_replaces_that_of_the_job() {
    let folder = Folder::new("runtime");
    let job = folder.file("short.fio", "[x]\nrw=read\nbs=4k\ndirect=1\nsize=64k\n");
    let text = said(&["run", &job, "--device=srp", "--runtime=2s", "--output-format=json"], 0);
    let whole: Value = serde_json::from_str(&text).unwrap();
    let runtime = whole["jobs"][0]["read"]["runtime"].as_u64().unwrap();
    assert!((2000..2100).contains(&runtime), "{runtime} ms");
    let small = told(&["run", &job, "--device=srp", "--capacity=32KiB"], 2);
    assert!(small.contains("capacity"), "{small}");
    let large = folder.file("large.fio", "[x]\nrw=read\nbs=4k\ndirect=1\nsize=2g\nnumber_ios=10\n");
    let errors = told(&["run", &large, "--device=null", "--capacity=1GiB"], 2);
    assert!(errors.contains("device"), "{errors}");
}

/// A run that stops when it is steady has the rates of a long one.
#[test]
fn a_run_until_steady_stops_and_says_so() {
    let job = ["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--size=1g"];
    let steady = [
        &["whatif", "--device=srp", "--design=mq-none", "--until=steady", "--output-format=json"],
        &job[..],
    ];
    let output = blockyard(&steady.concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("of virtual time: each job's rate is known within 1 %"), "{errors}");
    let of = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let steady = of(&output.stdout);
    assert_eq!(steady["designs"][0]["stopped"]["why"], "steady");
    let long = ["whatif", "--device=srp", "--design=mq-none", "--output-format=json", "--seed=7"];
    let long = [&long[..], &job[..], &["--runtime=60", "--time_based"]].concat();
    let long = of(&blockyard(&long).stdout);
    let [steady, long] = [&steady, &long].map(|of| of["designs"][0]["iops"].as_f64().unwrap());
    assert!((steady / long - 1.0).abs() < 0.02, "{steady} {long}");
}

fn catches_interrupts(status: &str) -> bool {
    let text = fs::read_to_string(status).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 2 != 0)
}

/// Waits until `child` catches SIGINT.
fn await_handler(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    while !catches_interrupts(&status) {
        std::thread::yield_now();
    }
}

/// Runs the program until it has read its job and simulates, and then sends SIGINT. Returns what it
/// says.
fn interrupted(args: &[&str]) -> Output {
    let child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_handler(&child);
    std::thread::sleep(core::time::Duration::from_millis(300));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    child.wait_with_output().unwrap()
}

/// Ctrl-C once ranked designs that had run for different virtual times: "kyber is fastest: 2.57
/// times" of 39 ms against 1.52 s.
#[test]
fn an_interrupted_answer_is_partial_and_ranks_nothing() {
    let job =
        ["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--time_based", "--runtime=30d"];
    let goal = ["--goal", "x.iops>1", "--check"];
    let whatif = ["whatif", "--device=null", "--design=mq-none,mq-deadline"];
    let args = [&whatif[..], &job[..], &goal[..]].concat();
    let output = interrupted(&args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert_eq!(errors.matches("its figures are partial").count(), 2, "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nmq-none ") && text.contains("\nmq-deadline "), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("Interrupted: the designs are not ranked, because "), "{text}");
    assert!(words.contains("different virtual times: mq-none "), "{text}");
    assert!(words.contains("No goal is judged by a part of a run."), "{text}");
    for ranks in ["fastest", "equal", "meet", "against", "reaches", "ranking."] {
        assert!(!words.contains(ranks), "{ranks}: {text}");
    }
    let ratios = text.lines().filter(|line| line.starts_with("mq-") && line.ends_with(" -"));
    assert_eq!(ratios.count(), 2, "no ratio: {text}");
}

/// A saved part of a run was once compared with whole ones as if it were whole.
#[test]
fn a_saved_answer_of_interrupted_runs_is_not_ranked_against_another() {
    let folder = Folder::new("partial");
    let job = ["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--time_based"];
    let whatif =
        ["whatif", "--device=null", "--design=mq-none,mq-deadline", "--output-format=json"];
    let part = interrupted(&[&whatif[..], &job[..], &["--runtime=30d"]].concat());
    let part = String::from_utf8(part.stdout).unwrap();
    let answer: Value = serde_json::from_str(&part).unwrap();
    assert_eq!(answer["verdict"]["unranked"], true);
    assert_eq!(answer["explanation"]["factor"], "partial");
    let ratios: Vec<_> =
        answer["designs"].as_array().unwrap().iter().map(|of| &of["ratio"]).collect();
    assert_eq!(ratios, [&Value::Null, &Value::Null]);
    let whole = said(&[&whatif[..], &job[..], &["--runtime=1ms", "--readings=0"]].concat(), 0);
    let part = folder.file("part.json", &part);
    let whole = folder.file("whole.json", &whole);
    for files in [[&part, &whole], [&whole, &part]] {
        let text = said(&["compare", files[0], files[1]], 0);
        assert_eq!(text.matches("Interrupted: the designs are not ranked").count(), 2, "{text}");
        assert!(text.contains("whole to its end"), "{text}");
        assert!(!text.contains("fastest") && !text.contains(" against first"), "{text}");
    }
}

#[test]
fn runs_without_an_end_are_diagnosed() {
    let folder = Folder::new("endless");
    let job = folder.file("x.fio", "[x]\nrw=read\nbs=4k\ndirect=1\nsize=64k\n");
    let rules = folder.file("rules.toml", "[[rule]]\nname = \"stuck\"\nrequeue = true\n");
    let errors = told(&["run", &job, "--device=srp", "--faults", &rules], 1);
    assert!(errors.contains("no I/O ends any more") && errors.contains("requeue"), "{errors}");
    let loops =
        folder.file("loops.fio", "[x]\nrw=read\nbs=4k\ndirect=1\nsize=64m\nloops=4294967295\n");
    let errors = told(&["run", &loops, "--device=srp"], 2);
    assert!(errors.contains("loops.fio:6: more than ") && errors.contains("--runtime"), "{errors}");
    said(&["run", &loops, "--device=srp", "--runtime=1ms"], 0);
}

#[test]
fn quiet_drops_notes() {
    let folder = Folder::new("quiet");
    let job = folder.file("x.fio", "[x]\nrw=read\nbs=4k\ndirect=1\nsize=64k\ngtod_reduce=1\n");
    assert!(told(&["run", &job], 0).contains("note: "));
    assert_eq!(told(&["run", &job, "--quiet"], 0), "");
}

fn save(folder: &Folder, job: &str, device: &str, designs: &str) -> String {
    let args = ["whatif", job, "--output-format=json", "--readings=0"];
    let answer = said(&[&args[..], &["--device", device, "--design", designs]].concat(), 0);
    folder.file(&format!("{device}.json"), &answer)
}

#[test]
fn saved_answers_are_compared_by_design() {
    let folder = Folder::new("compare");
    let job = folder.file("mixed.fio", MIXED);
    let slow = save(&folder, &job, "sd-hs", "mmc-blkmq,hsq");
    let fast = save(&folder, &job, "sd-sdr104", "hsq,mmc-blkmq");
    let text = said(&["compare", &slow, &fast], 0);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(", device sd-hs -> sd-sdr104, seed 1"), "{text}");
    assert!(text.contains("\ndesign mmc-blkmq\nsd-sdr104 is fastest"), "{text}");
    let same = said(&["compare", &slow, &slow], 0);
    assert_eq!(same.matches("All designs are equal").count(), 2, "{same}");
    assert!(same.contains("sd-hs (B): no difference from sd-hs (A)."), "{same}");
    let json = said(&["compare", &slow, &fast, "--output-format=json"], 0);
    let whole: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(whole[0]["design"], "hsq");
    let saved: Value = serde_json::from_str(&fs::read_to_string(&slow).unwrap()).unwrap();
    let first = &saved["designs"][1]["jobs"][0]["write"]["iops"];
    assert_eq!(&whole[0]["verdict"]["rows"][0]["designs"][0]["iops"], first);
    // An error names the damage.
    let damaged = fs::read_to_string(&slow).unwrap().replace("\"count\": [", "\"count\": [7, ");
    for (name, text, words) in [
        ("empty.json", "", "not an answer of"),
        ("other.json", "{\"job\": 7}", "not an answer of"),
        (
            "none.json",
            "{\"job\": \"\", \"device\": \"\", \"seed\": 1, \"designs\": []}",
            "no designs",
        ),
        ("damaged.json", &damaged, "does not agree with its own counts"),
    ] {
        let bad = folder.file(name, text);
        let errors = told(&["compare", &slow, &bad], 2);
        assert!(errors.contains(words) && errors.lines().count() == 1, "{name}: {errors}");
    }
}

fn run_on(device: &str) -> String {
    let job = ["--name=x", "--rw=randread", "--size=1m", "--direct=1", "--output-format=json"];
    said(&[&["run", "--device", device], &job[..]].concat(), 0).replace(device, "")
}

#[test]
fn a_file_may_build_on_a_file_and_is_shown_resolved() {
    let folder = Folder::new("bases");
    let base = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"70us\"\n";
    folder.file("base.toml", base);
    let mine =
        folder.file("mine.toml", "title = \"mine\"\nbase = \"base.toml\"\n[null]\ndepth = 3\n");
    let shown = said(&["show", &mine], 0);
    for line in ["title = \"mine\"", "depth = 3", "completion-time = \"70us\"", "[cpu]", "[limits]"]
    {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}:\n{shown}");
    }
    assert!(!shown.contains("base ="), "{shown}");
    // What is shown is the same device.
    let again = folder.file("again.toml", &shown);
    assert_eq!(run_on(&mine), run_on(&again));
    let circle = folder.file("circle.toml", "base = \"circle.toml\"\n");
    let errors = told(&["show", &circle], 2);
    assert!(
        errors.contains("circle.toml:1: ") && errors.contains("build on each other"),
        "{errors}"
    );
    let orphan = folder.file("orphan.toml", "base = \"gone.toml\"\n[null]\ndepth = 3\n");
    assert!(
        told(&["run", "--device", &orphan, "--name=x", "--size=1m"], 2).contains("gone.toml: ")
    );
}
