//! The same job runs twice: fio on a disk that is served as a modelled device, in real time, and
//! `run`, in virtual time. If the device is the bottleneck, both have the same rate and median
//! latency.
//!
//! Without fio's NBD engine the test is skipped, except in CI (`CI` is set), where it is required.
//! On a busy machine the test tries again, with real-time priority where that is permitted. A busy
//! machine can only make the disk slower. If the server reports late completions in every try,
//! there is nothing to compare: `ci.sh` then lists the check as not done, and outside `ci.sh` the
//! test fails.
#![allow(clippy::float_arithmetic, reason = "fio's figures have fractions")]

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// The largest permitted difference, as a fraction.
const APART: f64 = 0.10;
/// The percentage of completions that may be late on a machine that keeps up.
const LATE_PERCENT: u64 = 1;
const TRIES: u32 = 6;

/// The tests share one machine, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The requests per second, and their median latency in us.
#[derive(Clone, Copy, Debug)]
struct Figures {
    iops: f64,
    median_us: f64,
}

fn near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= APART
}

impl Figures {
    fn of(json: &str, side: &str) -> Self {
        let json: Value = serde_json::from_str(&json[json.find('{').expect(json)..]).unwrap();
        let side = &json["jobs"][0][side];
        let median_ns = side["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
        Self { iops: side["iops"].as_f64().unwrap(), median_us: median_ns / 1000.0 }
    }

    fn is_near(self, other: Self) -> bool {
        near(self.iops, other.iops) && near(self.median_us, other.median_us)
    }
}

/// Returns a command that runs `program` with real-time priority, where that is permitted.
fn first(program: &str) -> Command {
    let may = Command::new("chrt").args(["-f", "10", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new("chrt");
    command.args(["-f", "10", program]);
    command
}

fn blockyard() -> Command {
    let mut command = first(env!("CARGO_BIN_EXE_blockyard"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn has_fio() -> bool {
    let engines = Command::new("fio").arg("--enghelp").output();
    let has = engines.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("nbd"));
    assert!(has || std::env::var_os("CI").is_none(), "CI requires fio with its NBD engine");
    if !has {
        eprintln!("skipped: there is no fio with an NBD engine");
    }
    has
}

fn serve(socket: &Path, device: &str, design: &str) -> Child {
    let address = format!("unix:{}", socket.display());
    let args = ["serve", "memory:256m", "--nbd", &address, "--as", device, "--design", design];
    let server = blockyard().args(args).stderr(Stdio::piped()).spawn().unwrap();
    nbd::answers(server, socket)
}

/// Stops the server. Returns its completions and how many of them were late.
fn end(mut server: Child) -> (u64, u64) {
    nbd::signal(&server, "-TERM");
    assert!(server.wait().unwrap().success(), "the server drains");
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let last = said.lines().last().unwrap();
    let words: Vec<_> = last.split(' ').collect();
    let [completions, late] = ["completions", "were"].map(|what| {
        let at = words.iter().position(|word| *word == what).expect(last);
        words[at - 1].parse().expect(last)
    });
    (completions, late)
}

/// Compares fio's figures with the model's for a job with `options` on `device` under `design`.
fn compare(device: &str, design: &str, side: &str, options: &[&str]) {
    if !has_fio() {
        return;
    }
    let _alone = ALONE.lock();
    let common = ["bs=4k", "size=256m", "time_based", "runtime=2", "ramp_time=500ms"];
    let job = [&["[j]", "ioengine=libaio", "direct=1"], &common[..], options, &[""]].concat();
    let path = nbd::path("job");
    fs::write(&path, job.join("\n")).unwrap();
    let how = ["--device", device, "--design", design, "--output-format=json"];
    let modelled = Figures::of(&output_of(blockyard().arg("run").arg(&path).args(how)), side);

    let socket = nbd::path("v").file_name().map(|name| std::env::temp_dir().join(name)).unwrap();
    let uri = format!("--uri=nbd+unix:///?socket={}", socket.display());
    let mut kept_up = false;
    for _ in 0..TRIES {
        let server = serve(&socket, device, design);
        let mut fio = first("fio");
        fio.args(["--name=j", "--ioengine=nbd", &uri, "--output-format=json"]);
        fio.args(common.iter().chain(options).map(|option| format!("--{option}")));
        let live = Figures::of(&output_of(&mut fio), side);
        let (completions, late) = end(server);
        eprintln!("{device}: {live:?}, modelled {modelled:?}; {late} of {completions} late");
        if live.is_near(modelled) {
            return;
        }
        assert!(
            live.iops < modelled.iops * (1.0 + APART),
            "the disk should not be faster than its model"
        );
        kept_up |= late * 100 < completions * LATE_PERCENT;
    }
    assert!(!kept_up, "{device}: the machine kept up with the model, and the disk is not as fast");
    let words = format!("{device} in real time, as this machine did not keep up with its model");
    assert!(nbd::not_checked(&words), "not checked: {words}");
}

#[test]
fn an_emmc_device_is_as_fast_in_real_time_as_in_virtual_time() {
    compare("emmc-hs400-sprd", "mmc-blkmq-4.16", "read", &["rw=randread", "iodepth=16"]);
    compare("emmc-hs400-sprd", "mmc-blkmq-4.16", "write", &["rw=randwrite", "iodepth=16"]);
}

#[test]
fn a_scsi_disk_is_as_fast_in_real_time_as_in_virtual_time() {
    // A machine that is 50 us late with each of its four commands is 2.5 % slower, not 15 %.
    let slow = "base = \"lpfc\"\n[hba]\n\
                cmd-per-lun = { value = 4, origin = \"of this test\" }\n\
                command-read = { value = \"2ms\", origin = \"of this test\" }\n";
    let path: PathBuf = nbd::path("scsi").with_extension("toml");
    fs::write(&path, slow).unwrap();
    compare(path.to_str().unwrap(), "mq-deadline", "read", &["rw=randread", "iodepth=32"]);
}
