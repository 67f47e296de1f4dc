//! `run --output-format=terse` prints the fields of fio's terse version 3 in fio's order.
//!
//! fio runs the same jobs on its null engine, which has no disk, so our output has nine more fields
//! for the device. Without fio that part is skipped, except in CI (`CI` is set), where fio is
//! required.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Fields that fio adds for a disk.
const DISK: usize = 9;

const JOBS: &[&str] = &[
    "[read]\nrw=read\nsize=1m\ndirect=1\niodepth=4\n",
    "[mixed]\nrw=randrw\nbs=8k\nsize=1m\ndirect=1\nnumjobs=2\nfsync=8\n",
    "[group]\nrw=randwrite\nsize=1m\ndirect=1\niodepth=8\nnumjobs=3\ngroup_reporting\n",
    "[few]\nrw=rw\nsize=1m\ndirect=1\npercentile_list=50:99.9\n",
    "[none]\nrw=write\nsize=1m\ndirect=1\nclat_percentiles=0\n",
    "[lat]\nrw=write\nsize=1m\ndirect=1\nclat_percentiles=0\nlat_percentiles=1\n",
    "[together]\nrw=randrw\nsize=1m\ndirect=1\nunified_rw_reporting=mixed\n",
    "[both]\nrw=randrw\nsize=1m\ndirect=1\nunified_rw_reporting=both\n",
    "[one]\nrw=read\nsize=1m\ndirect=1\n[two]\nrw=write\nsize=1m\ndirect=1\nstonewall\n",
];

/// A temporary folder, removed when dropped.
struct JobFile(PathBuf);

impl JobFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("blockyard-{name}-{}.fio", std::process::id())))
    }

    fn holding(&self, job: &str, engine: &str) -> &Path {
        fs::write(&self.0, job.replace("rw=", &format!("ioengine={engine}\nrw="))).unwrap();
        &self.0
    }
}

impl Drop for JobFile {
    fn drop(&mut self) {
        // If this fails, the files stay in the temporary directory.
        drop(fs::remove_file(&self.0));
    }
}

fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the fields of each line, without fio's announcement of the job.
fn fields(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with("3;"));
    lines.map(|line| line.split(';').collect()).collect()
}

fn ours(file: &Path, format: &str) -> String {
    answer(Command::new(env!("CARGO_BIN_EXE_blockyard")).args(["run", format]).arg(file))
}

/// Returns the kind of a field: a percentile's name, a number with its decimals, or a percentage.
fn form(field: &str) -> String {
    match field.split_once("%=") {
        Some((percentile, _)) => format!("{percentile}%=N"),
        None => field.chars().filter(|c| !c.is_ascii_digit()).collect(),
    }
}

#[test]
fn terse_fields_agree_with_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI requires fio");
        eprintln!("skipped: fio is not installed");
        return;
    }
    let file = JobFile::new("terse-agree");
    for job in JOBS {
        let mut fio = Command::new("fio");
        let theirs = answer(fio.arg("--output-format=terse").arg(file.holding(job, "null")));
        let ours = ours(file.holding(job, "libaio"), "--output-format=terse");
        let theirs = fields(&theirs);
        let ours = fields(&ours);
        assert_eq!(theirs.len(), ours.len(), "{job}");
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(ours.len(), theirs.len() + DISK, "{job}");
            // Only the program's name may differ.
            let [ours, theirs] = [&ours[..theirs.len()], theirs]
                .map(|fields| fields[2..].iter().map(|f| form(f)).collect::<Vec<_>>());
            assert_eq!(ours, theirs, "{job}");
        }
    }
}

fn number(fields: &[&str], at: usize) -> f64 {
    fields[at].trim_end_matches('%').parse::<f64>().unwrap()
}

#[expect(clippy::float_arithmetic, reason = "figures have fractions")]
fn near(fields: &[&str], at: usize, value: f64) {
    let off = (number(fields, at) - value).abs();
    assert!(off <= 1e-6 + value.abs() * 1e-6, "field {at}: {} for {value}", fields[at]);
}

fn whole(fields: &[&str], at: usize, value: f64) {
    near(fields, at, value.floor());
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn terse_fields_match_the_json() {
    let file = JobFile::new("terse-values");
    let job = "[x]\ndescription=of no weight\nrw=randrw\nbs=8k\nsize=4m\ndirect=1\niodepth=8\n";
    let path = file.holding(job, "libaio");
    let line = ours(path, "--output-format=terse");
    let json = ours(path, "--output-format=json");
    let fields = fields(&line).remove(0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let job = &json["jobs"][0];
    assert_eq!((fields[2], fields[3], fields[4]), ("x", "0", "0"));
    assert!(float(&job["read"]["clat_ns"]["mean"]) > 0.0, "{json}");
    for (kind, begin) in [("read", 5), ("write", 46)] {
        let kind = &job[kind];
        whole(&fields, begin, float(&kind["io_kbytes"]));
        whole(&fields, begin + 1, float(&kind["bw"]));
        whole(&fields, begin + 2, float(&kind["iops"]));
        whole(&fields, begin + 3, float(&kind["runtime"]));
        for (latency, at) in [("slat_ns", 4), ("clat_ns", 8), ("lat_ns", 32)] {
            whole(&fields, begin + at, float(&kind[latency]["min"]) / 1e3);
            whole(&fields, begin + at + 1, float(&kind[latency]["max"]) / 1e3);
            near(&fields, begin + at + 2, float(&kind[latency]["mean"]) / 1e3);
            near(&fields, begin + at + 3, float(&kind[latency]["stddev"]) / 1e3);
        }
        let median = float(&kind["clat_ns"]["percentile"]["50.000000"]) / 1e3;
        assert_eq!(fields[begin + 18], format!("50.000000%={:.0}", median.floor()));
        whole(&fields, begin + 36, float(&kind["bw_min"]));
        near(&fields, begin + 38, float(&kind["bw_agg"]));
    }
    near(&fields, 88, float(&job["sys_cpu"]));
    whole(&fields, 89, float(&job["ctx"]));
    assert!(
        (number(&fields, 95) - float(&job["iodepth_level"]["8"])).abs() <= 0.05,
        "{}",
        fields[95]
    );
    let shares: f64 = (99..121).map(|at| number(&fields, at)).sum();
    assert!((shares - 100.0).abs() < 0.2, "every latency should fall into a range: {shares}");
    assert_eq!(fields[121], "null");
    assert!(line.ends_with(";of no weight\n"), "{line}");
}

#[test]
fn several_formats_are_printed_in_fios_order() {
    let file = JobFile::new("formats");
    let path = file.holding(JOBS[0], "libaio");
    let formats = |formats: &str| ours(path, &format!("--output-format={formats}"));
    let all = formats("normal,json+,terse");
    let [terse, json, normal] = ["terse", "json+", "normal"].map(&formats);
    assert_eq!(all, format!("{terse}{json}\n{normal}"));
    assert_eq!(formats("json,json+"), json, "fio prints JSON once, with bins");
}

/// The counts in the bins add up to the I/Os, and the bins match the percentiles.
#[test]
fn bins_hold_every_io() {
    let file = JobFile::new("bins");
    let path = file.holding(JOBS[1], "libaio");
    let json: Value = serde_json::from_str(&ours(path, "--output-format=json+")).unwrap();
    for kind in ["read", "write"] {
        let kind = &json["jobs"][1][kind];
        let clat = &kind["clat_ns"];
        let bins = clat["bins"].as_object().unwrap();
        let of = |(value, count): (&String, &Value)| {
            (value.parse::<u64>().unwrap(), count.as_u64().unwrap())
        };
        let bins: Vec<_> = bins.iter().map(of).collect();
        let ios: u64 = bins.iter().map(|bin| bin.1).sum();
        assert_eq!(ios, kind["total_ios"].as_u64().unwrap());
        let bounds = [&clat["min"], &clat["max"]].map(|bound| bound.as_u64().unwrap());
        for (value, _) in bins {
            assert!(value >= bounds[0] - bounds[0] / 64, "{value} below {bounds:?}");
            assert!(value <= bounds[1] + bounds[1] / 64, "{value} above {bounds:?}");
        }
    }
}
