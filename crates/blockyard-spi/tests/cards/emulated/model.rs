//! The card: bytes in, bytes out.

use super::registers::{Kind, cid, crc7, crc16};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The size of every emulated card.
pub(crate) const SECTORS: u32 = 8192;

/// A command as the card received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) index: u8,
    pub(crate) app: bool,
    pub(crate) argument: u32,
}

/// What the card expects next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A command.
    Ready,
    /// CMD12, while it sends blocks from `sector` on; after one block only if there are `many`.
    Reading { sector: u32, many: bool },
    /// A start token for the block of `sector`, and nothing else.
    Token { sector: u32, many: bool },
    /// The rest of a block with its checksum.
    Block { sector: u32, many: bool, bytes: Vec<u8> },
    /// Only CMD12: a transfer of many blocks has failed.
    Failed,
}

/// An SD card.
pub(crate) struct Model {
    pub(crate) kind: Kind,
    pub(crate) data: Vec<u8>,
    pub(crate) log: Vec<Sent>,
    /// Whether the card is in the slot.
    pub(crate) present: bool,
    /// The clock that the host has set, and the fastest so far.
    pub(crate) hz: u32,
    pub(crate) now_ns: u64,
    /// Faults: how often the block of a sector is damaged on its way to the host, or to the card.
    pub(crate) damaged_reads: BTreeMap<u32, u32>,
    pub(crate) damaged_writes: BTreeMap<u32, u32>,
    /// The same of the start token of a block for the host.
    pub(crate) damaged_tokens: BTreeMap<u32, u32>,
    /// Sectors that cannot be read, or written.
    pub(crate) unreadable: BTreeSet<u32>,
    pub(crate) unwritable: BTreeSet<u32>,
    /// Commands that are damaged on their way, or get no answer.
    pub(crate) damaged_commands: u32,
    pub(crate) mute_commands: u32,
    /// The next block that is written keeps the card busy for so long.
    pub(crate) busy_ms: Option<u64>,
    /// Reads never get a block.
    pub(crate) stalled: bool,
    /// The host may break off what it does: until CMD0, nothing is held against it.
    pub(crate) rough: bool,
    /// The card answers CMD58 as if it were idle still, as QEMU's does.
    pub(crate) says_idle: bool,
    /// The bit of the OCR that tells how addresses count is damaged on the wire: no checksum tells.
    pub(crate) flips_capacity: bool,
    pub(super) serial: u32,
    pub(super) erases_all: bool,
    selected: bool,
    /// Clocks without selection since power-up, and bytes since the last selection.
    unselected_clocks: u32,
    unselected_bytes: u32,
    /// Whether the last byte was idle in both directions: one such byte is between a response and
    /// what follows.
    quiet: bool,
    pub(super) unflushed: bool,
    pub(super) phase: Phase,
    partial: Vec<u8>,
    pub(super) out: VecDeque<u8>,
    pub(super) busy_until_ns: u64,
    pub(super) idle: bool,
    pub(super) crc_on: bool,
    pub(super) app: bool,
    pub(super) power_ups: u32,
    pub(super) block_bytes: u32,
    pub(super) written: u32,
    pub(super) status: u8,
    pub(super) erase: [Option<u32>; 2],
    gap: u32,
}

impl Model {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, 1, true)
    }

    /// A card with this serial number. `erases_all`: single sectors can be erased.
    pub(crate) fn with(kind: Kind, serial: u32, erases_all: bool) -> Self {
        Self {
            kind,
            data: vec![0; SECTORS as usize * 512],
            log: Vec::new(),
            present: true,
            hz: 100_000_000,
            now_ns: 0,
            damaged_reads: BTreeMap::new(),
            damaged_writes: BTreeMap::new(),
            damaged_tokens: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            unwritable: BTreeSet::new(),
            damaged_commands: 0,
            mute_commands: 0,
            busy_ms: None,
            stalled: false,
            rough: false,
            says_idle: false,
            flips_capacity: false,
            serial,
            erases_all,
            selected: false,
            unselected_clocks: 0,
            unselected_bytes: 1,
            quiet: true,
            unflushed: false,
            phase: Phase::Ready,
            partial: Vec::new(),
            out: VecDeque::new(),
            busy_until_ns: 0,
            idle: true,
            crc_on: false,
            app: false,
            power_ups: 3,
            block_bytes: 1024,
            written: 0,
            status: 0,
            erase: [None; 2],
            gap: 0,
        }
    }

    /// How often the host sent a command.
    pub(crate) fn count(&self, index: u8) -> usize {
        self.log.iter().filter(|sent| sent.index == index && !sent.app).count()
    }

    pub(crate) fn sector(&mut self, sector: u32) -> &mut [u8] {
        &mut self.data[sector as usize * 512..][..512]
    }

    /// The card is taken out, and put in again: it has lost its power in between.
    pub(crate) fn power_cycle(&mut self) {
        let fresh = Self::with(self.kind, self.serial, self.erases_all);
        let kept = std::mem::replace(self, fresh);
        (self.data, self.log, self.hz, self.now_ns) = (kept.data, kept.log, kept.hz, kept.now_ns);
        (self.selected, self.unflushed, self.rough) = (kept.selected, kept.unflushed, true);
    }

    pub(super) fn csd(&self) -> [u8; 16] {
        self.kind.csd(SECTORS, self.erases_all)
    }

    pub(super) fn cid(&self) -> [u8; 16] {
        cid(self.serial)
    }

    fn check(&self, holds: bool, rule: &str) {
        assert!(
            holds || self.rough || !self.present,
            "{rule}; {:?}, {:?}",
            self.phase,
            self.log.last()
        );
    }

    pub(super) fn select(&mut self, selected: bool) {
        self.check(!self.unflushed, "the chip select moved before the last bit");
        if selected && !self.selected {
            self.quiet = true;
            self.check(self.unselected_bytes > 0, "no clocks between two selections");
        }
        if !selected && self.selected {
            self.check(self.partial.is_empty(), "deselected within a command");
            self.check(self.phase == Phase::Ready, "deselected within a transfer");
            self.check(self.out.is_empty(), "deselected before the end of a response");
            self.out.clear();
            self.unselected_bytes = 0;
        }
        self.selected = selected;
    }

    /// Eight clocks.
    pub(super) fn exchange(&mut self, received: u8) -> u8 {
        self.now_ns += 8_000_000_000 / u64::from(self.hz);
        if !self.present {
            return 0xff;
        }
        if !self.selected {
            self.check(received == 0xff, "the line must be high without selection");
            self.unselected_clocks += 8;
            self.unselected_bytes += 1;
            return 0xff;
        }
        let is_quiet = self.out.is_empty() && received == 0xff && !self.is_busy();
        let sent = self.next_out();
        self.take(received);
        self.quiet = is_quiet;
        sent
    }

    pub(super) fn is_busy(&self) -> bool {
        self.now_ns < self.busy_until_ns
    }

    fn next_out(&mut self) -> u8 {
        if let Some(byte) = self.out.pop_front() {
            return byte;
        }
        if self.is_busy() {
            return 0;
        }
        if let Phase::Reading { sector, many } = self.phase {
            self.send_block(sector, many);
        }
        self.out.pop_front().unwrap_or(0xff)
    }

    fn send_block(&mut self, sector: u32, many: bool) {
        if self.stalled {
            self.rough = true; // the host has to break off
            return;
        }
        let token = match sector {
            SECTORS.. => Some(0x08),
            _ if self.unreadable.contains(&sector) => Some(0x04),
            _ => None,
        };
        self.out.extend([0xff; 3]);
        if let Some(token) = token {
            self.out.push_back(token);
            self.phase = if many { Phase::Failed } else { Phase::Ready };
            return;
        }
        let block = self.sector(sector).to_vec();
        self.push_block(&block);
        if count_down(&mut self.damaged_tokens, sector) {
            let token = self.out.len() - 515;
            self.out[token] ^= 0x40;
        }
        if count_down(&mut self.damaged_reads, sector) {
            let last = self.out.len() - 100;
            self.out[last] ^= 0x10;
        }
        self.phase = if many { Phase::Reading { sector: sector + 1, many } } else { Phase::Ready };
    }

    pub(super) fn push_block(&mut self, bytes: &[u8]) {
        self.out.push_back(0xfe);
        self.out.extend(bytes);
        self.out.extend(crc16(bytes));
    }

    /// Pushes R1 behind one to eight bytes, the longest and the shortest time that a card may take.
    pub(super) fn respond(&mut self, response: u8) {
        self.gap = self.gap % 8 + 1;
        self.out.extend((0..self.gap).map(|_| 0xff));
        self.out.push_back(response | u8::from(self.idle));
    }

    fn take(&mut self, byte: u8) {
        match self.phase.clone() {
            Phase::Block { sector, many, mut bytes } => {
                bytes.push(byte);
                self.phase = Phase::Block { sector, many, bytes };
                self.end_block();
            }
            Phase::Token { sector, many } => self.take_token(byte, sector, many),
            _ if !self.partial.is_empty() || byte >> 6 == 0b01 => self.take_command(byte),
            _ => self.check(byte == 0xff, "neither a command nor an idle byte"),
        }
    }

    fn take_token(&mut self, byte: u8, sector: u32, many: bool) {
        match byte {
            0xff => {}
            _ if !self.quiet => self.check(false, "no idle byte before a token"),
            0xfe | 0xfc if many == (byte == 0xfc) => {
                self.phase = Phase::Block { sector, many, bytes: Vec::new() };
            }
            0xfd if many => {
                self.out.push_back(0xff);
                self.busy_until_ns = self.now_ns + 700_000;
                self.phase = Phase::Ready;
            }
            _ => self.check(false, "no such token"),
        }
    }

    fn end_block(&mut self) {
        let Phase::Block { sector, many, bytes } = &self.phase else { return };
        let sector = *sector;
        let many = *many;
        let Some((block, crc)) = bytes.split_at_checked(512).filter(|(_, crc)| crc.len() == 2)
        else {
            return;
        };
        let is_whole = crc == crc16(block);
        let block = block.to_vec();
        self.check(is_whole, "the host sent a block with a wrong checksum");
        let is_damaged = count_down(&mut self.damaged_writes, sector);
        let response = match sector {
            _ if !is_whole || is_damaged => 0b1011,
            SECTORS.. => 0b1101,
            _ if self.unwritable.contains(&sector) => {
                self.status = 0x04; // an error of the medium
                0b1101
            }
            _ => 0b0101,
        };
        self.out.push_back(0xe0 | response);
        let busy_ns = self.busy_ms.take().map_or(300_000, |ms| ms * 1_000_000);
        self.rough |= busy_ns > 500_000_000; // the host may break off
        self.busy_until_ns = self.now_ns + busy_ns;
        let is_written = response == 0b0101;
        if is_written {
            self.sector(sector).copy_from_slice(&block);
            self.written += 1;
        }
        self.phase = match (many, is_written) {
            (false, _) => Phase::Ready,
            (true, true) => Phase::Token { sector: sector + 1, many },
            (true, false) => Phase::Failed,
        };
    }

    fn take_command(&mut self, byte: u8) {
        let ends_a_read = byte == 0x4c && self.phase != Phase::Ready;
        if self.partial.is_empty() && !ends_a_read {
            self.check(self.quiet, "no idle byte before a command");
        }
        self.partial.push(byte);
        if self.partial.len() < 6 {
            return;
        }
        let bytes = std::mem::take(&mut self.partial);
        let index = bytes[0] & 0x3f;
        let argument = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let is_whole = bytes[5] == crc7(&bytes[..5]) << 1 | 1;
        if index == 0 {
            self.check(self.unselected_clocks >= 74, "CMD0 before 74 clocks");
            self.check(self.hz <= 400_000, "an identification with a fast clock");
            self.rough &= self.phase != Phase::Ready || self.is_busy();
        }
        if self.is_busy() {
            return; // and none is taken
        }
        let is_damaged = self.damaged_commands > 0;
        self.damaged_commands = self.damaged_commands.saturating_sub(1);
        self.check(is_whole || !self.crc_on, "the host sent a command with a wrong checksum");
        if (self.crc_on || matches!(index, 0 | 8)) && (is_damaged || !is_whole) {
            self.respond(0x08);
            return;
        }
        let app = std::mem::take(&mut self.app) && index != 55;
        self.log.push(Sent { index, app, argument });
        if self.mute_commands > 0 {
            self.mute_commands -= 1;
            self.rough = true; // the host has to break off
            return;
        }
        self.act(Sent { index, app, argument });
    }
}

/// Counts a fault of `sector` down. Returns whether it happens now.
fn count_down(faults: &mut BTreeMap<u32, u32>, sector: u32) -> bool {
    let left = faults.entry(sector).or_default();
    let happens = *left > 0;
    *left = left.saturating_sub(1);
    happens
}
