//! Whole simulations of writes with `uncached=1` (`RWF_DONTCACHE`), whose pages the flusher writes
//! back at once, and which leave the page cache then. Only the device and the copy of a page take
//! time here.

use crate::free;

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_sim::simulate::{Report, Simulation};

const US: u64 = 1_000;

/// A device with two commands at a time, each 100 us long. A page is copied in 10 us.
fn device() -> Device {
    let free = free::steps();
    let text = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 2048\nmax-segments = 256\n\
         [null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\nsubmit-queues = 1\ndepth = 2\n\
         [cpu]\ncpus = 4\npage-copy = \"10us\"\n{free}"
    );
    Device::parse("test", &text).unwrap()
}

/// Runs `jobs` on the disk `/dev/a`.
fn run(jobs: &str) -> Report {
    let text = format!(
        "[global]\nioengine=pvsync2\nfilename=/dev/a\ninvalidate=0\nfadvise_hint=random\n{jobs}"
    );
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let mut simulation = Simulation::new(&jobs, &device(), &design, 1).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

/// The latency of the only read of the last job.
fn latency_of_read(report: &Report) -> u64 {
    let reads = report.jobs.last().unwrap().stats.ops.of(Op::Read).as_deref().unwrap();
    assert_eq!(reads.ios, 1);
    reads.lat_ns.max()
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

/// A writer of 32 KiB, which keeps the disk open for 10 ms.
fn writer(name: &str, options: &str) -> String {
    format!("[{name}]\nrw=write\nbs=32k\nnumber_ios=2\nthinktime=10ms\n{options}")
}

/// A reader of 16 KiB at an offset, 1 ms after the start.
fn reader(offset: &str) -> String {
    format!("[r]\nrw=read\nbs=16k\nnumber_ios=1\nstartdelay=1ms\ncpus_allowed=2\noffset={offset}\n")
}

/// Four writes of 32 KiB with pauses of 1 ms. Each is copied in 80 us, and then written in 100 us,
/// as one request of eight pages. When the disk is closed, 3.32 ms after the start, that is left of
/// the last. Without the option, nothing is written before, and then all 32 pages in one request.
#[test]
fn each_write_is_written_back_at_once() {
    let text = "[w]\nrw=write\nbs=32k\nnumber_ios=4\nthinktime=1ms\n";
    let report = run(&format!("{text}uncached=1\n"));
    assert_eq!((commands(&report), report.span.as_ns()), (4, 3_420 * US));
    let report = run(text);
    assert_eq!((commands(&report), report.span.as_ns()), (1, 3_420 * US));
}

/// The pages have left when the reader comes: it reads four of them in 100 us and copies them in
/// 40 us. Otherwise they are there.
#[test]
fn pages_leave_the_cache_when_they_are_on_the_disk() {
    for (options, read_us) in [("uncached=1\n", 140), ("", 40)] {
        let report = run(&(writer("w", options) + &reader("0")));
        assert_eq!(latency_of_read(&report), read_us * US, "{options}");
    }
}

/// Pages 0 to 3 are in the cache before, by a writer that is not uncached, and stay there. Pages 4
/// to 7 leave.
#[test]
fn pages_that_were_there_before_stay() {
    let before = "[b]\nrw=write\nbs=16k\nnumber_ios=2\nthinktime=10ms\n";
    let uncached = writer("w", "uncached=1\nstartdelay=200us\ncpus_allowed=1\n");
    for (offset, read_us) in [("0", 40), ("16k", 140)] {
        let report = run(&format!("{before}{uncached}{}", reader(offset)));
        assert_eq!(latency_of_read(&report), read_us * US, "{offset}");
    }
}

/// Pages 0 to 7 are under writeback from 80 us on. Another writer dirties them by 190 us, and syncs
/// them: they stay, as it is not uncached. If it is, they leave behind their second writeback.
#[test]
fn a_write_that_is_not_uncached_lets_pages_stay() {
    for (options, read_us) in [("sync=dsync\n", 40), ("uncached=1\n", 140)] {
        let other = writer("o", &format!("startdelay=110us\ncpus_allowed=1\n{options}"));
        let report = run(&(writer("w", "uncached=1\n") + &other + &reader("0")));
        assert_eq!(latency_of_read(&report), read_us * US, "{options}");
    }
}

/// Page 0, of which a part is written, is read first, and leaves as the others do.
#[test]
fn a_page_that_was_read_for_a_write_leaves_too() {
    let text = "[w]\nrw=write\nbs=2k\nnumber_ios=2\nthinktime=10ms\nuncached=1\n";
    assert_eq!(latency_of_read(&run(&(text.to_owned() + &reader("0")))), 140 * US);
}

/// Linux 6.12 does not know the flag, which came with 6.14. Its designs refuse the job, as Linux
/// refuses its calls. Reads drop large folios there, which are not modelled.
#[test]
fn what_is_not_modelled_is_refused() {
    let text = "[w]\nioengine=pvsync2\nrw=write\nsize=4k\nuncached=1\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    for name in ["mq-none-6.12", "mq-deadline-2017", "legacy-deadline", "btt-linux-2015"] {
        assert!(!Design::lookup(name).unwrap().takes_uncached, "{name}");
    }
    let design = Design::lookup("mq-none-6.12").unwrap();
    let error = Simulation::new(&jobs, &device(), &design, 1).unwrap_err().to_string();
    assert!(error.starts_with("f:5: ") && error.contains("RWF_DONTCACHE"), "{error}");
    for (from, to, line) in [("rw=write", "rw=read", "f:5: "), ("pvsync2", "psync", "f:5: ")] {
        let wrong = text.replace(from, to);
        let error = parse_bytes("f", wrong.as_bytes(), &NoSource).unwrap_err().to_string();
        assert!(error.starts_with(line) && error.contains("uncached"), "{error}");
    }
}
