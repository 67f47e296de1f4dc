//! The driver of an SD host controller: puts MMC requests on the bus and reports how they went.

mod features;
mod register;

use crate::clock::Clock;
use crate::machine::{DmaMemory, Line, Mmio};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use blockyard::driver::Issue;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::block::Target;
use blockyard_mmc::board::{Board, bring_up};
use blockyard_mmc::card::Card;
use blockyard_mmc::command::{Direction, Opcode, Response, ResponseKind};
use blockyard_mmc::controller::{
    HostController, HostError, HostEvent, MmcRequest, NotNow, Part, Payload, SlotId,
};
use blockyard_mmc::host::HostCapabilities;
use blockyard_mmc::identify::Failure;
use blockyard_mmc::mode::{Mode, Timing, Width};
use blockyard_mmc::policy::HSQ_SLOTS;
use blockyard_mmc::register::Bits;
use features::Features;
use register::{clock, command, descriptor, host_control, mode, present, reset, status};

/// The largest number of memory pieces in one transfer with ADMA2.
const DMA_SEGMENTS: u16 = 32;
/// The largest transfer: 256 KiB.
const TRANSFER_BLOCKS_MAX: u16 = 512;
/// A transfer has a descriptor for each piece, and for each 64 KiB that end within a piece.
const TABLE_DESCRIPTORS: u32 = DMA_SEGMENTS as u32
    + TRANSFER_BLOCKS_MAX as u32 * SECTOR_BYTES / descriptor::TRANSFER_BYTES_MAX;
const TABLE_BYTES: u32 = TABLE_DESCRIPTORS * descriptor::BYTES;
/// Places in the DMA memory: a block of the driver's own, then tables of descriptors: one for each
/// slot, one for that block, and an invalid one. The memory behind them is for data.
const OWN_BLOCK: u32 = 0;
const TABLES: u32 = OWN_BLOCK + SECTOR_BYTES;
/// SDMA pauses at each multiple of this address. QEMU 10.0 does not go on afterwards, because it
/// ignores the address that the driver has to write then. So no memory of a transfer may cross such
/// a boundary.
pub(crate) const SDMA_BOUNDARY: u32 = 512 << 10;
/// Where the memory for data begins.
pub(crate) const DATA_FROM: u32 = 32 << 10;
const OWN_TABLE: u32 = HSQ_SLOTS as u32;
const INVALID_TABLE: u32 = OWN_TABLE + 1;
const _: () = assert!(TABLES + (INVALID_TABLE + 1) * TABLE_BYTES <= DATA_FROM);

/// A piece of memory of a transfer: an address, and bytes.
#[derive(Clone, Copy)]
struct Segment {
    address: u32,
    bytes: u32,
}

/// The controller.
pub(crate) struct Sdhci {
    registers: Mmio,
    line: Line,
    clock: Clock,
    features: Features,
    capabilities: HostCapabilities,
    /// The memory of all transfers, and that of bios.
    pub(crate) memory: DmaMemory,
    /// The memory of the request in each slot.
    slots: Vec<Vec<Segment>>,
    own_block: [u8; SECTOR_BYTES as usize],
    /// The request on the bus.
    running: Option<MmcRequest>,
    /// Events that were found and not reported yet.
    events: VecDeque<HostEvent>,
    /// Commands that were sent, without those that the controller sends by itself.
    pub(crate) commands: u32,
    /// Transfers of requests from now on that get an invalid table of descriptors, so that they
    /// fail.
    pub(crate) transfers_to_fail: u32,
}

impl Sdhci {
    /// The controller whose registers are at `address`, and which interrupts by `line`.
    pub(crate) fn new(address: u32, line: Line, clock: Clock) -> Self {
        let registers = Mmio::new(address, register::REGISTER_BYTES);
        let (features, capabilities) = Features::read(registers);
        Self {
            registers,
            line,
            clock,
            features,
            capabilities,
            memory: DmaMemory::take(),
            slots: (0..HSQ_SLOTS).map(|_| Vec::with_capacity(DMA_SEGMENTS.into())).collect(),
            own_block: [0; SECTOR_BYTES as usize],
            running: None,
            events: VecDeque::with_capacity(8),
            commands: 0,
            transfers_to_fail: 0,
        }
    }

    /// Returns the name of the way in which data moves.
    pub(crate) const fn dma(&self) -> &'static str {
        if self.features.adma2 { "ADMA2" } else { "SDMA" }
    }

    /// Returns how often the controller has interrupted.
    pub(crate) fn interrupts(&self) -> u32 {
        self.line.interrupts()
    }

    /// Returns whether a card is in the slot.
    pub(crate) fn has_card(&self) -> bool {
        self.registers.read_32(register::PRESENT) & present::CARD != 0
    }

    /// Identifies the card, after a reset of the controller.
    pub(crate) fn identify(&mut self) -> Result<Box<Card>, Failure> {
        self.reset_parts(reset::ALL);
        self.registers.write_32(register::STATUS_ENABLE, status::USED);
        self.registers.write_32(register::SIGNAL_ENABLE, status::USED);
        self.running = None;
        self.events.clear();
        self.line.rearm();
        bring_up(self)
    }

    /// Translates bits of STATUS into events.
    fn translate(&mut self, bits: u32) {
        if bits & status::CARD_REMOVED != 0 && !self.has_card() {
            self.take_off();
            return self.events.push_back(HostEvent::CardGone);
        }
        let Some(running) = self.running else { return };
        if bits & status::COMMAND_ERRORS != 0 {
            let is_timeout = bits & status::COMMAND_TIMEOUT != 0;
            let error = if is_timeout { HostError::Timeout } else { HostError::Damaged };
            return self.fail(Part::Command, error);
        }
        if bits & status::COMMAND_COMPLETE != 0 {
            self.command_complete(&running);
        }
        if bits & status::ERRORS != 0 {
            let part = match running.data() {
                _ if bits & status::AUTO_COMMAND != 0 => Part::Stop,
                Some(_) => Part::Data,
                None => Part::Busy,
            };
            let error = match bits {
                _ if bits & status::ADMA != 0 => HostError::Memory,
                _ if bits & status::DATA_DAMAGED != 0 => HostError::Damaged,
                _ => HostError::Timeout,
            };
            self.fail(part, error);
        } else if bits & status::TRANSFER_COMPLETE != 0 {
            self.transfer_complete(&running);
        }
    }

    /// Reports the response.
    fn command_complete(&mut self, request: &MmcRequest) {
        let response = self.response(request.command.response);
        self.events.push_back(HostEvent::CommandDone { part: Part::Command, response });
        if request.data().is_none() && !request.ends_busy() {
            self.running = None;
        }
    }

    /// Reports everything that the end of data or busy ends.
    fn transfer_complete(&mut self, request: &MmcRequest) {
        self.running = None;
        if request.payload == Payload::Block {
            self.memory.read(self.memory.start() + OWN_BLOCK, &mut self.own_block);
        }
        let stopped = Response::Short(self.registers.read_32(register::RESPONSE_AUTO));
        let events = request.parts().filter_map(|part| match part {
            // The host's capabilities have no CMD23.
            Part::Announce | Part::Command => None,
            Part::Data => Some(HostEvent::DataDone),
            Part::Stop => Some(HostEvent::CommandDone { part, response: stopped }),
            Part::Busy => Some(HostEvent::BusyReleased),
        });
        self.events.extend(events);
    }

    fn fail(&mut self, part: Part, error: HostError) {
        self.take_off();
        self.events.push_back(HostEvent::Error { part, error, blocks: 0 });
    }

    /// Takes the request off the bus.
    fn take_off(&mut self) {
        self.reset_parts(reset::COMMAND_AND_DATA);
        let left = self.registers.read_32(register::STATUS);
        let card = status::CARD_INSERTED | status::CARD_REMOVED;
        self.registers.write_32(register::STATUS, left & !card);
        self.running = None;
    }

    fn reset_parts(&self, bits: u8) {
        self.registers.write_8(register::RESET, bits);
        while self.registers.read_8(register::RESET) & bits != 0 {}
    }

    fn response(&self, kind: ResponseKind) -> Response {
        match kind.bits() {
            0 => Response::None,
            48 => Response::Short(self.registers.read_32(register::RESPONSE)),
            _ => {
                // Without the CRC, so shifted down by 8 bits.
                let word = |at: usize| {
                    u128::from(self.registers.read_32(register::RESPONSE + at)) << (8 * at)
                };
                let bits: u128 = [0, 4, 8, 12].map(word).iter().sum();
                Response::Long(Bits((bits << 8).to_be_bytes()))
            }
        }
    }

    /// Puts the command of `request` on the bus, with its data.
    fn send(&mut self, request: &MmcRequest) {
        let command = &request.command;
        let data = command.data.map_or(0, |data| {
            let reads = data.direction == Direction::Read;
            command::HAS_DATA
                | mode::DMA
                | if reads { mode::READS } else { 0 }
                | if data.blocks > 1 { mode::SEVERAL_BLOCKS | mode::COUNTS_BLOCKS } else { 0 }
                | if request.stop.is_some() { mode::AUTO_CMD12 } else { 0 }
        });
        let waits = command.data.is_some() || command.response.has_busy();
        let stops = command.opcode == Opcode::StopTransmission;
        let response = match command.response {
            ResponseKind::None => 0,
            ResponseKind::R2 => command::LONG | command::CHECKS_CRC,
            ResponseKind::R3 | ResponseKind::R4 => command::SHORT,
            ResponseKind::R1b => command::SHORT_BUSY | command::CHECKS_CRC | command::CHECKS_INDEX,
            ResponseKind::R1 | ResponseKind::R6 | ResponseKind::R7 => {
                command::SHORT | command::CHECKS_CRC | command::CHECKS_INDEX
            }
        };
        let inhibit =
            present::COMMAND_INHIBIT | if waits && !stops { present::DATA_INHIBIT } else { 0 };
        // A controller that is not free in time will not answer: the request path has a limit.
        let mut checks = 0..100_000;
        while self.registers.read_32(register::PRESENT) & inhibit != 0 && checks.next().is_some() {}
        self.commands += 1;
        self.registers.write_32(register::ARGUMENT, command.argument);
        let word = data
            | response
            | if stops { command::ABORTS } else { 0 }
            | u32::from(command.opcode.index()) << command::INDEX_SHIFT;
        self.registers.write_32(register::MODE_AND_COMMAND, word);
    }

    /// Tells the controller how long the card may keep it waiting: for longer if its counter is
    /// coarser, and for ever if the counter does not reach that far.
    fn limit(&self, request: &MmcRequest) {
        let counter = self.features.timeout(request.limit);
        let off = if counter.is_some() { 0 } else { status::DATA_TIMEOUT };
        self.registers.write_32(register::STATUS_ENABLE, status::USED & !off);
        self.registers.write_8(register::TIMEOUT, counter.unwrap_or(14));
    }

    /// Tells the controller where the data is.
    fn aim(&mut self, request: &MmcRequest) {
        let Some(data) = request.data() else { return };
        let own = self.memory.start() + OWN_BLOCK;
        let (table, first) = match request.payload {
            Payload::Slot { slot, skip } => {
                if skip > 0 {
                    self.describe(slot, skip); // after an error, the rest
                }
                // With SDMA a request has one segment.
                let first = self.slots[slot.index()][0].address + skip * SECTOR_BYTES;
                (self.table(slot.0.into()), first)
            }
            Payload::Block => {
                let table = self.table(OWN_TABLE);
                self.memory.write(own, &self.own_block);
                self.describe_all(table, &[Segment { address: own, bytes: data.bytes() }], 0);
                (table, own)
            }
            Payload::None | Payload::Packed(_) => unreachable!("the policy packs no requests"),
        };
        let fails = self.transfers_to_fail > 0 && request.payload != Payload::Block;
        self.transfers_to_fail -= u32::from(fails);
        let table = if fails { self.table(INVALID_TABLE) } else { table };
        if self.features.adma2 {
            self.registers.write_32(register::ADMA_ADDRESS, table);
        } else {
            let last = first + data.bytes() - 1;
            assert_eq!(first / SDMA_BOUNDARY, last / SDMA_BOUNDARY, "memory across a boundary");
            self.registers.write_32(register::SDMA_ADDRESS, first);
        }
        let block_size = register::LARGEST_SDMA_BOUNDARY | data.block_bytes;
        self.registers.write_16(register::BLOCK_SIZE, block_size);
        self.registers.write_16(register::BLOCK_COUNT, data.blocks);
    }

    /// Returns the address of the table of descriptors with this number, which is that of a slot,
    /// or one of those behind the slots.
    fn table(&self, number: u32) -> u32 {
        self.memory.start() + TABLES + number * TABLE_BYTES
    }

    /// Writes the table of `slot`, from block `skip` of its memory on.
    fn describe(&mut self, slot: SlotId, skip: u32) {
        let segments = core::mem::take(&mut self.slots[slot.index()]);
        self.describe_all(self.table(slot.0.into()), &segments, skip * SECTOR_BYTES);
        self.slots[slot.index()] = segments;
    }

    /// Writes a table of `segments`, without their first `skip` bytes.
    fn describe_all(&mut self, table: u32, segments: &[Segment], mut skip: u32) {
        let mut at = table;
        let mut last = 0;
        for segment in segments {
            let passed = skip.min(segment.bytes);
            skip -= passed;
            let mut address = segment.address + passed;
            let end = segment.address + segment.bytes;
            while address < end {
                let bytes = (end - address).min(descriptor::TRANSFER_BYTES_MAX);
                let [low, high, ..] = bytes.to_le_bytes(); // two zeroes are 64 KiB
                let [attributes, none] = descriptor::TRANSFER.to_le_bytes();
                self.memory.write(at, &[attributes, none, low, high]);
                self.memory.write(at + 4, &address.to_le_bytes());
                (last, at, address) = (at, at + descriptor::BYTES, address + bytes);
            }
        }
        assert!((1..=TABLE_DESCRIPTORS).contains(&((at - table) / descriptor::BYTES)));
        let attributes = descriptor::TRANSFER | descriptor::IS_LAST;
        self.memory.write(last, &attributes.to_le_bytes());
    }
}

impl HostController for Sdhci {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// The cookie of a bio is the address of its memory.
    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let segments = &mut self.slots[slot.index()];
        segments.clear();
        segments.extend(issue.pieces().map(|piece| Segment {
            address: u32::try_from(piece.cookie).expect("address in a cookie")
                + piece.offset_sectors * SECTOR_BYTES,
            bytes: piece.sectors * SECTOR_BYTES,
        }));
    }

    /// The processor's cache is coherent with DMA, so only the table has to be written.
    fn prepare(&mut self, slot: SlotId) {
        self.describe(slot, 0);
    }

    fn post(&mut self, _slot: SlotId) {}

    fn block(&mut self) -> &mut [u8; 512] {
        &mut self.own_block
    }

    fn start(&mut self, request: &MmcRequest, _now: Instant) {
        self.limit(request);
        self.aim(request);
        self.running = Some(*request);
        self.send(request);
    }

    /// Writing registers takes no sleep, so the interrupt handler can do it, too.
    fn start_atomic(&mut self, request: &MmcRequest, now: Instant) -> Result<(), NotNow> {
        self.start(request, now);
        Ok(())
    }

    fn card_busy(&mut self, _now: Instant) -> bool {
        self.registers.read_32(register::PRESENT) & present::DAT0 == 0
    }

    fn abort(&mut self, _now: Instant) {
        self.take_off();
        self.events.clear();
    }

    fn reset(&mut self, _now: Instant) -> Result<Target, HostError> {
        let card = self.identify().map_err(|_| HostError::Timeout)?;
        Ok(Target::of(&card, &self.capabilities))
    }
}

/// Of the modes, high speed at most: QEMU's cards do not change to signals at 1.8 V.
impl Board for Sdhci {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn next_event(&mut self) -> Option<HostEvent> {
        if self.events.is_empty() && self.line.has_fired() {
            let status = self.registers.read_32(register::STATUS);
            self.registers.write_32(register::STATUS, status);
            self.line.rearm();
            self.translate(status);
        }
        self.events.pop_front()
    }

    /// Sleeps for a millisecond at most, which is the tick of the machine.
    fn sleep(&mut self, _limit: Instant) {
        self.line.wait();
    }

    /// Changes clock, width and timing, while the clock stands still.
    fn drive(&mut self, mode: Mode) {
        let registers = self.registers;
        registers.write_16(register::CLOCK, 0);
        let width = if mode.width == Width::One { 0 } else { host_control::FOUR_LANES };
        let basic = matches!(mode.timing, Timing::SdDefault | Timing::MmcLegacy);
        let speed = if basic { 0 } else { host_control::HIGH_SPEED };
        let dma = if self.features.adma2 { host_control::ADMA2 } else { 0 };
        registers.write_8(register::HOST_CONTROL, width | speed | dma);
        let running = self.features.divisor_bits(mode.clock_hz) | clock::RUNS;
        registers.write_16(register::CLOCK, running);
        while registers.read_16(register::CLOCK) & clock::IS_STABLE == 0 {}
        registers.write_16(register::CLOCK, running | clock::GOES_TO_CARD);
    }

    fn power(&mut self, is_on: bool) {
        let power = if is_on { register::POWER_3V3 } else { 0 };
        self.registers.write_8(register::POWER, power);
    }
}
