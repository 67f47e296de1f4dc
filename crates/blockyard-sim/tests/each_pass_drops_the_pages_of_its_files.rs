//! Whole simulations of buffered jobs with several passes, before each of which fio drops the pages
//! of the files (strace of fio 3.33), and of jobs that follow another one. Only the device and the
//! copy of a page take time here.

use crate::free;

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device, FileSystem};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const US: u64 = 1_000;

/// A device with two commands at a time, each 100 us long. A page is copied in 10 us.
fn device() -> Device {
    free::disk_of_two_commands(4, "")
}

/// Runs a job whose passes are one I/O of eight pages.
fn run(options: &str, file_system: Option<&str>) -> Report {
    let text = format!("[j]\nioengine=sync\nbs=32k\nsize=32k\nfadvise_hint=random\n{options}");
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let file_system = file_system.map(|name| FileSystem::lookup(name).unwrap());
    let conditions = Conditions { file_system: file_system.as_ref(), ..Conditions::new(1) };
    let mut simulation = Simulation::under(&jobs, &device(), &design, conditions).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

fn runtime_us(report: &Report) -> u64 {
    report.jobs[0].stats.runtime_ns() / US
}

/// A pass reads 32 KiB in 100 us and copies it in 80 us, and so does the second one.
/// Without `invalidate` that one only copies.
#[test]
fn each_pass_reads_its_pages_again() {
    for passes in ["loops=2\n", "io_size=64k\n"] {
        for place in [None, Some("ext4")] {
            let report = run(&format!("rw=read\n{passes}"), place);
            assert_eq!((commands(&report), runtime_us(&report)), (2, 360), "{passes}");
            let report = run(&format!("rw=read\ninvalidate=0\n{passes}"), place);
            assert_eq!((commands(&report), runtime_us(&report)), (1, 260), "{passes}");
        }
    }
}

/// Two reads of 32 KiB visit the file, and the third one begins anew. A read takes 100 us and is
/// copied in 80 us, so that four begin within 690 us, and a fifth one would at 720 us. As fio 3.33
/// calls `fadvise64(DONTNEED)` before it begins anew, in order or at random, the third and fourth
/// are read, too. With `invalidate=0` they are not.
#[test]
fn a_job_that_begins_anew_reads_its_pages_again() {
    for order in ["rw=read\n", "rw=randread\n"] {
        for place in [None, Some("ext4")] {
            let options = format!("size=64k\ntime_based\nruntime=690us\n{order}");
            assert_eq!(commands(&run(&options, place)), 4, "{order}");
            assert_eq!(commands(&run(&format!("{options}invalidate=0\n"), place)), 2, "{order}");
        }
    }
}

/// A pass copies 32 KiB in 80 us. Before the second one, the disk gets the pages, in one request
/// of 100 us, for which the job waits, and the rest when it closes the disk. Without `invalidate`
/// the pages are written once, when the disk is closed.
#[test]
fn the_pages_of_a_pass_are_written_before_the_next_one() {
    let report = run("rw=write\nloops=2\n", None);
    assert_eq!((commands(&report), runtime_us(&report)), (2, 260));
    assert_eq!(report.span.as_ns(), 360 * US);
    let report = run("rw=write\nloops=2\ninvalidate=0\n", None);
    assert_eq!((commands(&report), runtime_us(&report)), (1, 160));
    assert_eq!(report.span.as_ns(), 260 * US);
}

/// In a file of a file system they begin to be written before the second pass and before the third
/// one, and nobody waits: the writes of a pass begin 80 us after those of the one before, and take
/// 100 us, so the third finds the pages under writeback, dirty again, and leaves them. With a pause
/// of 1 ms behind each I/O it writes them, too, and the job ends while the disk does that.
#[test]
fn nobody_waits_for_the_pages_of_files() {
    let report = run("rw=write\noverwrite=1\nloops=3\n", Some("ext4"));
    assert_eq!((report.stages.count(Action::Queue), runtime_us(&report)), (1, 240));
    let report = run("rw=write\noverwrite=1\nloops=3\nthinktime=1ms\n", Some("ext4"));
    assert_eq!((report.stages.count(Action::Queue), commands(&report)), (2, 1));
    let report = run("rw=write\noverwrite=1\nloops=3\ninvalidate=0\n", Some("ext4"));
    assert_eq!(report.stages.count(Action::Queue), 0);
}

/// A job reads 32 KiB, and a second one at 1 ms. As Linux drops the pages of a device that nobody
/// has open, that one needs the device, too; those of a file stay. They also stay while the first
/// job has the device open, since it reads once more after 10 ms.
#[test]
fn a_device_leaves_the_cache_with_its_last_job() {
    let second = "[k]\nioengine=sync\nbs=32k\nsize=32k\nfilename=f\nrw=read\ninvalidate=0\n\
                  startdelay=1ms\n";
    let first = "filename=f\nrw=read\ninvalidate=0\n";
    let raw = run(&format!("{first}{second}"), None);
    assert_eq!((commands(&raw), raw.jobs[1].stats.runtime_ns()), (2, 180 * US));
    let file = run(&format!("{first}{second}"), Some("ext4"));
    assert_eq!((commands(&file), file.jobs[1].stats.runtime_ns()), (1, 80 * US));
    let open = run(&format!("{first}io_size=64k\nthinktime=10ms\n{second}"), None);
    assert_eq!((commands(&open), open.jobs[1].stats.runtime_ns()), (1, 80 * US));
}
