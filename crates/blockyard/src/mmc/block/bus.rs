//! Who has the bus, and what it is used for: a request's transfer, and what the card needs
//! afterwards.

use super::slot::Stage;
use super::{ActKind, Bounce, Context, Job, Mmc};
use crate::mmc::command::{BlockCount, Command, Direction};
use crate::mmc::controller::{HostController, HostEvent, NotNow, Payload, SlotId, Transaction};
use crate::mmc::exchange::{Cause, Exchange, Failure, Progress};
use crate::mmc::host::BusyDetect;
use crate::status::Status;
use crate::time::{Duration, Instant};

/// After this long a transaction is given up, as after a lost interrupt. Linux's drivers have 10 s.
pub const TRANSACTION_LIMIT: Duration = Duration::from_secs(10);
/// After this long of busy after a write, the card is given up. As Linux.
pub const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// Time between two looks whether a card is still busy: at first, and doubled each time up to the
/// most. As Linux.
pub const FIRST_PAUSE: Duration = Duration::from_us(32);
/// See [`FIRST_PAUSE`].
pub const LONGEST_PAUSE: Duration = Duration::from_us(32_768);

/// What the bus is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// The bus is tuned again.
    Retune,
    /// A write is copied into the bounce buffer.
    CopyIn,
    /// A read is copied out of the bounce buffer.
    CopyOut,
    /// The request's transfer.
    Transfer,
    /// CMD13.
    Status,
    /// A look at DAT0.
    Line,
    /// CMD12.
    Stop,
    /// A reset.
    Reset,
}

impl Errand {
    pub(super) const fn act(self) -> ActKind {
        match self {
            Self::Retune => ActKind::Retune,
            Self::CopyIn => ActKind::CopyIn,
            Self::CopyOut => ActKind::CopyOut,
            Self::Transfer => ActKind::Start,
            Self::Status => ActKind::SendStatus,
            Self::Line => ActKind::LookAtLine,
            Self::Stop => ActKind::SendStop,
            Self::Reset => ActKind::Reset,
        }
    }
}

/// How far an errand is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It is to be begun, from then on.
    Due(Instant),
    /// An act begins it.
    Begun,
    /// The controller is at it, until the limit.
    Running(Exchange, Instant),
}

/// The request that has the bus (P1).
#[derive(Clone, Copy, Debug)]
pub(super) struct OnBus {
    pub(super) slot: SlotId,
    pub(super) errand: Errand,
    phase: Phase,
    /// Whose acts are due.
    pub(super) by: Context,
    /// What its transfer failed with: it is being recovered from.
    pub(super) failure: Option<Failure>,
    /// Something has been recovered from.
    pub(super) failed_once: bool,
    /// Sectors that were done before this transfer.
    pub(super) done_before: u32,
    /// How often commands of the recovery have failed, or not helped.
    pub(super) tries: u8,
    /// The reset that is due is the one before the last try.
    pub(super) reset_before_last: bool,
    pause: Duration,
    busy_until: Instant,
}

impl OnBus {
    /// `slot` gets the bus, and an act begins `errand`; what follows is for `by`.
    pub(super) const fn starting(slot: SlotId, errand: Errand, by: Context) -> Self {
        Self {
            slot,
            errand,
            phase: Phase::Begun,
            by,
            failure: None,
            failed_once: false,
            done_before: 0,
            tries: 0,
            reset_before_last: false,
            pause: FIRST_PAUSE,
            busy_until: Instant::MAX,
        }
    }

    pub(super) const fn claim(&mut self) {
        self.phase = Phase::Begun;
    }

    /// When something is to be done although no event comes.
    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Due(at) | Phase::Running(_, at) => Some(at),
            Phase::Begun => None,
        }
    }

    /// `errand` is next, at once.
    pub(super) fn next(&mut self, errand: Errand, now: Instant) {
        (self.errand, self.phase) = (errand, Phase::Due(now));
    }

    /// The card begins to be busy at `now`, for all that is known: `errand` finds out.
    fn watch(&mut self, errand: Errand, now: Instant) {
        (self.pause, self.busy_until) = (FIRST_PAUSE, now + BUSY_LIMIT);
        self.tries = 0;
        self.next(errand, now);
    }

    /// The card is still busy: look again after a pause. `false`: it has been for too long.
    pub(super) fn look_again(&mut self, now: Instant) -> bool {
        self.phase = Phase::Due(now + self.pause);
        self.pause = Duration::from_ns((2 * self.pause.as_ns()).min(LONGEST_PAUSE.as_ns()));
        now < self.busy_until
    }
}

impl<H: HostController> Mmc<H> {
    /// The controller's interrupt handler says `event`. Only notes it: what follows is for
    /// [`Self::step`], [`Context::Interrupt`] first.
    pub fn interrupt(&mut self, event: HostEvent, now: Instant) {
        self.tick(now);
        let progress = match &mut self.bus {
            Some(OnBus { phase: Phase::Running(exchange, _), .. }) => exchange.event(event),
            _ => Progress::Stray,
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

    /// What `context` has to do for the request on the bus.
    pub(super) fn due_on_bus(&self, context: Context, now: Instant) -> Option<(ActKind, SlotId)> {
        let bus = self.bus.as_ref().filter(|bus| bus.by == context)?;
        match bus.phase {
            Phase::Due(at) if at <= now => Some((bus.errand.act(), bus.slot)),
            _ => None,
        }
    }

    /// It is `now`: what has taken too long is given up.
    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if let Some(OnBus { phase: Phase::Running(exchange, limit), .. }) = &mut self.bus
            && *limit <= now
        {
            self.controller.abort(now);
            exchange.timed_out();
            self.exchange_ended(now);
        }
        self.look_at_power(now);
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
                let done = self.slots[bus.slot.index()].done;
                self.bus.as_mut().expect("it has the bus").done_before = done;
                self.launch(self.transfer_of(bus.slot), context, now);
            }
            Errand::Status => {
                let ask = Command::send_status(self.target.rca);
                self.launch(Transaction::plain(ask), context, now);
            }
            Errand::Stop => {
                let direction = self.slots[bus.slot.index()].direction;
                let stop = Command::stop_transmission(direction);
                self.launch(Transaction::plain(stop), context, now);
            }
        }
    }

    fn launch(&mut self, transaction: Transaction, context: Context, now: Instant) {
        let exchange = Exchange::new(&transaction, self.policy.busy);
        let started = if context == Context::Interrupt {
            self.controller.start_atomic(&transaction, now)
        } else {
            self.controller.start(&transaction, now);
            Ok(())
        };
        let bus = self.bus.as_mut().expect("the act has the bus");
        match started {
            Ok(()) => bus.phase = Phase::Running(exchange, now + TRANSACTION_LIMIT),
            Err(NotNow) => {
                let slot = bus.slot;
                self.bus = None;
                self.slots[slot.index()].stage = Stage::Ready;
                self.ready.put_back(slot);
                self.handed = true;
                self.counts.not_now += 1;
            }
        }
    }

    /// The next transfer of the request in `slot`.
    fn transfer_of(&self, slot: SlotId) -> Transaction {
        let of = &self.slots[slot.index()];
        let sector = of.sector + u64::from(of.done);
        let address = self.target.addressing.argument(sector).expect("looked at when it was taken");
        let blocks = u16::try_from(of.blocks_next()).expect("looked at when it was taken");
        let several = blocks > 1;
        let announced = several && self.policy.close_ended && self.target.set_block_count;
        // Without flags it is the same command on both standards.
        let count = Command::set_block_count(BlockCount::new(blocks));
        Transaction {
            announce: announced.then_some(count),
            command: match (of.direction, several) {
                (Direction::Read, false) => Command::read_single(address),
                (Direction::Read, true) => Command::read_multiple(address, blocks),
                (Direction::Write, false) => Command::write_single(address),
                (Direction::Write, true) => Command::write_multiple(address, blocks),
            },
            stop: (several && !announced).then(|| Command::stop_transmission(of.direction)),
            payload: Payload::Slot { slot, skip: of.done },
        }
    }

    /// The transaction on the bus is over.
    fn exchange_ended(&mut self, now: Instant) {
        let Some(OnBus { phase: Phase::Running(exchange, _), errand, .. }) = self.bus else {
            unreachable!("only what runs ends")
        };
        self.counts.exceptions += u64::from(exchange.exception());
        if self.gone || exchange.failure().is_some_and(|failure| failure.cause == Cause::Gone) {
            return self.release_bus(Status::Gone);
        }
        match errand {
            Errand::Transfer => self.transferred(&exchange, now),
            Errand::Status => self.status_came(&exchange, now),
            Errand::Stop => self.stopped(&exchange, now),
            _ => unreachable!("no transaction"),
        }
    }

    fn transferred(&mut self, exchange: &Exchange, now: Instant) {
        let by = self.who_ends();
        let bus = self.bus.as_mut().expect("its transfer has ended");
        bus.by = by;
        let slot = &mut self.slots[bus.slot.index()];
        let reads = slot.direction == Direction::Read;
        slot.done += u32::from(exchange.blocks());
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            let bus = self.bus.as_mut().expect("its transfer has failed");
            return bus.watch(Errand::Status, now);
        }
        match self.policy.busy {
            _ if reads => self.went_well(now),
            BusyDetect::Hardware => self.went_well(now),
            BusyDetect::Line => bus.watch(Errand::Line, now),
            BusyDetect::Status => bus.watch(Errand::Status, now),
        }
    }

    /// A look says whether the card `is_ready`.
    pub(super) fn looked(&mut self, is_ready: bool, now: Instant) {
        let bus = self.bus.as_mut().expect("it was looked for it");
        if is_ready && bus.failure.is_none() {
            self.went_well(now);
        } else if is_ready {
            self.decide(now);
        } else if !bus.look_again(now) {
            self.busy_for_ever(now);
        }
    }

    /// A transfer went well, and the card is ready: the rest follows, or the request has ended.
    pub(super) fn went_well(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("its transfer went well");
        let slot = &mut self.slots[bus.slot.index()];
        slot.sector_tries = 0;
        if slot.left() > 0 {
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

    /// All that the request on the bus is to transfer has come over.
    pub(super) fn all_over(&mut self, now: Instant) {
        let bus = self.bus.as_mut().expect("it had the bus");
        let reads = self.slots[bus.slot.index()].direction == Direction::Read;
        if reads && self.policy.bounce == Bounce::Sync {
            bus.next(Errand::CopyOut, now);
        } else {
            self.release_bus(Status::Ok);
        }
    }

    /// The request on the bus has ended; the bus is free.
    pub(super) fn release_bus(&mut self, status: Status) {
        let Some(bus) = self.bus.take() else { unreachable!("it has the bus") };
        self.retire(bus.slot, status, bus.by);
        self.ready.advance();
        // Deferred work that recovered does not leave the start to an interrupt that does not come.
        let is_deferred = self.defers_start || (bus.failed_once && bus.by == Context::Deferred);
        self.handed = is_deferred && !self.gone && self.plan.deferred.contains(&Job::Start);
    }

    /// Whether an error is being recovered from (P4).
    pub(super) fn is_recovering(&self) -> bool {
        self.bus.as_ref().is_some_and(|bus| bus.failure.is_some())
    }
}
