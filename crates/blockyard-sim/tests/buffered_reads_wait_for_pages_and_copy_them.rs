//! Whole simulations that read through the page cache. Only the device and the copy of a page take
//! time here, so that every instant can be computed by hand.

use crate::free;

use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device, FaultRules, FileSystem};
use blockyard_fio::job::{JobFile, NoSource, parse_args, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const US: u64 = 1_000;
/// 10 us for each of the 32 pages of a window.
const COPY: u64 = 320 * US;

/// A device with `depth` commands at a time, each at least `access` long. Its bus transfers 128 KiB
/// in a millisecond.
fn device(depth: u16, access: &str) -> Device {
    let free = free::steps();
    let text = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 2048\nmax-segments = 256\n[null]\ncompletion = \"timer\"\n\
         completion-time = \"{access}\"\nsubmit-queues = 1\ndepth = {depth}\n\
         bandwidth-limit = \"131072000B/s\"\n[cpu]\ncpus = 2\npage-copy = \"10us\"\n{free}"
    );
    Device::parse("test", &text).unwrap()
}

/// Read-ahead windows of 128 KiB for any request.
fn design() -> Design {
    let text =
        "base = \"mq-none-6.12\"\n[queue]\nread-ahead = \"128KiB\"\nread-ahead-cap = \"setting\"\n";
    Design::parse("test", text).unwrap()
}

fn jobs(options: &str) -> JobFile {
    let all = format!("--name=j --filename=/dev/a --direct=0 --fadvise_hint=0 {options}");
    parse_args(all.split_whitespace(), &NoSource).unwrap()
}

fn run_under(jobs: &JobFile, device: &Device, design: &Design, rules: Option<&str>) -> Report {
    let rules = rules.map(|text| FaultRules::parse("f.toml", text).unwrap());
    let conditions = Conditions { faults: rules.as_ref(), ..Conditions::new(1) };
    let mut simulation = Simulation::under(jobs, device, design, conditions).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

fn run(options: &str, device: &Device) -> Report {
    run_under(&jobs(options), device, &design(), None)
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

/// Returns the commands of these sections, whose file of 64 pages is on ext4.
fn commands_on_ext4(sections: &str) -> u64 {
    let text = format!("[global]\nioengine=sync\nfilename=f\nsize=256k\nbs=4k\n{sections}");
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let ext4 = FileSystem::lookup("ext4").unwrap();
    let conditions = Conditions { file_system: Some(&ext4), ..Conditions::new(1) };
    let device = device(2, "100us");
    let mut simulation = Simulation::under(&jobs, &device, &design(), conditions).unwrap();
    simulation.check_every_step();
    commands(&simulation.finish().unwrap())
}

/// A writer has made a file and written its first page, which is dirty, when a job reads the file a
/// second later. If the section of the writer is the first, the file has its blocks and no data,
/// which is zero: nothing is read. If that of the reader is, the file has its data, and the 63
/// pages that are not in the cache are read, each by its own command.
#[test]
fn the_first_section_decides_whether_a_file_has_data() {
    let writer = "[w]\nrw=write\nnumber_ios=1\n";
    let reader = "[r]\nrw=read\nstartdelay=1\ninvalidate=0\nfadvise_hint=random\n";
    assert_eq!(commands_on_ext4(&format!("{writer}{reader}")), 0);
    assert_eq!(commands_on_ext4(&format!("{reader}{writer}")), 63);
}

const DD: &str = "--rw=read --bs=1m --number_ios=8";

/// `dd bs=1M count=8`, 64 windows. The first arrives after 1.5 ms; at 1.66 ms half of it is copied,
/// and the second is requested. From then on there is always a window to send, and the bus is never
/// idle: window n has been transferred n milliseconds after 1.66 ms. After the last window only its
/// copy remains.
#[test]
fn two_windows_overlap_if_the_device_allows_it() {
    let report = run(DD, &device(2, "1500us"));
    let begun = 1_500 * US + COPY / 2;
    assert_eq!(report.span, Duration::from_ns(begun + 63_000 * US + COPY));
    let spent = report.jobs[0].stats.spent;
    assert_eq!((spent.alive, spent.in_calls), (report.span, Duration::from_ns(64 * COPY)));
    assert_eq!(spent.waiting.as_ns(), report.span.as_ns() - 64 * COPY);
    assert_eq!(spent.ready(), Duration::ZERO);
}

/// `dd` on a device with one command at a time: every window takes its access time of 1.5 ms after
/// the end of the previous one. Meanwhile the reader sleeps for a tag.
#[test]
fn windows_follow_each_other_on_a_serial_device() {
    let report = run(DD, &device(1, "1500us"));
    let begun = 1_500 * US + COPY / 2;
    assert_eq!(report.span, Duration::from_ns(begun + 63 * 1_500 * US + COPY));
    assert!(report.totals.tag_waits >= 62, "{}", report.totals.tag_waits);
}

/// Random reads are not read ahead: each takes its access and its copy in turn.
#[test]
fn random_reads_wait_for_one_page_each() {
    let options = "--rw=randread --bs=4k --size=1g --number_ios=500 --norandommap --randseed=3";
    let report = run(options, &device(2, "1500us"));
    assert_eq!(report.span, Duration::from_ns(500 * (1_500 + 10) * US));
    assert_eq!(commands(&report), 500);
    let calls = report.jobs[0].stats.measured().next().unwrap();
    assert_eq!((calls.lat_ns.min(), calls.lat_ns.max()), (1_510 * US, 1_510 * US));
}

/// A reader that computes between its reads, such as `find`. Its waits are counted separately.
#[test]
fn thinking_and_waiting_are_counted_separately() {
    let options = "--rw=randread --bs=4k --size=1g --number_ios=100 --randseed=3 \
                   --thinktime=700us --thinktime_spin=700us";
    let report = run(options, &device(2, "1500us"));
    let spent = report.jobs[0].stats.spent;
    // A pause follows each read but the last.
    assert_eq!(spent.thinking, Duration::from_ns(99 * 700 * US));
    assert_eq!(spent.waiting, Duration::from_ns(100 * 1_500 * US));
    assert_eq!(spent.in_calls, Duration::from_ns(100 * 10 * US));
    assert_eq!(spent.alive, spent.thinking + spent.waiting + spent.in_calls);
    let options = options.replace("spin=700us", "spin=200us");
    let spent = run(&options, &device(2, "1500us")).jobs[0].stats.spent;
    assert_eq!(spent.thinking, Duration::from_ns(99 * 200 * US));
    assert_eq!(spent.pausing, Duration::from_ns(99 * 500 * US));
}

/// A megabyte is read twice: the second time from the cache if it is kept, from the device if it is
/// dropped. The pages of a device leave the cache when the first job has closed it.
#[test]
fn a_cache_is_kept_until_a_job_drops_it() {
    fn ran(file: &str, second: &str) -> [u64; 2] {
        let text = format!(
            "[global]\n{file}\ndirect=0\nfadvise_hint=0\nsize=1m\nbs=64k\n[a]\n[b]\nstonewall\n{second}\n"
        );
        let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
        let report = run_under(&jobs, &device(2, "1500us"), &design(), None);
        [0, 1].map(|at| report.jobs[at].stats.runtime_ns())
    }
    let copying = 8 * COPY;
    assert_eq!(ran("filename_format=f", "invalidate=0")[1], copying);
    let [first, second] = ran("filename=/dev/a", "invalidate=1");
    assert_eq!(ran("filename=/dev/a", "invalidate=0"), [first, second]);
    // Eight windows. The window after them is still on the bus when the second job begins, until 1
    // ms after the eighth has passed: 8.66 + 1 - 8.98 ms. The second job's first window waits
    // behind it, 0.18 ms longer than for its access alone.
    assert_eq!(first, 1_500 * US + COPY / 2 + 7_000 * US + COPY);
    assert_eq!(second, first + 180 * US);
    // One job with four passes that drop nothing: three of them find all pages in the cache.
    fn passes(loops: u32) -> Report {
        run(
            &format!("--rw=read --bs=64k --size=1m --invalidate=0 --loops={loops}"),
            &device(2, "1500us"),
        )
    }
    let once = passes(1);
    let often = passes(4);
    assert_eq!(often.span.as_ns(), once.span.as_ns() + 3 * copying);
}

/// When two jobs read the same pages, each page is read once ([page-read-once]).
#[test]
fn readers_share_the_pages_that_one_of_them_has_read() {
    let device = device(2, "1500us");
    let alone = run("--rw=read --bs=64k --size=4m", &device);
    let both = run("--rw=read --bs=64k --size=4m --numjobs=2", &device);
    let ios: u64 = both.jobs.iter().flat_map(|job| job.stats.measured()).map(|op| op.ios).sum();
    assert_eq!(ios, 2 * 64);
    // Each job has its own read-ahead, so there may be one window more than for one job.
    assert!(commands(&both) <= commands(&alone) + 1, "{}", commands(&both));
    assert!(both.span.as_ns() <= alone.span.as_ns() + COPY);
}

/// Sectors 64 to 71 are page 8. A reader that needs this page fails there and only there, although
/// the page was read ahead together with others.
#[test]
fn a_page_that_cannot_be_read_fails_only_its_readers() {
    let rule = "[[rule]]\nname = \"bad\"\nsectors = \"64..72\"\nerror = \"medium\"\n";
    let jobs = jobs("--rw=read --bs=4k --size=128k --continue_on_error=read");
    let report = run_under(&jobs, &device(2, "1500us"), &design(), Some(rule));
    let stats = &report.jobs[0].stats;
    assert_eq!((stats.errors, stats.first_error), (1, Some(Status::Medium)));
    assert_eq!(stats.measured().next().unwrap().ios, 31);
    // A window fails once: its pages are read again, one by one as they are needed, and no reader
    // sees the error.
    let once = "[[rule]]\nname = \"once\"\nnth = 1\nerror = \"medium\"\n";
    let report = run_under(&jobs, &device(2, "1500us"), &design(), Some(once));
    let stats = &report.jobs[0].stats;
    assert_eq!((stats.errors, stats.measured().next().unwrap().ios), (0, 32));
    assert_eq!(report.faults[0].fired, 1);
}

/// A short copy costs its fraction of a page's copy.
#[test]
fn a_short_read_copies_a_fraction_of_a_page() {
    let spent = run("--rw=read --bs=512 --size=128k", &device(2, "1500us")).jobs[0].stats.spent;
    assert_eq!(spent.in_calls, Duration::from_ns(256 * 10 * US / 8));
}

/// A request longer than the setting widens the window up to the limit of the device, 1 MiB here.
/// The width depends on the rest of the request at the page that triggers the window: all 256 pages
/// at the start of a call, 128 in its middle.
#[test]
fn a_long_request_is_read_as_one_in_linux_6_12() {
    let today = Design::lookup("mq-none-6.12").unwrap();
    let device = device(2, "1500us");
    let report = run_under(&jobs(DD), &device, &today, None);
    // First page and length: 0 256, 256 128, 384 256. From 640 on the lengths are 128, 128 and 256
    // in turn, up to the window at 1920, whose first page triggers one more.
    assert_eq!(report.stages.count(Action::Issue), 3 + 3 * 3 + 1);
    assert_eq!(run(DD, &device).stages.count(Action::Issue), 65);
    // fio advises sequential access by default: windows are twice as long.
    let advised = parse_args(
        "--name=j --filename=/dev/a --rw=read --bs=4k --size=1g --number_ios=2048".split(' '),
        &NoSource,
    );
    let with_advice = run_under(&advised.unwrap(), &device, &design(), None);
    let without_advice = run("--rw=read --bs=4k --size=1g --number_ios=2048", &device);
    // 8 MiB: windows of 4, 8, 16 and 32 pages, then up to 256 KiB with advice or 128 KiB without.
    assert_eq!(without_advice.stages.count(Action::Issue), 4 + (2048 - 60_u64).div_ceil(32) + 1);
    assert!(
        with_advice.stages.count(Action::Issue) < 40,
        "{}",
        with_advice.stages.count(Action::Issue)
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let options = "--rw=randread --bs=4k-16k --numjobs=3 --size=8m";
    let options = options.replace("--bs", "--bsrange");
    fn once(options: &str) -> (Duration, u64, u64, String) {
        let report = run(options, &device(4, "300us"));
        (report.span, report.totals.events, report.totals.wakeups, format!("{:?}", report.jobs))
    }
    assert_eq!(once(&options), once(&options));
}

/// Two jobs that copy on one processor take turns by call, not by page.
/// Between the pieces of a call no other thread runs.
#[test]
fn a_call_is_copied_without_a_context_switch() {
    let text = "[global]\nfilename_format=f\ndirect=0\nfadvise_hint=0\nsize=1m\nbs=1m\ninvalidate=0\n\
                cpus_allowed=0\n[first]\n[b]\nstonewall\n[c]\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let report = run_under(&jobs, &device(2, "1500us"), &design(), None);
    // Each job begins, copies 256 pages, and reaps its result.
    let switches = [1, 2].map(|at| report.jobs[at].stats.context_switches);
    assert!(switches.iter().all(|switches| *switches <= 2), "{switches:?}");
}
