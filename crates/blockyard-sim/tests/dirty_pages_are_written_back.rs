//! Whole simulations of jobs that write through the page cache and do not sync: flushers write, and
//! writers that are too fast pause. Only the device and the copy of a page take time here.

use crate::free;

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device, FileSystem};
use blockyard_fio::job::{NoSource, Op, parse_bytes};
use blockyard_fio::measure::call_time::CallPart;
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// A device that writes 40 MiB a second, on a machine that begins to write back at 8 MiB of dirty
/// pages and has 32 MiB of them at most. So are the recordings of Linux 6.12 and 7.3.
fn device() -> Device {
    device_with("")
}

/// The same with more `keys` of the machine.
fn device_with(keys: &str) -> Device {
    let free = free::steps();
    let text = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 2048\nmax-segments = 256\n\
         [null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\nsubmit-queues = 1\ndepth = 64\n\
         bandwidth-limit = \"41943040B/s\"\n\
         [cpu]\ncpus = 2\npage-copy = \"10us\"\ndirty-background-bytes = \"8MiB\"\n\
         dirty-bytes = \"32MiB\"\n{keys}{free}"
    );
    Device::parse("test", &text).unwrap()
}

fn run(text: &str) -> Report {
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let mut simulation = Simulation::new(&jobs, &device(), &design, 1).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

fn commands(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

fn written(report: &Report, job: usize) -> u64 {
    report.jobs[job].stats.ops.of(Op::Write).as_deref().unwrap().bytes
}

const MIB: u64 = 1 << 20;

/// Four times as fast as the device: 16 pages are copied in 160 us, and written in 1.6 ms.
///
/// The job ends when the last page is copied, and leaves more pages dirty than the free run (20
/// MiB) and at most the limit (32 MiB). The device has written the rest: 128 to 140 MiB in 3.2 to
/// 3.5 s. Two recordings on a null device took 3.54 and 3.57 s for the same job, with 31.2 MiB
/// dirty. A request has at most 256 pages, so there are at least 160 of them.
#[test]
fn a_writer_that_is_too_fast_gets_the_rate_of_the_device() {
    let report = run("[w]\nioengine=sync\nrw=write\nbs=64k\nsize=160m\nfilename=/dev/a\n");
    assert_eq!(written(&report, 0), 160 * MIB);
    let runtime_ms = report.jobs[0].stats.runtime_ns() / 1_000_000;
    assert!((3_200..3_500).contains(&runtime_ms), "{runtime_ms}");
    // When the device is closed, it gets the rest: 160 MiB at 40 MiB/s, from 8 MiB or 20 ms on.
    let span_ms = report.span.as_ns() / 1_000_000;
    assert!((4_000..4_040).contains(&span_ms), "{span_ms}");
    assert!((160..180).contains(&commands(&report)), "{}", commands(&report));
    // 40,960 pages are copied in 10 us each, and all the rest of the run is pauses.
    let calls = report.jobs[0].stats.calls.as_ref().unwrap();
    let parts = [CallPart::InMemory, CallPart::Throttled].map(|part| calls.of(part).as_ns());
    assert_eq!(parts, [409_600_000, report.jobs[0].stats.runtime_ns() - 409_600_000]);
}

/// Below the background limit nothing is written within 5 s: 4 MiB are copied in 10 ms. They are
/// written when the device is closed, as four requests of 1 MiB, in 100 ms at 40 MiB/s.
#[test]
fn a_few_dirty_pages_stay_in_memory() {
    let report = run("[w]\nioengine=sync\nrw=write\nbs=64k\nsize=4m\nfilename=/dev/a\n");
    let runtime_ns = report.jobs[0].stats.runtime_ns();
    assert_eq!((runtime_ns, commands(&report)), (1024 * 10_000, 4));
    assert_eq!(report.span.as_ns(), runtime_ns + 100_000_000);
}

/// The flusher looks every 5.12 s, and finds a page that is 30 s old at the sixth look. By then the
/// job, which writes 4 KiB a second, has dirtied some 30 pages in a row, which are one request. The
/// pages that it dirties afterwards are younger than 30 s when it ends. They are a second request,
/// when the device is closed.
#[test]
fn old_dirty_pages_are_written_back() {
    let report =
        run("[w]\nioengine=sync\nrw=write\nbs=4k\nsize=1m\nrate_iops=1\ntime_based\nruntime=37\n\
         filename=/dev/a\n");
    assert_eq!(commands(&report), 2);
}

/// Returns when the first command ends, in ms, under a design: a job dirties so many MiB of a
/// machine with 8 GiB, and does nothing more for 8 s.
fn first_ms(design: &str, mib: u64) -> u64 {
    let device = "base = \"null\"\n[limits]\nmax-sectors = 2048\n[null]\ncompletion = \"timer\"\n\
                  completion-time = \"100us\"\n[cpu]\nmemory = \"8GiB\"\npage-copy = \"1us\"\n";
    let device = Device::parse("test", &format!("{device}{}", free::steps())).unwrap();
    let text = format!(
        "[w]\nioengine=sync\nrw=write\nbs=64k\nsize={mib}m\nfilename=/dev/a\n\
         thinktime=8s\nthinktime_blocks={}\n",
        mib * 16 - 1
    );
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup(design).unwrap();
    let mut simulation = Simulation::new(&jobs, &device, &design, 1).unwrap();
    while commands(&simulation.report()) == 0 {
        assert!(simulation.advance(1).unwrap(), "a command comes before the end");
    }
    simulation.world().now().as_ns() / 1_000_000
}

/// With 64 MiB of dirty pages, a machine of 8 GiB is below its limit of 819 MiB. In Linux 6.12 a
/// new disk has no part of the limit, so the first look, at 5.12 s, writes. In 7.3 it has 94 MiB,
/// an eighth of what is left, so that the pages stay until the disk is closed; with 128 MiB dirty
/// it has 86 MiB. The first request takes 100 us.
#[test]
fn the_first_look_writes_what_is_above_the_part_of_a_new_disk() {
    let found = [("mq-none-6.12", 64), ("mq-none", 64), ("mq-none", 128)]
        .map(|(design, mib)| first_ms(design, mib));
    assert_eq!(found[0], 5_120);
    assert!((8_000..8_100).contains(&found[1]), "{} ms", found[1]);
    assert_eq!(found[2], 5_120);
}

/// On a file system each file has an age of its own. The first job dirties a page a second from 0
/// on, and the second one 64 MiB at 28 s. At the sixth look, at 30.72 s, the 31 pages of the first
/// file are old, and those of the second are not. When the run ends, at 34 s, the rest stays dirty.
#[test]
fn files_are_written_back_by_their_own_age() {
    let device = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\n\
                  [cpu]\nmemory = \"8GiB\"\npage-copy = \"1us\"\n";
    let device = Device::parse("test", &format!("{device}{}", free::steps())).unwrap();
    let text = "[global]\nioengine=sync\nrw=write\n[a]\nbs=4k\nsize=1m\nrate_iops=1\nruntime=34\n\
                time_based\n[b]\nbs=64k\nsize=64m\nstartdelay=28\n";
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let ext4 = FileSystem::lookup("ext4").unwrap();
    let conditions = Conditions { file_system: Some(&ext4), ..Conditions::new(1) };
    let design = Design::lookup("mq-none").unwrap();
    let simulation = Simulation::under(&jobs, &device, &design, conditions).unwrap();
    let pages = simulation.finish().unwrap().totals.written_back_bytes / 4096;
    assert!((30..=32).contains(&pages), "{pages} pages");
}

/// Two writers on one disk share its rate evenly, within 5 points of 100.
#[test]
fn two_writers_that_are_too_fast_share_the_device() {
    let report =
        run("[global]\nioengine=sync\nrw=write\nbs=64k\nsize=400m\nruntime=4\nfilename=/dev/a\n\
         [a]\noffset=0\n[b]\noffset=512m\n");
    let [a, b] = [0, 1].map(|job| written(&report, job));
    // 4 s at 40 MiB/s, and at most 32 MiB dirty.
    assert!((180..=192).contains(&((a + b) / MIB)), "{} MiB", (a + b) / MIB);
    assert!((45..=55).contains(&(a * 100 / (a + b))), "{a} and {b}");
}

/// Pages that are dirty from the start on are old after 1 s. A flusher that looks every 400 ms, 416
/// ms in slots of 32 ms, finds so at the third look, at 1.248 s. If nobody looks, they are written
/// when the job closes the disk, after 65 copies of 10 us and a pause of 3 s. They are one request
/// of 260 KiB, and the device counts in steps of 20 ms.
#[test]
fn the_age_of_pages_and_the_time_between_two_looks_are_settings() {
    let text = "[w]\nioengine=sync\nrw=write\nbs=4k\nsize=8m\nfilename=/dev/a\nnumber_ios=65\n\
                thinktime=3s\nthinktime_blocks=64\n";
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    for (writeback, first_ms) in [("400ms", 1_248), ("0s", 3_000)] {
        let keys = format!("dirty-expire = \"1s\"\ndirty-writeback = \"{writeback}\"\n");
        let device = device_with(&keys);
        let mut simulation = Simulation::new(&jobs, &device, &design, 1).unwrap();
        while commands(&simulation.report()) == 0 {
            assert!(simulation.advance(1).unwrap(), "a command comes before the end");
        }
        let ms = simulation.world().now().as_ns() / 1_000_000;
        assert!((first_ms..first_ms + 45).contains(&ms), "{writeback}: {ms} ms");
    }
}

/// When the job ends, the task that closes the card has 16 MiB under writeback and waits for room,
/// while a flusher takes the pages that were left. The task then has nothing to write, and waited
/// for ever. Without wbt, as it bounds both.
#[test]
fn a_task_that_waits_for_room_wakes_after_a_flusher_has_taken_the_rest() {
    let text =
        "[w]\nioengine=sync\nrw=write\nbs=1m\nsize=4g\nfilename=/dev/a\nruntime=1\ntime_based\n";
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = "base = \"mq-deadline\"\n[queue]\nwbt-latency = \"off\"";
    let design = Design::parse("test", design).unwrap();
    let card = Device::lookup("sd-a1").unwrap();
    let report = Simulation::new(&jobs, &card, &design, 1).unwrap().finish().unwrap();
    // What was written in a second of the job's time is on the card at the end.
    let sectors = report.totals.written_back_bytes / 512;
    assert_eq!(sectors * 512, written(&report, 0));
}

/// Persistent memory answers within the call that submits. Of 350 pages, one each 100 ms, the first
/// are 30 s old at the sixth look; the last ones are written when the device is closed.
#[test]
fn pages_of_a_device_that_answers_within_the_call_are_written_back() {
    let text = "[w]\nioengine=sync\nrw=randwrite\nbs=4k\nsize=1g\nrate_iops=10\nruntime=35\n\
                time_based\nfilename=/dev/a\n";
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("pmem-raw").unwrap();
    let pmem = Device::lookup("pmem-dram").unwrap();
    let report = Simulation::new(&jobs, &pmem, &design, 1).unwrap().finish().unwrap();
    assert!((349..=351).contains(&(written(&report, 0) / 4096)), "{}", written(&report, 0));
    assert_eq!(report.totals.written_back_bytes, written(&report, 0));
}

/// A command takes 10 ms, and 64 are in the device at a time. Each 256 writes, 1 MiB, go to the
/// device and nobody waits for them, so a read of a page waits for its own command alone.
#[test]
fn a_read_does_not_wait_for_writeback_that_nobody_waits_for() {
    let free = free::steps();
    let device = format!(
        "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"10ms\"\nsubmit-queues = 1\n\
         depth = 64\n[cpu]\ncpus = 2\npage-copy = \"1us\"\n{free}"
    );
    let device = Device::parse("test", &device).unwrap();
    let text = "[m]\nioengine=sync\nrw=randrw\npercentage_random=100,0\nrwmixread=5\nbs=4k\nsize=1g\n\
                sync_file_range=write:256\nnumber_ios=4000\nfilename=/dev/a\n";
    let jobs = parse_bytes("f.fio", text.as_bytes(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let reads = report.jobs[0].stats.ops.of(Op::Read).as_deref().unwrap();
    assert!(reads.ios > 100, "{}", reads.ios);
    assert!(reads.lat_ns.max() < 11_000_000, "{} ns", reads.lat_ns.max());
}
