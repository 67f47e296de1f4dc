//! The host software queue for eMMC and SD, February 2020.

use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Variant, Workload, options};

const BEFORE: &str = include_str!("../../reference/hsq-2020-before.csv");
const AFTER: &str = include_str!("../../reference/hsq-2020-after.csv");
const DESIGNS: &[&str] = &["mmc-blkmq-4.16", "hsq-v8", "hsq-v8-atomic", "hsq-6.12"];
/// The designs for the eMMC device. The SD card has no command queue.
const EMMC_DESIGNS: &[&str] =
    &["mmc-blkmq-4.16", "hsq-v8", "hsq-v8-atomic", "hsq-6.12", "cqe-6.12"];
const COUNTERS: &[Unit] =
    &[Unit::IosPerCommand, Unit::StatusPerWrite, Unit::AwaitedPerIo, Unit::BusPercent];

/// The device with a shorter wake-up, and with card times that then give the same figures.
macro_rules! shorter_wake_up {
    ($device:literal, $access:literal, $finish:literal) => {
        Variant {
            name: "a wake-up takes 12 us",
            since_outcome: false,
            designs: &[],
            text: concat!(
                "base = \"",
                $device,
                "\"\n[cpu]\nrun-delay = \"12us\"\n[card.read]\naccess = \"",
                $access,
                "\"\n[card.write]\nfinish = \"",
                $finish,
                "\"\n"
            ),
        }
    };
}

/// The device with a longer wake-up.
macro_rules! longer_wake_up {
    ($device:literal) => {
        Variant {
            name: "a wake-up takes 26 us, and a CMD13 no more",
            since_outcome: false,
            designs: &[],
            text: concat!(
                "base = \"",
                $device,
                "\"\n[host]\nissue = \"3us\"\n[cpu]\nrun-delay = \"26us\"\n"
            ),
        }
    };
}

const EMMC: &[Variant] = &[
    shorter_wake_up!("emmc-hs400-sprd", "106700ns", "44080ns"),
    longer_wake_up!("emmc-hs400-sprd"),
    Variant {
        name: "commands, not the card's own rate, hold reads in sequence",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-hs400-sprd\"\n[card.read]\naccess = \"88000ns\"\ngap = \"1489ns\"\n\
               [card.ahead]\nwindow = \"0KiB\"\n",
    },
    Variant {
        name: "the host, not the card, holds writes in sequence",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-hs400-sprd\"\n[cpu]\ncpus = 4\nsubmit = \"36500ns\"\n\
               [card.read]\naccess = \"98850ns\"\n\
               [card.write]\nprogram = \"20us\"\nfinish = \"32600ns\"\n",
    },
];
const SD: &[Variant] =
    &[shorter_wake_up!("sd-hs-sprd", "646000ns", "5555us"), longer_wake_up!("sd-hs-sprd")];

/// The experiment.
pub(super) fn experiment() -> Experiment {
    Experiment {
        name: "hsq",
        source: "\"Add MMC software queue support\", version 8, Baolin Wang, February 2020",
        about: "20 jobs that do one I/O of 4 KiB at a time, all on the same 1 GiB. Where each of them did \
                1 GiB, here they work for 4 s of virtual time (SD: 30 s) after 1 s. Version 8 completes in a \
                thread (hsq-v8), but its figures were last refreshed two versions earlier: they fit completion \
                in the interrupt (hsq-v8-atomic).",
        tables: vec![
            table(
                "eMMC, HS400 enhanced strobe",
                "emmc-hs400-sprd",
                EMMC,
                EMMC_DESIGNS,
                Unit::MibPerS,
                4,
            ),
            table("SD card, high speed", "sd-hs-sprd", SD, DESIGNS, Unit::KibPerS, 30),
        ],
    }
}

fn table(
    title: &str,
    device: &'static str,
    variants: &'static [Variant],
    designs: &'static [&'static str],
    unit: Unit,
    seconds: u32,
) -> Table {
    let workload = |op: &str| Workload {
        name: op.to_owned(),
        options: options(&format!(
            "--filename=/dev/mmcblk0p30 --direct=1 --iodepth=20 --rw={op} --bs=4K --size=1G \
             --group_reporting --numjobs=20 --name=test_read --time_based --ramp_time=1s \
             --runtime={seconds}s"
        )),
    };
    Table {
        title: title.to_owned(),
        device,
        variants,
        workloads: ["read", "randread", "write", "randwrite"].map(workload).into(),
        designs,
        against: Against::Nothing,
        unit,
        tolerance: Tolerance::Percent(5.0),
        before: &[],
        published: [BEFORE, AFTER].map(|text| published(text, unit.name())).concat(),
        counters: COUNTERS,
    }
}
