//! The driver of the controller, which a firmware author writes. `blockyard_mmc` asks only two
//! things of it: put one MMC request on the bus, and report how it went. To identify a card, it
//! also drives the bus in a mode.

use crate::chip::{
    ARGUMENT, ARGUMENT_2, AUTO_CMD12, AUTO_CMD23, BLOCKS, COMMAND, COMMAND_TIMEOUT, COMPLETE, Chip,
    DESCRIBES, DESCRIPTOR_BYTES, HAS_DATA, IS_LAST, READS, RESPONSE, RESPONSE_AUTO, STATUS, TABLE,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use blockyard::driver::Issue;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::block::Target;
use blockyard_mmc::board::{Board, bring_up};
use blockyard_mmc::command::{Direction, Response, ResponseKind};
use blockyard_mmc::controller::{
    HostController, HostError, HostEvent, MmcRequest, NotNow, Part, Payload, SlotId,
};
use blockyard_mmc::host::{BusyDetect, HostCapabilities};
use blockyard_mmc::mode::Mode;
use blockyard_mmc::policy::HSQ_SLOTS;
use blockyard_mmc::register::Bits;

/// The largest number of memory pieces in one transfer.
const SEGMENTS: u16 = 8;
/// Places in RAM: a block of the driver's own, then a table of descriptors for that block and for
/// each slot. The memory behind them is the firmware's.
const OWN_BLOCK: usize = 0;
const OWN_TABLE: usize = OWN_BLOCK + 512;
const SLOT_TABLES: usize = OWN_TABLE + DESCRIPTOR_BYTES;
const TABLE_BYTES: usize = SEGMENTS as usize * DESCRIPTOR_BYTES;
pub(crate) const RAM_FROM: u32 = 8192;
const _: () = assert!(SLOT_TABLES + HSQ_SLOTS as usize * TABLE_BYTES <= RAM_FROM as usize);

/// A piece of memory of a transfer: an address, and bytes.
#[derive(Clone, Copy)]
struct Segment {
    address: u32,
    bytes: u32,
}

/// The controller.
pub(crate) struct Sdhci {
    pub(crate) chip: Chip,
    capabilities: HostCapabilities,
    /// The memory of the request in each slot.
    memory: Vec<Vec<Segment>>,
    running: Option<MmcRequest>,
    /// Events that the interrupt handler has found and not reported yet.
    events: VecDeque<HostEvent>,
}

impl Sdhci {
    pub(crate) fn new(chip: Chip) -> Self {
        let capabilities = HostCapabilities {
            non_removable: true,
            power_cycle: false,
            max_segments: SEGMENTS,
            max_blocks: 128, // a descriptor's 64 KiB
            busy_detect: BusyDetect::Hardware,
            ..HostCapabilities::plain()
        };
        Self {
            chip,
            capabilities,
            memory: (0..HSQ_SLOTS).map(|_| Vec::with_capacity(SEGMENTS.into())).collect(),
            running: None,
            events: VecDeque::with_capacity(5), // one for each part of an MMC request
        }
    }

    /// Translates bits of STATUS into the events of `blockyard_mmc`. This controller interrupts
    /// once, when a whole MMC request is over; one that reports each part by itself works as well.
    fn translate(&mut self, status: u32) {
        let Some(transaction) = self.running.filter(|_| status != 0) else { return };
        self.running = None;
        if status & COMPLETE == 0 {
            let part = if status & COMMAND_TIMEOUT != 0 { Part::Command } else { Part::Data };
            let error = HostError::Timeout;
            return self.events.push_back(HostEvent::Error { part, error, blocks: 0 });
        }
        let response = self.response(transaction.command.response);
        let auto = Response::Short(self.chip.read(RESPONSE_AUTO));
        self.events.extend(transaction.parts().map(|part| match part {
            Part::Announce | Part::Stop => HostEvent::CommandDone { part, response: auto },
            Part::Command => HostEvent::CommandDone { part, response },
            Part::Data => HostEvent::DataDone,
            Part::Busy => HostEvent::BusyReleased,
        }));
    }

    fn response(&mut self, kind: ResponseKind) -> Response {
        match kind.bits() {
            0 => Response::None,
            48 => Response::Short(self.chip.read(RESPONSE)),
            _ => {
                let words = [0, 4, 8, 12].map(|at| self.chip.read(RESPONSE + at));
                Response::Long(Bits::from_sdhci(words))
            }
        }
    }

    /// Returns the place of the table of `slot`.
    fn table(slot: SlotId) -> usize {
        SLOT_TABLES + slot.index() * TABLE_BYTES
    }

    /// Writes the table of `slot`, from block `skip` of its memory on.
    fn describe(&mut self, slot: SlotId, skip: u32) {
        let mut skip = skip * SECTOR_BYTES;
        let mut at = Self::table(slot);
        for segment in &self.memory[slot.index()] {
            let passed = skip.min(segment.bytes);
            skip -= passed;
            if passed < segment.bytes {
                let rest =
                    Segment { address: segment.address + passed, bytes: segment.bytes - passed };
                at = describe(&mut self.chip.ram, at, rest);
            }
        }
        self.chip.ram[at - DESCRIPTOR_BYTES] |= IS_LAST;
    }

    /// Returns the bytes of the request in `slot`.
    fn bytes(&self, slot: SlotId) -> u32 {
        self.memory[slot.index()].iter().map(|segment| segment.bytes).sum()
    }
}

/// Returns `at` in the form of registers and descriptors.
fn address(at: usize) -> u32 {
    u32::try_from(at).expect("address within RAM")
}

/// Writes a descriptor at `at`. Returns the place of the next one.
fn describe(ram: &mut [u8], at: usize, segment: Segment) -> usize {
    let [low, high, ..] = segment.bytes.to_le_bytes();
    ram[at..at + 4].copy_from_slice(&[DESCRIBES, 0, low, high]);
    ram[at + 4..at + 8].copy_from_slice(&segment.address.to_le_bytes());
    at + DESCRIPTOR_BYTES
}

impl HostController for Sdhci {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// A request consists of pieces of bios. Submitters choose the cookie of a bio: here it is the
    /// address of its memory, which is all that the driver needs.
    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let memory = &mut self.memory[slot.index()];
        memory.clear();
        memory.extend(issue.pieces().map(|piece| Segment {
            address: u32::try_from(piece.cookie).expect("address in a cookie")
                + piece.offset_sectors * SECTOR_BYTES,
            bytes: piece.sectors * SECTOR_BYTES,
        }));
    }

    /// Here a driver cleans the cache of data that it writes, and invalidates it for data that it
    /// reads.
    fn prepare(&mut self, slot: SlotId) {
        self.describe(slot, 0);
        self.chip.maintain_cache(self.bytes(slot));
    }

    fn post(&mut self, slot: SlotId) {
        self.chip.maintain_cache(self.bytes(slot));
    }

    fn block(&mut self) -> &mut [u8; 512] {
        self.chip.ram[OWN_BLOCK..]
            .first_chunk_mut()
            .expect("driver's own block at the start of RAM")
    }

    fn start(&mut self, transaction: &MmcRequest, _now: Instant) {
        let command = &transaction.command;
        let mut word = u32::from(command.opcode.index()) << 24;
        if let Some(data) = command.data {
            let table = match transaction.payload {
                Payload::Slot { slot, skip } => {
                    if skip > 0 {
                        self.describe(slot, skip); // after an error, the rest
                    }
                    Self::table(slot)
                }
                Payload::Block => {
                    let block = Segment { address: address(OWN_BLOCK), bytes: data.bytes() };
                    describe(&mut self.chip.ram, OWN_TABLE, block);
                    self.chip.ram[OWN_TABLE] |= IS_LAST;
                    OWN_TABLE
                }
                Payload::None | Payload::Packed(_) => unreachable!("the policy packs no requests"),
            };
            self.chip.write(TABLE, address(table));
            self.chip.write(BLOCKS, u32::from(data.blocks) << 16 | u32::from(data.block_bytes));
            word |= HAS_DATA | if data.direction == Direction::Read { READS } else { 0 };
        }
        if let Some(announce) = transaction.announce {
            self.chip.write(ARGUMENT_2, announce.argument);
            word |= AUTO_CMD23;
        }
        if transaction.stop.is_some() {
            word |= AUTO_CMD12;
        }
        self.running = Some(*transaction);
        self.chip.write(ARGUMENT, command.argument);
        self.chip.write(COMMAND, word);
    }

    /// Writing registers takes no sleep, so the interrupt handler can do it, too.
    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow> {
        self.start(transaction, now);
        Ok(())
    }

    fn card_busy(&mut self, _now: Instant) -> bool {
        false // no MMC request of this controller is over before busy ends
    }

    fn abort(&mut self, _now: Instant) {
        self.chip.abort();
        self.running = None;
        self.events.clear();
    }

    /// Brings up the card as at the beginning.
    fn reset(&mut self, now: Instant) -> Result<Target, HostError> {
        self.abort(now);
        let card = bring_up(self).map_err(|_| HostError::Timeout)?;
        Ok(Target::of(&card, self.capabilities()))
    }
}

/// The card's supply is always on, and its signals stay at 3.3 V.
impl Board for Sdhci {
    fn now(&self) -> Instant {
        self.chip.now()
    }

    fn next_event(&mut self) -> Option<HostEvent> {
        if self.events.is_empty() {
            let status = self.chip.read(STATUS);
            self.chip.write(STATUS, status);
            self.translate(status);
        }
        self.events.pop_front()
    }

    fn sleep(&mut self, limit: Instant) {
        self.chip.wait(Some(limit));
    }

    fn drive(&mut self, mode: Mode) {
        self.chip.drive(mode);
    }
}
