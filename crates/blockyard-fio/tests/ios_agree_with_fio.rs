//! The I/Os of a job are those that fio issues for the same options: their number, lengths, offsets
//! and order.
//!
//! One run of fio does all jobs of a table, one after another, and logs the offset of each I/O.
//! Files without a name are as long as their job needs. A case with a disk names a file of that
//! length, which is a device here. No time is compared, so that a busy machine changes nothing:
//! jobs that end by time are compared up to the shorter one of the two.
//!
//! The system calls of jobs that sync are those that `strace` sees fio make, on the file system of
//! the folder for temporary files: their kinds, their sizes and their order.
//!
//! `BLOCKYARD_FIO_PROGRAM` names another fio.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockyard_fio::job::{Job, NoSource, parse_bytes};
use blockyard_fio::workload::{Generator, IoOp, SyncCall};

/// Options, and the KiB of the disk; 0 for files of the job's own.
type Case = (&'static str, u64);

/// An I/O: its direction as fio numbers it, its length and its offset.
type Listed = (u8, u32, u64);

/// The I/Os of each instance of a job.
type Instances = Vec<Vec<Listed>>;

/// Jobs whose I/Os come in the same order.
const IN_ORDER: &[Case] = &[
    // Amounts that are no multiples of the block.
    ("rw=write bs=16k size=1m io_size=200k", 0),
    ("rw=read bs=16k size=100k", 0),
    ("rw=read bs=64k size=100k", 1024),
    ("rw=read bs=16k size=96k io_size=104k", 1024),
    ("rw=write bs=16k size=128k io_size=50%", 0),
    ("rw=read bs=16k size=128k io_size=330k", 0),
    ("rw=write bs=4k,64k size=1m io_size=130k", 0),
    ("rw=read bs=16k", 1000),
    ("rw=read bs=16k size=0", 512),
    ("rw=read bs=16k size=0% offset=0%", 512),
    // Sizes of files, offsets and percentages.
    ("rw=write bs=16k filesize=256k size=128k", 0),
    ("rw=write bs=16k filesize=64k size=128k", 0),
    ("rw=write bs=16k filesize=64k size=128k nrfiles=4", 0),
    ("rw=write bs=16k filesize=256k size=128k nrfiles=2 numjobs=2", 0),
    ("rw=write bs=64k filesize=1m offset=256k", 0),
    ("rw=read bs=16k size=33% offset=33%", 1024),
    ("rw=read bs=4k size=64k offset=7% offset_align=64k", 1024),
    ("rw=read bs=16k size=20% offset_increment=20% numjobs=4", 1024),
    ("rw=read bs=16k offset=5% offset_increment=64k size=64k numjobs=3", 1024),
    // Passes go on where the last one stopped, unless the engine queues I/Os.
    ("rw=write bs=16k size=128k io_size=80k loops=3", 0),
    ("rw=write bs=16k size=128k number_ios=5 loops=3", 0),
    ("rw=read bs=16k size=128k io_size=80k loops=3 ioengine=libaio", 0),
    ("rw=read bs=4k size=20k io_size=44k", 0),
    ("rw=read bs=4k size=20k io_size=44k loops=2", 0),
    ("rw=read bs=4k size=44k loops=2 nrfiles=2", 0),
    ("rw=write bs=4k size=20k nrfiles=3 loops=2", 0),
    // Several files.
    ("rw=write bs=16k size=256k nrfiles=4 file_service_type=roundrobin:3", 0),
    ("rw=write bs=16k size=176k nrfiles=4", 0),
    ("rw=write bs=4k size=64k nrfiles=4 openfiles=2", 0),
    ("rw=write bs=4k size=96k nrfiles=6 openfiles=4 file_service_type=roundrobin:2", 0),
    ("rw=read bs=4k size=96k nrfiles=5 file_service_type=sequential openfiles=1", 0),
    ("rw=write bs=4k size=64k nrfiles=3 fsync=1", 0),
    ("rw=write bs=4k size=64k nrfiles=3 fsync=2 file_service_type=roundrobin:2", 0),
    // Holes, forwards and backwards.
    ("rw=write:12k bs=4k size=100k", 0),
    ("rw=write:4k bs=4k size=128k", 0),
    ("rw=write:4k bs=4k size=128k", 1024),
    ("rw=read:12k bs=4k size=64k io_size=128k offset=64k", 1024),
    ("rw=read:-8k bs=4k size=64k", 0),
    ("rw=read:-8k bs=4k size=64k offset=64k", 1024),
    ("rw=read:-12k bs=4k size=64k io_size=96k", 0),
    // Strided zones.
    ("rw=read bs=4k size=256k zonemode=strided zonesize=16k zoneskip=16k", 0),
    ("rw=read bs=4k size=64k zonemode=strided zonesize=16k zoneskip=16k offset=32k", 1024),
    ("rw=read bs=4k size=256k zonemode=strided zonesize=16k zonerange=32k zoneskip=64k", 0),
    ("rw=read bs=4k size=64k zonemode=strided zonesize=32k zonerange=16k zoneskip=16k", 0),
    ("rw=read bs=4k size=64k io_size=160k zonemode=strided zonesize=16k zoneskip=16k", 0),
    ("rw=read bs=4k size=64k nrfiles=2 zonemode=strided zonesize=16k zoneskip=16k", 0),
];

/// Jobs that end by time. `thinktime` keeps the logs short.
const BY_TIME: &[Case] = &[
    ("rw=write bs=64k size=640k io_size=256k", 0),
    ("rw=write bs=64k size=640k number_ios=3", 0),
    ("rw=read bs=64k size=300k", 0),
    ("rw=read bs=64k size=300k", 1024),
    ("rw=read bs=64k size=300k nrfiles=2", 0),
    ("rw=read:4k bs=4k size=28k", 0),
    ("rw=read bs=4k size=96k zonemode=strided zonesize=16k zonerange=32k zoneskip=16k", 0),
    ("rw=read bs=4k size=32k offset=16k zonemode=strided zonesize=16k zoneskip=16k", 256),
];

/// Jobs that do the same I/Os in an order of their own.
const IN_ANY_ORDER: &[Case] = &[
    ("rw=randread bs=4k size=128k loops=3", 0),
    ("rw=randwrite bs=4k size=1m io_size=256k loops=4", 0),
    ("rw=randread bs=4k size=1m io_size=256k loops=4 ioengine=libaio", 0),
    ("rw=randwrite bs=16k size=100k", 0),
    ("rw=randread bs=16k size=160k offset=64k", 1024),
    ("rw=randread bs=4k size=256k nrfiles=4 file_service_type=random", 0),
    ("rw=write bs=4k size=256k nrfiles=4 file_service_type=random:3 openfiles=2", 0),
    ("rw=randread bs=4k size=256k zonemode=strided zonesize=16k zoneskip=16k", 0),
    ("rw=randread bs=4k size=256k random_generator=lfsr", 0),
    ("rw=randread:8 rw_sequencer=identical bs=4k size=4k io_size=64k", 0),
];

/// Jobs whose draws decide on their I/Os, with the percentage by which the number of I/Os and the
/// bytes may differ.
const IN_NUMBERS: &[(Case, u64)] = &[
    (("rw=randread:8 bs=4k size=4m", 0), 0),
    (("rw=randread bs=4k size=4m percentage_random=40 norandommap", 0), 0),
    (("rw=randread bs=64k size=5500k norandommap", 8192), 0),
    (("rw=randrw bs=4k size=4m loops=2", 0), 10),
    (("rw=rw bs=4k size=4m rwmixread=70 loops=2", 0), 10),
    (("rw=randread bs=4k size=1m nrfiles=8 file_service_type=zipf:1.1", 0), 0),
    (("rw=randread bs=4k size=1m nrfiles=8 file_service_type=gauss", 0), 0),
    (("rw=randread bs=4k size=4m random_distribution=normal:15", 0), 0),
    (("rw=write bsrange=4k-64k size=32m", 0), 10),
    (("rw=write bsrange=4k-10k size=32m", 0), 10),
    (("rw=write bssplit=4k/50:16k/30:64k/20 size=32m", 0), 10),
    (("rw=write bssplit=4k/20:16k/20 size=32m", 0), 10),
    (("rw=write bssplit=4k/60:64k/70 size=32m", 0), 10),
    (("rw=write bssplit=4k/0:16k/50:64k/ size=32m", 0), 10),
    (("rw=randread bssplit=4k/50:16k/30:64k/20 size=16m", 0), 10),
    (("rw=randwrite bsrange=4k-64k size=8m norandommap", 0), 10),
    // The draws end such jobs early: after 797 of 1024 writes in one case.
    (("rw=randwrite bs=4k,64k size=512k numjobs=300", 0), 10),
    (("rw=randwrite bs=4k,8k size=16k numjobs=300", 0), 10),
    (("rw=randrw bs=4k,64k size=1m numjobs=300", 0), 10),
    (("rw=randread bs=64k,4k size=512k numjobs=300 loops=2", 0), 10),
    (("rw=randwrite bs=4k,64k size=512k io_size=4m", 0), 0),
];

/// Jobs whose system calls are compared: writes through the page cache, and syncs.
const CALLS: &[&str] = &[
    "rw=write bs=2300 size=230k fdatasync=1",
    "rw=write bs=4k size=64k fsync=1",
    "rw=write bs=4k size=64k fsync=8 end_fsync=1",
    "rw=write bs=4k size=60k fsync=6 fdatasync=4",
    "rw=write bs=64k size=1m end_fsync=1",
    // The last 40 KiB are no block: the file is closed, and opened for the sync at the end.
    "rw=write bs=64k size=1000k fsync_on_close=1",
    "rw=write bs=64k size=100k loops=2 fsync_on_close=1",
    "rw=write bs=64k size=256k nrfiles=4 file_service_type=sequential fsync_on_close=1",
    "rw=write bs=64k size=512k nrfiles=4 openfiles=2 fsync_on_close=1",
    "rw=write bs=16k size=100k fsync=2",
    "rw=write bs=4k size=64k ioengine=sync fsync=1",
    "rw=write bs=4k size=64k ioengine=vsync fdatasync=4",
    "rw=write bs=4k size=64k ioengine=pvsync fdatasync=2",
    "rw=write bs=4k size=64k ioengine=pvsync2 fsync=3",
    "rw=write bs=4k size=64k ioengine=libaio fsync=4",
    "rw=write bs=4k size=64k ioengine=libaio iodepth=4 fdatasync=4",
    "rw=write bs=4k size=64k sync=dsync",
    "rw=write bs=4k size=64k sync=1 fsync=2",
    "rw=write bs=4k size=32k loops=2 end_fsync=1",
    "rw=write bs=4k size=64k nrfiles=4 fsync=2",
    "rw=write bs=4k size=64k nrfiles=4 file_service_type=sequential end_fsync=1",
    "rw=write bs=4k size=64k numjobs=2 fdatasync=3",
    "rw=write:4k bs=4k size=128k fsync=4",
    "rw=write bs=4k size=64k io_size=40k fsync=1",
    "rw=write bs=4k size=64k number_ios=5 fsync=2 end_fsync=1",
    "rw=randwrite bs=4k size=256k fdatasync=4",
    "rw=randwrite bs=2k size=64k fsync=5 fsync_on_close=1",
    "rw=write bs=4k size=64k sync_file_range=write:8",
    "rw=write bs=4k size=64k sync_file_range=wait_before,write,wait_after:4 end_fsync=1",
    "rw=read bs=4k size=64k fsync=2 end_fsync=1 fsync_on_close=1",
];

/// Options that keep a job short which ends by time.
const TIMED: &str = "time_based runtime=200ms thinktime=1000";

/// The most I/Os that are compared of a job.
const IOS_MAX: usize = 100_000;

/// A temporary folder for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("blockyard-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory should be writable");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files stay in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn program() -> String {
    std::env::var("BLOCKYARD_FIO_PROGRAM").unwrap_or_else(|_| "fio".to_owned())
}

/// Returns whether fio is installed, which CI requires.
fn have_fio() -> bool {
    let found = Command::new(program()).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "CI needs the program `fio`");
    if !found {
        eprintln!("skipped: the program `fio` is not installed");
    }
    found
}

fn our_job(options: &str, disk_kib: u64) -> Job {
    let name = if disk_kib > 0 { "filename=disk" } else { "" };
    let text = format!("[a]\ndirect=1\n{name}\n{}", options.replace(' ', "\n"));
    parse_bytes("job", text.as_bytes(), &NoSource).expect(options).jobs.remove(0)
}

/// Returns the I/Os of each instance of a job of ours.
fn ours(options: &str, disk_kib: u64) -> Instances {
    let job = our_job(options, disk_kib);
    let disk_bytes = if disk_kib > 0 { disk_kib << 10 } else { 1 << 30 };
    let instance = |number| {
        let resolved = job.resolve(number, disk_bytes).expect(options);
        let mut generator = Generator::new(&job, number, &resolved, 1);
        let ios = core::iter::from_fn(|| generator.next(None));
        let listed = ios.filter_map(|io| match io.op {
            IoOp::Read => Some((0, io.len_bytes, io.offset_bytes)),
            IoOp::Write => Some((1, io.len_bytes, io.offset_bytes)),
            IoOp::Trim => Some((2, io.len_bytes, io.offset_bytes)),
            IoOp::Sync(_) => None,
        });
        listed.take(IOS_MAX).collect()
    };
    (0..job.numjobs).map(instance).collect()
}

/// Runs fio once with a job for each case, one after another. Returns the I/Os of each instance of
/// each.
fn by_fio(folder: &Path, cases: &[(String, u64)]) -> Vec<Instances> {
    // Nothing is cached, advised or laid out that does not matter to the order of the I/Os.
    let mut jobs =
        "[global]\nlog_offset=1\nper_job_logs=1\ninvalidate=0\nfallocate=none\nthread\n".to_owned();
    for (at, (options, disk_kib)) in cases.iter().enumerate() {
        let lines = options.replace(' ', "\n");
        jobs += &format!("[case{at}]\nstonewall\nwrite_lat_log=case{at}\n{lines}\n");
        if *disk_kib > 0 {
            let disk = fs::File::create(folder.join(format!("disk{at}")));
            disk.and_then(|disk| disk.set_len(disk_kib << 10)).expect("a sparse file");
            jobs += &format!("filename=disk{at}\n");
        }
    }
    fs::write(folder.join("jobs.fio"), jobs).expect("the folder should be writable");
    let output = Command::new(program())
        .args(["--eta=never", "--output=report", "jobs.fio"])
        .current_dir(folder)
        .output()
        .expect("fio should still be installed");
    assert!(output.status.success(), "{output:?}");
    (0..cases.len()).map(|at| logs(folder, &format!("case{at}_clat."))).collect()
}

/// Reads the logs of the instances of one job.
fn logs(folder: &Path, prefix: &str) -> Instances {
    let entries = fs::read_dir(folder).expect("the folder should be readable");
    let names =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut of_job: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    of_job.sort();
    of_job
        .iter()
        .map(|name| {
            let text = fs::read_to_string(folder.join(name)).expect("a log should be readable");
            text.lines().take(IOS_MAX).map(listed).collect()
        })
        .collect()
}

/// Reads a line of a log: time, latency, direction, length, offset.
fn listed(line: &str) -> Listed {
    let fields: Vec<_> = line.split(',').map(str::trim).collect();
    let [small, number, large] = [2, 3, 4].map(|at| fields[at].parse::<u64>().expect(line));
    (u8::try_from(small).expect(line), u32::try_from(number).expect(line), large)
}

/// Returns the I/Os of each case, from fio and from us. The instances come in no order.
fn both(test: &str, cases: &[(String, u64)]) -> Vec<(Instances, Instances)> {
    let folder = Folder::new(test);
    let of_fio = by_fio(&folder.0, cases);
    let of_us = cases.iter().map(|(options, disk_kib)| ours(options, *disk_kib));
    of_fio
        .into_iter()
        .zip(of_us)
        .map(|(mut fio, mut our)| {
            fio.sort();
            our.sort();
            (fio, our)
        })
        .collect()
}

fn owned(cases: &[Case]) -> Vec<(String, u64)> {
    cases.iter().map(|(options, disk_kib)| ((*options).to_owned(), *disk_kib)).collect()
}

/// Describes the first I/O that differs.
fn first_difference(fio: &[Vec<Listed>], our: &[Vec<Listed>]) -> String {
    let Some((fio, our)) = fio.first().zip(our.first()) else {
        return format!("{} instances of fio's, {} of ours", fio.len(), our.len());
    };
    let at =
        fio.iter().zip(our).position(|(fio, our)| fio != our).unwrap_or(fio.len().min(our.len()));
    let [fios, ours] =
        [fio, our].map(|list| format!("{:?}", &list[at.min(list.len())..list.len().min(at + 4)]));
    format!("{} and {} I/Os; from I/O {at} on fio {fios}, we {ours}", fio.len(), our.len())
}

fn expect_none(failures: &[String]) {
    assert!(failures.is_empty(), "{} jobs differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn ios_come_in_fios_order() {
    if !have_fio() {
        return;
    }
    let cases = owned(IN_ORDER);
    let pairs = both("in-order", &cases);
    let differ = cases.iter().zip(&pairs).filter(|(_, (fio, our))| fio != our);
    let failures: Vec<_> = differ
        .map(|((options, disk), (fio, our))| {
            format!("{options}, {disk} KiB: {}", first_difference(fio, our))
        })
        .collect();
    expect_none(&failures);
}

#[test]
fn jobs_that_end_by_time_go_on_as_fios_do() {
    if !have_fio() {
        return;
    }
    let cases: Vec<_> = owned(BY_TIME)
        .into_iter()
        .map(|(options, disk)| (format!("{options} {TIMED}"), disk))
        .collect();
    let mut failures = Vec::new();
    for ((options, disk), (mut fio, mut our)) in cases.iter().zip(both("by-time", &cases)) {
        let common = fio[0].len().min(our[0].len());
        assert!(common > 0, "{options}: no I/O");
        fio[0].truncate(common);
        our[0].truncate(common);
        if fio != our {
            failures.push(format!("{options}, {disk} KiB: {}", first_difference(&fio, &our)));
        }
    }
    expect_none(&failures);
}

#[test]
fn random_jobs_do_the_ios_that_fios_do() {
    if !have_fio() {
        return;
    }
    let cases = owned(IN_ANY_ORDER);
    let mut failures = Vec::new();
    for ((options, disk), (mut fio, mut our)) in cases.iter().zip(both("any-order", &cases)) {
        fio.iter_mut().chain(&mut our).for_each(|list| list.sort_unstable());
        if fio != our {
            failures.push(format!("{options}, {disk} KiB: {}", first_difference(&fio, &our)));
        }
    }
    expect_none(&failures);
}

#[test]
fn drawn_jobs_do_as_many_ios_as_fios() {
    if !have_fio() {
        return;
    }
    let cases: Vec<_> = IN_NUMBERS.iter().map(|(case, _)| *case).collect();
    let cases = owned(&cases);
    let mut failures = Vec::new();
    for (((options, disk), (fio, our)), (_, percent)) in
        cases.iter().zip(both("in-numbers", &cases)).zip(IN_NUMBERS)
    {
        for direction in 0..3 {
            let [fio, our] = [&fio, &our].map(|lists| {
                let of_direction = lists.iter().flatten().filter(|(of, ..)| *of == direction);
                of_direction.fold((0_u64, 0_u64), |(ios, bytes), (_, len, _)| {
                    (ios + 1, bytes + u64::from(*len))
                })
            });
            let mut pairs = [(fio.0, our.0), (fio.1, our.1)].into_iter();
            if pairs.any(|(a, b)| a.abs_diff(b) * 100 > a.max(b) * percent) {
                failures.push(format!(
                    "{options}, {disk} KiB: (I/Os, bytes) of fio {fio:?}, ours {our:?}"
                ));
            }
        }
    }
    expect_none(&failures);
}

/// The system calls by which fio's engines move data or sync.
const TRACED: &str = "trace=read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,\
                      pwritev2,io_submit,fsync,fdatasync,sync_file_range";

/// A system call: its kind, and the bytes that it moves or syncs.
type Call = (&'static str, u64);

/// Returns the calls of each instance of a job of ours.
fn our_calls(options: &str) -> Vec<Vec<Call>> {
    let text = format!("[a]\n{}", options.replace(' ', "\n"));
    let job = parse_bytes("job", text.as_bytes(), &NoSource).expect(options).jobs.remove(0);
    let instance = |number| {
        let resolved = job.resolve(number, 1 << 30).expect(options);
        let mut generator = Generator::new(&job, number, &resolved, 1);
        let ios = core::iter::from_fn(|| generator.next(None));
        ios.filter_map(|io| {
            let bytes = u64::from(io.len_bytes);
            match io.op {
                IoOp::Read => Some(("read", bytes)),
                IoOp::Write => Some(("write", bytes)),
                IoOp::Sync(SyncCall::All) => Some(("fsync", 0)),
                IoOp::Sync(SyncCall::Data) => Some(("fdatasync", 0)),
                IoOp::Sync(SyncCall::Range { len_bytes: 0, .. }) => None,
                IoOp::Sync(SyncCall::Range { len_bytes, .. }) => {
                    Some(("sync_file_range", len_bytes))
                }
                IoOp::Trim => panic!("{options}: trims are no system calls"),
            }
        })
        .collect()
    };
    (0..job.numjobs).map(instance).collect()
}

/// Runs fio once under strace with a job for each case, one after another. Returns the calls of
/// each instance of each.
fn calls_by_fio(folder: &Path) -> Vec<Vec<Vec<Call>>> {
    let mut jobs = "[global]\nfallocate=none\n".to_owned();
    for (at, options) in CALLS.iter().enumerate() {
        jobs += &format!("[case{at}]\nstonewall\n{}\n", options.replace(' ', "\n"));
        // Otherwise fio writes what the job reads.
        if options.contains("rw=read ") {
            let file = fs::File::create(folder.join(format!("case{at}.0.0")));
            file.and_then(|file| file.set_len(1 << 20)).expect("a sparse file");
        }
    }
    fs::write(folder.join("jobs.fio"), jobs).expect("the folder should be writable");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-y", "-s0", "-e", "abbrev=none", "-e", "signal=none"])
        .args(["-e", TRACED, "-o", "calls"])
        .args([program().as_str(), "--eta=never", "--output=report", "jobs.fio"])
        .current_dir(folder)
        .output()
        .expect("strace should still be installed");
    assert!(output.status.success(), "{output:?}");
    let calls = fs::read_to_string(folder.join("calls")).expect("strace writes its file");
    CALLS
        .iter()
        .enumerate()
        .map(|(case, options)| {
            let instances = if options.contains("numjobs=2") { 2 } else { 1 };
            (0..instances).map(|instance| calls_to(&calls, case, instance)).collect()
        })
        .collect()
}

/// Returns the calls to the files of an instance.
fn calls_to(calls: &str, case: usize, instance: u32) -> Vec<Call> {
    let file = format!("/case{case}.{instance}.");
    calls.lines().filter(|line| line.contains(&file)).flat_map(calls_of).collect()
}

/// Returns the calls of a line of strace, several for `io_submit`:
///
/// `77 pwrite64(7</tmp/case0.0.0>, ""..., 4096, 0) = 4096`
fn calls_of(line: &str) -> Vec<Call> {
    let line = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
    // A line that resumes an interrupted call repeats no arguments.
    let Some((name, arguments)) = line.split_once('(') else { return Vec::new() };
    match name {
        "fsync" => vec![("fsync", 0)],
        "fdatasync" => vec![("fdatasync", 0)],
        // File, offset, length.
        "sync_file_range" => {
            vec![("sync_file_range", after(", ", arguments.split_once(">, ").expect(line).1))]
        }
        "read" | "pread64" => vec![("read", after("\"..., ", arguments))],
        "write" | "pwrite64" => vec![("write", after("\"..., ", arguments))],
        "readv" | "preadv" | "preadv2" => vec![("read", after("iov_len=", arguments))],
        "writev" | "pwritev" | "pwritev2" => vec![("write", after("iov_len=", arguments))],
        "io_submit" => arguments
            .split("aio_lio_opcode=")
            .skip(1)
            .map(|iocb| {
                let kind = if iocb.starts_with("IOCB_CMD_PWRITE") { "write" } else { "read" };
                (kind, after("aio_nbytes=", iocb))
            })
            .collect(),
        other => panic!("{other} is not traced"),
    }
}

/// Returns the number behind the first `key`.
fn after(key: &str, text: &str) -> u64 {
    let digits = text.split_once(key).expect(text).1;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().expect(text)
}

#[test]
fn system_calls_of_jobs_that_sync_are_fios() {
    let has_strace = Command::new("strace").arg("--version").output().is_ok();
    assert!(has_strace || std::env::var_os("CI").is_none(), "CI needs the program `strace`");
    if !has_strace || !have_fio() {
        return;
    }
    let folder = Folder::new("calls");
    let mut failures = Vec::new();
    for (options, fio) in CALLS.iter().zip(calls_by_fio(&folder.0)) {
        let our = our_calls(options);
        if fio != our {
            let [fio, our] = [&fio, &our].map(|instances| {
                let lengths: Vec<_> = instances.iter().map(Vec::len).collect();
                let syncs = instances.iter().flatten().filter(|(kind, _)| kind.contains("sync"));
                let first: Vec<_> = instances.iter().flatten().take(6).collect();
                format!("{lengths:?} calls, {} syncs, {first:?}", syncs.count())
            });
            failures.push(format!("{options}: fio {fio}; we {our}"));
        }
    }
    expect_none(&failures);
}
