//! Double buffering for eMMC and SD, December 2010.

use super::mmc_mq::iozone;
use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Variant};

const BEFORE: &str = include_str!("../../reference/mmc-double-buffer-2010-before.csv");
const AFTER: &str = include_str!("../../reference/mmc-double-buffer-2010-after.csv");
const DEVICE: &str = "emmc-u5500";
/// Variants with other times per KiB on the bus, with shorter requests, and with all of the time for memory before or
/// after the transfer: of the two, the figures from before the change tell only the sum.
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
    Variant {
        name: "mapping is all that memory costs",
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"44us\"\nunmap = \"0us\"\n\
               map-per-kib = \"12.2us\"\nunmap-per-kib = \"0us\"\n",
    },
    Variant {
        name: "unmapping is all that memory costs",
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"0us\"\nunmap = \"44us\"\n\
               map-per-kib = \"0us\"\nunmap-per-kib = \"12.2us\"\n\
               [host.write]\nmap = \"0us\"\nunmap = \"22us\"\n",
    },
];

/// A tolerance for differences of rates: 1 % of the 15 MB/s around which the published reads are.
const RATES: Tolerance = Tolerance::Units(150.0);
/// A tolerance for differences of processor load, and for gains in percent, which are published as whole numbers.
const POINTS: Tolerance = Tolerance::Units(2.0);

/// The experiment.
pub(super) fn experiment() -> Experiment {
    let dma: &[_] = &["mmc-serial", "mmc-double-buffer", "mmc-double-buffer-full"];
    let all: &[_] = &["mmc-serial", "mmc-pio", "mmc-double-buffer", "mmc-double-buffer-full"];
    let (pio, serial) = (Against::Less("mmc-pio"), Against::Gain("mmc-serial"));
    let no_unmap: &[_] = &["mmc-double-buffer-no-unmap"];
    Experiment {
        name: "mmc-double-buffer",
        source: "double buffering for MMC, Per Forlin, December 2010",
        about: "iozone: a file of 50 MiB, direct I/O, one call at a time; each length of record on a card \
                of its own. Only differences were published.",
        tables: vec![
            table("Rates less those of PIO", dma, pio, Unit::KibPerS, RATES),
            table(
                "Processor load less that of PIO, percentage points",
                dma,
                pio,
                Unit::CpuPercent,
                POINTS,
            ),
            table(
                "Gain without unmapping over DMA without overlap",
                no_unmap,
                serial,
                Unit::KibPerS,
                POINTS,
            ),
            Table {
                published: Vec::new(),
                ..table("Rates", all, Against::Nothing, Unit::KibPerS, RATES)
            },
        ],
    }
}

fn table(
    title: &str,
    designs: &'static [&'static str],
    against: Against,
    unit: Unit,
    tolerance: Tolerance,
) -> Table {
    let empty = Table {
        title: title.to_owned(),
        device: DEVICE,
        variants: VARIANTS,
        workloads: iozone(50),
        designs,
        against,
        unit,
        tolerance,
        before: &[],
        published: Vec::new(),
        counters: &[],
    };
    let unit = empty.unit_name();
    Table { published: [BEFORE, AFTER].map(|text| published(text, unit)).concat(), ..empty }
}
