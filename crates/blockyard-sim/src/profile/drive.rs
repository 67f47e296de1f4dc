//! Drives: the tables of their front ends, and the choice of front end and medium.

use blockyard::time::Duration;

use super::crosspoint::{CrosspointProfile, crosspoint};
use super::error::{Problem, ProfileError};
use super::table::{Table, table_of};
use super::value::{Count, Rate, Time};

/// A drive: a front end over a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveProfile {
    /// The front end.
    pub front: FrontProfile,
    /// The medium.
    pub medium: MediumProfile,
}

/// The part of a drive that the host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontProfile {
    /// NVMe over PCI Express: `[nvme]`.
    Nvme(NvmeProfile),
}

/// The part of a drive that keeps the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumProfile {
    /// Memory that is written in place: `[crosspoint]`.
    Crosspoint(CrosspointProfile),
}

/// The figures of an NVMe controller and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmeProfile {
    /// Pairs of a submission and a completion queue for I/O.
    pub hw_queues: u16,
    /// Commands that one queue takes.
    pub depth: u16,
    /// Time for which a command occupies the controller.
    pub interval: Duration,
    /// Latency of a command in the controller beyond that time.
    pub command: Duration,
    /// Bytes of data per second through the link, in each direction.
    pub link: u64,
}

/// The tables of front ends.
const FRONTS: &[&str] = &["nvme"];
/// The tables of media.
const MEDIA: &[&str] = &["crosspoint"];
/// The tables of drives.
pub(super) const DRIVES: &[&str] = &["nvme", "crosspoint"];

impl DriveProfile {
    /// The tables of its profile that only a drive like it has.
    pub(super) const fn tables(&self) -> &'static [&'static str] {
        match (self.front, self.medium) {
            (FrontProfile::Nvme(_), MediumProfile::Crosspoint(_)) => &["nvme", "crosspoint"],
        }
    }

    /// The kind of drive in a noun phrase, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self.front {
            FrontProfile::Nvme(_) => "an NVMe drive",
        }
    }

    /// Hardware queues.
    #[must_use]
    pub const fn hw_queues(&self) -> u16 {
        match self.front {
            FrontProfile::Nvme(nvme) => nvme.hw_queues,
        }
    }

    /// Commands that one hardware queue takes.
    #[must_use]
    pub const fn depth(&self) -> u16 {
        match self.front {
            FrontProfile::Nvme(nvme) => nvme.depth,
        }
    }
}

/// Reads the front end and the medium of `top`, each from the file itself or else from its base.
pub(super) fn drive(top: &Table<'_>) -> Result<DriveProfile, ProfileError> {
    let front = match one_of(top, FRONTS, "a drive has one front end: `[nvme]`")? {
        _nvme => nvme(top).map(FrontProfile::Nvme)?,
    };
    let medium = match one_of(top, MEDIA, "a drive has one medium: `[crosspoint]`")? {
        _crosspoint => crosspoint(top).map(MediumProfile::Crosspoint)?,
    };
    Ok(DriveProfile { front, medium })
}

/// Returns the one of `tables` that `top` has, or else its base.
fn one_of(
    top: &Table<'_>,
    tables: &[&'static str],
    words: &'static str,
) -> Result<&'static str, ProfileError> {
    let given: Vec<_> = tables.iter().filter(|key| top.has(key)).collect();
    match (&given[..], top.base()) {
        ([one], _) => Ok(one),
        ([], Some(base)) => one_of(base, tables, words),
        ([], None) => Err(top.wrong("", Problem::Contradiction(words))),
        ([_, other, ..], _) => Err(top.wrong(other, Problem::Contradiction(words))),
    }
}

table_of!(NVME, fn nvme("nvme") -> NvmeProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=1023)),
    interval: "interval" need(Time),
    command: "command" need(Time),
    link: "link" need(Rate),
});
