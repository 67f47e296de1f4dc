//! Checking a BTT: every rule that its format has, and what becomes certain when they are held against each
//! other. [`repair`](super::repair) does what a check planned.
//!
//! # Rules
//!
//! - **K1.** Nothing is written. All is looked at as it will be once writes that were cut are finished;
//!   that there are such writes is no damage.
//! - **K2.** Memory is bounded: a bit for each block of one arena at a time (128 MiB for the largest), some
//!   hundred bytes for each lane, and the findings that are to be remembered.
//! - **K3.** A sector has one block, a lane one free block, and there are as many blocks as of both together.
//!   So if no block has two owners, the blocks that nobody has are those of the owners that have none.
//!   Lanes may have them in any order. Sectors may too once they are marked as lost: nobody reads them.
//!   Where both lanes and sectors lack blocks, nothing follows: a lane might write over a sector. Nor does
//!   it where what cannot be read of a lane looks like a write that was cut: that write may have been
//!   acknowledged, and its sector may have two blocks to choose from.
//! - **K4.** Of an info block a wrong checksum proves that it is damaged, and a right one in the other
//!   place, what it was. Where both are right and differ, the first is, as all readers believe it, if K3
//!   finds nothing against it.
//! - **K5.** An arena that is marked as broken is one: why, is not written anywhere. Whether anything else is
//!   wrong with it is found as in any other.
//!
//! Data are not looked at: a BTT keeps no checksums of them.

mod arena;
mod blocks;
mod chain;
mod finding;
mod log;
mod map;

pub use finding::{Finding, Problem, Report, Severity};

use super::container::Container;
use super::info_block::Uuid;
use super::memory::{MediaError, Memory};
use super::repair::Plan;
use alloc::vec::Vec;

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the BTT lies in.
    pub container: Container,
    /// The container's UUID, where it is known.
    pub own_uuid: Option<Uuid>,
    /// Most findings of each severity that are remembered; all are counted.
    pub keep: usize,
}

impl Options {
    /// For a BTT of anybody's, remembering a thousand findings of each severity.
    #[must_use]
    pub const fn new(container: Container) -> Self {
        Self { container, own_uuid: None, keep: 1000 }
    }
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The arena, by number from 0.
    pub arena: usize,
    /// Its sectors that were looked at.
    pub done: u32,
    /// Its sectors.
    pub of: u32,
}

impl Progress {
    /// Sectors between two calls.
    const STEP: u32 = 1 << 14;
}

/// Checks the BTT in `memory`, which nobody writes meanwhile; `progress` is called now and then.
///
/// # Errors
///
/// The medium failed, otherwise than by having lost bytes, which are findings.
pub fn check<M: Memory>(
    memory: &M,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Report, Plan), MediaError> {
    let mut report = Report::new(options.container, options.keep);
    let (mut steps, mut unmark) = (Vec::new(), Vec::new());
    let chain = chain::follow(memory, options.container, options.own_uuid)?;
    report.arenas = chain.links.len();
    for (number, link) in chain.links.into_iter().enumerate() {
        let examined = arena::Examined::new(memory, number, link, options, progress)?;
        report.sectors += examined.sectors();
        examined.tell(&mut report);
        examined.plan(&mut steps);
        unmark.extend(examined.unmark());
    }
    if let Some((at, problem)) = chain.end {
        let (severity, at_risk) = match problem {
            Problem::Beyond { .. } => (Severity::Note, false),
            Problem::TooSmall | Problem::Version { .. } => (Severity::Broken, false),
            _ => (Severity::Broken, true),
        };
        report.add(Finding { arena: report.arenas, at, problem, severity, at_risk });
    }
    Ok((report, Plan::new(steps, unmark)))
}
