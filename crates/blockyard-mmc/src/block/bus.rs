//! The steps of the request that claims the bus: its transfer, and the care of the card afterwards.

use super::act::{ActKind, Context};
use super::claim::{BUSY_LIMIT, BusStep, Claim, PackStep, Phase, REQUEST_LIMIT};
use super::mmc::Mmc;
use super::operation::Operation;
use super::power::Power;
use super::slot::{Kind, Stage};
use super::unconfirmed::UnconfirmedWrite;
use crate::command::{BlockCount, Command, Direction};
use crate::controller::{HostController, HostEvent, MmcRequest, NotNow, Payload, SlotId};
use crate::exchange::{Exchange, Progress};
use crate::host::BusyDetect;
use crate::policy::{Bounce, EndedBy, Job};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

impl<H: HostController> Mmc<H> {
    /// Takes note of an `event` that the controller's interrupt handler reports. Contexts do what
    /// follows, by
    /// [`Self::step`]: [`Context::Interrupt`] first.
    pub fn interrupt(&mut self, event: HostEvent, now: Instant) {
        self.tick(now);
        if let HostEvent::Engine(event) = event {
            return self.engine_event(event, now);
        }
        let progress = match &mut self.bus {
            Some(Claim { phase: Phase::Running(exchange, _), .. }) => {
                let progress = exchange.event(event);
                if self.unconfirmed != UnconfirmedWrite::None {
                    let exchange = *exchange;
                    self.check_unconfirmed_write(&exchange);
                }
                progress
            }
            _ => self.engine_exchange().map_or(Progress::Stray, |exchange| exchange.event(event)),
        };
        match event {
            HostEvent::CardGone => self.lose_card(),
            HostEvent::RetuneNeeded => self.retune_needed = self.controller.is_tuned(),
            _ if progress == Progress::Stray => self.counts.strays += 1,
            _ => {}
        }
        if progress == Progress::Ended {
            self.exchange_ended(now);
        }
    }

    /// Returns the request on the bus, if a step of it is due for `context`.
    pub(super) fn due_on_bus(&self, context: Context, now: Instant) -> Option<SlotId> {
        let bus = self.bus.as_ref().filter(|bus| bus.by == context)?;
        match bus.phase {
            Phase::Due(at) if at <= now => Some(bus.slot),
            _ => None,
        }
    }

    /// Gives up what has taken too long at `now`.
    #[inline]
    pub(super) fn tick(&mut self, now: Instant) {
        if now > self.now {
            self.now = now;
            self.check_limits(now);
        }
        if self.power != Power::On {
            self.check_power(now);
        }
    }

    /// Gives up what has taken too long, as time has passed. (At the same instant nothing new can
    /// have.)
    fn check_limits(&mut self, now: Instant) {
        if let Some(Claim { phase: Phase::Running(_, limit), .. }) = &self.bus
            && *limit <= now
        {
            self.give_up(now);
        }
        if self.cqe.is_some() {
            self.tick_engine(now);
        }
    }

    /// Gives up the MMC request on the bus, which has taken too long.
    #[cold]
    fn give_up(&mut self, now: Instant) {
        let Some(Claim { phase: Phase::Running(exchange, _), .. }) = &mut self.bus else {
            unreachable!("no MMC request is on the bus");
        };
        self.controller.abort(now);
        exchange.timed_out();
        let exchange = *exchange;
        self.check_unconfirmed_write(&exchange);
        self.exchange_ended(now);
    }

    /// Ends the act `kind`, which performs a step of the request on the bus.
    pub(super) fn finish_bus_act(&mut self, kind: ActKind, context: Context, now: Instant) {
        let Some(bus) = self.bus else {
            unreachable!("{kind:?} was begun without a claim on the bus")
        };
        if self.card_gone {
            return self.release_bus(Status::Gone);
        }
        match bus.step {
            BusStep::PollLine => {
                let busy = self.controller.card_busy(now);
                self.status_known(!busy, now);
            }
            BusStep::HandleStatus(answer) => {
                // For a card that is still busy:
                self.bus.as_mut().expect("claim of an act").step = BusStep::Status;
                self.status_received(&answer, now);
            }
            BusStep::Reset => self.reset(now),
            BusStep::CopyIn => {
                self.controller.copy_in(bus.slot);
                self.slots[bus.slot.index()].memory.copy_in();
                self.next_transfer(now);
            }
            BusStep::Retune => self.retune(now),
            BusStep::CopyOut => {
                self.controller.copy_out(bus.slot);
                self.release_bus(Status::Ok);
            }
            BusStep::Transfer => self.start_transfer(bus.slot, context, now),
            BusStep::AskBeforeTuning | BusStep::Status => {
                let ask = Command::send_status(self.target.rca);
                self.launch(MmcRequest::plain(ask, Duration::ZERO), context, now);
            }
            BusStep::Stop(direction) => {
                let stop = Command::stop_transmission(direction);
                self.launch(MmcRequest::plain(stop, self.target.write_limit), context, now);
            }
            BusStep::CloseTransfer => {
                self.launch(self.close_request(), context, now);
                if let (Some(open), true) = (&mut self.open, self.bus.is_some()) {
                    open.is_closing = true;
                }
            }
            BusStep::Command => {
                let operation = self.operation_on_bus().expect("operation that sends a command");
                self.send_operation(operation, context, now);
            }
            BusStep::ReadExtCsd | BusStep::StartBackground | BusStep::InterruptBackground => {
                self.launch(self.background_request(bus.step), context, now);
            }
        }
    }

    /// Puts the next transfer of the request in `slot`, which holds the claim, on the bus.
    fn start_transfer(&mut self, slot: SlotId, context: Context, now: Instant) {
        let of = self.slots[slot.index()];
        if of.kind == Kind::Write {
            self.cache.note_write(); // [reset-loss-fails-flush]
        }
        self.bus.as_mut().expect("claim of an act").done_before = of.done;
        let transfer = match self.pack.is_empty() {
            true => self.transfer_of(slot),
            false => self.packed_transfer(),
        };
        let opened = self.opened_by(&transfer, &of);
        if opened.is_some_and(|opened| opened.direction == Direction::Write) {
            self.cache.note_open_write(); // [reset-loss-fails-flush]
        }
        self.launch(transfer, context, now);
        if self.bus.is_some() {
            self.open = opened;
        }
        self.unprepared = Some(slot).filter(|slot| self.prepares_beside(*slot));
    }

    /// Puts `transaction` on the bus for the request that holds the claim.
    pub(super) fn launch(&mut self, transaction: MmcRequest, context: Context, now: Instant) {
        debug_assert!(self.engine_is_off(), "[engine-owns-bus]");
        let exchange = Exchange::new(&transaction, self.controller.capabilities().busy_detect)
            .after_write(self.has_unconfirmed_write() && !self.answer_lost);
        let own_limit = self.busy_limit().filter(|_| transaction.ends_busy());
        let limit = own_limit.unwrap_or(REQUEST_LIMIT);
        let started = if context == Context::Interrupt {
            self.controller.start_atomic(&transaction, now)
        } else {
            self.controller.start(&transaction, now);
            Ok(())
        };
        let bus = self.bus.as_mut().expect("claim of an act");
        match started {
            Ok(()) => (bus.phase, bus.started) = (Phase::Running(exchange, now + limit), now),
            Err(NotNow) => {
                let slot = bus.slot;
                self.bus = None;
                if self.pack.is_empty() {
                    self.pack.push(slot);
                }
                self.undo_pack();
                self.start_deferred = true;
                self.counts.not_now += 1;
            }
        }
    }

    /// Returns the next transfer of the request in `slot`.
    fn transfer_of(&self, slot: SlotId) -> MmcRequest {
        let of = &self.slots[slot.index()];
        debug_assert!(!of.is_exclusive() && of.left() > 0, "{slot:?} has nothing to transfer");
        let sector = of.sector + u64::from(of.done);
        let address =
            self.target.addressing.argument(sector).expect("address of an accepted request");
        let blocks = u16::try_from(of.next_blocks()).expect("blocks of an accepted request");
        let several = blocks > 1;
        let close_ended = several && self.policy.close_ended && self.target.set_block_count;
        let reliable = of.kind == Kind::ReliableWrite;
        let stays_open = self.is_left_open(of);
        let announced = (close_ended && !stays_open) || reliable;
        // Without flags the command is the same in both standards.
        let count = BlockCount { reliable, ..BlockCount::new(blocks) };
        let count = Command::set_block_count(count);
        MmcRequest {
            announce: announced.then_some(count),
            continues: self.continues_open(of),
            stays_open,
            command: match (of.direction(), several || stays_open) {
                (Direction::Read, false) => Command::read_single(address),
                (Direction::Read, true) => Command::read_multiple(address, blocks),
                (Direction::Write, false) if !announced => Command::write_single(address),
                (Direction::Write, _) => Command::write_multiple(address, blocks),
            },
            stop: (several && !announced && !stays_open)
                .then(|| Command::stop_transmission(of.direction())),
            payload: Payload::Slot { slot, skip: of.done },
            limit: self.target.transfer_limit(of.direction()),
        }
    }

    /// Acts on the end of the MMC request on the bus.
    fn exchange_ended(&mut self, now: Instant) {
        let Some(Claim { phase: Phase::Running(exchange, _), step, .. }) = self.bus else {
            return self.engine_request_ended(now);
        };
        self.counts.exceptions += u64::from(exchange.exception());
        if exchange.exception() {
            self.bus.as_mut().expect("claim of an MMC request").note_exception();
        }
        if self.card_gone {
            return self.release_bus(Status::Gone);
        }
        match step {
            BusStep::Transfer => self.transfer_ended(&exchange, now),
            BusStep::Status => {
                let bus = self.bus.as_mut().expect("claim of a CMD13");
                bus.next(BusStep::HandleStatus(exchange), now);
            }
            BusStep::AskBeforeTuning => self.status_before_tuning(&exchange, now),
            BusStep::Stop(_) => self.stop_ended(&exchange, now),
            BusStep::CloseTransfer => self.close_ended(&exchange, now),
            BusStep::Command | BusStep::StartBackground | BusStep::InterruptBackground => {
                self.command_ended(&exchange, now)
            }
            BusStep::ReadExtCsd => self.ext_csd_read(&exchange, now),
            step => unreachable!("{step:?} is no MMC request"),
        }
    }

    /// Acts on the end of a transfer.
    fn transfer_ended(&mut self, exchange: &Exchange, now: Instant) {
        let by = self.ending_context();
        let bus = self.bus.as_mut().expect("claim of a transfer");
        bus.by = by;
        debug_assert!(!self.slots[bus.slot.index()].is_exclusive(), "an operation transfers data");
        if !self.pack.is_empty() {
            return self.packed_transfer_ended(exchange, now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        let reads = slot.direction() == Direction::Read;
        slot.note_blocks(u32::from(exchange.blocks()));
        let is_whole = slot.left() == 0;
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        // What the card needs first, deferred work does, and so it ends the request.
        if self.plan.ended_by == EndedBy::Interrupt
            && is_whole
            && !bus.had_trouble()
            && !bus.has_exception()
        {
            bus.by = Context::Interrupt;
        }
        let held = UnconfirmedWrite::Held(bus.slot);
        let stays_open = self.note_open(now);
        if !reads && (stays_open || self.policy.busy != BusyDetect::Status) {
            self.unconfirmed = held; // [late-error-is-the-writes]
        }
        if stays_open {
            return self.transfer_succeeded(now);
        }
        let bus = self.bus.as_mut().expect("claim of a transfer");
        match self.policy.busy {
            _ if reads => self.transfer_succeeded(now),
            BusyDetect::Hardware => self.transfer_succeeded(now),
            BusyDetect::Line => bus.watch(BusStep::PollLine, now + BUSY_LIMIT, now),
            BusyDetect::Status => bus.watch(BusStep::Status, now + BUSY_LIMIT, now),
        }
    }

    /// Begins to recover from a failure on the bus: the card is asked for its status.
    pub(super) fn recover(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("claim of a failed step");
        debug_assert!(bus.failure().is_some(), "nothing has failed to recover from");
        bus.watch(BusStep::Status, now + BUSY_LIMIT, now);
    }

    /// Acts on a check that found out whether the card `is_ready`.
    pub(super) fn status_known(&mut self, is_ready: bool, now: Instant) {
        let is_exclusive = self.operation_on_bus().is_some();
        let bus = self.bus.as_mut().expect("claim of a check");
        let asks_then = is_exclusive || bus.ended().is_some() || !self.pack.is_empty();
        if is_ready && bus.failure().is_none() {
            match bus.step {
                // Only CMD13 tells whether the operation failed.
                BusStep::PollLine if asks_then => bus.next(BusStep::Status, now),
                _ => self.transfer_succeeded(now),
            }
        } else if is_ready {
            self.decide(now);
        } else if !bus.look_again(now) {
            self.busy_too_long(now);
        }
    }

    /// Acts on a transfer that went well, with the card ready: the rest follows, or the request
    /// ends.
    pub(super) fn transfer_succeeded(&mut self, now: Instant) {
        if self.open.is_some_and(|open| open.is_closing) {
            return self.closed(now);
        }
        let bus = self.bus.as_mut().expect("claim of a transfer");
        if let Some(status) = bus.ended() {
            return self.release_bus(status);
        }
        if !self.pack.is_empty() {
            return self.packed_transfer_succeeded(now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        slot.restart_tries();
        if slot.is_exclusive() {
            self.operation_command_done(now);
        } else if slot.left() > 0 {
            self.next_transfer(now);
        } else {
            self.finish_request(now);
        }
    }

    /// Makes the next transfer of the request on the bus due, or what must come before it.
    pub(super) fn next_transfer(&mut self, now: Instant) {
        let slot = self.bus.as_ref().expect("claim of a request").slot;
        if self.operation_on_bus() == Some(Operation::CloseTransfer) {
            return self.finish_request(now); // it has no more to do
        }
        debug_assert!(!self.is_recovering() || self.cqe.is_some(), "[no-intake-in-recovery]");
        let step = self.next_bus_step(slot);
        self.bus.as_mut().expect("claim of a request").next(step, now);
    }

    /// Ends the request on the bus, which has nothing left to transfer or to do.
    pub(super) fn finish_request(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("claim of a request");
        let slot = &self.slots[bus.slot.index()];
        debug_assert!(slot.is_exclusive() || slot.left() == 0, "{} sectors are left", slot.left());
        let reads = slot.kind.is_read();
        if reads && self.policy.bounce == Bounce::Sync {
            bus.next(BusStep::CopyOut, now);
        } else {
            self.release_bus(Status::Ok);
        }
    }

    /// Ends the request on the bus with `status`. The bus is free, unless the card needs it.
    pub(super) fn release_bus(&mut self, status: Status) {
        if self.begins_background(status) {
            return;
        }
        let Some(bus) = self.bus.take() else { unreachable!("no claim on the bus to release") };
        debug_assert_eq!(self.slots[bus.slot.index()].stage, Stage::OnBus, "[one-claim-on-bus]");
        let status = bus.ended().unwrap_or(status); // the request itself did not fail
        let settled = bus.had_trouble() || !self.pack.is_empty();
        if self.pack.is_empty() {
            self.retire(bus.slot, status, bus.by);
            // Behind the close of a transfer, requests wait that were not sent.
            if !self.slots[bus.slot.index()].is_exclusive() {
                self.ready.advance();
            }
        } else {
            let done = if let PackStep::Done(done) = bus.pack_step { done } else { 0 };
            self.retire_packed(done, status, bus.by);
        }
        // Deferred work that recovered the card does the next start itself: no interrupt follows
        // that could.
        let is_deferred = self.defers_starts || (settled && bus.by == Context::Deferred);
        let is_exclusive = self.slots[bus.slot.index()].is_exclusive();
        self.start_deferred =
            is_deferred && !is_exclusive && self.plan.deferred.contains(&Job::Start);
    }

    /// Returns whether a recovery or a background operation is under way ([no-intake-in-recovery]).
    pub(super) fn is_recovering(&self) -> bool {
        self.bus.as_ref().is_some_and(|bus| bus.failure().is_some() || bus.ended().is_some())
            || self.cqe.as_ref().is_some_and(|cqe| cqe.is_recovering())
    }
}
