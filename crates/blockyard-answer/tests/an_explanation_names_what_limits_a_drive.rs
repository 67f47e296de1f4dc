//! An explanation names what limits a drive, by what its parts did: a full cache of single-level
//! cells, collection, the head of a disk, a volume's limit. It names the depth where nothing in the
//! drive is used up.

use blockyard_answer::{
    Answer, Bottleneck, DriveLimit, Evidence, FamilyLimit, FrontPart, MediumCause, MediumLimit,
    Parts, Work, whatif,
};
use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Conditions;

/// Runs fio's `options` on the built-in drive `name` with other figures, without a scheduler.
fn ask(name: &str, figures: &[(&str, &str)], options: &str) -> Answer {
    let figures =
        figures.iter().map(|(key, value)| Override { key: (*key).into(), value: (*value).into() });
    let device = Device::lookup_with(name, &figures.collect::<Vec<_>>()).unwrap();
    let engine = if options.contains("--ioengine") { "" } else { "--ioengine=io_uring" };
    let global = "--name=x --direct=1 --filename=drive --time_based".split_whitespace();
    let options = global.chain(engine.split_whitespace()).chain(options.split_whitespace());
    let jobs = parse_args(options, &NoSource).unwrap();
    whatif(&jobs, &device, &[Design::lookup("mq-none").unwrap()], &Conditions::new(1)).unwrap()
}

fn bottleneck(answer: &Answer) -> &Bottleneck {
    let [Evidence::Bottleneck { bottleneck, .. }, ..] = answer.explanation.evidence.as_slice()
    else {
        panic!("{:?}", answer.explanation)
    };
    bottleneck
}

#[track_caller]
fn limit(answer: &Answer) -> &MediumLimit {
    let Bottleneck::Family(FamilyLimit::Drive(DriveLimit::Medium(limit))) = bottleneck(answer)
    else {
        panic!("{}", answer.why)
    };
    limit
}

/// A cache that is full after 50 to 200 ms, and the rest of a second past it.
#[test]
fn a_full_cache_is_named_at_any_depth_whether_writes_go_past_it_or_empty_it() {
    for (name, cache, options) in [
        ("nvme-tlc", "128MiB", "--bs=128k --iodepth=32 --runtime=300ms"),
        ("nvme-tlc", "128MiB", "--bs=128k --iodepth=1 --runtime=300ms"),
        ("nvme-qlc", "128MiB", "--bs=128k --iodepth=32 --runtime=1s"),
        ("nvme-qlc", "128MiB", "--bs=128k --iodepth=1 --runtime=1s"),
        ("ufs-3", "64MiB", "--bs=512k --iodepth=32 --runtime=500ms"),
    ] {
        let answer = ask(name, &[("flash.slc", cache)], &format!("--rw=write {options}"));
        let found = limit(&answer);
        assert_eq!(
            (found.cause, found.parts),
            (MediumCause::FullCache, Parts::Dies),
            "{name}: {}",
            answer.why
        );
        let of_cache =
            found.work.iter().filter(|(work, _)| matches!(work, Work::PastCache | Work::Folding));
        assert!(of_cache.map(|(_, percent)| percent).sum::<f64>() > 60.0, "{name}: {}", answer.why);
        assert!(found.buffer_full_percent > 75.0, "{name}: {}", answer.why);
        assert!(
            answer.why.contains("the drive's full SLC cache is the bottleneck"),
            "{}",
            answer.why
        );
    }
}

#[test]
fn a_cache_with_room_is_not_named() {
    for (name, options) in [
        ("nvme-tlc", "--bs=128k --iodepth=32 --runtime=100ms"),
        ("nvme-tlc", "--bs=128k --iodepth=1 --runtime=100ms"),
        ("nvme-qlc", "--bs=128k --iodepth=32 --runtime=100ms"),
        ("ufs-3", "--bs=512k --iodepth=32 --runtime=100ms"),
    ] {
        let answer = ask(name, &[], &format!("--rw=write {options}"));
        assert!(!answer.why.contains("SLC cache"), "{name}: {}", answer.why);
    }
    // Most of the run was before the cache was full: its rate is that of the link.
    let answer = ask(
        "nvme-tlc",
        &[("flash.slc", "1GiB")],
        "--rw=write --bs=128k --iodepth=32 --runtime=320ms",
    );
    assert!(!answer.why.contains("SLC cache"), "{}", answer.why);
}

#[test]
fn random_writes_at_steady_state_are_limited_by_collection() {
    let steady = [("flash.slc", "0B"), ("flash.overwritten", "200"), ("flash.fill", "90")];
    for (name, figures, depth) in
        [("nvme-tlc", &steady[..], 128), ("nvme-dc", &[], 32), ("nvme-dc", &[], 1)]
    {
        let options =
            format!("--rw=randwrite --bs=4k --iodepth={depth} --ramp_time=300ms --runtime=500ms");
        let answer = ask(name, figures, &options);
        let found = limit(&answer);
        assert_eq!(found.cause, MediumCause::Collection, "{name}: {}", answer.why);
        // The analysis of amplification counts moved data against written data: more than one to
        // one here.
        assert!(found.written.unwrap().collected_percent > 100.0, "{name}: {}", answer.why);
    }
    // A drive that was written in sequence has nothing to collect.
    let fresh = [("flash.slc", "0B"), ("flash.overwritten", "0"), ("flash.fill", "50")];
    let answer = ask("nvme-tlc", &fresh, "--rw=randwrite --bs=4k --iodepth=128 --runtime=100ms");
    assert!(!answer.why.contains("collection"), "{}", answer.why);
}

#[test]
fn a_disk_is_limited_by_what_its_head_does() {
    for (name, options, most) in [
        ("hdd-7200", "--rw=randread --bs=4k --iodepth=1 --runtime=1s", Work::Seeks),
        ("hdd-7200", "--rw=randread --bs=4k --iodepth=32 --runtime=1s", Work::Seeks),
        // One read at a time would wait for the overhead of commands for much of the time.
        ("hdd-7200", "--rw=read --bs=128k --iodepth=2 --runtime=1s", Work::Transfer),
        ("hdd-7200", "--rw=read --bs=128k --iodepth=32 --runtime=1s", Work::Transfer),
        // The cache takes the first writes, at a thousand times the rate.
        ("hdd-7200", "--rw=randwrite --bs=4k --iodepth=1 --runtime=2s", Work::Seeks),
        ("hdd-7200", "--rw=randwrite --bs=4k --iodepth=32 --runtime=300ms", Work::Seeks),
        ("hdd-15k", "--rw=randread --bs=4k --iodepth=4 --runtime=500ms", Work::Seeks),
        ("usb-hdd", "--rw=randread --bs=4k --iodepth=4 --runtime=1s", Work::Seeks),
    ] {
        let answer = ask(name, &[], options);
        let found = limit(&answer);
        let kind = found.work.first().map(|(work, _)| *work);
        assert_eq!(
            (found.parts, kind),
            (Parts::Head, Some(most)),
            "{name} {options}: {}",
            answer.why
        );
    }
    let answer = ask("hdd-7200", &[], "--rw=randwrite --bs=4k --iodepth=1 --runtime=200ms");
    assert!(!answer.why.contains("head"), "its cache has room: {}", answer.why);
}

#[test]
fn a_head_that_reads_ahead_in_time_limits_nothing() {
    // A cached command takes 0.2 ms, and its data 0.2 ms on the wire, of 2 ms.
    let options = "--rw=read --bs=128k --iodepth=1 --rate_iops=500 --runtime=1s";
    let answer = ask("hdd-7200", &[], options);
    assert!(matches!(bottleneck(&answer), Bottleneck::Jobs { .. }), "{}", answer.why);
}

#[test]
fn a_volume_is_limited_by_one_of_its_two_rates() {
    for (options, parts) in [
        ("--rw=randread --bs=4k --iodepth=32 --runtime=1s", Parts::IosLimit),
        ("--rw=read --bs=256k --iodepth=32 --runtime=1s", Parts::BytesLimit),
    ] {
        let answer = ask("cloud-gp3", &[], options);
        assert_eq!(limit(&answer).parts, parts, "{}", answer.why);
    }
}

#[test]
fn a_volume_on_credit_is_no_volume_of_that_rate() {
    let options = "--rw=randread --bs=4k --iodepth=32 --runtime=1s";
    let answer = ask("cloud-gp2", &[], options);
    assert_eq!(limit(&answer).parts, Parts::IosLimit);
    assert!(answer.why.contains("on burst credit, which runs out"), "{}", answer.why);
    for depth in [32, 1] {
        let options = format!("--rw=randread --bs=4k --iodepth={depth} --runtime=1s");
        let answer = ask("cloud-gp2", &[("volume.iops.credit", "1")], &options);
        assert_eq!(limit(&answer).parts, Parts::IosLimit, "{}", answer.why);
        assert!(answer.why.contains("at the baseline rate"), "{}", answer.why);
        assert!(!answer.why.contains("on burst credit"), "{}", answer.why);
    }
}

/// A queue of two commands before flash that could read in many dies at once.
#[test]
fn a_small_depth_is_still_named() {
    let options = "--rw=randread --bs=4k --iodepth=16 --runtime=50ms";
    let answer = ask("sata-ssd", &[("ahci.depth", "2")], options);
    let Bottleneck::Depth { depth, .. } = bottleneck(&answer) else { panic!("{}", answer.why) };
    assert_eq!(depth.to_bits(), 2_f64.to_bits());
}

/// A cache of 112 GiB, of which two bursts take 2 GiB, is folded in idle time.
#[test]
fn a_cache_that_is_folded_in_idle_time_is_not_full() {
    let options =
        "--rw=write --bs=128k --iodepth=32 --thinktime=3s --thinktime_blocks=8192 --runtime=7s";
    let answer = ask("nvme-qlc", &[], options);
    assert!(matches!(bottleneck(&answer), Bottleneck::Jobs { .. }), "{}", answer.why);
    // Without pauses for more than half of the time, there is flash that is busy, and no full
    // cache.
    let options =
        "--rw=write --bs=128k --iodepth=32 --thinktime=300ms --thinktime_blocks=8192 --runtime=3s";
    let answer = ask("nvme-qlc", &[], options);
    assert!(!answer.why.contains("full SLC cache"), "{}", answer.why);
}

#[test]
fn jobs_that_pause_most_of_the_time_are_named_before_a_cache_that_their_bursts_fill() {
    let options =
        "--rw=randwrite --bs=64k --iodepth=8 --thinktime=20s --thinktime_blocks=1200 --runtime=50s";
    let answer = ask("hdd-7200", &[], options);
    assert!(matches!(bottleneck(&answer), Bottleneck::Jobs { .. }), "{}", answer.why);
}

#[test]
fn short_pauses_are_not_the_pace_but_a_rate_that_is_kept_is() {
    let reads = "--rw=randread --bs=4k --iodepth=1 --runtime=100ms";
    let answer = ask("nvme-tlc", &[], &format!("{reads} --thinktime=5us"));
    assert!(matches!(bottleneck(&answer), Bottleneck::DeviceLatency { .. }), "{}", answer.why);
    // Nine tenths of what the job does without pauses.
    let rate = ask("nvme-tlc", &[], reads).designs[0].figures.ios * 9;
    let answer = ask("nvme-tlc", &[], &format!("{reads} --rate_iops={rate}"));
    let pauses = answer.designs[0].figures.jobs_ns;
    assert!(pauses.percent(pauses.pausing) < 50.0, "it is to wait for most of the time");
    assert!(matches!(bottleneck(&answer), Bottleneck::Jobs { .. }), "{}", answer.why);
}

#[test]
fn a_depth_is_named_where_more_is_asked_for() {
    let answer = ask("usb-hdd", &[], "--ioengine=psync --rw=read --bs=4k --runtime=500ms");
    assert!(!matches!(bottleneck(&answer), Bottleneck::Depth { .. }), "{}", answer.why);
    let options = "--rw=randread --bs=4k --iodepth=32 --numjobs=4 --runtime=50ms";
    let answer = ask("ufs-3", &[("ufs.depth", "4")], options);
    let Bottleneck::Depth { depth, .. } = bottleneck(&answer) else { panic!("{}", answer.why) };
    assert_eq!(depth.to_bits(), 4_f64.to_bits());
}

#[test]
fn reads_of_a_drive_without_memory_queue_for_its_dies() {
    for depth in [128, 256] {
        let options = format!("--rw=randread --bs=4k --iodepth={depth} --runtime=50ms");
        let answer = ask("nvme-tlc-dramless", &[], &options);
        let found = limit(&answer);
        assert!(found.parts == Parts::Dies && found.queued_percent.is_some(), "{}", answer.why);
    }
    // Fewer commands than dies.
    let answer = ask("nvme-tlc-dramless", &[], "--rw=randread --bs=4k --iodepth=16 --runtime=50ms");
    assert!(matches!(bottleneck(&answer), Bottleneck::DeviceLatency { .. }), "{}", answer.why);
}

#[test]
fn what_serves_one_command_at_a_time_is_named() {
    let answer = ask("nvme-tlc", &[], "--rw=trim --bs=1m --iodepth=32 --runtime=100ms");
    assert_eq!(limit(&answer).parts, Parts::Discards, "{}", answer.why);
    let options = "--rw=randread --bs=4k --iodepth=64 --runtime=50ms";
    let answer = ask("virtio-page-cache", &[], options);
    let named = bottleneck(&answer);
    assert!(
        matches!(named, Bottleneck::Family(FamilyLimit::Drive(DriveLimit::Controller { part, .. })) if *part == FrontPart::VirtioThread),
        "{}",
        answer.why
    );
}

/// Runs `jobs` on `count` disks like `hdd-7200` behind one AHCI host for two seconds.
fn on_disks(count: u16, jobs: &str) -> Answer {
    let device = Device::lookup("hdd-7200").unwrap().with_disks(count).unwrap();
    let all = "--direct=1 --rw=randread --bs=4k --ioengine=io_uring --time_based --runtime=2s";
    let jobs = parse_args(format!("{all} {jobs}").split_whitespace(), &NoSource).unwrap();
    whatif(&jobs, &device, &[Design::lookup("mq-none").unwrap()], &Conditions::new(1)).unwrap()
}

/// The share of a disk that works all the time was divided by the number of disks: with 15 idle
/// disks its head was in use for a sixteenth of the time, and the latency was named. The other disk
/// of the second answer reads 4 KiB ten times a second.
#[test]
fn the_busiest_of_several_disks_is_named_with_the_share_that_it_has_alone() {
    let busy = "--name=busy --iodepth=8 --filename=/dev/b";
    let alone = on_disks(1, busy);
    let expected = limit(&alone);
    assert!(expected.parts == Parts::Head && expected.percent > 99.0, "{}", alone.why);
    assert!(alone.why.starts_with("mq-none: the disk's head "), "{}", alone.why);
    let slow = "--name=slow --rate_iops=10 --filename=/dev/a";
    for (disks, number, jobs) in [(16, 1, busy.to_owned()), (2, 2, format!("{slow} {busy}"))] {
        let answer = on_disks(disks, &jobs);
        let found = limit(&answer);
        assert_eq!((found.parts, found.cause), (expected.parts, expected.cause), "{}", answer.why);
        assert!((found.percent - expected.percent).abs() < 0.5, "{}", answer.why);
        let words = format!("mq-none: on disk {number} of {disks}, the ");
        assert!(answer.why.starts_with(&words), "{}", answer.why);
    }
}
