//! What a check finds, and how it is kept: all is counted, and so much of it remembered.

use crate::address::PostmapAba;
use crate::container::{Container, Dialect};
use crate::flog::FlogError;
use crate::info_block::{InfoError, Uuid, Version};
use crate::map_entry::MapEntry;
use alloc::vec::Vec;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No damage: worth knowing.
    Note,
    /// Damage, and what is right is certain: a repair brings it back.
    Repairable,
    /// Damage, and what is right cannot be told from the image, or nobody can bring it back.
    Broken,
}

/// Something that a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The arena, by number from 0.
    pub arena: usize,
    /// The first byte of it in the container.
    pub at: u64,
    /// What it is.
    pub problem: Problem,
    /// How bad it is.
    pub severity: Severity,
    /// Whether bytes that somebody wrote are lost, may be, or will be if this BTT is used as it is.
    pub at_risk: bool,
}

/// What can be found. Sectors are counted through all arenas, as those outside count them; lanes and blocks
/// in each arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no room for an arena.
    TooSmall,
    /// An arena has neither info block.
    NoInfo {
        /// What is wrong with its first one.
        first: InfoError,
        /// What is wrong with what is where the container's size puts the copy.
        copy: InfoError,
    },
    /// The container ends before the arena does.
    Truncated {
        /// Bytes that a container of this arena has at least.
        needs: u64,
    },
    /// The first info block is none; the copy is whole.
    FirstInfo(InfoError),
    /// The copy of the info block is none; the first one is whole.
    CopyInfo(InfoError),
    /// Both info blocks are whole, and say different things: all readers believe the first one.
    CopyDiffers,
    /// It is of another version than those who look in such a container want.
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
    /// The arena belongs to another BTT than the first.
    Foreign,
    /// Bytes of the info block that no field has are not zeroes, or it says another size of itself.
    NonzeroUnused,
    /// The arena is marked as broken: whoever opens it may not write.
    ErrorFlag,
    /// The container has room for an arena that is not there.
    UnusedSpace {
        /// Bytes behind the last arena.
        bytes: u64,
    },
    /// The log of a lane cannot be read.
    Log {
        /// The lane.
        lane: u32,
        /// Why.
        error: FlogError,
    },
    /// The medium lost the log of a lane.
    LostLog {
        /// The lane.
        lane: u32,
    },
    /// The log of a lane can be read, but others take its older entry for the newer one, or refuse it.
    Misread {
        /// The lane.
        lane: u32,
        /// The numbers of its entries.
        numbers: [u32; 2],
    },
    /// A write was cut between log and map: it has happened, and whoever opens this BTT finishes it.
    CutWrite {
        /// The lane.
        lane: u32,
        /// The sector that was written.
        sector: u64,
        /// The block it gets.
        block: PostmapAba,
    },
    /// Two lanes have the same free block.
    DuplicateFree {
        /// The one that may keep it.
        lane: u32,
        /// The other.
        other: u32,
        /// The block.
        block: PostmapAba,
    },
    /// Block numbers are written into the log in another way than the readers of such a container expect:
    /// they refuse it, or do not recover it rightly.
    Dialect {
        /// Lanes whose newest entry is so.
        lanes: u32,
        /// How such a container has them.
        wanted: Dialect,
    },
    /// A map entry names a block that the arena does not have.
    BadMapEntry {
        /// The sector.
        sector: u64,
        /// Its entry.
        entry: MapEntry,
    },
    /// The medium lost a map entry.
    LostEntry {
        /// The sector.
        sector: u64,
    },
    /// Two sectors have the same block.
    TwoSectors {
        /// The block.
        block: PostmapAba,
        /// The first sector.
        sector: u64,
        /// Another one.
        other: u64,
    },
    /// A block is a sector's, and a lane has it for a free one.
    SectorAndLane {
        /// The block.
        block: PostmapAba,
        /// The sector.
        sector: u64,
        /// The lane.
        lane: u32,
    },
    /// No sector and no lane has this block.
    Unowned {
        /// The block.
        block: PostmapAba,
    },
}

impl core::fmt::Display for Severity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Repairable => "repairable",
            Self::Broken => "broken",
        })
    }
}

impl core::fmt::Display for Finding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { arena, at, problem, severity, at_risk } = self;
        let risk = if *at_risk { ", data at risk" } else { "" };
        write!(f, "{severity}{risk}: arena {arena}, byte {at}: {problem}")
    }
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooSmall => {
                f.write_str("there is no room for an arena, which has 16 MiB at least")
            }
            Self::NoInfo { first, copy } => {
                write!(f, "{first} here, and {copy} where its copy should be")
            }
            Self::Truncated { needs } => {
                write!(f, "the container ends before the arena, and had {needs} bytes at least")
            }
            Self::FirstInfo(error) => write!(f, "{error}; its copy is whole"),
            Self::CopyInfo(error) => write!(f, "{error}, where the copy of one is to be"),
            Self::CopyDiffers => f.write_str("the copy of the info block differs from the first"),
            Self::Version { found, wanted } => {
                write!(f, "a BTT of version {found}, where {wanted} is looked for")
            }
            Self::Parent { found, wanted } => {
                write!(f, "a BTT of the namespace or pool {found}, not of {wanted}")
            }
            Self::Foreign => f.write_str("this arena belongs to another BTT than the first"),
            Self::NonzeroUnused => {
                f.write_str("a byte of the info block that should be zero is not")
            }
            Self::ErrorFlag => {
                f.write_str("the arena is marked as broken: nothing may write to it")
            }
            Self::UnusedSpace { bytes } => {
                write!(f, "{bytes} bytes behind the last arena, enough for another, are not used")
            }
            Self::Log { lane, error } => write!(f, "the log of lane {lane}: {error}"),
            Self::LostLog { lane } => write!(f, "the medium lost the log of lane {lane}"),
            Self::Misread { lane, numbers: [a, b] } => {
                write!(f, "lane {lane}: sequence numbers {a} and {b}, which others misread")
            }
            Self::CutWrite { lane, sector, block } => write!(
                f,
                "lane {lane}: a write of sector {sector} to block {block} was cut, and is finished \
                 when this is opened"
            ),
            Self::DuplicateFree { lane, other, block } => {
                write!(f, "lanes {lane} and {other} both have block {block} free")
            }
            Self::Dialect { lanes, wanted } => {
                let wanted = match wanted {
                    Dialect::Plain => "without state bits, as Linux does",
                    Dialect::Flagged => "as whole map entries, as libpmemblk does",
                };
                write!(f, "the log of {lanes} lanes does not have block numbers {wanted}")
            }
            Self::BadMapEntry { sector, entry } => {
                write!(f, "sector {sector}: its map entry {:#010x} names no block", entry.0)
            }
            Self::LostEntry { sector } => {
                write!(f, "the medium lost the map entry of sector {sector}")
            }
            Self::TwoSectors { block, sector, other } => {
                write!(f, "sectors {sector} and {other} both have block {block}")
            }
            Self::SectorAndLane { block, sector, lane } => {
                write!(f, "block {block} is sector {sector}'s, and free by the log of lane {lane}")
            }
            Self::Unowned { block } => write!(f, "block {block} is no sector's, and not free"),
        }
    }
}

/// What a check found in all.
#[derive(Clone, Debug)]
pub struct Report {
    /// What is looked for.
    pub container: Container,
    /// Arenas that were found.
    pub arenas: usize,
    /// Sectors that they have.
    pub sectors: u64,
    findings: Vec<Finding>,
    /// Most findings of a severity that are remembered.
    keep: usize,
    counts: [u64; 3],
    at_risk: u64,
}

impl Report {
    pub(super) fn new(container: Container, keep: usize) -> Self {
        let (findings, counts) = (Vec::new(), [0; 3]);
        Self { container, arenas: 0, sectors: 0, findings, keep, counts, at_risk: 0 }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        let count = &mut self.counts[finding.severity as usize];
        if *count < self.keep as u64 {
            self.findings.push(finding);
        }
        *count += 1;
        self.at_risk += u64::from(finding.at_risk);
    }

    /// Counts `count` more findings that are not told one by one.
    pub(super) const fn count_only(&mut self, severity: Severity, count: u64, at_risk: bool) {
        self.counts[severity as usize] += count;
        self.at_risk += if at_risk { count } else { 0 };
    }

    /// The first findings of each severity, as many as are remembered, in the order of the medium's parts.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many findings of a severity there are, remembered or not.
    #[must_use]
    pub const fn count(&self, severity: Severity) -> u64 {
        self.counts[severity as usize]
    }

    /// How many findings put data at risk.
    #[must_use]
    pub const fn at_risk(&self) -> u64 {
        self.at_risk
    }

    /// The worst there is; notes do not count.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        [Severity::Broken, Severity::Repairable]
            .into_iter()
            .find(|&severity| self.count(severity) > 0)
    }

    /// Whether there is no damage.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst().is_none()
    }
}
