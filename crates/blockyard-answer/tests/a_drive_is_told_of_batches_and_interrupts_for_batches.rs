//! Doorbells and interrupts of drives, as their counts say.

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_answer::{DriveFigures, Figures};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// Four jobs that submit eight random reads in each call, for 20 ms.
fn random_reads(device: &str) -> (Report, DriveFigures) {
    let args = "--name=x --direct=1 --ioengine=libaio --iodepth=32 --iodepth_batch_submit=8 \
                --iodepth_batch_complete_min=8 --numjobs=4 --size=1g --time_based --runtime=20ms \
                --rw=randread --bs=4k";
    let jobs = parse_args(args.split_whitespace(), &NoSource).unwrap();
    let device = Device::parse("drive", device).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let figures = Figures::of(&report, 1).family.drive.unwrap();
    (report, figures)
}

/// [slot-by-queue-and-tag]: each of four queues has commands under the same tags, and each ends
/// once.
#[test]
fn a_doorbell_of_nvme_serves_a_batch() {
    let (report, figures) = random_reads("base = \"nvme-3dxpoint\"");
    assert!((7.0..=8.0).contains(&figures.commands_per_doorbell), "{figures:?}");
    let drive = report.family.drive.unwrap();
    assert_eq!(report.stages.count(Action::Complete(Status::Ok)), drive.commands);
}

#[test]
fn ahci_is_told_of_each_command() {
    let (_, figures) = random_reads("base = \"hdd-7200\"");
    assert!((figures.commands_per_doorbell - 1.0).abs() < 1e-9, "{figures:?}");
}

/// Completions that a vector announces together interrupt once. They come 1.8 us apart, so that 16
/// are together before 100 us are over.
#[test]
fn completions_that_are_announced_together_interrupt_once() {
    let (_, each) = random_reads("base = \"nvme-3dxpoint\"");
    let coalescing = "base = \"nvme-3dxpoint\"\n[nvme]\nhw-queues = 1\n[nvme.coalescing]\nentries = 16\ntime = \"100us\"";
    let (_, together) = random_reads(coalescing);
    assert!(each.interrupts_per_command > 0.2, "{each:?}");
    assert!(together.interrupts_per_command < 1.3 / 16.0, "{together:?}");
}
