//! The model of a controller in virtual time. It plays each MMC request against a [`Card`], and
//! interrupts when the request is over.
//!
//! With DMA the controller plays the whole request at its start: commands and data pass as fast as
//! bus and card allow, and one interrupt reports the result. With PIO the data passes in pieces
//! (`pio`), and a processor copies each piece in its own interrupt.
//!
//! The controller notices a missing response when the response would have begun. It notices missing
//! data at the end of the request's [limit](MmcRequest::limit), and likewise a missing end of busy
//! if it detects busy in hardware.
//!
//! An MMC request interrupts once, when it is over or has failed; with PIO also for each piece. A
//! controller that detects the end of busy in hardware ends no request before that, asked or not,
//! like SDHCI's *transfer complete*. A request path that still asks the card finds it ready.
//!
//! # Rules
//!
//! - **[misuse-ends-simulation]** A command or transfer that the card refuses as a
//!   [`Misuse`](super::card::Misuse) ends the simulation: this is a bug of the request path, not an
//!   error of the card.

use super::bus::InUse;
use super::card::{Card, DataError, Reaction, Transferred};
use super::dma::{Dma, MemoryReady};
use super::engine::Engine;
use super::fault::Faults;
use super::ledger::Ledger;
use super::per_kib;
use super::pio::{Copied, Pio};
use super::registers::known;
use super::used::Uses;
use crate::data::event::{DataEvent, Place};
use crate::mmc::profile::{HostCosts, PioMisses};
use blockyard::driver::Issue;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::block::Target;
use blockyard_mmc::bus_use::BusUse;
use blockyard_mmc::command::{Command, Direction, Opcode, Rca};
use blockyard_mmc::controller::{
    HostController, HostError, HostEvent, MmcRequest, NotNow, Part, Payload, SlotId,
};
use blockyard_mmc::engine::QueueEngine;
use blockyard_mmc::host::{BusyDetect, HostCapabilities, Transfer};
use blockyard_mmc::mode::{Mode, NRC};
use std::collections::VecDeque;

/// The address of the card.
pub(super) const RCA: Rca = Rca(1);

/// An MMC request on the bus.
#[derive(Clone, Copy, Debug)]
struct Running {
    transaction: MmcRequest,
    since: Instant,
    /// The request's bus time has been counted up to this instant.
    bus_from: Instant,
    /// The request's device time, including the busy time that follows, is counted from this
    /// instant.
    device_from: Instant,
    /// The request has left the bus and has been reported as a bus use.
    over: bool,
}

/// The controller and its card.
#[derive(Debug)]
pub struct Controller {
    pub(super) card: Card,
    capabilities: HostCapabilities,
    pub(super) mode: Mode,
    has_bounce_buffers: bool,
    /// The latest instant of a call.
    now: Instant,
    running: Option<Running>,
    pio: Option<Pio>,
    dma: Option<Dma>,
    memory: MemoryReady,
    pio_misses: PioMisses,
    /// How much longer the bus takes for a KiB of a read because the DMA engine moves it.
    dma_per_kib: Duration,
    /// The period in which the engine asks the card for ready tasks.
    pub(super) status_poll: Duration,
    pub(super) engine: Engine,
    /// The buffer for registers and for headers of packed commands.
    block: Box<[u8; 512]>,
    /// The instant from which the bus is free for a command.
    pub(super) free_at: Instant,
    /// The same instant if the request on the bus is aborted: the end of the last response.
    line_free_at: Instant,
    /// Events not yet reported to the request path.
    pub(super) events: VecDeque<HostEvent>,
    /// The instant of the next event, if it still has to be scheduled.
    pub(super) wakes_at: Option<Instant>,
    /// Changes with each request, so that events scheduled for an earlier request are stale.
    pub(super) serial: u32,
    /// The number of times each command was sent, by command number, without
    /// [`Self::queue_status`].
    pub(super) commands: [u64; 64],
    /// The number of queue status commands (CMD13 with bit 15).
    pub(super) queue_status: u64,
    /// The transfers that continued an open one, without a command: reads, and writes.
    pub(super) continued: [u64; 2],
    /// The times with a request on the bus; with PIO, with commands and pieces of data on it.
    pub(super) bus: InUse,
    /// The same times, and those in which the card was busy.
    pub(super) device: InUse,
    pub(super) uses: Uses,
    /// Time in which a request was over, but its interrupt was lost and the host had not noticed.
    pub(super) unnoticed: Duration,
    /// The start of such a time, if one is in progress.
    unnoticed_from: Option<Instant>,
    pub(super) faults: Faults,
    /// The record of the data moved for each request.
    pub(super) ledger: Ledger,
    /// The card's data events that have not been reported.
    pub(super) data_events: VecDeque<DataEvent<Place>>,
}

impl Controller {
    /// Returns a controller in front of `card`, which it identifies and drives in `mode`.
    pub(super) fn new(
        card: Card,
        capabilities: HostCapabilities,
        has_bounce_buffers: bool,
        mode: Mode,
        faults: Faults,
        costs: &HostCosts,
    ) -> Self {
        assert!(
            capabilities.queue_engine_depth <= 32,
            "the engine has more tasks than CMD44 can name"
        );
        Self {
            card: card.identified(RCA),
            capabilities,
            mode,
            has_bounce_buffers,
            now: Instant::ZERO,
            running: None,
            pio: None,
            dma: None,
            memory: MemoryReady::default(),
            pio_misses: costs.pio_misses,
            dma_per_kib: costs.dma_per_kib,
            status_poll: costs.status_poll,
            engine: Engine::default(),
            block: Box::new([0; 512]),
            free_at: Instant::ZERO,
            line_free_at: Instant::ZERO,
            events: VecDeque::new(),
            wakes_at: None,
            serial: 0,
            commands: [0; 64],
            queue_status: 0,
            continued: [0; 2],
            bus: InUse::default(),
            device: InUse::default(),
            uses: Uses::default(),
            unnoticed: Duration::ZERO,
            unnoticed_from: None,
            faults,
            ledger: Ledger::new(),
            data_events: VecDeque::new(),
        }
    }

    /// Takes the event to schedule: its instant and its serial number for [`Self::happens`].
    pub(super) fn take_schedule(&mut self) -> Option<(Instant, u32)> {
        let at = self.wakes_at.take()?;
        debug_assert!(at >= self.now, "an event at {at}, before {}", self.now);
        Some((at, self.serial))
    }

    /// Handles the event scheduled as `serial`. Returns whether the controller interrupts.
    pub(super) fn happens(&mut self, serial: u32, now: Instant) -> bool {
        if serial != self.serial {
            return false;
        }
        debug_assert!(now >= self.now, "time must move forward");
        self.now = now;
        if self.running.is_none() {
            return self.engine_happens(now);
        }
        let Some(pio) = &mut self.pio else {
            self.leave_bus(now);
            return true;
        };
        pio.passed();
        self.pump(now);
        self.wants_interrupt() && !self.faults.loses_interrupt()
    }

    /// Lets a processor take the interrupt. Returns the data that the processor copies.
    pub(super) fn begin_interrupt(&mut self) -> Copied {
        self.pio.as_mut().map(Pio::begin_copy).unwrap_or_default()
    }

    /// Notes that the processor has copied its data. Returns whether the controller interrupts
    /// again at once.
    pub(super) fn end_interrupt(&mut self, now: Instant) -> bool {
        let Some(pio) = &mut self.pio else { return false };
        self.now = now;
        pio.end_copy();
        self.pump(now);
        self.wants_interrupt() && !self.faults.loses_interrupt()
    }

    /// Returns the next event for the request path.
    pub(super) fn next_event(&mut self) -> Option<HostEvent> {
        if self.pio.is_some() {
            return None;
        }
        let event = self.events.pop_front();
        if event.is_some_and(|event| self.speaks_of_transfer(event)) {
            self.ledger.disowned(self.card.failed_entry());
        }
        if self.events.is_empty() {
            self.running = None;
        }
        event
    }

    /// Returns whether `event` reports a response after the transfer's data in which the card
    /// disowns the transfer.
    fn speaks_of_transfer(&self, event: HostEvent) -> bool {
        let HostEvent::CommandDone { part, response } = event else { return false };
        let is_after = part == Part::Stop || self.running().data().is_none();
        is_after && response.status().is_some_and(|status| status.errors() != 0)
    }

    /// Returns the time until `now` in which the card's memory worked unseen by the host.
    pub(super) fn memory_time(&self, now: Instant) -> Duration {
        self.card.memory_time(now)
    }

    /// Returns the next finished bus use.
    pub(super) fn next_use(&mut self) -> Option<BusUse> {
        self.uses.next()
    }

    /// Takes the current request off the bus.
    fn leave_bus(&mut self, now: Instant) {
        if let Some(running) = self.running.as_mut().filter(|running| !running.over) {
            running.over = true;
            self.uses.transaction(&running.transaction, running.since, now);
        }
    }

    fn wants_interrupt(&self) -> bool {
        self.pio.as_ref().is_some_and(Pio::wants_copy)
    }

    /// Plays `transaction` from `now` on. It will interrupt when it is over or has failed.
    fn play(&mut self, transaction: &MmcRequest, now: Instant) {
        assert!(
            self.running.is_none(),
            "[one-request-on-bus]: {transaction:?} while {:?}",
            self.running
        );
        assert!(
            !self.engine.has_bus(),
            "[engine-owns-bus]: {transaction:?} while the engine has the bus"
        );
        self.ledger.begin(transaction);
        self.now = now;
        self.serial = self.serial.wrapping_add(1);
        self.running = Some(Running {
            transaction: *transaction,
            since: now,
            bus_from: now,
            device_from: now,
            over: false,
        });
        self.bus.add(now, now);
        let at = now.max(self.free_at);
        let data_at = match transaction.data() {
            Some(data) if transaction.continues => {
                self.continued[usize::from(data.direction == Direction::Write)] += 1;
                let went_on = self.card.go_on(data.blocks.into(), at);
                went_on.unwrap_or_else(|misuse| panic!("[misuse-ends-simulation] {misuse}"));
                Some(at)
            }
            _ => self.play_commands(transaction, at),
        };
        if let Some(at) = data_at {
            self.play_data(transaction, at);
        }
    }

    /// Plays the commands before the data from `at` on. Returns when data may pass; `None` if none
    /// does.
    fn play_commands(&mut self, transaction: &MmcRequest, mut at: Instant) -> Option<Instant> {
        if let Some(announce) = transaction.announce {
            let reaction = self.send(&announce, at);
            if !self.answered(Part::Announce, &reaction) {
                self.ends(reaction.at, reaction.busy_until);
                return None;
            }
            at = reaction.at + self.command_gap();
        }
        let reaction = self.send(&transaction.command, at);
        if !self.answered(Part::Command, &reaction) {
            self.ends(reaction.at, reaction.busy_until);
        } else if transaction.data().is_none() {
            self.busy(reaction.at, reaction.busy_until);
        } else if reaction.data_from.is_none() {
            // A card that refuses a command moves no data, so the host waits in vain.
            self.data_failed(reaction.at, DataError::Timeout, 0);
        } else {
            if transaction.stays_open {
                self.card.stay_open();
            }
            return Some(reaction.at);
        }
        None
    }

    /// Plays the data of `transaction`, which may pass from `at` on.
    fn play_data(&mut self, transaction: &MmcRequest, at: Instant) {
        let Some(data) = transaction.data() else { return };
        let has_header = matches!(transaction.payload, Payload::Packed(_) | Payload::Block);
        if has_header && data.direction == Direction::Write {
            self.card
                .show_block(&self.block)
                .unwrap_or_else(|misuse| panic!("[misuse-ends-simulation] {misuse}"));
        }
        let blocks = u32::from(data.blocks);
        match self.capabilities.transfer {
            Transfer::Dma => {
                self.dma = Some(Dma::new(blocks, at));
                self.feed();
            }
            Transfer::Pio => {
                let reads = data.direction == Direction::Read;
                let wait_per_kib = self.pio_misses.per_kib_of(blocks * SECTOR_BYTES, reads);
                self.pio = Some(Pio::new(data.direction, blocks, at, wait_per_kib));
                self.was_on_bus(at);
                // A write begins with an interrupt that asks for data.
                self.wakes_at = Some(at);
                self.pump(at);
            }
        }
    }

    /// Moves the blocks of a DMA transfer whose memory is ready ([data-waits-for-memory]). After
    /// the last block the request continues.
    fn feed(&mut self) {
        let Some(dma) = self.dma else { return };
        let transaction = *self.running();
        let ready = match transaction.payload {
            Payload::Slot { slot, skip } => self.memory.blocks(slot).saturating_sub(skip),
            Payload::None | Payload::Block | Payload::Packed(_) => u32::MAX,
        };
        let blocks = dma.can_move(ready);
        if blocks == 0 {
            return;
        }
        let done = self.transfer(&transaction, blocks, dma.ready.max(self.now));
        let reads = transaction.data().is_some_and(|data| data.direction == Direction::Read);
        let dma_per_kib = if reads { self.dma_per_kib } else { Duration::ZERO };
        let end = done.end + per_kib(dma_per_kib, blocks * SECTOR_BYTES);
        self.dma = dma.moved(blocks, end);
        if let Some(error) = done.error {
            self.dma = None;
            self.data_failed(end, error, dma.moved + done.blocks);
        } else if self.dma.is_none() {
            self.after_data(end, done.busy_until);
        }
    }

    /// Moves the next piece of a PIO transfer over the bus if possible. After the last piece the
    /// request continues.
    fn pump(&mut self, now: Instant) {
        let Some(pio) = &mut self.pio else { return };
        let Some(running) = &mut self.running else { return };
        let at = now.max(pio.ready);
        // Until then the request waited for the processor.
        running.bus_from = running.bus_from.max(at);
        if pio.is_done() {
            let busy_until = pio.busy_until;
            self.pio = None;
            return self.after_data(at, busy_until);
        }
        let Some(blocks) = pio.next_piece() else { return };
        let transaction = *self.running();
        let done = self.transfer(&transaction, blocks, at);
        if done.error.is_some() {
            self.pio = None;
            return self.data_done(&done);
        }
        self.was_on_bus(done.end);
        let pio = self.pio.as_mut().expect("a piece on the bus should have a PIO transfer");
        (pio.ready, pio.busy_until) = (done.end + pio.wait(blocks), done.busy_until);
        self.wakes_at = Some(pio.ready);
    }

    /// Returns the time between a response and the next command.
    pub(super) fn command_gap(&self) -> Duration {
        self.mode.time(u64::from(NRC))
    }

    /// Passes on the card's data events with the data of `transaction`.
    pub(super) fn take_data_events(&mut self, transaction: Option<&MmcRequest>) {
        let Self { card, ledger, data_events, .. } = self;
        let place = |from| transaction.and_then(|transaction| ledger.place(transaction, from));
        while let Some(event) = card.next_data_event() {
            data_events.extend(event.of(place));
        }
    }

    pub(super) fn transfer(
        &mut self,
        transaction: &MmcRequest,
        blocks: u32,
        at: Instant,
    ) -> Transferred {
        self.take_data_events(None);
        let done = self.card.transfer_within(transaction.limit, blocks, at);
        let done = done.unwrap_or_else(|misuse| panic!("[misuse-ends-simulation] {misuse}"));
        if let Some(until) = done.busy_until {
            self.uses.card_busy(done.end, until);
        }
        self.take_data_events(Some(transaction));
        done
    }

    pub(super) fn send(&mut self, command: &Command, at: Instant) -> Reaction {
        match command.opcode {
            Opcode::SendQueueStatus => self.queue_status += 1,
            opcode => self.commands[usize::from(opcode.index())] += 1,
        }
        let arrives = at + self.card.command_time();
        let reaction = self.card.command(command, arrives);
        let reaction =
            reaction.unwrap_or_else(|misuse| panic!("[misuse-ends-simulation] {misuse}"));
        self.ledger.sent(command, reaction.answer.is_ok());
        self.line_free_at = reaction.at + self.command_gap();
        if let Some(until) = reaction.busy_until {
            self.uses.card_busy(reaction.at, until);
        }
        reaction
    }

    /// Reports the response or its absence. Returns whether a response came.
    fn answered(&mut self, part: Part, reaction: &Reaction) -> bool {
        let error = |error| HostEvent::Error { part, error, blocks: 0 };
        let status = reaction.answer.ok().and_then(|response| response.status());
        if reaction.answer.is_err() && self.running().data().is_some() {
            self.ledger.failed();
        }
        let asks = self.running().command.opcode == Opcode::SendStatus;
        if asks && status.is_some_and(|status| status.is_ready()) {
            self.ledger.recovered();
        }
        self.events.push_back(match reaction.answer {
            Ok(response) => HostEvent::CommandDone { part, response },
            Err(no) => error(no.into()),
        });
        reaction.answer.is_ok()
    }

    /// Ends the data phase: no more data will pass.
    fn data_done(&mut self, done: &Transferred) {
        match done.error {
            None => self.after_data(done.end, done.busy_until),
            Some(error) => self.data_failed(done.end, error, done.blocks),
        }
    }

    fn data_failed(&mut self, at: Instant, error: DataError, blocks: u32) {
        let transaction = *self.running();
        let (error, at) = match error {
            DataError::Crc => (HostError::Damaged, at),
            DataError::Timeout => (HostError::Timeout, at + transaction.limit),
        };
        self.ledger.passed(&transaction, blocks);
        self.ledger.failed();
        let blocks = u16::try_from(blocks)
            .expect("good blocks should not exceed the 16-bit count of the request");
        self.events.push_back(HostEvent::Error { part: Part::Data, error, blocks });
        self.ends(at, None);
    }

    /// Ends the data phase at `at` without an error.
    fn after_data(&mut self, at: Instant, busy_until: Option<Instant>) {
        self.events.push_back(HostEvent::DataDone);
        let transaction = *self.running();
        let blocks = transaction.data().map_or(0, |data| data.blocks);
        self.ledger.passed(&transaction, u32::from(blocks));
        if let (Payload::Packed(_), Some(entry)) = (transaction.payload, self.card.failed_entry()) {
            self.ledger.disowned(Some(entry));
        }
        let reads = transaction.data().is_some_and(|data| data.direction == Direction::Read);
        if transaction.payload == Payload::Block && reads {
            self.block.copy_from_slice(self.card.register());
        }
        let Some(stop) = transaction.stop else { return self.busy(at, busy_until) };
        let reaction = self.send(&stop, at);
        if self.answered(Part::Stop, &reaction) {
            self.busy(reaction.at, reaction.busy_until);
        } else {
            self.ends(reaction.at, reaction.busy_until);
        }
    }

    /// Ends everything but the busy time at `at`. The card is busy until `busy_until`.
    fn busy(&mut self, at: Instant, busy_until: Option<Instant>) {
        let waits = self.capabilities.busy_detect == BusyDetect::Hardware;
        if !waits || !self.running().ends_busy() {
            return self.ends(at, busy_until);
        }
        // Hardware that waits for the end of busy reports the request when the card is ready.
        let released = busy_until.unwrap_or(at).max(at);
        let given_up = at + self.running().limit;
        let part = Part::Busy;
        let blocks = self.running().data().map_or(0, |data| data.blocks);
        let timeout = HostEvent::Error { part, error: HostError::Timeout, blocks };
        let is_late = released > given_up;
        if is_late && self.running().data().is_some() {
            self.ledger.failed();
        }
        self.events.push_back(if is_late { timeout } else { HostEvent::BusyReleased });
        self.ends(released.min(given_up), busy_until);
    }

    /// Ends the request at `at`.
    fn ends(&mut self, at: Instant, busy_until: Option<Instant>) {
        if let Some(removed) = self.faults.gone_by(at) {
            return self.loses_card(self.now.max(removed));
        }
        debug_assert!(at >= self.now, "a request ends at {at}, before {}", self.now);
        debug_assert!(self.pio.is_none(), "a request ends in the middle of its PIO transfer");
        if self.faults.drifts() {
            self.events.push_front(HostEvent::RetuneNeeded);
        }
        self.free_at = at + self.command_gap();
        self.was_on_bus(at);
        let from =
            self.running.as_ref().expect("a request that ends should be on the bus").device_from;
        self.device.add(from, busy_until.unwrap_or(at).max(at));
        self.wakes_at = (!self.faults.loses_interrupt()).then_some(at);
        self.unnoticed_from = if self.wakes_at.is_none() { Some(at) } else { None };
    }

    /// Counts the request's bus time up to `at`.
    fn was_on_bus(&mut self, at: Instant) {
        let running = self.running.as_mut().expect("counted bus time should belong to a request");
        self.bus.extend(running.bus_from, at);
        running.bus_from = at;
    }

    /// Returns whether the bus or the card is at work at `now`.
    pub(super) fn is_at_work(&self, now: Instant) -> bool {
        self.pio.is_some() || self.device.is_at(now)
    }

    /// Begins to measure at `now`. Discards the earlier counts.
    pub(super) fn forget(&mut self, now: Instant) {
        (self.commands, self.queue_status, self.continued) = ([0; 64], 0, [0; 2]);
        self.bus.forget(now);
        self.device.forget(now);
        self.unnoticed = Duration::ZERO;
        self.unnoticed_from = self.unnoticed_from.map(|from| from.max(now));
        if let Some(running) = &mut self.running {
            running.bus_from = running.bus_from.max(now);
            running.device_from = running.device_from.max(now);
        }
    }

    /// Notes that the request path finds out at `now`, without an interrupt, that a request is
    /// over.
    fn notice(&mut self, now: Instant) {
        let Some(from) = self.unnoticed_from.take() else { return };
        self.unnoticed += now.max(from).since(from);
        self.bus.noticed(now);
        self.device.noticed(now);
    }

    /// Removes the card at `at`.
    fn loses_card(&mut self, at: Instant) {
        self.card.remove(at);
        (self.pio, self.dma) = (None, None);
        self.events.clear();
        self.events.push_back(HostEvent::CardGone);
        let running = self.running.as_ref().expect("a card removal should hit a request");
        let device_from = running.device_from;
        // A transfer by PIO counts its command as it begins: in HS400 490 ns ahead.
        self.was_on_bus(at.max(running.bus_from));
        self.device.add(device_from, at);
        self.wakes_at = Some(at);
    }

    const fn running(&self) -> &MmcRequest {
        &self.running.as_ref().expect("request on the bus").transaction
    }
}

impl HostController for Controller {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    fn has_bounce_buffers(&self) -> bool {
        self.has_bounce_buffers
    }

    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        self.ledger.accept(slot, issue);
    }

    fn prepare(&mut self, slot: SlotId) {
        self.memory.prepare(slot, u32::MAX);
    }

    fn prepare_beside(&mut self, slot: SlotId, blocks: u32, now: Instant) {
        self.now = now;
        self.memory.prepare(slot, blocks);
        self.feed();
    }

    fn start(&mut self, transaction: &MmcRequest, now: Instant) {
        self.play(transaction, now);
    }

    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow> {
        if self.faults.is_not_now() {
            return Err(NotNow);
        }
        self.play(transaction, now);
        Ok(())
    }

    fn post(&mut self, slot: SlotId) {
        self.memory.post(slot);
    }

    fn block(&mut self) -> &mut [u8; 512] {
        &mut self.block
    }

    fn engine(&mut self) -> Option<&mut dyn QueueEngine> {
        (self.capabilities.queue_engine_depth > 0).then_some(self)
    }

    fn card_busy(&mut self, now: Instant) -> bool {
        self.card.busy_until().is_some_and(|until| until > now)
    }

    fn abort(&mut self, now: Instant) {
        self.events.retain(|event| matches!(event, HostEvent::Engine(_))); // [halt-frees-bus]
        if self.running.as_ref().is_some_and(|running| running.transaction.data().is_some()) {
            self.ledger.failed();
        }
        self.notice(now);
        self.leave_bus(now);
        (self.running, self.pio, self.dma, self.wakes_at) = (None, None, None, None);
        self.engine.abort();
        self.bus.cut(now);
        self.free_at = self.line_free_at.max(now);
    }

    fn is_tuned(&self) -> bool {
        self.mode.timing.needs_tuning()
    }

    fn retune(&mut self, now: Instant) -> Result<(), HostError> {
        self.tune(now)
    }

    fn reset(&mut self, now: Instant) -> Result<Target, HostError> {
        self.abort(now);
        self.uses.cut_busy(now);
        self.device.cut(now);
        self.card.power_cut(now);
        self.card.power_up(now);
        self.card.identify(RCA);
        self.card.drive(self.mode);
        self.ledger.reset();
        self.engine = Engine::default();
        Ok(Target::of(&known(self.card.registers(), self.mode, RCA), self.capabilities()))
    }
}
