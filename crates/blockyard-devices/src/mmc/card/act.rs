//! The effect of each command that is allowed.

use super::busy::Work;
use super::erase::{Kind, keeps_range};
use super::misuse::Wrong;
use super::queue::{Parameters, Task};
use super::transfer::{Ahead, Packed, Transfer, TransferState, What};
use super::{Announced, Card, Features, NoAnswer, Reaction, RegistersKind, one_in, task_number};
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::state::CardState;
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{
    Addressing, Command, Direction, Opcode, Rca, Response, ResponseKind, Standard,
};
use blockyard_mmc::mode::Timing;
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::ext_csd::{ExtCsd, index};

/// The address that the SD card chooses.
const SD_RCA: Rca = Rca(0x1234);
/// The OCR bit of a powered-up card.
const POWERED_UP: u32 = 1 << 31;
/// The voltage bits of OCR and of questions for it.
const VOLTAGES: u32 = 0x00ff_ff80;

impl Card {
    /// Checks a command, apart from the card's state.
    pub(super) fn check_content(&self, command: &Command, at: Instant) -> Result<(), Wrong> {
        let argument = command.argument;
        let [high, low, ..] = argument.to_be_bytes();
        let rca = Rca(u16::from_be_bytes([high, low]));
        match command.opcode {
            Opcode::Select
            | Opcode::SendCsd
            | Opcode::SendCid
            | Opcode::SendStatus
            | Opcode::SendQueueStatus
            | Opcode::GoInactive
            | Opcode::Sleep
            | Opcode::Awake
            | Opcode::Application
                if rca != self.rca =>
            {
                Err(Wrong::Rca)
            }
            Opcode::InterruptByStatus | Opcode::InterruptByStop if rca != self.rca => {
                Err(Wrong::Rca)
            }
            opcode @ (Opcode::InterruptByStatus | Opcode::InterruptByStop) => {
                self.check_interrupt(opcode)
            }
            Opcode::ReadMultiple | Opcode::WriteMultiple => {
                let blocks = blocks_of(command);
                match self.announced.filter(|announced| announced.blocks > 0) {
                    Some(announced) if announced.blocks != blocks => {
                        Err(Wrong::Count(announced.blocks))
                    }
                    Some(announced) if announced.packed => {
                        self.check_packed(direction_of(command), blocks)
                    }
                    _ => Ok(()),
                }
            }
            Opcode::Switch => self.check_switch(argument),
            Opcode::Erase => Kind::parse(self.standard(), argument).map(|_| ()),
            Opcode::QueueTaskParameters => self.tasks.check_new(Parameters::parse(argument)),
            Opcode::QueueTaskAddress if self.tasks.described().is_none() => Err(Wrong::NoTask),
            Opcode::ExecuteRead | Opcode::ExecuteWrite => {
                self.task_to_execute(command, at).map(|_| ())
            }
            Opcode::MmcTuningBlock if self.mode.timing != Timing::Hs200 => Err(Wrong::Tuning),
            Opcode::SdTuningBlock
                if !matches!(self.mode.timing, Timing::Sdr50 | Timing::Sdr104) =>
            {
                Err(Wrong::Tuning)
            }
            Opcode::SetBlockLen if argument != SECTOR_BYTES => {
                Err(Wrong::Unmodelled("a block of other than 512 bytes"))
            }
            Opcode::ReadExtension => self.check_read_extension(argument),
            Opcode::WriteExtension => self.check_write_extension(argument),
            _ => Ok(()),
        }
    }

    /// Checks that a packed transfer of `blocks` may begin. A write of one block is the header of
    /// packed reads.
    fn check_packed(&self, direction: Direction, blocks: u32) -> Result<(), Wrong> {
        let Features { max_packed_writes, max_packed_reads, .. } = self.features;
        match direction {
            Direction::Write if blocks > 1 && max_packed_writes == 0 => {
                Err(Wrong::Unmodelled("a packed write on this card"))
            }
            Direction::Write if blocks < 2 && max_packed_reads == 0 => {
                Err(Wrong::Unmodelled("a packed read on this card"))
            }
            Direction::Write => Ok(()),
            Direction::Read => {
                let entries = self.packed_read.as_ref().ok_or(Wrong::Header)?;
                let announced = entries.iter().map(|(_, blocks)| blocks).sum();
                if announced == blocks { Ok(()) } else { Err(Wrong::Count(announced)) }
            }
        }
    }

    /// Carries out `command`, which arrived at `at` and leads to `next`.
    pub(super) fn act(&mut self, command: &Command, next: CardState, at: Instant) -> Reaction {
        debug_assert!(!self.silent, "{command} went to a card that is gone");
        debug_assert!(at >= self.response_end, "[card-time-moves-forward] {command}");
        let clocks = match command.response.bits() {
            0 => 0,
            bits => self.timing.ncr_clocks + bits,
        };
        let end = at + self.mode.time(u64::from(clocks));
        if !keeps_range(command.opcode) && self.erase != super::erase::Range::default() {
            self.erase = super::erase::Range::default();
            self.errors |= Status::ERASE_RESET;
        }
        let announced = self.announced.take();
        if !keeps_header(command.opcode) {
            self.packed_read = None;
        }
        let before = self.state;
        self.state = next;
        // The next status reports a failed switch, not the status in the switch's own response.
        let said = (command.opcode == Opcode::Switch).then(|| self.response(command, before));
        let mut busy_until = None;
        let refused = self.effect(command, announced, before, end, &mut busy_until);
        if refused {
            self.state = before;
        }
        let response = said.unwrap_or_else(|| self.response(command, before));
        self.application = command.opcode == Opcode::Application;
        let damaged = command.response.has_crc()
            && one_in(&mut self.prng, self.timing.faults.response_crc_one_in);
        self.uncertain = damaged;
        self.response_end = end;
        let data = self.transfer.as_ref().filter(|_| command.data.is_some() && !refused);
        Reaction {
            answer: if damaged { Err(NoAnswer::Crc) } else { Ok(response) },
            at: end,
            data_from: data.map(|transfer| transfer.from),
            busy_until: busy_until.filter(|&until| until > end),
        }
    }

    /// Returns the response, with the errors that are reported only once.
    fn response(&mut self, command: &Command, before: CardState) -> Response {
        let status = |card: &mut Self| {
            let ready = !matches!(before, CardState::Programming | CardState::Disconnect);
            let app = command.opcode == Opcode::Application
                || command.opcode.is_application() && card.application;
            Status::new(before, ready).0
                | core::mem::take(&mut card.errors)
                | card.exception_bit()
                | if app { Status::APP_CMD } else { 0 }
        };
        match (command.response, command.opcode) {
            (ResponseKind::None, _) => Response::None,
            (ResponseKind::R1 | ResponseKind::R1b, Opcode::SendQueueStatus) => {
                Response::Short(self.report_tasks(self.last_at))
            }
            (ResponseKind::R1 | ResponseKind::R1b, _) => Response::Short(status(self)),
            (ResponseKind::R2, Opcode::SendCsd) => Response::Long(Bits(self.registers.csd)),
            (ResponseKind::R2, _) => Response::Long(Bits(self.registers.cid)),
            (ResponseKind::R3 | ResponseKind::R4, _) => {
                let ready = self.state == CardState::Ready;
                Response::Short(self.registers.ocr | if ready { POWERED_UP } else { 0 })
            }
            (ResponseKind::R6, _) => {
                let status = status(self);
                let squeezed = status >> 8 & 0xc000 | status >> 6 & 0x2000 | status & 0x1fff;
                Response::Short(u32::from(self.rca.0) << 16 | squeezed)
            }
            (ResponseKind::R7, _) => Response::Short(command.argument & 0xfff),
        }
    }

    /// Applies `command`, whose response ends at `end`. Sets `busy_until` if DAT0 goes low.
    /// Returns whether the command was refused, so that the card stays in its state.
    fn effect(
        &mut self,
        command: &Command,
        announced: Option<Announced>,
        before: CardState,
        end: Instant,
        busy_until: &mut Option<Instant>,
    ) -> bool {
        let argument = command.argument;
        match command.opcode {
            Opcode::GoIdle => self.reset(),
            Opcode::GoInactive => (self.transfer, self.silent) = (None, true),
            Opcode::Deselect => self.transfer = None,
            // Without voltages the host only asks.
            Opcode::SendOpCond | Opcode::SdSendOpCond => return argument & VOLTAGES == 0,
            Opcode::SetRelativeAddr => {
                let [high, low, ..] = argument.to_be_bytes();
                self.rca = Rca(u16::from_be_bytes([high, low]));
            }
            Opcode::SendRelativeAddr => self.rca = SD_RCA,
            Opcode::Select => *busy_until = self.busy_until(),
            Opcode::Sleep | Opcode::Awake => {
                let until = end + self.timing.control.switch;
                self.set_busy(end, until, Work::Indivisible);
                *busy_until = Some(until);
            }
            Opcode::Switch => *busy_until = Some(self.switch(argument, end)),
            Opcode::SendExtCsd
            | Opcode::SendScr
            | Opcode::SdStatus
            | Opcode::SendWrittenBlocks
            | Opcode::SwitchFunction
            | Opcode::SdTuningBlock
            | Opcode::MmcTuningBlock
            | Opcode::ReadExtension => self.send_register(command, end),
            Opcode::WriteExtension => self.begin_setting(argument, end),
            Opcode::SetBlockCount => self.announced = Some(self.announcement(argument)),
            Opcode::ReadSingle
            | Opcode::ReadMultiple
            | Opcode::WriteSingle
            | Opcode::WriteMultiple => return self.begin(command, announced, end),
            Opcode::StopTransmission => *busy_until = self.stop(end),
            Opcode::InterruptByStop => {
                if let Some(until) = self.stop(end) {
                    *busy_until = Some(until);
                }
                *busy_until = Some(self.interrupt(end));
            }
            Opcode::InterruptByStatus if before == CardState::Programming => {
                *busy_until = Some(self.interrupt(end));
            }
            Opcode::SdEraseStart | Opcode::MmcEraseStart => {
                self.erase.first = self.place(argument, 1);
                return self.erase.first.is_none();
            }
            Opcode::SdEraseEnd | Opcode::MmcEraseEnd => {
                self.erase.last = self.place(argument, 1);
                return self.erase.last.is_none();
            }
            Opcode::Erase => return self.erase_range(argument, end, busy_until),
            Opcode::QueueTaskParameters => self.tasks.describe(Parameters::parse(argument)),
            Opcode::QueueTaskAddress => return self.queue_task(argument, end),
            Opcode::ExecuteRead | Opcode::ExecuteWrite => self.execute(command, end),
            Opcode::ManageTasks | Opcode::ManageQueue => {
                let one = argument & 0xf == 2;
                self.tasks.forget(one.then(|| task_number(argument)));
                self.set_busy(end, end + self.timing.control.interrupt, Work::Indivisible);
                *busy_until = self.busy_until();
            }
            // These commands only get an answer, or change state that this card does not keep.
            Opcode::AllSendCid
            | Opcode::IoSendOpCond
            | Opcode::SetBusWidth
            | Opcode::SendIfCond
            | Opcode::SendCsd
            | Opcode::SendCid
            | Opcode::VoltageSwitch
            | Opcode::SendStatus
            | Opcode::SendQueueStatus
            | Opcode::InterruptByStatus
            | Opcode::SetBlockLen
            | Opcode::SetPreEraseCount
            | Opcode::SetCardDetect
            | Opcode::Application => {}
        }
        false
    }

    fn announcement(&self, argument: u32) -> Announced {
        let [flags, ..] = argument.to_be_bytes();
        let mmc = self.standard() == Standard::Mmc;
        Announced {
            blocks: if mmc { argument & 0xffff } else { argument },
            packed: mmc && flags & 0x40 != 0,
            durable: mmc && flags & 0x81 != 0,
        }
    }

    fn send_register(&mut self, command: &Command, end: Instant) {
        self.refresh_ext_csd();
        self.register.clear();
        match (&self.registers.kind, command.opcode) {
            (RegistersKind::Mmc { ext_csd }, Opcode::SendExtCsd) => {
                self.register.extend_from_slice(&ext_csd[..]);
            }
            (RegistersKind::Sd { scr, .. }, Opcode::SendScr) => self.register.extend(scr),
            (RegistersKind::Sd { ssr, .. }, Opcode::SdStatus) => {
                self.register.extend_from_slice(&ssr[..]);
            }
            (RegistersKind::Sd { functions, .. }, Opcode::SwitchFunction) => {
                self.register.extend(self.functions.switch(functions, command.argument));
            }
            (RegistersKind::Sd { .. }, Opcode::ReadExtension) => {
                let bytes = self.extension_bytes(command.argument, end);
                self.register.extend(bytes);
            }
            (_, Opcode::SendWrittenBlocks) => {
                self.register.extend(self.good_blocks.to_be_bytes());
            }
            _ => {}
        }
        let bytes = command.data.map_or(0, |data| u32::from(data.block_bytes));
        let what = What::Register(bytes);
        self.transfer = Some(Transfer::new(Direction::Read, what, 0, 1, end));
    }

    /// Begins a read or write that is not a task. Returns whether the card refused it.
    fn begin(&mut self, command: &Command, announced: Option<Announced>, end: Instant) -> bool {
        debug_assert!(self.transfer.is_none(), "{command} during another transfer");
        let blocks = blocks_of(command);
        let single = matches!(command.opcode, Opcode::ReadSingle | Opcode::WriteSingle);
        let announced = announced.filter(|announced| announced.blocks > 0 && !single);
        let packed = announced.is_some_and(|announced| announced.packed);
        // The addresses of a packed write are in its header.
        let sector = if packed { Some(0) } else { self.place(command.argument, blocks) };
        let Some(sector) = sector else { return true };
        let direction = direction_of(command);
        let entries = if packed { self.packed_read.take() } else { None };
        let (from, stream) = match (direction, &entries) {
            (Direction::Write, _) => (end, None),
            (Direction::Read, None) => self.access(sector, blocks, end),
            // The card begins each packed read in its turn.
            (Direction::Read, Some(_)) => (end, None),
        };
        let mut transfer = Transfer::new(direction, What::Medium, sector, blocks, from);
        transfer.stream = stream.map_or(Ahead::No, Ahead::Joined);
        transfer.open_ended = !single && announced.is_none();
        transfer.durable = announced.is_some_and(|announced| announced.durable);
        match direction {
            Direction::Read => {
                if one_in(&mut self.prng, self.timing.faults.no_data_one_in) {
                    transfer.state = TransferState::Mute;
                }
                transfer.packed = entries.map(Packed::read);
            }
            Direction::Write => {
                self.good_blocks = 0;
                self.background.failed_entry = None;
                transfer.packed = packed.then_some(Packed::NEW);
            }
        }
        self.transfer = Some(transfer);
        false
    }

    /// Returns when the card has the first block of a read that starts at `sector` and is asked for
    /// at `end`, and the stream that the read continues.
    fn access(&mut self, sector: u64, blocks: u32, end: Instant) -> (Instant, Option<u64>) {
        match self.join(sector, blocks, end) {
            // The card handles the command before it sends what it has fetched.
            Some(stream) => {
                let command = self.timing.read.ahead.as_ref().map(|ahead| ahead.command);
                (end + command.unwrap_or_default(), Some(stream))
            }
            None => {
                let access = self.access_time();
                (self.engine.read(end, access), None)
            }
        }
    }

    /// Continues the stream that has `sector`, if there is one. Returns its number.
    fn join(&mut self, sector: u64, blocks: u32, at: Instant) -> Option<u64> {
        let read = &self.timing.read;
        let ahead = read.ahead.as_ref()?;
        let (stream, work) = self.streams.join(ahead, read.access, sector, blocks, at)?;
        self.memory_time += work;
        Some(stream)
    }

    /// Draws the time of an access.
    pub(super) fn access_time(&mut self) -> Duration {
        let read = &self.timing.read;
        read.spread.map_or(read.access, |spread| spread.draw(read.access, &mut self.prng))
    }

    /// Carries out CMD38. Returns whether the card refused it.
    fn erase_range(
        &mut self,
        argument: u32,
        end: Instant,
        busy_until: &mut Option<Instant>,
    ) -> bool {
        let range = core::mem::take(&mut self.erase);
        let kind = Kind::parse(self.standard(), argument);
        let all = Some((0, self.registers.sectors.saturating_sub(1)));
        let sectors = if kind == Ok(Kind::Full) { all } else { range.sectors() };
        let Some((kind, (first, last))) = kind.ok().zip(sectors) else {
            let one_is_missing = range.first.is_none() || range.last.is_none();
            let error = if one_is_missing { Status::ERASE_SEQ_ERROR } else { Status::ERASE_PARAM };
            self.errors |= error;
            return true;
        };
        let span = kind.time(&self.timing.erase, self.group_sectors(), first, last);
        let until = self.engine.done_at().max(end) + span;
        let taken = self.taken_by(kind, first, last);
        let certain = !self.cache_on();
        if let Some(fate) = &mut self.fate {
            fate.erased(taken, certain);
        }
        self.streams.forget();
        self.set_busy(end, until, Work::Divisible);
        *busy_until = Some(until);
        false
    }

    /// Returns the sectors that an erase of `first` to `last` covers. eMMC erases whole groups.
    fn taken_by(&self, kind: Kind, first: u64, last: u64) -> core::ops::Range<u64> {
        debug_assert!(first <= last, "erase of sectors {first} to {last}");
        let by_groups = kind == Kind::Erase && self.standard() == Standard::Mmc;
        let unit = if by_groups { self.group_sectors() } else { 1 };
        first - first % unit..(last + 1).next_multiple_of(unit).min(self.registers.sectors)
    }

    /// Returns the sectors of an erase group: eMMC's high-capacity group if it is on, else the
    /// profile's.
    fn group_sectors(&self) -> u64 {
        match &self.registers.kind {
            RegistersKind::Mmc { ext_csd }
                if self.ext_csd_bit(index::ERASE_GROUP_DEF, 0)
                    && ext_csd[usize::from(index::HC_ERASE_GRP_SIZE)] > 0 =>
            {
                u64::from(ext_csd[usize::from(index::HC_ERASE_GRP_SIZE)]) * 1024
            }
            _ => u64::from(self.timing.erase.group_sectors),
        }
    }

    /// Carries out CMD45. Returns whether the card refused it.
    fn queue_task(&mut self, argument: u32, end: Instant) -> bool {
        let Some(parameters) = self.tasks.described() else { return true };
        let sector = self.place(argument, parameters.blocks);
        let (ready_at, stream) = match (parameters.direction, sector) {
            (Direction::Read, Some(sector)) => match self.join(sector, parameters.blocks, end) {
                Some(stream) => (end, Ahead::Joined(stream)),
                None => {
                    let access = self.access_time();
                    let begin = self.tasks.access(end, access);
                    let ready = self.engine.read(begin, access);
                    self.write_waits();
                    // The tasks that follow in the queue continue it before its data has been sent.
                    let next = sector + u64::from(parameters.blocks);
                    let begin = |ahead| Ahead::Begun(self.streams.begin(ahead, next, ready));
                    (ready, self.timing.read.ahead.as_ref().map_or(Ahead::No, begin))
                }
            },
            _ => (end + self.timing.write.command, Ahead::No),
        };
        self.tasks.queue_described(sector, ready_at, stream);
        sector.is_none()
    }

    /// Returns the task that `command`, CMD46 or CMD47, executes, if it is ready at `at`.
    fn task_to_execute(&self, command: &Command, at: Instant) -> Result<Task, Wrong> {
        let number = task_number(command.argument);
        let direction = direction_of(command);
        let task = self
            .tasks
            .get(number)
            .filter(|task| task.parameters.direction == direction && self.is_ready(task, at));
        let task = task.ok_or(Wrong::Task(number))?;
        let blocks = task.parameters.blocks;
        if blocks == blocks_of(command) { Ok(task) } else { Err(Wrong::Count(blocks)) }
    }

    /// Carries out CMD46 and CMD47.
    fn execute(&mut self, command: &Command, end: Instant) {
        let Ok(task) = self.task_to_execute(command, self.last_at) else { return };
        let of = task.parameters;
        self.tasks.forget(Some(of.number));
        debug_assert!(self.transfer.is_none(), "{command} during another transfer");
        let mut transfer = Transfer::new(of.direction, What::Medium, task.sector, of.blocks, end);
        transfer.durable = of.durable;
        transfer.stream = task.stream;
        match of.direction {
            Direction::Read => {
                if one_in(&mut self.prng, self.timing.faults.no_data_one_in) {
                    transfer.state = TransferState::Mute;
                }
            }
            Direction::Write => self.good_blocks = 0,
        }
        self.transfer = Some(transfer);
    }

    /// Returns the sector of an address. If there is none, the next status reports the error.
    fn place(&mut self, address: u32, blocks: u32) -> Option<u64> {
        match self.sector_of(address, blocks) {
            Ok(sector) => Some(sector),
            Err(error) => {
                self.errors |= error;
                None
            }
        }
    }

    /// Returns the sector of an address in the partition in use, for `blocks` blocks, or error bits
    /// for the status.
    pub(super) fn sector_of(&self, address: u32, blocks: u32) -> Result<u64, u32> {
        let sector = match self.registers.addressing {
            Addressing::Sectors => u64::from(address),
            Addressing::Bytes if !address.is_multiple_of(SECTOR_BYTES) => {
                return Err(Status::ADDRESS_MISALIGN);
            }
            Addressing::Bytes => u64::from(address / SECTOR_BYTES),
        };
        if sector + u64::from(blocks) <= self.partition_sectors() {
            Ok(sector)
        } else {
            Err(Status::OUT_OF_RANGE)
        }
    }

    fn partition_sectors(&self) -> u64 {
        use blockyard_mmc::register::ext_csd::partition::Partition;
        let access = self.ext_csd_byte(index::PARTITION_CONFIG) & 0b111;
        let partition = Partition::ALL.into_iter().find(|one| one.access() == access);
        match (partition, &self.registers.kind) {
            (Some(Partition::User), _) | (_, RegistersKind::Sd { .. }) => self.registers.sectors,
            (Some(other), RegistersKind::Mmc { ext_csd }) => {
                ExtCsd::parse(ext_csd).map_or(0, |ext_csd| ext_csd.partition_sectors(other))
            }
            (None, _) => 0,
        }
    }

    /// Returns the place of `sector` of the partition in use among the allocation units of all
    /// partitions.
    pub(super) fn unit_sector(&self, sector: u64) -> u64 {
        let access = self.ext_csd_byte(index::PARTITION_CONFIG) & 0b111;
        // A sector number has at most 32 bits, and a unit is far smaller than the distance between
        // two partitions.
        self.units.as_ref().map_or(sector, |units| {
            (u64::from(access) << 32).next_multiple_of(units.unit_sectors()) + sector
        })
    }
}

/// Returns whether `opcode` may come between the header of packed reads and their transfer.
const fn keeps_header(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::SetBlockCount | Opcode::SendStatus | Opcode::ReadMultiple)
}

/// Returns the number of blocks of the command's data; 0 without data.
fn blocks_of(command: &Command) -> u32 {
    command.data.map_or(0, |data| u32::from(data.blocks))
}

/// Returns the direction of the command's data.
fn direction_of(command: &Command) -> Direction {
    command.data.map_or(Direction::Read, |data| data.direction)
}
