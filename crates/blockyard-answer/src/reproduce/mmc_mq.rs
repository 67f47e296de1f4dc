//! From one kernel thread to blk-mq for eMMC and SD, February 2017.

use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Variant, Workload, options};

const BEFORE: &str = include_str!("../../reference/mmc-mq-2017-before.csv");
const AFTER: &str = include_str!("../../reference/mmc-mq-2017-after.csv");
const DEVICE: &str = "sd-ux500";
const DESIGNS: &[&str] =
    &["mmc-double-buffer-full", "mmc-mq-step4", "mmc-mq-step15", "mmc-mq-step16", "mmc-blkmq-4.16"];
const VARIANTS: &[Variant] = &[
    Variant {
        name: "mapping is all that memory costs",
        since_outcome: false,
        designs: &[],
        text: "base = \"sd-ux500\"\n[host]\nmap-per-kib = \"10520ns\"\nunmap-per-kib = \"0ns\"\n\
               [card.write]\nprogram = \"678us\"\n",
    },
    Variant {
        name: "a quarter of what memory costs is mapping",
        since_outcome: false,
        designs: &[],
        text: "base = \"sd-ux500\"\n[host]\nmap-per-kib = \"2630ns\"\nunmap-per-kib = \"7890ns\"\n\
               [card.write]\nprogram = \"730us\"\n",
    },
    Variant {
        name: "the thread always starts the next request during the clean-up",
        since_outcome: true,
        designs: &[],
        text: "base = \"sd-ux500\"\n[cpu]\nwake-on-waker = 0\n",
    },
    Variant {
        name: "the thread always starts the next request after the clean-up",
        since_outcome: true,
        designs: &[],
        text: "base = \"sd-ux500\"\n[cpu]\nwake-on-waker = 100\n",
    },
];

/// The experiment.
pub(super) fn experiment() -> Experiment {
    let overlap = &[Unit::BusPercent, Unit::UnmapInside, Unit::UnmapOutside];
    let commands = vec![dd(), find("find", 2600, 715), find("find (4000 reads)", 4000, 207)];
    Experiment {
        name: "mmc-mq",
        source: "\"multiqueue for MMC/SD\", third try, Linus Walleij, February 2017",
        about: "iozone: a file of 20 MiB, direct I/O, one call at a time; each length of record on a card \
                of its own. dd and find go through the page cache; how many reads find does was inferred.",
        tables: vec![
            table("dd and find", commands, Unit::Seconds, 3.0, &[Unit::SecondsAsleep]),
            table("iozone", iozone(20), Unit::KibPerS, 5.0, overlap),
        ],
    }
}

/// A table of absolute figures, which agree within `percent`.
fn table(
    title: &str,
    workloads: Vec<Workload>,
    unit: Unit,
    percent: f64,
    counters: &'static [Unit],
) -> Table {
    Table {
        title: title.to_owned(),
        device: DEVICE,
        variants: VARIANTS,
        workloads,
        designs: DESIGNS,
        against: Against::Nothing,
        unit,
        tolerance: Tolerance::Percent(percent),
        before: &[],
        published: [BEFORE, AFTER].map(|text| published(text, unit.name())).concat(),
        counters,
    }
}

/// Returns iozone's six passes over a file of `mib` MiB, for each record length. A random pass does
/// as many I/Os as the file has records; it visits some records more than once and others never.
pub(super) fn iozone(mib: u32) -> Vec<Workload> {
    const OPS: [(&str, &str); 6] = [
        ("write", "write"),
        ("rewrite", "write"),
        ("read", "read"),
        ("reread", "read"),
        ("randread", "randread"),
        ("randwrite", "randwrite"),
    ];
    let of_op = |(name, rw): (&str, &str)| {
        let of_record = |exponent: u32| {
            let kib = 1 << exponent;
            let records = mib * 1024 / kib;
            Workload {
                name: format!("{name} {kib}k"),
                options: options(&format!(
                    "--name=iozone --filename=/mnt/foo.test --size={mib}m --direct=1 --norandommap \
                     --rw={rw} --bs={kib}k --number_ios={records}"
                )),
            }
        };
        (2..=14).map(of_record).collect::<Vec<_>>()
    };
    OPS.into_iter().flat_map(of_op).collect()
}

/// `dd if=/dev/mmcblk0 of=/dev/null bs=1M count=1024`.
fn dd() -> Workload {
    let text = "--name=dd --filename=/dev/mmcblk0 --direct=0 --fadvise_hint=0 --rw=read --bs=1m \
                --number_ios=1024";
    Workload { name: "dd".to_owned(), options: options(text) }
}

/// Returns `find . > /dev/null`: `reads` dependent reads of metadata, with `computing_us`
/// microseconds of computing after each.
///
/// The run took 3.61 s, 1.86 s of them on a processor. If the 1.75 s of waiting are reads of 669
/// us, there are 2600 reads. If the 1.86 s include the processor time of the reads, there are more
/// reads with shorter waits.
fn find(name: &str, reads: u32, computing_us: u32) -> Workload {
    let text = format!(
        "--name=find --filename=/dev/mmcblk0p1 --direct=0 --fadvise_hint=0 --rw=randread --bs=4k \
         --size=1g --number_ios={reads} --thinktime={computing_us}us --thinktime_spin={computing_us}us"
    );
    Workload { name: name.to_owned(), options: options(&text) }
}
