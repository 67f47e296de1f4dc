//! What a job asks for beside reads and writes is what the card is told, command by command, whatever the
//! pipeline.

use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Simulation;

const DISCARDS: &str = "max-discard-sectors = 1048576";
const DESIGNS: [&str; 5] = ["mmc-serial", "mmc-double-buffer-full", "mmc-blkmq", "hsq", "cqe"];

/// How often each command was sent for 64 I/Os, one at a time, on an eMMC with a cache and `limits`.
fn commands(job: &str, design: &str, limits: &str) -> [u64; 64] {
    commands_behind("", job, design, limits)
}

/// The same with what `host` says of the host.
fn commands_behind(host: &str, job: &str, design: &str, limits: &str) -> [u64; 64] {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --bs=16k --size=1m";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[limits]\ncapacity = \"1GiB\"\n{limits}\n\
         [host]\n{host}\n[card]\ncache = \"512KiB\""
    );
    let device = Device::parse("card", &device).unwrap();
    let design = Design::lookup(design).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.mmc.unwrap().commands
}

/// CMD6 for `exclusive` operations with a switch each, or without: a command queue is turned on before
/// the first task, and for each operation off and, if a task follows, on again.
fn switches(design: &str, exclusive: u64, each: u64) -> u64 {
    if design == "cqe" { exclusive * (2 + each) } else { exclusive * each }
}

#[test]
fn an_fsync_is_one_flush_of_the_cache() {
    for design in DESIGNS {
        let commands = commands("--rw=write --fsync=4", design, "");
        // 64 writes, 16 of them with an fsync behind.
        assert_eq!(commands[25] + commands[47], 64, "{design}");
        assert_eq!(commands[6], switches(design, 16, 1), "{design}");
    }
}

/// With direct commands the queue is turned on once, and stays on for flushes. Each is asked after, as
/// without them the card is after each switch.
#[test]
fn an_fsync_leaves_the_queue_on_where_the_engine_takes_direct_commands() {
    let job = "--rw=write --fsync=4";
    let with = commands_behind("queue-engine-direct = true", job, "cqe", "");
    let without = commands(job, "cqe", "");
    assert_eq!((with[47], without[47]), (64, 64));
    assert_eq!((with[6], without[6]), (16 + 1, 16 + 2 * 16));
    assert_eq!(with[13] + 2 * 15 + 1, without[13], "one for each switch");
    let erases = commands_behind("queue-engine-direct = true", "--rw=trim", "cqe", DISCARDS);
    assert_eq!([35, 36, 38, 6].map(|number| erases[number]), [64, 64, 64, 0], "no direct commands");
}

#[test]
fn a_durable_write_is_a_reliable_one_where_there_is_fua_and_else_has_a_flush_behind() {
    for design in DESIGNS {
        let with = commands("--rw=write --sync=dsync", design, "fua = true");
        let without = commands("--rw=write --sync=dsync", design, "");
        for commands in [with, without] {
            assert_eq!(commands[25] + commands[47], 64, "{design}");
        }
        assert_eq!(with[6], u64::from(design == "cqe"), "{design}: a queue is turned on once");
        assert_eq!(without[6], switches(design, 64, 1), "{design}");
    }
}

#[test]
fn a_trim_is_an_erase_of_three_commands_and_the_card_is_asked_how_it_went() {
    for design in DESIGNS {
        let commands = commands("--rw=trim", design, DISCARDS);
        assert_eq!([35, 36, 38].map(|number| commands[number]), [64; 3], "{design}");
        assert!(commands[13] >= 64, "{design}");
        assert_eq!(commands[6], 0, "{design}: there is no task to turn a queue on for");
    }
}

#[test]
fn cache_and_limits_of_a_card_agree() {
    let parse = |text: &str| Device::parse("my.toml", text).unwrap_err().to_string();
    let base = "base = \"emmc-hs400-sprd\"\n";
    let only_limits = parse(&format!("{base}[limits]\nwrite-cache = true"));
    assert!(only_limits.contains("follows from `cache` in `[card]`"), "{only_limits}");
    let denied = parse(&format!("{base}[limits]\nwrite-cache = false\n[card]\ncache = \"64KiB\""));
    assert!(denied.starts_with("my.toml:2: "), "{denied}");
    assert!(denied.contains("follows from `cache` in `[card]`"), "{denied}");
    let forced = parse(&format!("{base}[limits]\nfua = true"));
    assert!(forced.contains("a reliable write"), "{forced}");
}
