//! Two processes read a hard disk sequentially, each with one read at a time, far from each other.
//! An elevator that always sends what it holds moves the heads from one to the other and back, 24
//! ms for each pair of reads. One that waits for the next read of the same process
//! ([idling-bounded]) leaves them where they are for 16 reads.

#[path = "../../blockyard/examples/anticipatory/elevator.rs"]
mod anticipatory;
#[path = "../../blockyard/examples/reads_first/elevator.rs"]
mod reads_first;

use anticipatory::{Anticipatory, WAIT};
use blockyard::elevator::checked::Checked;
use blockyard::policy::ElevatorKind;
use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_fio::measure::JobStats;
use blockyard_sim::simulate::{Conditions, MakeElevator, Simulation};
use reads_first::ReadsFirst;

const ANTICIPATORY: MakeElevator =
    |config, tags| Box::new(Checked::new(Box::<Anticipatory>::default(), config.requests(tags)));
const READS_FIRST: MakeElevator =
    |config, tags| Box::new(Checked::new(Box::<ReadsFirst>::default(), config.requests(tags)));

/// Runs the two jobs of fio's `options` on a device, under `mq-deadline` with another elevator.
fn run(device: &Device, elevator: MakeElevator, options: &str) -> [JobStats; 2] {
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let mut design = Design::lookup("mq-deadline").unwrap();
    design.policies.elevator = ElevatorKind::Other;
    let conditions = Conditions { elevator: Some(elevator), ..Conditions::new(1) };
    let report = Simulation::under(&jobs, device, &design, conditions).unwrap().finish().unwrap();
    [0, 1].map(|job| report.jobs[job].stats.clone())
}

fn ios(stats: &JobStats) -> u64 {
    stats.measured().map(|measured| measured.ios).sum()
}

/// Without the wait a read takes the seek over a third of the disk and half a turn, some 13 ms.
/// With it, 16 of 17 reads take the transfer of 64 KiB, 0.4 ms, the overhead of a command, 0.5 ms,
/// and the time to submit the next. The heads leave at once: they would else read ahead for both.
#[test]
fn two_sequential_readers_do_not_share_the_heads() {
    let readers = "--direct=1 --rw=read --bs=64k --ioengine=psync --time_based --runtime=10s \
                   --size=10g --name=low --name=high --offset=400g";
    let leaving =
        Override { key: "platters.cache.leaving".to_owned(), value: "at-once".to_owned() };
    let disk = Device::lookup_with("hdd-7200", &[leaving]).unwrap();
    let waiting = run(&disk, ANTICIPATORY, readers).map(|stats| ios(&stats));
    let eager = run(&disk, READS_FIRST, readers).map(|stats| ios(&stats));
    for job in [0, 1] {
        assert!(
            waiting[job] > 5 * eager[job],
            "{waiting:?} reads with the wait, {eager:?} without"
        );
        assert!(waiting[job] > waiting[1 - job] * 9 / 10, "both get their share: {waiting:?}");
    }
}

/// A write comes while the read of another process is in the device. It waits for the end of the
/// read and then for 2 ms, and no longer: the world runs the queue at the instant that the elevator
/// names.
#[test]
fn the_world_runs_the_queue_when_the_wait_ends() {
    let jobs = "--direct=1 --bs=4k --ioengine=psync --size=1m --number_ios=1 --name=reader --rw=randread \
                --name=writer --rw=randwrite";
    let null = Device::lookup("null").unwrap();
    let [waits, waits_not] = [ANTICIPATORY, READS_FIRST].map(|elevator| {
        let [_, writer] = run(&null, elevator, jobs);
        writer.measured().map(|measured| measured.lat_ns.max()).max().expect("one write")
    });
    let more_ns = waits - waits_not;
    // The write itself, its completion, and the run by a worker take a few microseconds.
    assert!(
        more_ns.abs_diff(WAIT.as_ns()) < 100_000,
        "the wait is {} ns, and the write took {more_ns} ns longer",
        WAIT.as_ns()
    );
}
