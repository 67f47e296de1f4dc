//! Simulations that keep data. The data of reads, the data at the end, and the data left by a loss
//! of power are right, and the checks detect damage by a device.
#![expect(clippy::tests_outside_test_module, reason = "the whole crate is a test")]

use blockyard::time::Duration;
use blockyard_devices::data::verify::{Found, Verified, Verify};
use blockyard_devices::profile::{Design, Device, FaultRules};
use blockyard_fio::job::{JobFile, NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const NULL: &str =
    "base = \"null\"\n[null]\ncompletion = \"timer\"\nsubmit-queues = 4\ndepth = 8\n";
const VOLATILE: &str = "[limits]\ncapacity = \"250GiB\"\nwrite-cache = true\n";

fn args(options: &str) -> JobFile {
    let all = format!("--name=j --direct=1 --filename=/dev/a {options}");
    parse_args(all.split_whitespace(), &NoSource).unwrap()
}

fn device(text: &str) -> Device {
    Device::parse("test", text).unwrap()
}

fn run(
    options: &str,
    device: &Device,
    design: &str,
    verify: Option<&Verify>,
    faults: Option<&str>,
) -> Report {
    let faults = faults.map(|text| FaultRules::parse("faults", text).unwrap());
    let conditions =
        Conditions { verify, faults: faults.as_ref(), checked: true, ..Conditions::new(5) };
    let design = Design::lookup(design).unwrap();
    Simulation::under(&args(options), device, &design, conditions).unwrap().finish().unwrap()
}

fn verified(options: &str, device: &Device, verify: &Verify, faults: Option<&str>) -> Verified {
    run(options, device, "mq-deadline", Some(verify), faults).verified.unwrap()
}

/// Many readers and writers of few sectors.
const CROWD: &str =
    "--rw=randrw --bsrange=512-16k --ioengine=libaio --iodepth=8 --numjobs=4 --size=256k --loops=4";

// [read-finds-latest-write], [completed-write-is-read]
#[test]
fn reads_find_the_written_data_under_every_kind_of_design() {
    let srp = Device::lookup("srp").unwrap();
    for design in [
        "legacy-deadline",
        "mq-deadline-2017-patched",
        "mq-deadline-2017-held",
        "mq-deadline-2017",
        "mq-deadline",
        "mq-none-2017-patched",
        "mq-none-2017",
        "mq-none",
    ] {
        for device in [&device(NULL), &device(&format!("{NULL}{VOLATILE}fua = true\n")), &srp] {
            let verify = Verify::default();
            let report = run(CROWD, device, design, Some(&verify), None);
            let verified = report.verified.unwrap();
            assert_eq!(verified.violations, [], "{design} on {}", device.name);
            let measured = report.jobs.iter().flat_map(|job| job.stats.measured());
            let ios: u64 = measured.map(|measured| measured.ios).sum();
            assert_eq!(verified.reads + verified.writes, ios, "every I/O was checked");
        }
    }
}

#[test]
fn keeping_data_changes_no_other_result() {
    let device = device(&format!("{NULL}{VOLATILE}[cache]\nflush = \"1ms\"\n"));
    let verify = Verify {
        power_cuts: vec![Duration::from_ms(1)],
        power_cut_every: Some(Duration::from_us(700)),
        ..Verify::default()
    };
    let options = &format!("{CROWD} --fsync=5");
    let with = run(options, &device, "mq-deadline", Some(&verify), None);
    let without = run(options, &device, "mq-deadline", None, None);
    fn figures(report: &Report) -> String {
        format!("{:?} {:?} {:?}", report.jobs, report.span, report.stages)
    }
    assert_eq!(figures(&with), figures(&without));
}

// [read-finds-latest-write], [data-at-its-own-sector]
#[test]
fn a_torn_lost_or_misdirected_write_is_detected() {
    let device = device(NULL);
    for (fault, words) in [
        ("torn-write = 3", "found nothing"),
        ("lost-write = true", "found nothing"),
        ("misdirected-write = 100000", "found nothing"),
        ("misdirected-write = 8", "from sector"),
    ] {
        let rule = format!("[[rule]]\nname = \"x\"\nnth = 9\n{fault}\n");
        let write = "--rw=write --bs=4k --ioengine=psync --size=64k --end_fsync=1";
        let found = verified(write, &device, &Verify::default(), Some(&rule));
        assert!(found.violation_count > 0, "{fault} is not noticed");
        let said: Vec<_> = found.violations.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.contains(words)), "{fault}: {said:?}");
        let read = format!(
            "{write} --name=r --stonewall --direct=1 --rw=read --bs=4k --size=64k --filename=/dev/a"
        );
        let found = verified(&read, &device, &Verify::default(), Some(&rule));
        let by_read = found.violations.iter().any(|one| matches!(one.found, Found::Read(_)));
        assert!(by_read, "{fault} is not noticed by a read: {found:?}");
    }
    let healthy = verified(CROWD, &device, &Verify::default(), None);
    assert_eq!(healthy.violation_count, 0);
}

// [durable-write-survives], [power-loss-keeps-durable-data]
#[test]
fn a_loss_of_power_takes_only_unflushed_writes() {
    let verify = Verify { power_cut_every: Some(Duration::from_us(40)), ..Verify::default() };
    fn lost(options: &str, profile: &str, verify: &Verify) -> u64 {
        let verified = verified(&format!("{CROWD} {options}"), &device(profile), verify, None);
        assert_eq!(verified.violations, [], "{options} on {profile}");
        assert!(verified.power_cuts.len() >= 10, "{}", verified.power_cuts.len());
        verified.power_cuts.iter().map(|cut| cut.lost_by_right).sum::<u64>()
    }
    let volatile = format!("{NULL}{VOLATILE}");
    let with_fua = format!("{volatile}fua = true\n");
    assert_eq!(lost("", NULL, &verify), 0, "write-through");
    assert_eq!(lost("--sync=1", &with_fua, &verify), 0, "every write has FUA");
    assert_eq!(lost("--sync=1", &volatile, &verify), 0, "every write is followed by a flush");
    let never = lost("", &volatile, &verify);
    let often = lost("--fsync=4", &volatile, &verify);
    assert!(often > 0 && never > 2 * often, "{never} without, {often} with flushes");
}

// [durable-write-survives]
#[test]
fn a_loss_of_power_counts_the_sectors_of_a_write_that_the_device_lost() {
    let verify = Verify { power_cut_every: Some(Duration::from_us(10)), ..Verify::default() };
    let rule = "[[rule]]\nname = \"x\"\nnth = 9\nlost-write = true\n";
    let write = "--rw=write --bs=4k --ioengine=psync --size=64k";
    let cuts = verified(write, &device(NULL), &verify, Some(rule)).power_cuts;
    let wrong: Vec<_> = cuts.iter().map(|cut| cut.lost_by_wrong).collect();
    assert_eq!((wrong.first(), wrong.last()), (Some(&0), Some(&8)), "{wrong:?}");
}

#[test]
fn a_flush_takes_the_time_in_the_profile_of_the_cache() {
    let cache = "[cache]\nflush = \"2ms\"\nflush-per-mib = \"10ms\"\n";
    let device = device(&format!("{NULL}{VOLATILE}{cache}"));
    let options = "--rw=write --bs=64k --ioengine=psync --size=8256k --fsync=16";
    let report = run(options, &device, "mq-none", None, None);
    assert_eq!(report.jobs[0].stats.syncs(), 8);
    let counts = verified(options, &device, &Verify::default(), None);
    assert_eq!((counts.writes, counts.flushes, counts.reads), (129, 8, 0));
    // Eight flushes of 1 MiB take 12 ms each; 129 writes and their costs take microseconds.
    let ms = report.span.as_ns() / 1_000_000;
    assert!((8 * 12..8 * 12 + 8).contains(&ms), "{ms} ms");
    let wrong = Device::parse("x", &format!("{NULL}{cache}")).unwrap_err().to_string();
    assert!(wrong.contains("write-cache"), "{wrong}");
}
