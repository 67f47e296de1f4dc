//! The workload of the program. Each acknowledged change is a line, by which the host checks QEMU's
//! image file afterwards:
//!
//! ```text
//! wrote SECTOR SECTORS GENERATION     each sector holds its pattern of this generation
//! discarded SECTOR SECTORS            each sector was erased
//! ```
//!
//! Zeroes are not asked for: QEMU's card says that erased sectors read as zeroes, and fills them
//! with ones.

use crate::disk::Disk;
use crate::machine::DmaMemory;
use crate::say;
use crate::sdhci::{DATA_FROM, SDMA_BOUNDARY};
use alloc::vec::Vec;
use blockyard::bio::{Bio, Op};
use blockyard::status::Status;
use blockyard::unit::SECTOR_BYTES;

/// The places of one run. Each has two neighbouring writes, of up to half the sectors of a place
/// together.
const PLACES: u32 = 16;
const PLACE_SECTORS: u32 = 256;
/// The largest transfer, which comes behind the places.
const LARGEST_SECTORS: u32 = 512;
/// The sectors of one run.
const RUN_SECTORS: u32 = PLACES * PLACE_SECTORS + LARGEST_SECTORS;
/// The sectors of a bio whose transfers fail.
const FAILING_SECTORS: u32 = 24;
/// The memory of one bio of a place.
const BUFFER_BYTES: u32 = PLACE_SECTORS / 4 * SECTOR_BYTES;
/// Where the memory of the largest transfer begins: behind a boundary of SDMA ([`SDMA_BOUNDARY`]).
const LARGEST_AT: u32 = 3 * SDMA_BOUNDARY + BUFFER_BYTES;
const _: () = assert!(DATA_FROM + 2 * PLACES * BUFFER_BYTES <= LARGEST_AT);
const _: () = assert!(LARGEST_AT + LARGEST_SECTORS * SECTOR_BYTES <= DmaMemory::BYTES);

/// Returns the address of the memory of the bio with number `at` of a run, which is the largest if
/// it is the last.
fn buffer(memory: &DmaMemory, at: u32) -> u32 {
    memory.start() + if at < 2 * PLACES { DATA_FROM + at * BUFFER_BYTES } else { LARGEST_AT }
}

/// Returns the content of `sector` in `generation`: words that tell sector, generation and place.
fn pattern(sector: u64, generation: u32) -> [u8; SECTOR_BYTES as usize] {
    let mut content = [0; SECTOR_BYTES as usize];
    for (at, word) in (0..).zip(content.as_chunks_mut().0) {
        *word = (sector << 32 | u64::from(generation) << 8 | at).to_le_bytes();
    }
    content
}

/// Numbers that look random, always the same.
struct Random(u32);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % end
    }

    /// Mixes the order of `items`.
    fn mix<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let end = u32::try_from(at + 1).expect("few items");
            items.swap(at, self.below(end) as usize);
        }
    }
}

/// Returns a range of the bio as it stands in a report.
fn range(bio: &Bio) -> impl core::fmt::Display {
    core::fmt::from_fn(move |f| write!(f, "{} {}", bio.sector, bio.sectors))
}

/// Writes places all over a part of the disk of this `generation` alone, and reads them back in
/// another order. Returns the number of bios.
///
/// # Panics
///
/// Panics if a bio fails, or if other data comes back.
pub(crate) fn write_and_read(disk: &mut Disk, generation: u32) -> u32 {
    let mut random = Random(generation);
    let base = generation * RUN_SECTORS;
    let mut writes = Vec::new();
    for place in 0..PLACES {
        let [first, second] = [(); 2].map(|()| 1 + random.below(PLACE_SECTORS / 4));
        let start = base + place * PLACE_SECTORS + random.below(PLACE_SECTORS / 2);
        let memory = &disk.sdhci().memory;
        writes.push(Bio::write(start.into(), first, buffer(memory, 2 * place).into()));
        let behind = u64::from(start + first);
        writes.push(Bio::write(behind, second, buffer(memory, 2 * place + 1).into()));
    }
    let memory = buffer(&disk.sdhci().memory, 2 * PLACES);
    let behind = u64::from(base + PLACES * PLACE_SECTORS);
    writes.push(Bio::write(behind, LARGEST_SECTORS, memory.into()));
    for bio in &writes {
        for at in 0..bio.sectors {
            let content = pattern(bio.sector + u64::from(at), generation);
            disk.sdhci().memory.write(address(bio) + at * SECTOR_BYTES, &content);
        }
    }
    // Neighbours stay together, so that a scheduler can merge them.
    random.mix(writes.as_chunks_mut::<2>().0);
    disk.perform(&writes, |bio, status| {
        assert_eq!(status, Status::Ok, "write of {}", range(bio));
        say!("wrote {} {generation}", range(bio));
    });
    disk.perform(&[Bio::new(Op::Flush, 0, 0, 0)], |_, status| {
        assert_eq!(status, Status::Ok, "flush");
    });

    // Reads land in the memory of other writes, which is cleared first.
    let mut reads = writes.clone();
    let largest = reads.len() - 1;
    random.mix(&mut reads[..largest]);
    for (at, bio) in (0..).zip(&mut reads) {
        let memory = &mut disk.sdhci().memory;
        *bio = Bio::read(bio.sector, bio.sectors, buffer(memory, at).into());
        for sector in 0..bio.sectors {
            memory.write(address(bio) + sector * SECTOR_BYTES, &[0; SECTOR_BYTES as usize]);
        }
    }
    disk.perform(&reads, |bio, status| assert_eq!(status, Status::Ok, "read of {}", range(bio)));
    for bio in &reads {
        expect(disk, bio, |sector| pattern(sector, generation));
    }
    u32::try_from(writes.len() + reads.len()).expect("few bios")
}

/// Discards two places that a run of this `generation` wrote.
///
/// # Panics
///
/// Panics if a bio fails.
pub(crate) fn discard(disk: &mut Disk, generation: u32) {
    let discards = [0, 3].map(|at| {
        let place = generation * RUN_SECTORS + at * PLACE_SECTORS;
        Bio::new(Op::Discard, place.into(), PLACE_SECTORS, 0)
    });
    disk.perform(&discards, |bio, status| {
        assert_eq!(status, Status::Ok, "discard of {}", range(bio));
        say!("discarded {}", range(bio));
    });
}

/// Lets transfers fail, and checks that the driver tries them again until they succeed, or reports
/// that they do not; the disk works afterwards. Returns the number of failures that the driver has
/// seen.
///
/// # Panics
///
/// Panics if a bio ends otherwise, or if other data comes back.
pub(crate) fn fail_transfers(disk: &mut Disk, generation: u32) -> u64 {
    let sector = u64::from(generation * RUN_SECTORS);
    let memory = buffer(&disk.sdhci().memory, 0);
    let write = Bio::write(sector, FAILING_SECTORS, memory.into());
    let read = Bio::read(sector, FAILING_SECTORS, memory.into());
    fill(disk, &write, |sector| pattern(sector, generation));
    perform_failing(disk, write, 2, Status::Ok);
    say!("wrote {} {generation}", range(&write));
    fill(disk, &read, |_| [0; SECTOR_BYTES as usize]);
    // Three times: then it is read sector by sector.
    perform_failing(disk, read, 3, Status::Ok);
    expect(disk, &read, |sector| pattern(sector, generation));
    for bio in [write, read] {
        perform_failing(disk, bio, u32::MAX, Status::IoError);
    }
    fill(disk, &read, |_| [0; SECTOR_BYTES as usize]);
    perform_failing(disk, read, 0, Status::Ok);
    expect(disk, &read, |sector| pattern(sector, generation));
    disk.counts().failures
}

/// Performs a bio whose first transfers fail, and checks its status.
fn perform_failing(disk: &mut Disk, bio: Bio, transfers_to_fail: u32, status: Status) {
    disk.sdhci().transfers_to_fail = transfers_to_fail;
    disk.perform(&[bio], |bio, found| assert_eq!(found, status, "{:?}", bio.op));
    disk.sdhci().transfers_to_fail = 0;
}

/// Fills the memory of a bio with the `content` of each of its sectors.
fn fill(disk: &mut Disk, bio: &Bio, content: impl Fn(u64) -> [u8; SECTOR_BYTES as usize]) {
    for at in 0..bio.sectors {
        let content = content(bio.sector + u64::from(at));
        disk.sdhci().memory.write(address(bio) + at * SECTOR_BYTES, &content);
    }
}

/// Reads one sector again and again until the card is gone. Then another bio ends at once.
///
/// # Panics
///
/// Panics if a bio ends with another status.
pub(crate) fn read_until_gone(disk: &mut Disk) {
    let read = Bio::read(0, 1, buffer(&disk.sdhci().memory, 0).into());
    let mut last = Status::Ok;
    while last == Status::Ok {
        disk.perform(&[read; 8], |_, status| last = status);
    }
    assert_eq!(last, Status::Gone, "read of a card that was removed");
    disk.perform(&[read], |_, status| assert_eq!(status, Status::Gone, "read without a card"));
}

/// Returns the address of the bio's memory.
fn address(bio: &Bio) -> u32 {
    u32::try_from(bio.cookie).expect("address in a cookie")
}

/// Checks that the memory of `bio` holds `content`.
fn expect(disk: &mut Disk, bio: &Bio, content: impl Fn(u64) -> [u8; SECTOR_BYTES as usize]) {
    for at in 0..bio.sectors {
        let sector = bio.sector + u64::from(at);
        let mut found = [0; SECTOR_BYTES as usize];
        disk.sdhci().memory.read(address(bio) + at * SECTOR_BYTES, &mut found);
        assert!(found == content(sector), "sector {sector} holds {:x?}", &found[..16]);
    }
}
