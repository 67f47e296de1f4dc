//! Checks a BTT against the rules of its format, and derives which corrections are certain.
//! [`repair`](super::repair) carries out the corrections that a check planned.
//!
//! # Rules
//!
//! - **[owners-add-up]** Each sector has one block, each lane has one free block, and the arena has
//!   as many blocks as sectors and lanes together. So if no block has two owners, the unowned
//!   blocks belong to the owners without a block. Lanes may get them in any order. So may sectors,
//!   once they are marked as lost, because nobody reads them. Nothing is certain if both lanes and
//!   sectors lack blocks, because a lane might then write over a sector. Nothing is certain either
//!   if the unreadable log of a lane looks like a cut write: the write may have been acknowledged,
//!   and its sector may have two blocks to choose from.
//!
//! A wrong checksum proves that an info block is damaged, and an intact one in the other place
//! shows its contents. If both are intact and differ, the first one counts, as for all readers, if
//! [owners-add-up] finds nothing against it.
//!
//! A check writes nothing. It looks at everything as it will be once cut writes are finished; a cut
//! write is no damage. Its memory is bounded: a bit for each block of one arena at a time (128 MiB
//! for the largest), some hundred bytes for each lane, and the findings to keep. An arena that is
//! marked as broken is reported, and checked like any other; nothing on the medium says why it was
//! marked. Data are not checked, because a BTT keeps no checksums of them.

mod arena;
mod blocks;
mod chain;
mod finding;
mod log;
mod map;
mod options;

pub use finding::{Finding, Problem, Report, Severity};
pub use options::{Options, Progress};

use super::memory::{MediaError, Memory};
use super::repair::Plan;
use alloc::vec::Vec;

/// Checks the BTT in `memory`, which nobody may write meanwhile. Calls `progress` from time to
/// time.
///
/// # Errors
///
/// Returns the medium's error, unless it is about lost bytes: those are findings.
pub fn check<M: Memory>(
    memory: &M,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Report, Plan), MediaError> {
    let mut steps = Vec::new();
    let mut clear_error = Vec::new();
    let chain = chain::follow(memory, options.container, options.own_uuid)?;
    let mut report = Report::new(options.container, chain.links.len(), options.keep);
    for (number, link) in chain.links.into_iter().enumerate() {
        let arena_check = arena::ArenaCheck::new(memory, number, link, options, progress)?;
        report.sectors += arena_check.sectors();
        arena_check.report_to(&mut report);
        arena_check.plan(&mut steps);
        clear_error.extend(arena_check.clear_error());
    }
    if let Some((at, problem)) = chain.end {
        let (severity, at_risk) = match problem {
            Problem::UnusedSpace { .. } => (Severity::Note, false),
            Problem::TooSmall | Problem::Version { .. } => (Severity::Broken, false),
            _ => (Severity::Broken, true),
        };
        report.add(Finding { arena: report.arenas, at, problem, severity, at_risk });
    }
    Ok((report, Plan::new(steps, clear_error)))
}
