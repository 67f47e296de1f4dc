//! Jobs with rates and pauses issue their I/Os when fio issues them.
//!
//! The expected times were measured: fio 3.33 (`ioengine=nbd`, 4 KiB) on a served device in memory
//! that answers after 20 ms, whatever is in flight. They are those at which fio reaped each I/O, in
//! milliseconds, from its latency log.

use blockyard::trace::{Action, Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::observe::Observer;

const DEVICE: &str =
    "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"20ms\"\ndepth = 64\n";

/// When requests ended, in milliseconds.
#[derive(Debug, Default)]
struct Ends(Vec<u64>);

impl Sink for Ends {
    fn event(&mut self, event: &Event<'_>) {
        if let Action::Complete(_) = event.action {
            self.0.push(event.at.as_ns() / 1_000_000);
        }
    }
}

impl Observer for Ends {}

#[test]
fn pauses_and_rates_are_those_of_fio() {
    for (options, fio) in [
        ("--rw=randread --iodepth=1 --rate_iops=25 --number_ios=5", "20 62 103 143 180"),
        (
            "--rw=randread --iodepth=4 --rate_iops=175 --number_ios=20",
            "20 46 46 46 46 66 66 66 66 86 86 86 109 109 109 109 134 134 134 134",
        ),
        // The direction that is ahead of its rate does not hold the other one up.
        (
            "--rw=randrw --rwmixread=50 --iodepth=1 --rate_iops=40,5 --number_ios=30",
            "20 40 60 81 101 121 145 170 195 220 240 260 280 300 321 345 371 395 420 440 460 480 501 521 545 570 595 620 \
             640 660",
        ),
        ("--rw=randread --rate_iops=1 --time_based --runtime=1500ms", "20 1020"),
        ("--rw=randread --thinktime=700ms --time_based --runtime=1", "20 740"),
        (
            "--rw=randread --thinktime=10ms --thinktime_iotime=1 --iodepth=4 --number_ios=8",
            "20 20 20 20 40 40 40 40",
        ),
        (
            "--rw=randread --thinktime=30ms --thinktime_blocks=3 --iodepth=4 --number_ios=18",
            "20 20 20 20 41 41 91 141 141 141 141 162 212 262 262 262 262 283",
        ),
        (
            "--rw=randread --thinktime=30ms --thinktime_blocks=3 --thinktime_blocks_type=issue --iodepth=4 --number_ios=12",
            "20 20 20 72 72 72 123 123 123 176 176 176",
        ),
        (
            "--rw=randread --rate_iops=25 --thinktime=100ms --thinktime_blocks=4 --rate_ignore_thinktime=1 --number_ios=12",
            "20 60 100 140 260 280 320 360 480 500 540 580",
        ),
    ] {
        let fio: Vec<u64> = fio.split(' ').map(|ms| ms.parse().unwrap()).collect();
        let all =
            format!("--name=j --direct=1 --filename=/dev/a --ioengine=libaio --size=16m {options}");
        let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
        let device = Device::parse("d.toml", DEVICE).unwrap();
        let design = Design::lookup("mq-none").unwrap();
        let mut ends = Ends::default();
        Simulation::observed(&jobs, &device, &design, Conditions::new(1), &mut ends)
            .unwrap()
            .finish()
            .unwrap();
        let Ends(ours) = ends;
        // fio takes a third of a millisecond for each I/O, and its delays add up.
        let is_near = |(ours, fio): (&u64, &u64)| ours.abs_diff(*fio) <= 1 + fio * 5 / 100;
        assert!(
            ours.len() == fio.len() && ours.iter().zip(&fio).all(is_near),
            "{options}:\n{ours:?}, fio:\n{fio:?}"
        );
    }
}
