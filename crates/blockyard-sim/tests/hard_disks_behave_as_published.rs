//! Hard disks as makers, reviews and text books describe them: what a revolution and a seek cost,
//! and what sorting gains, by the drive (native command queuing) or by the host (an elevator).
//!
//! Random I/O at depth 1 takes the average seek and half a turn: 78 a second for 8.5 ms at 7200
//! revolutions per minute. Deep queues gain some 50 % on a disk of Seagate with 7200 revolutions
//! and 32 threads (ilsistemista.net, "A look at how NCQ, software queue and I/O schedulers impact
//! disk performance"), and nearly 100 % on SATA disks for servers; Seagate's Savvio, with SCSI,
//! more than doubles its rate (Wikipedia, "IOPS"). Data sheets state rates of the outermost and the
//! innermost tracks, such as 175 and 83 MB/s (Seagate's Constellation ES.3).

use blockyard::bio::{Bio, Op};
use blockyard::driver::Device as _;
use blockyard::host::Host;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use blockyard_devices::live::Live;
use blockyard_devices::pairing;
use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// The built-in disk `base` with other values in `[platters]`.
fn disk(base: &str, platters: &str) -> Device {
    Device::parse("disk", &format!("base = \"{base}\"\n[platters]\n{platters}")).unwrap()
}

/// Runs fio's `options` on `device`.
fn run(device: &Device, design: &str, options: &str) -> Report {
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap()
}

/// Returns the reads or writes per second of the only job.
fn rate(report: &Report) -> u64 {
    let stats = &report.jobs[0].stats;
    stats.measured().map(|measured| measured.ios).sum::<u64>() * 1_000_000_000 / stats.runtime_ns()
}

fn random(depth: u16) -> String {
    format!(
        "--name=x --direct=1 --rw=randread --bs=4k --ioengine=libaio --iodepth={depth} \
         --time_based --runtime=20s"
    )
}

#[test]
fn random_reads_gain_from_the_depth_where_the_disk_or_the_host_sorts() {
    let queuing = disk("hdd-7200", "");
    let fifo = disk("hdd-7200", "order = \"arrival\"");
    fn at(disk: &Device, design: &str, depth: u16) -> u64 {
        rate(&run(disk, design, &random(depth)))
    }
    let alone = at(&queuing, "mq-none", 1);
    assert!((70..=82).contains(&alone), "{alone} a second at depth 1");
    let deep = at(&queuing, "mq-none", 32);
    assert!(
        (alone * 15 / 10..=alone * 22 / 10).contains(&deep),
        "{deep} a second at depth 32, {alone} at 1"
    );
    // A firmware that knew all positions exactly would gain more than any disk does.
    let ideal = at(&disk("hdd-7200", "order = \"shortest\""), "mq-none", 32);
    assert!(ideal > alone * 23 / 10, "{ideal} a second in the exact order, {alone} at depth 1");
    // Without sorting, depth gains nothing; with an elevator, the host sorts what the disk does not
    // hold.
    let unsorted = at(&fifo, "mq-none", 64);
    // But the firmware prepares a command while the arm serves another: 12.8 ms in place of 13.3.
    assert!(
        (alone..=alone * 107 / 100).contains(&unsorted),
        "{unsorted} a second, {alone} at depth 1"
    );
    let sorted = at(&fifo, "mq-deadline", 64);
    assert!(
        sorted > unsorted * 115 / 100,
        "{sorted} a second with mq-deadline, {unsorted} without"
    );
}

/// The disk that stands for those of SCSI gains about as much as Savvio did: it more than doubles
/// its rate, with queues that are deeper than 32.
#[test]
fn fast_disks_gain_more_from_the_depth() {
    let disk = disk("hdd-15k", "");
    let [alone, deep] = [1, 32].map(|depth| rate(&run(&disk, "mq-none", &random(depth))));
    assert!((170..=200).contains(&alone), "{alone} a second at depth 1");
    assert!((alone * 16 / 10..=alone * 24 / 10).contains(&deep), "{deep}, {alone} at depth 1");
}

#[test]
fn each_disk_takes_its_average_seek_and_half_a_turn() {
    // Microseconds of the overhead of a command, the seek and half a turn, by the profile; data
    // takes little.
    for (name, expected) in [
        ("hdd-7200", 500 + 8_500 + 4_167),
        ("hdd-5400", 500 + 12_000 + 5_556),
        ("hdd-15k", 400 + 2_900 + 2_000),
    ] {
        let mean = 1_000_000 / rate(&run(&disk(name, ""), "mq-none", &random(1)));
        // Sectors lie closer together than cylinders, as there are more of them outside.
        assert!(
            (expected * 95 / 100..=expected * 103 / 100).contains(&mean),
            "{name}: {mean} us, not {expected}"
        );
    }
}

/// A cached read or write takes 0.2 ms with native command queuing (Hitachi's Deskstar 7K3000,
/// table 5): the slow end of the range, and `interval`. The reads are of data that was just
/// written.
#[test]
fn a_cached_command_takes_what_the_manual_says() {
    let job = "--name=x --direct=1 --rw=randwrite --bs=4k --size=64k --time_based --ramp_time=2s \
               --runtime=2s";
    let reads = job.replace("randwrite", "randrw --rwmixread=90 --norandommap");
    let slow = "[ahci]\ncommand = \"180us\"";
    let free = "[ahci]\ninterval = \"0us\"\ncommand = \"0us\"";
    for job in [job, &reads] {
        let mean_ns = [slow, free].map(|platters| {
            1_000_000_000 / rate(&run(&disk("hdd-7200", platters), "mq-none", job))
        });
        // The wire and the processor are in both.
        let of_command = mean_ns[0] - mean_ns[1];
        assert!(of_command.abs_diff(200_000) < 2_000, "{job}: {mean_ns:?} ns");
    }
}

/// Returns the random writes per second to a full cache, where the scheduler has up to 512.
fn full_cache_rate(device: &Device, scheduler: &str) -> u64 {
    let job = "--name=x --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=512 \
               --time_based --ramp_time=20s --runtime=30s";
    let design = format!("base = \"{scheduler}\"\n[queue]\nsched-depth = 512");
    let design = Design::parse("x", &design).unwrap();
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    rate(&Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap())
}

/// Writes are more than the cache holds, so it is as slow as its batches of 32.
#[test]
fn a_scheduler_gains_on_a_cache_that_is_full() {
    let small = disk("hdd-7200", "");
    let none = full_cache_rate(&small, "mq-none");
    let deadline = full_cache_rate(&small, "mq-deadline");
    assert!(deadline * 100 > none * 110, "{deadline} with mq-deadline, {none} without");
    // A cache that is sorted as a whole is faster alone than a small batch with a scheduler.
    let whole = disk("hdd-7200", "[platters.cache]\nbatch = 65536");
    let ideal = full_cache_rate(&whole, "mq-none");
    assert!(ideal > deadline, "{ideal} sorted as a whole, {deadline} with mq-deadline");
}

#[test]
fn the_outer_zone_is_about_twice_as_fast_as_the_inner() {
    let disk = disk("hdd-7200", "");
    fn megabytes(from: &str, disk: &Device) -> u64 {
        let job = format!(
            "--name=x --direct=1 --rw=read --bs=128k --ioengine=libaio --iodepth=4 --offset={from} \
             --size=1g --time_based --runtime=4s"
        );
        rate(&run(disk, "mq-deadline", &job)) * 131_072 / 1_000_000
    }
    let outer = megabytes("0", &disk);
    let inner = megabytes("920g", &disk);
    assert!((200..=210).contains(&outer), "{outer} MB/s, for 210");
    assert!((95..=104).contains(&inner), "{inner} MB/s, for 100");
}

#[test]
fn a_write_that_waits_for_the_platters_loses_a_turn() {
    let job = "--name=x --direct=1 --rw=write --bs=4k --size=1g --time_based --runtime=5s";
    let turns = 120;
    let off = Override { key: "platters.cache.write".into(), value: "0B".into() };
    let off = Device::lookup_with("hdd-7200", &[off]).unwrap();
    let without = rate(&run(&off, "mq-none", job));
    assert!(without.abs_diff(turns) <= 3, "{without} writes in {turns} turns");
    let with = rate(&run(&disk("hdd-7200", ""), "mq-none", job));
    // 0.2 ms for a cached command, the wire and the processor.
    assert!(with > 35 * turns, "{with} writes a second from the cache");
}

/// 64 writers, and requests for all of them: `nr_requests` of 512. Returns the reads of one reader
/// beside them within 30 s, and their p99 in microseconds.
fn read_beside_writers(turns: &str) -> (u64, u64) {
    let disk = disk("hdd-7200", &format!("[platters.cache]\nturns = \"{turns}\""));
    let jobs = "--name=global --direct=1 --time_based --ramp_time=5s --runtime=30s --norandommap \
                --bs=4k --size=10g --ioengine=psync --name=reader --rw=randread \
                --name=flood --rw=randwrite --numjobs=64 --group_reporting";
    let jobs = parse_args(jobs.split_whitespace(), &NoSource).unwrap();
    let design = Design::parse("design", "base = \"mq-deadline\"\n[queue]\nsched-depth = 512");
    let report = Simulation::new(&jobs, &disk, &design.unwrap(), 1).unwrap().finish().unwrap();
    let written = report.jobs[1..].iter().filter_map(|job| job.stats.ops.write.as_ref());
    let written: u64 = written.map(|measured| measured.ios).sum();
    assert!(written > 30 * 100, "writes are not starved: {written}");
    let read = report.jobs[0].stats.ops.read.as_ref().unwrap();
    (read.ios, read.lat_ns.percentile(99_000) / 1_000)
}

#[test]
fn mq_deadline_bounds_the_wait_of_reads_beside_writes() {
    // A read passes all writes that the disk does not hold, but for a batch of 16 that has begun.
    // So it waits for 17 writes and itself, each of half a turn and at most an average seek: 4.2
    // and 9.5 ms. Nearly all do so, as the writers never rest, but sorting makes a service shorter,
    // 7 ms: 18 of them are 126 ms, and the reader does 238 in 30 s.
    let (reads, p99_us) = read_beside_writers("one-each");
    assert!(p99_us < 18 * 13_700, "99 % of reads within {p99_us} us");
    assert!(reads > 200, "{reads} reads");
    // Where the disk ends a batch of 32 first, the read waits for these, too: 50 services. Of 7 ms
    // each, they are 350 ms, and the reader does 85 in 30 s.
    let (reads, p99_us) = read_beside_writers("batch");
    assert!(p99_us < 50 * 13_700, "99 % of reads within {p99_us} us");
    assert!(reads > 80, "{reads} reads");
}

/// Returns the MB/s that readers in sequence of 64 KiB get together. Each begins so many GiB after
/// the start of its own file, which lies behind that of the reader before.
fn readers(device: &Device, starts: &[u32]) -> u64 {
    let one = |start: &u32| {
        format!(
            "--name=r{start} --rw=read --bs=64k --direct=1 --offset={start}g --size=40g \
             --time_based --runtime=5s "
        )
    };
    let report = run(device, "mq-none", &starts.iter().map(one).collect::<String>());
    let ios = report.jobs.iter().flat_map(|job| job.stats.measured()).map(|of| of.ios);
    ios.sum::<u64>() * 65_536 / 5_000_000
}

/// xbitlabs measured disks of 2006 to 2010 with readers of 64 KiB in several zones, at depth 1: two
/// halve the rate of Samsung's and Hitachi's, and Seagate's slump, one to a sixth. How long the
/// head waits after each seek depends on the distance, so the mean over several is compared.
#[test]
fn two_readers_in_sequence_lose_as_much_as_published() {
    let disk = disk("hdd-7200", "");
    let alone = readers(&disk, &[0]);
    let distances = [50, 100, 150, 200, 250, 300, 350, 400, 450, 500];
    let together = distances.map(|distance| readers(&disk, &[0, distance]));
    let two = together.iter().sum::<u64>() / 10;
    assert!((alone / 6..=alone / 2).contains(&two), "{together:?} MB/s, {alone} alone");
}

/// The device of `serve --as`, in virtual time: a client reads one block after the other, all over
/// the disk.
#[test]
fn a_served_disk_takes_as_long_as_a_simulated_one() {
    const READS: u64 = 500;
    let disk = disk("hdd-7200", "");
    let design = Design::lookup("mq-deadline").unwrap();
    let tags = TagSetConfig::single(pairing::depth(&disk, &design));
    let mut host = Host::new(Live::under(&disk, &design, 1).unwrap(), (), tags);
    let config = QueueConfig::new(1, 1, disk.limits.clone(), design.policies);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let mut now = Instant::ZERO;
    for nth in 0..READS {
        let sector = nth * 7_919 % READS * (disk.limits.capacity_sectors / READS / 8 * 8);
        queue.submit(&mut host, CpuId(0), Bio::new(Op::Read, sector, 8, nth), now).unwrap();
        let ended = loop {
            while queue.turn(&mut host, now) {}
            if let Some(ended) = queue.next_ended() {
                break ended;
            }
            let polls = queue.poll_at().into_iter().chain(host.driver.poll_at());
            now = polls.min().expect("a read should be under way").max(now);
        };
        assert_eq!((ended.status, ended.bio.cookie), (Status::Ok, nth));
    }
    let mean_us = now.as_ns() / READS / 1_000;
    // Strides of a sixth of the disk, and each sixth time back over the rest: seeks of 8 ms on
    // average, and half a turn.
    assert!((10_000..14_500).contains(&mean_us), "{mean_us} us");
}
