//! Reads of a flash drive wait behind writes that it has accepted, as its profile says: for dies in
//! order of arrival, and for room in the buffer. So whoever holds writes back, such as a
//! scheduler, shortens the tail of reads; where reads go first everywhere, nobody can.

use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// Bytes of a write.
const WRITE: u64 = 128 << 10;

/// Runs a reader at depth 1 and a writer of 128 KiB at `depth` on `nvme-tlc` with other figures.
fn run(figures: &[(&str, &str)], writer: &str, depth: u64) -> Report {
    run_on("nvme-tlc", figures, writer, depth)
}

/// The same on the built-in device `name`.
fn run_on(name: &str, figures: &[(&str, &str)], writer: &str, depth: u64) -> Report {
    let figures =
        figures.iter().map(|(key, value)| Override { key: (*key).into(), value: (*value).into() });
    let device = Device::lookup_with(name, &figures.collect::<Vec<_>>()).unwrap();
    let options = format!(
        "--name=global --direct=1 --filename=drive --ioengine=io_uring --time_based --ramp_time=300ms \
         --runtime=700ms --name=reader --rw=randread --bs=4k --iodepth=1 --name=writer --bs=128k \
         {writer} --iodepth={depth}"
    );
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

/// The latencies of a run in us.
#[derive(Debug)]
struct Waits {
    /// The median and the 99th percentile of reads.
    read: [u64; 2],
    /// The mean of writes.
    write: u64,
}

fn waits(report: &Report, depth: u64) -> Waits {
    let [reader, writer] = &report.jobs[..] else { panic!("two jobs") };
    let read = reader.stats.ops.read.as_ref().unwrap();
    let written = writer.stats.ops.write.as_ref().map_or(0, |op| op.ios);
    let read = [50_000, 99_000].map(|percentile| read.lat_ns.percentile(percentile) / 1000);
    // By Little's law: as many are outstanding all the time.
    Waits { read, write: writer.stats.runtime_ns() / 1000 * depth / written.max(1) }
}

/// A full drive at steady state with random writes, as many outstanding as each of `depths`.
fn at_depths(order: &str, full_buffer: &str, depths: [u64; 3]) -> [Waits; 3] {
    with_queues("31", order, full_buffer, depths)
}

/// As [`at_depths`], of a drive with so many hardware queues.
fn with_queues(queues: &str, order: &str, full_buffer: &str, depths: [u64; 3]) -> [Waits; 3] {
    let figures = [
        ("flash.slc", "0B"),
        ("flash.fill", "100"),
        ("flash.overwritten", "100"),
        ("flash.order", order),
        ("flash.full-buffer", full_buffer),
        ("nvme.hw-queues", queues),
    ];
    let waits = depths.map(|depth| waits(&run(&figures, "--rw=randwrite", depth), depth));
    println!("{queues} queues, {order}, {full_buffer}: {waits:?}");
    waits
}

#[track_caller]
fn assert_near(seen: u64, expected: u64, percent: u64) {
    let difference = seen.abs_diff(expected);
    assert!(difference * 100 <= expected * percent, "{seen} instead of {expected}");
}

#[test]
fn reads_that_go_first_do_not_feel_how_many_writes_are_outstanding() {
    let [few, more, many] = at_depths("reads-first", "writes-wait", [8, 32, 128]);
    // They wait for what their die has begun.
    assert_near(more.read[1], few.read[1], 25);
    assert_near(many.read[1], few.read[1], 25);
    assert!(many.write > 10 * many.read[1]);
}

/// Returns how long the dies take for `mib` MiB of writes, by the mean time of one at depth 128.
fn time_of(mib: u64, waits: &Waits) -> u64 {
    waits.write * (mib << 20) / (128 * WRITE)
}

/// The buffer of 4 MiB holds four rows of 32 KiB for each of 32 dies, which is as much as dies are
/// given ahead. Any number of writes fills it. A read waits for all of it.
#[test]
fn reads_in_order_of_arrival_wait_for_what_the_buffer_holds() {
    let all = at_depths("arrival", "writes-wait", [8, 32, 128]);
    for waits in &all {
        assert_near(waits.read[0], time_of(4, &all[2]), 10);
        assert!(waits.read[1] * 10 < waits.read[0] * 12, "{waits:?}");
    }
    // Whoever holds the writes back to half of what the dies can do leaves the buffer empty.
    let slow = 128 * WRITE * 1_000_000 / all[2].write / 2;
    let figures = [("flash.slc", "0B"), ("flash.fill", "100"), ("flash.overwritten", "100")];
    let held = waits(&run(&figures, &format!("--rw=randwrite --rate={slow}"), 8), 8);
    println!("at {slow} bytes a second: {held:?}");
    assert!(held.read[1] * 3 < all[0].read[1], "{held:?}");
}

/// A read that waits in line with the writes waits as long as a write that arrives with it, and
/// then for what the buffer holds. So the fewer writes are outstanding, the shorter is its tail.
#[test]
fn reads_behind_a_full_buffer_wait_for_all_writes_before_them() {
    let all = at_depths("arrival", "all-wait", [8, 32, 128]);
    for waits in &all {
        assert_near(waits.read[0], waits.write + time_of(4, &all[2]), 10);
    }
    let tails = all.map(|waits| waits.read[1]);
    assert!(tails[1] * 10 > tails[0] * 13 && tails[2] > 2 * tails[1], "{tails:?}");
}

/// A write that finds the buffer full stops its hardware queue. The reader has one of its own, so
/// it waits for the buffer of 4 MiB alone. With one queue for both it waits for the writes too.
#[test]
fn reads_wait_for_all_writes_before_them_in_their_own_queue_only() {
    let own = at_depths("arrival", "queue-waits", [8, 32, 128]);
    let shared = with_queues("1", "arrival", "queue-waits", [8, 32, 128]);
    for waits in &own {
        assert_near(waits.read[0], time_of(4, &own[2]), 10);
    }
    for waits in &shared {
        assert_near(waits.read[0], waits.write + time_of(4, &shared[2]), 10);
    }
}

/// A lane of the first generation carries 250 MB/s. A write is 512 packets of 256 bytes with
/// headers of 24: 143360 bytes in 573 us. The flash is faster, so all writes but one wait for the
/// link. The command of a read waits for the piece that is on its way: of 16 KiB for 72 us, of 128
/// KiB for 573.
#[test]
fn a_read_waits_for_a_piece_of_a_write_on_the_link_however_many_writes_wait() {
    for (fetch, piece) in [("16KiB", 72), ("128KiB", 573)] {
        for depth in [4, 16] {
            let link = [
                ("nvme.link.lanes", "1"),
                ("nvme.link.generation", "1"),
                ("nvme.fetch", fetch),
                ("flash.order", "reads-first"),
            ];
            let waits = waits(&run(&link, "--rw=write", depth), depth);
            println!("{fetch}, depth {depth}: {waits:?}");
            assert_near(waits.write, depth * 573, 5);
            // A read of 4 KiB takes less than 200 us more.
            assert!((50..piece + 200).contains(&waits.read[0]), "{waits:?}");
            assert!(waits.read[1] < piece + 400, "{waits:?}");
        }
    }
}

/// The wire of a SATA drive carries less than its flash takes: 128 KiB with the headers of 16
/// frames in some 240 us. Of 31 writes in flight, a buffer of 2 MiB keeps room for 16, so 15 wait.
#[test]
fn the_keys_of_a_sata_drive_decide_how_long_a_read_waits_for_writes() {
    fn reader(order: &str, full_buffer: &str, buffer: &str) -> Waits {
        let figures =
            [("flash.order", order), ("flash.full-buffer", full_buffer), ("flash.buffer", buffer)];
        let waits = waits(&run_on("sata-ssd", &figures, "--rw=write", 31), 31);
        println!("{order}, {full_buffer}, {buffer}: {waits:?}");
        assert_near(waits.write, 31 * 240, 5);
        waits
    }
    let first = reader("reads-first", "writes-wait", "64MiB");
    let ample = reader("arrival", "all-wait", "64MiB");
    let held = reader("arrival", "all-wait", "2MiB");
    // A piece of 64 KiB before its command, another one before its data, and a program of 200 us.
    assert!(first.read[1] < 2 * 120 + 200 + 200, "{first:?}");
    assert!(ample.read[1] < 1500, "{ample:?}");
    assert_near(held.read[0], 15 * 240, 15);
}

/// The same of a UFS device, whose commands share a direction of the link with data.
#[test]
fn a_read_of_a_ufs_device_waits_only_for_accepted_writes() {
    fn reader(full_buffer: &str) -> Waits {
        let figures = [("flash.full-buffer", full_buffer)];
        let waits = waits(&run_on("ufs-3", &figures, "--rw=write", 31), 31);
        println!("{full_buffer}: {waits:?}");
        waits
    }
    let [passes, waits] = [reader("writes-wait"), reader("all-wait")];
    assert!(passes.read[0] * 2 < waits.read[0], "{passes:?}, {waits:?}");
}

/// A reader next to a writer that syncs each write of 4 KiB: the dies program the map for it, and
/// reads wait behind that; with power-loss protection a sync leaves nothing to wait for.
#[test]
fn reads_wait_behind_the_map_that_syncs_write() {
    fn tail(steps: &str, map: &str, protected: &str) -> (Waits, u64) {
        let figures = [
            ("flash.flush-steps", steps),
            ("flash.flush-map", map),
            ("flash.protected", protected),
        ];
        let writer = "--rw=randwrite --bs=4k --ioengine=psync --fdatasync=1";
        let report = run(&figures, writer, 1);
        let counts = &report.family.drive.as_ref().unwrap().disks[0].medium;
        let pages = counts.iter().find(|(name, _)| *name == "map_pages_written");
        let waits = waits(&report, 1);
        println!("{steps} steps of {map}, protected {protected}: {waits:?}");
        (waits, pages.expect("a counter of pages").1)
    }
    let (without, none) = tail("0", "4KiB", "false");
    // A program of the cache takes 200 us, and its data of 4 to 32 KiB 5 to 40 us.
    let (with, written) = tail("4", "1MiB", "false");
    assert!(none == 0 && written > 0);
    assert!(with.write > without.write + 4 * 200, "{with:?}, {without:?}");
    // All 32 dies program, for most of the time: more than half of the reads wait.
    assert!(with.read[0] > without.read[0] + 50, "{with:?}, {without:?}");
    assert_eq!(tail("4", "1MiB", "true").1, 0);
}
