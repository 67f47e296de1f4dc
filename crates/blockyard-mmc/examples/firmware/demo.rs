//! The work of the firmware: it writes blocks from all over its memory, reads them back and
//! compares them.

use crate::card::Card;
use crate::chip::{BusUse, Chip};
use crate::disk::Disk;
use crate::sdhci::RAM_FROM;
use alloc::vec::Vec;
use blockyard::bio::Bio;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::mode::Mode;
use blockyard_mmc::policy::Pipeline;

/// Writes of 4 KiB each; two neighbours are read back as one.
const WRITES: u32 = 128;
const WRITE_SECTORS: u32 = 8;
const WRITE_BYTES: u32 = WRITE_SECTORS * SECTOR_BYTES;
/// The distance of two pairs on the disk.
const PAIR_STRIDE_SECTORS: u32 = 5 * WRITE_SECTORS;
const READ_FROM: u32 = RAM_FROM + WRITES * WRITE_BYTES;
const RAM_BYTES: u32 = READ_FROM + WRITES * WRITE_BYTES;

/// The result of a run.
pub(crate) struct Report {
    pub(crate) sectors: u64,
    pub(crate) mode: Mode,
    pub(crate) intact: bool,
    pub(crate) bios: u32,
    pub(crate) bus_use: BusUse,
    pub(crate) took: Duration,
}

impl Report {
    /// Returns the average time for which the bus is idle between two transfers.
    pub(crate) fn gap(&self) -> Duration {
        Duration::from_ns(self.bus_use.gaps.as_ns() / u64::from(self.bus_use.transactions))
    }
}

/// Runs everything on a fresh chip, whose card fails to read a certain block `bad_reads` times.
pub(crate) fn run(pipeline: Pipeline, bad_reads: u32) -> Report {
    let mut disk = Disk::new(Chip::new(RAM_BYTES as usize, Card::new(bad_reads)), pipeline);
    for at in 0..WRITES {
        let from = place_of_write(at).0 as usize;
        let words = disk.ram()[from..][..WRITE_BYTES as usize].chunks_mut(4);
        words.zip(at << 16..).for_each(|(word, n)| word.copy_from_slice(&n.to_le_bytes()));
    }

    let since = disk.now();
    disk.host.driver.controller.chip.bus_use = BusUse::default(); // identification does not count
    let writes = (0..WRITES).map(place_of_write);
    let writes = writes.map(|(from, sector)| Bio::write(sector, WRITE_SECTORS, u64::from(from)));
    let reads = (0..WRITES).step_by(2).map(|at| {
        let to = READ_FROM + at * WRITE_BYTES;
        Bio::read(place_of_write(at).1, 2 * WRITE_SECTORS, u64::from(to))
    });
    let writes: Vec<_> = writes.collect();
    let reads: Vec<_> = reads.collect();
    let ended = disk.transfer(&writes).and_then(|()| disk.transfer(&reads));
    ended.expect("request that succeeds after its retries");
    let took = disk.now().since(since);

    let ram = disk.ram();
    let intact = (0..WRITES).all(|at| {
        let from = place_of_write(at).0;
        let to = READ_FROM + at * WRITE_BYTES;
        ram[from as usize..][..WRITE_BYTES as usize] == ram[to as usize..][..WRITE_BYTES as usize]
    });
    Report {
        sectors: disk.card.sectors,
        mode: disk.card.mode,
        intact,
        bios: u32::try_from(writes.len() + reads.len()).expect("number of bios"),
        bus_use: disk.host.driver.controller.chip.bus_use,
        took,
    }
}

/// For each write: the place of its data in memory and on the disk. Neighbours on the disk come
/// from both ends of the memory, so their merged request has two descriptors.
fn place_of_write(at: u32) -> (u32, u64) {
    let source = if at.is_multiple_of(2) { at } else { WRITES - at };
    let sector = at / 2 * PAIR_STRIDE_SECTORS + at % 2 * WRITE_SECTORS;
    (RAM_FROM + source * WRITE_BYTES, u64::from(sector))
}
