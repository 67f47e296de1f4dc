//! The figures of an MMC host agree with those of the device and the job. Each request is mapped
//! once, at its cost. The parts of the time between two transfers add up. An idle bus waits for as
//! many threads as a design puts between two transfers.

use blockyard::time::Duration;
use blockyard::trace::Action;
use blockyard_answer::{Figures, HostFigures};
use blockyard_devices::profile::{Design, Device, FaultRules};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// Runs `job` on an eMMC device whose host takes 500 ns to map a KiB, and 300 ns to unmap one after
/// a read.
fn run(job: &str, design: &str) -> (Report, HostFigures) {
    run_on(&device(""), job, design)
}

/// Returns that eMMC device with more keys of its card.
fn device(more: &str) -> Device {
    let host =
        "base = \"emmc-hs400-sprd\"\n[host]\nmap-per-kib = \"500ns\"\nunmap-per-kib = \"300ns\"\n";
    Device::parse("emmc", &format!("{host}{more}")).unwrap()
}

fn run_on(device: &Device, job: &str, design: &str) -> (Report, HostFigures) {
    let report = simulate(device, &format!("{job} --time_based"), design);
    let figures = Figures::of(&report, 1).family.mmc.unwrap();
    (report, figures)
}

fn simulate(device: &Device, job: &str, design: &str) -> Report {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap()
}

const WRITES: &str = "--rw=randwrite --bs=4k --numjobs=20 --runtime=100ms";
const RANDOM_READS: &str = "--rw=randread --bs=4k --numjobs=20 --runtime=100ms";
const READS: &str = "--rw=read --bs=4k --numjobs=20 --runtime=100ms";
/// One I/O at a time, with 300 us between two of them.
const PAUSING: &str = "--rw=randrw --bs=64k --thinktime=300us --runtime=100ms";

const DESIGNS: [&str; 8] = [
    "mmc-serial",
    "mmc-double-buffer-full",
    "mmc-mq-step4",
    "mmc-mq-step15",
    "mmc-mq-step16",
    "mmc-blkmq-4.16",
    "mmc-blkmq-6.12",
    "hsq",
];

/// Linux 6.12 on an emulated card sends 128 commands for 128 sequential writes of 4 KiB at depth
/// 32: the submitter sleeps in the driver while the bus is taken, so nothing piles up that would
/// merge. A thread of the driver lets it pile up. Threads that submit one I/O each lose nothing.
#[test]
fn a_submitter_that_sleeps_in_the_driver_piles_up_nothing() {
    let commands = |job: &str, design: &str| {
        let device = Device::lookup("sd-hs").unwrap();
        let report = simulate(&device, job, design).family.mmc.unwrap();
        report.commands[24] + report.commands[25]
    };
    let deep = "--ioengine=libaio --iodepth=32 --rw=write --bs=4k --io_size=512k";
    assert_eq!(commands(deep, "mmc-blkmq-6.12"), 128);
    assert!(commands(deep, "mmc-blkmq-4.16") < 32);
    let report = simulate(
        &Device::lookup("sd-hs").unwrap(),
        "--ioengine=libaio --iodepth=32 --rw=write --bs=4k --runtime=50ms --time_based",
        "mmc-blkmq-6.12",
    );
    let end = Duration::from_ms(100);
    assert!(
        report.span < end,
        "back from the driver, the job looks at the time: {:?}",
        report.span
    );
    // A read through the page cache waits for its page only when it is back from the driver.
    for buffered in
        ["--direct=0 --rw=read --bs=4k --io_size=1m", "--direct=0 --rw=read --bs=1m --io_size=8m"]
    {
        let report = simulate(&Device::lookup("sd-hs").unwrap(), buffered, "mmc-blkmq-6.12");
        assert!(report.family.mmc.unwrap().commands[18] > 0, "{buffered}");
    }
    // A lone read finds the bus free: its thread sleeps once, for the data, as psync's does under
    // Linux.
    let lone = "--rw=randread --bs=4k --io_size=1m";
    let report = simulate(&Device::lookup("sd-hs").unwrap(), lone, "mmc-blkmq-6.12");
    assert!(report.jobs[0].stats.context_switches.abs_diff(256) <= 1);
    let wide = "--rw=randwrite --bs=4k --numjobs=4 --io_size=128k";
    assert_eq!(commands(wide, "mmc-blkmq-6.12"), commands(wide, "mmc-blkmq-4.16"));
    // Linux 7.3 leaves a lone request to a worker again, and others join while that sleeps. A batch
    // is dispatched by its submitter, as in 6.12.
    assert!(commands(deep, "mmc-blkmq") < 64);
    let batches =
        "--ioengine=libaio --iodepth=32 --iodepth_batch=8 --rw=randwrite --bs=4k --io_size=512k";
    assert_eq!(commands(batches, "mmc-blkmq"), commands(batches, "mmc-blkmq-6.12"));
}

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "means are compared")]
fn near(part: f64, whole: u64) -> bool {
    (part - whole as f64).abs() <= 1e-6 * whole as f64
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "means are multiplied")]
fn the_parts_of_the_time_between_transfers_add_up() {
    for design in DESIGNS {
        for job in [WRITES, READS, PAUSING] {
            let (report, figures) = run(job, design);
            let transfers: u64 =
                [17, 18, 24, 25].map(|opcode| figures.commands.0[opcode]).iter().sum();
            let transfer = figures.transfer_ns;
            let whole = (transfer.work + transfer.idle + transfer.absent) * transfers as f64;
            assert!(near(whole, report.span.as_ns()), "{design} {job}: {whole}");
            let absent = if job == PAUSING { 300e3..330e3 } else { 0.0..1e3 };
            assert!(absent.contains(&transfer.absent), "{design} {job}: {transfer:?}");
        }
    }
}

#[test]
fn every_transfer_is_mapped_and_unmapped_once_at_its_price() {
    // A write to the card does not change memory, so caches stay valid and unmapping is free.
    for (design, job, unmap_ns) in
        DESIGNS.into_iter().flat_map(|design| [(design, RANDOM_READS, 1200), (design, WRITES, 0)])
    {
        let (report, _) = run(job, design);
        let host = report.family.mmc.unwrap();
        let issued = report.stages.count(Action::Issue);
        assert!(issued > 500, "{design}");
        let times = [(host.map, 2000, "map"), (host.unmap, unmap_ns, "unmap")];
        for (time, price_ns, name) in times {
            let spent = time.inside + time.outside;
            // Some requests are merged, and a few may not have completed.
            let least = Duration::from_ns((issued - 20) * price_ns);
            let most = Duration::from_ns((issued + issued / 20) * price_ns);
            assert!(least <= spent && spent <= most, "{design}: {name} {spent:?} of {issued}");
        }
        let serial = design == "mmc-serial";
        assert_eq!(host.map.inside == Duration::ZERO, serial, "{design}");
        // In steps 15 and 16 the thread that starts the next transfer is still on its way.
        let late = !matches!(
            design,
            "mmc-double-buffer-full" | "mmc-blkmq-4.16" | "mmc-blkmq-6.12" | "hsq"
        );
        let is_late = host.unmap.inside == Duration::ZERO;
        assert_eq!(is_late, late || job == WRITES, "{design} {job}");
    }
}

#[test]
fn a_host_that_unmaps_nothing_maps_as_often_and_saves_that_time() {
    let job = "--rw=read --bs=64k --number_ios=64";
    let [with, without] = ["mmc-double-buffer", "mmc-double-buffer-no-unmap"]
        .map(|design| Figures::of(&simulate(&device(""), job, design), 1).family.mmc.unwrap());
    assert!(with.unmap_percent.outside > 0.0 && with.map_percent.outside > 0.0, "{with:?}");
    assert_eq!((without.unmap_percent.inside, without.unmap_percent.outside), (0.0, 0.0));
    // 64 KiB at 300 ns: one call at a time, so each read ends earlier by that.
    let saved = with.transfer_ns.idle - without.transfer_ns.idle;
    assert!(near(saved, 64 * 300), "{saved} ns");
}

/// Returns the time of 64 reads of 64 KiB at random, one at a time, and that of mapping with and
/// without the bus in use, with these lines in `[host]` of a device whose card takes 100 us for an
/// access and 5.5 us for a KiB.
fn lone_reads(map_per_kib: &str, map: &str) -> (Duration, [Duration; 2]) {
    let text = format!(
        "base = \"emmc-hs400-sprd\"\n[host]\nmap-per-kib = \"{map_per_kib}\"\n\
         [card.read]\naccess = \"100us\"\ngap = \"1380ns\"\n"
    );
    let device = Device::parse("emmc", &text).unwrap();
    let design =
        format!("base = \"mmc-double-buffer\"\n[host]\nbusy-detect = \"hw\"\nmap = \"{map}\"\n");
    let design = Design::parse(map, &design).unwrap();
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --rw=randread --bs=64k --number_ios=64";
    let jobs = parse_args(job.split(' '), &NoSource).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let mapped = report.family.mmc.unwrap().map;
    (report.span, [mapped.inside, mapped.outside])
}

fn saved_by_mapping_beside(per_kib: &str) -> u64 {
    let (before, [none_inside, outside]) = lone_reads(per_kib, "before-command");
    let (after, [inside, none_outside]) = lone_reads(per_kib, "beside-access");
    assert_eq!([none_inside, none_outside], [Duration::ZERO; 2]);
    assert_eq!(outside, inside, "the same work");
    (before.as_ns() - after.as_ns()) / 64
}

/// [data-waits-for-memory]
#[test]
fn a_lone_read_is_mapped_beside_its_access_and_its_data_waits_for_memory() {
    // Mapping is faster than the bus, and 4 KiB are mapped within the access: all of it is hidden.
    assert_eq!(saved_by_mapping_beside("1us"), 64 * 1000);
    // Mapping takes 640 us, the access 100 and the bus 352. The last half of the data waits for the
    // last mapping, so of the access and the bus only that half shows.
    let saved = saved_by_mapping_beside("10us");
    assert!(
        (100_000 + 352_000 / 2 - 9_000..=100_000 + 352_000 / 2 + 9_000).contains(&saved),
        "{saved}"
    );
}

fn span_and_cpu(stall: &str) -> (u64, f64) {
    let text = format!("base = \"emmc-u5500\"\n[host]\n{stall}");
    let device = Device::parse("emmc", &text).unwrap();
    let report = simulate(&device, "--rw=read --bs=2m --number_ios=16", "mmc-pio");
    let busy = blockyard_answer::Figures::of(&report, 1).cpu_percent;
    (report.span.as_ns(), busy)
}

#[test]
fn a_processor_that_copies_may_stall_for_longer_than_the_bus() {
    let with = span_and_cpu("pio-stall-per-kib = \"20us\"\n");
    let without = span_and_cpu("");
    assert!(with.0 < without.0 + without.0 / 200, "the bus waits as long: {with:?} {without:?}");
    // Of 2 MiB, 1668 KiB miss a cache of 380: 11.6 us more for each, on one of two processors, of
    // 51 us for a KiB.
    assert!((8.0..11.0).contains(&(with.1 - without.1)), "{with:?} {without:?}");
}

#[test]
fn mapping_for_a_write_may_cost_less() {
    let clean = device("[host.write]\nmap = \"3us\"\nmap-per-kib = \"0us\"\n");
    for (job, price_ns) in [(WRITES, 3000), (RANDOM_READS, 2000)] {
        let (report, _) = run_on(&clean, job, "mmc-serial");
        let mapped = report.family.mmc.unwrap().map;
        let issued = report.stages.count(Action::Issue);
        let near = Duration::from_ns((issued - 20) * price_ns)
            ..Duration::from_ns((issued + 20) * price_ns);
        assert!(issued > 500 && near.contains(&mapped.outside), "{job}: {mapped:?} of {issued}");
    }
}

fn span_of(job: &str, misses: &str) -> u64 {
    // The card needs no time between two blocks, which would overlap the wait.
    let device = device(&format!("{misses}[card.read]\ngap = \"0ns\"\n"));
    simulate(&device, job, "mmc-pio").span.as_ns()
}

#[test]
fn a_bus_waits_while_the_processor_waits_for_memory() {
    let misses = "pio-cached = \"16KiB\"\npio-miss-per-kib = \"10us\"\n";
    // Either all data is in the cache, or 48 of 64 KiB are not.
    for (kib, missed_kib) in [(16, 0), (64, 48)] {
        let job = format!("--rw=randread --bs={kib}k --io_size=640k");
        let longer = span_of(&job, misses) - span_of(&job, "");
        let waited = 640 / kib * missed_kib * 10_000;
        // No transfer overlaps the copy of the last piece.
        let near = waited..=waited + waited / 32;
        assert!(near.contains(&longer), "{kib} KiB: {longer} ns, of {waited}");
    }
}

#[test]
fn an_idle_bus_waits_for_the_threads_of_its_design() {
    // Issue on completion wakes a thread for the status, and another one for the start. The host
    // software queue starts in the interrupt; its first version starts in a thread that the
    // interrupt wakes.
    for (design, awaited) in [("mmc-blkmq-4.16", 2.0), ("hsq-v8", 1.0), ("hsq", 0.0)] {
        let (_, figures) = run(WRITES, design);
        let counted = figures.per_transfer.awaited_wakeups;
        assert!((counted - awaited).abs() < 0.01, "{design}: {counted}");
    }
}

/// Of random writes: blk-mq has an interrupt for the transfer and one for its CMD13, each of which
/// wakes the thread; the host software queue leaves completion to a worker.
#[test]
fn interrupts_and_wake_ups_are_those_of_the_design() {
    for (design, interrupts, worker) in [("mmc-blkmq-4.16", 2.0, 0.0), ("hsq-v8", 1.0, 1.0)] {
        let (_, figures) = run(WRITES, design);
        let woken = figures.woken_per_io;
        assert!((woken.interrupts - interrupts).abs() < 0.01, "{design}: {woken:?}");
        assert!((woken.worker - worker).abs() < 0.01, "{design}: {woken:?}");
        assert!((woken.jobs - 1.0).abs() < 0.01, "{design}: {woken:?}");
        let sum = woken.thread + woken.worker + woken.jobs;
        assert!((sum - figures.wakeups_per_io).abs() < 1e-9, "{design}: {woken:?}");
    }
}

#[test]
fn a_thread_that_polls_a_busy_card_keeps_no_bus_waiting() {
    let slow = device("busy-detect = \"cmd13\"\n[card.write]\nprogram = \"2ms\"\nearly = false\n");
    let (_, figures) = run_on(&slow, WRITES, "mmc-blkmq-4.16");
    let asked = figures.status_per_write.unwrap();
    assert!(asked > 4.0, "{asked}");
    // The last status command and the next start come when the card is ready.
    assert!(figures.per_transfer.awaited_wakeups < 2.01, "{figures:?}");
}

#[test]
fn a_card_that_programs_after_the_transfer_counts_as_busy() {
    let slow = device("[card.write]\nprogram = \"200us\"\nearly = true\nbuffer = \"8MiB\"\n");
    // The buffer takes all data while the card programs one page after another.
    let (_, writes) = run_on(&slow, WRITES, "hsq");
    assert!((98.0..=100.0).contains(&writes.memory_percent), "{writes:?}");
    let few = "--rw=randwrite --bs=4k --thinktime=1ms --runtime=100ms";
    let (report, few) = run_on(&slow, few, "hsq");
    let memory = report.family.mmc.unwrap().memory.as_ns();
    // A part of the last page may be left.
    assert_eq!(memory.div_ceil(200_000), few.commands.0[25] + few.commands.0[24]);
    let (_, reads) = run_on(&slow, "--rw=randread --bs=4k --runtime=20ms", "hsq");
    assert!(reads.memory_percent < 1.0, "{reads:?}");
}

#[test]
fn the_thread_that_starts_the_next_transfer_wakes_no_other() {
    // Each request wakes three threads: the job, the dispatching thread, and the thread that ends
    // the request.
    for design in ["hsq-v8", "hsq"] {
        let (report, _) = run("--rw=randread --bs=4k --numjobs=20 --runtime=100ms", design);
        let ios = report.stages.count(Action::Issue);
        let woken = report.totals.wakeups;
        assert!(ios > 500 && woken <= 3 * ios + 60, "{design}: {woken} of {ios}");
    }
}

fn busy_gap_and_span(per_kib: &str) -> (Duration, Duration, Duration) {
    // The card needs no time between two blocks, which would overlap a copy.
    let more = format!("pio-per-kib = \"{per_kib}\"\n[card.read]\ngap = \"0ns\"\n");
    let reads = "--rw=randread --bs=64k --io_size=6400k";
    let report = simulate(&device(&more), reads, "mmc-pio");
    let host = report.family.mmc.unwrap();
    (host.bus_busy, host.bus_gap, report.span)
}

#[test]
fn a_bus_that_waits_for_a_copy_is_not_busy() {
    let fast = busy_gap_and_span("1us");
    let slow = busy_gap_and_span("50us");
    assert_eq!(fast.0, slow.0, "the same data at the same rate");
    assert!(slow.2 - fast.2 > Duration::from_us(100 * 64 * 45), "{slow:?}");
    // This is the gap from one read to the next; waits for copies are within a read.
    assert!(slow.1 < Duration::from_us(200), "{slow:?}");
}

#[test]
fn a_lost_interrupt_is_counted_apart_from_idle_time_of_the_design() {
    let (good, _) = run(RANDOM_READS, "mmc-serial");
    let lossy = FaultRules::parse("faults.toml", "[host]\ninterrupt-lost-one-in = 200\n").unwrap();
    let lossy = lossy.strike(&device("")).unwrap().into_owned();
    let (report, _) = run_on(&lossy, "--rw=randread --bs=4k --runtime=100s", "mmc-serial");
    let good = good.family.mmc.unwrap();
    let host = report.family.mmc.unwrap();
    assert_eq!(good.unnoticed, Duration::ZERO);
    // The time limit is 10 s.
    assert!(host.unnoticed > Duration::from_secs(60), "{host:?}");
    assert!(host.unnoticed + host.bus_busy < report.span, "{host:?}");
    assert!(host.bus_gap < Duration::from_ms(1), "{host:?}");
}

#[test]
fn an_act_in_progress_at_the_start_of_measuring_counts_from_there() {
    let slow = device("map = \"40ms\"\n");
    let job = "--rw=randread --bs=4k --ramp_time=59ms --runtime=100ms";
    let (report, _) = run_on(&slow, job, "mmc-serial");
    let map = report.family.mmc.unwrap().map;
    let spent = map.inside + map.outside;
    assert!(
        spent <= report.span && spent > Duration::from_ms(90),
        "{spent:?} of {:?}",
        report.span
    );
}

#[test]
fn a_host_has_one_hardware_queue() {
    let jobs =
        parse_args("--name=x --rw=randrw --direct=1 --size=1m".split(' '), &NoSource).unwrap();
    for key in ["read-queues", "poll-queues"] {
        let text = format!("base = \"hsq\"\n[queue]\n{key} = 1\n");
        let design = Design::parse("my.toml", &text).unwrap();
        let wrong = Simulation::new(&jobs, &device(""), &design, 1).unwrap_err().to_string();
        let words = "does not work on eMMC and SD devices: their host has one hardware queue";
        assert_eq!(wrong, format!("my.toml:3: `{key}` {words}"));
    }
}

fn with_max_sectors(sectors: u32) -> Result<Device, blockyard_devices::profile::ProfileError> {
    let text = format!("base = \"emmc-hs400-sprd\"\n[limits]\nmax-sectors = {sectors}\n");
    Device::parse("my.toml", &text)
}

#[test]
fn a_request_is_no_larger_than_a_transfer_of_the_card() {
    assert!(with_max_sectors(65_535).is_ok());
    let wrong = with_max_sectors(65_536).unwrap_err().to_string();
    assert_eq!(wrong, "my.toml:2: a transfer of a card has at most 65535 sectors: `max-sectors`");
}
