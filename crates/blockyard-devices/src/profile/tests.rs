//! The contents of profiles, and the errors about wrong ones.

use super::Reach;
use super::wbt::WbtLatency;
use blockyard::limits::Limits;
use blockyard::policy::{
    BfqTunables, BusyTrack, Dequeue, Dispatch, ElevatorKind, KyberAdjust, KyberStaging,
    KyberTunables, Merges, Model, Policies, SchedDepth, SwqMerge,
};
use blockyard::time::Duration;
use blockyard_btt::{LaneChoice, Policy, ReadTracking};
use blockyard_mmc::policy::Bounce;
use std::path::Path;
use toml::de::{DeTable, DeValue};

use super::*;

mod builtin;
mod kernels;
mod media;
mod memory;
mod messages;
mod readings;

/// Returns the error about `text` as a design.
fn design_error(text: &str) -> String {
    Design::parse("my.toml", text).unwrap_err().to_string()
}

/// Returns the error about `text` as a device.
fn device_error(text: &str) -> String {
    Device::parse("my.toml", text).unwrap_err().to_string()
}

#[test]
fn the_designs_of_linux_7_3_are_the_ones_of_the_core() {
    assert_eq!(Design::lookup("mq-none").unwrap().policies, Policies::NONE);
    assert_eq!(Design::lookup("mq-deadline").unwrap().policies, Policies::mq_deadline());
    assert_eq!(Design::lookup("mq-kyber").unwrap().policies, Policies::mq_kyber());
}

#[test]
fn kyber_of_2017_has_more_tokens_for_others_and_goes_by_steps() {
    let design = Design::lookup("mq-kyber-2017").unwrap().policies;
    let kyber = ElevatorKind::Kyber(KyberTunables {
        other_depth: 64,
        adjust: KyberAdjust::Steps,
        staging: KyberStaging::Together,
        ..KyberTunables::default()
    });
    let elsewise = Design::lookup("mq-none-2017").unwrap().policies;
    assert_eq!(design, Policies { elevator: kyber, ..elsewise });
}

#[test]
fn each_tunable_of_kyber_is_its_own() {
    let text = "base = \"mq-kyber\"\n[queue.kyber]\nread-latency = \"1ms\"\n\
                write-latency = \"3ms\"\nread-depth = 1\nwrite-depth = 2\n\
                discard-depth = 3\nother-depth = 4\nstaging = \"together\"\n";
    let kyber = KyberTunables {
        read_latency: Duration::from_ms(1),
        write_latency: Duration::from_ms(3),
        read_depth: 1,
        write_depth: 2,
        discard_depth: 3,
        other_depth: 4,
        adjust: KyberAdjust::Percentiles,
        staging: KyberStaging::Together,
        async_depth: None,
    };
    let design = Design::parse("mine", text).unwrap();
    assert_eq!(design.policies.elevator, ElevatorKind::Kyber(kyber));
}

#[test]
fn each_tunable_of_bfq_is_its_own() {
    let text = "base = \"mq-bfq\"\n[queue]\nasync-depth = 7\n[queue.bfq]\nslice-idle = \"1ms\"\n\
                low-latency = false\ntimeout-sync = \"2ms\"\nmax-budget = 3\n\
                back-seek-max = 4\nback-seek-penalty = 5\nfifo-expire-sync = \"6ms\"\n\
                fifo-expire-async = \"8ms\"\nmerges-queues = false\nplug-stops-clock = true\n";
    let bfq = BfqTunables {
        slice_idle: Duration::from_ms(1),
        low_latency: false,
        strict_guarantees: false,
        timeout_sync: Duration::from_ms(2),
        max_budget: 3,
        back_seek_max: 4,
        back_seek_penalty: 5,
        fifo_expire_sync: Duration::from_ms(6),
        fifo_expire_async: Duration::from_ms(8),
        async_depth: Some(7),
        merges_queues: false,
        plug_stops_clock: true,
    };
    let design = Design::parse("mine", text).unwrap();
    assert_eq!(design.policies.elevator, ElevatorKind::Bfq(bfq));
    let linux = BfqTunables::default();
    let old = BfqTunables { plug_stops_clock: true, ..linux };
    for (name, tunables) in [("mq-bfq", linux), ("bfq", linux), ("bfq-6.12", old)] {
        let design = Design::lookup(name).unwrap();
        assert_eq!(design.policies.elevator, ElevatorKind::Bfq(tunables), "{name}");
        assert_eq!(design.wbt_latency, WbtLatency::Off, "{name}");
    }
    let strict = Design::parse("mine", "base = \"mq-bfq\"\nqueue.bfq.strict-guarantees = true\n");
    let ElevatorKind::Bfq(strict) = strict.unwrap().policies.elevator else { panic!("bfq") };
    assert!(strict.strict_guarantees);
}

fn bfq_error(lines: &str) -> String {
    design_error(&format!("base = \"mq-bfq\"\n[queue.bfq]\n{lines}\n"))
}

#[test]
fn tunables_of_bfq_that_cannot_be_are_refused() {
    assert_eq!(
        bfq_error("slice-idle = \"101ms\""),
        "my.toml:3: `slice-idle` is at most 100ms, the longest time for which an elevator may hold the device"
    );
    assert_eq!(
        bfq_error("strict-guarantees = true\nslice-idle = \"7ms\""),
        "my.toml:4: `strict-guarantees` goes only with a `slice-idle` of at least 8ms, to which Linux raises it"
    );
    assert_eq!(bfq_error("timeout-sync = \"999us\""), "my.toml:3: `timeout-sync` is at least 1ms");
    assert_eq!(
        bfq_error("back-seek-penalty = 0"),
        "my.toml:3: `back-seek-penalty` is `0`, out of range (1 to 2147483647)"
    );
    assert_eq!(
        design_error("base = \"mq-none\"\n[queue.bfq]\n"),
        "my.toml:2: `[queue.bfq]` goes only with `elevator = \"bfq\"`"
    );
}

#[test]
fn the_series_of_2017_changes_only_its_own_policies() {
    for (before, after) in
        [("mq-none-2017", "mq-none-2017-patched"), ("mq-deadline-2017", "mq-deadline-2017-patched")]
    {
        let before = Design::lookup(before).unwrap().policies;
        assert_eq!(before.dispatch, Dispatch::DrainAll);
        assert_eq!(before.dequeue, Dequeue::SpliceAll);
        assert_eq!(before.busy, BusyTrack::Off);
        assert_eq!(before.swq_merge, SwqMerge::Last8);
        assert_eq!(before.sched_depth, SchedDepth::Fixed(256));
        let after = Design::lookup(after).unwrap().policies;
        let patched = Policies {
            dispatch: Dispatch::SharedList,
            dequeue: Dequeue::RoundRobin,
            busy: BusyTrack::Bit,
            swq_merge: SwqMerge::Hash,
            sched_depth: SchedDepth::FromDeviceDepth,
            merges: Merges::All,
            ..before
        };
        assert_eq!(after, patched);
    }
}

#[test]
fn elevators_before_5_14_keep_no_priority_classes() {
    for name in ["legacy-deadline", "mq-deadline-2017", "mq-deadline-2017-patched"] {
        let ElevatorKind::Deadline(tunables) = Design::lookup(name).unwrap().policies.elevator
        else {
            panic!("{name} has no elevator");
        };
        assert!(!tunables.classes, "{name}");
    }
    let legacy = Design::lookup("legacy-deadline").unwrap().policies;
    assert_eq!(legacy.model, Model::SingleLock);
    assert_eq!(legacy.sched_depth, SchedDepth::Fixed(128));
}

#[test]
fn a_design_on_a_base_has_only_the_keys_that_differ() {
    let text = "base = \"mq-deadline\"\n[queue]\ndepth = 31\nhw-queues = 4\n\
                [queue.deadline]\nfifo-batch = 1\nprio-aging-expire = \"never\"\n";
    let design = Design::parse("./mine.toml", text).unwrap();
    assert_eq!((design.name.as_str(), design.title.as_str()), ("./mine.toml", ""));
    assert_eq!((design.depth, design.hw_queues), (Some(31), Some(4)));
    let mut expected = Policies::mq_deadline();
    if let ElevatorKind::Deadline(tunables) = &mut expected.elevator {
        tunables.fifo_batch = 1;
        tunables.prio_aging_expire = Duration::MAX;
    }
    assert_eq!(design.policies, expected);
}

#[test]
fn a_base_with_tunables_can_lose_its_elevator() {
    let text = "base = \"mq-deadline\"\nqueue.elevator = \"none\"\n";
    assert_eq!(Design::parse("mine", text).unwrap().policies, Policies::NONE);
}

#[test]
fn only_a_transfer_that_is_left_open_has_a_limit() {
    let text = "[host]\npipeline = \"serial\"\nbusy-detect = \"hw\"\nopen-limit = \"1ms\"";
    let told = design_over("mq-none", text);
    assert_eq!(told, "my.toml:5: `open-limit` goes only with `transfers = \"left-open\"`");
}

#[test]
fn fibre_channel_hosts_have_depths_and_a_link_of_their_own() {
    let srp = Device::lookup("srp").unwrap();
    let DeviceModel::Hba(of_srp) = srp.model else { panic!("srp is no host") };
    for (name, cmd_per_lun, can_queue) in [("lpfc", 30, 8182), ("qla2xxx", 32, 2048)] {
        let device = Device::lookup(name).unwrap();
        assert_eq!(device.machine, srp.machine);
        let DeviceModel::Hba(hba) = device.model else { panic!("{name} is no host") };
        // FC-PI-5 at 16 Gbit/s, and frames of FC-FS.
        let link = HbaProfile { link_read: 1_600_000_000, link_write: 1_600_000_000, ..of_srp };
        let hw_queues = 16;
        assert_eq!(hba, HbaProfile { hw_queues, cmd_per_lun, can_queue, burst: 2048, ..link });
    }
}

#[test]
fn srp_has_the_depths_and_channels_of_its_driver() {
    let srp = Device::lookup("srp").unwrap();
    let DeviceModel::Hba(hba) = srp.model else { panic!("srp is no host") };
    assert_eq!((hba.hw_queues, hba.can_queue, hba.cmd_per_lun, hba.luns), (8, 62, 62, 1));
    assert_eq!(srp.limits.capacity_sectors, 1 << 31);
    assert_eq!(srp.machine.cpus, 16);
}

#[test]
fn a_lun_that_refuses_ramps_its_depth() {
    let refusal = "[hba.refusal]\nmode = \"lun-full\"\nlimit = 20\nramp-down-after = 10\n\
                   ramp-up-period = \"120s\"\n";
    let device = Device::parse("mine", &format!("base = \"srp\"\n{refusal}")).unwrap();
    let DeviceModel::Hba(hba) = device.model else { panic!("no host") };
    let mode =
        RefusalMode::LunFull { ramp_down_after: 10, ramp_up_period: Duration::from_secs(120) };
    assert_eq!(hba.refusal, Some(Refusal { mode, limit: 20 }));
}

#[test]
fn a_null_device_on_a_host_as_base_keeps_its_machine() {
    let text = "base = \"srp\"\n[null]\ncompletion = \"timer\"\nsubmit-queues = 2\ndepth = 8\n\
                bandwidth-limit = \"400MiB/s\"\n";
    let device = Device::parse("mine", text).unwrap();
    let null = NullProfile {
        completion: NullCompletion::Timer,
        completion_time: Duration::from_us(10),
        submit_queues: 2,
        depth: 8,
        shared_tags: false,
        disks: 1,
        bandwidth_limit: Some(400 << 20),
    };
    assert_eq!(device.model, DeviceModel::Null(null));
    assert_eq!(device.machine, Device::lookup("srp").unwrap().machine);
}

#[test]
fn an_unknown_value_is_reported_with_the_nearest_one() {
    let text = "title = \"x\"\n\n[queue]\nmodel = \"multi\"\n\n\nelevator = \"mq-dedline\"\n";
    assert_eq!(
        design_error(text),
        "my.toml:7: unknown value `mq-dedline` for `elevator`: did you mean `mq-deadline`?"
    );
}

#[test]
fn a_misspelt_key_is_reported_before_the_missing_key() {
    assert_eq!(
        design_error("[queue]\nmodle = \"multi\"\n"),
        "my.toml:2: unknown key `modle` in `[queue]`: did you mean `model`?"
    );
    assert_eq!(
        device_error("[srp]\n").replace("fixed, ", ""), // the family of tests
        "my.toml:1: unknown key `srp` (one of title, base, processors, limits, cache, null, hba, \
         card, host, pmem, nvme, ahci, virtio, ufs, usb, crosspoint, flash, platters, volume, cpu)"
    );
}

fn with_base(name: &str) -> String {
    format!(
        "; with `base = \"{name}\"` at the top, or another name that `blockyard list` prints, a file needs only the lines that differ"
    )
}

#[test]
fn a_missing_key_is_reported_at_the_line_of_its_table() {
    let design = with_base("mq-deadline");
    assert_eq!(design_error(""), format!("my.toml:1: missing key `model` in `[queue]`{design}"));
    let text = "title = \"x\"\n[queue]\nmodel = \"multi\"\nelevator = \"none\"\n";
    assert_eq!(
        design_error(text),
        format!("my.toml:2: missing key `dispatch` in `[queue]`{design}")
    );
    assert_eq!(
        device_error(""),
        format!(
            "my.toml:1: no device: none of `[null]`, `[hba]`, `[card]`, `[pmem]` and a drive's front end, nor \
         a `base` that has one{}",
            with_base("nvme-tlc")
        )
    );
    assert_eq!(
        device_error("base = \"srp\"\n[hba.refusal]\nlimit = 3\n"),
        "my.toml:2: missing key `mode` in `[hba.refusal]`"
    );
}

#[test]
fn a_file_that_lacks_a_line_is_blamed_itself() {
    let mut refused = 0;
    for device in builtin_devices() {
        let mut lines: Vec<_> = device.text.lines().collect();
        for index in 0..lines.len() {
            let line = core::mem::take(&mut lines[index]);
            if let Err(error) = Device::parse("my.toml", &lines.join("\n")) {
                assert!(
                    error.to_string().starts_with("my.toml:"),
                    "{}: {line}: {error}",
                    device.name
                );
                refused += 1;
            }
            lines[index] = line;
        }
    }
    assert!(refused > 500, "{refused} files were refused");
    for text in ["processors = \"server-2021\"\n", "processors = \"server-2021\"\n[flash]\n"] {
        assert!(device_error(text).starts_with("my.toml:"), "{}", device_error(text));
    }
}

/// The error of a design of two lines: `base`, and `line`.
fn design_over(base: &str, line: &str) -> String {
    design_error(&format!("base = \"{base}\"\n{line}\n"))
}

#[test]
fn a_value_of_the_wrong_type_or_form_is_reported_with_the_right_one() {
    assert_eq!(
        design_over("mq-deadline", "queue = 3"),
        "my.toml:2: `queue` is `integer`, not a table"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.depth = \"deep\""),
        "my.toml:2: `depth` is `deep`, not a whole number: write one from 1 to 10240"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.model = 1"),
        "my.toml:2: `model` is `1`, not a string"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.deadline.classes = \"yes\""),
        "my.toml:2: `classes` is `yes`, not true or false: write true"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.deadline.read-expire = 500"),
        "my.toml:2: `read-expire` is `500`, not a time with its unit: write \"500ns\" or \"500us\" or \
         \"500ms\" or \"500s\""
    );
    assert_eq!(
        device_error("base = \"srp\"\n[limits]\ncapacity = \"1TB\"\n"),
        "my.toml:3: `capacity` is `1TB`, not a size with its unit: write \"1TiB\", or \"1000000000000B\" for \
         units of 1000"
    );
}

#[test]
fn a_number_out_of_range_is_reported_with_the_range() {
    assert_eq!(
        design_over("mq-deadline", "queue.depth = 0"),
        "my.toml:2: `depth` is `0`, out of range (1 to 10240)"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.hw-queues = 70_000"),
        "my.toml:2: `hw-queues` is `70000`, out of range (1 to 1024)"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.deadline.read-expire = \"3601s\""),
        "my.toml:2: `read-expire` is `3601s`, out of range (at most 1h)"
    );
    assert_eq!(
        design_over("mq-deadline", "queue.sched-depth = \"device\""),
        "my.toml:2: unknown value `device` for `sched-depth` (one of from-device-depth)"
    );
}

/// Returns the queues for reads and for polls of a design with these keys of `[queue]`.
fn queues_of_kinds(keys: &str) -> Result<[KindQueues; 2], String> {
    let design = Design::parse("my.toml", &format!("base = \"mq-none\"\n[queue]\n{keys}\n"));
    design.map(|design| [design.read_queues, design.poll_queues]).map_err(|e| e.to_string())
}

#[test]
fn the_hardware_queues_of_a_kind_carry_their_line() {
    let none = KindQueues::default();
    assert_eq!(queues_of_kinds(""), Ok([none, none]));
    let polled = KindQueues { count: 2, line: 3 };
    assert_eq!(queues_of_kinds("poll-queues = 2"), Ok([none, polled]));
    let read = KindQueues { count: 3, line: 4 };
    let unpolled = KindQueues { count: 0, line: 3 };
    assert_eq!(queues_of_kinds("poll-queues = 0\nread-queues = 3"), Ok([read, unpolled]));
    assert_eq!(
        queues_of_kinds("poll-queues = 1025").unwrap_err(),
        "my.toml:3: `poll-queues` is `1025`, out of range (0 to 1024)"
    );
    assert_eq!(
        queues_of_kinds("model = \"single-lock\"\nread-queues = 1").unwrap_err(),
        "my.toml:4: `read-queues` and `poll-queues` go only with `model = \"multi\"`: under the \
         single lock there is one hardware queue"
    );
    let unknown = queues_of_kinds("polled-queues = 1").unwrap_err();
    assert!(unknown.contains("did you mean `poll-queues`?"));
}

fn lock_batch(base: &str, keys: &str) -> Result<u32, String> {
    let text = format!("base = \"{base}\"\n[queue]\n{keys}");
    Design::parse("my.toml", &text).map(|design| design.lock_batch).map_err(|e| e.to_string())
}

#[test]
fn only_a_design_with_an_elevators_lock_takes_it_for_a_batch() {
    assert_eq!(lock_batch("mq-deadline", ""), Ok(1));
    assert_eq!(lock_batch("mq-deadline", "lock-batch = 8"), Ok(8));
    assert_eq!(
        lock_batch("mq-deadline", "lock-batch = 0").unwrap_err(),
        "my.toml:3: `lock-batch` is `0`, out of range (1 to 10240)"
    );
    for base in ["mq-none", "mq-kyber", "legacy-deadline"] {
        let wrong = lock_batch(base, "lock-batch = 8").unwrap_err();
        assert!(wrong.starts_with("my.toml:3: `lock-batch` goes only with `model = "), "{wrong}");
    }
}

fn reach(limits: &Limits, keys: &str) -> (u64, u64) {
    let design = Design::parse("my.toml", &format!("base = \"mq-none\"\n[queue]\n{keys}")).unwrap();
    let Reach { usual, widest, .. } = design.read_ahead.reach(limits);
    (usual, widest)
}

fn page_copy_ns(keys: &str) -> u64 {
    let text = format!("base = \"null\"\n[cpu]\n{keys}");
    Device::parse("my.toml", &text).unwrap().machine.page_copy.as_ns()
}

#[test]
fn read_ahead_is_that_of_linux_by_default() {
    let mut limits = Device::lookup("null").unwrap().limits;
    limits.max_sectors = 2560;
    assert_eq!(reach(&limits, ""), (32, 320));
    assert_eq!(reach(&limits, "read-ahead = \"1MiB\"\nread-ahead-cap = \"setting\"\n"), (256, 0));
    assert_eq!(reach(&limits, "read-ahead = \"0B\"\n"), (0, 320));
    assert_eq!(
        design_error("base = \"mq-none\"\n[queue]\nread-ahead = \"6KiB\"\n"),
        "my.toml:3: `read-ahead` is a whole number of pages of 4KiB"
    );
    assert_eq!([page_copy_ns(""), page_copy_ns("page-copy = \"29us\"\n")], [1_000, 29_000]);
}

/// A null device on a machine with `keys`.
fn cpu_of_null(keys: &str) -> String {
    format!("base = \"null\"\n[cpu]\n{keys}")
}

#[test]
fn limits_on_dirty_pages_fit_in_the_memory() {
    let machine =
        Device::parse("my.toml", &cpu_of_null("dirty-bytes = \"1GiB\"\n")).unwrap().machine;
    let MachineProfile { memory_bytes, dirty_background_bytes, dirty_bytes, .. } = machine;
    assert_eq!([memory_bytes, dirty_background_bytes, dirty_bytes], [8 << 30, 0, 1 << 30]);
    let small = "memory = \"512MiB\"\n";
    assert!(
        Device::parse("my.toml", &cpu_of_null(&format!("{small}dirty-bytes = \"512MiB\"\n")))
            .is_ok()
    );
    for key in ["dirty-bytes", "dirty-background-bytes"] {
        assert_eq!(
            device_error(&cpu_of_null(&format!("{small}{key} = \"513MiB\"\n"))),
            format!("my.toml:4: `{key}`: 513MiB are more than the memory, 512MiB")
        );
    }
    assert_eq!(
        device_error(&cpu_of_null("memory = \"8MiB\"\n")),
        "my.toml:3: `memory` is `8MiB`, out of range (16MiB to 64TiB)"
    );
}

#[test]
fn contradictions_are_refused() {
    assert_eq!(
        design_over("mq-none", "[queue.deadline]"),
        "my.toml:2: `[queue.deadline]` goes only with `elevator = \"mq-deadline\"`"
    );
    assert_eq!(
        design_over("mq-none", "[queue]\nelevator = \"mq-deadline\"\n[queue.kyber]"),
        "my.toml:4: `[queue.kyber]` goes only with `elevator = \"kyber\"`"
    );
    assert_eq!(
        design_over(
            "mq-none",
            "[queue]\nelevator = \"kyber\"\n[queue.kyber]\nadjust = \"steps\"\ndiscard-depth = 9"
        ),
        "my.toml:6: `discard-depth` goes only with `adjust = \"percentiles\"`: with steps discards \
         are among the others"
    );
    assert_eq!(
        design_over("mq-none", "[queue]\nmodel = \"single-lock\"\ndispatch = \"drain-all\""),
        "my.toml:4: `model = \"single-lock\"` goes only with `dispatch = \"budget\"`: it takes a \
         request only when the device has room"
    );
    assert_eq!(
        device_error("[null]\n[hba]\n"),
        "my.toml:2: a device is one of `[null]`, `[hba]`, `[card]`, `[pmem]` and a drive's front end"
    );
    let of_srp = device_error("base = \"srp\"\n[host]\ntags = 1\n");
    assert_eq!(of_srp, "my.toml:2: `[host]` goes only with `[card]`");
    let wide = "base = \"sd-ux500\"\n[card]\nwidth = 8\n";
    assert_eq!(device_error(wide), "my.toml:3: this `timing` does not work with this `width`");
    let lanes = "base = \"sd-ux500\"\n[card]\nwidth = 2\n";
    assert_eq!(device_error(lanes), "my.toml:3: `width` is `2`, out of range (1, 4 or 8)");
    let queue = "base = \"sd-ux500\"\n[card]\nqueue-depth = 2\n";
    assert_eq!(
        device_error(queue),
        "my.toml:3: the queue of an SD card holds 2 to 32 tasks, and goes only with a `cache`"
    );
    let interrupted = "base = \"sd-ux500\"\n[card]\nhpi = true\n";
    assert_eq!(
        device_error(interrupted),
        "my.toml:3: an SD card has no packed commands, reliable writes, HPI or background operations"
    );
    let page = "base = \"sd-ux500\"\n[card.write]\nprogram = \"1ms\"\npage = \"3KiB\"\n";
    let rule = "a page is a power of two of at least 512 bytes";
    assert_eq!(device_error(page), format!("my.toml:4: {rule}"));
    let buffer = "base = \"sd-ux500\"\n[card.write]\nbuffer = \"4KiB\"\n[card.read]\n";
    assert_eq!(device_error(buffer), "my.toml:3: the buffer holds at least a page");
    let cached = "base = \"sd-ux500\"\n[host]\ntags = 2\npio-cached = \"1MiB\"\n";
    let together = "my.toml:4: `pio-cached` goes only with `pio-miss-per-kib`";
    assert_eq!(device_error(cached), together);
    let stall = "base = \"emmc-u5500\"\n[host]\npio-stall-per-kib = \"1us\"\n";
    let shorter =
        "`pio-stall-per-kib` is at least `pio-miss-per-kib`: the bus waits for the processor";
    assert_eq!(device_error(stall), format!("my.toml:3: {shorter}"));
    assert_eq!(
        design_over(
            "mq-none",
            "[host]\npipeline = \"serial\"\nbusy-detect = \"hw\"\n[host.hsq]\nlimit = 2"
        ),
        "my.toml:5: `[host.hsq]` goes only with `pipeline = \"hsq\"`"
    );
    let host_full = "base = \"srp\"\n[hba.refusal]\nmode = \"host-full\"\nlimit = 9\n\
                     ramp-down-after = 1\n";
    assert_eq!(device_error(host_full), "my.toml:5: a ramp goes only with `mode = \"lun-full\"`");
}

/// What DMA takes longer is 40 and 20 us whatever the length, and 6 and 4 us for a KiB.
#[test]
fn shares_divide_what_dma_takes_longer_and_keep_its_sum() {
    let costs = |shares: &str| {
        let sum =
            "map = \"40us\"\nunmap = \"20us\"\nmap-per-kib = \"6us\"\nunmap-per-kib = \"4us\"\n";
        let text = format!("base = \"sd-ux500\"\n[host]\n{sum}{shares}");
        let device = Device::parse("my.toml", &text).unwrap();
        let DeviceModel::Mmc(profile) = device.model else { unreachable!("it is a card") };
        let costs = profile.host.costs;
        let MemoryCosts { map, map_per_kib, unmap, unmap_per_kib } = costs.read;
        [map, unmap, map_per_kib, unmap_per_kib, costs.dma_per_kib].map(Duration::as_ns)
    };
    assert_eq!(costs(""), [40_000, 20_000, 6000, 4000, 0], "as stated");
    assert_eq!(costs("map-share = 100\n"), [60_000, 0, 10_000, 0, 0]);
    assert_eq!(costs("map-share = 0\n"), [0, 60_000, 0, 10_000, 0]);
    assert_eq!(costs("dma-share = 50\n"), [40_000, 20_000, 3000, 2000, 5000]);
    let both = costs("map-share = 75\ndma-share = 20\n");
    assert_eq!(both, [45_000, 15_000, 6000, 2000, 2000]);
}

fn srp_error(line: &str) -> String {
    device_error(&format!("base = \"srp\"\n{line}\n"))
}

#[test]
fn a_figure_with_an_origin_has_a_value() {
    assert_eq!(srp_error("hba.luns = { value = 2 }"), "my.toml:2: missing key `origin`");
    assert_eq!(srp_error("hba.luns = { origin = \"x\" }"), "my.toml:2: missing key `value`");
    assert_eq!(
        srp_error("hba.luns = { vale = 2, origin = \"x\" }"),
        "my.toml:2: unknown key `vale`: did you mean `value`?"
    );
}

#[test]
fn a_file_that_is_not_toml_is_reported_with_its_line() {
    let error = design_error("title = \"x\"\n[queue\nmodel = 1\n");
    assert!(error.starts_with("my.toml:2: "), "{error}");
    let error = design_error("title = \"x\"\ntitle = \"y\"\n");
    assert!(error.starts_with("my.toml:2: "), "{error}");
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest_one() {
    assert_eq!(
        Device::lookup("sprp").unwrap_err().to_string(),
        "unknown device `sprp`: did you mean `srp`?"
    );
    assert_eq!(
        Device::lookup("zzzzzzzzz").unwrap_err().to_string(),
        "unknown device `zzzzzzzzz`; `blockyard list` prints all"
    );
    assert_eq!(
        Device::lookup("ssd").unwrap_err().to_string(),
        "unknown device `ssd`: did you mean `nvme-3dxpoint`, `nvme-tlc`, `nvme-tlc-dramless`, `nvme-qlc`, \
         `nvme-dc`, `sata-ssd`, `sata-ssd-dc` or `usb-ssd`?"
    );
    assert_eq!(
        Device::lookup("NVME-TLC").unwrap_err().to_string(),
        "unknown device `NVME-TLC`: did you mean `nvme-tlc`?"
    );
    assert_eq!(
        Device::lookup("target-full").unwrap_err().to_string(),
        "unknown device `target-full`: did you mean `lpfc-target-full`?"
    );
    assert_eq!(
        Device::parse("my.toml", "base = \"spr\"\n").unwrap_err().to_string(),
        "my.toml:1: unknown value `spr` for `base`: did you mean `srp`?"
    );
    assert_eq!(
        Device::parse("my.toml", "base = \"zzzzzzzzz\"\n").unwrap_err().to_string(),
        "my.toml:1: unknown value `zzzzzzzzz` for `base`; `blockyard list` prints all"
    );
    assert!(Design::lookup("mq-deadlin").unwrap_err().to_string().contains("`mq-deadline`?"));
    assert!(
        builtin("nul")
            .unwrap_err()
            .to_string()
            .starts_with("unknown design, device, processors or file system `nul`")
    );
}

#[test]
fn a_file_that_cannot_be_read_is_reported_with_its_path() {
    let error = Design::lookup("./no/such.toml").unwrap_err().to_string();
    assert!(error.starts_with("./no/such.toml: "), "{error}");
    let error = Design::lookup("./").unwrap_err().to_string();
    assert!(error.starts_with("./: "), "{error}");
}

fn looked_up(path: &Path, bytes: &[u8]) -> Result<String, String> {
    std::fs::write(path, bytes).unwrap();
    Design::lookup(path.to_str().unwrap())
        .map(|design| design.name)
        .map_err(|error| error.to_string())
}

#[test]
fn a_file_that_is_too_long_or_no_text_is_refused() {
    let path = std::env::temp_dir().join(format!("blockyard-profile-{}.toml", std::process::id()));
    let name = path.to_str().unwrap();
    assert_eq!(looked_up(&path, b"base = \"mq-none\""), Ok(name.to_owned()));
    assert_eq!(
        looked_up(&path, b"# one\ntitle = \"\xff\"\n"),
        Err(format!("{name}:2: not UTF-8 text"))
    );
    assert_eq!(
        looked_up(&path, &[b'#'; 64 * 1024]),
        Err(format!(
            "{name}:1: missing key `model` in `[queue]`; with `base = \"mq-deadline\"` at the top, or another name \
             that `blockyard list` prints, a file needs only the lines that differ"
        ))
    );
    assert_eq!(
        looked_up(&path, &[b'#'; 64 * 1024 + 1]),
        Err(format!("{name}: longer than 64 KiB"))
    );
    std::fs::remove_file(&path).unwrap();
}

/// Profiles come from users, so no text may make the reader panic. Each fifth place is cut and
/// spliced; the fuzz target `profile` does more.
#[test]
fn any_text_is_read_or_refused_without_a_panic() {
    const SPLICES: &[&str] =
        &["", "\"", "[", "]]", "{", "=", "\n", "\0", "é", "9", "-", ".", "1e400", "'''", "#", "_"];
    let all = builtin_designs().iter().chain(builtin_devices());
    for (nth, builtin) in all.enumerate() {
        let text = builtin.text;
        for at in (nth % 5..=text.len()).step_by(5).filter(|&at| text.is_char_boundary(at)) {
            let (head, tail) = text.split_at(at);
            parse_both(head);
            parse_both(tail);
            let skipped: String = tail.chars().skip(1).collect();
            let splice = SPLICES[at % SPLICES.len()];
            parse_both(&format!("{head}{splice}{skipped}"));
            parse_both(&format!("{head}{splice}{tail}"));
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for open in ["[", "{a=", "a."] {
        parse_both(&format!("title = {}", open.repeat(20_000)));
        parse_both(&open.repeat(20_000));
    }
}

fn parse_both(text: &str) {
    drop(Design::parse("mutant", text));
    drop(Device::parse("mutant", text));
}

#[test]
fn a_fault_in_a_profile_is_refused_with_a_hint_at_fault_files() {
    let hint = ": faults are not part of a profile: give them in a file with --faults";
    for (text, told) in [
        (
            "base = \"null\"\n[null]\nbusy-one-in = 3",
            "mine:3: unknown key `busy-one-in` in `[null]`",
        ),
        (
            "base = \"null\"\n[null]\nerror-one-in = 3",
            "mine:3: unknown key `error-one-in` in `[null]`",
        ),
        (
            "base = \"sd-hs\"\n[card.faults]\nprogram-one-in = 3",
            "mine:2: unknown key `faults` in `[card]`",
        ),
        (
            "base = \"sd-hs\"\n[host.faults]\ndrift-one-in = 3",
            "mine:2: unknown key `faults` in `[host]`",
        ),
    ] {
        assert_eq!(Device::parse("mine", text).unwrap_err().to_string(), format!("{told}{hint}"));
    }
}

#[test]
fn every_value_of_a_historical_policy_has_a_builtin_design() {
    let designs: Vec<_> =
        builtin_designs().iter().map(|of| Design::lookup(of.name).unwrap()).collect();
    for dispatch in
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget]
    {
        assert!(designs.iter().any(|of| of.policies.dispatch == dispatch), "{dispatch:?}");
    }
    for bounce in [Bounce::None, Bounce::Sync, Bounce::Async] {
        let has = |of: &Design| of.host.is_some_and(|host| host.bounce == bounce);
        assert!(designs.iter().any(has), "{bounce:?}");
    }
    for tracking in [
        ReadTracking::Versions,
        ReadTracking::Indexed,
        ReadTracking::Scan,
        ReadTracking::ScanPadded,
    ] {
        let has = |of: &Design| of.btt.is_some_and(|btt| btt.tracking == tracking);
        assert!(designs.iter().any(has), "{tracking:?}");
    }
}

fn refusal(name: &str) -> RefusalMode {
    match Device::lookup(name).unwrap().model {
        DeviceModel::Hba(hba) => hba.refusal.unwrap().mode,
        _ => panic!("{name} is no SCSI host"),
    }
}

#[test]
fn each_mode_of_refusal_has_a_builtin_device() {
    assert_eq!(refusal("lpfc-host-full"), RefusalMode::HostFull);
    assert_eq!(refusal("lpfc-target-full"), RefusalMode::TargetFull);
    assert!(matches!(refusal("lpfc-lun-full"), RefusalMode::LunFull { .. }));
}

fn merges(value: &str) -> Result<Merges, ProfileError> {
    let text = format!("base = \"mq-none\"\n[queue]\nnomerges = {value}\n");
    Design::parse("my.toml", &text).map(|design| design.policies.merges)
}

#[test]
fn nomerges_has_linuxs_values() {
    assert_eq!(merges("0").unwrap(), Merges::All);
    assert_eq!(merges("1").unwrap(), Merges::Last);
    assert_eq!(merges("2").unwrap(), Merges::Off);
    assert!(merges("3").is_err());
}
