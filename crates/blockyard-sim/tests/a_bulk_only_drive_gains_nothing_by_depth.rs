//! Bulk-only transport has one command at a time, so neither the depth of a job nor a drive that
//! sorts gains anything. USB Attached SCSI queues commands: then the disk behind it sorts, as with
//! SATA.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Returns the random reads per second of a job of this depth.
fn rate(device: &Device, depth: u16) -> u64 {
    let options = format!(
        "--name=x --direct=1 --rw=randread --bs=4k --ioengine=libaio --iodepth={depth} \
         --time_based --runtime=20s"
    );
    let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap();
    let stats = &report.jobs[0].stats;
    stats.measured().map(|measured| measured.ios).sum::<u64>() * 1_000_000_000 / stats.runtime_ns()
}

fn disk(usb: &str) -> Device {
    Device::parse("disk", &format!("base = \"usb-hdd\"\n[usb]\n{usb}")).unwrap()
}

#[test]
fn only_attached_scsi_lets_a_disk_sort() {
    let bulk_only = disk("");
    let attached = disk("protocol = \"uas\"\ndepth = 30");
    let [one, deep] = [1, 32].map(|depth| rate(&bulk_only, depth));
    assert!(deep.abs_diff(one) <= one / 20, "{deep} a second, {one} at depth 1");
    let [one, deep] = [1, 32].map(|depth| rate(&attached, depth));
    assert!(deep > one * 17 / 10, "{deep} a second with queued commands, {one} at depth 1");
}

/// A depth that the protocol has no use for changes nothing.
#[test]
fn a_bulk_only_drive_has_one_tag_whatever_its_profile_says() {
    assert_eq!(rate(&disk("depth = 30"), 8), rate(&disk(""), 8));
}
