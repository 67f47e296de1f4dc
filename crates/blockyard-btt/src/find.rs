//! Finding the arenas of a BTT.
//!
//! # Rules
//!
//! - **F1.** An info block that is damaged, by its signature or its checksum, is replaced by its copy, which
//!   lies in the last 4096 bytes of the arena, where the container's size puts it. One that is whole counts,
//!   whatever it says: of another version, or of what cannot be, it is refused, as its copy says the same, or
//!   is of a BTT that was there before or was never finished.
//! - **F2.** All arenas are of one BTT: one UUID, one parent, one sector size.
//! - **F3.** Each arena begins behind the one before it, so that the chain ends.
//! - **F4.** Nothing is written.

use super::arena::read_info;
use super::container::Container;
use super::info_block::{InfoBlock, InfoError, Uuid, Version};
use super::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, INFO_BYTES};
use super::memory::{MediaError, Memory};
use alloc::vec::Vec;

/// An arena that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its first byte in the memory.
    pub start: u64,
    /// The external LBA of its first sector.
    pub first_lba: u64,
    /// What it says of itself.
    pub info: InfoBlock,
    /// Why its first info block could not be used, if its copy had to be (F1).
    pub from_copy: Option<InfoError>,
}

/// Why there is no BTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindError {
    /// The medium failed.
    Media(MediaError),
    /// There is no room for one.
    TooSmall,
    /// An arena has neither info block.
    NoInfo {
        /// Where it should begin.
        start: u64,
        /// What is wrong with its first info block.
        first: InfoError,
        /// What is wrong with the copy.
        copy: InfoError,
    },
    /// The first info block of an arena is whole, and cannot be followed (F1).
    Info {
        /// Where it is.
        start: u64,
        /// Why.
        error: InfoError,
    },
    /// It is of another version than those who look there want.
    Version {
        /// Its own.
        found: Version,
        /// The container's.
        wanted: Version,
    },
    /// It belongs to another namespace or pool.
    Parent {
        /// The UUID that it names.
        found: Uuid,
        /// The container's.
        wanted: Uuid,
    },
    /// An arena belongs to another BTT than the first (F2).
    Foreign {
        /// Where it begins.
        start: u64,
    },
}

impl core::fmt::Display for FindError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Media(error) => error.fmt(f),
            Self::TooSmall => f.write_str("too small for a BTT, which has at least 16 MiB"),
            Self::NoInfo { start, first, copy } => {
                write!(f, "no BTT: {first} at byte {start}, and {copy} where its copy should be")
            }
            Self::Info { start, error } => {
                write!(f, "no BTT that can be used: {error} at byte {start}")
            }
            Self::Version { found, wanted } => {
                write!(f, "a BTT of version {found}, where {wanted} is looked for")
            }
            Self::Parent { found, wanted } => {
                write!(f, "a BTT of the namespace or pool {found}, not of {wanted}")
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

/// The arenas of the BTT in a container; `own` is the container's UUID where it is known.
///
/// # Errors
///
/// There is none, or not all of it, or it is not this container's.
pub fn find<M: Memory>(
    memory: &M,
    container: Container,
    own: Option<Uuid>,
) -> Result<Vec<Found>, FindError> {
    let mut arenas: Vec<Found> = Vec::new();
    let mut next = Some(container.first_arena());
    let mut first_lba = 0;
    while let Some(start) = next {
        let found = one(memory, start, first_lba)?;
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
        // F3 is a rule of info blocks: a next arena begins behind this one.
        next = (info.nextoff != 0).then(|| start + info.nextoff);
        first_lba += u64::from(info.layout.external_nlba);
        arenas.push(found);
    }
    Ok(arenas)
}

/// F2.
pub(super) fn same_btt(a: &InfoBlock, b: &InfoBlock) -> bool {
    let sizes = |info: &InfoBlock| (info.layout.external_lbasize, info.layout.internal_lbasize);
    a.uuid == b.uuid && a.parent_uuid == b.parent_uuid && sizes(a) == sizes(b)
}

/// F1.
fn one<M: Memory>(memory: &M, start: u64, first_lba: u64) -> Result<Found, FindError> {
    let room = memory.len().saturating_sub(start);
    if room < ARENA_BYTES_MIN {
        return Err(FindError::TooSmall);
    }
    let found = |info, from_copy| Found { start, first_lba, info, from_copy };
    let first = match bad_as_missing(read_info(memory, start, room))? {
        Ok(info) => return Ok(found(info, None)),
        Err(error @ (InfoError::Version { .. } | InfoError::Field(_))) => {
            return Err(FindError::Info { start, error });
        }
        Err(error @ (InfoError::Signature | InfoError::Checksum)) => error,
    };
    let infooff = copy_offset_by_size(room);
    match bad_as_missing(read_info(memory, start + infooff, room))? {
        Ok(info) if info.layout.infooff == infooff => Ok(found(info, Some(first))),
        Ok(_) => Err(FindError::NoInfo { start, first, copy: InfoError::Field("infooff") }),
        Err(copy) => Err(FindError::NoInfo { start, first, copy }),
    }
}

/// Where the copy of an info block lies in an arena that has as much of `room` as it can, which is at least
/// an info block.
pub(super) fn copy_offset_by_size(room: u64) -> u64 {
    room.min(ARENA_BYTES_MAX) / INFO_BYTES * INFO_BYTES - INFO_BYTES
}

/// An info block that the medium lost is as good as none.
fn bad_as_missing(
    read: Result<Result<InfoBlock, InfoError>, MediaError>,
) -> Result<Result<InfoBlock, InfoError>, MediaError> {
    match read {
        Err(MediaError::Bad) => Ok(Err(InfoError::Signature)),
        other => other,
    }
}
