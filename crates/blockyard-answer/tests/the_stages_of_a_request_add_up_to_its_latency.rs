//! The stages of a request's life, and the holds of hardware queues, agree with the measurements of
//! jobs.
//!
//! With hardly any merges or splits, each I/O is one request. The latency that a job measures, from
//! the start of its call until it has the result, is then the sum of the stages, except for the
//! processor time between a result and the job.

use blockyard::stats::{Direction, Stage};
use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_answer::Figures;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// Random reads of `jobs` jobs, each with 64 in flight, on a host of depth 30.
fn run(design: &str, jobs: u32) -> Report {
    let numjobs = format!("--numjobs={jobs}");
    let args = ["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio"];
    let more = ["--iodepth=64", "--filename=sda", "--io_size=16m", &numjobs];
    let jobs = parse_args(args.into_iter().chain(more), &NoSource).unwrap();
    let device = Device::lookup("lpfc").unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

const DESIGNS: [&str; 4] = ["legacy-deadline", "mq-none", "mq-deadline", "mq-deadline-2017"];

#[test]
fn the_stages_of_a_request_add_up_to_its_latency() {
    for design in DESIGNS {
        let report = run(design, 16);
        let figures = Figures::of(&report, 16);
        assert!(figures.commands > figures.ios - figures.ios / 500, "{design}: {figures:?}");
        let life = figures.life_ns;
        let parts = [life.waiting_for_tag, life.queued, life.dequeued, life.in_driver];
        let sum = parts.iter().sum::<f64>() + life.not_reaped;
        let latency = figures.lat_ns.mean as f64;
        assert!((latency - sum).abs() < 0.002 * latency, "{design}: {sum} of {latency} ns");
        assert!(life.in_driver > 0.0 && life.not_reaped > 0.0, "{design}: {life:?}");
    }
}

/// A durable write waits for flushes, each of which is its own command: one that stands in for FUA,
/// and one at the end of its call, of 2 ms each. A flush that a job requests
/// is not part of a write's life.
#[test]
fn stages_with_flushes_add_up_too() {
    let cached = "base = \"null\"\n[limits]\nwrite-cache = true\n[cache]\nflush = \"2ms\"\n\
                  [null]\ncompletion = \"timer\"\ncompletion-time = \"50us\"\n";
    let device = Device::parse("cached", cached).unwrap();
    for (option, commands) in [("--sync=1", 3 * 64), ("--fsync=4", 64 + 15)] {
        let args = ["--name=x", "--rw=write", "--bs=4k", "--direct=1", "--size=256k", option];
        let jobs = parse_args(args, &NoSource).unwrap();
        let design = Design::lookup("mq-deadline").unwrap();
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        let figures = Figures::of(&report, 1);
        assert_eq!(figures.commands, commands, "{option}");
        assert_eq!(report.stages.count_of(Direction::Write, Action::Complete(Status::Ok)), 64);
        let life = figures.life_ns;
        let parts = [life.queued, life.dequeued, life.in_driver, life.waiting_for_flush];
        let sum = parts.iter().sum::<f64>() + life.not_reaped;
        let latency = figures.lat_ns.mean as f64;
        assert!((latency - sum).abs() < 0.002 * latency, "{option}: {sum} of {latency} ns");
        assert_eq!(life.waiting_for_flush >= 4e6, option == "--sync=1", "{option}: {life:?}");
    }
}

/// 16 jobs of 64 wait for the 128 tags of the old design. Today's elevators have more tags than one
/// job of 64 needs.
#[test]
fn a_call_waits_for_its_tag_only_if_there_are_too_few() {
    let few = run("legacy-deadline", 16).totals;
    assert!(few.tag_waits > 10_000 && few.tag_wait.as_ns() > few.tag_waits * 1000, "{few:?}");
    let enough = run("mq-deadline", 1).totals;
    assert_eq!((enough.tag_waits, enough.tag_wait.as_ns()), (0, 0));
}

#[test]
fn a_hardware_queue_is_held_for_no_longer_than_the_run() {
    for design in DESIGNS {
        let report = run(design, 16);
        let figures = Figures::of(&report, 16);
        let held: f64 = figures.holds.iter().map(|(_, held)| held.percent).sum();
        assert!(held > 50.0 && held <= 100.0, "{design}: {:?}", figures.holds);
        for (hold, held) in figures.holds.iter() {
            assert_eq!(held.count, report.stages.count(Action::Hold(hold)));
            assert!(held.count > 0 || held.percent == 0.0, "{design}: {hold:?} {held:?}");
        }
        let issued = report.stages.times_ns(Direction::Read, Stage::InDriver).count();
        assert_eq!(issued, figures.commands, "{design}");
    }
}
