//! The info blocks: finds the arenas, and compares both info blocks of each.

use super::finding::Problem;
use crate::container::Container;
use crate::find;
use crate::info_block::{InfoBlock, InfoBytes, InfoError, Uuid};
use crate::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, INFO_BYTES};
use crate::memory::{MediaError, Memory, read_array};
use alloc::vec::Vec;

/// An arena, and what is wrong with its info blocks.
pub(super) struct Link {
    /// First byte of the arena.
    pub(super) start: u64,
    /// The external LBA of its first sector.
    pub(super) first_lba: u64,
    /// The info block that counts.
    pub(super) info: InfoBlock,
    /// Which of the two info blocks can be restored.
    pub(super) repair: InfoRepair,
    /// Other problems of the info blocks, and their positions.
    pub(super) problems: Vec<(u64, Problem)>,
}

/// Which info block is to be overwritten with the other one.
pub(super) enum InfoRepair {
    /// None: both are intact and equal.
    Nothing,
    /// The first one: its checksum or signature is wrong, and the copy is intact.
    First(InfoError),
    /// The copy: its checksum or signature is wrong, and the first one is intact.
    Copy(InfoError),
    /// The copy: both are intact but differ. Certain if everything else fits the first one.
    CopyIfSound(Problem),
    /// None: the checksum of the first one is right but it is unusable, so it is not ours to
    /// change.
    Neither(InfoError),
}

/// The arenas of a container, and how the search ended.
pub(super) struct Chain {
    pub(super) links: Vec<Link>,
    /// Why the search ended, and where. This is damage, unless it is [`Problem::UnusedSpace`].
    pub(super) end: Option<(u64, Problem)>,
}

/// One of the two info blocks.
struct Half {
    bytes: InfoBytes,
    parsed: Result<InfoBlock, InfoError>,
}

/// Follows the arenas of `container`.
pub(super) fn follow<M: Memory>(
    memory: &M,
    container: Container,
    own: Option<Uuid>,
) -> Result<Chain, MediaError> {
    let mut links: Vec<Link> = Vec::new();
    let mut start = container.first_arena();
    let mut first_lba = 0;
    let end = loop {
        let link = match link(memory, start, first_lba)? {
            Ok(link) => link,
            Err(problem) => break Some((start, problem)),
        };
        let info = link.info;
        let first = links.first().map(|first| &first.info);
        if let Some(problem) = foreign_problem(first, &info, container, own) {
            break Some((start, problem));
        }
        first_lba += u64::from(info.layout.external_nlba);
        links.push(link);
        if info.nextoff == 0 {
            // [info-fields-consistent]: the arena ends within the memory.
            let end = start + info.layout.infooff + INFO_BYTES;
            let bytes = memory.len() - end;
            break (bytes >= ARENA_BYTES_MIN).then_some((end, Problem::UnusedSpace { bytes }));
        }
        start += info.nextoff;
    };
    Ok(Chain { links, end })
}

/// Returns why an arena does not belong to this BTT, if it does not.
fn foreign_problem(
    first: Option<&InfoBlock>,
    info: &InfoBlock,
    container: Container,
    own: Option<Uuid>,
) -> Option<Problem> {
    let wanted = container.version();
    if info.version != wanted {
        return Some(Problem::Version { found: info.version, wanted });
    }
    if let Some(wanted) = own.filter(|&own| !container.accepts_parent(info.parent_uuid, own)) {
        return Some(Problem::Parent { found: info.parent_uuid, wanted });
    }
    first.filter(|first| !find::same_btt(first, info)).map(|_| Problem::Foreign)
}

/// Reads both info blocks of the arena at `start`. The inner error says why there is no arena.
fn link<M: Memory>(
    memory: &M,
    start: u64,
    first_lba: u64,
) -> Result<Result<Link, Problem>, MediaError> {
    let room = memory.len().saturating_sub(start);
    if room < ARENA_BYTES_MIN {
        return Ok(Err(Problem::TooSmall));
    }
    let first = half(memory, start, room)?;
    let info = match first.parsed {
        Ok(info) => info,
        Err(error) => {
            let infooff = find::copy_offset_by_size(room);
            let copy = half(memory, start + infooff, room)?;
            let info = match copy.parsed {
                Ok(info) if info.layout.infooff == infooff => info,
                other => return Ok(Err(no_info(start, &first, error, other.err()))),
            };
            let damaged = matches!(error, InfoError::Signature | InfoError::Checksum);
            let repair = match damaged {
                true => InfoRepair::First(error),
                false => InfoRepair::Neither(error),
            };
            let mut link = Link { start, first_lba, info, repair, problems: Vec::new() };
            link.inspect(start + infooff, &copy.bytes);
            return Ok(Ok(link));
        }
    };
    let copy = half(memory, start + info.layout.infooff, room)?;
    let repair = match copy.parsed {
        _ if copy.bytes == first.bytes => InfoRepair::Nothing,
        Err(error @ (InfoError::Signature | InfoError::Checksum)) => InfoRepair::Copy(error),
        Err(error) => InfoRepair::CopyIfSound(Problem::CopyInfo(error)),
        Ok(_) => InfoRepair::CopyIfSound(Problem::CopyDiffers),
    };
    let mut link = Link { start, first_lba, info, repair, problems: Vec::new() };
    link.inspect(start, &first.bytes);
    Ok(Ok(link))
}

/// Returns why there is no arena when neither info block is usable.
fn no_info(start: u64, first: &Half, error: InfoError, copy: Option<InfoError>) -> Problem {
    // Room for an arena and the start of the next one.
    match InfoBlock::parse(&first.bytes, 2 * ARENA_BYTES_MAX) {
        Ok(info) => {
            Problem::Truncated { needs: start + info.nextoff.max(info.layout.infooff + INFO_BYTES) }
        }
        Err(_) => {
            Problem::NoInfo { first: error, copy: copy.unwrap_or(InfoError::Field("infooff")) }
        }
    }
}

fn half<M: Memory>(memory: &M, at: u64, room: u64) -> Result<Half, MediaError> {
    let bytes: InfoBytes = match read_array(memory, at) {
        // Lost bytes count as an info block without a signature.
        Err(MediaError::Bad) => [0; INFO_BYTES as usize],
        other => other?,
    };
    Ok(Half { parsed: InfoBlock::parse(&bytes, room), bytes })
}

impl Link {
    /// Adds the problems in the info block that counts, at `at`, which readers ignore.
    fn inspect(&mut self, at: u64, bytes: &InfoBytes) {
        // Everything but the checksum, where any difference would appear again.
        const FIELDS: usize = INFO_BYTES as usize - 8;
        let plain = self.info.to_bytes();
        if let Some(byte) = (0..FIELDS).find(|&n| bytes[n] != plain[n]) {
            self.problems.push((at + byte as u64, Problem::NonzeroUnused));
        }
        if self.info.error {
            self.problems.push((at + 48, Problem::ErrorFlag));
        }
    }
}
