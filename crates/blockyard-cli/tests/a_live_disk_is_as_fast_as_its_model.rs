//! One job, twice: fio itself at a disk that is served as a modelled device, in real time, and `run`, in
//! virtual time. Where the device is what holds the job up, both have the same rate and median latency.
//!
//! Without fio and its NBD engine it is skipped, but in CI (`CI` is set) these must be there. A machine
//! that is busy with other things is tried again, with both before all else where that is allowed; it can
//! only be too slow, and if the server itself says so each time, there is nothing to compare. `ci.sh`
//! then says at its end what was not checked; without anybody to say so, it fails.
#![allow(clippy::float_arithmetic, reason = "fio's figures have fractions")]

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// How far the two may be apart.
const APART: f64 = 0.10;
/// How many completions may be late, of 100, on a machine that keeps up.
const LATE_PERCENT: u64 = 1;
const TRIES: u32 = 6;

/// There is one machine.
static ALONE: Mutex<()> = Mutex::new(());

/// A rate in requests per second, and the median of their latency in microseconds.
#[derive(Clone, Copy, Debug)]
struct Figures {
    iops: f64,
    median_us: f64,
}

impl Figures {
    fn of(json: &str, side: &str) -> Self {
        let json: Value = serde_json::from_str(&json[json.find('{').expect(json)..]).unwrap();
        let side = &json["jobs"][0][side];
        let median_ns = side["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
        Self { iops: side["iops"].as_f64().unwrap(), median_us: median_ns / 1000.0 }
    }

    fn is_near(self, other: Self) -> bool {
        let near = |one: f64, other: f64| (one / other - 1.0).abs() <= APART;
        near(self.iops, other.iops) && near(self.median_us, other.median_us)
    }
}

/// `program` before all other work of the machine, where that is allowed.
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
    assert!(has || std::env::var_os("CI").is_none(), "CI has to have fio with its NBD engine");
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

/// Ends it; of so many completions so many were late.
fn end(mut server: Child) -> (u64, u64) {
    nbd::signal(&server, "-TERM");
    assert!(server.wait().unwrap().success(), "the server drains");
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let last = said.lines().last().unwrap();
    let words: Vec<_> = last.split(' ').collect();
    let number_before = |what: &str| {
        let at = words.iter().position(|word| *word == what).expect(last);
        words[at - 1].parse().expect(last)
    };
    (number_before("completions"), number_before("were"))
}

/// `options` of fio, at `device` under `design`.
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
        assert!(live.iops < modelled.iops * (1.0 + APART), "it is faster than its model");
        kept_up |= late * 100 < completions * LATE_PERCENT;
    }
    assert!(!kept_up, "{device}: the machine kept up with the model, and the disk is not as fast");
    let words = format!("{device} in real time, as this machine did not keep up with its model");
    assert!(nbd::not_checked(&words), "not checked: {words}");
}

#[test]
fn an_emmc_device_is_as_fast_in_real_time_as_in_virtual_time() {
    compare("emmc-hs400-sprd", "mmc-blkmq", "read", &["rw=randread", "iodepth=16"]);
    compare("emmc-hs400-sprd", "mmc-blkmq", "write", &["rw=randwrite", "iodepth=16"]);
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
