//! The requests of one queue, in a pool behind index handles.

use super::bios::{BioId, Bios, NONE, Piece};
use super::steps::Steps;
use crate::bio::{Bio, Flags, IoPrio, Op, Submitter};
use crate::merge::{Extent, Merge};
use crate::status::Status;
use crate::time::{Duration, Instant};
use crate::unit::{Budget, CpuId, DriverTag, HctxId, RequestId};
use alloc::vec::Vec;

/// Where a request stands in its life ([request-life-cycle]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not in use. Its fields mean nothing, except for the hardware queue until the tag is put
    /// back.
    Idle,
    /// The request carries bios and waits somewhere before the driver.
    Staged,
    /// The driver owns it.
    InFlight,
    /// The driver is done with the request; its bios are being ended.
    Complete,
}

/// When a request passed each stage. A stage that it has not reached holds [`Instant::ZERO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Its first bio was submitted.
    pub queued: Instant,
    /// It left the elevator or the software queue.
    pub scheduled: Instant,
    /// The driver accepted it.
    pub issued: Instant,
    /// It last began to wait for a flush.
    pub(crate) awaited: Instant,
    /// The total time it has waited for flushes.
    pub flushed: Duration,
}

/// One or more merged bios of one op.
#[derive(Clone, Debug)]
pub struct Request {
    /// First sector.
    pub sector: u64,
    /// Sectors of all its bios together.
    pub sectors: u32,
    /// Memory segments of all its bios together.
    pub segments: u16,
    /// Ranges; above 1 only in a merged discard.
    pub ranges: u16,
    /// The operation.
    pub op: Op,
    /// Flags of the first bio, with the gap flags of the outermost bios. [`Flags::NO_MERGE`] is
    /// added when the request has grown to a limit.
    pub flags: Flags,
    /// Priority that its bios share.
    pub prio: IoPrio,
    /// Write hint that its bios share.
    pub write_hint: u8,
    /// The submitter of the bio that began it. Bios of others may have joined.
    pub submitter: Submitter,
    /// The processor that submitted it.
    pub cpu: CpuId,
    /// The hardware queue it is for.
    pub hctx: HctxId,
    /// When it passed each stage.
    pub times: StageTimes,
    pub(crate) state: State,
    pub(crate) prepared: bool,
    /// It came out of the elevator, which must be notified when it has finished.
    pub(crate) sorted: bool,
    /// Sectors, from the first, that were transferred although the request failed.
    pub(crate) done: u32,
    /// The remaining steps of a flush sequence.
    pub(crate) steps: Steps,
    /// When the driver is asked about it, while the driver owns it.
    pub(crate) deadline: Instant,
    pub(crate) driver_tag: Option<DriverTag>,
    pub(crate) budget: Option<Budget>,
    first_bio: u32,
    last_bio: u32,
    pub(super) next: u32,
    pub(super) prev: u32,
}

impl Request {
    const IDLE: Self = Self {
        sector: 0,
        sectors: 0,
        segments: 0,
        ranges: 0,
        op: Op::Read,
        flags: Flags::NONE,
        prio: IoPrio::NONE,
        write_hint: 0,
        submitter: Submitter::NONE,
        cpu: CpuId(0),
        hctx: HctxId(0),
        times: StageTimes {
            queued: Instant::ZERO,
            scheduled: Instant::ZERO,
            issued: Instant::ZERO,
            awaited: Instant::ZERO,
            flushed: Duration::ZERO,
        },
        state: State::Idle,
        prepared: false,
        sorted: false,
        done: 0,
        steps: Steps::NONE,
        deadline: Instant::ZERO,
        driver_tag: None,
        budget: None,
        first_bio: NONE,
        last_bio: NONE,
        next: NONE,
        prev: NONE,
    };

    /// Whether the request ends when the driver is done with it with `status`: no flush follows.
    pub(crate) fn ends_with(&self, status: Status) -> bool {
        status != Status::Ok || self.steps.is_empty() || self.steps.taken().is_empty()
    }

    /// Returns where the request stands in its life.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the number under which the driver knows the request, or will know it. Without an
    /// elevator a request has one from its first bio to its end, with one only while the driver
    /// owns it.
    #[must_use]
    pub const fn driver_tag(&self) -> Option<DriverTag> {
        self.driver_tag
    }

    /// Returns the sector behind the last one.
    #[must_use]
    pub const fn end_sector(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Whether a submitter waits for it ([`Flags::is_sync`]).
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.flags.is_sync(self.op)
    }

    /// Returns the properties that matter for merging.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        Extent {
            sector: self.sector,
            sectors: self.sectors,
            segments: self.segments,
            ranges: self.ranges,
            op: self.op,
            flags: self.flags,
            prio: self.prio,
            write_hint: self.write_hint,
            submitter: self.submitter,
        }
    }
}

/// The requests of one queue.
#[derive(Debug)]
pub struct Requests {
    pub(super) slots: Vec<Request>,
}

/// What is left of a request that became idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    /// Its first bio, which links to the others.
    pub(crate) first: BioId,
    /// Its first sectors, which were transferred although it failed.
    pub(crate) done: u32,
    /// Its hardware queue.
    pub(crate) hctx: HctxId,
}

impl core::ops::Index<RequestId> for Requests {
    type Output = Request;
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.index()]
    }
}

impl core::ops::IndexMut<RequestId> for Requests {
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id.index()]
    }
}

impl Requests {
    /// Returns a pool of `count` idle requests.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { slots: alloc::vec![Request::IDLE; count] }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(count: usize) -> usize {
        count * size_of::<Request>()
    }

    /// Returns the size of the pool.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Makes the idle request `id` carry only the bio at `bio`, which is `carried`.
    #[inline]
    pub(crate) fn start(
        &mut self,
        id: RequestId,
        bio: BioId,
        carried: &Bio,
        cpu: CpuId,
        hctx: HctxId,
        now: Instant,
    ) -> &mut Request {
        let slot = &mut self.slots[id.index()];
        assert!(slot.state == State::Idle, "[request-life-cycle]: request {} is in use", id.0);
        *slot = Request {
            sector: carried.sector,
            sectors: carried.sectors,
            segments: carried.segments,
            ranges: 1,
            op: carried.op,
            flags: carried.flags,
            prio: carried.prio,
            write_hint: carried.write_hint,
            submitter: carried.submitter,
            cpu,
            hctx,
            times: StageTimes { queued: now, ..StageTimes::default() },
            state: State::Staged,
            first_bio: bio.0,
            last_bio: bio.0,
            ..Request::IDLE
        };
        slot
    }

    /// Makes the idle request `id` a flush command on behalf of `first`, which is one of the
    /// requests it serves. A flush command carries no bio.
    pub(crate) fn start_flush(&mut self, id: RequestId, first: RequestId, now: Instant) {
        assert!(self[id].state == State::Idle, "[request-life-cycle]: request {} is in use", id.0);
        let Request { prio, submitter, cpu, hctx, .. } = self[first];
        self[id] = Request {
            op: Op::Flush,
            flags: Flags::PREFLUSH | Flags::SYNC,
            ranges: 1,
            prio,
            submitter,
            cpu,
            hctx,
            times: StageTimes { queued: now, ..StageTimes::default() },
            state: State::Staged,
            ..Request::IDLE
        };
    }

    /// Adds the bio at `bio` to `id` on the side that `merge` names. The caller has checked
    /// [`merge::fit`](crate::merge::fit) and re-indexes the request.
    pub(crate) fn add_bio(&mut self, id: RequestId, bios: &mut Bios, bio: BioId, merge: Merge) {
        debug_assert_eq!(
            self[id].state,
            State::Staged,
            "[request-life-cycle]: request {} grows",
            id.0
        );
        let rq = &mut self.slots[id.index()];
        let added = bios[bio];
        match merge {
            Merge::Back | Merge::Discard => {
                bios.slots[rq.last_bio as usize].next = bio.0;
                rq.last_bio = bio.0;
                rq.flags = rq.flags.with_edge_of(added.flags, Flags::GAP_TAIL);
            }
            Merge::Front => {
                bios.slots[bio.index()].next = rq.first_bio;
                rq.first_bio = bio.0;
                rq.sector = added.sector;
                rq.flags = rq.flags.with_edge_of(added.flags, Flags::GAP_HEAD);
            }
        }
        rq.sectors += added.sectors;
        rq.segments += added.segments;
        rq.ranges += u16::from(merge == Merge::Discard);
    }

    /// Moves every bio of `absorbed` behind those of `kept` and makes `absorbed` idle. The earlier
    /// start time is kept.
    pub(crate) fn join_bios(
        &mut self,
        kept: RequestId,
        absorbed: RequestId,
        bios: &mut Bios,
        merge: Merge,
    ) {
        debug_assert!(
            self[kept].state == State::Staged && self[absorbed].state == State::Staged,
            "[request-life-cycle]: requests {} and {} join",
            kept.0,
            absorbed.0
        );
        let from = &mut self.slots[absorbed.index()];
        from.state = State::Idle;
        let from = from.clone();
        let rq = &mut self.slots[kept.index()];
        bios.slots[rq.last_bio as usize].next = from.first_bio;
        rq.last_bio = from.last_bio;
        rq.flags = rq.flags.with_edge_of(from.flags, Flags::GAP_TAIL);
        rq.sectors += from.sectors;
        rq.segments += from.segments;
        rq.ranges += if merge == Merge::Discard { from.ranges } else { 0 };
        rq.times.queued = rq.times.queued.min(from.times.queued);
    }

    /// Makes `id` idle.
    #[inline]
    pub(crate) fn make_idle(&mut self, id: RequestId) -> Released {
        debug_assert_ne!(
            self[id].state,
            State::Idle,
            "[request-life-cycle]: request {} is idle",
            id.0
        );
        let rq = &mut self.slots[id.index()];
        rq.state = State::Idle;
        Released { first: BioId(rq.first_bio), done: core::mem::take(&mut rq.done), hctx: rq.hctx }
    }

    /// Returns the bios that `id` carries, in order.
    pub fn bios<'a>(&self, id: RequestId, bios: &'a Bios) -> impl Iterator<Item = Piece> + 'a {
        let mut at = self[id].first_bio;
        core::iter::from_fn(move || {
            let slot = bios.slots.get(at as usize)?;
            at = slot.next;
            Some(bios.piece(slot))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Bio;

    /// A gap at an edge is that of the bio that lies there.
    #[test]
    fn the_outermost_bios_decide_on_gaps() {
        let all =
            [Flags::NONE, Flags::GAP_HEAD, Flags::GAP_TAIL, Flags::GAP_HEAD | Flags::GAP_TAIL];
        for (one, other) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
            for (merge, front, back) in [(Merge::Back, one, other), (Merge::Front, other, one)] {
                let mut bios = Bios::new(2);
                let mut requests = Requests::new(1);
                let at = if merge == Merge::Back { 108 } else { 92 };
                let [first, second] = [(100, one), (at, other)].map(|(sector, flags)| {
                    bios.take(Bio::write(sector, 8, 0).with_flags(flags)).expect("room")
                });
                requests.start(
                    RequestId(0),
                    first,
                    &bios[first],
                    CpuId(0),
                    HctxId(0),
                    Instant::ZERO,
                );
                requests.add_bio(RequestId(0), &mut bios, second, merge);
                let flags = requests[RequestId(0)].flags;
                let gaps = [Flags::GAP_HEAD, Flags::GAP_TAIL].map(|gap| flags.contains(gap));
                let expected = [front.contains(Flags::GAP_HEAD), back.contains(Flags::GAP_TAIL)];
                assert_eq!(gaps, expected, "{merge:?} of {other:?} to {one:?}");
            }
        }
    }
}
