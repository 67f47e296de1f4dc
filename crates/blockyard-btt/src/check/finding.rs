//! The findings of a check: all are counted, and the first ones of each severity are kept.

use crate::address::PostmapAba;
use crate::container::{Container, Dialect};
use crate::flog::FlogError;
use crate::info_block::{InfoError, Uuid, Version};
use crate::map_entry::MapEntry;
use alloc::vec::Vec;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No damage, but worth knowing.
    Note,
    /// Damage that a repair can correct with certainty.
    Repairable,
    /// Damage that cannot be corrected, or only by a guess.
    Broken,
}

/// Something that a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The arena, numbered from 0.
    pub arena: usize,
    /// Its first byte in the container.
    pub at: u64,
    /// The problem.
    pub problem: Problem,
    /// How bad it is.
    pub severity: Severity,
    /// Whether written data are lost, may be lost, or will be lost if the BTT is used as it is.
    pub at_risk: bool,
}

/// The problems that a check can find. Sectors are counted through all arenas, lanes and blocks
/// within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no room for an arena.
    TooSmall,
    /// An arena has neither a usable info block nor a usable copy.
    NoInfo {
        /// What is wrong with the first info block.
        first: InfoError,
        /// What is wrong with the bytes where the container's size puts the copy.
        copy: InfoError,
    },
    /// The container ends before the arena does.
    Truncated {
        /// The smallest container with this arena, in bytes.
        needs: u64,
    },
    /// The first info block is unusable, and the copy is intact.
    FirstInfo(InfoError),
    /// The copy of the info block is unusable, and the first one is intact.
    CopyInfo(InfoError),
    /// Both info blocks are intact, but they differ. All readers use the first one.
    CopyDiffers,
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
    /// The arena belongs to another BTT than the first arena.
    Foreign,
    /// Unused bytes of the info block are not zero, or its size field is wrong.
    NonzeroUnused,
    /// The arena is marked as broken, so it must not be written.
    ErrorFlag,
    /// The container has room for another arena.
    UnusedSpace {
        /// Bytes after the last arena.
        bytes: u64,
    },
    /// The log of a lane is invalid.
    Log {
        /// The lane.
        lane: u32,
        /// The reason.
        error: FlogError,
    },
    /// The medium lost the log of a lane.
    LostLog {
        /// The lane.
        lane: u32,
    },
    /// The log of a lane is valid, but other readers take its older entry for the newer one, or
    /// refuse it.
    Misread {
        /// The lane.
        lane: u32,
        /// The sequence numbers of its entries.
        numbers: [u32; 2],
    },
    /// A write was cut between log and map. It is committed, and opening the BTT finishes it.
    CutWrite {
        /// The lane.
        lane: u32,
        /// The sector that was written.
        sector: u64,
        /// The new block of the sector.
        block: PostmapAba,
    },
    /// Two lanes have the same free block.
    DuplicateFree {
        /// The lane that may keep it.
        lane: u32,
        /// The other lane.
        other: u32,
        /// The block.
        block: PostmapAba,
    },
    /// The log has block numbers in another form than readers of this container expect. They refuse
    /// it, or recover it wrongly.
    Dialect {
        /// The number of lanes whose newest entry has the other form.
        lanes: u32,
        /// The form that belongs to the container.
        wanted: Dialect,
    },
    /// A map entry names a block that the arena does not have.
    BadMapEntry {
        /// The sector.
        sector: u64,
        /// Its map entry.
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
        /// Another sector.
        other: u64,
    },
    /// A block belongs to a sector, and is the free block of a lane.
    SectorAndLane {
        /// The block.
        block: PostmapAba,
        /// The sector.
        sector: u64,
        /// The lane.
        lane: u32,
    },
    /// A block belongs to no sector and is no lane's free block.
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
                f.write_str("there is no room for an arena, which needs at least 16 MiB")
            }
            Self::NoInfo { first, copy } => {
                write!(f, "{first} here, and {copy} where its copy should be")
            }
            Self::Truncated { needs } => {
                write!(f, "the container is truncated; it needs at least {needs} bytes")
            }
            Self::FirstInfo(error) => write!(f, "{error}; its copy is whole"),
            Self::CopyInfo(error) => write!(f, "{error} where the copy should be"),
            Self::CopyDiffers => f.write_str("the copy of the info block differs from the first"),
            Self::Version { found, wanted } => {
                write!(f, "a BTT of version {found}, but this container needs version {wanted}")
            }
            Self::Parent { found, wanted } => {
                write!(f, "a BTT of the namespace or pool {found}, but this one is {wanted}")
            }
            Self::Foreign => f.write_str("this arena belongs to another BTT than the first"),
            Self::NonzeroUnused => f.write_str("an unused byte of the info block is not zero"),
            Self::ErrorFlag => f.write_str("the arena is marked as broken and must not be written"),
            Self::UnusedSpace { bytes } => {
                write!(f, "{bytes} bytes after the last arena are unused, enough for another arena")
            }
            Self::Log { lane, error } => write!(f, "invalid log of lane {lane}: {error}"),
            Self::LostLog { lane } => write!(f, "the medium lost the log of lane {lane}"),
            Self::Misread { lane, numbers: [a, b] } => {
                write!(f, "lane {lane}: other readers misread the sequence numbers {a} and {b}")
            }
            Self::CutWrite { lane, sector, block } => write!(
                f,
                "lane {lane}: a write of sector {sector} to block {block} was cut; opening the BTT \
                 finishes it"
            ),
            Self::DuplicateFree { lane, other, block } => {
                write!(f, "lanes {lane} and {other} have the same free block {block}")
            }
            Self::Dialect { lanes, wanted } => {
                let wanted = match wanted {
                    Dialect::Plain => "plain numbers, which Linux needs",
                    Dialect::Flagged => "whole map entries, which libpmemblk needs",
                };
                write!(f, "the log of {lanes} lanes does not use {wanted}")
            }
            Self::BadMapEntry { sector, entry } => {
                write!(f, "sector {sector}: map entry {:#010x} names no existing block", entry.0)
            }
            Self::LostEntry { sector } => {
                write!(f, "the medium lost the map entry of sector {sector}")
            }
            Self::TwoSectors { block, sector, other } => {
                write!(f, "sectors {sector} and {other} have the same block {block}")
            }
            Self::SectorAndLane { block, sector, lane } => {
                write!(
                    f,
                    "block {block} belongs to sector {sector} but is free in lane {lane}'s log"
                )
            }
            Self::Unowned { block } => {
                write!(f, "block {block} belongs to no sector and is not free")
            }
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The container that was checked.
    pub container: Container,
    /// The number of arenas that were found.
    pub arenas: usize,
    /// The number of their sectors.
    pub sectors: u64,
    findings: Vec<Finding>,
    /// The most findings of a severity to keep.
    keep: usize,
    counts: [u64; 3],
    at_risk: u64,
}

impl Report {
    pub(super) fn new(container: Container, arenas: usize, keep: usize) -> Self {
        let findings = Vec::new();
        let counts = [0; 3];
        Self { container, arenas, sectors: 0, findings, keep, counts, at_risk: 0 }
    }

    /// Counts a finding, and keeps it if there is room.
    pub(super) fn add(&mut self, finding: Finding) {
        debug_assert!(self.at_risk <= self.counts.iter().sum(), "a finding at risk is counted");
        let count = &mut self.counts[finding.severity as usize];
        if *count < self.keep as u64 {
            self.findings.push(finding);
        }
        *count += 1;
        self.at_risk += u64::from(finding.at_risk);
    }

    /// Counts `count` findings that are not kept.
    pub(super) const fn count_only(&mut self, severity: Severity, count: u64, at_risk: bool) {
        self.counts[severity as usize] += count;
        self.at_risk += if at_risk { count } else { 0 };
    }

    /// Returns the first findings of each severity, in the order in which they were found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The number of findings of a severity, kept or not.
    #[must_use]
    pub const fn count(&self, severity: Severity) -> u64 {
        self.counts[severity as usize]
    }

    /// The number of findings that put data at risk.
    #[must_use]
    pub const fn at_risk(&self) -> u64 {
        self.at_risk
    }

    /// Returns the worst severity, apart from notes.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        [Severity::Broken, Severity::Repairable]
            .into_iter()
            .find(|&severity| self.count(severity) > 0)
    }

    /// Whether no damage was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::{String, ToString};

    #[test]
    fn a_finding_says_whether_data_is_at_risk() {
        let problem = "arena 1, byte 4096: the arena is marked as broken and must not be written";
        assert_eq!(
            finding_text(Severity::Broken, true),
            format!("broken, data at risk: {problem}")
        );
        assert_eq!(finding_text(Severity::Note, false), format!("note: {problem}"));
    }

    fn finding_text(severity: Severity, at_risk: bool) -> String {
        Finding { arena: 1, at: 4096, problem: Problem::ErrorFlag, severity, at_risk }.to_string()
    }
}
