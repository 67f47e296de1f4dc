//! `run --output-format=json` and `json+` have exactly the keys that Debian's fio prints for the
//! same job on its null engine. The keys of bins are values, which are not compared.
//!
//! Two differences are intended. Our `job options` and `global options` have more than fio's:
//! flags, and the principal options as parsed. fio prints `disk_util` for real disks only, and its
//! null engine has none.
//!
//! Without fio the test is skipped, except in CI (`CI` is set), where fio is required.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The device `null` with discards, which fio's null engine accepts.
const DEVICE: &str = "base = \"null\"\n[limits]\nmax-discard-sectors = 65536\n";

/// Jobs without an engine. At depth 1 fio's null engine is synchronous: it has no submission
/// latency and no percentiles of it.
const JOBS: &[&str] = &[
    "[read]\nrw=read\nsize=1m\ndirect=1\niodepth=4\n",
    "[mixed]\nrw=randrw\nbs=8k\nsize=1m\ndirect=1\nnumjobs=2\n",
    "[group]\nrw=randwrite\nsize=1m\ndirect=1\niodepth=8\nnumjobs=3\ngroup_reporting\n",
    "[trims]\nrw=trimwrite\nsize=1m\ndirect=1\npercentile_list=50:99.9:99.99\n",
    "[all]\nrw=rw\nsize=1m\ndirect=1\niodepth=4\nslat_percentiles=1\nlat_percentiles=1\n",
    "[none]\nrw=write\nsize=1m\ndirect=1\nclat_percentiles=0\n",
    "[syncs]\nrw=randrw\nfsync=8\nsize=1m\ndirect=1\niodepth=4\n",
    "[syncs]\nrw=write\nfsync=8\nsize=1m\ndirect=1\nclat_percentiles=0\nlat_percentiles=1\n",
    "[syncs]\nrw=write\nfsync=8\nsize=1m\ndirect=1\ndisable_clat=1\n",
    "[syncs]\nrw=write\nfsync=8\nsize=1m\ndirect=1\nclat_percentiles=0\n",
    "[steady]\nrw=read\nsize=1m\ndirect=1\niodepth=4\nss=iops:1%\nss_dur=2\n",
    "[one]\nrw=read\nsize=1m\ndirect=1\n[two]\nrw=write\nsize=1m\ndirect=1\nstonewall\n",
];

/// Returns the paths of the keys in `value`. An array adds no level.
fn keys(value: &Value, above: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                let path = format!("{above}/{key}");
                if matches!(key.as_str(), "disk_util" | "global options") {
                    continue;
                }
                found.insert(path.clone());
                if !matches!(key.as_str(), "job options" | "bins") {
                    keys(value, &path, found);
                }
            }
        }
        Value::Array(all) => {
            for (at, value) in all.iter().enumerate() {
                keys(value, &format!("{above}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Returns the keys in the output of `command` for the job in `file`.
fn keys_of(mut command: Command, file: &PathBuf, job: &str, engine: &str) -> BTreeSet<String> {
    fs::write(file, job.replace("rw=", &format!("ioengine={engine}\nrw="))).unwrap();
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = BTreeSet::new();
    keys(&value, "", &mut found);
    found
}

#[test]
fn json_keys_agree_with_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI requires fio");
        eprintln!("skipped: fio is not installed");
        return;
    }
    let file = std::env::temp_dir().join(format!("blockyard-keys-{}.fio", std::process::id()));
    let device = file.with_extension("toml");
    fs::write(&device, DEVICE).unwrap();
    let formats = ["--output-format=json", "--output-format=json+"];
    for (job, format) in JOBS.iter().flat_map(|job| formats.map(|format| (job, format))) {
        let mut fio = Command::new("fio");
        fio.arg(format).arg(&file);
        let theirs = keys_of(fio, &file, job, "null");
        let mut blockyard = Command::new(env!("CARGO_BIN_EXE_blockyard"));
        blockyard.args(["run", format, "--device"]).args([&device, &file]);
        let ours = keys_of(blockyard, &file, job, "libaio");
        let more: Vec<_> = ours.difference(&theirs).collect();
        let fewer: Vec<_> = theirs.difference(&ours).collect();
        assert!(
            more.is_empty() && fewer.is_empty(),
            "{job}, {format}: only ours {more:?}, only fio's {fewer:?}"
        );
        assert!(ours.contains("/jobs/0/latency_ms/>=2000"), "{ours:?}");
    }
    fs::remove_file(&file).unwrap();
    fs::remove_file(&device).unwrap();
}

/// Programs such as fio-plot look for `bs`, `size`, `runtime` and `filename` there.
#[test]
fn options_are_those_of_fio_and_more() {
    if Command::new("fio").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI requires fio");
        eprintln!("skipped: fio is not installed");
        return;
    }
    let file = std::env::temp_dir().join(format!("blockyard-options-{}.fio", std::process::id()));
    let job = "[global]\nruntime=1\nbs=8k\nioengine=null\nfilename=/dev/x\n[a]\nsize=1m\nrw=randread\n\
               iodepth=4\n[b]\nsize=64k\nbs=4k\nss=iops:1%\n";
    fs::write(&file, job).unwrap();
    let answer = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let fio = answer(Command::new("fio").arg("--output-format=json").arg(&file));
    let mut ours = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    let ours = answer(ours.args(["run", "--output-format=json"]).arg(&file));
    fs::remove_file(&file).unwrap();
    assert_eq!(ours["global options"], fio["global options"]);
    for at in [0, 1] {
        let [ours, theirs] =
            [&ours, &fio].map(|answer| answer["jobs"][at]["job options"].as_object().unwrap());
        for (option, value) in theirs {
            assert_eq!(ours.get(option), Some(value), "{option} of job {at}");
        }
        for option in ["name", "bs", "ioengine", "rw", "iodepth", "numjobs", "direct"] {
            assert!(ours.contains_key(option), "{option} of job {at}");
        }
    }
}
