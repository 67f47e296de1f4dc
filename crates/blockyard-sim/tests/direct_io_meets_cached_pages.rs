//! Whole simulations of direct I/O to files whose pages are in the cache, or that are those of a
//! file system. Only the device and the copy of a page take time here.

use crate::free;

use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device, FileSystem};
use blockyard_fio::job::{NoSource, Op, parse_args, parse_bytes};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const US: u64 = 1_000;

/// A device with two commands at a time, each 100 us long, also a flush. It has a cache.
fn device(fua: bool) -> Device {
    free::disk_of_two_commands(4, &format!("write-cache = true\nfua = {fua}\n"))
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

/// Runs jobs of the disk `/dev/a`. The first has 32 KiB in the cache from 80 us on, dirty, and the
/// disk open for 10 ms.
fn run_beside_a_writer(others: &str) -> Report {
    let text = format!(
        "[global]\nioengine=sync\nfilename=/dev/a\ninvalidate=0\nnumber_ios=1\n\
         [w]\nrw=write\nbs=32k\nnumber_ios=2\nthinktime=10ms\ncpus_allowed=0\n{others}"
    );
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let mut simulation = Simulation::new(&jobs, &device(false), &design, 1).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

/// The latency of the only I/O of a job.
fn latency(report: &Report, job: usize, op: Op) -> u64 {
    let of_op = report.jobs[job].stats.ops.of(op).as_deref().unwrap();
    assert_eq!(of_op.ios, 1);
    of_op.lat_ns.max()
}

/// A direct read of 16 KiB first writes its four dirty pages in one request of 100 us. The other
/// four, and eight of the second write, are left when the disk is closed: their pages are
/// neighbours, and one request.
#[test]
fn a_direct_read_writes_the_dirty_pages_of_its_range_first() {
    for engine in ["sync", "libaio", "io_uring"] {
        let read = format!("[r]\nrw=read\ndirect=1\nbs=16k\nstartdelay=100us\nioengine={engine}\n");
        let report = run_beside_a_writer(&read);
        assert_eq!(latency(&report, 1, Op::Read), 200 * US, "{engine}");
        assert_eq!((commands(&report), report.totals.written_back_bytes), (3, 64 << 10));
    }
    let clean = "[r]\nrw=read\ndirect=1\nbs=16k\noffset=1m\nstartdelay=100us\n";
    assert_eq!(latency(&run_beside_a_writer(clean), 1, Op::Read), 100 * US);
}

/// A direct write does the same, and drops the four pages. A read of all eight through the cache
/// then reads four of them, in one request, and copies eight.
#[test]
fn a_direct_write_drops_the_pages_of_its_range() {
    let read = "[b]\nrw=read\nbs=32k\nfadvise_hint=random\nstartdelay=1ms\ncpus_allowed=2\n";
    let write = "[d]\nrw=write\ndirect=1\nbs=16k\nstartdelay=100us\ncpus_allowed=1\n";
    let report = run_beside_a_writer(&format!("{write}{read}"));
    assert_eq!(latency(&report, 1, Op::Write), 200 * US);
    assert_eq!(latency(&report, 2, Op::Read), 180 * US);
    let report = run_beside_a_writer(read);
    assert_eq!(latency(&report, 1, Op::Read), 80 * US, "all pages are there");
}

/// A job with one I/O of 16 KiB, away from the dirty pages.
fn part(name: &str, delay: &str, options: &str) -> String {
    format!("[{name}]\nbs=16k\noffset=1m\nstartdelay={delay}\n{options}\n")
}

/// A direct write takes 100 us from 499 us on. A read through the cache has its four pages at 500
/// us, which may be older than what is written. The end of the write drops them, so a later read
/// needs the device again: 100 us, and 40 us of copying.
#[test]
fn pages_that_are_read_during_a_direct_write_are_dropped() {
    let write = part("d", "499us", "rw=write\ndirect=1\ncpus_allowed=1");
    let reads = "rw=read\nfadvise_hint=random\ncpus_allowed=2";
    let [early, late] = [("a", "400us"), ("b", "2ms")].map(|(name, at)| part(name, at, reads));
    let report = run_beside_a_writer(&format!("{early}{late}{write}"));
    assert_eq!([1, 2].map(|job| latency(&report, job, Op::Read)), [140 * US, 140 * US]);
    let report = run_beside_a_writer(&format!("{early}{late}"));
    assert_eq!([1, 2].map(|job| latency(&report, job, Op::Read)), [140 * US, 40 * US]);
}

/// A direct job reads 16 KiB twice, 100 us each. While it does so, another job makes 32 KiB dirty
/// elsewhere on the disk. As fio opens the file anew for the second pass and drops its pages, the
/// disk gets the 32 KiB before, and the job waits 100 us for them.
#[test]
fn a_direct_job_drops_pages_before_each_pass() {
    for engine in ["sync", "libaio", "io_uring"] {
        let passes = format!(
            "[r]\nrw=read\ndirect=1\nbs=16k\noffset=1m\nsize=16k\nloops=2\nnumber_ios=2\n\
             ioengine={engine}\ncpus_allowed=1\n"
        );
        let report = run_beside_a_writer(&format!("{passes}invalidate=1\n"));
        assert_eq!((report.jobs[1].stats.runtime_ns(), commands(&report)), (300 * US, 4));
        let report = run_beside_a_writer(&passes);
        assert_eq!((report.jobs[1].stats.runtime_ns(), commands(&report)), (200 * US, 3));
    }
}

/// A job that ends by time begins anew instead, in order or at random. A direct one then drops
/// nothing, so no read waits for the 32 KiB, which get to the disk when it is closed: strace of fio
/// 3.33 has no `fadvise64(DONTNEED)` there, and one with `direct=0`.
#[test]
fn a_direct_job_that_begins_anew_drops_nothing() {
    for order in ["read", "randread"] {
        let report = run_beside_a_writer(&format!(
            "[r]\nrw={order}\ndirect=1\nbs=16k\noffset=1m\nsize=16k\ntime_based\nruntime=1ms\n\
             number_ios=99\ncpus_allowed=1\ninvalidate=1\n"
        ));
        let stats = &report.jobs[1].stats;
        let reads = stats.ops.of(Op::Read).as_deref().unwrap().ios;
        assert!(reads >= 10, "{order}: {reads}");
        assert_eq!((stats.runtime_ns(), commands(&report)), (reads * 100 * US, reads + 1));
    }
}

fn run_on(name: &str, options: &str, fua: bool) -> Result<Report, String> {
    let file_system = FileSystem::lookup(name).unwrap();
    let all = format!("--name=j --filename=f --direct=1 --rw=write --bs=4k {options}");
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let conditions = Conditions { file_system: Some(&file_system), ..Conditions::new(1) };
    let design = Design::lookup("mq-none").unwrap();
    let simulation = Simulation::under(&jobs, &device(fua), &design, conditions);
    let mut simulation = simulation.map_err(|error| error.to_string())?;
    simulation.check_every_step();
    Ok(simulation.finish().unwrap())
}

/// Pages 0 and 1 of a new file with blocks, and then both once more. The first sync waits for the
/// superblock of the journal, the blocks, a flush, the commit block and a flush, as there is no
/// FUA: 500 us. The second one leaves out the superblock. The third finds nothing but the time of
/// the file changed, and flushes.
#[test]
fn a_sync_of_direct_writes_commits_what_their_data_needs() {
    let options = "--ioengine=sync --size=8k --io_size=16k --fdatasync=1";
    let report = run_on("ext4", options, false).unwrap();
    let syncs = report.jobs[0].stats.sync_lat_ns.as_ref().unwrap();
    assert_eq!((syncs.count(), syncs.min(), syncs.max()), (3, 100 * US, 500 * US));
    assert_eq!(report.jobs[0].stats.runtime_ns(), (4 * 100 + 500 + 400 + 100) * US);
    let overwrite = run_on("ext4", &format!("{options} --overwrite=1"), false).unwrap();
    assert_eq!(overwrite.jobs[0].stats.runtime_ns(), (4 * 100 + 3 * 100) * US);
    // A record of XFS is one write between two flushes.
    let xfs = run_on("xfs", options, false).unwrap();
    assert_eq!(xfs.jobs[0].stats.runtime_ns(), (4 * 100 + 300 + 300 + 100) * US);
}

/// A file has its length and reserved blocks, and data in the first page only. Of four direct reads
/// of a page, three find no data and fill a page with zeros, 10 us each, without a command. Two at
/// a time, they are done while the first one takes 100 us. Where the file has its data, each takes
/// 100 us.
#[test]
fn a_direct_read_of_blocks_without_data_does_no_io() {
    let write = "--size=16k --number_ios=1 --ioengine=sync";
    let read = "--name=r --filename=f --direct=1 --rw=read --bs=4k --size=16k --startdelay=1ms";
    for name in ["ext4", "xfs"] {
        let [sync, two] = ["--ioengine=sync", "--ioengine=libaio --iodepth=2"]
            .map(|engine| run_on(name, &format!("{write} {read} {engine}"), false).unwrap());
        assert_eq!((sync.jobs[1].stats.runtime_ns(), commands(&sync)), (130 * US, 2), "{name}");
        assert_eq!((two.jobs[1].stats.runtime_ns(), commands(&two)), (100 * US, 2), "{name}");
        let reads = sync.jobs[1].stats.ops.of(Op::Read).as_deref().unwrap();
        assert_eq!((reads.ios, reads.bytes), (4, 16 << 10), "zeros are read, too");
        let written = format!("{write} --overwrite=1 {read} --ioengine=sync");
        let report = run_on(name, &written, false).unwrap();
        assert_eq!((report.jobs[1].stats.runtime_ns(), commands(&report)), (400 * US, 5), "{name}");
    }
}

/// Writes of 6 KiB: the second one begins in page 1, which has data, and ends in page 2, which has
/// none. The first two are synced, and both syncs commit: 300 us for a record of XFS between two
/// flushes, after 100 us for each write.
#[test]
fn a_direct_write_from_old_to_new_data_needs_a_commit() {
    let report = run_on("xfs", "--bs=6k --size=18k --ioengine=sync --fdatasync=1", false).unwrap();
    assert_eq!(report.jobs[0].stats.runtime_ns(), (3 * 100 + 2 * 300) * US);
}

/// With `O_DSYNC`, a write to data that is there has FUA and needs no flush; without FUA a flush
/// follows. Another one is a plain write and a commit. Both commits have FUA: the first one is a
/// superblock, blocks, a flush, and a block.
#[test]
fn a_durable_write_has_fua_only_where_no_commit_follows() {
    for engine in ["sync", "libaio", "io_uring"] {
        let options = format!("--ioengine={engine} --size=8k --sync=dsync");
        let overwrite = format!("{options} --overwrite=1");
        let runtimes = [(&*overwrite, true), (&*overwrite, false), (&*options, true)]
            .map(|(options, fua)| run_on("ext4", options, fua).unwrap())
            .map(|report| (report.jobs[0].stats.runtime_ns() / US, commands(&report)));
        assert_eq!(runtimes, [(200, 2), (400, 4), (200 + 400 + 300, 9)], "{engine}");
    }
}

/// Four writes of an asynchronous engine make a new file longer, so each ends before the next. With
/// blocks and length there, two are in flight at a time.
#[test]
fn writes_that_make_a_file_longer_wait_for_one_another() {
    for engine in ["libaio", "io_uring"] {
        let options = format!("--ioengine={engine} --iodepth=4 --size=16k");
        let report = run_on("xfs", &format!("{options} --fallocate=none"), true).unwrap();
        assert_eq!(report.span, Duration::from_us(400), "{engine}");
        assert_eq!(run_on("xfs", &options, true).unwrap().span, Duration::from_us(200));
    }
}

/// Several durable writes in flight are refused if a worker syncs the file behind each of them.
#[test]
fn syncs_in_workers_are_refused() {
    let options = "--ioengine=libaio --iodepth=2 --size=16k --sync=dsync";
    let refused = run_on("ext4", options, true).unwrap_err();
    assert!(refused.contains("a worker syncs the file"), "{refused}");
    let report = run_on("ext4", &format!("{options} --overwrite=1"), true).unwrap();
    assert_eq!((report.span, commands(&report)), (Duration::from_us(200), 4));
    // Reads sync nothing.
    let report = run_on("ext4", &format!("{options} --rw=read"), true).unwrap();
    assert_eq!((report.span, commands(&report)), (Duration::from_us(200), 4));
}

/// 64 jobs write a page to one of 16 files each second. After 5 s of the first change, a commit has
/// the inodes of 1024 files, 16 in a block: more bios than the jobs have in flight.
#[test]
fn a_commit_may_have_more_bios_than_the_jobs() {
    let text = "[j]\nioengine=sync\ndirect=1\nrw=write\nbs=4k\nsize=64k\nnrfiles=16\nnumjobs=64\n\
                rate_iops=1\nruntime=6\ntime_based\n";
    let jobs = parse_bytes("f", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let ext4 = FileSystem::lookup("ext4").unwrap();
    let conditions = Conditions { file_system: Some(&ext4), ..Conditions::new(1) };
    let device = device(true);
    let simulation = Simulation::under(&jobs, &device, &design, conditions);
    let report = simulation.unwrap().finish().unwrap();
    let bios = report.stages.count(Action::Queue);
    // 6 or 7 writes of each job, and at least the 64 blocks of inodes.
    assert!(bios > 64 * 6 + 64, "{bios}");
}
