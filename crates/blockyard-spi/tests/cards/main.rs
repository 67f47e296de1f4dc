//! Disks over emulated SD cards in SPI mode, which check every byte that the host sends.

#![expect(clippy::std_instead_of_core, reason = "tests have std")]

mod data;
mod dropped;
mod emulated;
mod faults;
mod files;
mod heap;
mod identification;

use blockyard_spi::blocking::{Blocking, Disk as BlockingDisk};
use blockyard_spi::card::Card;
use blockyard_spi::disk::{Design, Disk};
use blockyard_spi::error::Error;
use emulated::{Model, Select, Slot, Wire, block_on};

type TestDisk = BlockingDisk<Wire, Select, Wire>;

/// Puts a card in a slot.
fn slot(model: Model) -> Slot {
    Slot::new(model)
}

fn blocking_card(slot: &Slot) -> Card<Blocking<Wire>, Select, Blocking<Wire>> {
    let bus = Blocking(slot.wire());
    let delay = Blocking(slot.wire());
    Card::new(bus, slot.select(), delay, |bus, hz| bus.0.set_hz(hz))
}

fn open(slot: &Slot, design: Design) -> Result<TestDisk, Error> {
    BlockingDisk::new(blocking_card(slot), design)
}

fn blocking_disk(slot: &Slot, design: Design) -> TestDisk {
    open(slot, design).expect("a card in the slot")
}

fn async_disk(slot: &Slot, design: Design) -> Disk<Wire, Select, Wire> {
    let card = Card::new(slot.wire(), slot.select(), slot.wire(), Wire::set_hz);
    let (disk, polls) = block_on(Disk::new(card, design));
    assert!(polls > 10, "an identification over an async bus was polled only {polls} times");
    disk.expect("a card in the slot")
}

/// Bytes that differ from sector to sector, and with `seed`.
fn pattern(seed: u32, sectors: usize) -> Vec<u8> {
    let words = (0..sectors * 128).map(|at| {
        let at = u32::try_from(at).expect("a short pattern");
        (at ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b).to_le_bytes()
    });
    words.flatten().collect()
}
