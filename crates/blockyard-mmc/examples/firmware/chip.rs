//! The simulated chip: RAM, a timer, and a controller with those registers of the SD Host
//! Controller Standard (SDHCI) that this firmware uses. Time passes only here.
//!
//! A firmware author has the real chip instead: `read` and `write` are volatile accesses, and
//! `wait` is the instruction that sleeps until an interrupt.

use crate::card::Card;
use alloc::vec;
use alloc::vec::Vec;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::{Response, ResponseKind};
use blockyard_mmc::mode::{Mode, NRC};

/// The registers, by their offset in bytes.
pub(crate) const ARGUMENT_2: usize = 0x00;
pub(crate) const BLOCKS: usize = 0x04;
pub(crate) const ARGUMENT: usize = 0x08;
/// Transfer mode and command: writing it puts the command on the bus.
pub(crate) const COMMAND: usize = 0x0c;
pub(crate) const RESPONSE: usize = 0x10;
/// The response to a CMD12 or CMD23 that the controller sends by itself.
pub(crate) const RESPONSE_AUTO: usize = 0x1c;
/// The pending interrupts; writing a bit clears it.
pub(crate) const STATUS: usize = 0x30;
/// The address in RAM of the table of descriptors (ADMA2).
pub(crate) const TABLE: usize = 0x58;

/// Bits of COMMAND; the highest byte has the index. A real controller also needs the kind of the
/// response, and bits for DMA and the block count.
pub(crate) const AUTO_CMD12: u32 = 1 << 2;
pub(crate) const AUTO_CMD23: u32 = 1 << 3;
pub(crate) const READS: u32 = 1 << 4;
pub(crate) const HAS_DATA: u32 = 1 << 21;
/// Bits of STATUS.
pub(crate) const COMPLETE: u32 = 1 << 1;
pub(crate) const COMMAND_TIMEOUT: u32 = 1 << 16;
pub(crate) const DATA_TIMEOUT: u32 = 1 << 20;

/// A descriptor: attributes, length (0: 64 KiB) and address. Attributes: "transfer", and "the
/// last".
pub(crate) const DESCRIPTOR_BYTES: usize = 8;
pub(crate) const DESCRIBES: u8 = 0x21;
pub(crate) const IS_LAST: u8 = 0x02;

/// Clocks between a command and its response.
const NCR: u32 = 5;
/// The time after which the controller gives up on data.
const DATA_LIMIT: Duration = Duration::from_ms(100);
/// The time from an interrupt to the first line of its handler.
const INTERRUPT_LATENCY: Duration = Duration::from_us(2);
/// The cost of cache maintenance, per KiB.
const CACHE_PER_KIB: Duration = Duration::from_us(2);

/// The use of the bus.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BusUse {
    pub(crate) transactions: u32,
    /// The sum of the gaps, each from the end of a request to the start of the next.
    pub(crate) gaps: Duration,
}

/// The chip.
pub(crate) struct Chip {
    /// The memory, which processor and DMA share: an address is an index.
    pub(crate) ram: Vec<u8>,
    pub(crate) bus_use: BusUse,
    registers: [u32; 24],
    card: Card,
    mode: Option<Mode>,
    now: Instant,
    /// The next interrupt: its instant, and its bits of STATUS.
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

    /// Returns the time of the timer.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Keeps the processor busy for this long.
    pub(crate) fn spend(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Maintains the cache for a range of addresses, for DMA or for the processor.
    pub(crate) fn maintain_cache(&mut self, bytes: u32) {
        self.spend(Duration::from_ns(CACHE_PER_KIB.as_ns() * u64::from(bytes) / 1024));
    }

    /// Sleeps until an interrupt comes, or until `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Instant>) {
        let interrupt = self.pending.map(|(at, _)| at + INTERRUPT_LATENCY);
        let wakes = interrupt.into_iter().chain(limit).min();
        self.now = self.now.max(wakes.expect("limit or interrupt to wake up for"));
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

    /// Takes the request on the bus off it.
    pub(crate) const fn abort(&mut self) {
        self.pending = None;
        self.idle_since = self.now;
    }

    /// Plays COMMAND against the card: its duration, busy included, and its interrupt.
    fn play(&mut self, command: u32) -> (Duration, u32) {
        let mode = self.mode.expect("mode of the bus");
        let [index, ..] = command.to_be_bytes();
        let has_data = command & HAS_DATA != 0;
        let reads = command & READS != 0;
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
            // As in SDHCI: without the CRC, so shifted down by 8 bits.
            Some(Response::Long(bits)) => {
                let bytes = (u128::from_be_bytes(bits.0) >> 8).to_le_bytes();
                for (word, bytes) in bytes.as_chunks().0.iter().enumerate() {
                    self.registers[RESPONSE / 4 + word] = u32::from_le_bytes(*bytes);
                }
            }
        }
        if has_data {
            let blocks = self.registers[BLOCKS / 4] >> 16;
            let block_bytes = self.registers[BLOCKS / 4] & 0xfff;
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

    /// Sends CMD12 or CMD23 for the controller; the response has a register of its own.
    fn auto(&mut self, index: u8, argument: u32) -> Option<()> {
        let answer = self.card.command(index, argument, false)?;
        self.registers[RESPONSE_AUTO / 4] = answer.short()?;
        Some(())
    }

    /// DMA: moves `bytes` between the card and the memory of the table of descriptors.
    fn transfer(&mut self, bytes: u32, reads: bool) -> Option<()> {
        let mut left = bytes as usize;
        let mut table = self.registers[TABLE / 4] as usize;
        while left > 0 {
            let [attributes, _, low, high, address @ ..] =
                *self.ram[table..].first_chunk::<DESCRIPTOR_BYTES>()?;
            if attributes & DESCRIBES != DESCRIBES {
                return None;
            }
            let length = u16::from_le_bytes([low, high]);
            let address = u32::from_le_bytes(address);
            let length = if length == 0 { 1 << 16 } else { usize::from(length) }.min(left);
            for block in self.ram[address as usize..][..length].chunks_mut(512) {
                if reads { self.card.read(block)? } else { self.card.write(block)? }
            }
            (left, table) = (left - length, table + DESCRIPTOR_BYTES);
        }
        Some(())
    }
}
