//! Whole simulations that write through the page cache and sync. Only the device and the copy of a
//! page take time here, so that every instant can be computed by hand.

use crate::free;

use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard::trace::Action;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device, FaultRules, FileSystem};
use blockyard_fio::job::{JobFile, NoSource, Op, parse_args, parse_bytes};
use blockyard_fio::measure::call_time::CallPart;
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const US: u64 = 1_000;

/// A device with two commands at a time, each 100 us long, also a flush if there is a cache.
fn device(has_cache: bool) -> Device {
    free::disk_of_two_commands(2, &format!("write-cache = {has_cache}\n"))
}

fn jobs(options: &str) -> JobFile {
    jobs_on("/dev/a", options)
}

fn jobs_on(file: &str, options: &str) -> JobFile {
    let all = format!("--name=j --filename={file} --ioengine=sync --size=1g {options}");
    parse_args(all.split_whitespace(), &NoSource).unwrap()
}

fn run_under(jobs: &JobFile, device: &Device, rules: Option<&str>) -> Report {
    let rules = rules.map(|text| FaultRules::parse("f.toml", text).unwrap());
    let conditions = Conditions { faults: rules.as_ref(), ..Conditions::new(1) };
    let design = Design::lookup("mq-none").unwrap();
    let mut simulation = Simulation::under(jobs, device, &design, conditions).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

fn run(options: &str, has_cache: bool) -> Report {
    run_under(&jobs(options), &device(has_cache), None)
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

/// etcd's job. Four writes of 2300 bytes lie on pages 0; 0 and 1; 1; 1 and 2. The first write to
/// each page is to a part of it, so the page is read first: three reads. A copy of 2300, 1796, 504,
/// 2300, 1292 and 1008 of 4096 bytes takes its part of 10 us.
const LOG: &str = "--rw=write --bs=2300 --number_ios=4";
const LOG_COPIES: u64 = 5615 + 4384 + 1230 + 5615 + 3154 + 2460;

/// A sync follows each write but the last. It writes one or two pages, in one request, and flushes.
/// The end of the job writes the last two pages, without a flush, in no time of the job.
#[test]
fn a_log_is_written_page_by_page_and_synced() {
    for (syncs, has_cache) in [("fdatasync", true), ("fsync", true), ("fdatasync", false)] {
        let report = run(&format!("{LOG} --{syncs}=1"), has_cache);
        let flush = if has_cache { 100 * US } else { 0 };
        let sync = 100 * US + flush;
        let runtime = 300 * US + LOG_COPIES + 3 * sync;
        assert_eq!(report.jobs[0].stats.runtime_ns(), runtime);
        assert_eq!(report.span, Duration::from_ns(runtime + 100 * US));
        let syncs = report.jobs[0].stats.sync_lat_ns.as_ref().unwrap();
        assert_eq!((syncs.count(), syncs.min(), syncs.max()), (3, sync, sync));
        // Three reads, three writes, a flush with each of them if there is a cache, and a write.
        assert_eq!(commands(&report), if has_cache { 10 } else { 7 });
        let writes = report.jobs[0].stats.ops.of(Op::Write).as_deref().unwrap();
        assert_eq!((writes.ios, writes.bytes), (4, 4 * 2300));
        assert_eq!((writes.lat_ns.min(), writes.lat_ns.max()), (5615, 100 * US + 5615));
        // Three reads and three times a writeback are waited for, and what is left is copying.
        let expected = [LOG_COPIES, 300 * US, 0, 300 * US, 3 * flush, 0, 0];
        assert_eq!(parts(&report), (7, 3, expected));
    }
}

/// Returns the number of calls and of pages read for them, and the parts of their time, which add
/// up to their latencies.
fn parts(report: &Report) -> (u64, u64, [u64; CallPart::ALL.len()]) {
    let stats = &report.jobs[0].stats;
    let calls = stats.calls.as_ref().unwrap();
    let parts = CallPart::ALL.map(|part| calls.of(part).as_ns());
    let writes = stats.ops.of(Op::Write).as_deref().unwrap().lat_ns.sum();
    let syncs = stats.sync_lat_ns.as_ref().map_or(0, |of| of.sum());
    assert_eq!(u128::from(parts.iter().sum::<u64>()), writes + syncs);
    (calls.calls, calls.page_reads, parts)
}

/// The first write of the log has read its page at 100 us and copied it at 105.6 us. Its sync
/// writes until 205.6 us and flushes until 305.6 us. The second write has copied the rest of the
/// page at 310 us. So a page is in memory alone at 150 and 320 us, and nothing is lost that was
/// synced.
#[test]
fn a_power_cut_takes_what_no_sync_has_written() {
    let power_cuts = [50, 150, 250, 320].map(Duration::from_us).to_vec();
    let verify = Verify { power_cuts, ..Verify::default() };
    let jobs = jobs(&format!("{LOG} --fdatasync=1 --verify=crc32c --verify_policy=fsynced"));
    let conditions = Conditions { verify: Some(&verify), ..Conditions::new(1) };
    let design = Design::lookup("mq-none").unwrap();
    let simulation = Simulation::under(&jobs, &device(true), &design, conditions).unwrap();
    let verified = simulation.finish().unwrap().verified.unwrap();
    assert_eq!(verified.violations, []);
    let cuts = verified.power_cuts.iter();
    let lost: Vec<_> = cuts.map(|cut| (cut.lost_from_memory, cut.lost_by_wrong)).collect();
    assert_eq!(lost, [(Some(0), 0), (Some(8), 0), (Some(0), 0), (Some(8), 0)]);
    // The page that is written and not flushed at 250 us may be lost.
    let unflushed = [0, 1, 3].map(|cut: usize| verified.power_cuts[cut].lost_by_right);
    assert_eq!(unflushed, [0, 0, 0]);
}

/// On ext4, the log is a new file whose blocks are allocated beforehand: no page is read first. The
/// first two syncs write their data and wait for a commit, since the first write to a block changes
/// the extents of the file. A commit is the blocks of the transaction, a flush, the commit block,
/// and a flush, as the device has no FUA. The first commit also writes the journal's superblock.
/// The third sync, whose page was written before, flushes alone.
#[test]
fn a_sync_waits_for_the_journal_of_its_file_system() {
    let ext4 = FileSystem::lookup("ext4").unwrap();
    let conditions = Conditions { file_system: Some(&ext4), ..Conditions::new(1) };
    let design = Design::lookup("mq-none").unwrap();
    let jobs = jobs_on("log", &format!("{LOG} --fdatasync=1"));
    let simulation = Simulation::under(&jobs, &device(true), &design, conditions).unwrap();
    let report = simulation.finish().unwrap();
    let expected = [LOG_COPIES, 0, 0, 300 * US, 100 * US, 500 * US + 400 * US, 0];
    assert_eq!(parts(&report), (7, 0, expected));
}

/// With `O_DSYNC` each write contains its sync, also the last.
#[test]
fn a_write_with_o_dsync_contains_its_sync() {
    for mode in ["dsync", "sync"] {
        let report = run(&format!("{LOG} --sync={mode}"), true);
        assert_eq!(report.span, Duration::from_ns(300 * US + LOG_COPIES + 4 * 200 * US));
        let stats = &report.jobs[0].stats;
        assert!(stats.sync_lat_ns.is_none(), "the job calls no sync");
        let writes = stats.ops.of(Op::Write).as_deref().unwrap();
        assert_eq!((writes.lat_ns.min(), writes.lat_ns.max()), (205_615, 305_615));
        let expected = [LOG_COPIES, 300 * US, 0, 400 * US, 400 * US, 0, 0];
        assert_eq!(parts(&report), (4, 3, expected));
    }
}

/// Whole pages are not read. Eight pages in a row are written back as one request, and eight random
/// ones as eight, two at a time. The ninth page is written when the disk is closed. A device of two
/// commands has two places for writeback, so nothing waits for a tag; without a throttle three
/// pairs of bios do.
#[test]
fn neighbours_are_written_back_as_one_request() {
    let row = run("--rw=write --bs=4k --fsync=8 --number_ios=9", true);
    let span = Duration::from_ns((9 * 10 + 100 + 100 + 100) * US);
    assert_eq!((row.span, commands(&row)), (span, 3));
    let random = "--rw=randwrite --bs=4k --fsync=8 --number_ios=9 --randseed=3";
    let random = run(random, true);
    let span = Duration::from_ns((9 * 10 + 400 + 100 + 100) * US);
    assert_eq!((random.span, commands(&random)), (span, 10));
    assert_eq!(random.totals.tag_waits, 0);
}

/// A store to a page of a mapping reads the page first, also if all of it is written. Advised to
/// read in order, Linux reads as far as it may for the first page: 64 pages, of 128 KiB twice, with
/// a mark in the middle. The 33rd store starts the next window, which nobody waits for. A sync
/// writes 16 pages in one request and flushes, three times, and the rest is written at the end.
#[test]
fn a_mapped_page_is_read_before_it_is_written() {
    let report = run("--ioengine=mmap --rw=write --bs=4k --number_ios=64 --fsync=16", true);
    assert_eq!(report.jobs[0].stats.runtime_ns(), (100 + 64 * 10 + 3 * 200) * US);
    assert_eq!(commands(&report), 1 + 1 + 3 * 2 + 1);
    // At random each page is read alone: 4 of them for two stores of 8 KiB.
    let random = run("--ioengine=mmap --rw=randwrite --bs=8k --number_ios=2 --randseed=3", true);
    assert_eq!(random.jobs[0].stats.runtime_ns(), 4 * 110 * US);
}

/// On ext4, fio writes a file before it maps it. Each of fio's syncs is `msync` of the mapping, a
/// sync of the data: no block and no length is new, so there is no commit, and the times are those
/// of the raw disk. `sync=` means nothing to a store. Closing the file writes nothing.
#[test]
fn each_sync_of_a_mapping_syncs_its_data() {
    let ext4 = FileSystem::lookup("ext4").unwrap();
    let design = Design::lookup("mq-none").unwrap();
    for sync in ["fsync=16", "fdatasync=16", "sync_file_range=write:16", "fsync=16 --sync=1"] {
        let stores = "--ioengine=mmap --rw=write --bs=4k --number_ios=64";
        let jobs = jobs_on("log", &format!("{stores} --{sync}"));
        let conditions = Conditions { file_system: Some(&ext4), ..Conditions::new(1) };
        let simulation = Simulation::under(&jobs, &device(true), &design, conditions).unwrap();
        let report = simulation.finish().unwrap();
        let runtime = (100 + 64 * 10 + 3 * 200) * US;
        assert_eq!(report.jobs[0].stats.runtime_ns(), runtime, "{sync}");
        assert_eq!(commands(&report), 1 + 1 + 3 * 2, "{sync}");
    }
}

/// Linux 6.12 and 7.3 write 32 KiB behind every eighth write of 4 KiB in one request, and do not
/// flush. With all its steps, each call waits for its request. A call that only writes returns
/// without a wait. Three calls follow 8, 16 and 24 of 32 writes. What is dirty after 320 us and the
/// waits, 32 or 128 KiB, is written in one request when the disk is closed.
#[test]
fn a_sync_of_a_range_writes_it_without_a_flush() {
    let all = "wait_before,write,wait_after";
    for (steps, sync, written) in [(all, 100 * US, 4), ("write", 0, 4), ("wait_after", 0, 1)] {
        let options = format!("--rw=write --bs=4k --number_ios=32 --sync_file_range={steps}:8");
        let report = run(&options, true);
        let syncs = report.jobs[0].stats.sync_lat_ns.as_ref().unwrap();
        assert_eq!((syncs.count(), syncs.min(), syncs.max()), (3, sync, sync), "{steps}");
        let runtime = 32 * 10 * US + 3 * sync;
        assert_eq!(report.jobs[0].stats.runtime_ns(), runtime, "{steps}");
        assert_eq!(report.span, Duration::from_ns(runtime + 100 * US), "{steps}");
        assert_eq!(commands(&report), written, "{steps}");
    }
}

/// A page that was written to is read from the cache. `end_fsync` writes the page once, however
/// often it was written to.
#[test]
fn a_page_that_was_written_is_read_from_the_cache() {
    let text = "[global]\nfilename_format=f\nioengine=sync\nsize=64k\nbs=64k\nfadvise_hint=0\n\
                [w]\nrw=write\nloops=3\nend_fsync=1\nbs=4k\n[r]\nstonewall\nrw=read\ninvalidate=0\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let report = run_under(&jobs, &device(false), None);
    // A sync at the end of each pass: 16 pages of 10 us, and one request of 100 us.
    let runtimes = [0, 1].map(|at| report.jobs[at].stats.runtime_ns());
    assert_eq!(runtimes, [3 * (16 * 10 + 100) * US, 16 * 10 * US]);
    assert_eq!(commands(&report), 3);
}

/// Writeback of page 0 fails once. The sync fails without a flush, the next one finds the page
/// clean, and the job goes on. Page 2 is written when the disk is closed.
#[test]
fn an_error_of_writeback_fails_one_sync() {
    let rule = "[[rule]]\nname = \"bad\"\nop = [\"write\"]\nnth = 1\nerror = \"medium\"\n";
    let options = "--rw=write --bs=4k --fsync=1 --number_ios=3 --continue_on_error=write";
    let report = run_under(&jobs(options), &device(true), Some(rule));
    let stats = &report.jobs[0].stats;
    assert_eq!((stats.errors, stats.first_error), (1, Some(Status::Medium)));
    assert_eq!(stats.sync_lat_ns.as_ref().unwrap().count(), 1);
    assert_eq!(report.span, Duration::from_ns((3 * 10 + 100 + 200 + 100) * US));
}

/// Two writers of one file sync all of it, each what both have written. No page is written by two
/// bios, and each sync ends.
#[test]
fn two_jobs_sync_one_file() {
    let options = "--rw=randwrite --bsrange=512-16k --bs_unaligned --size=256k --fsync=3 --numjobs=2 \
                   --io_size=1g --number_ios=300 --norandommap";
    let report = run(options, true);
    for job in &report.jobs {
        assert_eq!(job.stats.sync_lat_ns.as_ref().unwrap().count(), 99);
    }
}

/// Two writers of 10 and 20 pages have one disk open. When the first one ends, nothing is written.
/// When the second one does, the disk gets all 30 pages in one request. Then the job behind them
/// begins. It reads page 0, which `invalidate` has dropped.
#[test]
fn the_last_job_that_has_a_disk_open_writes_all_of_it() {
    let text = "[global]\nfilename=/dev/a\nioengine=sync\nrw=write\nbs=4k\nsize=1g\n\
                [a]\nnumber_ios=10\n[b]\noffset=40k\nnumber_ios=20\ncpus_allowed=1\n\
                [r]\nstonewall\nrw=read\nfadvise_hint=random\nnumber_ios=1\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let report = run_under(&jobs, &device(true), None);
    let runtimes = [0, 1, 2].map(|at| report.jobs[at].stats.runtime_ns());
    assert_eq!(runtimes, [100 * US, 200 * US, 110 * US]);
    assert_eq!(report.span, Duration::from_ns((200 + 100 + 110) * US));
    assert_eq!(commands(&report), 2);
}

/// A job that begins 50 us later drops the pages of the disk. It first waits for the five pages
/// that the other job has dirtied by then, whose request takes 100 us, and then copies its own.
#[test]
fn a_job_that_drops_pages_waits_for_their_writeback() {
    let text = "[global]\nfilename=/dev/a\nioengine=sync\nrw=write\nbs=4k\nsize=1g\n\
                [a]\nnumber_ios=30\n[b]\noffset=512m\nnumber_ios=1\nstartdelay=50us\n\
                cpus_allowed=1\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let report = run_under(&jobs, &device(true), None);
    let runtimes = [0, 1].map(|at| report.jobs[at].stats.runtime_ns());
    assert_eq!(runtimes, [300 * US, 110 * US]);
    // The other 25 pages of the first job and the page of the second are two requests.
    assert_eq!((report.span, commands(&report)), (Duration::from_ns(400 * US), 3));
}

/// Another file in the same sectors as dirty pages is refused, with the line of the job.
#[test]
fn another_file_does_not_meet_dirty_pages() {
    let text = "[w]\nfilename=/dev/a\nrw=write\nfsync=1\nsize=1m\n[r]\nsize=1m\ndirect=1\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let refused = Simulation::new(&jobs, &device(true), &design, 1).unwrap_err().to_string();
    assert!(refused.starts_with("f:6: ") && refused.contains("same sectors"), "{refused}");
}
