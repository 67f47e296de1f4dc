//! A controller and a card of which each transaction goes as the script says, in virtual time. It
//! checks B1 to B4 and the legality of every command.

use super::*;
use crate::mmc::command::state::{CardState, Queue, legal};
use crate::mmc::command::status::Status as CardStatus;
use crate::mmc::command::{Command, Direction, Opcode, Response};
use crate::mmc::controller::{HostError, NotNow, Part, Payload, Transaction};

/// How a transaction goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The controller reports an error; so many blocks went over before.
    Error(Part, HostError, u16),
    /// A response has these bits, too.
    Bits(Part, u32),
    /// It goes well, and the bus is to be tuned again.
    Drift,
    /// No event comes: an interrupt is lost.
    Silence,
    /// The card is pulled out.
    Gone,
}

/// A transaction on the bus, to its last event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) command: Opcode,
    /// First sector of the request, where it transfers.
    pub(super) sector: Option<u64>,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    sector: u64,
    sectors: u32,
    accepted: bool,
    prepared: bool,
    copied_in: bool,
    copied_out: bool,
    /// Blocks that went over well, from the first.
    moved: u32,
}

/// Nanoseconds of a command, and of a block.
pub(super) const COMMAND: Duration = Duration::from_us(2);
const BLOCK: Duration = Duration::from_us(20);

pub(super) struct Scripted {
    capabilities: HostCapabilities,
    /// By the number of the transaction, counted from 0.
    pub(super) faults: BTreeMap<usize, Fault>,
    /// Every transfer of this sector fails so, when it is one of several blocks, and alone.
    pub(super) bad_sector: Option<(u64, Option<Fault>, Option<Fault>)>,
    /// How long the card is busy after a write.
    pub(super) busy: Duration,
    /// Starts in interrupt context that are refused.
    pub(super) refusals: u32,
    /// Resets that the card does not survive.
    pub(super) dies_at_reset: bool,
    events: VecDeque<(Instant, HostEvent)>,
    /// A transaction is on the bus.
    running: Option<Transaction>,
    state: CardState,
    busy_until: Instant,
    memory: Vec<Memory>,
    pub(super) commands: BTreeMap<u8, u32>,
    pub(super) spans: Vec<Span>,
    pub(super) prepares: u32,
    pub(super) cleanups: u32,
    pub(super) resets: u32,
    pub(super) copies: [u32; 2],
    /// The last transfer: its slot, and what had moved before.
    last: Option<(SlotId, u32)>,
    /// What addresses count, in parts of a sector.
    pub(super) unit: u64,
    /// CMD13 is not answered.
    pub(super) mute: bool,
    /// Each sector that is read alone fails the first time: those that have.
    pub(super) flaky: Option<Vec<u64>>,
    /// The bus is tuned; how often again; how often that fails.
    pub(super) tuned: bool,
    pub(super) retunes: u32,
    pub(super) deaf: u32,
    /// Blocks that went over well of each request, by its first sector.
    pub(super) well: BTreeMap<u64, u32>,
    /// It has bounce buffers: one, or one for each slot.
    pub(super) bounces: Option<Bounce>,
}

impl Scripted {
    pub(super) fn new(transfer: Transfer, busy: BusyDetect) -> Self {
        Self {
            capabilities: HostCapabilities {
                transfer,
                busy_detect: busy,
                ..HostCapabilities::plain()
            },
            faults: BTreeMap::new(),
            bad_sector: None,
            busy: us(100),
            refusals: 0,
            dies_at_reset: false,
            events: VecDeque::new(),
            running: None,
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
            well: BTreeMap::new(),
            bounces: None,
        }
    }

    pub(super) fn soldered_in(mut self) -> Self {
        self.capabilities.non_removable = true;
        self
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        self.events.front().map(|(at, _)| *at)
    }

    pub(super) fn event_at(&mut self, now: Instant) -> Option<HostEvent> {
        let (_, event) = self.events.pop_front_if(|(at, _)| *at <= now)?;
        if self.events.is_empty() {
            self.running = None;
        }
        Some(event)
    }

    pub(super) fn all_ended(&self) {
        assert!(self.events.is_empty() && self.running.is_none(), "something is on the bus");
        assert!(!self.memory.iter().any(|memory| memory.prepared), "something stays prepared");
        assert_eq!(self.prepares, self.cleanups);
    }

    fn settle_busy(&mut self, now: Instant) {
        if now >= self.busy_until {
            self.state = self.state.after_busy();
        }
    }

    fn send(&mut self, command: &Command) {
        let row = command.opcode.row();
        *self.commands.entry(row.index).or_default() += 1;
        self.state = legal(self.state, command.opcode, Queue::Off)
            .unwrap_or_else(|illegal| panic!("{illegal}"));
    }

    fn response(&self, fault: Option<Fault>, part: Part) -> HostEvent {
        let bits = match fault {
            Some(Fault::Bits(at, bits)) if at == part => bits,
            _ => 0,
        };
        let ready = self.state != CardState::Programming;
        let status = CardStatus::new(self.state, ready).0 | bits;
        HostEvent::CommandDone { part, response: Response::Short(status) }
    }

    fn fault_of(&mut self, transaction: &Transaction) -> Option<Fault> {
        if self.mute && transaction.command.opcode == Opcode::SendStatus {
            return Some(Fault::Error(Part::Command, HostError::Timeout, 0));
        }
        if let Some(fault) = self.faults.get(&self.spans.len()) {
            return Some(*fault);
        }
        let Payload::Slot { slot, skip } = transaction.payload else { return None };
        let blocks = u64::from(transaction.data()?.blocks);
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
        let fault = if blocks > 1 { in_several } else { alone };
        fault.filter(|_| hit)
    }

    /// Plays `transaction` from `now`: where the card is afterwards, and what is told when.
    fn play(&mut self, transaction: &Transaction, fault: Option<Fault>, now: Instant) {
        let mut at = now;
        let fails = |part| match fault {
            Some(Fault::Error(of, error, blocks)) if of == part => Some((error, blocks)),
            _ => None,
        };
        let tell = |events: &mut VecDeque<_>, at, event| events.push_back((at, event));
        let data = transaction.data();
        let direction = data.map(|data| data.direction);
        let commands =
            [(Part::Announce, transaction.announce), (Part::Command, Some(transaction.command))];
        for (part, command) in commands {
            let Some(command) = command else { continue };
            at = at + COMMAND;
            if let Some((error, blocks)) = fails(part) {
                // The card did not hear it.
                return tell(&mut self.events, at, HostEvent::Error { part, error, blocks });
            }
            let response = self.response(fault, part);
            self.send(&command);
            tell(&mut self.events, at, response);
        }
        if let (Some(data), Payload::Slot { slot, skip }) = (data, transaction.payload) {
            let memory = &mut self.memory[slot.index()];
            let dma = self.capabilities.transfer == Transfer::Dma;
            assert!(memory.accepted && memory.prepared == dma, "B4: {slot:?} in {transaction:?}");
            assert!(skip + u32::from(data.blocks) <= memory.sectors, "more than the request has");
            let first = memory.sector + u64::from(skip);
            assert_eq!(u64::from(transaction.command.argument), first * self.unit);
            if let Some(announce) = transaction.announce {
                assert_eq!(announce.argument, u32::from(data.blocks));
            }
            let bounced = self.bounces.is_some() && direction == Some(Direction::Write);
            assert_eq!(memory.copied_in, bounced, "B5");
            if direction == Some(Direction::Read) {
                assert_eq!(memory.moved, skip, "P5: what is read goes over once, in order");
            } else {
                memory.moved = skip;
            }
            let failure = fails(Part::Data);
            let blocks = failure.map_or(data.blocks, |(_, blocks)| blocks);
            memory.moved += u32::from(blocks);
            self.well.insert(memory.sector, memory.moved);
            at = at + Duration::from_ns(BLOCK.as_ns() * u64::from(blocks.max(1)));
            let bounded = transaction.announce.is_some() || transaction.stop.is_none();
            if let Some((error, blocks)) = failure {
                if data.blocks == 1 {
                    self.data_ends(at);
                }
                let part = Part::Data;
                return tell(&mut self.events, at, HostEvent::Error { part, error, blocks });
            }
            tell(&mut self.events, at, HostEvent::DataDone);
            if bounded {
                self.data_ends(at);
            }
        }
        if let Some(stop) = transaction.stop {
            at = at + COMMAND;
            let response = self.response(fault, Part::Stop);
            self.send(&stop);
            if self.state == CardState::Programming {
                self.busy_until = at + self.busy;
            }
            if let Some((error, blocks)) = fails(Part::Stop) {
                let part = Part::Stop;
                return tell(&mut self.events, at, HostEvent::Error { part, error, blocks });
            }
            tell(&mut self.events, at, response);
        }
        if transaction.command.opcode == Opcode::StopTransmission
            && self.state == CardState::Programming
        {
            self.busy_until = at + self.busy;
        }
        if self.capabilities.busy_detect == BusyDetect::Hardware && transaction.ends_busy() {
            at = at.max(self.busy_until);
            let busy = match fails(Part::Busy) {
                None => HostEvent::BusyReleased,
                Some((error, blocks)) => HostEvent::Error { part: Part::Busy, error, blocks },
            };
            tell(&mut self.events, at, busy);
        }
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

    fn has_bounce_buffers(&self) -> bool {
        self.bounces.is_some()
    }

    fn copy_in(&mut self, slot: SlotId) {
        if self.bounces == Some(Bounce::Sync) {
            assert!(self.running.is_none(), "B5: the buffer is in use");
        }
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.copied_in && memory.moved == 0, "B5");
        memory.copied_in = true;
        self.copies[0] += 1;
    }

    fn copy_out(&mut self, slot: SlotId) {
        if self.bounces == Some(Bounce::Sync) {
            assert!(self.running.is_none(), "B5: the buffer is in use");
        }
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.copied_out && memory.moved == memory.sectors, "B5");
        memory.copied_out = true;
        self.copies[1] += 1;
    }

    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let memory = &mut self.memory[slot.index()];
        assert!(!memory.prepared, "{slot:?} is in use");
        let (sector, sectors) = (issue.request().sector, issue.request().sectors);
        *memory = Memory { sector, sectors, accepted: true, ..Memory::default() };
    }

    fn prepare(&mut self, slot: SlotId) {
        let memory = &mut self.memory[slot.index()];
        assert!(memory.accepted && !memory.prepared, "B4: prepared once");
        assert_eq!(self.capabilities.transfer, Transfer::Dma);
        memory.prepared = true;
        self.prepares += 1;
    }

    fn start(&mut self, transaction: &Transaction, now: Instant) {
        assert!(self.running.is_none(), "B1: {transaction:?} while {:?} runs", self.running);
        self.settle_busy(now);
        let sector = match transaction.payload {
            Payload::None => None,
            Payload::Slot { slot, .. } => Some(self.memory[slot.index()].sector),
        };
        let fault = self.fault_of(transaction);
        self.running = Some(*transaction);
        match fault {
            Some(Fault::Silence) => self.send(&transaction.command),
            Some(Fault::Gone) => self.events.push_back((now + COMMAND, HostEvent::CardGone)),
            Some(Fault::Drift) => {
                self.events.push_back((now, HostEvent::RetuneNeeded));
                self.play(transaction, None, now);
            }
            _ => self.play(transaction, fault, now),
        }
        if let Payload::Slot { slot, skip } = transaction.payload {
            self.last = Some((slot, skip));
        }
        // What the card says failed, has moved nothing.
        let disowns = |(_, event): &(Instant, HostEvent)| match event {
            HostEvent::CommandDone { response, .. } => response.status().unwrap().errors() != 0,
            _ => false,
        };
        if let Some((slot, before)) = self.last
            && self.events.iter().any(disowns)
        {
            let memory = &mut self.memory[slot.index()];
            memory.moved = before;
            self.well.insert(memory.sector, before);
        }
        let to = self.events.back().map_or(now, |(at, _)| *at);
        let command = transaction.command.opcode;
        self.spans.push(Span { command, sector, from: now, to });
    }

    fn start_atomic(&mut self, transaction: &Transaction, now: Instant) -> Result<(), NotNow> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(NotNow);
        }
        self.start(transaction, now);
        Ok(())
    }

    fn cleanup(&mut self, slot: SlotId) {
        if let Some(Transaction { payload: Payload::Slot { slot: on_bus, .. }, .. }) = self.running
        {
            assert_ne!(on_bus, slot, "P2: it is on the bus");
        }
        let memory = &mut self.memory[slot.index()];
        assert!(memory.prepared, "B4: cleaned up once");
        memory.prepared = false;
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
        assert!(self.running.is_none() && self.tuned, "B1");
        self.settle_busy(now);
        assert_eq!(self.state, CardState::Transfer, "only a card that is ready is tuned");
        self.retunes += 1;
        match self.deaf.checked_sub(1) {
            None => Ok(()),
            Some(deaf) => {
                self.deaf = deaf;
                Err(HostError::Damaged)
            }
        }
    }

    fn abort(&mut self, _now: Instant) {
        self.events.clear();
        self.running = None;
    }

    fn reset(&mut self, now: Instant) -> Result<(), HostError> {
        assert!(self.running.is_none(), "B1");
        self.resets += 1;
        (self.state, self.busy_until) = (CardState::Transfer, now);
        if self.dies_at_reset { Err(HostError::Timeout) } else { Ok(()) }
    }
}
