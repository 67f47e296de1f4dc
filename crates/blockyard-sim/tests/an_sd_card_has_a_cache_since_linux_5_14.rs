//! A card of class A2 has a cache that Linux turns on since 5.14: it takes a burst of writes, a
//! flush waits for them, and a loss of power takes what was not flushed.

use blockyard::time::Duration;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// Runs `job` on `sd-a2` without chance, with these keys of its `[card]`.
fn run(job: &str, card: &str, design: &str, verify: Option<&Verify>) -> Report {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let text = format!("base = \"sd-a2\"\n[card]\ndeterministic = true\n{card}\n");
    let device = Device::parse("card", &text).unwrap();
    let design = Design::lookup(design).unwrap();
    let conditions = Conditions { verify, checked: true, ..Conditions::new(1) };
    Simulation::under(&jobs, &device, &design, conditions).unwrap().finish().unwrap()
}

/// Returns CMD49 and CMD48 of 64 writes with an fsync after each four but the last: 15 flushes.
fn settings(design: &str) -> [u64; 2] {
    let report = run("--rw=write --bs=16k --size=1m --fsync=4", "", design, None);
    let commands = report.family.mmc.unwrap().commands;
    [commands[49], commands[48]]
}

#[test]
fn an_fsync_is_one_flush_whose_end_the_host_reads() {
    for design in ["mmc-blkmq", "mmc-blkmq-6.12", "hsq", "hsq-6.12", "mq-none"] {
        assert_eq!(settings(design), [15, 15], "{design}");
    }
}

#[test]
fn kernels_before_5_14_leave_the_cache_off() {
    for design in
        ["mmc-serial", "mmc-double-buffer-full", "mmc-blkmq-4.16", "hsq-v8", "mq-none-2017"]
    {
        assert_eq!(settings(design), [0, 0], "{design}");
    }
    let verify = Verify { power_cut_every: Some(Duration::from_ms(3)), ..Verify::default() };
    let lost = ["mmc-blkmq", "mmc-blkmq-4.16"].map(|design| {
        let report = run("--rw=randwrite --bs=4k --size=1m", "", design, Some(&verify));
        let verified = report.verified.unwrap();
        assert_eq!(verified.violations, [], "{design}");
        assert!(verified.power_cuts.len() > 3, "{design}");
        verified.power_cuts.iter().map(|cut| cut.lost_by_right).sum::<u64>()
    });
    assert!(lost[0] > 0 && lost[1] == 0, "{lost:?}");
}

/// Returns the time of 32 random writes of 4 KiB, one at a time, in us.
fn burst(options: &str, card: &str) -> u64 {
    let job = format!("--rw=randwrite --bs=4k --size=16m --number_ios=32 --randrepeat=1 {options}");
    let report = run(job.trim(), card, "mmc-blkmq", None);
    report.jobs[0].stats.runtime_ns() / 1000
}

/// The memory takes 400 us for a page and 430 us to close each write. Without a cache a write is
/// busy for both, with a cache for 430 us only. The bus and the host take 40 to 200 us more, and
/// after 780 us without work the processor leaves its idle state for 140 us, twice for each write.
/// A flush at the end waits for the memory, which is 32 times 830 us behind the first write, and
/// then takes 430 us for the tables and 1 ms for the command.
#[test]
fn a_cache_takes_a_burst_and_a_flush_waits_for_it() {
    let without = burst("", "cache = \"0B\"\nqueue-depth = 0");
    let with = burst("", "");
    let flushed = burst("--end_fsync=1", "");
    println!("without {without} us, with {with} us, flushed {flushed} us");
    let memory = 32 * (400 + 430);
    let idle = 32 * 2 * 140;
    assert!((memory + idle + 32 * 40..memory + idle + 32 * 200).contains(&without), "{without}");
    assert!((32 * (430 + 40)..32 * (430 + 200)).contains(&with), "{with}");
    assert!((memory + 1_000..memory + 1_430 + 700).contains(&flushed), "{flushed}");
}
