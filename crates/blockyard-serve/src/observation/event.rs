//! Events of clients and disks, for a log.

use crate::clients::reserve::NO_MEMORY;
use crate::clients::weight::Weight;
use blockyard_std::parts::words::counted;
use core::fmt;
use std::borrow::Cow;

/// An event of a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of a client.
    Client(ClientEvent),
    /// Damage to a disk.
    Disk(DiskEvent),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(event) => event.fmt(f),
            Self::Disk(event) => event.fmt(f),
        }
    }
}

/// Damage to a disk, reported once for each disk; of flushes, the first that fails and the next
/// that succeeds are reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEvent {
    /// The name of the disk's export; empty for the default one.
    pub disk: String,
    /// The damage.
    pub harm: Harm,
}

/// The damage to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// A request found that the file ends before the disk.
    CutShort {
        /// The size of the disk, in bytes.
        disk_bytes: u64,
        /// The size of the file, in bytes.
        file_bytes: u64,
    },
    /// The file of a BTT cannot be read or written any more: it was truncated, or its medium
    /// failed.
    Failed,
    /// A flush failed. Writes that were answered since the last flush may be lost.
    FlushFailed,
    /// A flush succeeded again.
    FlushSucceeded,
}

impl fmt::Display for DiskEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {:?}: {}", self.disk, self.harm)
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::CutShort { disk_bytes, file_bytes } => write!(
                f,
                "its file was cut short from {disk_bytes} to {}: reads beyond the end fail",
                counted(file_bytes, "byte")
            ),
            Self::Failed => f.write_str(
                "its file failed: it was truncated or cannot be read or written; requests fail",
            ),
            Self::FlushFailed => f.write_str(
                "a flush failed: writes since the last flush may be lost, also those that were answered",
            ),
            Self::FlushSucceeded => f.write_str("a flush succeeded again"),
        }
    }
}

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// The client: its address and port, or the process at the other end of a unix socket.
    pub client: String,
    /// The event.
    pub happened: Happened,
}

/// The event of a [`ClientEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The client was cut off, because the server was full.
    CutOff,
    /// The client was turned away, because there was no memory for its session.
    NoMemory,
    /// The client chose an export.
    Entered {
        /// The name of the export; empty for the default one.
        export: String,
        /// The version of TLS; `None` without TLS.
        tls: Option<&'static str>,
    },
    /// The client does not get the weight of the place that it comes from.
    NoWeight {
        /// That weight.
        weight: Weight,
        /// The reason.
        why: String,
    },
    /// The client has gone.
    Gone {
        /// The export that it had chosen, if any.
        export: Option<String>,
        /// The name that it last asked for, if it had chosen no export and no export that it may
        /// use has this name: the first 256 bytes.
        unknown: Option<String>,
        /// The number of requests that it sent.
        requests: u64,
        /// The reason.
        why: Cow<'static, str>,
    },
}

impl fmt::Display for ClientEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}: ", self.client)?;
        match &self.happened {
            Happened::CutOff => f.write_str("cut off, as there are too many"),
            Happened::NoMemory => write!(f, "turned away: {NO_MEMORY}"),
            Happened::Entered { export, tls } => {
                write!(f, "serving export {export:?}, {}", tls.unwrap_or("without TLS"))
            }
            Happened::NoWeight { weight, why } => {
                write!(f, "served without its weight {weight}: {why}")
            }
            Happened::Gone { export: Some(export), requests, why, .. } => {
                let requests = counted(requests, "request");
                write!(f, "gone from export {export:?} after {requests}: {why}")
            }
            Happened::Gone { export: None, unknown, why, .. } => {
                write!(f, "gone before it chose an export: {why}")?;
                match unknown {
                    Some(name) => write!(f, "; there is no export {name:?} for it"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The reason why a client goes when the server drains.
pub(crate) const ENDING: &str = "the server ends";

/// The reason why a client goes when its export is removed.
pub(crate) const REMOVED: &str = "an operator removed its export";
