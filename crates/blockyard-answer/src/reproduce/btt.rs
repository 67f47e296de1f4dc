//! The block translation table on persistent memory, May 2015.

use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Variant, Workload, options};

const BEFORE: &str = include_str!("../../reference/btt-2015-before.csv");
const AFTER: &str = include_str!("../../reference/btt-2015-after.csv");
const DESIGNS: &[&str] = &[
    "btt-linux-2015",
    "pmem-raw",
    "btt-linux-2015-counter",
    "btt-linux-2015-nt",
    "btt-linux-2015-aligned-nt",
    "btt-linux",
    "btt",
];

/// Only ratios were published, not the number of threads or the time of an I/O apart from its copy.
/// If T is the time of an I/O on the raw memory, an I/O through the table takes 4.57 T for its copy
/// and 0.76 T for the rest.
const VARIANTS: &[Variant] = &[
    Variant {
        name: "16 threads: half of each time",
        since_outcome: false,
        designs: &[],
        text: "base = \"pmem-dram-2015\"\n[pmem]\nuncached-load = \"127ns\"\ntable-work = \"75ns\"\n[pmem.read]\nbytewise = \"8.045us\"\nnt = \"0.98us\"\n\
               aligned-nt = \"0.65us\"\n[pmem.write]\nbytewise = \"0.65us\"\nnt = \"0.65us\"\n\
               aligned-nt = \"0.65us\"\n[cpu]\ncpus = 16\nsubmit = \"0.53us\"\n",
    },
    Variant {
        name: "72 threads: 9/4 of each time",
        since_outcome: false,
        designs: &[],
        text: "base = \"pmem-dram-2015\"\n[pmem]\nuncached-load = \"571ns\"\ntable-work = \"338ns\"\n[pmem.read]\nbytewise = \"36.48us\"\nnt = \"3.5us\"\n\
               aligned-nt = \"2.33us\"\n[pmem.write]\nbytewise = \"2.33us\"\nnt = \"2.33us\"\n\
               aligned-nt = \"2.33us\"\n[cpu]\ncpus = 72\nsubmit = \"5.85us\"\n",
    },
    Variant {
        name: "a map entry is copied by one load",
        since_outcome: true,
        designs: &[],
        text: "base = \"pmem-dram-2015\"\n[pmem]\nuncached-load = \"277ns\"\nloads-of-word = 1\n\
               [pmem.read]\nbytewise = \"17.65us\"\n",
    },
    Variant {
        name: "copies past the caches fetch no line twice, wherever they begin",
        since_outcome: false,
        designs: &[],
        text: "base = \"pmem-dram-2015\"\n[pmem.read]\nnt = \"1.15us\"\n",
    },
    Variant {
        name: "they fetch every line twice",
        since_outcome: false,
        designs: &[],
        text: "base = \"pmem-dram-2015\"\n[pmem.read]\nnt = \"2.3us\"\n",
    },
];

/// The experiment.
pub(super) fn experiment() -> Experiment {
    Experiment {
        name: "btt",
        source: "reply to \"nd_btt: atomic sector updates\", version 2, Robert Elliott, May 2015",
        about: "Random I/Os of 4 KiB by 144 jobs, as many on each processor; 4 ms of virtual time after 1 ms. How \
                many threads it took was not published: the device has 32 processors, its variants fewer \
                and more, at times that give the same rates.",
        tables: vec![
            table("I/Os per second", Unit::Kiops, 10.0, &["randread", "randwrite", "randrw"]),
            table(
                "Share of copies, of data and of map entries",
                Unit::CopyPercent,
                15.0,
                &["randread"],
            ),
            table("Share of map entries", Unit::MapPercent, 15.0, &["randread"]),
        ],
    }
}

fn table(title: &str, unit: Unit, percent: f64, ops: &[&str]) -> Table {
    let workload = |op: &&str| Workload {
        name: (*op).to_owned(),
        options: options(&format!(
            "--name=fio --filename=/dev/pmem0 --direct=1 --bs=4k --time_based --group_reporting --rw={op} \
             --ramp_time=1ms --runtime=4ms --numjobs=144"
        )),
    };
    Table {
        title: title.to_owned(),
        device: "pmem-dram-2015",
        variants: VARIANTS,
        workloads: ops.iter().map(workload).collect(),
        designs: DESIGNS,
        against: Against::Nothing,
        unit,
        tolerance: Tolerance::Percent(percent),
        before: &[],
        published: [BEFORE, AFTER].map(|text| published(text, unit.name())).concat(),
        counters: &[Unit::FencesPerIo, Unit::ScansPerIo, Unit::TransfersPerIo],
    }
}
