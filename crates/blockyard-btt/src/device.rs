//! An open BTT: the state that its threads share.

use super::address::PremapAba;
use super::arena::Arena;
use super::container::Container;
use super::error::{IoError, OpenError};
use super::find::{Found, find};
use super::flog::SlotLayout;
use super::format::Format;
use super::info_block::Uuid;
use super::lanes::Lanes;
use super::layout::INFO_BYTES;
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory, read_array};
use super::policy::{Policy, ReadTracking};
use super::readers::Readers;
use super::recover::{self, Recovered, RecoveredLane};
use super::sync::{AtomicBool, Ordering};
use super::versions::Versions;
use super::zeroings::Zeroings;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Options for opening a BTT.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// The container of the BTT.
    pub container: Container,
    /// The UUID of the container, if known.
    pub own_uuid: Option<Uuid>,
    /// Nothing is written. Writes that were cut are not finished on the medium, but read as
    /// finished.
    pub read_only: bool,
    /// The design.
    pub policy: Policy,
}

impl OpenOptions {
    /// Opens for reading and writing with the default design, whatever the parent UUID.
    #[must_use]
    pub const fn new(container: Container) -> Self {
        Self { container, own_uuid: None, read_only: false, policy: Policy::DEFAULT }
    }
}

/// The health of an open BTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// The number of arenas.
    pub arenas: usize,
    /// The number of arenas that refuse writes: all of them if the BTT was opened read-only,
    /// otherwise those that are marked as broken.
    pub read_only_arenas: usize,
    /// The number of blocks that hold no sector: as many as writes may be under way at once.
    pub free_blocks: u64,
    /// A write failed after it could no longer be undone, so all writes are refused
    /// ([`IoError::Broken`]).
    pub is_broken: bool,
    /// The number of cut writes that read as finished but are not, because the BTT was opened
    /// read-only.
    pub unfinished: usize,
}

/// An open BTT. Threads share it, and each makes a [`Worker`](super::worker::Worker) of it.
#[derive(Debug)]
pub struct Btt<M> {
    pub(super) memory: M,
    pub(super) arenas: Box<[OpenArena]>,
    pub(super) sectors: u64,
    pub(super) sector_bytes: u32,
    pub(super) uuid: Uuid,
    pub(super) policy: Policy,
    pub(super) lanes: Lanes,
    pub(super) versions: Versions,
    pub(super) readers: Readers,
    pub(super) zeroings: Zeroings,
    /// A write failed after it could no longer be undone.
    pub(super) broken: AtomicBool,
    /// The map entries of cut writes that may not be finished, as if they had been finished.
    unfinished: Vec<(Spot, MapEntry)>,
}

/// An arena, and whether it may be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenArena {
    pub(super) arena: Arena,
    pub(super) read_only: bool,
}

/// The position of a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    /// The number of its arena.
    pub(super) arena: usize,
    /// The sector within the arena.
    pub(super) lba: PremapAba,
}

/// The position of a sector that is read, with a reference to its arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) arena: &'a Arena,
    pub(super) lba: PremapAba,
}

impl<M: Memory> Btt<M> {
    /// Writes an empty BTT into `memory` and opens it.
    ///
    /// # Errors
    ///
    /// The memory cannot hold such a BTT, or the medium failed.
    pub fn create(memory: M, format: &Format, policy: Policy) -> Result<Self, OpenError> {
        format.write(&memory)?;
        Self::open(memory, &OpenOptions { policy, ..OpenOptions::new(format.container) })
    }

    /// Opens the BTT in `memory`, and finishes writes that were cut. A refused BTT is unchanged
    /// ([refused-arena-untouched]).
    ///
    /// # Errors
    ///
    /// The memory has no BTT, or a damaged one; [`check`](super::check) gives details.
    pub fn open(memory: M, options: &OpenOptions) -> Result<Self, OpenError> {
        let found = find(&memory, options.container, options.own_uuid)?;
        let dialect = options.container.dialect();
        let mut scanned = Vec::new();
        for Found { start, first_lba, info, .. } in &found {
            let start = *start;
            let first_lba = *first_lba;
            let layout = info.layout;
            let slots = SlotLayout::Standard;
            let arena = Arena { start, first_lba, layout, slots, dialect };
            let recovered = recover::scan(&memory, &arena)
                .map_err(|error| OpenError::Arena { start, error })?;
            let read_only = options.read_only || info.error;
            let arena = Arena { slots: recovered.slots, ..arena };
            scanned.push((OpenArena { arena, read_only }, recovered));
        }
        let unfinished = finish(&memory, &scanned)?;
        let logs: Vec<Vec<RecoveredLane>> = scanned.iter().map(|(_, r)| r.lanes.clone()).collect();
        let lanes = Lanes::new(&logs, options.policy.lanes);
        let padded = options.policy.tracking != ReadTracking::Scan;
        let first = &found[0].info;
        Ok(Self {
            sectors: found.iter().map(|f| u64::from(f.info.layout.external_nlba)).sum(),
            sector_bytes: first.layout.external_lbasize,
            uuid: first.uuid,
            arenas: scanned.into_iter().map(|(arena, _)| arena).collect(),
            readers: Readers::new(lanes.sets(), padded),
            policy: options.policy,
            versions: Versions::new(),
            zeroings: Zeroings::default(),
            broken: AtomicBool::new(false),
            lanes,
            memory,
            unfinished,
        })
    }

    /// The number of sectors.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes of a sector.
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Returns the health of the BTT, from memory: no sector is read.
    pub fn health(&self) -> Health {
        Health {
            arenas: self.arenas.len(),
            read_only_arenas: self.arenas.iter().filter(|open| open.read_only).count(),
            free_blocks: self.arenas.iter().map(|open| u64::from(open.arena.layout.nfree)).sum(),
            is_broken: self.broken.load(Ordering::Relaxed),
            unfinished: self.unfinished.len(),
        }
    }

    /// The UUID of the BTT.
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The memory that holds the BTT.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Makes the writes of all threads durable, as far as the memory can. Writes are already
    /// durable if the fences of the memory make them so.
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    pub fn flush(&self) -> Result<(), IoError> {
        Ok(self.memory.flush()?)
    }

    /// Returns the last bytes of the last arena: the checksum in the copy of its info block.
    /// Nothing changes them while the BTT is open. If they have changed, somebody has cut off the
    /// end of the memory, and perhaps more before it.
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    pub fn end(&self) -> Result<[u8; 8], MediaError> {
        let OpenArena { arena, .. } = self.arenas.last().expect("a BTT has at least one arena");
        let end = arena.start + arena.layout.infooff + INFO_BYTES;
        read_array(&self.memory, end - 8)
    }

    /// Returns the position of sector `lba`.
    #[inline]
    pub(super) fn spot(&self, lba: u64) -> Spot {
        debug_assert!(lba < self.sectors, "sector of this device");
        let arena = match self.arenas.len() {
            1 => 0,
            _ => self.arenas.partition_point(|a| a.arena.first_lba <= lba) - 1,
        };
        Spot { arena, lba: PremapAba((lba - self.arenas[arena].arena.first_lba) as u32) }
    }

    /// Checks that `count` sectors from `lba` on exist.
    #[inline]
    pub(super) fn in_range(&self, lba: u64, count: u64) -> Result<(), IoError> {
        match lba.checked_add(count) {
            Some(end) if end <= self.sectors => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }

    #[inline]
    pub(super) fn arena(&self, spot: Spot) -> &Arena {
        &self.arenas[spot.arena].arena
    }

    /// Returns the position of sector `lba`, for reading.
    #[inline]
    pub(super) fn place(&self, lba: u64) -> Place<'_> {
        debug_assert!(lba < self.sectors, "sector of this device");
        let arena = match &*self.arenas {
            [only] => &only.arena,
            _ => self.arena(self.spot(lba)),
        };
        Place { arena, lba: PremapAba((lba - arena.first_lba) as u32) }
    }

    /// Loads the map entry of a sector that is about to be written.
    #[inline]
    pub(super) fn entry(&self, spot: Spot) -> Result<MapEntry, IoError> {
        self.entry_in(self.arena(spot), spot.lba)
    }

    #[inline]
    fn entry_in(&self, arena: &Arena, lba: PremapAba) -> Result<MapEntry, IoError> {
        let entry = arena.load_map_entry(&self.memory, lba)?;
        if arena.has_block(entry.block(lba)) { Ok(entry) } else { Err(IoError::Map) }
    }

    /// Loads the map entry by which sector `lba`, at `place`, is read.
    #[inline]
    pub(super) fn entry_to_read(&self, lba: u64, place: Place<'_>) -> Result<MapEntry, IoError> {
        let entry = self.entry_in(place.arena, place.lba)?;
        Ok(if self.unfinished.is_empty() { entry } else { self.finished(lba, entry) })
    }

    /// Returns the entry of sector `lba` as if cut writes had been finished; `entry` is the stored
    /// one.
    #[cold]
    fn finished(&self, lba: u64, entry: MapEntry) -> MapEntry {
        let spot = self.spot(lba);
        let finished = self.unfinished.iter().find(|(cut, _)| *cut == spot);
        finished.map_or(entry, |&(_, entry)| entry)
    }

    /// The sectors of cut writes that may not be finished.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u64> {
        self.unfinished
            .iter()
            .map(move |(spot, _)| self.arena(*spot).first_lba + u64::from(spot.lba.0))
    }

    /// Whether readers publish the blocks they read.
    pub(super) fn readers_publish(&self) -> bool {
        self.policy.tracking != ReadTracking::Versions
    }

    /// Checks that a sector may be written.
    #[inline]
    pub(super) fn writable(&self, spot: Spot) -> Result<(), IoError> {
        if self.arenas[spot.arena].read_only {
            return Err(IoError::ReadOnly);
        }
        if self.broken.load(Ordering::Relaxed) {
            return Err(IoError::Broken);
        }
        Ok(())
    }
}

/// Finishes cut writes in writable arenas. Returns the map entries that they would give in the
/// other arenas.
fn finish<M: Memory>(
    memory: &M,
    scanned: &[(OpenArena, Recovered)],
) -> Result<Vec<(Spot, MapEntry)>, OpenError> {
    let mut unfinished = Vec::new();
    for (n, (open, recovered)) in scanned.iter().enumerate() {
        if open.read_only {
            let as_finished = recovered
                .cut_writes
                .iter()
                .map(|cut| (Spot { arena: n, lba: cut.lba }, MapEntry::normal(cut.block)));
            unfinished.extend(as_finished);
        } else {
            recover::finish(memory, &open.arena, &recovered.cut_writes).map_err(
                |error: MediaError| OpenError::Arena {
                    start: open.arena.start,
                    error: error.into(),
                },
            )?;
        }
    }
    Ok(unfinished)
}
