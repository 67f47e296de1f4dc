//! Multi-queue SCSI under three schedulers, August 2017.

use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Workload, options};

const BEFORE: &str = include_str!("../../reference/scsi-2017-before.csv");
const AFTER: &str = include_str!("../../reference/scsi-2017-after.csv");
const AFTER_LPFC: &str = include_str!("../../reference/scsi-2017-lpfc-after.csv");
/// All jobs work on the whole disk.
const SHARED: &str = "--filename=/dev/sda";
const DESIGNS: &[&str] = &[
    "legacy-deadline",
    "mq-none-2017",
    "mq-deadline-2017",
    "mq-none-2017-patched",
    "mq-deadline-2017-patched",
    "mq-none-6.12",
    "mq-deadline-6.12",
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
            table("All jobs share the disk", SHARED),
            table("Each job has a region of its own", "--size=8g"),
            lpfc("mq-deadline-2017", &["mq-deadline-2017-patched"], Tolerance::AtLeast),
            lpfc("mq-none-2017", &["mq-none-2017-patched"], Tolerance::Units(5.0)),
        ],
    }
}

fn table(title: &str, region: &str) -> Table {
    Table {
        title: title.to_owned(),
        device: "srp",
        variants: &[],
        workloads: ["read", "randread", "write", "randwrite"].map(|op| workload(op, region)).into(),
        designs: DESIGNS,
        against: Against::Nothing,
        unit: Unit::Kiops,
        tolerance: Tolerance::Percent(3.0),
        before: &[
            ("mq-none-2017-patched", "mq-none-2017"),
            ("mq-deadline-2017-patched", "mq-deadline-2017"),
        ],
        published: [BEFORE, AFTER].map(|text| published(text, Unit::Kiops.name())).concat(),
        counters: &[Unit::IosPerCommand],
    }
}

/// The gain of the patches on another host, of which only words were published.
fn lpfc(before: &'static str, designs: &'static [&'static str], tolerance: Tolerance) -> Table {
    let workloads = ["read", "write"].map(|op| workload(op, SHARED)).into();
    let empty = Table {
        title: format!("Gain over {before}"),
        device: "lpfc",
        workloads,
        designs,
        against: Against::Gain(before),
        tolerance,
        published: Vec::new(),
        ..table("", SHARED)
    };
    let mut published = published(AFTER_LPFC, empty.unit_name());
    published.retain(|it| designs.contains(&it.design));
    Table { published, ..empty }
}

fn workload(op: &str, region: &str) -> Workload {
    Workload {
        name: op.to_owned(),
        options: options(&format!(
            "--name=scsi --ioengine=libaio --direct=1 --bs=4k --iodepth=64 --time_based \
             --group_reporting {region} --rw={op} --ramp_time=500ms --runtime=2000ms --numjobs=64"
        )),
    }
}
