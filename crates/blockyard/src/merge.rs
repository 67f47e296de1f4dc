//! Predicates: whether two pieces of I/O may become one request.
//!
//! Plug lists, software queues and elevators all use [`fit`]. Each has its own way to find a
//! candidate ([`end_index`](crate::end_index) for those that hash). Discards of a device that takes
//! several ranges merge with any discard, as further ranges; all other ops merge only when
//! contiguous.
//!
//! # Rules
//!
//! - **[merged-sides-agree]** Both sides have the same op, priority and write hint.
//! - **[merged-within-limits]** A merged request keeps every limit of the device, the number of
//!   discard ranges included. The chunk boundary counts from the start sector.
//!
//! Only reads, writes, discards, write-zeroes and secure erases merge: never flushes or
//! passthrough, and nothing marked preflush, FUA or no-merge. If the device has a virtual boundary,
//! a merge leaves no gap between two segments.

use crate::bio::{Bio, Flags, IoPrio, Op, Submitter};
use crate::limits::Limits;
use crate::unit::RequestId;

/// How a bio or request joins a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Behind its last sector.
    Back,
    /// Before its first sector.
    Front,
    /// As a further range of a discard.
    Discard,
}

/// The answer of [`fit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The two may be joined in this way.
    Join(Merge),
    /// The two touch and agree, but exceed a limit together: the request is full.
    TooBig,
    /// The two have nothing in common.
    No,
}

/// The properties of a bio or request that matter for merging, and its submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// Memory segments.
    pub segments: u16,
    /// Discard ranges; 1 for everything else.
    pub ranges: u16,
    /// The operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// Priority.
    pub prio: IoPrio,
    /// Write hint.
    pub write_hint: u8,
    /// The submitter: of the bio, or of the bio that began the request. [`fit`] ignores it; an
    /// elevator may join only what one process submitted.
    pub submitter: Submitter,
}

impl From<&Bio> for Extent {
    fn from(bio: &Bio) -> Self {
        Self {
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.segments,
            ranges: 1,
            op: bio.op,
            flags: bio.flags,
            prio: bio.prio,
            write_hint: bio.write_hint,
            submitter: bio.submitter,
        }
    }
}

impl Extent {
    /// The sector behind the last one.
    #[must_use]
    pub const fn end_sector(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Whether this may be part of any merge.
    #[must_use]
    pub const fn is_mergeable(&self) -> bool {
        !matches!(self.op, Op::Flush)
            && !self.op.is_passthrough()
            && !self.flags.intersects(Flags::NO_MERGE)
            && !self.flags.intersects(Flags::PREFLUSH)
            && !self.flags.intersects(Flags::FUA)
    }
}

/// Returns whether and how `other` (a bio, or a whole request) may join `request` under `limits`.
///
/// Costs a few comparisons and changes nothing. On [`Fit::TooBig`] the owner of the request marks
/// it [`Flags::NO_MERGE`], so that it is not tried again.
#[inline]
#[must_use]
pub fn fit(request: &Extent, other: &Extent, limits: &Limits) -> Fit {
    // The check that most pairs fail comes first: a plug tries each of its requests.
    let Some(merge) = adjacency(request, other, limits) else { return Fit::No };
    if !request.is_mergeable() || !other.is_mergeable() || !agree(request, other) {
        return Fit::No;
    }
    if within_limits(request, other, merge, limits) { Fit::Join(merge) } else { Fit::TooBig }
}

/// Checks [merged-sides-agree].
fn agree(a: &Extent, b: &Extent) -> bool {
    a.op == b.op && a.prio == b.prio && a.write_hint == b.write_hint
}

/// Returns the side on which the two touch; discards with several ranges join anywhere.
#[inline]
fn adjacency(request: &Extent, other: &Extent, limits: &Limits) -> Option<Merge> {
    if request.op == Op::Discard && limits.max_discard_segments > 1 {
        Some(Merge::Discard)
    } else if request.end_sector() == other.sector {
        Some(Merge::Back)
    } else if other.end_sector() == request.sector {
        Some(Merge::Front)
    } else {
        None
    }
}

/// Checks [merged-within-limits], and that no gap lies at a virtual boundary.
fn within_limits(request: &Extent, other: &Extent, merge: Merge, limits: &Limits) -> bool {
    let start = if merge == Merge::Front { other.sector } else { request.sector };
    let max_sectors = match merge {
        Merge::Discard => limits.max_discard_sectors,
        Merge::Back | Merge::Front => limits.max_sectors_at(request.op, start),
    };
    let sectors = u64::from(request.sectors) + u64::from(other.sectors);
    let segments = u32::from(request.segments) + u32::from(other.segments);
    let ranges = u32::from(request.ranges) + u32::from(other.ranges);
    let (front, back) = if merge == Merge::Front { (other, request) } else { (request, other) };
    let gap = front.flags.contains(Flags::GAP_TAIL) || back.flags.contains(Flags::GAP_HEAD);
    let segments_fit = match request.op {
        Op::Read | Op::Write => segments <= u32::from(limits.max_segments),
        _ => segments <= u32::from(u16::MAX),
    };
    sectors <= u64::from(max_sectors)
        && segments_fit
        && (merge != Merge::Discard || ranges <= u32::from(limits.max_discard_segments))
        && !(limits.virt_boundary && gap)
}

/// A candidate for a merge, found by an elevator or software queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// The bio or request may join this request, in this way.
    Join(RequestId, Merge),
    /// It touches this request, which is full.
    TooBig(RequestId),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discard(sector: u64) -> Extent {
        Extent::from(&Bio::new(Op::Discard, sector, 8, 0))
    }

    /// A discard is one range; as many join as the device takes in one command.
    #[test]
    fn discards_join_up_to_the_limit_of_ranges() {
        let limits = Limits { max_discard_sectors: 64, max_discard_segments: 2, ..Limits::new(64) };
        let two = Extent { ranges: 2, ..discard(0) };
        assert_eq!(fit(&discard(0), &discard(40), &limits), Fit::Join(Merge::Discard));
        assert_eq!(fit(&two, &discard(40), &limits), Fit::TooBig);
    }

    fn zeroes(sector: u64, segments: u16) -> Extent {
        Extent::from(&Bio { segments, ..Bio::new(Op::WriteZeroes, sector, 8, 0) })
    }

    /// Only reads and writes have a limit of segments; the others must not overflow their count.
    #[test]
    fn segments_of_other_ops_merge_up_to_what_their_count_holds() {
        let limits = Limits { max_write_zeroes_sectors: 64, ..Limits::new(64) };
        let fits =
            [8, 9].map(|segments| fit(&zeroes(0, u16::MAX - 8), &zeroes(8, segments), &limits));
        assert_eq!(fits, [Fit::Join(Merge::Back), Fit::TooBig]);
    }
}
