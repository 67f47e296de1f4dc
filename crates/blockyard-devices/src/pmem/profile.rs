//! Persistent memory: the table `[pmem]`.

use blockyard::time::Duration;

use crate::profile::error::ProfileError;
use crate::profile::table::{Table, table_of};
use crate::profile::value::{Bytes, Count, OneOf, Rate, Time};

/// The largest size of a disk in bytes: one BTT arena less the bytes of its metadata.
pub const CAPACITY_MAX: u64 = 504 << 30;
/// The smallest size of a disk in bytes: that of the smallest arena.
pub const CAPACITY_MIN: u64 = 16 << 20;
const _: () = assert!(CAPACITY_MIN < CAPACITY_MAX);

/// Memory that keeps its bytes, and the cost of its use to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmemProfile {
    /// The mapping.
    pub mapping: Mapping,
    /// Channels that transfer side by side.
    pub channels: u16,
    /// Bytes that the memory reads or writes at once: fewer bytes take the time of all of them on its channels.
    pub unit: u64,
    /// Loading a line that is in no cache, and the first line of a copy from the memory.
    pub load: Duration,
    /// A load from the memory while its mapping is uncached: nothing of its line stays in a cache.
    pub uncached_load: Duration,
    /// The loads in which the processor copies the four bytes of a word one after another from an uncached mapping.
    pub loads_of_word: u16,
    /// The processor's own work for an I/O through a block translation table, apart from its accesses.
    pub table_work: Duration,
    /// Copying out of the memory.
    pub read: CopyProfile,
    /// Copying into the memory, past the caches.
    pub write: CopyProfile,
    /// Writing back a line, or storing it past the caches, while others are in flight.
    pub write_back: Duration,
    /// A fence that waits for nothing.
    pub fence: Duration,
    /// The additional time of a fence if stores are in flight.
    pub drain: Duration,
    /// An exchange of a word in the processor's own cache, or a store that waits for all earlier ones.
    pub atomic: Duration,
    /// Fetching a line that another processor changed, or taking it from the processors that share it.
    pub line_transfer: Duration,
    /// Scanning 256 adjacent words, all of them in the processor's own cache.
    pub look_through: Duration,
    /// Scanning 256 words, each in its own cache line.
    pub look_through_padded: Duration,
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
    /// Time that one processor takes for 4 KiB, for every [`Copying`].
    pub page: [Duration; 3],
}

/// The way in which a design copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// By the processor's instruction for any bytes.
    Bytewise,
    /// By loads and stores past the caches, regardless of lines.
    Nt,
    /// By loads and stores past the caches, of whole lines.
    AlignedNt,
}

/// The values of `copy`, in the order of [`CopyProfile::page`].
pub(crate) const COPY: &[(&str, Copying)] =
    &[("bytewise", Copying::Bytewise), ("nt", Copying::Nt), ("aligned-nt", Copying::AlignedNt)];
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
    let page = |key| table.need(key, Time);
    let rate = table.need("rate", Rate)?;
    Ok(CopyProfile { rate, page: [page("bytewise")?, page("nt")?, page("aligned-nt")?] })
}
