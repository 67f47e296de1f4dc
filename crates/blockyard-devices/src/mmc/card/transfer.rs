//! Transfers of data between host and card.

use super::misuse::{Misuse, Wrong};
use super::packed::Entry;
use super::{Card, one_in};
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Direction;
use blockyard_mmc::command::state::CardState;
use blockyard_mmc::mode::READ_GAP;
use std::collections::VecDeque;

/// The result of moving a run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says when the data has passed"]
pub struct Transferred {
    /// The start of the first block.
    pub begin: Instant,
    /// The end of the last block, including the CRC status of a written block. Without data, the
    /// same as `begin`.
    pub end: Instant,
    /// The number of good blocks. If the host asked for more, `error` says what happened to the
    /// next one.
    pub blocks: u32,
    /// The error that ended the run early ([failed-block-ends-transfer]).
    pub error: Option<DataError>,
    /// The end of the busy time after the last block of a write with an announced number of blocks.
    pub(crate) busy_until: Option<Instant>,
}

/// The failure of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataError {
    /// The block did not arrive, or the card did not take it, within the host's time limit.
    Timeout,
    /// The block arrived with a wrong CRC at the host, or at the card, which then reports the
    /// error.
    Crc,
}

/// The object of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A register or a tuning block, in blocks of this many bytes.
    Register(u32),
    /// The setting of an extension register at this byte.
    Setting(u16),
    /// Sectors of the medium.
    Medium,
}

/// The state of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferState {
    /// Blocks may pass.
    UnderWay,
    /// No data will come.
    Mute,
    /// A block failed ([failed-block-ends-transfer]).
    Failed,
    /// All blocks have passed, at this instant.
    Ended(Instant),
}

/// A data phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) direction: Direction,
    pub(super) what: What,
    /// The next sector.
    pub(super) sector: u64,
    /// Blocks left: of the announced number, or until the host intends to stop.
    pub(super) left: u32,
    /// Only CMD12 ends the transfer.
    pub(super) open_ended: bool,
    /// The host leaves the transfer open after the blocks that are left.
    pub(super) stays_open: bool,
    /// The number of sectors that have passed for the present request of such a transfer.
    pub(super) passed: u32,
    /// The page that such a transfer is receiving cannot be programmed.
    pub(super) page_fails: bool,
    /// The write completes only when it is programmed, even if the cache is on.
    pub(super) durable: bool,
    /// The earliest start of the next block.
    pub(super) from: Instant,
    /// The card's stream.
    pub(super) stream: Ahead,
    /// The next page begins a write: of the command, or of an entry of a packed one.
    pub(super) begins: bool,
    /// All writes of the command so far continue a sequence.
    pub(super) follows: bool,
    pub(super) state: TransferState,
    /// The number of sectors in the page being received, and the number still missing.
    pub(super) page: (u32, u32),
    /// The pages and parts of pages handed on, and the sectors that the last one is charged.
    pub(super) parts: u32,
    pub(super) last_part: u32,
    /// The state of a packed command.
    pub(super) packed: Option<Packed>,
    /// The number of sectors passed on to be programmed or to the host.
    pub(super) handed_on: u32,
}

/// The stream of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// None yet.
    No,
    /// The one of this number, which the read has begun.
    Begun(u64),
    /// The one of this number, which the read continues.
    Joined(u64),
}

/// The progress of a packed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    /// `None` until the host has shown the header.
    pub(super) entries: Option<VecDeque<(u64, u32)>>,
    /// The header itself has passed.
    pub(super) header_passed: bool,
    /// Blocks left of the entry being received. `entry` is its number, from 1.
    left: u32,
    pub(super) entry: u8,
}

impl Packed {
    pub(super) const NEW: Self = Self { entries: None, header_passed: false, left: 0, entry: 0 };

    /// Returns the progress of packed reads that a header announced.
    pub(super) const fn read(entries: VecDeque<(u64, u32)>) -> Self {
        Self { entries: Some(entries), header_passed: true, left: 0, entry: 0 }
    }
}

impl Transfer {
    pub(super) const fn new(
        direction: Direction,
        what: What,
        sector: u64,
        left: u32,
        from: Instant,
    ) -> Self {
        Self {
            direction,
            what,
            sector,
            left,
            open_ended: false,
            stays_open: false,
            passed: 0,
            page_fails: false,
            durable: false,
            from,
            stream: Ahead::No,
            begins: true,
            follows: true,
            state: TransferState::UnderWay,
            page: (0, 0),
            parts: 0,
            last_part: 0,
            packed: None,
            handed_on: 0,
        }
    }

    /// Fails the transfer: from `end` on the host waits in vain for the block after `blocks` good
    /// ones.
    fn times_out(&mut self, blocks: u32, begin: Instant, end: Instant) -> Transferred {
        self.state = TransferState::Failed;
        let error = Some(DataError::Timeout);
        Transferred { begin, end, blocks, error, busy_until: None }
    }

    /// Returns whether the transfer has ended by itself by `at`.
    pub(super) fn ended_by(&self, at: Instant) -> bool {
        matches!(self.state, TransferState::Ended(end) if end <= at)
    }

    /// Returns the bytes received of a page that is not complete.
    pub(super) fn page_bytes(&self) -> u64 {
        let (whole, missing) = self.page;
        debug_assert!(missing <= whole, "{missing} of {whole} sectors are missing");
        u64::from(whole - missing) * u64::from(SECTOR_BYTES)
    }
}

impl Card {
    /// Shows the card `header`: the first block of the packed write in progress, or the only block
    /// before packed reads. Call this after the header's CMD25 and before its data.
    ///
    /// # Errors
    ///
    /// Returns [`Misuse`] if no packed command waits for a header or the header is wrong. Then
    /// nothing changes.
    pub(crate) fn packed_header(&mut self, header: &[u8; 512]) -> Result<(), Misuse> {
        let entries = self.check_header(header).map_err(|wrong| self.data_misuse(wrong))?;
        let transfer = self.transfer.as_mut().expect("a checked header should have a transfer");
        let packed =
            transfer.packed.as_mut().expect("a checked header should have a packed transfer");
        if transfer.left == 1 {
            self.packed_read = Some(entries);
            packed.entries = Some(VecDeque::new());
        } else {
            packed.entries = Some(entries);
        }
        Ok(())
    }

    fn check_header(&self, header: &[u8; 512]) -> Result<VecDeque<(u64, u32)>, Wrong> {
        use super::packed::{HeaderError, parse};
        let waiting = |t: &&Transfer| t.packed.as_ref().is_some_and(|p| p.entries.is_none());
        let transfer = self.transfer.as_ref().filter(waiting).ok_or(Wrong::Header)?;
        let (direction, most) = match transfer.left {
            1 => (Direction::Read, self.features.max_packed_reads),
            _ => (Direction::Write, self.features.max_packed_writes),
        };
        let entries = parse(header, direction, most).map_err(Wrong::BadHeader)?;
        let blocks = 1 + entries.iter().map(Entry::blocks).sum::<u32>();
        if direction == Direction::Write && blocks != transfer.left {
            return Err(Wrong::BadHeader(HeaderError::Blocks(blocks)));
        }
        let place = |(entry, number): (&Entry, u8)| {
            self.sector_of(entry.address, entry.blocks())
                .ok()
                .filter(|_| entry.blocks() > 0)
                .map(|sector| (sector, entry.blocks()))
                .ok_or(Wrong::BadHeader(HeaderError::Entry(number)))
        };
        entries.iter().zip(1..).map(place).collect()
    }

    /// Moves `blocks` more blocks of the transfer, at least one. The host is ready from `at` on and
    /// delays no block. It may ask for all blocks at once or piece by piece.
    ///
    /// The returned instants lie in the future. The card counts the blocks as moved once the
    /// instants have passed. An earlier loss of power takes nothing back.
    ///
    /// # Errors
    ///
    /// Returns [`Misuse`] if fewer blocks are to come, an earlier block failed, or the header of a
    /// packed write is missing. Then nothing changes.
    pub fn transfer(&mut self, blocks: u32, at: Instant) -> Result<Transferred, Misuse> {
        self.transfer_within(Duration::MAX, blocks, at)
    }

    /// Moves blocks as [`Self::transfer`] does, for a host that waits at most `limit` for each
    /// block that it reads or that the card must take. After a timeout the host has waited since
    /// the end of the run.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::transfer`].
    pub(crate) fn transfer_within(
        &mut self,
        limit: Duration,
        blocks: u32,
        at: Instant,
    ) -> Result<Transferred, Misuse> {
        if self.silent {
            let error = Some(DataError::Timeout);
            return Ok(Transferred { begin: at, end: at, blocks: 0, error, busy_until: None });
        }
        let Some(mut transfer) = self.transfer.take() else {
            return Err(self.data_misuse(Wrong::Transfer(blocks)));
        };
        let failed = transfer.state == TransferState::Failed;
        let wrong = if blocks == 0 || blocks > transfer.left || failed {
            Some(Wrong::Transfer(blocks))
        } else if transfer.packed.as_ref().is_some_and(|packed| packed.entries.is_none()) {
            Some(Wrong::Header)
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.transfer = Some(transfer);
            return Err(self.data_misuse(wrong));
        }
        let mut done = if transfer.state == TransferState::Mute {
            transfer.times_out(0, at, at)
        } else {
            match transfer.direction {
                Direction::Read if transfer.packed.is_some() => {
                    self.send_packed(&mut transfer, limit, blocks, at)
                }
                Direction::Read => self.send(&mut transfer, limit, blocks, at),
                Direction::Write if transfer.what != What::Medium => {
                    self.receive_setting(&mut transfer, at)
                }
                Direction::Write => self.receive(&mut transfer, limit, blocks, at),
            }
        };
        if transfer.left == 0 && transfer.state == TransferState::UnderWay && !transfer.open_ended {
            transfer.state = TransferState::Ended(done.end);
            if transfer.direction == Direction::Write {
                done.busy_until = Some(match transfer.what {
                    What::Setting(offset) => self.set_extension(offset, done.end),
                    _ => self.finish_write(&mut transfer, done.end),
                });
            }
        }
        self.transfer = Some(transfer);
        Ok(done)
    }

    /// Sends the data of several reads, one after the other.
    fn send_packed(
        &mut self,
        transfer: &mut Transfer,
        limit: Duration,
        blocks: u32,
        at: Instant,
    ) -> Transferred {
        let mut left = blocks;
        let mut at = at;
        let mut begin = None;
        loop {
            let run = self.next_read(transfer, at).min(left);
            let done = self.send(transfer, limit, run, at);
            if let Some(packed) = &mut transfer.packed {
                packed.left -= run;
            }
            let begin = *begin.get_or_insert(done.begin);
            left -= run;
            if left == 0 || done.error.is_some() {
                let good = blocks - left - run + done.blocks;
                return Transferred { begin, blocks: good, ..done };
            }
            at = done.end;
        }
    }

    /// Returns the blocks left of the current read. If none is left, the card begins the next read
    /// at `at`.
    fn next_read(&mut self, transfer: &mut Transfer, at: Instant) -> u32 {
        let packed = transfer.packed.as_mut().expect("several reads should be a packed transfer");
        if packed.left == 0
            && let Some((sector, blocks)) = packed.entries.as_mut().and_then(VecDeque::pop_front)
        {
            (packed.left, transfer.sector) = (blocks, sector);
            let access = self.access_time();
            transfer.from = self.engine.read(at.max(transfer.from), access);
        }
        packed.left
    }

    /// Sends blocks to the host.
    fn send(
        &mut self,
        transfer: &mut Transfer,
        limit: Duration,
        blocks: u32,
        at: Instant,
    ) -> Transferred {
        let bytes = match transfer.what {
            What::Register(bytes) => bytes,
            What::Setting(_) | What::Medium => SECTOR_BYTES,
        };
        let good = self.good_blocks_of(blocks, self.timing.faults.read_crc_one_in);
        let failed = good < blocks;
        let passed = good + u32::from(failed);
        debug_assert!(passed <= transfer.left, "{passed} blocks of {transfer:?}");
        let gap = self.timing.read.gap;
        let mut begin = at.max(transfer.from);
        let mut fetched = begin;
        let next = transfer.sector + u64::from(passed);
        if transfer.what == What::Medium
            && let (Some(ahead), Ahead::Joined(stream)) = (&self.timing.read.ahead, transfer.stream)
            && let Some((first, last)) = self.streams.send(ahead, stream, passed)
        {
            fetched = last;
            self.memory_time += ahead.fetch(u64::from(passed));
            let block_ns = self.mode.time(self.mode.read_clocks(bytes, 1)).as_ns();
            begin = begin.max(Instant::from_ns(first.as_ns().saturating_sub(block_ns)));
        }
        if begin.since(at) > limit {
            return transfer.times_out(0, at, at);
        }
        let on_wire = self.mode.time(self.mode.read_clocks(bytes, passed))
            + times(gap, u64::from(passed - 1));
        let end = (begin + on_wire).max(fetched);
        transfer.from = end + self.mode.time(u64::from(READ_GAP)) + gap;
        transfer.left -= passed;
        if failed {
            transfer.state = TransferState::Failed;
        }
        if transfer.what == What::Medium {
            if let Some(fate) = &mut self.fate {
                let first = transfer.sector;
                fate.sent(transfer.handed_on, first..first + u64::from(good));
            }
            transfer.handed_on += good;
            transfer.sector = next;
            match (transfer.stream, &self.timing.read.ahead) {
                (Ahead::No, Some(ahead)) => {
                    transfer.stream = Ahead::Begun(self.streams.begin(ahead, next, end));
                }
                (Ahead::Begun(stream), _) => self.streams.move_on(stream, next, end),
                (Ahead::No, None) | (Ahead::Joined(_), _) => {}
            }
        }
        let error = failed.then_some(DataError::Crc);
        Transferred { begin, end, blocks: good, error, busy_until: None }
    }

    /// Receives the block of a setting from the host.
    fn receive_setting(&mut self, transfer: &mut Transfer, at: Instant) -> Transferred {
        debug_assert_eq!(transfer.left, 1, "the data of CMD49 is one block");
        let begin = at.max(transfer.from);
        let end = begin + self.mode.time(self.mode.write_clocks(SECTOR_BYTES, 1));
        let blocks = self.good_blocks_of(1, self.timing.faults.write_crc_one_in);
        transfer.left -= blocks;
        transfer.from = end;
        if blocks == 0 {
            transfer.state = TransferState::Failed;
        }
        let error = (blocks == 0).then_some(DataError::Crc);
        Transferred { begin, end, blocks, error, busy_until: None }
    }

    /// Receives blocks from the host.
    fn receive(
        &mut self,
        transfer: &mut Transfer,
        limit: Duration,
        blocks: u32,
        at: Instant,
    ) -> Transferred {
        debug_assert_eq!(transfer.what, What::Medium, "a setting is no sector");
        self.streams.forget();
        let good = self.good_blocks_of(blocks, self.timing.faults.write_crc_one_in);
        let failed = good < blocks;
        let mut begin = None;
        let mut end = at.max(transfer.from);
        let mut to_come = good;
        while to_come > 0 {
            if transfer.packed.as_ref().is_some_and(|packed| !packed.header_passed) {
                begin.get_or_insert(end);
                end = end + self.mode.time(self.mode.write_clocks(SECTOR_BYTES, 1));
                if let Some(packed) = &mut transfer.packed {
                    packed.header_passed = true;
                }
                (to_come, transfer.left) = (to_come - 1, transfer.left - 1);
                continue;
            }
            if transfer.page.1 == 0 {
                let sectors = self.next_page(transfer);
                let bytes = u64::from(sectors) * u64::from(SECTOR_BYTES);
                self.engine.advance_to(end);
                let room_at = self.engine.room_at(bytes, self.buffer_bytes(), end);
                if room_at.since(end) > limit {
                    return transfer.times_out(good - to_come, begin.unwrap_or(end), end);
                }
                transfer.page = (sectors, sectors);
                transfer.page_fails = transfer.stays_open && self.program_fails();
                end = room_at;
            }
            begin.get_or_insert(end);
            let run = to_come.min(transfer.page.1);
            end = end + self.mode.time(self.mode.write_clocks(SECTOR_BYTES, run));
            transfer.page.1 -= run;
            transfer.left -= run;
            transfer.sector += u64::from(run);
            to_come -= run;
            self.good_blocks += run;
            if transfer.stays_open {
                self.received_open(transfer, run);
            }
            if transfer.page.1 == 0 {
                self.page_complete(transfer, end);
            }
        }
        if failed {
            self.packed_read = None;
            begin.get_or_insert(end);
            end = end + self.mode.time(self.mode.write_clocks(SECTOR_BYTES, 1));
            transfer.state = TransferState::Failed;
        }
        transfer.from = end;
        let error = failed.then_some(DataError::Crc);
        Transferred { begin: begin.unwrap_or(end), end, blocks: good, error, busy_until: None }
    }

    /// Returns the sectors of the next page: up to its end or to the end of the write. A write that
    /// stays open has no end.
    fn next_page(&self, transfer: &mut Transfer) -> u32 {
        let mut left = transfer.left;
        if let Some(packed) = &mut transfer.packed {
            if packed.left == 0
                && let Some((sector, blocks)) =
                    packed.entries.as_mut().and_then(VecDeque::pop_front)
            {
                packed.entry += 1;
                packed.left = blocks;
                (transfer.sector, transfer.begins) = (sector, true);
            }
            left = packed.left;
        }
        let page = self.timing.write.page_bytes / SECTOR_BYTES;
        let before = transfer.sector % u64::from(page);
        let to_end = u32::try_from(u64::from(page) - before)
            .expect("the rest of a page should have a 32-bit number of sectors");
        let sectors = if transfer.stays_open { to_end } else { to_end.min(left) };
        debug_assert!(sectors > 0, "an empty page of {transfer:?}");
        if let Some(packed) = &mut transfer.packed {
            packed.left -= sectors;
        }
        sectors
    }

    /// Returns how many of `blocks` pass before the first failure.
    fn good_blocks_of(&mut self, blocks: u32, fault: Option<u32>) -> u32 {
        match fault {
            None => blocks,
            Some(_) => (0..blocks).find(|_| one_in(&mut self.prng, fault)).unwrap_or(blocks),
        }
    }

    pub(super) fn data_misuse(&self, wrong: Wrong) -> Misuse {
        let at = self.last_at;
        let state =
            self.transfer.as_ref().map_or(self.state, |transfer| match transfer.direction {
                Direction::Read => CardState::Data,
                Direction::Write => CardState::Receive,
            });
        Misuse { command: self.last_command, state, at, wrong }
    }
}

/// Returns `span` times `count`. Saturates.
fn times(span: Duration, count: u64) -> Duration {
    Duration::from_ns(span.as_ns().saturating_mul(count))
}
