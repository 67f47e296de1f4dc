//! A firmware that reads and writes an eMMC device with `blockyard`, on a simulated chip:
//! everything to write for a controller of your own, from the registers to the main loop.
//!
//! ```text
//! demo.rs      what it is all for: bios, and memory that they name
//! disk.rs      the main loop: request queue, driver of the card       ← begin here
//! sdhci.rs     the driver of the controller                           ← write this for yours
//! chip.rs      simulated: registers, DMA, interrupts, time
//! card.rs      simulated: the device
//! ```
//!
//! All files but this one need only `core` and `alloc`; `ci/bare` links them without std. To run
//! it:
//! ```text
//! cargo run --example firmware
//! ```

extern crate alloc;

mod card;
mod chip;
mod demo;
mod disk;
mod sdhci;

use blockyard_mmc::policy::{HsqPolicy, Pipeline};

/// Serial: one request after the other. Hsq: the next request is prepared, and the interrupt
/// handler starts it.
const PIPELINES: [(&str, Pipeline); 2] =
    [("serial", Pipeline::Serial), ("hsq", Pipeline::Hsq(HsqPolicy::TODAY))];

fn main() {
    for (name, pipeline) in PIPELINES {
        let report = demo::run(pipeline, 0);
        println!(
            "{name:6} {} MiB, {:?}: {} bios in {} transfers, {}; {} us, the bus idle {} ns before each",
            report.sectors >> 11,
            report.mode.timing,
            report.bios,
            report.bus_use.transactions,
            if report.intact { "all intact" } else { "DAMAGED" },
            report.took.as_ns() / 1000,
            report.gap().as_ns(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::time::Duration;

    #[test]
    fn data_is_read_back_and_a_prepared_request_starts_sooner() {
        let [serial, hsq] = PIPELINES.map(|(_, pipeline)| demo::run(pipeline, 0));
        assert!(serial.intact && hsq.intact);
        // Two neighbours that are written are merged into one transfer, and are read back as one.
        assert_eq!((serial.bios, serial.bus_use.transactions), (192, 128));
        assert_eq!((hsq.bios, hsq.bus_use.transactions), (192, 128));
        // Between two requests of 8 KiB: 2 us of interrupt; serial also 16 us before, and 16 after.
        assert!(serial.gap() >= Duration::from_us(34 - 1), "{:?}", serial.gap());
        assert!(hsq.gap() < Duration::from_us(3), "{:?}", hsq.gap());
        assert!(hsq.took < serial.took);
    }

    #[test]
    fn a_block_that_fails_several_reads_is_read_in_the_end() {
        // Three times in a transfer of several blocks, and once alone: block by block, so the
        // blocks behind the first land in the right place only if the driver heeds `skip`.
        for (_, pipeline) in PIPELINES {
            let report = demo::run(pipeline, 4);
            assert!(report.intact && report.bus_use.transactions > 128 + 4);
        }
    }
}
