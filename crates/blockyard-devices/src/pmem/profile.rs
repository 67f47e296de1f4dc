//! Persistent memory: the table `[pmem]`.

use blockyard::limits::Limits;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, OneOf, Rate, Time};

/// The largest size of a disk in bytes: one BTT arena less the bytes of its metadata.
pub const CAPACITY_MAX: u64 = 504 << 30;
/// The smallest size of a disk in bytes: that of the smallest arena.
pub const CAPACITY_MIN: u64 = 16 << 20;
/// The number of driver tags. A request ends in the call that issues it.
pub(super) const TAGS: u16 = 64;
const _: () = assert!(CAPACITY_MIN < CAPACITY_MAX);

/// Memory that keeps its bytes, and the cost of its use to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmemProfile {
    /// The mapping.
    pub(crate) mapping: Mapping,
    /// Channels that transfer side by side.
    pub channels: u16,
    /// Bytes that the memory reads or writes at once: fewer bytes take the time of all of them on
    /// its channels.
    pub unit: u64,
    /// Loading a line that is in no cache, and the first line of a copy from the memory.
    pub load: Duration,
    /// A load from the memory while its mapping is uncached: nothing of its line stays in a cache.
    pub(crate) uncached_load: Duration,
    /// The loads in which the processor copies the four bytes of a word one after another from an
    /// uncached mapping.
    pub(crate) loads_of_word: u16,
    /// The processor's own work for an I/O through a block translation table, apart from its
    /// accesses.
    pub(crate) table_work: Duration,
    /// Copying out of the memory.
    pub read: CopyProfile,
    /// Copying into the memory, past the caches.
    pub write: CopyProfile,
    /// Writing back a line, or storing it past the caches, while others are in flight.
    pub(crate) write_back: Duration,
    /// A fence that waits for nothing.
    pub(crate) fence: Duration,
    /// The additional time of a fence if stores are in flight.
    pub drain: Duration,
    /// An exchange of a word in the processor's own cache, or a store that waits for all earlier
    /// ones.
    pub atomic: Duration,
    /// Fetching a line that another processor changed, or taking it from the processors that share
    /// it.
    pub line_transfer: Duration,
    /// Scanning 256 adjacent words, all of them in the processor's own cache.
    pub(crate) look_through: Duration,
    /// Scanning 256 words, each in its own cache line.
    pub(crate) look_through_padded: Duration,
}

/// The mapping of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Through their caches.
    WriteBack,
    /// Uncached; stores to a line are combined. Every load goes to the memory.
    WriteCombining,
}

/// Copying between this memory and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProfile {
    /// Bytes per second that pass one channel.
    pub rate: u64,
    /// Time that one processor takes for 4 KiB, for every [`Copying`](crate::profile::Copying).
    pub page: [Duration; 3],
}

const MAPPING: &[(&str, Mapping)] =
    &[("write-back", Mapping::WriteBack), ("write-combining", Mapping::WriteCombining)];

table_of!(PMEM, /// Reads the table `[pmem]` of `parent`.
pub(crate) fn pmem("pmem") -> PmemProfile {
    mapping: "mapping" need(OneOf(MAPPING)),
    channels: "channels" need(Count(1..=64)),
    unit: "unit" take_or(Bytes(64..=4096), 64),
    load: "load" need(Time),
    uncached_load: "uncached-load" need(Time),
    loads_of_word: "loads-of-word" take_or(Count(1..=4), 4),
    table_work: "table-work" take_or(Time, Duration::ZERO),
    read: "read" by(|pmem| copies(&pmem.table("pmem.read", COPIES)?)),
    write: "write" by(|pmem| copies(&pmem.table("pmem.write", COPIES)?)),
    write_back: "write-back" need(Time),
    fence: "fence" need(Time),
    drain: "drain" need(Time),
    atomic: "atomic" need(Time),
    line_transfer: "line-transfer" need(Time),
    look_through: "look-through" need(Time),
    look_through_padded: "look-through-padded" need(Time),
});

const COPIES: &[&str] = &["rate", "bytewise", "nt", "aligned-nt"];

fn copies(table: &Table<'_>) -> Result<CopyProfile, ProfileError> {
    let rate = table.need("rate", Rate)?;
    let page =
        [table.need("bytewise", Time)?, table.need("nt", Time)?, table.need("aligned-nt", Time)?];
    Ok(CopyProfile { rate, page })
}

/// Checks the limits of persistent memory.
pub(super) fn agrees(limits: &Limits) -> Result<(), &'static str> {
    let bytes = limits.capacity_sectors * u64::from(SECTOR_BYTES);
    if !(CAPACITY_MIN..=CAPACITY_MAX).contains(&bytes) {
        return Err("a disk in `[pmem]` has 16MiB to 504GiB, so that it fits one arena of a BTT");
    }
    if limits.write_cache {
        return Err("`[pmem]` has no volatile cache: a write is durable when it ends");
    }
    Ok(())
}
