//! We read the same I/Os as fio from a log that fio wrote, in the same order.

use blockyard::bio::Op;
use blockyard_trace::{Source, Trace};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A temporary folder for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("blockyard-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Runs fio in the folder.
    fn fio(&self, args: &str) -> Output {
        let args = args.split_whitespace();
        let output = Command::new("fio").args(args).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files stay in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn have_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "CI needs the program `fio`");
    if !found {
        eprintln!("skipped: the program `fio` is not installed");
    }
    found
}

type Listed = (Op, u64, u64);

/// Returns the I/Os that fio reports for a log.
fn issued_by_fio(folder: &Folder, log: &str) -> Vec<Listed> {
    let replay = format!("--name=x --ioengine=null --read_iolog={log} --debug=io");
    let output = folder.fio(&replay);
    let text = String::from_utf8(output.stdout).unwrap();
    let issued = text.lines().filter_map(|line| {
        let fields = line.split_once(" queue: io_u ")?.1.split_once(": ")?.1;
        let field = |name: &str| {
            fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        // fio's numbers of directions: read, write, trim, sync, data sync.
        let op = match field("ddir")? {
            "0" => Op::Read,
            "1" => Op::Write,
            "2" => Op::Discard,
            _ => Op::Flush,
        };
        let [offset, len] = ["off", "len"]
            .map(|name| u64::from_str_radix(field(name)?.trim_start_matches("0x"), 16).ok());
        Some((op, offset?, len?))
    });
    issued.collect()
}

/// Returns the records that we read from a log.
fn issued_by_us(folder: &Folder, log: &str) -> Vec<Listed> {
    let path = folder.0.join(log);
    let trace = Trace::open(Source::at(path.to_str().unwrap()).unwrap()).unwrap();
    let mut records = trace.records().unwrap();
    let next = || records.next().unwrap();
    core::iter::from_fn(next).map(|r| (r.op, r.offset_bytes, r.len_bytes.into())).collect()
}

#[test]
fn fio_and_we_read_the_same_ios_from_fios_log() {
    if !have_fio() {
        return;
    }
    let folder = Folder::new("iolog");
    for options in [
        "--rw=randrw --bsrange=4k-64k --size=4m",
        "--rw=write --bs=8k --size=1m --nrfiles=2",
        "--rw=randread --bs=4k --size=1m --thinktime=300us --number_ios=20",
    ] {
        folder.fio(&format!("--name=a --ioengine=null --direct=1 {options} --write_iolog=log"));
        let ours = issued_by_us(&folder, "log");
        assert!(ours.len() >= 20, "{options}");
        assert_eq!(issued_by_fio(&folder, "log"), ours, "{options}");
        fs::remove_file(folder.0.join("log")).unwrap();
    }
}

/// The wait of version 2 differs from its description in fio's manual.
#[test]
fn fio_waits_until_a_millisecond_of_the_run() {
    if !have_fio() {
        return;
    }
    let folder = Folder::new("iolog-v2");
    let log = "fio version 2 iolog\na add\na open\na read 0 4096\na wait 400 0\na write 4096 8192\n\
               a wait 900 0\na datasync 0 0\na close\n";
    fs::write(folder.0.join("log"), log).unwrap();
    fs::write(folder.0.join("a"), vec![0; 1 << 20]).unwrap();
    assert_eq!(issued_by_fio(&folder, "log"), issued_by_us(&folder, "log"));
    let json = folder.fio("--name=x --ioengine=null --read_iolog=log --output-format=json").stdout;
    let json = String::from_utf8(json).unwrap();
    let runtime = json.split_once("\"job_runtime\" : ").unwrap().1;
    let ms: u64 = runtime.split_once(',').unwrap().0.parse().unwrap();
    // Neither 1300 nor 1.3. The time includes the start of fio.
    assert!((500..=900).contains(&ms), "{ms}");
}
