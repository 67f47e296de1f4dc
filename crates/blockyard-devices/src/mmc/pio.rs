//! Transfers that a processor copies (PIO). The data passes in pieces: one is on the bus while
//! another is copied. While the processor waits for its memory, the bus waits too, unless the FIFO
//! lasts.

use super::per_kib;
use crate::mmc::profile::PioWait;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Direction;

/// Blocks of a piece. The controller interrupts for each piece.
const PIECE: u32 = 2;
/// Blocks for which the controller has room.
const CAPACITY: u32 = 2 * PIECE;

/// The data that a processor copies at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    pub(super) bytes: u32,
    /// The time for which the processor waits for its memory during the copy.
    pub(super) wait: Duration,
}

/// A transfer in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pio {
    direction: Direction,
    /// Blocks that have not been put on the bus.
    left: u32,
    /// Blocks that no processor has begun to copy.
    uncopied: u32,
    /// Blocks that the controller holds.
    held: u32,
    /// Blocks on the bus.
    passing: u32,
    /// Blocks that a processor is copying.
    copying: u32,
    /// The wait for memory per KiB.
    wait_per_kib: PioWait,
    /// The instant from which the bus is ready for the next piece.
    pub(super) ready: Instant,
    /// The end of the card's busy time, from its answer to the last piece.
    pub(super) busy_until: Option<Instant>,
}

impl Pio {
    /// Returns a transfer of `blocks` in `direction`, on a bus that is ready from `ready` on. Each
    /// KiB waits `wait_per_kib` for memory.
    pub(super) const fn new(
        direction: Direction,
        blocks: u32,
        ready: Instant,
        wait_per_kib: PioWait,
    ) -> Self {
        Self {
            direction,
            left: blocks,
            uncopied: blocks,
            held: 0,
            passing: 0,
            copying: 0,
            wait_per_kib,
            ready,
            busy_until: None,
        }
    }

    /// Puts the next blocks on the bus, if any can go now, and returns their number.
    pub(super) fn next_piece(&mut self) -> Option<u32> {
        let able = match self.direction {
            Direction::Read => CAPACITY - self.held,
            Direction::Write => self.held,
        };
        let blocks = able.min(PIECE).min(self.left);
        if self.passing > 0 || blocks == 0 {
            return None;
        }
        self.left -= blocks;
        self.passing = blocks;
        debug_assert!(self.held <= CAPACITY, "{self:?} holds too much");
        Some(blocks)
    }

    /// Notes that the blocks on the bus have passed.
    pub(super) fn passed(&mut self) {
        let blocks = core::mem::take(&mut self.passing);
        debug_assert!(
            self.direction == Direction::Read || blocks <= self.held,
            "{blocks} blocks passed of {self:?}"
        );
        match self.direction {
            Direction::Read => self.held += blocks,
            Direction::Write => self.held -= blocks,
        }
    }

    /// Returns whether a processor is needed and none is copying.
    pub(super) fn wants_copy(&self) -> bool {
        self.copying == 0 && self.copyable() > 0
    }

    /// Lets a processor begin to copy. Returns the data that it copies.
    pub(super) fn begin_copy(&mut self) -> Copied {
        debug_assert_eq!(self.copying, 0, "two processors copy");
        self.copying = self.copyable();
        let bytes = self.copying * SECTOR_BYTES;
        Copied { bytes, wait: per_kib(self.wait_per_kib.processor, bytes) }
    }

    /// Returns how long the bus waits for memory after `blocks`.
    pub(super) fn wait(&self, blocks: u32) -> Duration {
        per_kib(self.wait_per_kib.bus, blocks * SECTOR_BYTES)
    }

    /// Notes that the processor has copied its data.
    pub(super) fn end_copy(&mut self) {
        let blocks = core::mem::take(&mut self.copying);
        debug_assert!(blocks <= self.uncopied, "{blocks} blocks copied of {self:?}");
        self.uncopied -= blocks;
        match self.direction {
            Direction::Read => self.held -= blocks,
            Direction::Write => self.held += blocks,
        }
    }

    /// Returns whether all data has reached its destination.
    pub(super) const fn is_done(&self) -> bool {
        let done = self.left == 0 && self.passing == 0 && self.uncopied == 0;
        debug_assert!(
            !done || self.held == 0,
            "all data was copied, but the controller still holds some"
        );
        done
    }

    fn copyable(&self) -> u32 {
        match self.direction {
            Direction::Read => self.held,
            Direction::Write => (CAPACITY - self.held).min(self.uncopied).min(PIECE),
        }
    }
}
