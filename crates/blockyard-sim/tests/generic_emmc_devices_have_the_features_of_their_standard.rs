//! The generic eMMC devices beyond reads and writes: a cache that loses unflushed data, flushes and
//! forced writes, discards, background operations. The oldest device predates caches.

use blockyard::time::Duration;
use blockyard_devices::data::verify::Verify;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};

const WITH_CACHE: [&str; 3] = ["emmc-ddr52", "emmc-hs200", "emmc-hs400"];
const WITHOUT: &str = "emmc-hs";

fn run(job: &str, device: &str, verify: Option<&Verify>) -> Report {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device = Device::lookup(device).unwrap();
    let design = Design::lookup("mmc-blkmq").unwrap();
    let conditions = Conditions { verify, checked: true, ..Conditions::new(1) };
    Simulation::under(&jobs, &device, &design, conditions).unwrap().finish().unwrap()
}

fn commands(job: &str, device: &str, number: usize) -> u64 {
    run(job, device, None).family.mmc.unwrap().commands[number]
}

/// Counts the sectors of a job with small random writes that power losses legally lost.
fn lost(options: &str, device: &str) -> u64 {
    let verify = Verify { power_cut_every: Some(Duration::from_ms(5)), ..Verify::default() };
    let job = format!("--rw=randwrite --bs=4k --size=1m --loops=2 {options}");
    let verified = run(job.trim(), device, Some(&verify)).verified.unwrap();
    assert_eq!(verified.violations, [], "{options} on {device}");
    assert!(verified.power_cuts.len() > 3, "{options} on {device}");
    verified.power_cuts.iter().map(|cut| cut.lost_by_right).sum()
}

#[test]
fn a_loss_of_power_takes_data_from_the_cache_if_there_is_one() {
    for device in WITH_CACHE {
        assert!(lost("", device) > 0, "{device}");
        assert_eq!(lost("--sync=1", device), 0, "{device}: each write is forced past the cache");
    }
    assert_eq!(lost("", WITHOUT), 0);
}

#[test]
fn an_fsync_is_a_flush_if_there_is_a_cache() {
    let job = "--rw=write --bs=4k --size=256k --fsync=4";
    for device in WITH_CACHE {
        assert_eq!(commands(job, device, 6), 15, "{device}");
    }
    assert_eq!(commands(job, WITHOUT, 6), 0);
}

#[test]
fn each_device_takes_discards() {
    for device in WITH_CACHE.into_iter().chain([WITHOUT]) {
        assert_eq!(commands("--rw=randtrim --bs=16k --size=1m", device, 38), 64, "{device}");
    }
}

/// After half a gigabyte of writes they are urgent. The host reads the reason (CMD8) and starts
/// them.
#[test]
fn a_long_stretch_of_writes_makes_background_operations_urgent() {
    for device in WITH_CACHE.into_iter().chain([WITHOUT]) {
        let urgent = ["500m", "600m"]
            .map(|size| commands(&format!("--rw=write --bs=512k --size={size}"), device, 8));
        assert_eq!(urgent, [0, 1], "{device}");
    }
}
