//! Double buffering for eMMC and SD, December 2010.

use super::mmc_mq::iozone;
use super::{Experiment, Table, Unit, Variant, published};

const BEFORE: &str = include_str!("../../reference/mmc-double-buffer-2010-before.csv");
const DEVICE: &str = "emmc-u5500";
/// Variants with other times per KiB on the bus, and with shorter requests.
const VARIANTS: &[Variant] = &[
    Variant {
        name: "35 us/KiB",
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"33.5us\"\nunmap = \"33.5us\"\n\
               map-per-kib = \"4.25us\"\nunmap-per-kib = \"4.25us\"\npio-miss-per-kib = \"14.5us\"\n\
               [cpu]\nsubmit = \"276us\"\n[card]\nwidth = 8\n\
               [card.read]\naccess = \"120us\"\ngap = \"7.3us\"\n",
    },
    Variant {
        name: "50 us/KiB",
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"16us\"\nunmap = \"16us\"\n\
               map-per-kib = \"8.87us\"\nunmap-per-kib = \"8.87us\"\npio-miss-per-kib = \"16us\"\n\
               [cpu]\nsubmit = \"225us\"\n\
               [card.read]\naccess = \"138us\"\ngap = \"4.9us\"\n",
    },
    Variant {
        name: "requests of 512 KiB at most",
        text: "base = \"emmc-u5500\"\n[limits]\nmax-sectors = 1024\n[host]\npio-miss-per-kib = \"26.5us\"\n",
    },
];

/// The experiment.
pub(super) fn experiment() -> Experiment {
    let table = |title: &str, designs, less, unit| Table {
        title: title.to_owned(),
        device: DEVICE,
        variants: VARIANTS,
        workloads: iozone(50),
        designs,
        less,
        unit,
        published: Vec::new(),
        counters: &[],
    };
    let dma: &[_] = &["mmc-serial", "mmc-double-buffer", "mmc-double-buffer-full"];
    let all: &[_] = &["mmc-serial", "mmc-pio", "mmc-double-buffer", "mmc-double-buffer-full"];
    let against_pio = |title, unit| Table {
        published: published(BEFORE, unit),
        ..table(title, dma, Some("mmc-pio"), unit)
    };
    Experiment {
        name: "mmc-double-buffer",
        source: "double buffering for MMC, Per Forlin, December 2010",
        about: "iozone: a file of 50 MiB, direct I/O, one call at a time; each length of record on a card \
                of its own. Only differences were published.",
        tables: vec![
            against_pio("Rates less those of PIO", Unit::KibPerS),
            against_pio("Processor load less that of PIO, percentage points", Unit::CpuPercent),
            table("Rates", all, None, Unit::KibPerS),
        ],
    }
}
