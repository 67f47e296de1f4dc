//! Multi-queue SCSI under three schedulers, August 2017.

use super::{Experiment, Table, Unit, Workload, options, published};

const BEFORE: &str = include_str!("../../reference/scsi-2017-before.csv");
const DESIGNS: &[&str] = &[
    "legacy-deadline",
    "mq-none-2017",
    "mq-deadline-2017",
    "mq-none-2017-patched",
    "mq-deadline-2017-patched",
    "mq-none",
    "mq-deadline",
];

/// The experiment.
pub(super) fn experiment() -> Experiment {
    Experiment {
        name: "scsi",
        source: "\"blk-mq-sched: improve SCSI-MQ performance\", version 2, Ming Lei, August 2017",
        about: "64 jobs of depth 64, I/Os of 4 KiB, 2 s of virtual time after 0.5 s. What the jobs work \
                on was not published: both readings are here.",
        // All of them on the whole disk, or each on a part of its own.
        tables: vec![
            table("All jobs share the disk", "--filename=/dev/sda"),
            table("Each job has a region of its own", "--size=8g"),
        ],
    }
}

fn table(title: &str, region: &str) -> Table {
    let workload = |op: &str| Workload {
        name: op.to_owned(),
        options: options(&format!(
            "--name=scsi --ioengine=libaio --direct=1 --bs=4k --iodepth=64 --time_based \
             --group_reporting {region} --rw={op} --ramp_time=500ms --runtime=2000ms --numjobs=64"
        )),
    };
    Table {
        title: title.to_owned(),
        device: "srp",
        variants: &[],
        workloads: ["read", "randread", "write", "randwrite"].map(workload).into(),
        designs: DESIGNS,
        less: None,
        unit: Unit::Kiops,
        published: published(BEFORE, Unit::Kiops),
        counters: &[Unit::IosPerCommand],
    }
}
