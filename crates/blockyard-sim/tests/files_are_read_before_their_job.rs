//! Jobs with `pre_read`, which fill the page cache before they begin. Only the device and the copy
//! of a page take time here.

use crate::free;

use blockyard::time::Duration;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::{Report, Simulation};

const US: u64 = 1_000;

/// Runs jobs of 64 KiB on a device whose commands take 100 us. Read-ahead reaches 128 KiB.
fn run(text: &str) -> Report {
    let free = free::steps();
    let device = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 2048\nmax-segments = 256\n\
         [null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\nsubmit-queues = 1\ndepth = 2\n\
         [cpu]\ncpus = 2\npage-copy = \"10us\"\n{free}"
    );
    let device = Device::parse("test", &device).unwrap();
    let text = format!("[global]\nioengine=sync\nrw=read\nbs=64k\nsize=64k\n{text}");
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let mut simulation = Simulation::new(&jobs, &device, &design, 1).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

fn runtimes(report: &Report) -> Vec<u64> {
    report.jobs.iter().map(|job| job.stats.runtime_ns() / US).collect()
}

/// The read before takes 100 us and the copies of 16 pages, 160 us. The job then copies 16 pages,
/// and nothing else is measured: no command of the device, and no other time.
#[test]
fn a_file_is_in_the_cache_when_its_job_begins() {
    let report = run("[j]\npre_read=1\n");
    assert_eq!((runtimes(&report), report.span), (vec![160], Duration::from_us(160)));
    assert_eq!(report.device_busy, Duration::ZERO);
    assert_eq!(runtimes(&run("[j]\n")), [260]);
    // A run time counts from the job's beginning: 10 passes in 1600 us.
    let report = run("[j]\npre_read=1\ntime_based\nruntime=1600us\n");
    assert_eq!(report.jobs[0].stats.runtime_ns(), 1600 * US);
}

/// Linux 6.12 and 7.3 drop the pages of a device when fio closes it, so the job reads them again:
/// 260 us, as without `pre_read`. They stay if another job has the device open.
#[test]
fn a_device_that_nobody_has_open_leaves_the_cache() {
    assert_eq!(runtimes(&run("[j]\nfilename=/dev/a\npre_read=1\n")), [260]);
    let other = "[global]\nfilename=/dev/a\ninvalidate=0\n[o]\noffset=1m\nthinktime=1s\nsize=128k\n\
                 cpus_allowed=1\n[j]\npre_read=1\ncpus_allowed=0\n";
    assert_eq!(runtimes(&run(other))[1], 160);
}

/// The machine is measured from the first job that begins: at 260 us, after the read before it, not
/// at 10 ms, where another job begins. That one ends at 10.26 ms.
#[test]
fn the_machine_is_measured_from_the_first_job_on() {
    let report = run("[late]\nstartdelay=10ms\n[early]\npre_read=1\n");
    assert_eq!(runtimes(&report), [260, 160]);
    assert_eq!(report.span, Duration::from_us(10_000));
}
