//! Limits of runs: parts of a device or of its host.

use crate::compare::USED_UP;
use crate::load::MediumLimit;
use blockyard_text::number::percent;
use core::fmt;
use serde::Serialize;

/// The limit of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A part of the device or of its host.
    Family(FamilyLimit),
    /// The pace of the jobs, although a part of the device is full at times.
    Jobs,
}

/// A part of a device or of its host that limits a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FamilyLimit {
    /// The link to the device.
    Link {
        /// Utilisation of the link.
        percent: f64,
    },
    /// What takes the commands of a drive one at a time.
    Controller {
        /// What that is.
        part: FrontPart,
        /// The share of the time in which it takes commands.
        percent: f64,
    },
    /// The medium of a drive.
    Medium(MediumLimit),
    /// The memory of a card.
    CardMemory {
        /// The share of the time in which it programs pages or reads ahead.
        percent: f64,
    },
    /// The bus of an MMC host and its card.
    BusAndCard {
        /// The share of the time in which either is busy.
        percent: f64,
    },
    /// What an MMC host does between transfers.
    BetweenTransfers {
        /// The share of the time in which bus and card are idle while requests wait.
        idle_percent: f64,
    },
}

impl FamilyLimit {
    /// Whether each of several disks has this part of its own.
    #[must_use]
    pub fn is_of_disk(&self) -> bool {
        matches!(self, Self::Link { .. } | Self::Controller { .. } | Self::Medium(_))
    }

    /// Whether an answer that states the time between two transfers has thereby stated this limit.
    #[must_use]
    pub fn is_told_by_transfers(&self) -> bool {
        match self {
            Self::BetweenTransfers { .. } => true,
            Self::BusAndCard { percent } => *percent < USED_UP,
            _ => false,
        }
    }
}

/// A clause that says how the part is the bottleneck.
impl fmt::Display for FamilyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { percent: used } => {
                write!(f, "the link to the device is the bottleneck ({} in use)", percent(*used))
            }
            Self::Controller { part, percent: used } => {
                write!(f, "{} is the bottleneck ({} in use)", part.name(), percent(*used))
            }
            Self::Medium(limit) => limit.fmt(f),
            Self::CardMemory { percent: busy } => write!(
                f,
                "the card's memory is the bottleneck (it programs pages or reads ahead {} of the time)",
                percent(*busy)
            ),
            Self::BusAndCard { percent: busy } => write!(
                f,
                "the bus and the card are the bottleneck (busy {} of the time)",
                percent(*busy)
            ),
            Self::BetweenTransfers { idle_percent } => write!(
                f,
                "the host's work between transfers is the bottleneck (bus and card are idle {} of the time \
                 while requests wait)",
                percent(*idle_percent)
            ),
        }
    }
}

/// What takes the commands of a drive one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrontPart {
    /// The drive's controller.
    Controller,
    /// The host's thread for a virtual disk.
    VirtioThread,
    /// The bridge from USB to the drive.
    UsbBridge,
}

impl FrontPart {
    /// The name of the part, with its article.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Controller => "the drive's controller",
            Self::VirtioThread => "the host's virtio thread",
            Self::UsbBridge => "the USB bridge",
        }
    }
}
