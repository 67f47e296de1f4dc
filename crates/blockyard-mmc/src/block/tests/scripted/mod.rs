//! A controller and a card that follow a script, in virtual time. They check [one-request-on-bus],
//! [prepared-while-in-use], [bounced-once], and the legality of every command. The controller has a
//! command queue [`engine`].

mod engine;
mod held;
mod play;

use super::*;
use crate::command::legal::legal;
use crate::command::state::CardState;
use crate::command::state::Queue;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, Direction, Opcode, Response, ResponseKind, SwitchAccess};
use crate::controller::{HostError, MmcRequest, NotNow, Pack, Part, Payload};
use crate::engine::QueueEngine;
use crate::register::ext_csd::index;
use engine::Engine;
use held::Held;
use std::collections::BTreeSet;

/// A fault of an MMC request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The controller reports an error after this many blocks.
    Error(Part, HostError, u16),
    /// A response also has these bits.
    Bits(Part, u32),
    /// The card obeys, and its response comes damaged.
    Garbled(Part),
    /// The card obeys, and no event comes from then on.
    Lost(Part),
    /// The request succeeds, and the bus needs tuning.
    Drift,
    /// An interrupt is lost, so no event comes.
    Silence,
    /// The card is removed.
    Gone,
}

/// An MMC request on the bus, up to its last event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) command: Opcode,
    /// The first sector of the request, if it transfers data.
    pub(super) sector: Option<u64>,
    /// The requests that it transfers.
    pub(super) requests: usize,
    /// How long the card may keep the controller waiting; zero for the engine's.
    pub(super) limit: Duration,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    sector: u64,
    sectors: u32,
    accepted: bool,
    prepared: bool,
    /// Blocks whose memory was prepared beside the read.
    blocks_prepared: u32,
    copied_in: bool,
    copied_out: bool,
    /// The blocks transferred without an error, from the first.
    moved: u32,
}

/// The time of a command and of a block, in ns.
pub(super) const COMMAND: Duration = Duration::from_us(2);
const BLOCK: Duration = Duration::from_us(20);

/// The switch that starts background operations.
pub(super) const BACKGROUND: Command = Command {
    opcode: Opcode::Switch,
    argument: 0x03a4_0100,
    response: ResponseKind::R1b,
    data: None,
};

/// Returns whether `command` turns the card's queue on or off.
fn is_queue_switch(command: &Command) -> bool {
    let at = u32::from(index::CMDQ_MODE_EN);
    command.opcode == Opcode::Switch && command.argument >> 16 & 0xff == at
}

pub(super) struct Scripted {
    pub(super) capabilities: HostCapabilities,
    /// There is no engine, whatever the capabilities say.
    pub(super) engineless: bool,
    /// Faults by the number of the MMC request, counted from 0.
    pub(super) faults: BTreeMap<usize, Fault>,
    /// Every transfer of this sector has the first fault among other blocks, and the second one
    /// alone.
    pub(super) bad_sector: Option<(u64, Option<Fault>, Option<Fault>)>,
    /// How long the card is busy after a write.
    pub(super) busy: Duration,
    /// How long the card is busy after a switch, and after an erase.
    pub(super) switch_busy: Duration,
    /// How often an SD card still says that it flushes.
    pub(super) flushes_on: u32,
    /// How long the card is busy after its queue is turned on or off, or emptied.
    pub(super) queue_busy: Duration,
    pub(super) erase_busy: Duration,
    /// The urgency of background operations, which the card reports from 2 on; their duration; and
    /// the duration of their interruption.
    pub(super) level: u8,
    pub(super) level_after: u8,
    pub(super) bkops_busy: Duration,
    pub(super) interrupt_busy: Duration,
    /// The request at this sector and those after it fail in a pack; and whether the card names the
    /// entry.
    pub(super) bad_entry: Option<(u64, bool)>,
    /// The entry of the last pack that failed, from 1; 0 if unknown.
    failed_entry: Option<u8>,
    /// The header of a packed read, once the card has it.
    header: Option<[u8; 512]>,
    last_pack: Vec<SlotId>,
    /// The card's EXT_CSD, and the controller's own block.
    pub(super) ext_csd: [u8; 512],
    block: [u8; 512],
    /// Every command without data, except CMD13 and commands for the engine.
    pub(super) log: Vec<Command>,
    /// The commands of an erase that has begun.
    erase: u8,
    /// The requests whose data is only in the cache, and those whose data was lost there, by first
    /// sector.
    volatile: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    /// The requests whose data bypassed the cache.
    pub(super) forced: BTreeSet<u64>,
    /// The first sector and the blocks of each reliable write that is no task.
    pub(super) reliable: Vec<(u64, u16)>,
    /// How many starts in interrupt context are still to be refused.
    pub(super) refusals: u32,
    /// The card, and how a reset changes it.
    pub(super) target: Target,
    pub(super) at_reset: fn(&mut Target),
    /// Resets that the card does not survive.
    pub(super) dies_at_reset: bool,
    /// The next resets after which the card is found with less than it has, and with what.
    pub(super) noisy_resets: u32,
    pub(super) found_after_noise: fn(&mut Target),
    events: VecDeque<(Instant, HostEvent)>,
    /// The MMC request on the bus.
    running: Option<MmcRequest>,
    held: Option<Held>,
    state: CardState,
    busy_until: Instant,
    memory: Vec<Memory>,
    pub(super) commands: BTreeMap<u8, u32>,
    pub(super) spans: Vec<Span>,
    pub(super) prepares: u32,
    pub(super) cleanups: u32,
    pub(super) resets: u32,
    pub(super) copies: [u32; 2],
    /// The last transfer's slot, and the blocks that had moved before.
    last: Option<(SlotId, u32)>,
    /// The units of an address in a sector.
    pub(super) unit: u64,
    /// CMD13 gets no response.
    pub(super) mute: bool,
    /// The first read of each sector alone fails. This set holds the sectors that have failed.
    pub(super) flaky: Option<Vec<u64>>,
    /// Whether the bus is tuned, how often it was retuned, and how often retuning still fails.
    pub(super) tuned: bool,
    pub(super) retunes: u32,
    pub(super) deaf: u32,
    /// A task has left the bus in need of tuning.
    drifted: bool,
    /// The blocks of each request that were transferred without an error, by first sector.
    pub(super) well: BTreeMap<u64, u32>,
    /// The card has not responded since a write.
    unconfirmed: bool,
    /// The bounce buffers: one for the host, or one for each slot.
    pub(super) bounces: Option<Bounce>,
    pub(super) engine: Engine,
}

impl Scripted {
    pub(super) fn new(transfer: Transfer, busy: BusyDetect) -> Self {
        Self {
            capabilities: HostCapabilities {
                transfer,
                busy_detect: busy,
                holds_data: true,
                queue_engine_depth: 32,
                queue_engine_direct: true,
                ..HostCapabilities::plain()
            },
            engineless: false,
            faults: BTreeMap::new(),
            bad_sector: None,
            busy: us(100),
            switch_busy: us(500),
            flushes_on: 0,
            queue_busy: us(0),
            erase_busy: us(700),
            level: 0,
            level_after: 0,
            bkops_busy: Duration::from_ms(20),
            interrupt_busy: us(200),
            bad_entry: None,
            failed_entry: None,
            header: None,
            last_pack: Vec::new(),
            ext_csd: emmc_5_1(),
            block: [0; 512],
            log: Vec::new(),
            erase: 0,
            volatile: BTreeSet::new(),
            lost: BTreeSet::new(),
            forced: BTreeSet::new(),
            reliable: Vec::new(),
            refusals: 0,
            target: CARD,
            at_reset: |_| {},
            dies_at_reset: false,
            noisy_resets: 0,
            found_after_noise: |_| {},
            events: VecDeque::new(),
            running: None,
            held: None,
            state: CardState::Transfer,
            busy_until: Instant::ZERO,
            memory: vec![Memory::default(); 64],
            commands: BTreeMap::new(),
            spans: Vec::new(),
            prepares: 0,
            cleanups: 0,
            resets: 0,
            copies: [0; 2],
            last: None,
            unit: 1,
            mute: false,
            flaky: None,
            tuned: false,
            retunes: 0,
            deaf: 0,
            drifted: false,
            well: BTreeMap::new(),
            unconfirmed: false,
            bounces: None,
            engine: Engine::default(),
        }
    }

    pub(super) fn soldered_in(mut self) -> Self {
        self.capabilities.non_removable = true;
        self
    }

    pub(super) fn with_segments(mut self, most: u16) -> Self {
        self.capabilities.max_segments = most;
        self
    }

    pub(super) fn with_blocks(mut self, most: u16) -> Self {
        self.capabilities.max_blocks = most;
        self
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        let next = self.events.front().map(|(at, _)| *at);
        next.into_iter().chain(self.engine_event()).min()
    }

    pub(super) fn event_at(&mut self, now: Instant) -> Option<HostEvent> {
        if self.events.is_empty() {
            self.run_engine(now);
        }
        let (_, event) = self.events.pop_front_if(|(at, _)| *at <= now)?;
        if self.events.is_empty() {
            self.running = None;
        }
        Some(event)
    }

    pub(super) fn all_ended(&self) {
        assert!(
            self.events.is_empty() && self.running.is_none(),
            "the bus should be idle at the end"
        );
        assert!(
            !self.memory.iter().any(|memory| memory.prepared),
            "no memory should stay prepared"
        );
        assert_eq!(self.prepares, self.cleanups);
    }

    fn settle_busy(&mut self, now: Instant) {
        if now >= self.busy_until {
            self.state = self.state.after_busy();
        }
    }

    /// Returns whether the data of the write at `sector` would survive a loss of power.
    pub(super) fn is_durable(&self, sector: u64) -> bool {
        !self.volatile.contains(&sector) && !self.lost.contains(&sector)
    }

    /// Plays a command after which the card is busy on its own.
    fn obey(&mut self, command: &Command, at: Instant) {
        let follows = match command.opcode {
            Opcode::SendStatus => return,
            Opcode::MmcEraseStart | Opcode::SdEraseStart => 1,
            Opcode::MmcEraseEnd | Opcode::SdEraseEnd => 2,
            Opcode::Erase => 3,
            _ => 0,
        };
        assert!(follows <= 1 || follows == self.erase + 1, "{command} after {}", self.erase);
        self.erase = follows % 3;
        let is_discard = matches!(command.opcode, Opcode::ManageTasks | Opcode::ManageQueue);
        let for_engine = is_discard || is_queue_switch(command);
        let is_plain = command.data.is_none() && command.opcode != Opcode::StopTransmission;
        if is_plain && !for_engine {
            self.note(command);
        }
        if self.state == CardState::Programming && command.response.has_busy() {
            let busy = match command.opcode {
                Opcode::InterruptByStatus | Opcode::InterruptByStop => self.interrupt_busy,
                Opcode::Switch if *command == BACKGROUND => {
                    self.level = self.level_after;
                    self.bkops_busy
                }
                _ if for_engine => self.queue_busy,
                Opcode::Switch => self.switch_busy,
                Opcode::Erase => self.erase_busy,
                _ => self.busy,
            };
            self.busy_until = at + busy;
        }
    }

    /// Plays the effect of `command`.
    fn note(&mut self, command: &Command) {
        self.log.push(*command);
        if *command == Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1) {
            self.volatile.clear();
        }
    }

    /// Returns whether the card is the one that `command` is for.
    fn is_for_card(&self, command: &Command) -> bool {
        use Opcode::{InterruptByStatus, InterruptByStop, SendStatus};
        let is_addressed =
            matches!(command.opcode, SendStatus | InterruptByStatus | InterruptByStop);
        !is_addressed || command.argument >> 16 == u32::from(self.target.rca.0)
    }

    fn send(&mut self, command: &Command) {
        let row = command.opcode.row();
        *self.commands.entry(row.index).or_default() += 1;
        if let (Opcode::StopTransmission, Some(direction)) =
            (command.opcode, self.state.transfers())
        {
            let is_busy = direction == Direction::Write;
            assert_eq!(command.response.has_busy(), is_busy, "CMD12 in {:?}", self.state);
        }
        self.state = legal(self.state, command.opcode, self.engine.card_queue())
            .unwrap_or_else(|illegal| panic!("{illegal}"));
        self.engine.play_command(command);
    }

    fn response(&self, fault: Option<Fault>, part: Part) -> HostEvent {
        let bits = match fault {
            Some(Fault::Bits(at, bits)) if at == part => bits,
            _ => 0,
        };
        let bits = bits
            | if self.level >= 2 || self.failed_entry.is_some() {
                CardStatus::EXCEPTION_EVENT
            } else {
                0
            };
        let ready = self.state != CardState::Programming;
        let status = CardStatus::new(self.state, ready).0 | bits;
        HostEvent::CommandDone { part, response: Response::Short(status) }
    }

    fn fault_of(&mut self, transaction: &MmcRequest) -> Option<Fault> {
        if self.mute && transaction.command.opcode == Opcode::SendStatus {
            return Some(Fault::Error(Part::Command, HostError::Timeout, 0));
        }
        match (transaction.payload, transaction.data()) {
            (Payload::Slot { slot, skip }, Some(data)) => {
                self.fault_of_blocks(slot, skip, data.blocks)
            }
            _ => self.faults.get(&self.spans.len()).copied(),
        }
    }

    /// Returns the fault of the next transfer, which has this many blocks.
    fn fault_of_blocks(&mut self, slot: SlotId, skip: u32, blocks: u16) -> Option<Fault> {
        if let Some(fault) = self.faults.get(&self.spans.len()) {
            return Some(*fault);
        }
        let blocks = u64::from(blocks);
        let first = self.memory[slot.index()].sector + u64::from(skip);
        if let Some(failed) = &mut self.flaky
            && blocks == 1
            && !failed.contains(&first)
        {
            failed.push(first);
            return Some(Fault::Error(Part::Data, HostError::Timeout, 0));
        }
        let (bad, in_several, alone) = self.bad_sector?;
        let hit = (first..first + blocks).contains(&bad);
        let fault = if blocks > u64::from(self.target.unit_sectors) { in_several } else { alone };
        fault.filter(|_| hit)
    }

    /// Plays `transaction`, which has the bus from `from` on, with its commands and data later by
    /// `delay`.
    fn carry_out(
        &mut self,
        transaction: &MmcRequest,
        fault: Option<Fault>,
        from: Instant,
        delay: Duration,
    ) {
        let sector = match transaction.payload {
            Payload::None | Payload::Block => None,
            Payload::Slot { slot, .. } => Some(self.memory[slot.index()].sector),
            Payload::Packed(pack) => Some(self.memory[pack.slots()[0].index()].sector),
        };
        let requests = match &transaction.payload {
            Payload::Packed(pack) => pack.slots().len(),
            _ => usize::from(sector.is_some()),
        };
        if transaction.data().is_some_and(|data| data.direction == Direction::Write) {
            self.failed_entry = None;
        }
        match fault {
            Some(Fault::Silence) => self.send(&transaction.command),
            Some(Fault::Gone) => {
                self.engine.reset();
                self.events.push_back((from + COMMAND, HostEvent::CardGone));
            }
            Some(Fault::Drift) => {
                self.events.push_back((from + delay, HostEvent::RetuneNeeded));
                self.play(transaction, None, from + delay);
            }
            _ => self.play(transaction, fault, from + delay),
        }
        match (transaction.payload, transaction.command.opcode) {
            (Payload::Slot { slot, skip }, _) => self.last = Some((slot, skip)),
            (Payload::Packed(pack), _) => {
                (self.last, self.last_pack) = (None, pack.slots().to_vec());
            }
            (_, Opcode::SendStatus | Opcode::StopTransmission) => {}
            _ => (self.last, self.last_pack) = (None, Vec::new()),
        }
        self.disown_failed_data(transaction);
        let to = self.events.back().map_or(from, |(at, _)| *at);
        let command = transaction.command.opcode;
        let limit = transaction.limit;
        self.spans.push(Span { command, sector, requests, limit, from, to });
    }

    /// Takes back the data that the card reports as failed: it has not moved. The first response
    /// after a write may also concern that write.
    fn disown_failed_data(&mut self, transaction: &MmcRequest) {
        let of_write_before = match self.unconfirmed && transaction.data().is_some() {
            true => CardStatus::OF_WORK_BEFORE,
            false => 0,
        };
        let mut responses = self.events.iter().filter_map(|(_, event)| match event {
            HostEvent::CommandDone { response, .. } => Some(response.status().unwrap().errors()),
            _ => None,
        });
        let first = responses.next();
        let disowned = first.is_some_and(|errors| errors & !of_write_before != 0)
            || responses.any(|errors| errors != 0);
        self.unconfirmed &= first.is_none();
        let writes = transaction.data().is_some_and(|data| data.direction == Direction::Write);
        self.unconfirmed |= writes && first.is_some();
        if disowned {
            self.disown_noted();
        }
        if let Some((slot, before)) = self.last
            && disowned
        {
            let memory = &mut self.memory[slot.index()];
            memory.moved = before;
            self.well.insert(memory.sector, before);
        }
        if self.last.is_none() && disowned {
            for slot in core::mem::take(&mut self.last_pack) {
                let memory = &mut self.memory[slot.index()];
                memory.moved = 0;
                self.well.insert(memory.sector, 0);
            }
        }
    }

    /// Notes that the data of the write at `sector` is in the cache or on the medium.
    fn written(&mut self, sector: u64, forced: bool) {
        let into = if forced { &mut self.forced } else { &mut self.volatile };
        into.insert(sector);
        self.lost.remove(&sector);
    }

    fn data_ends(&mut self, at: Instant) {
        self.state = self.state.after_data();
        if self.state == CardState::Programming {
            self.busy_until = at + self.busy;
        }
    }
}

impl HostController for Scripted {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    fn engine(&mut self) -> Option<&mut dyn QueueEngine> {
        (self.capabilities.queue_engine_depth > 0 && !self.engineless).then_some(self)
    }

    fn has_bounce_buffers(&self) -> bool {
        self.bounces.is_some()
    }

    fn copy_in(&mut self, slot: SlotId) {
        if self.bounces == Some(Bounce::Sync) {
            assert!(self.running.is_none(), "[bounced-once]: the buffer is in use");
        }
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.copied_in && memory.moved == 0, "[bounced-once]");
        memory.copied_in = true;
        self.copies[0] += 1;
    }

    fn copy_out(&mut self, slot: SlotId) {
        if self.bounces == Some(Bounce::Sync) {
            assert!(self.running.is_none(), "[bounced-once]: the buffer is in use");
        }
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.copied_out && memory.moved == memory.sectors, "[bounced-once]");
        memory.copied_out = true;
        self.copies[1] += 1;
    }

    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.prepared, "{slot:?} is in use");
        let sector = issue.request().sector;
        let sectors = issue.request().sectors;
        *memory = Memory { sector, sectors, accepted: true, ..Memory::default() };
    }

    fn prepare(&mut self, slot: SlotId) {
        let memory = &mut self.memory[slot.index()];
        assert!(memory.accepted && !memory.prepared, "[prepared-while-in-use]: prepared twice");
        assert_eq!(self.capabilities.transfer, Transfer::Dma);
        memory.prepared = true;
        self.prepares += 1;
    }

    fn start(&mut self, transaction: &MmcRequest, now: Instant) {
        assert!(
            self.running.is_none(),
            "[one-request-on-bus]: {transaction:?} while {:?} runs",
            self.running
        );
        assert!(
            !self.engine.has_bus(),
            "[engine-owns-bus]: {transaction:?} while the engine has the bus"
        );
        let waits = transaction.data().is_some() || transaction.ends_busy();
        assert_eq!(waits, transaction.limit > Duration::ZERO, "limit of {transaction:?}");
        self.settle_busy(now);
        self.running = Some(*transaction);
        let fault = self.fault_of(transaction);
        if !self.holds(transaction, fault, now) {
            self.carry_out(transaction, fault, now, Duration::ZERO);
        }
    }

    fn prepare_beside(&mut self, slot: SlotId, blocks: u32, now: Instant) {
        self.gives_memory(slot, blocks, now);
    }

    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(NotNow);
        }
        self.start(transaction, now);
        Ok(())
    }

    fn block(&mut self) -> &mut [u8; 512] {
        assert!(
            self.running.is_none(),
            "the host's block should be unused while a request is on the bus"
        );
        &mut self.block
    }

    fn post(&mut self, slot: SlotId) {
        if let Some(MmcRequest { payload: Payload::Slot { slot: on_bus, .. }, .. }) = self.running {
            assert_ne!(on_bus, slot, "[memory-prepared-once]: the request is on the bus");
        }
        assert!(!self.engine.has(slot), "[task-number-is-slot]: {slot:?} is the engine's");
        let memory = &mut self.memory[slot.index()];
        let is_prepared = memory.prepared || memory.blocks_prepared > 0;
        assert!(is_prepared, "[prepared-while-in-use]: posted twice");
        (memory.prepared, memory.blocks_prepared) = (false, 0);
        self.cleanups += 1;
    }

    fn card_busy(&mut self, now: Instant) -> bool {
        assert!(self.running.is_none());
        self.settle_busy(now);
        self.state == CardState::Programming
    }

    fn is_tuned(&self) -> bool {
        self.tuned
    }

    fn retune(&mut self, now: Instant) -> Result<(), HostError> {
        assert!(
            self.running.is_none() && self.tuned && !self.engine.has_bus(),
            "[one-request-on-bus]"
        );
        legal(CardState::Transfer, Opcode::MmcTuningBlock, self.engine.card_queue()).unwrap();
        assert!(
            !self.unconfirmed,
            "[status-before-tuning]: tuning would ignore a write's response"
        );
        self.erase = 0; // the card forgets an erase that has begun
        self.settle_busy(now);
        assert_eq!(self.state, CardState::Transfer, "a card should be ready before tuning");
        self.retunes += 1;
        self.drifted = false;
        match self.deaf.checked_sub(1) {
            None => Ok(()),
            Some(deaf) => {
                self.deaf = deaf;
                Err(HostError::Damaged)
            }
        }
    }

    fn abort(&mut self, now: Instant) {
        if let Some((command, until)) = self.engine.take_sent_direct(now, self.busy) {
            self.send(&command);
            self.busy_until = until;
        }
        match self.engine.abort(now, self.busy) {
            Some(Direction::Read) => self.state = CardState::Data,
            Some(Direction::Write) => self.state = CardState::Receive,
            None => {}
        }
        self.events.clear();
        (self.running, self.held) = (None, None);
    }

    fn reset(&mut self, now: Instant) -> Result<Target, HostError> {
        self.unconfirmed = false;
        assert!(self.running.is_none(), "[one-request-on-bus]");
        self.resets += 1;
        self.erase = 0;
        self.lost.append(&mut self.volatile);
        (self.state, self.busy_until) = (CardState::Transfer, now);
        self.engine.reset();
        self.drifted = false;
        (self.at_reset)(&mut self.target);
        if self.dies_at_reset {
            return Err(HostError::Timeout);
        }
        match self.noisy_resets.checked_sub(1) {
            None => Ok(self.target),
            Some(left) => {
                self.noisy_resets = left;
                let mut found = self.target;
                (self.found_after_noise)(&mut found);
                Ok(found)
            }
        }
    }
}
