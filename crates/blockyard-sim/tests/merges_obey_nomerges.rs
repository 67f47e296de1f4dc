//! `nomerges` of a design says which requests bios may join, as the attribute of that name does in
//! Linux.

use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Returns the merges of two sequential jobs that submit one write at a time to a slow disk.
fn merges(nomerges: u8) -> u64 {
    let text = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\n\
                submit-queues = 1\ndepth = 2\n";
    let device = Device::parse("slow", text).unwrap();
    let design = format!("base = \"mq-deadline\"\n[queue]\nnomerges = {nomerges}\n");
    let design = Design::parse("design", &design).unwrap();
    let all = "--direct=1 --filename=/dev/a --rw=write --bs=4k --ioengine=libaio --iodepth=32 --size=4m \
               --name=a --name=b --offset=1g";
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let ios: u64 = report.jobs.iter().flat_map(|job| job.stats.measured()).map(|of| of.ios).sum();
    assert_eq!(ios, 2048, "every write is done, merged or not");
    report.stages.count(Action::BackMerge) + report.stages.count(Action::FrontMerge)
}

#[test]
fn merges_obey_nomerges() {
    // Each job submits many writes in a row, so the request filed last is mostly its own.
    let [all, last, off] = [0, 1, 2].map(merges);
    assert!(all > 1000 && last > 1000 && off == 0, "{all}, {last}, {off}");
}

/// Returns the commands of 256 writes in sequence, of so many bytes, on a device with a virtual
/// boundary of 4 KiB or without.
fn commands(block_bytes: u32, has_boundary: bool) -> u64 {
    let text = format!(
        "base = \"null\"\n[limits]\nvirt-boundary = {has_boundary}\n[null]\ncompletion = \"timer\"\n\
         completion-time = \"1ms\"\nsubmit-queues = 1\ndepth = 2\n"
    );
    let device = Device::parse("slow", &text).unwrap();
    let design = Design::lookup("mq-deadline").unwrap();
    let all = format!(
        "--name=a --direct=1 --rw=write --bs={block_bytes} --ioengine=libaio --iodepth=64 --number_ios=256 --size=4m"
    );
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.stages.count(Action::Issue)
}

/// The list of segments of NVMe may have no gap within a page of 4 KiB. Payloads of 512 bytes
/// begin and end within pages, so each is a command of its own; pages follow each other.
#[test]
fn small_payloads_are_not_joined_at_a_virtual_boundary() {
    assert_eq!(commands(512, true), 256);
    assert!(commands(512, false) < 128);
    assert_eq!(commands(4096, true), commands(4096, false));
    assert!(commands(4096, true) < 128);
}
