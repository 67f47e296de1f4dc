//! `run` writes the log files and lines that fio writes for the same job, and their values match
//! the answer.
//!
//! fio runs its null engine. fio treats that engine as synchronous at depth 1, so jobs that compare
//! submission latencies use a higher depth. Without fio the comparison is skipped, except in CI
//! (`CI` is set), where fio is required.

mod folder;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use folder::Folder;

/// Returns the contents of the folder's logs, by file name.
fn logs(folder: &Folder) -> BTreeMap<String, String> {
    let entries = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
    let logs = entries.filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    })
    .collect()
}

/// Runs `job` in `folder`.
fn run(folder: &Folder, job: &str, args: &[&str]) -> Output {
    fs::write(folder.0.join("job.fio"), job).unwrap();
    let has_device = args.iter().any(|arg| arg.starts_with("--device"));
    let device = (!has_device).then_some("--device=null");
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command
        .args(["run", "job.fio"])
        .args(device)
        .args(args)
        .current_dir(&folder.0)
        .output()
        .unwrap()
}

/// Runs `job` with its logs in `folder`, and returns the JSON answer.
fn answer(folder: &Folder, job: &str, args: &[&str]) -> Value {
    let output = run(folder, job, &[args, &["--output-format=json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""), "{job}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Parses a log into lines of numbers.
fn columns(log: &str) -> Vec<Vec<u64>> {
    let number = |text: &str| {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
        u64::from_str_radix(digits, radix).unwrap_or_else(|_| panic!("`{text}` in {log}"))
    };
    log.lines().map(|line| line.split(", ").map(number).collect()).collect()
}

/// Reduces a line to its form: machine-dependent numbers become N.
fn form(line: &str) -> String {
    let fields = line.split(", ").enumerate().map(|(at, field)| match field.strip_prefix("0x") {
        Some(hex) => format!("0x[{}]", hex.len()),
        // Time and value depend on the machine; direction, length and later fields do not.
        None if at < 2 && field.bytes().all(|byte| byte.is_ascii_digit()) => "N".to_owned(),
        None => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// Jobs without an engine. The I/Os of a job differ only in their offsets.
const JOBS: &[&str] = &[
    "[x]\nrw=write\nbs=8k\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log\nwrite_bw_log\nwrite_iops_log\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log=a\nwrite_bw_log=b\nlog_prio=1\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\nwrite_lat_log=a\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log=a\ndisable_slat=1\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log=a\ndisable_lat=1\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_bw_log=a\ndisable_bw=1\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nprio=3\nwrite_lat_log=a\nlog_prio=1\n",
    "[x]\nrw=read\nsize=64k\nbs=64k\ndirect=1\niodepth=4\nwrite_lat_log=a\nlog_offset=1\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\nnumjobs=3\ngroup_reporting\nwrite_iops_log=a\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nnumjobs=2\nper_job_logs=0\nwrite_lat_log=a\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\n[y]\nrw=write\nsize=1m\ndirect=1\nwrite_bw_log=b\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log=a\nlog_avg_msec=60000\n",
    "[x]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nwrite_lat_log=a\nlog_avg_msec=60000\nlog_offset=1\nlog_prio=1\n",
];

fn with_engine(job: &str, engine: &str) -> String {
    job.replace("rw=", &format!("ioengine={engine}\nrw="))
}

#[test]
fn files_and_lines_agree_with_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI requires fio");
        eprintln!("skipped: fio is not installed");
        return;
    }
    for job in JOBS {
        let theirs = Folder::new("logs-fio");
        let ours = Folder::new("logs-ours");
        fs::write(theirs.0.join("job.fio"), with_engine(job, "null")).unwrap();
        let fio = Command::new("fio").arg("job.fio").current_dir(&theirs.0).output().unwrap();
        assert!(fio.status.success(), "{job}");
        let engine = if job.contains("iodepth") { "libaio" } else { "psync" };
        answer(&ours, &with_engine(job, engine), &[]);
        // For each file: the forms of its lines, and how often each occurs.
        let [ours, theirs] = [&ours, &theirs].map(|folder| {
            let forms = logs(folder).into_iter().map(|(name, log)| {
                (name, log.lines().map(form).collect::<BTreeSet<_>>(), log.lines().count())
            });
            forms.collect::<Vec<_>>()
        });
        assert_eq!(ours, theirs, "{job}");
    }
}

/// Reads and writes, each at its own rate.
const PACED: &str = "\
[x]
ioengine=libaio
rw=randrw
bs=8k
size=1g
direct=1
iodepth=4
rate_iops=700,300
time_based
runtime=2
";

const DIRECTIONS: [(&str, u64); 2] = [("read", 0), ("write", 1)];

fn lines_of(logs: &BTreeMap<String, String>, kind: &str, direction: u64) -> Vec<Vec<u64>> {
    let log = columns(&logs[&format!("p_{kind}.1.log")]);
    log.into_iter().filter(|line| line[2] == direction).collect()
}

#[test]
fn logs_of_single_ios_match_the_answer() {
    let folder = Folder::new("logs-values");
    let args = ["--device=srp", "--lat-log=p", "--bw-log=p", "--iops-log=p"];
    let json = answer(&folder, &PACED.replace("size=1g", "size=1g\nlog_offset=1"), &args);
    let logs = logs(&folder);
    for (name, direction) in DIRECTIONS {
        let counted = &json["jobs"][0][name];
        let ios = counted["total_ios"].as_u64().unwrap();
        assert!(ios > 500, "{counted}");
        for latency in ["slat", "clat", "lat"] {
            let values: Vec<u64> =
                lines_of(&logs, latency, direction).iter().map(|line| line[1]).collect();
            let counted = &counted[&format!("{latency}_ns")];
            assert_eq!(values.len() as u64, ios, "{name} {latency}");
            assert_eq!(values.iter().min().copied(), counted["min"].as_u64());
            assert_eq!(values.iter().max().copied(), counted["max"].as_u64());
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            assert!((mean - counted["mean"].as_f64().unwrap()).abs() < 0.001, "{name} {latency}");
        }
        assert!(
            lines_of(&logs, "iops", direction).iter().all(|line| line[1] == 1 && line[3] == 8192)
        );
        assert!(
            lines_of(&logs, "iops", direction)
                .iter()
                .all(|line| line[4] % 8192 == 0 && line[4] < 1 << 30)
        );
        assert!(
            lines_of(&logs, "iops", direction).iter().any(|line| line[4] > 1 << 28),
            "offsets are random"
        );
        for (bandwidth, clat) in
            lines_of(&logs, "bw", direction).iter().zip(lines_of(&logs, "clat", direction))
        {
            assert_eq!(bandwidth[1], 8192 * 1_000_000 / clat[1]);
        }
    }
    for log in logs.values() {
        let times: Vec<_> = columns(log).iter().map(|line| line[0]).collect();
        assert!(times.is_sorted() && times.last().is_some_and(|ms| (1950..2100).contains(ms)));
    }
}

fn ios_of(logs: &BTreeMap<String, String>, kind: &str, direction: u64) -> Vec<(u64, u64)> {
    lines_of(logs, kind, direction).iter().map(|line| (line[0], line[1])).collect()
}

/// Compares averaged logs with means computed from the logs of single I/Os.
#[test]
fn averaged_logs_match_the_ios_of_each_window() {
    const WINDOW_MS: u64 = 130;
    let each = Folder::new("logs-each");
    let windowed = Folder::new("logs-windows");
    let args = ["--device=srp", "--lat-log=p", "--bw-log=p", "--iops-log=p"];
    answer(&each, PACED, &args);
    let job = PACED.replace("size=1g", &format!("size=1g\nlog_avg_msec={WINDOW_MS}"));
    let json = answer(&windowed, &job, &args);
    let each = logs(&each);
    let windowed = logs(&windowed);
    for (name, direction) in DIRECTIONS {
        for latency in ["slat", "clat", "lat"] {
            let mut ios = ios_of(&each, latency, direction);
            let mut begun = 0;
            for (at, told) in ios_of(&windowed, latency, direction) {
                // The first I/O past the end of a window closes it and is still counted in it. The
                // last window ends with the job.
                let closing = ios.iter().position(|(ms, _)| *ms >= begun + WINDOW_MS);
                let count = closing.map_or(ios.len(), |closing| closing + 1);
                assert!(at == ios[count - 1].0 || count == ios.len(), "{name} {latency}: {at} ms");
                let sum: u64 = ios.drain(..count).map(|io| io.1).sum();
                let mean = (sum + count as u64 / 2) / count as u64;
                assert_eq!(told, mean, "{name} {latency} at {at} ms");
                begun = at / WINDOW_MS * WINDOW_MS;
            }
            assert!(ios.is_empty(), "{name} {latency}: {ios:?} are in no window");
        }
        let done: Vec<u64> = ios_of(&each, "iops", direction).iter().map(|io| io.0).collect();
        let counted = &json["jobs"][0][name];
        for (kind, key, of_one) in [("iops", "iops", 1000), ("bw", "bw", 8192 * 1000)] {
            let unit = if kind == "bw" { 1024 } else { 1 };
            let samples = ios_of(&windowed, kind, direction);
            assert_eq!(samples.len() as u64, 2000 / WINDOW_MS, "{name} {kind}");
            for (at, value) in &samples {
                let within = done.iter().filter(|ms| (at - WINDOW_MS..*at).contains(ms)).count();
                assert_eq!(
                    *value,
                    within as u64 * of_one / WINDOW_MS / unit,
                    "{name} {kind} at {at} ms"
                );
            }
            let values: Vec<u64> = samples.iter().map(|sample| sample.1).collect();
            assert_eq!(counted[format!("{key}_min")], *values.iter().min().unwrap());
            assert_eq!(counted[format!("{key}_max")], *values.iter().max().unwrap());
            assert_eq!(counted[format!("{key}_samples")], samples.len() as u64);
            let mean = values.iter().sum::<u64>() as f64 / samples.len() as f64;
            assert!((counted[format!("{key}_mean")].as_f64().unwrap() - mean).abs() < 1e-6);
        }
    }
}

#[test]
fn logs_do_not_change_the_answer() {
    let folder = Folder::new("logs-same");
    let without = answer(&folder, PACED, &["--device=srp"]);
    let with = answer(&folder, PACED, &["--device=srp", "--lat-log=p", "--bw-log=p"]);
    assert_eq!(without, with);
}

#[test]
fn ramp_time_is_not_logged_and_times_start_after_it() {
    let folder = Folder::new("logs-ramp");
    let job = PACED.replace("runtime=2", "runtime=1\nramp_time=1\nstartdelay=1");
    let json = answer(&folder, &job, &["--device=srp", "--iops-log=p"]);
    let log = columns(&logs(&folder)["p_iops.1.log"]);
    let ios = ["read", "write"].map(|name| json["jobs"][0][name]["total_ios"].as_u64().unwrap());
    assert_eq!(log.len() as u64, ios[0] + ios[1]);
    assert!(log[0][0] < 10 && log.last().unwrap()[0] < 1100, "{:?} to {:?}", log[0], log.last());
}

#[test]
fn log_options_override_the_job_file() {
    let folder = Folder::new("logs-asked");
    let job = PACED.replace("[x]", "[x]\nwrite_lat_log=job\nwrite_iops_log");
    answer(&folder, &job, &["--lat-log=asked"]);
    let names: Vec<_> = logs(&folder).into_keys().collect();
    let expected = ["asked_clat.1.log", "asked_lat.1.log", "asked_slat.1.log", "x_iops.1.log"];
    assert_eq!(names, expected);
}

#[test]
fn whatif_notes_that_it_writes_no_logs() {
    let folder = Folder::new("logs-whatif");
    fs::write(folder.0.join("job.fio"), PACED.replace("[x]", "[x]\nwrite_lat_log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(["whatif", "job.fio", "--device=null", "--design=mq-none"]);
    let output = command.current_dir(&folder.0).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("blockyard: note: only `run` writes logs"), "{errors}");
    assert_eq!((output.status.code(), logs(&folder).len()), (Some(0), 0));
}

fn fails(folder: &Folder, args: &[&str], message: &str) {
    let output = run(folder, PACED, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(output.stdout.is_empty() && errors.starts_with(message), "{errors}");
}

#[test]
fn a_log_that_cannot_be_made_or_written_fails_the_run() {
    let folder = Folder::new("logs-full");
    fails(
        &folder,
        &["--bw-log=no/such/folder"],
        "blockyard: error: no/such/folder_bw.1.log: cannot write the log: no such file or directory",
    );
    if !Path::new("/dev/full").exists() {
        return; // this system has no /dev/full
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/full", folder.0.join("p_iops.1.log")).unwrap();
    fails(
        &folder,
        &["--iops-log=p"],
        "blockyard: error: p_iops.1.log: cannot write the log: no storage space",
    );
}
