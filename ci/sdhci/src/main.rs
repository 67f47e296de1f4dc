//! A program for a bare PC that drives an SD host controller (SDHCI) which nobody here wrote:
//! QEMU's.
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
use blockyard_mmc::host::BusyDetect;
use blockyard_mmc::policy::{HostPolicy, HsqPolicy, Pipeline};
use clock::Clock;
use core::fmt;
use core::panic::PanicInfo;
use disk::Disk;
use machine::Line;
use pci::Function;
use sdhci::Sdhci;

/// How the end of busy is found, and when the next request starts: one request at a time; the next
/// one prepared meanwhile; a queue from which the interrupt starts the next; as in Linux, with
/// CMD13 after each write.
const HOSTS: [(&str, Pipeline, BusyDetect); 4] = [
    ("serial", Pipeline::Serial, BusyDetect::Hardware),
    ("double-buffer", Pipeline::TwoSlotFull, BusyDetect::Hardware),
    ("hsq", Pipeline::Hsq(HsqPolicy::TODAY), BusyDetect::Hardware),
    ("blkmq", Pipeline::BlkMqWait, BusyDetect::Status),
];

#[panic_handler]
fn panic(why: &PanicInfo<'_>) -> ! {
    say!("PANIC {why}");
    serial::exit(false)
}

/// Runs after the machine is set up. Each byte from the host is an order: (w)rite and read, (f)ail
/// transfers, (r)emove and insert the card, (q)uit.
fn main() -> ! {
    let clock = Clock::new();
    let function = Function::sd_host().expect("SD host controller on bus 0");
    let (address, line) = function.enable();
    let mut sdhci = Sdhci::new(address, Line::new(line), clock);
    let mut generations = 0..;
    loop {
        say!("ready");
        sdhci = match serial::receive() {
            b'w' => for_each_design(sdhci, &mut generations, write_and_read),
            b'f' => for_each_design(sdhci, &mut generations, fail_transfers),
            b'r' => {
                let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware);
                let mut disk = bring_up(sdhci, policy, Policies::NONE);
                say!("remove");
                workload::read_until_gone(&mut disk);
                let sdhci = disk.into_sdhci();
                say!("insert");
                while !sdhci.has_card() {}
                sdhci
            }
            b'q' => serial::exit(true),
            other => panic!("order {other:#x}"),
        };
    }
}

/// Identifies the card, which has another address after each reset, and makes a disk of it.
fn bring_up(mut sdhci: Sdhci, policy: HostPolicy, policies: Policies) -> Disk {
    let before = sdhci.commands;
    let card = sdhci.identify().unwrap_or_else(|failure| panic!("{failure}"));
    say!(
        "card {} MiB, {:?}, {} Hz, {} lanes, {}: {} commands",
        card.sectors >> 11,
        card.mode.timing,
        card.mode.clock_hz,
        card.mode.width.lanes(),
        sdhci.dma(),
        sdhci.commands - before,
    );
    Disk::new(sdhci, &card, policy, policies)
}

/// Runs `run` under each host policy, without and with a scheduler, each time in another part of
/// the disk.
fn for_each_design(
    mut sdhci: Sdhci,
    generations: &mut impl Iterator<Item = u32>,
    run: impl Fn(&mut Disk, u32, fmt::Arguments<'_>),
) -> Sdhci {
    for (host, pipeline, busy) in HOSTS {
        for (scheduler, policies) in
            [("none", Policies::NONE), ("mq-deadline", Policies::mq_deadline())]
        {
            let generation = generations.next().expect("number of a run");
            let mut disk = bring_up(sdhci, HostPolicy::new(pipeline, busy), policies);
            run(&mut disk, generation, format_args!("{host} {scheduler}"));
            sdhci = disk.into_sdhci();
        }
    }
    sdhci
}

/// The commands and interrupts so far.
fn uses(disk: &mut Disk) -> [u32; 2] {
    [disk.sdhci().commands, disk.sdhci().interrupts()]
}

fn write_and_read(disk: &mut Disk, generation: u32, design: fmt::Arguments<'_>) {
    let before = uses(disk);
    let bios = workload::write_and_read(disk, generation);
    let [commands, interrupts] = uses(disk);
    let counts = disk.counts();
    assert_eq!((counts.failures, counts.strays), (0, 0), "{counts:?}");
    say!(
        "run {design}: {bios} bios, {} commands, {} interrupts",
        commands - before[0],
        interrupts - before[1],
    );
    workload::discard(disk, generation);
}

fn fail_transfers(disk: &mut Disk, generation: u32, design: fmt::Arguments<'_>) {
    let failures = workload::fail_transfers(disk, generation);
    say!("fail {design}: {failures} failures, {} resets", disk.counts().resets);
}
