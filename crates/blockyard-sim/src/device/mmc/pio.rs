//! Data that a processor copies: it passes in pieces, one on the bus while another is copied. Where the
//! processor waits for its memory, so does the bus.

use super::per_kib;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Direction;

/// Blocks of a piece: what an interrupt is for.
const PIECE: u32 = 2;
/// Blocks that the controller holds.
const CAPACITY: u32 = 2 * PIECE;

/// What a processor copies at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    pub(super) bytes: u32,
    /// How long it waits for its memory meanwhile.
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
    /// Blocks that a processor copies.
    copying: u32,
    /// What a KiB waits for memory.
    wait_per_kib: Duration,
    /// The bus is ready for more from then on.
    pub(super) ready: Instant,
    /// The card is busy until then, as the last piece has said.
    pub(super) busy_until: Option<Instant>,
}

impl Pio {
    /// `blocks` in `direction`, on a bus that is ready from `ready` on; of a KiB, `wait_per_kib` is spent
    /// waiting for memory.
    pub(super) const fn new(
        direction: Direction,
        blocks: u32,
        ready: Instant,
        wait_per_kib: Duration,
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

    /// The blocks that go on the bus now, if any.
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
        Some(blocks)
    }

    /// What was on the bus has passed.
    pub(super) fn passed(&mut self) {
        let blocks = core::mem::take(&mut self.passing);
        match self.direction {
            Direction::Read => self.held += blocks,
            Direction::Write => self.held -= blocks,
        }
    }

    /// Whether a processor is wanted, and none is at it.
    pub(super) fn wants_copy(&self) -> bool {
        self.copying == 0 && self.copyable() > 0
    }

    /// A processor begins to copy.
    pub(super) fn begin_copy(&mut self) -> Copied {
        self.copying = self.copyable();
        Copied { bytes: self.copying * SECTOR_BYTES, wait: self.wait(self.copying) }
    }

    /// What memory keeps so many blocks waiting.
    pub(super) fn wait(&self, blocks: u32) -> Duration {
        per_kib(self.wait_per_kib, blocks * SECTOR_BYTES)
    }

    /// It has copied them.
    pub(super) fn end_copy(&mut self) {
        let blocks = core::mem::take(&mut self.copying);
        self.uncopied -= blocks;
        match self.direction {
            Direction::Read => self.held -= blocks,
            Direction::Write => self.held += blocks,
        }
    }

    /// Whether all of it is where it belongs.
    pub(super) const fn is_done(&self) -> bool {
        self.left == 0 && self.passing == 0 && self.uncopied == 0
    }

    fn copyable(&self) -> u32 {
        match self.direction {
            Direction::Read => self.held,
            Direction::Write => (CAPACITY - self.held).min(self.uncopied).min(PIECE),
        }
    }
}
