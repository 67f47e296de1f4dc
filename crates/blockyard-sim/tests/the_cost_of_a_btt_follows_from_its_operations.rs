//! Block translation tables over modelled memory: counts each design's operations for an I/O and
//! derives the cost from them.

use blockyard::time::Duration;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::pmem::{Part, PmemReport};
use blockyard_devices::profile::{Design, Device, builtin_designs};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_fio::measure::JobStats;
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// All designs for persistent memory.
fn designs() -> Vec<&'static str> {
    let is_one = |name: &&str| *name == "pmem-raw" || Design::lookup(name).unwrap().btt.is_some();
    let designs: Vec<_> = builtin_designs().iter().map(|of| of.name).filter(is_one).collect();
    assert!(designs.len() >= 8, "{designs:?}");
    designs
}

fn run_on(device: &Device, design: &Design, options: &str, conditions: Conditions<'_>) -> Report {
    let options = format!("--name=j --filename=/dev/pmem0 --direct=1 {options}");
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let mut simulation = Simulation::under(&jobs, device, design, conditions).unwrap();
    simulation.check_every_step();
    simulation.finish().unwrap()
}

/// Runs `options` on memory like DRAM under `design`, which is built in or has a built-in base.
fn run(design: &str, options: &str) -> Report {
    let design = if design.contains('=') {
        Design::parse("mine", design).unwrap()
    } else {
        Design::lookup(design).unwrap()
    };
    run_on(&Device::lookup("pmem-dram").unwrap(), &design, options, Conditions::new(1))
}

fn memory(report: &Report) -> PmemReport {
    report.family.pmem.expect("a run on memory should report its counts")
}

fn ns(report: &Report, part: Part) -> u64 {
    memory(report).parts[part as usize].as_ns()
}

fn ios(report: &Report) -> u64 {
    report.jobs.iter().flat_map(|job| job.stats.measured()).map(|measured| measured.ios).sum()
}

#[test]
fn a_write_has_two_fences_and_four_in_linux() {
    for (design, fences, looks) in
        [("pmem-raw", 1, 0), ("btt", 2, 0), ("btt-linux", 4, 1), ("btt-linux-2015", 4, 1)]
    {
        let report = memory(&run(design, "--rw=randwrite --bs=4k --number_ios=1000"));
        assert_eq!((report.writes, report.reads), (1000, 0), "{design}");
        assert_eq!(report.fences, 1000 * fences, "{design}");
        assert_eq!(report.scans, 1000 * looks, "{design}");
        // Both halves of a log entry and a map entry.
        let lines = if design == "pmem-raw" { 0 } else { 3000 };
        assert_eq!(report.write_backs, lines, "{design}");
    }
}

#[test]
fn a_read_stores_nothing_unless_readers_publish() {
    for (design, publishes) in [("pmem-raw", false), ("btt", false), ("btt-linux", true)] {
        let report = run(design, "--rw=randread --bs=4k --number_ios=1000 --numjobs=4");
        let counted = memory(&report);
        assert_eq!((counted.fences, counted.scans, counted.write_backs), (0, 0, 0), "{design}");
        assert_eq!(counted.transfers > 0, publishes, "{design}: {counted:?}");
        assert_eq!(ns(&report, Part::Tracking) > 0, publishes, "{design}");
    }
}

/// Linux reads each map entry twice, and copies its four bytes one by one; `btt` loads a word once.
/// A cache helps only where the mapping has one.
#[test]
fn an_uncached_mapping_pays_for_each_load_of_a_map_entry() {
    let device = |mapping: &str, more: &str| {
        let text = format!(
            "base = \"pmem-dram\"\n[pmem]\nmapping = \"{mapping}\"\nload = \"80ns\"\n\
             uncached-load = \"250ns\"\n{more}"
        );
        Device::parse("mine", &text).unwrap()
    };
    fn read(device: &Device, design: &str) -> Report {
        let options = "--rw=randread --bs=4k --number_ios=100";
        run_on(device, &Design::lookup(design).unwrap(), options, Conditions::new(1))
    }
    for (design, cached, uncached) in
        [("btt-linux-2015-nt", 80, 2 * 4 * 250), ("btt-linux", 80, 2 * 4 * 250), ("btt", 80, 250)]
    {
        let [combining, back] = ["write-combining", "write-back"]
            .map(|mapping| ns(&read(&device(mapping, ""), design), Part::Map) / 100);
        assert_eq!(combining, uncached, "{design}");
        assert!(back <= cached, "{design}: its line is in the cache for the second");
        let [usual, more] = ["", "table-work = \"1us\"\n"]
            .map(|more| read(&device("write-back", more), design).span);
        assert_eq!(more - usual, Duration::from_us(100), "{design}");
    }
}

#[test]
fn a_scan_of_readers_takes_longer_with_more_lanes() {
    fn with(rtt: &str, sets: u32) -> u64 {
        let design = format!("base = \"btt\"\n[btt]\nrtt = \"{rtt}\"\nlane-sets = {sets}\n");
        let report = run(&design, "--rw=randwrite --bs=4k --number_ios=1000");
        ns(&report, Part::Tracking)
    }
    fn growing(rtt: &str) -> [u64; 3] {
        [16, 64, 256].map(|sets| with(rtt, sets))
    }
    for rtt in ["scan", "scan-padded"] {
        let [few, some, many] = growing(rtt);
        assert!(few > 0 && some >= 3 * few && many >= 3 * some, "{rtt}: {few} {some} {many}");
    }
    assert_eq!(growing("versions"), [0; 3]);
    // One scan for the sixteen lanes of a set, if a set has sixteen.
    assert!(growing("indexed")[0] * 15 < with("scan-padded", 16));
}

#[test]
fn a_scan_of_readers_takes_longer_with_more_reading_processors() {
    fn each(design: &str, jobs: u32) -> u64 {
        let report =
            run(design, &format!("--rw=randrw --bs=4k --number_ios=1000 --numjobs={jobs}"));
        ns(&report, Part::Tracking) / memory(&report).writes
    }
    // If all lanes share a counter, readers publish in one line of the table after another.
    let [alone, few, many] = [1, 4, 16].map(|jobs| each("btt-linux-2015-counter", jobs));
    assert!(alone < few && few < many, "{alone} {few} {many}");
    assert!(many > 2 * alone, "lines come from other processors: {alone} {many}");
    let own = [1, 4, 16].map(|jobs| each("btt", jobs));
    assert!(own.iter().all(|ns| *ns < 130), "two looks at a version at most: {own:?}");
}

#[test]
fn writers_wait_for_shared_sectors_only() {
    for design in ["btt", "btt-linux"] {
        fn options(size: &str) -> String {
            format!("--rw=randwrite --bs=4k --numjobs=16 --size={size} --io_size=2m")
        }
        let one = run(design, &options("4k"));
        let many = run(design, &options("1g"));
        fn share(report: &Report) -> u64 {
            100 * memory(report).lock_wait.as_ns() / report.totals.cpu.as_ns()
        }
        assert!(share(&one) > 20, "{design}: {:?}", memory(&one));
        assert!(share(&many) < 5, "{design}: {:?}", memory(&many));
        assert!(one.span > many.span, "{design}");
    }
}

/// Of sixteen sets of lanes, twelve threads have one each, and later threads share the other four.
/// By default there are enough sets for all processors.
#[test]
fn threads_that_share_lanes_wait_for_them() {
    let device = "base = \"pmem-dram\"\n[cpu]\ncpus = 48\n[pmem]\nchannels = 64\n";
    let device = Device::parse("wide", device).unwrap();
    fn waits(design: &Design, jobs: u32, device: &Device) -> u64 {
        let options =
            format!("--rw=randwrite --bs=4k --number_ios=500 --numjobs={jobs} --size=128m");
        let report = run_on(device, design, &options, Conditions::new(1));
        100 * memory(&report).lock_wait.as_ns() / report.totals.cpu.as_ns()
    }
    let few = Design::parse("few", "base = \"btt\"\n[btt]\nlane-sets = 16\n").unwrap();
    assert!(waits(&few, 12, &device) < 5);
    assert!(waits(&few, 48, &device) > 50);
    for design in ["btt", "btt-linux"] {
        assert!(waits(&Design::lookup(design).unwrap(), 48, &device) < 10, "{design}");
    }
}

/// With a fixed sixteen sets, our BTT wrote a quarter less than Linux's on 32 processors, and less
/// than half on 72. With the default it is as fast on machines of any size with enough lanes, with
/// as many jobs as processors or more. The test has enough channels that they are never the
/// bottleneck, which would make all designs equal.
#[test]
fn ours_is_not_slower_than_linuxs_on_any_machine() {
    for cpus in [1, 2, 12, 13, 24, 25, 32, 72, 96] {
        let device =
            format!("base = \"pmem-dram-2015\"\n[cpu]\ncpus = {cpus}\n[pmem]\nchannels = 16\n");
        let device = Device::parse("sized", &device).unwrap();
        for jobs in [cpus, 9 * cpus / 2] {
            let options = format!(
                "--rw=randwrite --bs=4k --time_based --ramp_time=1ms --runtime=2ms --numjobs={jobs}"
            );
            let [ours, linux] = ["btt", "btt-linux"].map(|design| {
                let design = Design::lookup(design).unwrap();
                ios(&run_on(&device, &design, &options, Conditions::new(1)))
            });
            assert!(ours >= linux, "{cpus} processors, {jobs} jobs: {ours} against {linux}");
        }
    }
}

#[test]
fn more_processors_do_more_until_the_channels_are_saturated() {
    let device = Device::lookup("pmem-3dxpoint").unwrap();
    let raw = Design::lookup("pmem-raw").unwrap();
    let gbps = |jobs: u32| {
        let options = format!("--rw=randwrite --bs=4k --number_ios=2000 --numjobs={jobs}");
        let report = run_on(&device, &raw, &options, Conditions::new(1));
        ios(&report) * 4096 / report.span.as_ns().max(1)
    };
    let [one, four, all] = [1, 4, 16].map(gbps);
    assert!(four >= 4 * one && all > four, "{one} {four} {all}");
    assert!((12..=13).contains(&all), "six modules write 13.8 GB/s: {all}");
}

/// [time-counted-once]
#[test]
fn every_nanosecond_of_a_processor_is_accounted_for() {
    let device = Device::lookup("pmem-dram").unwrap();
    let machine = device.machine;
    let way = (machine.syscall + machine.submit + machine.complete).as_ns();
    for design in designs() {
        for op in ["randread", "randwrite"] {
            let report = run(design, &format!("--rw={op} --bs=4k --number_ios=1000"));
            let parts: u64 = memory(&report).parts.iter().map(|time| time.as_ns()).sum();
            let switch = machine.context_switch.as_ns();
            assert_eq!(report.totals.cpu.as_ns(), 1000 * way + switch + parts, "{design}, {op}");
        }
    }
}

#[test]
fn deep_queues_and_long_ios_end_too() {
    for design in designs() {
        let deep = "--rw=randrw --bs=4k --ioengine=libaio --iodepth=300 --number_ios=3000";
        let report = run(design, deep);
        assert_eq!((ios(&report), report.totals.tag_waits), (3000, 0), "{design}");
        let long = run(design, "--rw=write --bs=1m --number_ios=20 --numjobs=2");
        assert_eq!(ios(&long), 40, "{design}");
        assert_eq!(memory(&long).writes, 40, "{design}: none is split");
    }
}

#[test]
fn the_same_seed_gives_the_same_to_the_nanosecond() {
    for design in designs() {
        fn figures(design: &str) -> (String, Duration, Vec<String>) {
            let report = run(design, "--rw=randrw --bs=4k --number_ios=500 --numjobs=20");
            let stats = |stats: &JobStats| format!("{:?} {:?}", stats.ops, stats.ended);
            let jobs: Vec<_> = report.jobs.iter().map(|job| stats(&job.stats)).collect();
            (format!("{:?}", report.family.pmem), report.span, jobs)
        }
        assert_eq!(figures(design), figures(design), "{design}");
    }
}

/// Readers find the data that was written, before and after a loss of power with the table's
/// recovery.
#[test]
fn written_data_is_read_and_survives_a_loss_of_power() {
    let device = Device::lookup("pmem-dram").unwrap();
    let every = Verify { power_cut_every: Some(Duration::from_us(50)), ..Verify::default() };
    for design in designs() {
        for options in [
            "--rw=randrw --bs=4k --number_ios=400 --numjobs=4 --size=1m",
            "--rw=randrw --bsrange=4k-64k --number_ios=100 --numjobs=20 --size=2m",
        ] {
            let design = Design::lookup(design).unwrap();
            let conditions = Conditions { verify: Some(&every), ..Conditions::new(1) };
            let report = run_on(&device, &design, options, conditions);
            let found = report.verified.expect("a run with checks should report them");
            assert_eq!(found.violation_count, 0, "{}: {:?}", design.name, found.violations);
            assert!(found.reads > 100 && found.writes > 100, "{}", design.name);
            assert!(found.power_cuts.len() > 1, "{}", design.name);
            let lost: u64 = found.power_cuts.iter().map(|cut| cut.lost_by_wrong).sum();
            assert_eq!(lost, 0, "{}", design.name);
        }
    }
}

/// A page has eight sectors of 512 bytes, so everything but data is written eight times.
#[test]
fn small_sectors_cost_a_write_each() {
    let small = "base = \"btt-linux\"\n[btt]\nsector-size = \"512B\"\n";
    let report = memory(&run(small, "--rw=randwrite --bs=4k --number_ios=500"));
    assert_eq!((report.scans, report.fences), (8 * 500, 8 * 4 * 500));
    let own = "base = \"btt\"\n[btt]\nsector-size = \"512B\"\nlane-sets = 16\n";
    let report = memory(&run(own, "--rw=randwrite --bs=4k --number_ios=500"));
    assert_eq!(report.fences, 2 * 500, "a batch has two fences for any number of sectors");
    // Each of 16 processors has one of 32 sets, and half of its eight lanes for a batch.
    let own = "base = \"btt\"\n[btt]\nsector-size = \"512B\"\n";
    let report = memory(&run(own, "--rw=randwrite --bs=4k --number_ios=500"));
    assert_eq!(report.fences, 2 * 2 * 500, "two batches");
}

#[test]
fn designs_and_devices_that_do_not_match_are_refused() {
    fn refusal(device: &str, design: &str, options: &str) -> String {
        let options = format!("--name=j --filename=/dev/pmem0 --direct=1 {options}");
        let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
        let device = Device::lookup(device).unwrap();
        let design = Design::lookup(design).unwrap();
        Simulation::new(&jobs, &device, &design, 1).unwrap_err().to_string()
    }
    let read = "--rw=read --number_ios=1";
    assert_eq!(
        refusal("null", "btt", read),
        "`btt` only works on persistent memory; `null` is a null device"
    );
    let queued = refusal("pmem-dram", "mq-deadline", read);
    assert!(queued.starts_with("`mq-deadline` does not work on `pmem-dram`: "), "{queued}");
    assert!(queued.ends_with("; try `pmem-raw` or `btt`"), "{queued}");
    assert_eq!(
        refusal("pmem-dram", "cqe", read),
        "`cqe` only works on eMMC and SD devices; `pmem-dram` is persistent memory"
    );
    let small = refusal("pmem-dram", "btt", "--rw=read --bs=512 --number_ios=1");
    assert!(small.ends_with("no multiple of the device's 4096; use 4096"), "{small}");
}
