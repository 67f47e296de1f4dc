//! The position of a split bio whose parts have not all entered.

use crate::request::BioId;
use crate::unit::{CpuId, HctxId};

/// A split bio of which some parts have not entered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub(super) whole: BioId,
    pub(super) cpu: CpuId,
    /// The hardware queue of its parts.
    pub(super) hctx: HctxId,
    /// The first sector that has not entered.
    pub(super) sector: u64,
    /// It waits for a tag, not for memory.
    pub(super) starved: bool,
    /// Whether its submitter is in its call still, so that parts may wait on the plug. Later it may
    /// be asleep, and nobody would release them.
    pub(super) plugs: bool,
}
