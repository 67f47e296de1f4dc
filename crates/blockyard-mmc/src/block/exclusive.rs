//! Operations that have the card for themselves: flush, discard, write-zeroes, secure erase,
//! sanitize. None transfers data; each is one or several commands, after the last of which the card
//! is busy, perhaps for long. A command queue engine is turned off for them, but for a flush (O6).
//!
//! # Rules
//!
//! - **O1.** An exclusive operation begins when no request is before its transfer or at it. While it
//!   waits and while it is at work, no request is taken. So what goes before it is what was held when
//!   it came, and nothing passes it: neither starves the other.
//! - **O2.** All its acts are the thread's, its end included, in every pipeline: whoever dispatches
//!   waits for it, as in Linux.
//! - **O3.** It is done when the card, not busy any more, says so (CMD13): only that answer tells
//!   whether the switch or the erase failed.
//! - **O4.** What fails is tried again as E1 and E2 of [`recovery`](super::recovery) say, an erase from
//!   its first command on. What takes longer than its limit is not: the card is reset, and it ends.
//! - **O5.** A reset may lose what the card's cache holds. If something was written to it since the
//!   last flush, flushes fail from then on, up to the first that was asked for after the reset and taken when
//!   all that was held at the reset had been reported: it covers whatever was lost, so who asks after it has
//!   been told. One that was asked for before, and waited, covers nothing of what waited for the next. Nor
//!   does any cover a bio that was split, if a part of it was done and lost and the others had not come:
//!   requests do not say that they are parts. A write that was reported and turns out to be lost (A2), or may be (A3),
//!   is such a loss, too: of the flush at work, if there is one, and of the next.
//! - **O6.** Where the engine is on and takes direct commands, a flush is one, with another behind that asks
//!   how it went (O3), and the engine stays on. If one of them fails, the flush is begun anew, without
//!   the engine; but where the flush takes longer than its limit, and the card is busy with it still, O4 holds.

use super::cqe::direct::DirectEnd;
use super::errand::{BUSY_LIMIT, Errand, OnBus, TRANSACTION_LIMIT};
use super::slot::{Slot, Stage};
use super::work::Due;
use super::{Context, Job, Mmc, Target};
use crate::card::erase::EraseWay;
use crate::card::time::{BKOPS, FLUSH, SANITIZE};
use crate::command::status::Status as CardStatus;
use crate::command::{Command, SwitchAccess};
use crate::controller::{HostController, MmcRequest, Part, SlotId};
use crate::exchange::{Cause, Exchange, Failure};
use crate::host::BusyDetect;
use crate::register::ext_csd::index;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use core::fmt;

/// What an exclusive operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The cache is flushed.
    Flush,
    /// A range is given up.
    Discard,
    /// A range is made to read as zeroes.
    WriteZeroes,
    /// A range is erased for good.
    SecureErase,
    /// All that was ever given up is erased for good.
    Sanitize,
    /// Background operations are run, if they are urgent: U5 of [`upkeep`](super::upkeep).
    Upkeep,
}

impl Operation {
    /// The operation that `op` is on `target`; `None` where it has none.
    pub(super) fn of(op: Op, target: &Target) -> Option<Self> {
        let operation = match op {
            Op::Flush => return target.cache_on.then_some(Self::Flush),
            Op::Discard => Self::Discard,
            Op::WriteZeroes => Self::WriteZeroes,
            Op::SecureErase => Self::SecureErase,
            Op::Read | Op::Write | Op::DriverIn | Op::DriverOut => return None,
        };
        (!target.erases(operation).is_empty()).then_some(operation)
    }
}

/// Commands of an erase.
const ERASE_COMMANDS: u8 = 3;

impl Target {
    /// The erases of which `operation` is made.
    pub(super) fn erases(&self, operation: Operation) -> &[EraseWay] {
        match operation {
            Operation::Flush | Operation::Sanitize | Operation::Upkeep => &[],
            Operation::Discard => self.discard.as_slice(),
            Operation::WriteZeroes => self.write_zeroes.as_slice(),
            Operation::SecureErase => self.secure_erase.as_ref().map_or(&[], |ways| ways),
        }
    }

    /// The command that is next of the operation in `slot`; `None`: it was the last.
    fn command_of(&self, operation: Operation, slot: &Slot) -> Option<Command> {
        let (erase, command) = slot.erase_step();
        let switch = |at| (slot.step == 0).then(|| Command::switch(SwitchAccess::WriteByte, at, 1));
        match operation {
            Operation::Flush => switch(index::FLUSH_CACHE),
            Operation::Sanitize => switch(index::SANITIZE_START),
            Operation::Upkeep => None,
            Operation::Discard | Operation::WriteZeroes | Operation::SecureErase => {
                let way = self.erases(operation).get(erase)?;
                let commands = way.commands(slot.sector, u64::from(slot.sectors));
                Some(commands.expect("looked at when it was taken")[command])
            }
        }
    }

    /// How long the card may be busy with what the operation in `slot` is at.
    fn limit_of(&self, operation: Operation, slot: &Slot) -> Duration {
        match operation {
            Operation::Flush => FLUSH,
            Operation::Sanitize => SANITIZE,
            Operation::Upkeep => BKOPS,
            Operation::Discard | Operation::WriteZeroes | Operation::SecureErase => {
                let way = &self.erases(operation)[slot.erase_step().0];
                way.limit(slot.sector, u64::from(slot.sectors))
            }
        }
    }
}

/// What is known of the card's cache (O5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cache {
    /// Something may be in it that is not on the medium.
    dirty: bool,
    /// Something was, when the card was reset, or a write that was reported is known to be lost: at this instant
    /// for the last time.
    lost: Option<Instant>,
    /// It did not come back on from a reset (E6).
    pub(super) is_off: bool,
}

impl Cache {
    /// A write begins that may stay in it.
    pub(super) const fn written(&mut self) {
        self.dirty = !self.is_off;
    }

    /// The card was reset. Says whether something may be lost by that.
    const fn reset(&mut self, now: Instant) -> bool {
        if self.dirty {
            self.lost = Some(now);
        }
        core::mem::replace(&mut self.dirty, false)
    }

    /// A flush has ended with `status`: what it is to say. `tells_all`: it covers whatever was lost.
    fn flushed(&mut self, status: Status, tells_all: bool) -> Status {
        self.dirty &= status != Status::Ok;
        let lies = self.lost.is_some() && status == Status::Ok;
        self.lost = self.lost.filter(|_| !tells_all);
        if lies { Status::IoError } else { status }
    }
}

/// Why no sanitize was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSanitize {
    /// The card does not know it.
    NotSupported,
    /// Not now: the host is disabled, or another exclusive operation waits or is at work.
    Busy,
    /// There is no card any more.
    Gone,
}

impl fmt::Display for NoSanitize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSupported => "the card does not know sanitize",
            Self::Busy => "the host is disabled, or another exclusive operation is under way",
            Self::Gone => "there is no card any more",
        })
    }
}

impl core::error::Error for NoSanitize {}

impl<H: HostController> Mmc<H> {
    /// Erases for good whatever was discarded or erased before, on all of the card. It is an exclusive
    /// operation, so it begins when all requests before it are over, and none is taken until it has
    /// ended: [`Self::next_sanitized`] then says how.
    ///
    /// # Errors
    ///
    /// The card does not have it, or not now.
    pub fn sanitize(&mut self, now: Instant) -> Result<(), NoSanitize> {
        self.tick(now);
        if self.gone {
            return Err(NoSanitize::Gone);
        }
        if !self.target.sanitize {
            return Err(NoSanitize::NotSupported);
        }
        if !self.is_enabled() || !self.begin_own(Operation::Sanitize) {
            return Err(NoSanitize::Busy);
        }
        // Reported, and not asked for yet: its end is of no interest to who asks for another.
        self.sanitized = None;
        Ok(())
    }

    /// An exclusive operation that nobody requested waits from now on. `false`: another does, or is not
    /// over.
    pub(super) fn begin_own(&mut self, operation: Operation) -> bool {
        let at = self.own_slot();
        let slot = &mut self.slots[at.index()];
        if self.exclusive.is_some() || slot.is_in_use() {
            return false;
        }
        *slot = Slot { stage: Stage::Apart, operation: Some(operation), ..Slot::FREE };
        self.held += 1;
        self.exclusive = Some(at);
        true
    }

    /// The card was reset (O5).
    pub(super) fn lose_cache(&mut self) {
        if self.cache.reset(self.now) {
            self.slots.iter_mut().for_each(|slot| slot.held_at_loss = true);
        }
    }

    /// A write that was reported is lost (O5).
    pub(super) fn lose_told(&mut self) {
        self.cache.lost = Some(self.now);
        if let Some(at_work) = self.exclusive {
            self.slots[at_work.index()].held_at_loss = true;
        }
    }

    /// `slot`, which was asked for at `asked`, is the exclusive operation that waits from now on.
    pub(super) fn await_idle(&mut self, at: SlotId, slot: &mut Slot, asked: Instant) {
        let is_untold = |slot: &Slot| slot.is_in_use() && slot.held_at_loss;
        let is_older = self.cache.lost.is_some_and(|lost| asked <= lost);
        slot.held_at_loss = is_older || self.slots.iter().any(is_untold); // O5
        self.exclusive = Some(at);
    }

    /// How a [sanitize](Self::sanitize) has ended, once.
    pub const fn next_sanitized(&mut self) -> Option<Status> {
        self.sanitized.take()
    }

    /// The place of what nobody requested: behind those for requests.
    pub(super) const fn own_slot(&self) -> SlotId {
        SlotId(self.plan.slots)
    }

    /// The operation of the slot that has the bus, if it has one.
    pub(super) fn operation_on_bus(&self) -> Option<Operation> {
        let bus = self.bus.as_ref()?;
        self.slots[bus.slot.index()].operation
    }

    /// What the thread does for an exclusive operation beside its jobs (O2).
    pub(super) fn due_apart(&self, context: Context, now: Instant) -> Option<Due> {
        if context != Context::Thread {
            return None;
        }
        let is_apart = |slot: &SlotId| self.slots[slot.index()].operation.is_some();
        let on_bus = self.due_on_bus(context, now).map(|at| Due::Slot(Job::Settle, at));
        let start = || self.exclusive_start().map(|at| Due::Slot(Job::Start, at));
        let complete = || self.cleaned.iter().find(is_apart).map(|at| Due::Slot(Job::Complete, at));
        on_bus.or_else(start).or_else(complete)
    }

    /// The exclusive operation, if it waits for nothing but the bus (O1).
    pub(super) fn exclusive_is_next(&self) -> Option<SlotId> {
        let slot = self.exclusive?;
        let waits = self.slots[slot.index()].stage == Stage::Apart;
        let others = self.slots.iter().any(|other| other.stage.is_before_its_end());
        (waits && !others && self.before_is_done()).then_some(slot)
    }

    /// The exclusive operation that waits, if it may start.
    fn exclusive_start(&self) -> Option<SlotId> {
        let is_free = self.bus.is_none() && self.engine_is_off(); // P1
        self.exclusive_is_next().filter(|slot| is_free || self.goes_direct(*slot))
    }

    /// Whether the operation in `slot`, which is next, goes through the engine (O6).
    pub(super) fn goes_direct(&self, slot: SlotId) -> bool {
        let of = &self.slots[slot.index()];
        let is_first_try = of.operation == Some(Operation::Flush) && of.retries == 0;
        is_first_try && !self.cache.is_off && !self.wants_retune && self.takes_direct()
    }

    /// Sends the next command of the flush in `slot` through the engine, unless that has come to be not
    /// possible.
    pub(super) fn operate_directly(&mut self, slot: SlotId, now: Instant) {
        if self.gone {
            return self.retire(slot, Status::Gone, Context::Thread);
        }
        let of = &self.slots[slot.index()];
        let (command, limit) = match self.target.command_of(Operation::Flush, of) {
            Some(flush) => (flush, self.target.limit_of(Operation::Flush, of)),
            None => (Command::send_status(self.target.rca), TRANSACTION_LIMIT),
        };
        let is_sent = self.send_direct(&command, limit, now).is_ok();
        self.slots[slot.index()].stage = if is_sent { Stage::Direct } else { Stage::Apart };
    }

    /// Whether the flush itself is the direct command that was sent, and not the question how it went.
    pub(super) fn flushes_directly(&self) -> bool {
        self.exclusive.is_some_and(|slot| {
            let of = &self.slots[slot.index()];
            of.stage == Stage::Direct && of.step == 0
        })
    }

    /// The direct command of the flush in `slot` has ended (O6).
    pub(super) fn operated_directly(&mut self, slot: SlotId, end: DirectEnd) {
        let of = &mut self.slots[slot.index()];
        of.stage = Stage::Apart;
        match end {
            DirectEnd::Done(_) if of.step == 0 => of.step = 1,
            DirectEnd::Done(said) if said.status().is_some_and(CardStatus::is_ready) => {
                self.retire(slot, Status::Ok, Context::Thread);
            }
            DirectEnd::Failed(Failure { cause: Cause::Gone, .. }) => {
                self.retire(slot, Status::Gone, Context::Thread);
            }
            DirectEnd::Done(_) | DirectEnd::Failed(_) | DirectEnd::Cleared => {
                of.retries += 1;
                self.counts.failures += 1;
            }
        }
    }

    /// An act begins `slot`, which is the exclusive operation's.
    pub(super) fn claim_apart(&mut self, slot: SlotId) {
        self.slots[slot.index()].begin_again(); // O6
        let errand = self.next_errand(slot);
        let is_upkeep = self.slots[slot.index()].operation == Some(Operation::Upkeep);
        let over = is_upkeep.then_some(Status::Ok); // U1: there was nothing before it
        let mut bus = OnBus::starting(slot, errand, Context::Thread); // O2
        bus.over = over;
        self.bus = Some(bus);
    }

    /// Whether the exclusive operation in `slot` is between two commands that belong together.
    pub(super) fn is_within_erase(&self, slot: SlotId) -> bool {
        !self.slots[slot.index()].step.is_multiple_of(ERASE_COMMANDS)
    }

    /// How long the card may be busy with the command at hand, where that has a limit of its own.
    pub(super) fn busy_limit(&self) -> Option<Duration> {
        let bus = self.bus.as_ref().expect("something has the bus");
        let slot = &self.slots[bus.slot.index()];
        match bus.errand {
            Errand::Operate => slot.operation.map(|of| self.target.limit_of(of, slot)),
            Errand::Upkeep => Some(BKOPS),
            Errand::Interrupt => Some(self.target.interrupt_limit),
            _ => None,
        }
    }

    /// The next command of the operation on the bus.
    pub(super) fn operate(&mut self, operation: Operation, context: Context, now: Instant) {
        if operation == Operation::Flush && self.cache.is_off {
            return self.all_over(now);
        }
        let slot = self.bus.as_ref().expect("it has the bus").slot;
        let command = self.target.command_of(operation, &self.slots[slot.index()]);
        let command = command.expect("it is over after its last command");
        let limit = self.busy_limit().expect("such commands have one");
        self.launch(MmcRequest::plain(command, limit), context, now);
    }

    /// A command by which the card does something itself is over, but for its busy.
    pub(super) fn obeyed(&mut self, exchange: &Exchange, now: Instant) {
        let limit = self.busy_limit().expect("such commands have one");
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            let bus = self.bus.as_mut().expect("its command has failed");
            // It has been busy since it was sent; for how long already, the limit of it says. A controller
            // may tell of nothing before busy ends, so who has waited for as long has waited for that.
            let over = bus.started + limit;
            let is_late = failure.part == Part::Busy || over <= now;
            let until = if is_late { over } else { now + limit.max(BUSY_LIMIT) };
            return bus.watch(Errand::Status, until, now);
        }
        let bus = self.bus.as_mut().expect("its command went well");
        match self.policy.busy {
            _ if !exchange.ends_busy() => self.went_well(now),
            BusyDetect::Line => bus.watch(Errand::Line, now + limit, now),
            BusyDetect::Status | BusyDetect::Hardware => {
                bus.watch(Errand::Status, now + limit, now); // O3
            }
        }
    }

    /// A command of an operation has done what it is for.
    pub(super) fn step_done(&mut self, now: Instant) {
        let bus = self.bus.as_ref().expect("its command went well");
        let slot = &mut self.slots[bus.slot.index()];
        let operation = slot.operation.expect("it has commands");
        slot.step += 1;
        if self.target.command_of(operation, slot).is_some() {
            self.next_transfer(now);
        } else {
            self.all_over(now);
        }
    }

    /// What the exclusive operation in `slot` says at its end, if it would say `status` (O5).
    pub(super) fn ends_apart(&mut self, slot: SlotId, status: Status) -> Status {
        self.exclusive = None;
        match self.slots[slot.index()].operation {
            Some(Operation::Flush) => {
                self.cache.flushed(status, !self.slots[slot.index()].held_at_loss)
            }
            _ => status,
        }
    }
}

impl Slot {
    /// Which erase is next, and which of its commands.
    fn erase_step(&self) -> (usize, usize) {
        (usize::from(self.step / ERASE_COMMANDS), usize::from(self.step % ERASE_COMMANDS))
    }

    /// The operation, of which something failed, begins again with what belongs together.
    pub(super) const fn begin_again(&mut self) {
        self.step -= self.step % ERASE_COMMANDS;
    }
}
