//! The command queue of an SD card of class A2, which only `cqe` uses: CMD49 turns it on, its tasks
//! are those of eMMC, several reads are accessed at a time, and the ranges of the card span what
//! its class asks for.

use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const RANDOM: &str = "--ioengine=libaio --iodepth=8 --bs=4k --size=256m --number_ios=2000";

/// Runs `job` on `sd-a2` without chance, with these keys and values.
fn run(job: &str, values: &[(&str, &str)], design: &str) -> Report {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let chance = [("card.deterministic", "true")];
    let overrides: Vec<_> = chance
        .iter()
        .chain(values)
        .map(|(key, value)| Override { key: (*key).into(), value: (*value).into() })
        .collect();
    let device = Device::lookup_with("sd-a2", &overrides).unwrap();
    let design = Design::lookup(design).unwrap();
    let conditions = Conditions { checked: true, ..Conditions::new(1) };
    Simulation::under(&jobs, &device, &design, conditions).unwrap().finish().unwrap()
}

/// Returns the IOPS of a random job.
fn iops(rw: &str, values: &[(&str, &str)], design: &str) -> u64 {
    let report = run(&format!("--rw={rw} {RANDOM}"), values, design);
    2000 * 1_000_000_000 / report.jobs[0].stats.runtime_ns()
}

fn commands(job: &str) -> [u64; 64] {
    run(job, &[], "cqe").family.mmc.unwrap().commands
}

/// 64 writes, with an fsync after each four but the last: 15 flushes. Each turns the queue off, and
/// the next write turns it on.
#[test]
fn cmd49_turns_the_queue_on_and_off() {
    let read = commands("--rw=randread --bs=4k --size=1m");
    assert_eq!([44, 45, 46, 47].map(|number| read[number]), [256, 256, 256, 0]);
    assert_eq!([6, 18, 43, 48, 49].map(|number| read[number]), [0, 0, 0, 0, 1]);
    let written = commands("--rw=write --bs=16k --size=1m --fsync=4");
    assert_eq!([47, 48, 49].map(|number| written[number]), [64, 15, 1 + 15 * 3]);
}

/// An access takes 200 us, so one at a time gives at most 5000 reads a second, and two 10,000. The
/// engine hides host and bus behind the accesses. Without it they add up: 8 blocks take 41 us, and
/// the host 10 to 70 us, so a read takes 251 to 311 us. Two accesses gain 2.7 times; 2.5 times were
/// published of one card.
#[test]
fn reads_gain_by_a_queue_and_more_by_parallel_accesses() {
    let without = iops("randread", &[], "mmc-blkmq");
    let [one, two] =
        ["1", "2"].map(|parallel| iops("randread", &[("card.read.parallel", parallel)], "cqe"));
    println!("without {without}, one access {one}, two {two}");
    assert!((3_200..4_000).contains(&without), "{without}");
    assert!((4_500..=5_000).contains(&one), "{one}");
    assert!((one * 3 / 2..=10_000).contains(&two), "{two}");
}

/// A queue does not make the memory faster, and each random write costs it 830 us: 1200 a second.
/// The queue hides nothing else at depth 8, as the cache does so without it.
#[test]
fn random_writes_are_as_fast_as_the_memory() {
    let [without, with] = ["mmc-blkmq", "cqe"].map(|design| iops("randwrite", &[], design));
    println!("writes without {without}, with {with}");
    assert!([without, with].iter().all(|rate| (1_150..=1_300).contains(rate)), "{without}, {with}");
}

/// Returns the IOPS of random reads and of random writes with a queue.
fn rates(values: &[(&str, &str)]) -> [u64; 2] {
    ["randread", "randwrite"].map(|rw| iops(rw, values, "cqe"))
}

/// Class A2: 4000 random reads and 2000 random writes with queue and cache, which the fast ends of
/// the ranges reach. At the slow ends a card is worse than the class, as cards on sale are.
#[test]
fn the_ranges_of_the_card_span_what_its_class_asks_for() {
    let fast = [
        ("card.read.access", "130us"),
        ("card.write.program", "270us"),
        ("card.write.finish", "100us"),
    ];
    let slow = [
        ("card.read.access", "300us"),
        ("card.read.parallel", "1"),
        ("card.write.program", "800us"),
        ("card.write.finish", "600us"),
    ];
    let [fast, slow] = [rates(&fast), rates(&slow)];
    println!("fast {fast:?}, slow {slow:?}");
    assert!(fast[0] >= 4000 && fast[1] >= 2000, "{fast:?}");
    assert!(slow[0] < 4000 && slow[1] < 2000, "{slow:?}");
}

#[test]
fn a_card_without_a_queue_refuses_the_engine() {
    let device = Device::lookup("sd-a1").unwrap();
    let jobs = parse_args("--name=x --rw=read --bs=4k --size=1m".split(' '), &NoSource).unwrap();
    let design = Design::lookup("cqe").unwrap();
    let refused = Simulation::under(&jobs, &device, &design, Conditions::new(1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cqe:11: `pipeline` is `cqe`, and on device `sd-a1` the card has no command queue: use \
         another pipeline, or a card with `queue-depth` in its `[card]`, and `sd-cache` on if it \
         is SD"
    );
}

/// The standard allows the queue of an SD card only with its cache on.
#[test]
fn an_sd_card_whose_cache_is_off_refuses_the_engine() {
    let device = Device::lookup("sd-a2").unwrap();
    let text = "base = \"cqe\"\n[queue]\nsd-cache = \"off\"\n";
    let design = Design::parse("mine", text).unwrap();
    assert!(!device.under(&design).limits.write_cache);
    assert!(device.under(&Design::lookup("cqe").unwrap()).limits.write_cache);
    let jobs = parse_args("--name=x --rw=read --bs=4k --size=1m".split(' '), &NoSource).unwrap();
    let refused = Simulation::under(&jobs, &device, &design, Conditions::new(1)).unwrap_err();
    assert!(refused.to_string().contains("the card has no command queue"), "{refused}");
}
