//! Our parser of job files compared with Debian's fio, file by file.
//!
//! Both accept the files in `jobs/accepted` and read the same jobs from them. Both reject the files
//! in `jobs/rejected`. `fio --parse-only` accepts the files in `jobs/stricter`, and we refuse them
//! on purpose (buffered I/O, engines and options not modelled, values fio misreads, jobs that
//! cannot be run). The list `expected` in the last two gives the start of our message for each
//! file, after the file's name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockyard_fio::job::{
    Amount, Job, JobError, JobFile, Source, SystemSource, parse_args, parse_file,
};

/// The sources that the corpus may use, for fio and for us.
const VARIABLES: &[(&str, &str)] =
    &[("BLOCKYARD_TEST_BS", "16k"), ("BLOCKYARD_TEST_DEV", "sd"), ("BLOCKYARD_TEST_EMPTY", "")];

struct Corpus;

impl Source for Corpus {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind> {
        SystemSource.read(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        VARIABLES.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs").join(name)
}

fn job_files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).expect("the corpus should be part of the source");
    let mut files: Vec<_> =
        entries.map(|entry| entry.expect("a corpus file should be readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    files.sort();
    files
}

fn ours(path: &Path) -> Result<JobFile, JobError> {
    parse_file(path.to_str().expect("corpus paths should be UTF-8"), &Corpus)
}

/// Runs fio and returns its verdict and standard output.
///
/// fio looks for nested includes in the working directory, and we look beside the file that names
/// them. Here both are the same folder.
fn fio(args: &[&str]) -> (bool, String) {
    let output = Command::new("fio")
        .args(args)
        .current_dir(folder("include"))
        .envs(VARIABLES.iter().copied())
        .output()
        .expect("fio should still be installed");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether fio is installed, which CI requires.
fn have_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "CI needs the program `fio`");
    if !found {
        eprintln!("skipped: the program `fio` is not installed");
    }
    found
}

#[test]
fn the_corpus_gets_the_verdict_of_its_folder() {
    for path in job_files("accepted") {
        assert!(ours(&path).is_ok(), "{}", ours(&path).unwrap_err());
    }
    for name in ["rejected", "stricter"] {
        let expected = fs::read_to_string(folder(name).join("expected"))
            .expect("the list `expected` should be readable");
        let listed: Vec<_> = expected.lines().filter_map(|line| line.split_once(" | ")).collect();
        assert_eq!(listed.len(), job_files(name).len(), "one line in {name}/expected per file");
        for (stem, message) in listed {
            let path = folder(name).join(format!("{stem}.fio"));
            let error = ours(&path).expect_err(stem).to_string();
            let (directory, _) = error.split_at(folder("").to_str().map_or(0, str::len));
            let rest = error.strip_prefix(directory).unwrap_or(&error);
            assert!(rest.contains(message), "{stem}: `{rest}` lacks `{message}`");
        }
    }
}

#[test]
fn fio_gives_the_same_verdict() {
    if !have_fio() {
        return;
    }
    for (name, verdict) in [("accepted", true), ("rejected", false), ("stricter", true)] {
        for path in job_files(name) {
            let file = path.to_str().expect("corpus paths should be UTF-8");
            assert_eq!(fio(&["--parse-only", file]).0, verdict, "{file}");
        }
    }
}

/// `fio --showcmd` prints a job file as a command line, after includes and variables. We must read
/// the same jobs from that line as from the file.
#[test]
fn fio_shows_the_same_jobs() {
    if !have_fio() {
        return;
    }
    for path in job_files("accepted") {
        // fio repeats every [global] in front of the next `--name`, where it belongs to the
        // previous job. With two of them the line and the file differ in meaning.
        if fs::read_to_string(&path)
            .expect("a corpus file should be readable")
            .matches("[global]")
            .count()
            > 1
        {
            continue;
        }
        let (_, line) = fio(&["--showcmd", path.to_str().expect("corpus paths should be UTF-8")]);
        let shown = parse_args(arguments(&line).iter().map(String::as_str), &Corpus);
        let shown = shown.unwrap_or_else(|e| panic!("{}: {line}: {e}", path.display())).jobs;
        let read = ours(&path).expect("we should accept the file").jobs;
        assert_eq!(read.len(), shown.len(), "{}", path.display());
        for (read, shown) in read.iter().zip(&shown) {
            assert!(read.same_request(shown), "{}: {read:#?}\n{shown:#?}", path.display());
        }
    }
}

/// Splits the output of `--showcmd`. fio quotes only the description, and prints values unchanged.
fn arguments(line: &str) -> Vec<String> {
    let options = line.trim_end().split(" --").skip(1);
    options
        .map(|option| format!("--{}", option.trim_end().replace("=\"", "=").replace('"', "")))
        .collect()
}

/// Compares single numbers: `--debug=parse` prints them as fio has read them, times in
/// microseconds.
#[test]
fn fio_reads_the_same_numbers() {
    if !have_fio() {
        return;
    }
    let bytes = |job: &Job| match job.size {
        Some(Amount::Bytes(bytes)) => bytes,
        _ => panic!("a size in bytes"),
    };
    for base in ["1024", "1000"] {
        for unit in
            ["", "b", "k", "K", "kb", "kB", "KiB", "ki", "m", "MB", "mib", "g", "gib", "t", "p"]
        {
            compare(base, "size", &format!("40{unit}"), &bytes);
        }
    }
    compare("1024", "size", "0x1000", &bytes);
    compare("1024", "size", "0X1f000", &bytes);
    for unit in ["", "s", "S", "m", "M", "h", "d", "ms", "msec", "us", "usec"] {
        let text = format!("7{unit}");
        compare("1024", "runtime", &text, &|job| job.runtime_ns.unwrap_or(0) / 1000);
        compare("1024", "ramp_time", &text, &|job| job.ramp_time_ns / 1000);
        compare("1024", "startdelay", &text, &|job| job.startdelay_ns.0 / 1000);
        // Pauses of hours are refused: fio reads them, and keeps 32 bits.
        if !matches!(unit, "h" | "d") {
            compare("1024", "thinktime", &text, &|job| job.thinktime_ns / 1000);
            compare("1024", "thinktime_iotime", &text, &|job| job.thinktime_iotime_ns / 1000);
        }
    }
    compare("1024", "iodepth", "1k", &|job| job.iodepth.into());
    compare("1000", "rate", "1m", &|job| job.rate_bytes_per_s.read);
    compare("1024", "rate_iops", "10k", &|job| job.rate_iops.read);
}

fn compare(kb_base: &str, option: &str, text: &str, value: &dyn Fn(&Job) -> u64) {
    let base = format!("--kb_base={kb_base}");
    let setting = format!("--{option}={text}");
    let args = ["--name=a", "--direct=1", "--bs=1", &base, &setting];
    let job = parse_args(args, &Corpus).unwrap_or_else(|e| panic!("{text}: {e}")).jobs.remove(0);
    let (_, debug) = fio(&["--parse-only", "--debug=parse", "--name=a", &base, &setting]);
    let number = debug.rsplit_once("out=").map(|(_, rest)| rest.trim()).unwrap_or_default();
    let number: u64 = number.split_whitespace().next().unwrap_or_default().parse().expect(&debug);
    assert_eq!(value(&job), number, "{option}={text} with kb_base={kb_base}");
}
