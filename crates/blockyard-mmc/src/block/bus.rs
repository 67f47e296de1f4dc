//! What goes over the bus for the request that has it: its transfer, and what the card needs
//! afterwards.

use super::cqe::Cqe;
use super::errand::{BUSY_LIMIT, Errand, OnBus, Phase, TRANSACTION_LIMIT};
use super::standby::Power;
use super::unasked::Unasked;
use super::{ActKind, Bounce, Context, Job, Mmc};
use crate::command::{BlockCount, Command, Direction};
use crate::controller::{HostController, HostEvent, MmcRequest, NotNow, Payload, SlotId};
use crate::exchange::{Cause, Exchange, Progress};
use crate::host::BusyDetect;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

impl<H: HostController> Mmc<H> {
    /// The controller's interrupt handler says `event`. Only notes it: what follows is for
    /// [`Self::step`], [`Context::Interrupt`] first.
    pub fn interrupt(&mut self, event: HostEvent, now: Instant) {
        self.tick(now);
        if let HostEvent::Engine(event) = event {
            return self.engine_says(event, now);
        }
        let progress = match &mut self.bus {
            Some(OnBus { phase: Phase::Running(exchange, _), .. }) => {
                let progress = exchange.event(event);
                if self.unasked != Unasked::None {
                    let exchange = *exchange;
                    self.heed_unasked(&exchange);
                }
                progress
            }
            _ => self.engine_exchange().map_or(Progress::Stray, |exchange| exchange.event(event)),
        };
        match event {
            HostEvent::CardGone => self.lose_card(),
            HostEvent::RetuneNeeded => self.wants_retune = self.controller.is_tuned(),
            _ if progress == Progress::Stray => self.counts.strays += 1,
            _ => {}
        }
        if progress == Progress::Ended {
            self.exchange_ended(now);
        }
    }

    /// The request on the bus, if `context` has something to do for it: its errand.
    pub(super) fn due_on_bus(&self, context: Context, now: Instant) -> Option<SlotId> {
        let bus = self.bus.as_ref().filter(|bus| bus.by == context)?;
        match bus.phase {
            Phase::Due(at) if at <= now => Some(bus.slot),
            _ => None,
        }
    }

    /// It is `now`: what has taken too long is given up.
    #[inline]
    pub(super) fn tick(&mut self, now: Instant) {
        if now > self.now {
            self.now = now;
            self.look_at_limits(now);
        }
        if self.power != Power::On {
            self.look_at_power(now);
        }
    }

    /// Time has passed. (At the same instant nothing new can have taken too long.)
    fn look_at_limits(&mut self, now: Instant) {
        if let Some(OnBus { phase: Phase::Running(_, limit), .. }) = &self.bus
            && *limit <= now
        {
            self.give_up(now);
        }
        if self.cqe.is_some() {
            self.tick_engine(now);
        }
    }

    /// The transaction on the bus has taken too long.
    #[cold]
    fn give_up(&mut self, now: Instant) {
        let Some(OnBus { phase: Phase::Running(exchange, _), .. }) = &mut self.bus else {
            unreachable!("it is on the bus");
        };
        self.controller.abort(now);
        exchange.timed_out();
        let exchange = *exchange;
        self.heed_unasked(&exchange);
        self.exchange_ended(now);
    }

    /// Ends the act `kind`, by which the request on the bus goes on.
    pub(super) fn on_bus(&mut self, kind: ActKind, context: Context, now: Instant) {
        let Some(bus) = self.bus else { unreachable!("{kind:?} was begun without the bus") };
        if self.gone {
            return self.release_bus(Status::Gone);
        }
        match bus.errand {
            Errand::Line => {
                let busy = self.controller.card_busy(now);
                self.looked(!busy, now);
            }
            Errand::Heed(answer) => {
                self.bus.as_mut().expect("it has the bus").errand = Errand::Status; // if it is busy
                self.status_came(&answer, now);
            }
            Errand::Reset => self.reset(now),
            Errand::CopyIn => {
                self.controller.copy_in(bus.slot);
                self.slots[bus.slot.index()].copied = true;
                self.next_transfer(now);
            }
            Errand::Retune => self.retune(now),
            Errand::CopyOut => {
                self.controller.copy_out(bus.slot);
                self.release_bus(Status::Ok);
            }
            Errand::Transfer => {
                let of = &self.slots[bus.slot.index()];
                if of.direction == Direction::Write && !of.reliable {
                    self.cache.written(); // O5
                }
                self.bus.as_mut().expect("it has the bus").done_before = of.done;
                let transfer = match self.pack.is_empty() {
                    true => self.transfer_of(bus.slot),
                    false => self.packed_transfer(),
                };
                self.launch(transfer, context, now);
            }
            Errand::Ask | Errand::Status => {
                let ask = Command::send_status(self.target.rca);
                self.launch(MmcRequest::plain(ask, Duration::ZERO), context, now);
            }
            Errand::Stop(direction) => {
                let stop = Command::stop_transmission(direction);
                self.launch(MmcRequest::plain(stop, self.target.write_limit), context, now);
            }
            Errand::Operate => {
                let operation = self.operation_on_bus().expect("it has commands");
                self.operate(operation, context, now);
            }
            Errand::Look | Errand::Upkeep | Errand::Interrupt => {
                self.launch(self.upkeep_of(bus.errand), context, now);
            }
        }
    }

    pub(super) fn launch(&mut self, transaction: MmcRequest, context: Context, now: Instant) {
        let exchange =
            Exchange::new(&transaction, self.policy.busy).after_write(self.has_unasked());
        let own_limit = self.busy_limit().filter(|_| transaction.ends_busy());
        let limit = own_limit.unwrap_or(TRANSACTION_LIMIT);
        let started = if context == Context::Interrupt {
            self.controller.start_atomic(&transaction, now)
        } else {
            self.controller.start(&transaction, now);
            Ok(())
        };
        let bus = self.bus.as_mut().expect("the act has the bus");
        match started {
            Ok(()) => (bus.phase, bus.started) = (Phase::Running(exchange, now + limit), now),
            Err(NotNow) => {
                let slot = bus.slot;
                self.bus = None;
                if self.pack.is_empty() {
                    self.pack.push(slot);
                }
                self.scatter();
                self.handed = true;
                self.counts.not_now += 1;
            }
        }
    }

    /// The next transfer of the request in `slot`.
    fn transfer_of(&self, slot: SlotId) -> MmcRequest {
        let of = &self.slots[slot.index()];
        let sector = of.sector + u64::from(of.done);
        let address = self.target.addressing.argument(sector).expect("looked at when it was taken");
        let blocks = u16::try_from(of.blocks_next()).expect("looked at when it was taken");
        let several = blocks > 1;
        let close_ended = several && self.policy.close_ended && self.target.set_block_count;
        let announced = close_ended || of.reliable;
        // Without flags it is the same command on both standards.
        let count = BlockCount { reliable: of.reliable, ..BlockCount::new(blocks) };
        let count = Command::set_block_count(count);
        MmcRequest {
            announce: announced.then_some(count),
            command: match (of.direction, several) {
                (Direction::Read, false) => Command::read_single(address),
                (Direction::Read, true) => Command::read_multiple(address, blocks),
                (Direction::Write, false) if !announced => Command::write_single(address),
                (Direction::Write, _) => Command::write_multiple(address, blocks),
            },
            stop: (several && !announced).then(|| Command::stop_transmission(of.direction)),
            payload: Payload::Slot { slot, skip: of.done },
            limit: self.target.transfer_limit(of.direction),
        }
    }

    /// The transaction on the bus is over.
    fn exchange_ended(&mut self, now: Instant) {
        let Some(OnBus { phase: Phase::Running(exchange, _), errand, .. }) = self.bus else {
            return self.engine_sent(now);
        };
        self.counts.exceptions += u64::from(exchange.exception());
        self.bus.as_mut().expect("it was its transaction").exception |= exchange.exception();
        if self.gone || exchange.failure().is_some_and(|failure| failure.cause == Cause::Gone) {
            return self.release_bus(Status::Gone);
        }
        match errand {
            Errand::Transfer => self.transferred(&exchange, now),
            Errand::Status => {
                self.bus.as_mut().expect("it was asked for it").next(Errand::Heed(exchange), now);
            }
            Errand::Ask => self.asked(&exchange, now),
            Errand::Stop(_) => self.stopped(&exchange, now),
            Errand::Operate | Errand::Upkeep | Errand::Interrupt => self.obeyed(&exchange, now),
            Errand::Look => self.looked_up(&exchange, now),
            _ => unreachable!("no transaction"),
        }
    }

    fn transferred(&mut self, exchange: &Exchange, now: Instant) {
        let by = self.who_ends();
        let bus = self.bus.as_mut().expect("its transfer has ended");
        bus.by = by;
        if !self.pack.is_empty() {
            return self.packed_transferred(exchange, now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        let reads = slot.direction == Direction::Read;
        slot.came_over(u32::from(exchange.blocks()));
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        if !reads && self.policy.busy != BusyDetect::Status {
            self.unasked = Unasked::Held(bus.slot); // A1
        }
        match self.policy.busy {
            _ if reads => self.went_well(now),
            BusyDetect::Hardware => self.went_well(now),
            BusyDetect::Line => bus.watch(Errand::Line, now + BUSY_LIMIT, now),
            BusyDetect::Status => bus.watch(Errand::Status, now + BUSY_LIMIT, now),
        }
    }

    /// Something has failed on the bus: how is the card?
    pub(super) fn recover(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("something of it has failed");
        bus.watch(Errand::Status, now + BUSY_LIMIT, now);
    }

    /// A look says whether the card `is_ready`.
    pub(super) fn looked(&mut self, is_ready: bool, now: Instant) {
        let is_apart = self.operation_on_bus().is_some();
        let bus = self.bus.as_mut().expect("it was looked for it");
        let asks_then = is_apart || bus.over.is_some() || !self.pack.is_empty();
        if is_ready && bus.failure.is_none() {
            match bus.errand {
                Errand::Line if asks_then => bus.next(Errand::Status, now), // O3
                _ => self.went_well(now),
            }
        } else if is_ready {
            self.decide(now);
        } else if !bus.look_again(now) {
            self.busy_for_ever(now);
        }
    }

    /// A transfer went well, and the card is ready: the rest follows, or the request has ended.
    pub(super) fn went_well(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("its transfer went well");
        if let Some(status) = bus.over {
            return self.release_bus(status);
        }
        if !self.pack.is_empty() {
            return self.packed_well(now);
        }
        let slot = &mut self.slots[bus.slot.index()];
        slot.sector_tries = 0;
        if slot.operation.is_some() {
            self.step_done(now);
        } else if slot.left() > 0 {
            self.next_transfer(now);
        } else {
            self.all_over(now);
        }
    }

    /// The request on the bus is transferred next, and first what must come before.
    pub(super) fn next_transfer(&mut self, now: Instant) {
        let slot = self.bus.as_ref().expect("it has the bus").slot;
        let errand = self.next_errand(slot);
        self.bus.as_mut().expect("it has the bus").next(errand, now);
    }

    /// All that the request on the bus is to transfer has come over, or to do is done.
    pub(super) fn all_over(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("it had the bus");
        let slot = &self.slots[bus.slot.index()];
        let reads = slot.direction == Direction::Read && slot.operation.is_none();
        if reads && self.policy.bounce == Bounce::Sync {
            bus.next(Errand::CopyOut, now);
        } else {
            self.release_bus(Status::Ok);
        }
    }

    /// The request on the bus has ended; the bus is free, unless the card needs it.
    pub(super) fn release_bus(&mut self, status: Status) {
        if self.begins_upkeep(status) {
            return;
        }
        let Some(bus) = self.bus.take() else { unreachable!("it has the bus") };
        let status = bus.over.unwrap_or(status); // U3
        let settled = bus.failed_once || bus.over.is_some() || !self.pack.is_empty();
        if self.pack.is_empty() {
            self.retire(bus.slot, status, bus.by);
            self.ready.advance();
        } else {
            self.retire_packed(bus.packed_done, status, bus.by);
        }
        // Deferred work that had to see to the card does not leave the start to an interrupt that does
        // not come.
        let is_deferred = self.defers_start || (settled && bus.by == Context::Deferred);
        let is_apart = self.slots[bus.slot.index()].operation.is_some();
        self.handed =
            is_deferred && !is_apart && !self.gone && self.plan.deferred.contains(&Job::Start);
    }

    /// Whether an error is being recovered from, or the card cared for (P4).
    pub(super) fn is_recovering(&self) -> bool {
        self.bus.as_ref().is_some_and(|bus| bus.failure.is_some() || bus.over.is_some())
            || self.cqe.as_ref().is_some_and(Cqe::is_recovering)
    }
}
