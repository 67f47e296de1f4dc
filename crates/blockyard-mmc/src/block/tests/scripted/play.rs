//! The card's side of one transaction: its commands, its data, its stop command and its busy time.
//!
//! Each part takes the instant at which it begins and returns the one at which it ends; `None` if
//! the transaction ended early, with the event that says so.

use super::*;
use crate::register::extension::ExtensionPlace;

impl Scripted {
    /// Plays `transaction` from `now`: the card's state afterwards, and the events with their
    /// instants.
    pub(super) fn play(&mut self, transaction: &MmcRequest, fault: Option<Fault>, now: Instant) {
        let _ = self
            .play_commands(transaction, fault, now)
            .and_then(|at| self.play_data(transaction, fault, at))
            .and_then(|at| self.play_stop(transaction, fault, at))
            .map(|at| self.play_busy(transaction, fault, at));
    }

    fn tell(&mut self, at: Instant, event: HostEvent) {
        self.events.push_back((at, event));
    }

    /// Ends the transaction with an error of `part`.
    fn fail(
        &mut self,
        at: Instant,
        part: Part,
        (error, blocks): (HostError, u16),
    ) -> Option<Instant> {
        self.tell(at, HostEvent::Error { part, error, blocks });
        None
    }

    fn play_commands(
        &mut self,
        transaction: &MmcRequest,
        fault: Option<Fault>,
        now: Instant,
    ) -> Option<Instant> {
        let mut at = now;
        let commands =
            [(Part::Announce, transaction.announce), (Part::Command, Some(transaction.command))];
        let commands = if transaction.continues { &commands[..0] } else { &commands[..] };
        for &(part, command) in commands {
            let Some(command) = command else { continue };
            at = at + COMMAND;
            let nobody = (!self.is_for_card(&command)).then_some((HostError::Timeout, 0));
            if let Some(error) = error_of(fault, part).or(nobody) {
                // The card did not receive the command.
                return self.fail(at, part, error);
            }
            let response = self.response(fault, part);
            self.send(&command);
            if part == Part::Command {
                self.obey(&command, at);
            }
            if fault == Some(Fault::Lost(part)) {
                return None;
            }
            if fault == Some(Fault::Garbled(part)) {
                return self.fail(at, part, (HostError::Damaged, 0));
            }
            self.tell(at, response);
        }
        Some(at)
    }

    fn play_data(
        &mut self,
        transaction: &MmcRequest,
        fault: Option<Fault>,
        at: Instant,
    ) -> Option<Instant> {
        let Some(data) = transaction.data() else { return Some(at) };
        let failure = error_of(fault, Part::Data);
        match (transaction.payload, data.direction) {
            (Payload::None, _) => Some(at),
            (Payload::Packed(pack), _) => self.play_pack(transaction, &pack, failure, at),
            (Payload::Block, Direction::Write) => self.play_header(transaction, failure, at),
            (Payload::Block, Direction::Read) => self.play_register(transaction, failure, at),
            (Payload::Slot { slot, skip }, _) => {
                self.check_slot(transaction, slot, skip);
                self.play_slot(transaction, (slot, skip), failure, at)
            }
        }
    }

    fn play_pack(
        &mut self,
        transaction: &MmcRequest,
        pack: &Pack,
        failure: Option<(HostError, u16)>,
        at: Instant,
    ) -> Option<Instant> {
        let data = transaction.data().unwrap();
        let at = at + Duration::from_ns(BLOCK.as_ns() * u64::from(data.blocks));
        self.check_pack(transaction, pack);
        // A card that cannot continue a read sends no more data.
        if data.direction == Direction::Read && self.holds_bad_entry(pack) {
            return self.fail(at, Part::Data, (HostError::Timeout, 1));
        }
        if let Some(error) = failure {
            return self.fail(at, Part::Data, error);
        }
        self.move_pack(data.direction, pack);
        self.tell(at, HostEvent::DataDone);
        self.data_ends(at);
        Some(at)
    }

    /// Takes the header of a packed read, or a setting of an SD card.
    fn play_header(
        &mut self,
        transaction: &MmcRequest,
        failure: Option<(HostError, u16)>,
        at: Instant,
    ) -> Option<Instant> {
        let at = at + BLOCK;
        if let Some(error) = failure {
            // The card waits for the missing or damaged block.
            return self.fail(at, Part::Data, error);
        }
        if transaction.command.opcode == Opcode::WriteExtension {
            let [value, zeros @ ..] = &self.block;
            assert_eq!(zeros, &[0; 511], "the data of {}", transaction.command);
            match (ExtensionPlace::of_argument(transaction.command.argument).offset(), value) {
                (261, 1) => self.volatile.clear(),
                (262, 0 | 1) => self.engine.turn_queue(*value == 1),
                other => panic!("byte and value {other:?}"),
            }
            self.tell(at, HostEvent::DataDone);
            self.data_ends(at);
            return Some(at);
        }
        assert_eq!(transaction.announce.unwrap().argument, 1 << 30 | 1, "block count of a header");
        self.header = Some(self.block);
        self.tell(at, HostEvent::DataDone);
        self.data_ends(at);
        Some(at)
    }

    /// Sends EXT_CSD, or the byte of a setting.
    fn play_register(
        &mut self,
        transaction: &MmcRequest,
        failure: Option<(HostError, u16)>,
        at: Instant,
    ) -> Option<Instant> {
        let at = at + BLOCK;
        if let Some(error) = failure {
            self.data_ends(at);
            return self.fail(at, Part::Data, error);
        }
        if transaction.command.opcode == Opcode::ReadExtension {
            self.block[0] = u8::from(self.flushes_on > 0);
            self.flushes_on = self.flushes_on.saturating_sub(1);
            self.tell(at, HostEvent::DataDone);
            self.data_ends(at);
            return Some(at);
        }
        assert_eq!(transaction.command, Command::send_ext_csd());
        assert_eq!(transaction.data().unwrap().bytes(), 512);
        self.block = self.ext_csd;
        self.block[usize::from(index::BKOPS_STATUS)] = self.level;
        let packed = u8::from(self.failed_entry.is_some());
        let events = u8::from(self.level >= 2) | packed << 3;
        self.block[usize::from(index::EXCEPTION_EVENTS_STATUS)] |= events;
        let entry = self.failed_entry.unwrap_or_default();
        let status = if entry > 0 { 0b11 } else { packed };
        self.block[usize::from(index::PACKED_COMMAND_STATUS)] = status;
        self.block[usize::from(index::PACKED_FAILURE_INDEX)] = entry;
        self.tell(at, HostEvent::DataDone);
        self.data_ends(at);
        Some(at)
    }

    /// Checks that `transaction` is for the next blocks of `slot`, and that their memory is ready.
    fn check_slot(&self, transaction: &MmcRequest, slot: SlotId, skip: u32) {
        let blocks = u32::from(transaction.data().unwrap().blocks);
        let memory = &self.memory[slot.index()];
        let dma = self.capabilities.transfer == Transfer::Dma;
        assert!(
            memory.accepted && memory.prepared == dma,
            "[prepared-while-in-use]: {slot:?} in {transaction:?}"
        );
        assert!(skip + blocks <= memory.sectors, "a transfer should fit in the request");
        let first = memory.sector + u64::from(skip);
        assert_eq!(u64::from(transaction.command.argument), first * self.unit);
        let unit = self.target.unit_sectors;
        let is_whole = first.is_multiple_of(u64::from(unit)) && blocks.is_multiple_of(unit);
        assert!(is_whole, "{transaction:?}");
        if let Some(announce) = transaction.announce {
            assert_eq!(announce.argument & 0x3fff_ffff, blocks);
        }
    }

    fn play_slot(
        &mut self,
        transaction: &MmcRequest,
        (slot, skip): (SlotId, u32),
        failure: Option<(HostError, u16)>,
        at: Instant,
    ) -> Option<Instant> {
        let data = transaction.data().unwrap();
        let sector = self.memory[slot.index()].sector;
        if data.direction == Direction::Write {
            let forced = transaction.announce.is_some_and(|of| of.argument >> 31 != 0);
            self.written(sector, forced);
            if forced {
                self.reliable.push((sector + u64::from(skip), data.blocks));
            }
        }
        self.copied_as_told(data.direction, slot);
        let memory = &mut self.memory[slot.index()];
        if data.direction == Direction::Read {
            assert_eq!(
                memory.moved, skip,
                "[only-good-blocks-count]: blocks are read once, in order"
            );
        } else {
            memory.moved = skip;
        }
        let blocks = failure.map_or(data.blocks, |(_, blocks)| blocks);
        memory.moved += u32::from(blocks);
        memory.moved -= memory.moved % self.target.unit_sectors;
        self.well.insert(memory.sector, memory.moved);
        let at = at + Duration::from_ns(BLOCK.as_ns() * u64::from(blocks.max(1)));
        let is_closed = transaction.stop.is_none() && !transaction.stays_open;
        let bounded = transaction.announce.is_some() || is_closed;
        if let Some(error) = failure {
            if data.blocks == 1 {
                self.data_ends(at);
            }
            return self.fail(at, Part::Data, error);
        }
        self.tell(at, HostEvent::DataDone);
        if bounded {
            self.data_ends(at);
        }
        Some(at)
    }

    fn play_stop(
        &mut self,
        transaction: &MmcRequest,
        fault: Option<Fault>,
        at: Instant,
    ) -> Option<Instant> {
        let Some(stop) = transaction.stop else { return Some(at) };
        let at = at + COMMAND;
        let response = self.response(fault, Part::Stop);
        self.send(&stop);
        if self.state == CardState::Programming {
            self.busy_until = at + self.busy;
        }
        if let Some(error) = error_of(fault, Part::Stop) {
            return self.fail(at, Part::Stop, error);
        }
        self.tell(at, response);
        Some(at)
    }

    fn play_busy(&mut self, transaction: &MmcRequest, fault: Option<Fault>, at: Instant) {
        if self.capabilities.busy_detect == BusyDetect::Hardware && transaction.ends_busy() {
            let at = at.max(self.busy_until);
            let busy = match error_of(fault, Part::Busy) {
                None => HostEvent::BusyReleased,
                Some((error, blocks)) => HostEvent::Error { part: Part::Busy, error, blocks },
            };
            self.tell(at, busy);
        }
    }

    pub(super) fn copied_as_told(&self, direction: Direction, slot: SlotId) {
        let bounced = self.bounces.is_some() && direction == Direction::Write;
        assert_eq!(self.memory[slot.index()].copied_in, bounced, "[bounced-once]");
    }

    /// Checks that the header lists the requests, and that each one is ready.
    fn check_pack(&self, transaction: &MmcRequest, pack: &Pack) {
        let data = transaction.data().unwrap();
        let reads = data.direction == Direction::Read;
        let header = if reads {
            self.header.expect("a packed read should have a header")
        } else {
            self.block
        };
        let count = pack.slots().len();
        assert!((2..=63).contains(&count));
        assert_eq!(header[..3], [1, 2 - u8::from(reads), u8::try_from(count).unwrap()]);
        let mut blocks = u32::from(!reads);
        for (slot, at) in pack.slots().iter().zip(1..) {
            let memory = &self.memory[slot.index()];
            assert_eq!(
                (header_word(&header, 2 * at), u64::from(header_word(&header, 2 * at + 1))),
                (memory.sectors, memory.sector)
            );
            let dma = self.capabilities.transfer == Transfer::Dma;
            assert!(memory.accepted && memory.prepared == dma, "[prepared-while-in-use]");
            assert_eq!(memory.moved, 0, "a packed request should begin at its first block");
            blocks += memory.sectors;
        }
        assert_eq!(u32::from(data.blocks), blocks);
        assert_eq!(transaction.announce.unwrap().argument, 1 << 30 | blocks);
        assert_eq!(transaction.command.argument, header_word(&header, 3));
    }

    fn holds_bad_entry(&self, pack: &Pack) -> bool {
        pack.slots().iter().any(|slot| {
            self.bad_entry.is_some_and(|(sector, _)| self.memory[slot.index()].sector == sector)
        })
    }

    /// Transfers the data of a pack, up to the bad entry.
    fn move_pack(&mut self, direction: Direction, pack: &Pack) {
        let bad = self.bad_entry.and_then(|(sector, named)| {
            let at =
                pack.slots().iter().position(|slot| self.memory[slot.index()].sector == sector)?;
            Some((at, named))
        });
        let well = bad.map_or(pack.slots().len(), |(at, _)| at);
        self.failed_entry =
            bad.map(|(at, named)| if named { u8::try_from(at + 1).unwrap() } else { 0 });
        for (at, slot) in pack.slots().iter().enumerate() {
            let memory = &mut self.memory[slot.index()];
            memory.moved = if at < well { memory.sectors } else { 0 };
            self.well.insert(memory.sector, memory.moved);
            if direction == Direction::Write {
                self.volatile.insert(memory.sector);
                self.lost.remove(&memory.sector);
            }
        }
        // The failed entry is unknown, so no request is certainly done.
        if bad.is_some_and(|(_, named)| !named) {
            for slot in pack.slots() {
                self.memory[slot.index()].moved = 0;
            }
        }
    }
}

/// Returns the error that `fault` reports for `part`, and the blocks that moved before.
fn error_of(fault: Option<Fault>, part: Part) -> Option<(HostError, u16)> {
    match fault {
        Some(Fault::Error(of, error, blocks)) if of == part => Some((error, blocks)),
        _ => None,
    }
}

fn header_word(header: &[u8; 512], at: usize) -> u32 {
    u32::from_le_bytes(header[4 * at..4 * at + 4].try_into().unwrap())
}
