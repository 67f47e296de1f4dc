//! Several disks behind one host: each file name is a disk, files without a name take the disks in
//! turn, and all disks share the tags of the host, but for the disks on the ports of an AHCI host.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation, SimulationError};

/// The commands that the host takes at a time.
const TAGS: u64 = 8;
/// The time of one command in microseconds.
const COMMAND_US: u64 = 100;

/// Runs jobs on `disks` disks of one host for half a second.
fn run(disks: u16, options: &str) -> Result<Report, SimulationError> {
    let text = format!(
        "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"{COMMAND_US}us\"\n\
         submit-queues = 1\ndepth = {TAGS}\n[limits]\ncapacity = \"1GiB\"\n"
    );
    let device = Device::parse("host", &text).unwrap().with_disks(disks).unwrap();
    let all = format!(
        "--direct=1 --rw=randread --bs=4k --ioengine=libaio --time_based --runtime=500ms {options}"
    );
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    Simulation::new(&jobs, &device, &design, 1)?.finish()
}

fn ios(report: &Report) -> Vec<u64> {
    report.jobs.iter().map(|job| job.stats.measured().map(|of| of.ios).sum()).collect()
}

#[test]
fn two_busy_disks_halve_the_tags_and_one_busy_disk_has_them_all() {
    let most = TAGS * 500_000 / COMMAND_US;
    let both = run(
        2,
        "--iodepth=32 --size=1g --name=a --filename=/dev/a --name=b --filename=/dev/b --iodepth=32",
    );
    let both = ios(&both.unwrap());
    assert!(both.iter().sum::<u64>() <= most, "more commands than tags: {both:?}");
    // As in Linux, each active disk may use its part of the tags.
    assert!(both.iter().all(|ios| ios * 100 > most * 45), "{both:?} of {most}");
    let alone = ios(&run(2, "--name=a --iodepth=32 --filename=/dev/a").unwrap());
    assert!(alone[0] * 100 > most * 90 && alone[0] <= most, "{alone:?} of {most}");
}

#[test]
fn one_job_on_two_disks_uses_both() {
    let report = run(2, "--name=a --iodepth=2 --filename=/dev/a:/dev/b").unwrap();
    let most = 2 * 500_000 / COMMAND_US;
    let done = ios(&report)[0];
    assert!(done * 100 > most * 90 && done <= most, "{done} of {most}");
    let error = run(1, "--name=a --filename=/dev/a:/dev/b").unwrap_err().to_string();
    assert!(error.contains("more file names than disks: the device has 1"), "{error}");
}

/// Each of two jobs without a file name covers a whole disk, so both fit only on two disks.
#[test]
fn files_without_a_name_take_the_disks_in_turn() {
    let jobs = "--name=a --numjobs=2 --iodepth=32";
    let on_two = ios(&run(2, jobs).unwrap());
    assert!(on_two.iter().all(|ios| *ios > 0), "{on_two:?}");
    assert!(matches!(run(1, jobs), Err(SimulationError::FilesTooLarge { .. })));
}

#[test]
fn a_card_and_persistent_memory_are_one_disk() {
    for name in ["emmc-hs400", "pmem-dram"] {
        let device = Device::lookup(name).unwrap();
        assert_eq!(device.clone().with_disks(1), Some(device.clone()));
        assert_eq!(device.with_disks(2), None, "{name}");
    }
}

/// Returns the reads of each of `jobs` on `disks` disks like `name`.
fn random_reads(name: &str, disks: u16, scheduler: &str, jobs: &str) -> Vec<u64> {
    let device = Device::lookup(name).unwrap().with_disks(disks).unwrap();
    let all = format!("--direct=1 --rw=randread --bs=4k --ioengine=libaio --time_based {jobs}");
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup(scheduler).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let ios = ios(&report);
    let drive = report.family.drive.unwrap();
    let commands = ios.iter().sum::<u64>();
    assert!((commands..commands + 128).contains(&drive.commands), "{ios:?} {drive:?}");
    assert_eq!(drive.disks.len(), usize::from(disks), "{drive:?}");
    ios
}

/// Each disk on an AHCI host has a port, a medium and 32 tags of its
/// own. So two disks with a job each do twice what one does, and a disk does as much with an idle
/// disk as alone, also where a job asks for more than 32 commands.
#[test]
fn disks_on_the_ports_of_an_ahci_host_do_not_hinder_each_other() {
    for (device, options) in
        [("hdd-7200", "--runtime=20s --iodepth=64"), ("sata-ssd", "--runtime=200ms --iodepth=2")]
    {
        let one = format!("--name=a --filename=/dev/a {options}");
        let two = format!("{one} --name=b --filename=/dev/b {options}");
        for scheduler in ["mq-none", "mq-deadline"] {
            let alone = random_reads(device, 1, scheduler, &one)[0];
            let both = random_reads(device, 2, scheduler, &two);
            let beside_idle = random_reads(device, 2, scheduler, &one)[0];
            // They draw other sectors: the mean of 3000 reads of 6 ms differs by 2 %.
            for ios in [both[0], both[1], beside_idle] {
                assert!(ios.abs_diff(alone) * 100 <= 4 * alone, "{device}: {ios}, {alone} alone");
            }
        }
    }
}

/// A job in sequence at depth 256 asks for more requests than its disk has tags, so it sleeps, and
/// nothing merges under `none`. With the 64 tags of two ports, requests 33 to 64 would wait in the
/// software queue and merge, although the other disk is idle.
#[test]
fn a_deep_job_on_an_ahci_host_merges_as_much_with_an_idle_disk_as_alone() {
    let options = "--direct=1 --rw=write --bs=4k --ioengine=libaio --iodepth=256 --size=64m \
                   --name=a --filename=/dev/a";
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    for scheduler in ["mq-none", "mq-none-2017", "mq-deadline"] {
        let design = Design::lookup(scheduler).unwrap();
        let [alone, two, eight] = [1, 2, 8].map(|disks| {
            let device = Device::lookup("sata-ssd").unwrap().with_disks(disks).unwrap();
            let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
            report.family.drive.unwrap().commands
        });
        assert_eq!([two, eight], [alone; 2], "{scheduler}: commands for 16384 writes");
    }
}

/// A host takes 16 commands at a time. One disk has 15 jobs on 15 hardware queues, the other has
/// one job with more I/Os than the host takes. All of them are always stopped. Where the oldest
/// refusal goes first, one restart of 16 is for the disk with one hardware queue: 6 % of the
/// commands. In turn, each command of one disk makes room for one of the other: half of them. A
/// worker makes the run, and meanwhile one of 15 submitters may take the room.
#[test]
fn disks_of_a_full_host_have_equal_shares_if_they_are_restarted_in_turn() {
    let device = Device::lookup("lpfc-host-full").unwrap().with_disks(2).unwrap();
    let jobs = "--direct=1 --rw=randread --bs=4k --ioengine=libaio --time_based --runtime=100ms \
                --size=1g --name=many --numjobs=15 --iodepth=4 --filename=/dev/a \
                --name=one --numjobs=1 --iodepth=32 --filename=/dev/b";
    let jobs = parse_args(jobs.split_whitespace(), &NoSource).unwrap();
    for (base, own, in_turn) in [("mq-none", 1..10, 38..52), ("mq-deadline", 1..10, 38..52)] {
        for (restart, percent) in [("own", own), ("in-turn", in_turn)] {
            let text = format!("base = \"{base}\"\n[queue]\nrestart = \"{restart}\"\n");
            let design = Design::parse("restart.toml", &text).unwrap();
            let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
            let ios = ios(&report);
            let share = 100 * ios[15] / ios.iter().sum::<u64>();
            assert!(percent.contains(&share), "{base}, {restart}: {share} % of {ios:?}");
        }
    }
}

#[test]
fn an_ahci_host_has_32_ports() {
    let disk = Device::lookup("sata-ssd").unwrap();
    assert_eq!(disk.clone().with_disks(32).unwrap().disks(), 32);
    assert_eq!(disk.with_disks(33), None);
    assert_eq!(Device::lookup("nvme-tlc").unwrap().with_disks(2), None);
}
