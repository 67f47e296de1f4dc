//! The result of a handshake.

use super::super::context::ContextSet;
use super::super::export::{BlockSizes, ExportIndex};
use super::super::flags::ExportFlags;

/// The form of requests and replies after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Headers {
    /// Simple replies only.
    Simple,
    /// Structured replies.
    Structured,
    /// Extended requests and replies.
    Extended,
}

/// The terms that client and server agreed on, and the chosen export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The chosen export.
    pub export: ExportIndex,
    /// The size of the export, in bytes.
    pub size_bytes: u64,
    /// The block sizes of the export.
    pub blocks: BlockSizes,
    /// The capabilities that were sent to the client.
    pub flags: ExportFlags,
    /// The form of requests and replies.
    pub headers: Headers,
    /// The contexts that BLOCK_STATUS reports.
    pub contexts: ContextSet,
}
