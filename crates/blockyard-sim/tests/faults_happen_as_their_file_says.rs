//! Fault files in whole simulations: the effect of each rule on jobs. Chance depends only on the
//! seed.

use blockyard::status::Status;
use blockyard_devices::profile::{Design, Device, FaultRules};
use blockyard_devices::stack::FaultCount;
use blockyard_fio::job::{JobFile, NoSource, Op, parse_args};
use blockyard_mmc::block::Idle;
use blockyard_sim::simulate::{Conditions, Report, Simulation, SimulationError};
use blockyard_sim::world::{Failure, HostStandstill, Standstill};
use std::collections::BTreeSet;

const TIMER: &str = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\n\
                     submit-queues = 1\ndepth = 64\n";
const INLINE: &str = "base = \"null\"\n[null]\ncompletion = \"none\"\n";
const DESIGNS: [&str; 4] = ["mq-none", "mq-deadline", "legacy-deadline", "mq-deadline-2017"];

/// 1024 reads that cannot merge, because there is a hole between any two.
const READS: &str = "--rw=randread --ioengine=libaio --iodepth=8 --size=8m --io_size=4m \
                     --bs=4k --blockalign=8k --norandommap";

fn jobs(options: &str) -> JobFile {
    let all = format!("--name=j --direct=1 --filename=/dev/a {options}");
    parse_args(all.split_whitespace(), &NoSource).unwrap()
}

fn simulate(
    options: &str,
    device: &str,
    design: &str,
    rules: &str,
    seed: u64,
) -> Result<Report, SimulationError> {
    let device = if device.contains('\n') {
        Device::parse("test", device).unwrap()
    } else {
        Device::lookup(device).unwrap()
    };
    let design = Design::lookup(design).unwrap();
    let rules = FaultRules::parse("f.toml", rules).unwrap();
    let conditions = Conditions { faults: Some(&rules), checked: true, ..Conditions::new(seed) };
    let mut simulation = Simulation::under(&jobs(options), &device, &design, conditions)?;
    simulation.check_every_step();
    simulation.finish()
}

fn ios(report: &Report) -> u64 {
    report.jobs.iter().flat_map(|job| job.stats.measured()).map(|measured| measured.ios).sum()
}

fn longest_ns(report: &Report) -> u64 {
    let all = report.jobs.iter().flat_map(|job| job.stats.measured());
    all.map(|measured| measured.lat_ns.max()).max().unwrap()
}

fn count(name: &str, matched: u64, fired: u64) -> FaultCount {
    FaultCount { name: name.to_owned(), matched, fired }
}

fn of(rule: &str) -> String {
    format!("[[rule]]\nname = \"x\"\n{rule}\n")
}

#[test]
fn an_error_ends_the_run_at_its_time() {
    for at_once in ["", "at-once = true"] {
        let rules = of(&format!("nth = 100\nerror = \"medium\"\n{at_once}"));
        let error = simulate(READS, TIMER, "mq-none", &rules, 1).unwrap_err();
        let SimulationError::Failed { job, failure, .. } = error else { panic!("{error}") };
        let Failure::Io(_, io) = failure else { panic!("{failure:?}") };
        assert_eq!((io.status, io.op), (Status::Medium, Some(Op::Read)));
        assert_eq!(job.as_deref(), Some("j"));
    }
}

#[test]
fn a_job_that_continues_counts_its_errors() {
    for design in DESIGNS {
        let rules = of("every = 100\nerror = \"no-space\"");
        let options = format!("{READS} --continue_on_error=read");
        let report = simulate(&options, TIMER, design, &rules, 1).unwrap();
        assert_eq!(report.faults, [count("x", 1024, 10)], "{design}");
        assert_eq!((ios(&report), report.jobs[0].stats.errors), (1014, 10), "{design}");
        assert_eq!(report.jobs[0].stats.first_error, Some(Status::NoSpace));
        let writes_only = format!("{READS} --continue_on_error=write");
        assert!(simulate(&writes_only, TIMER, design, &rules, 1).is_err(), "{design}");
    }
}

#[test]
fn a_delay_adds_to_the_latency_of_a_job() {
    let rules = of("nth = 500\ndelay = \"50ms\"");
    for device in [TIMER, INLINE, "null", "srp"] {
        for design in DESIGNS {
            let report = simulate(READS, device, design, &rules, 1).unwrap();
            assert_eq!((ios(&report), &report.faults[..]), (1024, &[count("x", 1024, 1)][..]));
            let longest = longest_ns(&report);
            assert!((50_000_000..52_000_000).contains(&longest), "{device} {design}: {longest}");
        }
    }
}

/// 1024 reads take some 13 ms, eight in each 100 us.
#[test]
fn a_rule_fires_only_at_its_times() {
    fn struck(times: &str) -> u64 {
        let rules = of(&format!("delay = \"10us\"\n{times}"));
        let FaultCount { matched, fired, .. } =
            simulate(READS, TIMER, "mq-none", &rules, 1).unwrap().faults[0];
        assert_eq!(matched, fired, "{times}");
        fired
    }
    assert_eq!(struck("from = \"0s\""), 1024);
    assert_eq!(struck("from = \"1s\""), 0);
    assert_eq!(struck("for = \"1s\""), 1024);
    let first = struck("for = \"5ms\"");
    let later = struck("from = \"5ms\"");
    assert!((330..=400).contains(&first) && (600..=680).contains(&later), "{first} {later}");
    assert!((130..=170).contains(&struck("from = \"5ms\"\nfor = \"2ms\"")));
    let rules = of("from = \"5ms\"\nnth = 3\ndelay = \"50ms\"");
    let report = simulate(READS, TIMER, "mq-none", &rules, 1).unwrap();
    assert_eq!(report.faults[0].fired, 1, "the third at these times");
}

/// No other event polls the layers while the read is delayed.
#[test]
fn a_delayed_lone_read_completes() {
    let lone = "--rw=randread --ioengine=psync --size=1m";
    for device in [TIMER, INLINE, "null", "srp"] {
        let report = simulate(lone, device, "mq-none", &of("delay = \"1ms\""), 1).unwrap();
        assert_eq!(ios(&report), 256, "{device}");
    }
}

#[test]
fn refused_and_requeued_requests_complete() {
    for then in ["busy = \"device\"", "busy = \"host\"", "busy = \"resource\"", "requeue = true"] {
        for device in [TIMER, INLINE, "srp"] {
            for design in DESIGNS {
                let report =
                    simulate(READS, device, design, &of(&format!("every = 10\n{then}")), 1)
                        .unwrap();
                let FaultCount { matched, fired, .. } = report.faults[0];
                assert_eq!(ios(&report), 1024, "{then} {device} {design}");
                assert_eq!((matched - fired, matched / 10), (1024, fired), "{then} {design}");
            }
        }
    }
}

#[test]
fn a_standstill_names_the_jobs_that_wait_for_lost_completions() {
    let error = simulate(READS, TIMER, "mq-none", &of("nth = 10\nlost = true"), 1).unwrap_err();
    assert!(matches!(error, SimulationError::Failed { failure: Failure::Lost(1), .. }), "{error}");
    assert!(error.to_string().contains("fault rules lost (1 in all)"), "{error}");
}

#[test]
fn a_standstill_names_each_wait() {
    let device = Device::parse("test", TIMER).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let rules = FaultRules::parse("f.toml", &of("nth = 10\nlost = true")).unwrap();
    let conditions = Conditions { faults: Some(&rules), ..Conditions::new(1) };
    let mut simulation = Simulation::under(&jobs(READS), &device, &design, conditions).unwrap();
    while simulation.advance(1 << 20).is_ok() {}
    let waits = simulation.world().standstill();
    let expected = Standstill { tasks: 1, for_tag: 0, bios: 1, at_driver: 1, host: None };
    assert_eq!(waits, expected);
    let words = "1 job instances wait, 0 of them for a tag; of 1 bios that have not ended, 1 requests are \
                 the driver's";
    assert_eq!(waits.to_string(), words);
    let idle = Idle::Halted;
    let awake = [true, false];
    let pending = [false, true];
    let host = Some(HostStandstill { idle, awake, pending });
    let words = "; its MMC host recovers from an error, the thread that dispatches is awake and has \
                 nothing to do, deferred work sleeps and has something to do";
    assert!(Standstill { host, ..waits }.to_string().ends_with(words));
}

/// A rule about a missing disk would never fire, and one about a missing sector would write beyond
/// the end.
#[test]
fn rules_about_missing_disks_and_sectors_are_refused() {
    for (rule, words) in [
        ("disk = 1\nnth = 1\nerror = \"io\"", "there is no disk 1: the device has 1"),
        ("misdirected-write = 524288000", "sector 524288000 is beyond the end of the disk"),
    ] {
        let error = simulate(READS, TIMER, "mq-none", &of(rule), 1).unwrap_err().to_string();
        assert!(error.starts_with("f.toml: rule `") && error.contains(words), "{error}");
    }
}

/// Returns the whole report of a run as text.
fn bytes(rules: &str, seed: u64) -> String {
    let options = format!("{READS} --continue_on_error=all --numjobs=4");
    format!("{:?}", simulate(&options, "srp", "mq-deadline", rules, seed).unwrap())
}

#[test]
fn one_file_and_one_seed_give_the_same_bytes() {
    let rules = "[[rule]]\nname = \"a\"\none-in = 50\ndelay = \"3ms\"\n\
                 [[rule]]\nname = \"b\"\none-in = 20\nbusy = \"device\"\n\
                 [[rule]]\nname = \"c\"\none-in = 99\nerror = \"io\"\n";
    assert_eq!(bytes(rules, 1), bytes(rules, 1));
    assert_ne!(bytes(rules, 1), bytes(rules, 2));
}

/// The device draws nothing itself, and the job has the same number of matches under every seed.
#[test]
fn chance_is_drawn_from_the_seed_of_the_run() {
    let fired = |seed| {
        let report = simulate(READS, TIMER, "mq-none", &of("one-in = 4\ndelay = \"1us\""), seed);
        report.unwrap().faults[0].fired
    };
    let of_seeds: BTreeSet<_> = (0..8).map(fired).collect();
    assert!(of_seeds.len() > 1, "{of_seeds:?}");
    // 256 of 1024 are expected. The standard deviation is 14, and five of them are allowed.
    assert!(of_seeds.iter().all(|fired| (186..=326).contains(fired)), "{of_seeds:?}");
}

/// Rules that never fire, and the checks of the contract, do not change the measurements.
#[test]
fn idle_layers_do_not_change_the_result() {
    let device = Device::lookup("srp").unwrap();
    let design = Design::lookup("mq-deadline").unwrap();
    let jobs = jobs(&format!("{READS} --numjobs=4"));
    fn run(
        faults: Option<&FaultRules>,
        checked: bool,
        jobs: &JobFile,
        device: &Device,
        design: &Design,
    ) -> Report {
        let conditions = Conditions { faults, checked, ..Conditions::new(3) };
        let report = Simulation::under(jobs, device, design, conditions).unwrap().finish();
        Report { faults: Vec::new(), ..report.unwrap() }
    }
    let never = FaultRules::parse("f.toml", &of("sectors = \"0..1\"\nop = \"flush\"\nlost = true"));
    let never = never.unwrap();
    let bare = format!("{:?}", run(None, false, &jobs, &device, &design).jobs);
    assert_eq!(bare, format!("{:?}", run(None, true, &jobs, &device, &design).jobs));
    assert_eq!(bare, format!("{:?}", run(Some(&never), false, &jobs, &device, &design).jobs));
    assert_eq!(bare, format!("{:?}", run(Some(&never), true, &jobs, &device, &design).jobs));
}
