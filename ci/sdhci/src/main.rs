//! A program for a bare PC that drives an SD host controller (SDHCI) which nobody here wrote: QEMU's.
//!
//! ```text
//! machine/     boot, interrupts, port I/O, DMA memory, heap: all unsafe code
//! serial.rs    reports, and the end of the program
//! clock.rs     time
//! pci.rs       finds the controller
//! sdhci/       the driver of the controller: identification, and MMC requests
//! disk.rs      request queue over card over controller, and the loop that runs them
//! workload.rs  writes, reads and erases, with what they acknowledged
//! ```
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod clock;
mod disk;
#[allow(unsafe_code, reason = "instructions and memory of the machine; everything else is safe")]
mod machine;
mod pci;
mod sdhci;
mod serial;
mod workload;

use blockyard::policy::Policies;
use blockyard_mmc::policy::{HsqPolicy, Pipeline};
use clock::Clock;
use core::panic::PanicInfo;
use disk::Disk;
use machine::Line;
use pci::Function;
use sdhci::Sdhci;

/// One request at a time; the next one prepared meanwhile; a queue from which the interrupt starts the next.
const PIPELINES: [(&str, Pipeline); 3] = [
    ("serial", Pipeline::Serial),
    ("double-buffer", Pipeline::TwoSlotFull),
    ("hsq", Pipeline::Hsq(HsqPolicy::TODAY)),
];

#[panic_handler]
fn panic(why: &PanicInfo<'_>) -> ! {
    say!("PANIC {why}");
    serial::exit(false)
}

/// Runs after the machine is set up.
fn main() -> ! {
    let clock = Clock::new();
    let function = Function::sd_host().expect("SD host controller on bus 0");
    let (address, line) = function.enable();
    let mut sdhci = Sdhci::new(address, Line::new(line), clock);
    let card = match sdhci.identify() {
        Ok(card) => card,
        Err(failure) => panic!("{failure}"),
    };
    say!(
        "card {} MiB, {:?} at {} Hz on {} lanes, by {}: {} commands",
        card.sectors >> 11,
        card.mode.timing,
        card.mode.clock_hz,
        card.mode.width.lanes(),
        sdhci.dma(),
        sdhci.commands,
    );
    let mut generation = 0;
    for (pipeline_name, pipeline) in PIPELINES {
        for (scheduler, policies) in
            [("none", Policies::NONE), ("mq-deadline", Policies::mq_deadline())]
        {
            let before = (sdhci.commands, sdhci.interrupts());
            let since = clock.now();
            let mut disk = Disk::new(sdhci, &card, pipeline, policies);
            let bios = workload::write_and_read(&mut disk, generation);
            let counts = disk.counts();
            let us = clock.now().since(since).as_ns() / 1000;
            say!(
                "run {pipeline_name} {scheduler}: {bios} bios, {} commands, {} interrupts, {} failures, {us} us",
                disk.sdhci().commands - before.0,
                disk.sdhci().interrupts() - before.1,
                counts.failures,
            );
            assert_eq!((counts.failures, counts.strays), (0, 0), "{counts:?}");
            workload::discard(&mut disk, generation);
            sdhci = disk.into_sdhci();
            generation += 1;
        }
    }
    say!("done");
    serial::exit(true)
}
