//! A request in its slot.

use super::act::Context;
use super::operation::Operation;
use super::tasks::mark::Mark;
use crate::card::ReliableWrite;
use crate::command::Direction;
use crate::target::Target;
use blockyard::bio::{Flags, Op, PrioClass};
use blockyard::driver::Issue;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, QueueId};

/// The stage of the request in a slot ([one-act-per-request]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The slot holds no request.
    Free,
    /// The request is accepted.
    Fresh,
    /// An act prepares the request.
    Preparing,
    /// The request waits for the bus.
    Ready,
    /// The request, an exclusive operation, waits until no other request wants the bus.
    Exclusive,
    /// The request holds the claim on the bus.
    OnBus,
    /// An act gives the request to the command queue engine.
    Starting,
    /// The request is a task of the command queue engine.
    Queued,
    /// The request's command is the engine's direct command.
    Direct,
    /// The request's transfers are over.
    Ended,
    /// An act posts the request.
    Posting,
    /// The request waits to be reported.
    Posted,
    /// An act reports the request.
    Completing,
}

impl Stage {
    /// Returns whether the request has transfers to come.
    pub(super) const fn is_before_its_end(self) -> bool {
        match self {
            Self::Fresh | Self::Preparing | Self::Ready | Self::OnBus => true,
            Self::Starting | Self::Queued | Self::Direct => true,
            Self::Free | Self::Exclusive => false,
            Self::Ended | Self::Posting | Self::Posted | Self::Completing => false,
        }
    }
}

/// The work of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It writes past the cache, if there is one, and is durable when it ends.
    ReliableWrite,
    /// It transfers no data.
    Operation(Operation),
}

impl Kind {
    /// Returns whether the request reads data.
    pub(super) const fn is_read(self) -> bool {
        matches!(self, Self::Read)
    }

    /// Returns the direction of the data. An operation, which has none, counts as a read.
    pub(super) const fn direction(self) -> Direction {
        match self {
            Self::Write | Self::ReliableWrite => Direction::Write,
            Self::Read | Self::Operation(_) => Direction::Read,
        }
    }

    /// Returns the exclusive operation; `None` for reads and writes.
    pub(super) const fn operation(self) -> Option<Operation> {
        match self {
            Self::Operation(operation) => Some(operation),
            Self::Read | Self::Write | Self::ReliableWrite => None,
        }
    }
}

/// The state of the request's memory ([memory-prepared-once]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The memory is not prepared.
    Unprepared,
    /// The memory is not prepared. The data of the write is in the bounce buffer.
    Copied,
    /// The memory of this many blocks, from the first, is prepared, while the read is on the bus.
    Begun(u32),
    /// The memory is prepared.
    Prepared,
    /// The memory is prepared. The data of the write is in the bounce buffer.
    PreparedAndCopied,
}

impl Memory {
    /// Returns whether the memory has to be posted.
    pub(super) const fn is_prepared(self) -> bool {
        matches!(self, Self::Begun(_) | Self::Prepared | Self::PreparedAndCopied)
    }

    /// Returns the number of blocks whose memory has been prepared beside the read.
    pub(super) const fn begun(self) -> u32 {
        match self {
            Self::Begun(blocks) => blocks,
            _ => 0,
        }
    }

    /// Notes that the memory of `blocks` more of `all` blocks has been prepared beside the read.
    /// Returns whether more is left.
    pub(super) fn prepare_more(&mut self, blocks: u32, all: u32) -> bool {
        let begun = self.begun() + blocks;
        debug_assert!(blocks > 0 && begun <= all, "[memory-prepared-once]: {begun} of {all}");
        *self = if begun < all { Self::Begun(begun) } else { Self::Prepared };
        begun < all
    }

    /// Returns whether the data of the write is in the bounce buffer.
    pub(super) const fn is_copied(self) -> bool {
        matches!(self, Self::Copied | Self::PreparedAndCopied)
    }

    /// Notes that the data of the write has been copied into the bounce buffer.
    pub(super) fn copy_in(&mut self) {
        debug_assert!(!self.is_copied(), "the data of a write is copied once");
        *self = if self.is_prepared() { Self::PreparedAndCopied } else { Self::Copied };
    }

    /// Notes that the memory has been prepared.
    pub(super) fn prepare(&mut self) {
        debug_assert!(!self.is_prepared(), "[memory-prepared-once]");
        *self = if self.is_copied() { Self::PreparedAndCopied } else { Self::Prepared };
    }

    /// Notes that the memory has been posted.
    pub(super) fn post(&mut self) {
        debug_assert!(self.is_prepared(), "[memory-prepared-once]");
        *self = Self::Unprepared;
    }
}

/// The part of a request that one transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything that is left, and other requests may join in a packed command.
    Packable,
    /// Everything that is left, alone: a pack with this request failed.
    Alone,
    /// This many sectors from a multiple of this number on, or else one sector: a card's reliable
    /// write.
    InPieces(u8),
    /// One of the card's own sectors, which has been tried `tries` times.
    BySector {
        /// How often the present sector has been tried.
        tries: u8,
    },
}

/// The blocks whose memory is prepared first beside the access of the card: a page.
const FIRST_BLOCKS: u32 = 8;

/// A place for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) queue: QueueId,
    pub(super) tag: DriverTag,
    pub(super) kind: Kind,
    /// Commands of the operation that are done.
    pub(super) commands_done: u8,
    /// The request was in its slot when data in the cache was lost; or it is a flush that was
    /// accepted while such a request was in its slot.
    pub(super) held_at_loss: bool,
    /// Memory segments.
    pub(super) segments: u16,
    /// Sectors of 512 bytes in one of the card's own.
    pub(super) unit: u32,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    /// The request's priority is of the real-time class.
    pub(super) real_time: bool,
    /// Sectors that have been transferred well.
    pub(super) done: u32,
    pub(super) memory: Memory,
    pub(super) scope: Scope,
    /// How often the request has been tried again.
    pub(super) retries: u8,
    /// The instant at which the request became a task.
    pub(super) since: Instant,
    /// What is known of the task while the command queue engine is recovered.
    pub(super) mark: Mark,
    /// The status with which the request has ended.
    pub(super) status: Status,
    /// The context that posts and reports the request.
    pub(super) ended_by: Context,
}

impl Slot {
    pub(super) const FREE: Self = Self {
        stage: Stage::Free,
        queue: QueueId(0),
        tag: DriverTag(0),
        kind: Kind::Read,
        commands_done: 0,
        held_at_loss: false,
        segments: 0,
        unit: 1,
        sector: 0,
        sectors: 0,
        real_time: false,
        done: 0,
        memory: Memory::Unprepared,
        scope: Scope::Packable,
        retries: 0,
        since: Instant::ZERO,
        mark: Mark::None,
        status: Status::Ok,
        ended_by: Context::Thread,
    };

    /// Returns a slot that has just accepted the request of `issue`; `None` where `target` cannot
    /// do it.
    pub(super) fn of(issue: &Issue<'_>, target: &Target) -> Option<Self> {
        let request = issue.request();
        let sector = request.sector;
        let sectors = request.sectors;
        let slot = Self {
            stage: Stage::Fresh,
            queue: issue.queue,
            tag: issue.tag,
            sector,
            sectors,
            unit: target.unit_sectors,
            real_time: request.prio.class == PrioClass::RealTime,
            segments: request.segments,
            ..Self::FREE
        };
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write if request.flags.contains(Flags::FUA) => Kind::ReliableWrite,
            Op::Write => Kind::Write,
            op => return slot.with_operation(Operation::of(op, target)?, target),
        };
        let last = sector + u64::from(sectors.checked_sub(1)?);
        let fits = u16::try_from(sectors).is_ok() && target.addressing.argument(last).is_some();
        let scope = match (kind, target.reliable_write) {
            (Kind::ReliableWrite, ReliableWrite::None) => return None,
            (Kind::ReliableWrite, ReliableWrite::OneOr(sectors)) => Scope::InPieces(sectors),
            _ => Scope::Packable,
        };
        let is_whole =
            sector.is_multiple_of(u64::from(slot.unit)) && sectors.is_multiple_of(slot.unit);
        (fits && is_whole).then_some(Self { kind, scope, ..slot })
    }

    /// Returns the same slot with `operation`, within what `target` takes. A discard covers the
    /// whole units within its range; where there are none, it has nothing to do.
    fn with_operation(self, operation: Operation, target: &Target) -> Option<Self> {
        let slot = Self { stage: Stage::Exclusive, kind: Kind::Operation(operation), ..self };
        let Some(way) = operation.erases(target).first() else { return Some(slot) };
        let asked = (slot.sector, u64::from(slot.sectors));
        let (sector, sectors) = match operation {
            Operation::Discard => match way.whole_units(asked.0, asked.1) {
                Some(whole) => whole,
                None => return Some(Self { stage: Stage::Posted, ..slot }),
            },
            _ => asked,
        };
        way.commands(sector, sectors)?;
        let sectors = u32::try_from(sectors).expect("whole units within 32 bits of sectors");
        Some(Self { sector, sectors, ..slot })
    }

    /// Returns whether the slot holds a request.
    pub(super) fn is_in_use(&self) -> bool {
        self.stage != Stage::Free
    }

    /// Returns whether the request is an exclusive operation.
    pub(super) const fn is_exclusive(&self) -> bool {
        self.kind.operation().is_some()
    }

    /// Returns the direction of the request's data.
    pub(super) const fn direction(&self) -> Direction {
        self.kind.direction()
    }

    /// Returns whether the request writes data.
    pub(super) fn is_write(&self) -> bool {
        self.direction() == Direction::Write
    }

    /// Returns whether the request needs nothing but its blocks, and all of them.
    pub(super) fn can_be_packed(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Write) && self.scope == Scope::Packable
    }

    /// Returns the number of blocks whose memory is prepared next beside the read. It doubles what
    /// has memory, so that each part is prepared while all parts before it pass, if the bus is no
    /// faster.
    pub(super) fn next_prepared(&self) -> u32 {
        let begun = self.memory.begun();
        begun.max(FIRST_BLOCKS).min(self.sectors - begun)
    }

    /// Returns the sectors that have not been transferred yet.
    pub(super) fn left(&self) -> u32 {
        debug_assert!(self.done <= self.sectors, "{} of {} sectors", self.done, self.sectors);
        self.sectors - self.done
    }

    /// Returns the number of blocks of the next transfer.
    pub(super) fn next_blocks(&self) -> u32 {
        match self.scope {
            Scope::BySector { .. } => self.unit,
            Scope::Packable | Scope::Alone => self.left(),
            Scope::InPieces(sectors) => {
                let piece = u32::from(sectors);
                let at = self.sector + u64::from(self.done);
                if at.is_multiple_of(piece.into()) && self.left() >= piece { piece } else { 1 }
            }
        }
    }

    /// Notes that `blocks` blocks have been transferred. Whole sectors of the card's own count
    /// ([only-good-blocks-count]).
    pub(super) fn note_blocks(&mut self, blocks: u32) {
        debug_assert!(blocks <= self.left(), "{blocks} blocks for {} sectors", self.left());
        self.done += blocks;
        self.done -= self.done % self.unit;
    }

    /// Notes that the transfer of the next blocks went well. Returns whether it was the last one.
    pub(super) fn note_transfer(&mut self) -> bool {
        self.done += self.next_blocks();
        self.left() == 0
    }

    /// Forgets how often the present sector has been tried: it has been transferred.
    pub(super) const fn restart_tries(&mut self) {
        if let Scope::BySector { tries } = &mut self.scope {
            *tries = 0;
        }
    }

    /// Returns whether the request is one of the writes for which a dynamic limit grows.
    pub(super) fn is_small_write(&self) -> bool {
        self.is_write() && self.sectors == 8
    }
}
