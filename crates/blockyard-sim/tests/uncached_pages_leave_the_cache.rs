//! Whole simulations of calls with `uncached=1` (`RWF_DONTCACHE`). The flusher writes the pages of
//! writes back at once, and they leave the page cache then; those of reads leave when they have
//! been read. Only the device and the copy of a page take time here.

use crate::free;

use blockyard::bio;
use blockyard::status::Status;
use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::{Design, Device, FileSystem};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::observe::Observer;

const US: u64 = 1_000;

/// A device with two commands at a time, each 100 us long. A page is copied in 10 us.
fn device() -> Device {
    free::disk_of_two_commands(4, "")
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

/// The sectors of each bio of a reader, with the first one.
#[derive(Debug, Default)]
struct Reads(Vec<(u64, u32)>);

impl Sink for Reads {
    fn event(&mut self, event: &Event<'_>) {
        if event.action == Action::Queue && event.op == bio::Op::Read {
            self.0.push((event.sector, event.sectors));
        }
    }
}

impl Observer for Reads {}

/// Returns the bios of the reads of `jobs` of a raw disk, or of a file of a file system, from its
/// first sector on.
fn bios_of(jobs: &str, place: Option<&str>) -> Vec<(u64, u32)> {
    let name = if place.is_some() { "file" } else { "/dev/a" };
    let text = format!("[global]\nioengine=pvsync2\nfilename={name}\ninvalidate=0\n{jobs}");
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let file_system = place.map(|name| FileSystem::lookup(name).unwrap());
    let conditions = Conditions { file_system: file_system.as_ref(), ..Conditions::new(1) };
    let mut reads = Reads::default();
    let made = Simulation::observed(&jobs, &device(), &design, conditions, &mut reads);
    let mut simulation = made.unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap();
    let first = if place.is_some() { reads.0[0].0 } else { 0 };
    reads.0.into_iter().map(|(sector, sectors)| (sector - first, sectors)).collect()
}

/// The bios of two recordings of Linux 7.3.4 of a job that reads 512 KiB, 16 KiB at a time, of a
/// file on ext4: 1472 sectors, of which 448 are read twice. The read of pages 24 to 27 drops the
/// folio of pages 24 to 31, so that 28 to 31 are read again, as sectors 224 to 255. Behind page 80
/// read-ahead goes on with page 121, and page 120 is read alone.
const OF_A_FILE: [(u64, u32); 18] = [
    (0, 64),
    (64, 128),
    (192, 192),
    (384, 128),
    (224, 32),
    (288, 64),
    (352, 32),
    (512, 128),
    (640, 320),
    (416, 64),
    (480, 32),
    (968, 56),
    (672, 64),
    (736, 32),
    (960, 8),
    (800, 64),
    (864, 32),
    (928, 32),
];

/// As of a file, but read-ahead of a raw disk goes on behind the part that the job reads.
#[test]
fn an_uncached_stream_reads_parts_of_large_folios_twice() {
    let cached = "[r]\nrw=read\nbs=16k\nsize=512k\n";
    let uncached = format!("{cached}uncached=1\n");
    assert_eq!(bios_of(&uncached, Some("ext4")), OF_A_FILE);
    let of_disk = [&OF_A_FILE[..17], &[(1024, 128), (928, 32), (1152, 416)]].concat();
    assert_eq!(bios_of(&uncached, None), of_disk);
    // Each pass finds nothing of the one before it.
    let twice = bios_of(&format!("{uncached}loops=2\n"), Some("ext4"));
    assert_eq!((&twice[..18], &twice[18..]), (&OF_A_FILE[..], &OF_A_FILE[..]));
    // The same recordings without the option.
    let of_file = [(0, 64), (64, 128), (192, 192), (384, 128), (512, 256), (768, 256)];
    assert_eq!(bios_of(cached, Some("ext4")), of_file);
    assert_eq!(bios_of(cached, None), [&of_file[..], &[(1024, 512)]].concat());
}

/// Without read-ahead each page is a folio of its own. The first pass brings pages 0 to 3, and they
/// leave, so the second pass reads them too.
#[test]
fn pages_leave_the_cache_when_they_have_been_read() {
    let text = "[r]\nrw=read\nfadvise_hint=random\nbs=16k\nsize=16k\nloops=2\n";
    assert_eq!(bios_of(&format!("{text}uncached=1\n"), None), [(0, 32), (0, 32)]);
    assert_eq!(bios_of(text, None), [(0, 32)]);
}

/// Pages that were in the cache before stay there, and so do dirty ones: an uncached read of 16 KiB
/// finds two of its pages, reads the other two, and only those leave. The last reader reads them
/// alone.
#[test]
fn an_uncached_read_lets_pages_stay_that_were_there_before() {
    let read = "rw=read\nfadvise_hint=random\nbs=16k\nsize=16k\n";
    for (offset, others) in [("0", (16, 16)), ("8k", (0, 16))] {
        for order in ["read", "write"] {
            let jobs = format!(
                "[b]\nrw={order}\nfadvise_hint=random\nbs=8k\noffset={offset}\nsize=8k\n\
                 thinktime=20ms\nnumber_ios=2\ntime_based\nruntime=15ms\n\
                 [u]\nstartdelay=1ms\nuncached=1\n{read}[r]\nstartdelay=2ms\n{read}"
            );
            let reads = bios_of(&jobs, None);
            assert_eq!(reads.iter().filter(|bio| **bio == others).count(), 2, "{reads:?}");
            assert_eq!(reads.len(), 2 + usize::from(order == "read"), "{reads:?}");
        }
    }
}

/// Eight pages are under writeback from 80 to 180 us. A read from 90 us on does not drop them,
/// so that one from 140 us on finds its four, and copies them in 40 us.
#[test]
fn a_read_lets_pages_stay_that_are_not_on_the_disk() {
    let first = "[f]\nrw=read\nbs=16k\nnumber_ios=1\nstartdelay=90us\ncpus_allowed=1\n";
    let last = reader("0").replace("startdelay=1ms", "startdelay=140us");
    assert_eq!(latency_of_read(&run(&(writer("w", "uncached=1\n") + first + &last))), 40 * US);
}

/// Linux 6.12 does not know the flag, which came with 6.14. Its designs refuse the job, as Linux
/// refuses its calls.
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
    let wrong = text.replace("pvsync2", "psync");
    let error = parse_bytes("f", wrong.as_bytes(), &NoSource).unwrap_err().to_string();
    assert!(error.starts_with("f:5: ") && error.contains("uncached"), "{error}");
}

/// fio's `pre_read` makes plain reads: their pages stay, and the job reads nothing from the disk.
#[test]
fn pages_of_pre_read_stay() {
    let job = "[r]\nrw=randread\nbs=4k\nsize=64k\npre_read=1\n";
    let plain = bios_of(job, Some("ext4"));
    assert_eq!(plain.iter().map(|(_, sectors)| sectors).sum::<u32>(), 128);
    assert_eq!(bios_of(&format!("{job}uncached=1\n"), Some("ext4")), plain);
}
