//! An open BTT: what its threads share.

use super::address::PremapAba;
use super::arena::Arena;
use super::container::Container;
use super::error::{IoError, OpenError};
use super::find::{Found, find};
use super::flog::SlotLayout;
use super::format::Format;
use super::info_block::Uuid;
use super::lanes::Lanes;
use super::map_entry::MapEntry;
use super::memory::{MediaError, Memory};
use super::policy::{Policy, ReadTracking};
use super::readers::Readers;
use super::recover::{self, Recovered, RecoveredLane};
use super::sync::{AtomicBool, Ordering};
use super::versions::Versions;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How a BTT is opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// What it lies in.
    pub container: Container,
    /// The container's UUID, where it is known.
    pub own_uuid: Option<Uuid>,
    /// Nothing is written, not even to finish writes that were cut; they read as finished.
    pub read_only: bool,
    /// Its design.
    pub policy: Policy,
}

impl OpenOptions {
    /// For reading and writing, by the default design, whoever it belongs to.
    #[must_use]
    pub const fn new(container: Container) -> Self {
        Self { container, own_uuid: None, read_only: false, policy: Policy::DEFAULT }
    }
}

/// An open BTT, shared by threads: each makes a [`Worker`] of it.
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
    /// A write failed when it could no longer be undone.
    pub(super) broken: AtomicBool,
    /// Map entries as they would be if writes that were cut had been finished, where that may not be done.
    unfinished: Vec<(Spot, MapEntry)>,
}

/// An arena, and whether it may be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenArena {
    pub(super) arena: Arena,
    pub(super) read_only: bool,
}

/// Where a sector is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    /// Its arena, by number.
    pub(super) arena: usize,
    /// Its place in there.
    pub(super) lba: PremapAba,
}

/// Where a sector is that is read: what a [`Spot`] says, at hand.
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
    /// There can be none of this kind, or the medium failed.
    pub fn create(memory: M, format: &Format, policy: Policy) -> Result<Self, OpenError> {
        format.write(&memory)?;
        Self::open(memory, &OpenOptions { policy, ..OpenOptions::new(format.container) })
    }

    /// Opens the BTT in `memory`, and finishes writes that were cut. If it is refused, nothing was written.
    ///
    /// # Errors
    ///
    /// There is none, or it is damaged: `check` says more.
    pub fn open(memory: M, options: &OpenOptions) -> Result<Self, OpenError> {
        let found = find(&memory, options.container, options.own_uuid)?;
        let dialect = options.container.dialect();
        let mut looked = Vec::new();
        for Found { start, first_lba, info, .. } in &found {
            let (start, first_lba, layout) = (*start, *first_lba, info.layout);
            let slots = SlotLayout::Standard;
            let arena = Arena { start, first_lba, layout, slots, dialect };
            let recovered = recover::scan(&memory, &arena)
                .map_err(|error| OpenError::Arena { start, error })?;
            let read_only = options.read_only || info.error;
            let arena = Arena { slots: recovered.slots, ..arena };
            looked.push((OpenArena { arena, read_only }, recovered));
        }
        let unfinished = finish(&memory, &looked)?;
        let logs: Vec<Vec<RecoveredLane>> = looked.iter().map(|(_, r)| r.lanes.clone()).collect();
        let lanes = Lanes::new(&logs, options.policy.lanes);
        let padded = options.policy.tracking != ReadTracking::Scan;
        let first = &found[0].info;
        Ok(Self {
            sectors: found.iter().map(|f| u64::from(f.info.layout.external_nlba)).sum(),
            sector_bytes: first.layout.external_lbasize,
            uuid: first.uuid,
            arenas: looked.into_iter().map(|(arena, _)| arena).collect(),
            readers: Readers::new(lanes.sets(), padded),
            policy: options.policy,
            versions: Versions::new(),
            broken: AtomicBool::new(false),
            lanes,
            memory,
            unfinished,
        })
    }

    /// Sectors.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes of a sector.
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Its UUID.
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// What it lies in.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Makes durable what all threads have written, as far as the memory can. Sectors are already where its
    /// fences make things durable.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    pub fn flush(&self) -> Result<(), IoError> {
        Ok(self.memory.flush()?)
    }

    /// Where sector `lba` is.
    #[inline]
    pub(super) fn spot(&self, lba: u64) -> Spot {
        let after = |a: &OpenArena| a.arena.first_lba <= lba;
        let arena = match self.arenas.len() {
            1 => 0,
            _ => self.arenas.partition_point(after) - 1,
        };
        Spot { arena, lba: PremapAba((lba - self.arenas[arena].arena.first_lba) as u32) }
    }

    /// Whether `count` sectors from `lba` on exist.
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

    /// Where sector `lba` is.
    #[inline]
    pub(super) fn place(&self, lba: u64) -> Place<'_> {
        let arena = match &*self.arenas {
            [only] => &only.arena,
            _ => self.arena(self.spot(lba)),
        };
        Place { arena, lba: PremapAba((lba - arena.first_lba) as u32) }
    }

    /// The map entry of a sector that is to be written.
    #[inline]
    pub(super) fn entry(&self, spot: Spot) -> Result<MapEntry, IoError> {
        self.entry_in(self.arena(spot), spot.lba)
    }

    #[inline]
    fn entry_in(&self, arena: &Arena, lba: PremapAba) -> Result<MapEntry, IoError> {
        let entry = arena.load_map_entry(&self.memory, lba)?;
        if arena.has_block(entry.block(lba)) { Ok(entry) } else { Err(IoError::Map) }
    }

    /// The map entry that sector `lba`, which is at `place`, is read by.
    #[inline]
    pub(super) fn entry_to_read(&self, lba: u64, place: Place<'_>) -> Result<MapEntry, IoError> {
        let entry = self.entry_in(place.arena, place.lba)?;
        Ok(if self.unfinished.is_empty() { entry } else { self.finished(lba, entry) })
    }

    /// What `entry`, that of sector `lba`, would be if writes that were cut had been finished.
    #[cold]
    fn finished(&self, lba: u64, entry: MapEntry) -> MapEntry {
        let spot = self.spot(lba);
        let finished = self.unfinished.iter().find(|(cut, _)| *cut == spot);
        finished.map_or(entry, |&(_, entry)| entry)
    }

    /// Whether readers publish what they read.
    pub(super) fn readers_publish(&self) -> bool {
        self.policy.tracking != ReadTracking::Versions
    }

    /// Whether a sector may be written.
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

/// Finishes writes that were cut where that is allowed; the map entries they give where it is not.
fn finish<M: Memory>(
    memory: &M,
    looked: &[(OpenArena, Recovered)],
) -> Result<Vec<(Spot, MapEntry)>, OpenError> {
    let mut unfinished = Vec::new();
    for (n, (open, recovered)) in looked.iter().enumerate() {
        let failed =
            |error: MediaError| OpenError::Arena { start: open.arena.start, error: error.into() };
        if open.read_only {
            let as_finished = recovered
                .cut_writes
                .iter()
                .map(|cut| (Spot { arena: n, lba: cut.lba }, MapEntry::normal(cut.block)));
            unfinished.extend(as_finished);
        } else {
            recover::finish(memory, &open.arena, &recovered.cut_writes).map_err(failed)?;
        }
    }
    Ok(unfinished)
}
