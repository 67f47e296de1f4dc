//! A request in its slot.

use super::Context;
use crate::bio::Op;
use crate::driver::Issue;
use crate::mmc::command::{Addressing, Direction};
use crate::status::Status;
use crate::unit::{DriverTag, HctxId, QueueId};

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
    /// It has the bus.
    OnBus,
    /// Its transfers are over.
    Ended,
    /// An act cleans it up.
    Cleaning,
    /// It waits to be reported.
    Cleaned,
    /// An act reports it.
    Completing,
}

/// A place for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) queue: QueueId,
    pub(super) hctx: HctxId,
    pub(super) tag: DriverTag,
    pub(super) direction: Direction,
    pub(super) sector: u64,
    pub(super) sectors: u32,
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
    /// How it ended.
    pub(super) status: Status,
    /// Who does what is left when its transfers are over.
    pub(super) ended_by: Context,
}

impl Slot {
    pub(super) const FREE: Self = Self {
        stage: Stage::Free,
        queue: QueueId(0),
        hctx: HctxId(0),
        tag: DriverTag(0),
        direction: Direction::Read,
        sector: 0,
        sectors: 0,
        done: 0,
        prepared: false,
        copied: false,
        retries: 0,
        single: false,
        sector_tries: 0,
        status: Status::Ok,
        ended_by: Context::Thread,
    };

    /// A slot that has just got the request of `issue`; `None` where no transfer can do it.
    pub(super) fn of(issue: &Issue<'_>, addressing: Addressing) -> Option<Self> {
        let request = issue.request();
        let direction = match request.op {
            Op::Read => Direction::Read,
            Op::Write => Direction::Write,
            _ => return None,
        };
        let (sector, sectors) = (request.sector, request.sectors);
        let last = sector + u64::from(sectors.checked_sub(1)?);
        let fits = u16::try_from(sectors).is_ok() && addressing.argument(last).is_some();
        fits.then_some(Self {
            stage: Stage::Fresh,
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            direction,
            sector,
            sectors,
            ..Self::FREE
        })
    }

    /// Sectors that have not come over yet.
    pub(super) const fn left(&self) -> u32 {
        self.sectors - self.done
    }

    /// Blocks of its next transfer.
    pub(super) const fn blocks_next(&self) -> u32 {
        if self.single { 1 } else { self.left() }
    }

    /// Whether it is one of the writes for which a dynamic limit grows.
    pub(super) fn is_small_write(&self) -> bool {
        self.direction == Direction::Write && self.sectors == 8
    }
}
