//! Double buffering for eMMC and SD, December 2010.

use super::mmc_mq::iozone;
use super::published::published;
use super::{Against, Experiment, Table, Tolerance, Unit, Variant};

const BEFORE: &str = include_str!("../../reference/mmc-double-buffer-2010-before.csv");
const AFTER: &str = include_str!("../../reference/mmc-double-buffer-2010-after.csv");
const DEVICE: &str = "emmc-u5500";
/// `mmc-double-buffer` if a read that finds the bus free is mapped beside the card's access; and
/// with unmapping deleted.
const BESIDE: &[(&str, &str)] = &[
    ("mmc-double-buffer", "base = \"mmc-double-buffer\"\n[host]\nmap = \"beside-access\"\n"),
    (
        "mmc-double-buffer-no-unmap",
        "base = \"mmc-double-buffer-no-unmap\"\n[host]\nmap = \"beside-access\"\n",
    ),
];
/// Variants with other times per KiB on the bus, with shorter requests, with all of the time for
/// memory before or after the transfer: of the two, the figures from before the change tell only
/// the sum.
const VARIANTS: &[Variant] = &[
    Variant {
        name: "35 us/KiB",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"33.5us\"\nunmap = \"33.5us\"\n\
               map-per-kib = \"4.25us\"\nunmap-per-kib = \"4.25us\"\npio-miss-per-kib = \"14.5us\"\n\
               [cpu]\nsubmit = \"271930ns\"\n[card]\nwidth = 8\n\
               [card.read]\naccess = \"120us\"\ngap = \"7.3us\"\n",
    },
    Variant {
        name: "50 us/KiB",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-u5500\"\n[host]\nmap = \"16us\"\nunmap = \"16us\"\n\
               map-per-kib = \"8.87us\"\nunmap-per-kib = \"8.87us\"\npio-miss-per-kib = \"16us\"\n\
               [cpu]\nsubmit = \"220930ns\"\n\
               [card.read]\naccess = \"138us\"\ngap = \"4.9us\"\n",
    },
    Variant {
        name: "requests of 512 KiB at most",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-u5500\"\n[limits]\nmax-sectors = 1024\n[host]\npio-miss-per-kib = \"26.5us\"\n",
    },
    Variant {
        name: "mapping is all that memory costs",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-u5500\"\n[host]\nmap-share = 100\n",
    },
    Variant {
        name: "unmapping is all that memory costs",
        since_outcome: false,
        designs: &[],
        text: "base = \"emmc-u5500\"\n[host]\nmap-share = 0\n[host.write]\nmap = \"0us\"\nunmap = \"22us\"\n",
    },
    // Nothing is fitted here but the choice of the mechanism.
    Variant {
        name: "a lone read is mapped during the access",
        since_outcome: true,
        designs: BESIDE,
        text: "base = \"emmc-u5500\"\n",
    },
    // Fitted to the three tables together: what double buffering and the deleted unmapping gain,
    // and the processor load.
    Variant {
        name: "so mapped; 45 % of DMA's KiB is its engine's",
        since_outcome: true,
        designs: BESIDE,
        text: "base = \"emmc-u5500\"\n[limits]\nmax-sectors = 32768\n\
               [host]\nmap = \"12us\"\nunmap = \"12us\"\nmap-per-kib = \"6.2us\"\nunmap-per-kib = \"6.2us\"\n\
               map-share = 93\ndma-share = 45\npio-per-kib = \"1.6us\"\npio-cached = \"400KiB\"\n\
               pio-miss-per-kib = \"7.6us\"\npio-stall-per-kib = \"20us\"\n\
               [card.read]\naccess = \"198us\"\n[card.ahead]\ncommand = \"40us\"\n\
               [cpu]\nsubmit = \"119930ns\"\n",
    },
];

/// A tolerance for differences of rates: 1 % of the 15 MB/s around which the published reads are.
const RATES: Tolerance = Tolerance::Units(150.0);
/// A tolerance for differences of processor load, and for gains in percent, which are published as
/// whole numbers.
const POINTS: Tolerance = Tolerance::Units(2.0);

/// The experiment.
pub(super) fn experiment() -> Experiment {
    let dma: &[_] = &["mmc-serial", "mmc-double-buffer", "mmc-double-buffer-full"];
    let all: &[_] = &["mmc-serial", "mmc-pio", "mmc-double-buffer", "mmc-double-buffer-full"];
    let pio = Against::Less("mmc-pio");
    let serial = Against::Gain("mmc-serial");
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
