//! Requests and the bios they carry: pools behind index handles.
//!
//! A [`Request`] is one or more merged bios, of one op and contiguous (a discard may hold several
//! ranges); it is what elevators and drivers see. All memory is reserved when the pools are made:
//! there are as many requests as tags, and as many bios as the queue's configuration says.
//!
//! # Rules
//!
//! - **R1.** A request is idle, staged, in flight or complete, and moves only idle → staged → in
//!   flight → complete → idle, or back from in flight to staged by a requeue.
//! - **R2.** A request is on at most one [`List`] at a time; the links are in the request.
//! - **R3.** A bio is in at most one request, and ends once.

use crate::bio::{Bio, Flags, IoPrio, Op};
use crate::limits::Limits;
use crate::merge::{Extent, Merge};
use crate::status::Status;
use crate::time::Instant;
use crate::unit::{Budget, CpuId, DriverTag, HctxId, RequestId};
use alloc::vec::Vec;

/// "No such index" in links.
const NONE: u32 = u32::MAX;

/// Where a request stands in its life (R1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not in use: its fields mean nothing, but for its hardware queue until the tag is put back.
    Idle,
    /// It carries bios and waits somewhere before the driver.
    Staged,
    /// The driver owns it.
    InFlight,
    /// The driver is done with it; its bios are being ended.
    Complete,
}

/// When a request passed each stage. A stage not reached yet holds [`Instant::ZERO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Its first bio was submitted.
    pub queued: Instant,
    /// It left the elevator or the software queue.
    pub scheduled: Instant,
    /// The driver accepted it.
    pub issued: Instant,
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
    /// What is to be done.
    pub op: Op,
    /// Flags of the bio it began with, the gap flags those of its outermost bios;
    /// [`Flags::NO_MERGE`] is added when it has grown to a limit.
    pub flags: Flags,
    /// Priority that its bios share.
    pub prio: IoPrio,
    /// Write hint that its bios share.
    pub write_hint: u8,
    /// The processor it was submitted on.
    pub cpu: CpuId,
    /// The hardware queue it is for.
    pub hctx: HctxId,
    /// When it passed each stage.
    pub times: StageTimes,
    pub(crate) state: State,
    pub(crate) prepared: bool,
    pub(crate) driver_tag: Option<DriverTag>,
    pub(crate) budget: Option<Budget>,
    first_bio: u32,
    last_bio: u32,
    next: u32,
    prev: u32,
}

impl Flags {
    /// These, with `edge` as `other` has it.
    fn with_edge_of(self, other: Self, edge: Self) -> Self {
        if other.contains(edge) { self | edge } else { self.without(edge) }
    }
}

impl Request {
    const IDLE: Self = Self {
        sector: 0,
        sectors: 0,
        segments: 0,
        ranges: 0,
        op: Op::Read,
        flags: Flags::NONE,
        prio: IoPrio { class: crate::bio::PrioClass::BestEffort, level: 0 },
        write_hint: 0,
        cpu: CpuId(0),
        hctx: HctxId(0),
        times: StageTimes {
            queued: Instant::ZERO,
            scheduled: Instant::ZERO,
            issued: Instant::ZERO,
        },
        state: State::Idle,
        prepared: false,
        driver_tag: None,
        budget: None,
        first_bio: NONE,
        last_bio: NONE,
        next: NONE,
        prev: NONE,
    };

    /// Where it stands in its life.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The sector behind its last one.
    #[must_use]
    pub const fn end_sector(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Whether somebody waits for it: reads, and whatever carries [`Flags::SYNC`].
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.op.is_read() || self.flags.contains(Flags::SYNC)
    }

    /// What of it matters for merging.
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
        }
    }
}

/// The requests of one queue.
#[derive(Debug)]
pub struct Requests {
    slots: Vec<Request>,
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
    /// Memory for `count` requests, all idle.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { slots: alloc::vec![Request::IDLE; count] }
    }

    /// How many requests there is memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Makes the idle request `id` carry the bio at `bio` alone.
    pub(crate) fn start(
        &mut self,
        id: RequestId,
        bios: &Bios,
        bio: BioId,
        cpu: CpuId,
        hctx: HctxId,
        now: Instant,
    ) {
        let slot = &mut self.slots[id.index()];
        assert!(slot.state == State::Idle, "R1: request {} is in use", id.0);
        let carried = &bios[bio];
        *slot = Request {
            sector: carried.sector,
            sectors: carried.sectors,
            segments: carried.segments,
            ranges: 1,
            op: carried.op,
            flags: carried.flags,
            prio: carried.prio,
            write_hint: carried.write_hint,
            cpu,
            hctx,
            times: StageTimes { queued: now, ..StageTimes::default() },
            state: State::Staged,
            first_bio: bio.0,
            last_bio: bio.0,
            ..Request::IDLE
        };
    }

    /// Adds the bio at `bio` to `id` on the side that `merge` names. The caller has asked
    /// [`merge::fit`](crate::merge::fit) and re-indexes the request.
    pub(crate) fn add_bio(&mut self, id: RequestId, bios: &mut Bios, bio: BioId, merge: Merge) {
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

    /// Moves every bio of `gone` behind those of `kept` and makes `gone` idle. The earlier of both
    /// start times stays.
    pub(crate) fn join(&mut self, kept: RequestId, gone: RequestId, bios: &mut Bios, merge: Merge) {
        let from = &mut self.slots[gone.index()];
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

    /// Makes `id` idle and gives back its first bio, from which the others are linked.
    pub(crate) fn release(&mut self, id: RequestId) -> BioId {
        let rq = &mut self.slots[id.index()];
        rq.state = State::Idle;
        BioId(rq.first_bio)
    }

    /// The bios that `id` carries, in order.
    pub fn bios<'a>(&self, id: RequestId, bios: &'a Bios) -> impl Iterator<Item = Piece> + 'a {
        let mut at = self[id].first_bio;
        core::iter::from_fn(move || {
            let slot = bios.slots.get(at as usize)?;
            at = slot.next;
            Some(bios.piece(slot))
        })
    }
}

/// A handle to a bio in its queue's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BioId(u32);

impl BioId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a driver sees of a bio: the part of the caller's bio that this request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The caller's value.
    pub cookie: u64,
    /// First sector of this part.
    pub sector: u64,
    /// Sectors of this part.
    pub sectors: u32,
    /// How far into the caller's bio this part begins, in sectors; not 0 only where it was split.
    pub offset_sectors: u32,
}

/// A bio that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The bio as it was submitted.
    pub bio: Bio,
    /// How it ended: the first failure among its parts, or [`Status::Ok`].
    pub status: Status,
}

#[derive(Clone, Debug)]
struct BioSlot {
    bio: Bio,
    status: Status,
    /// Parts of it that have not ended; 1 for a bio in one piece.
    parts: u32,
    /// The bio this is a part of, or `NONE`.
    parent: u32,
    next: u32,
}

/// The bios of one queue, and the list of those that ended.
#[derive(Debug)]
pub struct Bios {
    slots: Vec<BioSlot>,
    free: u32,
    ended_first: u32,
    ended_last: u32,
    in_use: u32,
}

impl core::ops::Index<BioId> for Bios {
    type Output = Bio;
    fn index(&self, id: BioId) -> &Bio {
        &self.slots[id.index()].bio
    }
}

impl Bios {
    pub(crate) fn new(count: u32) -> Self {
        assert!(count < NONE, "the number of bios must leave one index free");
        let idle = |i: u32| BioSlot {
            bio: Bio::read(0, 0, 0),
            status: Status::Ok,
            parts: 0,
            parent: NONE,
            next: if i + 1 < count { i + 1 } else { NONE },
        };
        Self {
            slots: (0..count).map(idle).collect(),
            free: if count == 0 { NONE } else { 0 },
            ended_first: NONE,
            ended_last: NONE,
            in_use: 0,
        }
    }

    /// How many bios, and parts of split ones, are held.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Whether there is no memory for one more.
    pub(crate) const fn is_full(&self) -> bool {
        self.free == NONE
    }

    pub(crate) fn take(&mut self, bio: Bio) -> Option<BioId> {
        let at = self.free;
        let slot = self.slots.get_mut(at as usize)?;
        self.free = slot.next;
        *slot = BioSlot { bio, status: Status::Ok, parts: 1, parent: NONE, next: NONE };
        self.in_use += 1;
        Some(BioId(at))
    }

    /// A part of `whole`: `sectors` from `sector` on. Ends into `whole`.
    pub(crate) fn take_part(
        &mut self,
        whole: BioId,
        sector: u64,
        sectors: u32,
        segments: u16,
    ) -> Option<BioId> {
        let bio = Bio { sector, sectors, segments, ..self[whole] };
        let part = self.take(bio)?;
        self.slots[part.index()].parent = whole.0;
        self.slots[whole.index()].parts += 1;
        Some(part)
    }

    /// Gives back a bio that was taken and never joined a request.
    pub(crate) fn untake(&mut self, id: BioId) {
        let parent = self.slots[id.index()].parent;
        if parent != NONE {
            self.slots[parent as usize].parts -= 1;
        }
        self.free(id.0);
    }

    fn free(&mut self, at: u32) {
        self.slots[at as usize].next = self.free;
        self.free = at;
        self.in_use -= 1;
    }

    /// Ends `first` and every bio linked behind it with `status`.
    pub(crate) fn end_chain(&mut self, first: BioId, status: Status) {
        let mut at = first.0;
        while at != NONE {
            let next = self.slots[at as usize].next;
            self.end_part(at, status);
            at = next;
        }
    }

    /// Ends the part or whole bio at `at`; a whole that has no parts left joins the ended list.
    fn end_part(&mut self, at: u32, status: Status) {
        let parent = self.slots[at as usize].parent;
        let whole = if parent == NONE {
            at
        } else {
            self.free(at);
            parent
        };
        self.drop_part(BioId(whole), status);
    }

    /// One part of `whole` less; with none left the whole bio has ended.
    pub(crate) fn drop_part(&mut self, whole: BioId, status: Status) {
        let slot = &mut self.slots[whole.index()];
        assert!(slot.parts > 0, "R3: bio {} ended twice", whole.0);
        if slot.status == Status::Ok {
            slot.status = status;
        }
        slot.parts -= 1;
        if slot.parts > 0 {
            return;
        }
        slot.next = NONE;
        if self.ended_first == NONE {
            self.ended_first = whole.0;
        } else {
            self.slots[self.ended_last as usize].next = whole.0;
        }
        self.ended_last = whole.0;
    }

    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        let at = self.ended_first;
        let slot = self.slots.get(at as usize)?;
        let ended = Ended { bio: slot.bio, status: slot.status };
        self.ended_first = slot.next;
        self.free(at);
        Some(ended)
    }

    fn piece(&self, slot: &BioSlot) -> Piece {
        let start = match self.slots.get(slot.parent as usize) {
            Some(whole) => whole.bio.sector,
            None => slot.bio.sector,
        };
        Piece {
            cookie: slot.bio.cookie,
            sector: slot.bio.sector,
            sectors: slot.bio.sectors,
            offset_sectors: u32::try_from(slot.bio.sector - start)
                .expect("a part lies within its bio, whose length is 32 bits"),
        }
    }
}

/// How many segments of a bio a part of it has: in proportion, rounded up, at least one.
///
/// Payloads are opaque, so segments are taken to be of equal size.
pub(crate) fn segments_of_part(bio: &Bio, part_sectors: u32) -> u16 {
    if bio.sectors == 0 {
        return bio.segments;
    }
    let share =
        (u64::from(bio.segments) * u64::from(part_sectors)).div_ceil(u64::from(bio.sectors));
    u16::try_from(share).expect("a share of 16 bits is 16 bits").max(1)
}

/// Most sectors that a part of `bio` starting at `sector` may have under `limits`: a multiple of
/// the logical block, at least one block.
pub(crate) fn max_part_sectors(bio: &Bio, sector: u64, limits: &Limits) -> u32 {
    let mut max = limits.max_sectors_at(bio.op, sector);
    if bio.segments > limits.max_segments && matches!(bio.op, Op::Read | Op::Write) {
        let by_segments =
            u64::from(bio.sectors) * u64::from(limits.max_segments) / u64::from(bio.segments);
        max = u32::try_from(by_segments).map_or(max, |sectors| sectors.min(max));
    }
    let block = limits.logical_block_sectors;
    (max & !(block - 1)).max(block)
}

/// A doubly linked list of requests; the links are in the pool (R2).
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    /// How many requests are on it.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first request.
    #[must_use]
    pub const fn first(&self) -> Option<RequestId> {
        if self.first == NONE { None } else { Some(RequestId(self.first)) }
    }

    /// The last request.
    #[must_use]
    pub const fn last(&self) -> Option<RequestId> {
        if self.last == NONE { None } else { Some(RequestId(self.last)) }
    }

    /// Adds `id`, which is on no list, at the end.
    pub fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        let last = self.last;
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "R2");
        rq.prev = last;
        match requests.slots.get_mut(last as usize) {
            Some(before) => before.next = id.0,
            None => self.first = id.0,
        }
        self.last = id.0;
        self.len += 1;
    }

    /// Adds `id`, which is on no list, at the front.
    pub fn push_front(&mut self, requests: &mut Requests, id: RequestId) {
        let first = self.first;
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "R2");
        rq.next = first;
        match requests.slots.get_mut(first as usize) {
            Some(behind) => behind.prev = id.0,
            None => self.last = id.0,
        }
        self.first = id.0;
        self.len += 1;
    }

    /// Takes the first request off.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.first()?;
        self.remove(requests, id);
        Some(id)
    }

    /// Takes `id`, which is on this list, off it.
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        let rq = &mut requests[id];
        let (prev, next) = (rq.prev, rq.next);
        rq.prev = NONE;
        rq.next = NONE;
        match requests.slots.get_mut(prev as usize) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match requests.slots.get_mut(next as usize) {
            Some(behind) => behind.prev = prev,
            None => self.last = prev,
        }
        self.len -= 1;
    }

    /// Puts `id`, which is on no list, where `other` stands, and takes `other` off.
    pub fn replace(&mut self, requests: &mut Requests, other: RequestId, id: RequestId) {
        let (prev, next) = (requests[other].prev, requests[other].next);
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "R2");
        (rq.prev, rq.next) = (prev, next);
        let gone = &mut requests[other];
        (gone.prev, gone.next) = (NONE, NONE);
        match requests.slots.get_mut(prev as usize) {
            Some(before) => before.next = id.0,
            None => self.first = id.0,
        }
        match requests.slots.get_mut(next as usize) {
            Some(behind) => behind.prev = id.0,
            None => self.last = id.0,
        }
    }

    /// Moves all of `other` to the end of this list; constant time.
    pub fn append(&mut self, requests: &mut Requests, other: &mut Self) {
        let taken = core::mem::take(other);
        if taken.is_empty() {
            return;
        }
        match requests.slots.get_mut(self.last as usize) {
            Some(last) => {
                last.next = taken.first;
                requests.slots[taken.first as usize].prev = self.last;
                self.last = taken.last;
                self.len += taken.len;
            }
            None => *self = taken,
        }
    }

    /// The requests from the last to the first.
    pub fn iter_back<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + 'a {
        let mut at = self.last;
        core::iter::from_fn(move || {
            let slot = requests.slots.get(at as usize)?;
            let id = RequestId(at);
            at = slot.prev;
            Some(id)
        })
    }
}
