//! The chip, simulated: RAM, a timer, and a controller with the registers of the SD Host Controller
//! Standard (SDHCI), as far as this firmware uses them. Time passes only here.
//!
//! A firmware author has the real one instead: `read` and `write` are volatile accesses, `wait` is
//! the instruction that sleeps until an interrupt.

use crate::card::Card;
use alloc::vec;
use alloc::vec::Vec;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::{Response, ResponseKind};
use blockyard_mmc::mode::{Mode, NRC};

/// Registers, by their offset in bytes.
pub(crate) const ARGUMENT_2: usize = 0x00;
pub(crate) const BLOCKS: usize = 0x04;
pub(crate) const ARGUMENT: usize = 0x08;
/// Transfer mode and command: writing it puts the command on the bus.
pub(crate) const COMMAND: usize = 0x0c;
pub(crate) const RESPONSE: usize = 0x10;
/// The answer to CMD12 or CMD23, where the controller sends them by itself.
pub(crate) const RESPONSE_AUTO: usize = 0x1c;
/// Which interrupts are up; ones that are written take them down.
pub(crate) const STATUS: usize = 0x30;
/// Where in RAM the table of descriptors is (ADMA2).
pub(crate) const TABLE: usize = 0x58;

/// Bits of COMMAND; the index is in the highest byte. A real one also wants to be told the kind of the
/// response, and that it is to use DMA and to count blocks.
pub(crate) const AUTO_CMD12: u32 = 1 << 2;
pub(crate) const AUTO_CMD23: u32 = 1 << 3;
pub(crate) const READS: u32 = 1 << 4;
pub(crate) const HAS_DATA: u32 = 1 << 21;
/// Bits of STATUS.
pub(crate) const COMPLETE: u32 = 1 << 1;
pub(crate) const COMMAND_TIMEOUT: u32 = 1 << 16;
pub(crate) const DATA_TIMEOUT: u32 = 1 << 20;

/// A descriptor: attributes, length (0: 64 KiB) and address. Attributes: "transfer", and "the last".
pub(crate) const DESCRIPTOR_BYTES: usize = 8;
pub(crate) const DESCRIBES: u8 = 0x21;
pub(crate) const IS_LAST: u8 = 0x02;

/// Clocks between a command and its response.
const NCR: u32 = 5;
/// When the controller gives up on data.
const DATA_LIMIT: Duration = Duration::from_ms(100);
/// From an interrupt to the first line of its handler.
const INTERRUPT_LATENCY: Duration = Duration::from_us(2);
/// Cache maintenance, per KiB.
const CACHE_PER_KIB: Duration = Duration::from_us(2);

/// How a bus was used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BusUse {
    pub(crate) transactions: u32,
    /// In sum, from the end of each to the start of the next.
    pub(crate) gaps: Duration,
}

/// The chip.
pub(crate) struct Chip {
    /// Reached by the processor and by the controller's DMA: an address is an index.
    pub(crate) ram: Vec<u8>,
    pub(crate) bus_use: BusUse,
    registers: [u32; 24],
    card: Card,
    mode: Option<Mode>,
    now: Instant,
    /// The interrupt to come: when, and its bits of STATUS.
    pending: Option<(Instant, u32)>,
    idle_since: Instant,
}

impl Chip {
    pub(crate) fn new(ram_bytes: usize, card: Card) -> Self {
        Self {
            ram: vec![0; ram_bytes],
            bus_use: BusUse::default(),
            registers: [0; 24],
            card,
            mode: None,
            now: Instant::ZERO,
            pending: None,
            idle_since: Instant::ZERO,
        }
    }

    /// The timer.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The processor is busy for so long.
    pub(crate) fn spend(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Cache maintenance by address: what makes memory ready for DMA, and for the processor again.
    pub(crate) fn maintain_cache(&mut self, bytes: u32) {
        self.spend(Duration::from_ns(CACHE_PER_KIB.as_ns() * u64::from(bytes) / 1024));
    }

    /// Sleeps until an interrupt comes, and until `limit` at most.
    pub(crate) fn wait(&mut self, limit: Option<Instant>) {
        let interrupt = self.pending.map(|(at, _)| at + INTERRUPT_LATENCY);
        let wakes = interrupt.into_iter().chain(limit).min();
        self.now = self.now.max(wakes.expect("something is awaited"));
    }

    /// Clock, width and timing, which are registers too.
    pub(crate) const fn drive(&mut self, mode: Mode) {
        self.mode = Some(mode);
    }

    pub(crate) fn read(&mut self, register: usize) -> u32 {
        if let Some((at, bits)) = self.pending.filter(|&(at, _)| at <= self.now) {
            self.registers[STATUS / 4] |= bits;
            (self.pending, self.idle_since) = (None, at);
        }
        self.registers[register / 4]
    }

    pub(crate) fn write(&mut self, register: usize, value: u32) {
        match register {
            STATUS => self.registers[STATUS / 4] &= !value,
            _ => self.registers[register / 4] = value,
        }
        if register == COMMAND {
            self.bus_use.transactions += 1;
            self.bus_use.gaps += self.now.since(self.idle_since);
            let (takes, bits) = self.play(value);
            self.pending = Some((self.now + takes, bits));
        }
    }

    /// Takes off the bus what is on it.
    pub(crate) const fn abort(&mut self) {
        self.pending = None;
        self.idle_since = self.now;
    }

    /// Plays what COMMAND says against the card: how long it takes, busy included, and its interrupt.
    fn play(&mut self, command: u32) -> (Duration, u32) {
        let mode = self.mode.expect("the bus is driven");
        let [index, ..] = command.to_be_bytes();
        let (has_data, reads) = (command & HAS_DATA != 0, command & READS != 0);
        let (access, busy) = Card::delays(index);
        let mut clocks = mode.command_clocks(ResponseKind::R1, NCR) + u64::from(NRC);
        if command & (AUTO_CMD12 | AUTO_CMD23) != 0 {
            clocks *= 2;
        }
        if command & AUTO_CMD23 != 0 && self.auto(23, self.registers[ARGUMENT_2 / 4]).is_none() {
            return (mode.time(clocks), COMMAND_TIMEOUT);
        }
        match self.card.command(index, self.registers[ARGUMENT / 4], has_data) {
            None => return (mode.time(clocks), COMMAND_TIMEOUT),
            Some(Response::None) => {}
            Some(Response::Short(bits)) => self.registers[RESPONSE / 4] = bits,
            // As SDHCI has it: without the CRC, so moved down by 8 bits.
            Some(Response::Long(bits)) => {
                let bytes = (u128::from_be_bytes(bits.0) >> 8).to_le_bytes();
                for (word, bytes) in bytes.as_chunks().0.iter().enumerate() {
                    self.registers[RESPONSE / 4 + word] = u32::from_le_bytes(*bytes);
                }
            }
        }
        if has_data {
            let (blocks, block_bytes) =
                (self.registers[BLOCKS / 4] >> 16, self.registers[BLOCKS / 4] & 0xfff);
            if self.transfer(blocks * block_bytes, reads).is_none() {
                return (DATA_LIMIT, DATA_TIMEOUT);
            }
            clocks += match reads {
                true => mode.read_clocks(block_bytes, blocks),
                false => mode.write_clocks(block_bytes, blocks),
            };
        }
        if command & AUTO_CMD12 != 0 && self.auto(12, 0).is_none() {
            return (mode.time(clocks), COMMAND_TIMEOUT);
        }
        (access + mode.time(clocks) + busy, COMPLETE)
    }

    /// CMD12 or CMD23, which the controller sends by itself; the answer has a place of its own.
    fn auto(&mut self, index: u8, argument: u32) -> Option<()> {
        let answer = self.card.command(index, argument, false)?;
        self.registers[RESPONSE_AUTO / 4] = answer.short()?;
        Some(())
    }

    /// DMA: moves `bytes` between the card and what the table of descriptors names.
    fn transfer(&mut self, bytes: u32, reads: bool) -> Option<()> {
        let mut left = bytes as usize;
        let mut table = self.registers[TABLE / 4] as usize;
        while left > 0 {
            let [attributes, _, low, high, address @ ..] =
                *self.ram[table..].first_chunk::<DESCRIPTOR_BYTES>()?;
            if attributes & DESCRIBES != DESCRIBES {
                return None;
            }
            let (length, address) = (u16::from_le_bytes([low, high]), u32::from_le_bytes(address));
            let length = if length == 0 { 1 << 16 } else { usize::from(length) }.min(left);
            for block in self.ram[address as usize..][..length].chunks_mut(512) {
                if reads { self.card.read(block)? } else { self.card.write(block)? }
            }
            (left, table) = (left - length, table + DESCRIPTOR_BYTES);
        }
        Some(())
    }
}
