//! Reads whose data the controller holds back until their memory is prepared
//! ([data-waits-for-memory]).

use super::{BLOCK, COMMAND, Fault, Scripted};
use crate::command::Direction;
use crate::controller::{MmcRequest, Part, Payload, SlotId};
use crate::host::Transfer;
use blockyard::time::{Duration, Instant};

/// A read on the bus whose memory is not prepared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    transaction: MmcRequest,
    fault: Option<Fault>,
    from: Instant,
    /// The end of the blocks that have memory; before the first, the end of the commands.
    data_at: Instant,
}

impl Scripted {
    /// Holds back the data of `transaction`, which starts at `now`, if it has no memory. Returns
    /// whether it does. A read that fails before its data is not held.
    pub(super) fn holds(
        &mut self,
        transaction: &MmcRequest,
        fault: Option<Fault>,
        now: Instant,
    ) -> bool {
        use Fault::{Error, Gone, Silence};
        let Payload::Slot { slot, .. } = transaction.payload else { return false };
        let fails_before = match fault {
            Some(Silence | Gone | Error(Part::Command, ..)) => true,
            Some(Error(Part::Announce, ..)) => transaction.announce.is_some(),
            _ => false,
        };
        let reads = transaction.data().is_some_and(|data| data.direction == Direction::Read);
        let able = self.capabilities.holds_data && self.capabilities.transfer == Transfer::Dma;
        if self.memory[slot.index()].prepared || !able || !reads || fails_before {
            return false;
        }
        let commands = 1 + u64::from(transaction.announce.is_some());
        let data_at = now + Duration::from_ns(commands * COMMAND.as_ns());
        self.held = Some(Held { transaction: *transaction, fault, from: now, data_at });
        true
    }

    /// Gives memory to the next `blocks` blocks of `slot`. The read continues when all have it.
    pub(super) fn gives_memory(&mut self, slot: SlotId, blocks: u32, now: Instant) {
        let memory = &mut self.memory[slot.index()];
        assert!(memory.accepted && !memory.prepared, "[prepared-while-in-use]: prepared twice");
        self.prepares += u32::from(memory.blocks_prepared == 0);
        memory.blocks_prepared += blocks;
        assert!(memory.blocks_prepared <= memory.sectors, "more memory than {slot:?} has");
        memory.prepared = memory.blocks_prepared == memory.sectors;
        let is_whole = memory.prepared;
        let sectors = memory.sectors;
        let Some(held) = &mut self.held else { return };
        held.data_at = held.data_at.max(now) + block_time(blocks);
        let Held { transaction, fault, from, data_at } = *held;
        if is_whole {
            self.held = None;
            // The commands are reported with the data, which passes block by block, but ends as if
            // at once.
            let commands = 1 + u64::from(transaction.announce.is_some());
            let before_data = block_time(sectors) + Duration::from_ns(commands * COMMAND.as_ns());
            let delay = data_at.since(from) - before_data;
            self.carry_out(&transaction, fault, from, delay);
            self.events.iter_mut().for_each(|(at, _)| *at = (*at).max(now));
        }
    }
}

fn block_time(blocks: u32) -> Duration {
    Duration::from_ns(BLOCK.as_ns() * u64::from(blocks))
}
