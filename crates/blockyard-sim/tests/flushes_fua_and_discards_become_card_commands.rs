//! The card gets a job's flushes, durable writes and discards as the right commands under every
//! pipeline.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

const DISCARDS: &str = "max-discard-sectors = 1048576";
const DESIGNS: [&str; 5] = ["mmc-serial", "mmc-double-buffer-full", "mmc-blkmq", "hsq", "cqe"];

/// Counts each command for 64 I/Os, one at a time, on an eMMC device with a cache and `limits`.
fn commands(job: &str, design: &str, limits: &str) -> [u64; 64] {
    commands_behind("", job, design, limits)
}

/// Like [`commands`], with keys of the host.
fn commands_behind(host: &str, job: &str, design: &str, limits: &str) -> [u64; 64] {
    commands_of("", host, job, design, limits)
}

/// Like [`commands`], with keys of the card and of the host.
fn commands_of(card: &str, host: &str, job: &str, design: &str, limits: &str) -> [u64; 64] {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --bs=16k --size=1m";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[limits]\ncapacity = \"1GiB\"\n{limits}\n\
         [host]\n{host}\n[card]\ncache = \"512KiB\"\n{card}"
    );
    let device = Device::parse("card", &device).unwrap();
    let design = Design::lookup(design).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.family.mmc.unwrap().commands
}

/// The number of CMD6 for `exclusive` operations with `each` switches of their own: a command queue
/// is turned on before the first task. Each operation turns it off; a task that follows turns it on
/// again.
fn switches(design: &str, exclusive: u64, each: u64) -> u64 {
    if design == "cqe" { exclusive * (2 + each) } else { exclusive * each }
}

#[test]
fn an_fsync_is_one_flush_of_the_cache() {
    for design in DESIGNS {
        let commands = commands("--rw=write --fsync=4", design, "");
        // 64 writes, an fsync after each four of them but the last.
        assert_eq!(commands[25] + commands[47], 64, "{design}");
        let turned_on_again = u64::from(design == "cqe");
        assert_eq!(commands[6], switches(design, 15, 1) + turned_on_again, "{design}");
    }
}

/// With direct commands the queue is turned on once and stays on during flushes. Each flush is
/// followed by a status command, as each switch is without direct commands.
#[test]
fn an_fsync_leaves_the_queue_on_if_the_engine_takes_direct_commands() {
    let job = "--rw=write --fsync=4";
    let with = commands_behind("queue-engine-direct = true", job, "cqe", "");
    let without = commands(job, "cqe", "");
    assert_eq!((with[47], without[47]), (64, 64));
    assert_eq!((with[6], without[6]), (15 + 1, 15 + 2 * 15 + 1));
    assert_eq!(with[13] + 2 * 15, without[13], "one for each switch");
    let erases = commands_behind("queue-engine-direct = true", "--rw=trim", "cqe", DISCARDS);
    assert_eq!([35, 36, 38, 6].map(|number| erases[number]), [64, 64, 64, 0], "no direct commands");
}

#[test]
fn a_durable_write_is_a_reliable_write_or_is_followed_by_a_flush() {
    for design in DESIGNS {
        let with = commands("--rw=write --sync=dsync", design, "");
        let without = commands("--rw=write --sync=dsync", design, "fua = false");
        for commands in [with, without] {
            assert_eq!(commands[25] + commands[47], 64, "{design}");
        }
        // Each call ends with a flush. Without FUA one comes right before it, which finds a command
        // queue off already.
        assert_eq!(with[6], switches(design, 64, 1), "{design}");
        assert_eq!(without[6], switches(design, 64, 1) + 64, "{design}");
    }
}

/// As in Linux, durable writes are reliable writes on a card without a cache too, and take longer
/// there if the card reports writes early. A flush is no command, and leaves the command queue on.
#[test]
fn a_card_without_a_cache_gets_reliable_writes_and_no_flush() {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --bs=16k --size=1m --rw=write";
    fn run(
        job: &str,
        design: &str,
        limits: &str,
        common: &str,
    ) -> ([u64; 64], blockyard::time::Duration) {
        let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
        let text = format!("base = \"emmc-hs400-sprd\"\n[limits]\n{limits}");
        let device = Device::parse("card", &text).unwrap();
        let design = Design::lookup(design).unwrap();
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        (report.family.mmc.unwrap().commands, report.span)
    }
    for design in DESIGNS {
        let (durable, took) = run("--sync=dsync", design, "", common);
        let (plain, took_plain) = run("--sync=dsync", design, "fua = false", common);
        let (synced, _) = run("--fsync=4", design, "", common);
        for commands in [durable, plain, synced] {
            assert_eq!(commands[25] + commands[47], 64, "{design}");
            assert_eq!(commands[6], u64::from(design == "cqe"), "{design}: no flush");
        }
        assert!(took > took_plain, "{design}: {took:?} and {took_plain:?}");
    }
}

/// An eMMC device without EN_REL_WR takes reliable writes of one sector, or of REL_WR_SEC_C
/// sectors. Linux splits a write past the cache accordingly: with REL_WR_SEC_C = 1, one of 16 KiB
/// is 32 commands.
#[test]
fn a_durable_write_is_split_to_the_reliable_writes_of_the_card() {
    fn only(sectors: u8) -> String {
        format!("reliable-write-sectors = {sectors}")
    }
    for design in DESIGNS.into_iter().filter(|design| *design != "cqe") {
        for (sectors, each) in [(1, 32), (8, 4), (32, 1), (64, 32)] {
            let job = "--rw=write --sync=dsync";
            let card = format!("queue-depth = 0\n{}", only(sectors));
            let commands = commands_of(&card, "", job, design, "");
            assert_eq!(commands[25] + commands[24], 64 * each, "{design}, {sectors}");
            assert_eq!(commands[23], 64 * each, "each reliable write is announced");
        }
    }
    let text = format!("base = \"emmc-hs400-sprd\"\n[card]\nqueue-depth = 32\n{}", only(1));
    let refused = Device::parse("my.toml", &text).unwrap_err().to_string();
    assert!(refused.starts_with("my.toml:4: "), "{refused}");
}

#[test]
fn a_trim_is_an_erase_of_three_commands_and_a_status_command() {
    for design in DESIGNS {
        let commands = commands("--rw=trim", design, DISCARDS);
        assert_eq!([35, 36, 38].map(|number| commands[number]), [64; 3], "{design}");
        assert!(commands[13] >= 64, "{design}");
        assert_eq!(commands[6], 0, "{design}: without a task the queue is not turned on");
    }
}

#[test]
fn contradictions_between_cache_and_limits_of_a_card_are_refused() {
    fn parse(text: &str) -> String {
        Device::parse("my.toml", text).unwrap_err().to_string()
    }
    let base = "base = \"emmc-hs400-sprd\"\n";
    let decides = "`cache` in `[card]` and `fua` decide";
    let only_limits = parse(&format!("{base}[limits]\nwrite-cache = true\nfua = false"));
    assert!(only_limits.contains(decides), "{only_limits}");
    let denied = parse(&format!("{base}[limits]\nwrite-cache = false\n[card]\ncache = \"64KiB\""));
    assert!(denied.starts_with("my.toml:2: "), "{denied}");
    assert!(denied.contains(decides), "{denied}");
    for cannot in [
        "base = \"sd-ux500\"\n[limits]\nfua = true".to_owned(),
        format!("{base}[limits]\nfua = true\n[host]\nset-block-count = false"),
    ] {
        let forced = parse(&cannot);
        assert!(forced.contains("a reliable write"), "{forced}");
    }
}
