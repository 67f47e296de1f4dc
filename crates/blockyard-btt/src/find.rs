//! Finds the arenas of a BTT. Nothing is written.
//!
//! An info block with a wrong signature or checksum is replaced by its copy, in the last 4096 bytes
//! of the arena as the size of the container defines it. An info block that is whole but has an
//! unknown version or impossible fields is refused, and its copy is not tried: the copy says the
//! same, or belongs to an older BTT or an unfinished one.
//!
//! All arenas of a chain have one UUID, one parent and one sector size.

use super::arena::read_info;
use super::container::Container;
use super::info_block::{InfoBlock, InfoError, Uuid, Version};
use super::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, INFO_BYTES};
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// An arena that was found on a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its first byte in the memory.
    pub start: u64,
    /// The external LBA of its first sector.
    pub first_lba: u64,
    /// The info block of the arena.
    pub info: InfoBlock,
    /// What was wrong with the first info block, if the copy was used instead.
    pub from_copy: Option<InfoError>,
}

/// Why no BTT was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindError {
    /// The medium failed.
    Media(MediaError),
    /// The container has no room for a BTT.
    TooSmall,
    /// An arena has neither a usable info block nor a usable copy.
    NoInfo {
        /// Where the arena should start.
        start: u64,
        /// What is wrong with its first info block.
        first: InfoError,
        /// What is wrong with the copy.
        copy: InfoError,
    },
    /// The first info block of an arena is whole but unusable.
    Info {
        /// First byte of the info block.
        start: u64,
        /// The reason.
        error: InfoError,
    },
    /// The BTT has another version than readers of this container look for.
    Version {
        /// The version of the BTT.
        found: Version,
        /// The version that belongs to the container.
        wanted: Version,
    },
    /// The BTT belongs to another namespace or pool.
    Parent {
        /// The parent UUID of the BTT.
        found: Uuid,
        /// The UUID of the container.
        wanted: Uuid,
    },
    /// An arena belongs to another BTT than the first one: its UUID, parent or sector size differs.
    Foreign {
        /// First byte of the arena.
        start: u64,
    },
}

impl core::fmt::Display for FindError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Media(error) => error.fmt(f),
            Self::TooSmall => f.write_str("too small for a BTT, which needs at least 16 MiB"),
            Self::NoInfo { start, first, copy } => {
                write!(f, "no BTT: {first} at byte {start}, and {copy} where its copy should be")
            }
            Self::Info { start, error } => {
                write!(f, "no usable BTT: {error} at byte {start}")
            }
            Self::Version { found, wanted } => {
                write!(f, "a BTT of version {found}, but this container needs version {wanted}")
            }
            Self::Parent { found, wanted } => {
                write!(f, "a BTT of the namespace or pool {found}, but this one is {wanted}")
            }
            Self::Foreign { start } => {
                write!(f, "the arena at byte {start} belongs to another BTT than the first")
            }
        }
    }
}

impl core::error::Error for FindError {}

impl From<MediaError> for FindError {
    fn from(error: MediaError) -> Self {
        Self::Media(error)
    }
}

/// Returns the arenas of the BTT in `container`, in order. `own` is the container's UUID, if known.
///
/// # Errors
///
/// The container has no BTT, or only part of one, or the BTT belongs to another container.
pub fn find<M: Memory>(
    memory: &M,
    container: Container,
    own: Option<Uuid>,
) -> Result<Vec<Found>, FindError> {
    let mut arenas: Vec<Found> = Vec::new();
    let mut next = Some(container.first_arena());
    let mut first_lba = 0;
    while let Some(start) = next {
        let found = find_arena(memory, start, first_lba)?;
        let info = found.info;
        if info.version != container.version() {
            return Err(FindError::Version { found: info.version, wanted: container.version() });
        }
        if let Some(wanted) = own
            && !container.accepts_parent(info.parent_uuid, wanted)
        {
            return Err(FindError::Parent { found: info.parent_uuid, wanted });
        }
        if let Some(before) = arenas.first()
            && !same_btt(&before.info, &info)
        {
            return Err(FindError::Foreign { start });
        }
        // An info block only names a next arena that starts behind its own
        // ([info-fields-consistent]).
        debug_assert!(info.nextoff == 0 || info.nextoff > info.layout.infooff);
        next = (info.nextoff != 0).then(|| start + info.nextoff);
        first_lba += u64::from(info.layout.external_nlba);
        arenas.push(found);
    }
    Ok(arenas)
}

/// Whether two arenas belong to one BTT: they have the same UUID, parent and sector size.
pub(super) fn same_btt(a: &InfoBlock, b: &InfoBlock) -> bool {
    a.uuid == b.uuid && a.parent_uuid == b.parent_uuid && sector_sizes(a) == sector_sizes(b)
}

fn sector_sizes(info: &InfoBlock) -> (u32, u32) {
    (info.layout.external_lbasize, info.layout.internal_lbasize)
}

/// Reads the arena at `start`, from its copy if need be.
fn find_arena<M: Memory>(memory: &M, start: u64, first_lba: u64) -> Result<Found, FindError> {
    let room = memory.len().saturating_sub(start);
    if room < ARENA_BYTES_MIN {
        return Err(FindError::TooSmall);
    }
    let first = match bad_as_missing(read_info(memory, start, room))? {
        Ok(info) => return Ok(Found { start, first_lba, info, from_copy: None }),
        Err(error @ (InfoError::Version { .. } | InfoError::Field(_))) => {
            return Err(FindError::Info { start, error });
        }
        Err(error @ (InfoError::Signature | InfoError::Checksum)) => error,
    };
    let infooff = copy_offset_by_size(room);
    match bad_as_missing(read_info(memory, start + infooff, room))? {
        Ok(info) if info.layout.infooff == infooff => {
            Ok(Found { start, first_lba, info, from_copy: Some(first) })
        }
        Ok(_) => Err(FindError::NoInfo { start, first, copy: InfoError::Field("infooff") }),
        Err(copy) => Err(FindError::NoInfo { start, first, copy }),
    }
}

/// Returns the offset of the copy of the info block in an arena that uses as much of `room` as it
/// can. `room` must be at least an info block.
pub(super) fn copy_offset_by_size(room: u64) -> u64 {
    debug_assert!(room >= INFO_BYTES, "room for an info block");
    room.min(ARENA_BYTES_MAX) / INFO_BYTES * INFO_BYTES - INFO_BYTES
}

/// Treats an info block that the medium lost as one without a signature.
fn bad_as_missing(
    read: Result<Result<InfoBlock, InfoError>, MediaError>,
) -> Result<Result<InfoBlock, InfoError>, MediaError> {
    match read {
        Err(MediaError::Bad) => Ok(Err(InfoError::Signature)),
        other => other,
    }
}
