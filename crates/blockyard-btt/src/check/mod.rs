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
mod options;

pub use finding::{Finding, Problem, Report, Severity};
pub use options::{Options, Progress};

use super::memory::{MediaError, Memory};
use super::repair::Plan;
use alloc::vec::Vec;

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
    let (mut steps, mut clear_error) = (Vec::new(), Vec::new());
    let chain = chain::follow(memory, options.container, options.own_uuid)?;
    report.arenas = chain.links.len();
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
