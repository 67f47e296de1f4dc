//! A request in its slot.

use super::cqe::Mark;
use super::exclusive::Operation;
use super::{Context, Target};
use crate::card::ReliableWrite;
use crate::command::Direction;
use blockyard::bio::{Flags, Op, PrioClass};
use blockyard::driver::Issue;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, QueueId};

/// Where the request of a slot is (P3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Free,
    /// Taken.
    Fresh,
    /// An act prepares it.
    Preparing,
    /// It waits for the bus.
    Ready,
    /// It waits for the bus, and for all others that want it.
    Apart,
    /// It has the bus.
    OnBus,
    /// An act gives it to the command queue engine.
    Starting,
    /// It is a task of the command queue engine.
    Queued,
    /// Its command is the engine's direct one.
    Direct,
    /// Its transfers are over.
    Ended,
    /// An act cleans it up.
    Cleaning,
    /// It waits to be reported.
    Cleaned,
    /// An act reports it.
    Completing,
}

impl Stage {
    /// Whether its transfers are not over.
    pub(super) const fn is_before_its_end(self) -> bool {
        match self {
            Self::Fresh | Self::Preparing | Self::Ready | Self::OnBus => true,
            Self::Starting | Self::Queued | Self::Direct => true,
            Self::Free | Self::Apart => false,
            Self::Ended | Self::Cleaning | Self::Cleaned | Self::Completing => false,
        }
    }
}

/// A place for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) queue: QueueId,
    pub(super) tag: DriverTag,
    /// What it does, if it transfers nothing.
    pub(super) operation: Option<Operation>,
    /// Commands of the operation that have done what they are for.
    pub(super) step: u8,
    pub(super) direction: Direction,
    /// It was held when something in the cache was lost; or it is a flush, taken beside such.
    pub(super) held_at_loss: bool,
    /// Memory segments.
    pub(super) segments: u16,
    /// It is not packed: a pack with it has failed.
    pub(super) alone: bool,
    /// Sectors in one of the card's own.
    pub(super) unit: u32,
    /// Its data goes past the cache.
    pub(super) reliable: bool,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    /// Its priority is of the real time class.
    pub(super) real_time: bool,
    /// Sectors that have come over well (P5).
    pub(super) done: u32,
    /// Its memory was prepared, so it is to be cleaned up (P2).
    pub(super) prepared: bool,
    /// What it writes is in the bounce buffer.
    pub(super) copied: bool,
    /// How often it was tried again.
    pub(super) retries: u8,
    /// It is read sector by sector.
    pub(super) single: bool,
    /// How often the sector at hand was tried, where [`Self::single`].
    pub(super) sector_tries: u8,
    /// Since when it is a task.
    pub(super) since: Instant,
    /// What is known of it while the command queue engine is recovered.
    pub(super) mark: Mark,
    /// How it ended.
    pub(super) status: Status,
    /// Who does what is left when its transfers are over.
    pub(super) ended_by: Context,
}

impl Slot {
    pub(super) const FREE: Self = Self {
        stage: Stage::Free,
        queue: QueueId(0),
        tag: DriverTag(0),
        operation: None,
        step: 0,
        direction: Direction::Read,
        held_at_loss: false,
        segments: 0,
        alone: false,
        reliable: false,
        unit: 1,
        sector: 0,
        sectors: 0,
        real_time: false,
        done: 0,
        prepared: false,
        copied: false,
        retries: 0,
        single: false,
        sector_tries: 0,
        since: Instant::ZERO,
        mark: Mark::None,
        status: Status::Ok,
        ended_by: Context::Thread,
    };

    /// A slot that has just got the request of `issue`; `None` where `target` cannot do it.
    pub(super) fn of(issue: &Issue<'_>, target: &Target) -> Option<Self> {
        let request = issue.request();
        let (sector, sectors) = (request.sector, request.sectors);
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
        let direction = match request.op {
            Op::Read => Direction::Read,
            Op::Write => Direction::Write,
            op => return slot.apart(Operation::of(op, target)?, target),
        };
        let last = sector + u64::from(sectors.checked_sub(1)?);
        let fits = u16::try_from(sectors).is_ok() && target.addressing.argument(last).is_some();
        let reliable = target.cache_on && request.flags.contains(Flags::FUA);
        let can = !reliable || target.reliable_write == ReliableWrite::Any;
        let is_whole =
            sector.is_multiple_of(u64::from(slot.unit)) && sectors.is_multiple_of(slot.unit);
        (fits && can && is_whole).then_some(Self { direction, reliable, ..slot })
    }

    /// The same with `operation`, held to what `target` takes. A discard is of the whole units within
    /// its range, of which there may be none: then it has nothing to do.
    fn apart(self, operation: Operation, target: &Target) -> Option<Self> {
        let slot = Self { stage: Stage::Apart, operation: Some(operation), ..self };
        let Some(way) = target.erases(operation).first() else { return Some(slot) };
        let whole = way.whole_units(slot.sector, u64::from(slot.sectors));
        let (sector, sectors) = match whole {
            None if operation == Operation::Discard => {
                return Some(Self { stage: Stage::Cleaned, sectors: 0, ..slot });
            }
            _ if operation == Operation::Discard => whole?,
            _ => (slot.sector, u64::from(slot.sectors)),
        };
        way.commands(sector, sectors)?;
        let sectors = u32::try_from(sectors).expect("no more than were asked for");
        Some(Self { sector, sectors, ..slot })
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.stage != Stage::Free
    }

    /// Sectors that have not come over yet.
    pub(super) const fn left(&self) -> u32 {
        self.sectors - self.done
    }

    /// Blocks of its next transfer.
    pub(super) const fn blocks_next(&self) -> u32 {
        if self.single { self.unit } else { self.left() }
    }

    /// So many blocks of its transfer have come over; of the card's own sectors, whole ones count (E4).
    pub(super) const fn came_over(&mut self, blocks: u32) {
        self.done += blocks;
        self.done -= self.done % self.unit;
    }

    /// A transfer of its next blocks went well; `false`: more are left.
    pub(super) const fn went_well(&mut self) -> bool {
        self.done += self.blocks_next();
        self.sector_tries = 0;
        self.left() == 0
    }

    /// Whether it is one of the writes for which a dynamic limit grows.
    pub(super) fn is_small_write(&self) -> bool {
        self.direction == Direction::Write && self.sectors == 8
    }
}
