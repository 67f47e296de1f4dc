//! Transfers by DMA: the blocks of a read pass only when their memory is ready.

use blockyard::time::Instant;
use blockyard_mmc::controller::SlotId;

/// A transfer by DMA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dma {
    /// Blocks that have been put on the bus, and those that have not.
    pub(super) moved: u32,
    left: u32,
    /// The instant from which the bus is ready for the next blocks.
    pub(super) ready: Instant,
}

impl Dma {
    /// Returns a transfer of `blocks`, on a bus that is ready from `ready` on.
    pub(super) const fn new(blocks: u32, ready: Instant) -> Self {
        Self { moved: 0, left: blocks, ready }
    }

    /// Returns how many blocks can pass now, if the memory of this many blocks of the transfer is
    /// `ready`.
    pub(super) fn can_move(&self, ready: u32) -> u32 {
        ready.saturating_sub(self.moved).min(self.left)
    }

    /// Returns what is left after `blocks` more have passed by `at`; `None` after the last.
    pub(super) const fn moved(self, blocks: u32, at: Instant) -> Option<Self> {
        debug_assert!(blocks <= self.left, "more blocks pass than the transfer has");
        let left = self.left - blocks;
        if left == 0 { None } else { Some(Self { moved: self.moved + blocks, left, ready: at }) }
    }
}

/// By slot: the number of blocks, from the first, whose memory is prepared.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryReady(Vec<u32>);

impl MemoryReady {
    /// Returns the number of blocks of `slot` whose memory is prepared.
    pub(super) fn blocks(&self, slot: SlotId) -> u32 {
        self.0.get(slot.index()).copied().unwrap_or_default()
    }

    /// Notes that the memory of `blocks` more blocks of `slot` is prepared.
    pub(super) fn prepare(&mut self, slot: SlotId, blocks: u32) {
        if self.0.len() <= slot.index() {
            self.0.resize(slot.index() + 1, 0);
        }
        let ready = &mut self.0[slot.index()];
        *ready = ready.saturating_add(blocks);
    }

    /// Notes that the memory of `slot` is posted.
    pub(super) fn post(&mut self, slot: SlotId) {
        debug_assert!(self.blocks(slot) > 0, "[prepared-while-in-use]: {slot:?} is not prepared");
        self.0[slot.index()] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_pass_when_their_memory_is_ready_and_each_once() {
        let at = Instant::from_ns;
        let mut memory = MemoryReady::default();
        let slot = SlotId(3);
        let other = SlotId(1);
        let dma = Dma::new(20, at(5));
        assert_eq!(dma.can_move(memory.blocks(slot)), 0);
        memory.prepare(slot, 8);
        memory.prepare(other, u32::MAX);
        assert_eq!(dma.can_move(memory.blocks(slot)), 8);
        let dma = dma.moved(8, at(50)).expect("blocks are left");
        assert_eq!((dma.can_move(memory.blocks(slot)), dma.ready), (0, at(50)));
        memory.prepare(slot, 12);
        assert_eq!(dma.can_move(memory.blocks(slot)), 12);
        assert!(dma.moved(12, at(90)).is_none());
        memory.post(slot);
        assert_eq!((memory.blocks(slot), memory.blocks(other)), (0, u32::MAX));
    }
}
