//! Operations that have the card to themselves: flush, discard, write-zeroes, secure erase,
//! sanitize.
//!
//! None of them transfers data of a request. Each consists of one or several commands, and the card
//! may be busy after the last one, perhaps for long. Their acts, the end included, are the thread's
//! in every pipeline: as in Linux, the thread that dispatches waits for them.
//!
//! A flush is CMD6 on eMMC. On SD it is CMD49, which sets a bit of an extension register, CMD13
//! until the card is not busy, and CMD48, which reads whether the card has cleared the bit.
//!
//! A flush of a card whose cache is off has no command: it ends when the card is idle, and needs no
//! bus.
//!
//! The command queue engine is turned off for the others, except for a flush: where the engine is
//! on and takes direct commands, a flush is one, followed by a CMD13 that asks how the flush went.
//! If one of them fails, the flush begins again without the engine; but if the flush takes longer
//! than its limit, and the card is still busy with it, the card is reset, and the flush ends.
//!
//! # Rules
//!
//! - **[exclusive-waits-for-idle]** An exclusive operation begins when no request has a transfer to
//!   come. While it waits and while it is under way, no request is accepted. So exactly the
//!   requests that were accepted before it go before it, and neither starves the other.
//! - An exclusive operation is done when the card, no longer busy, says so in response to CMD13.
//!   Only that response tells whether the switch or the erase failed. Linux asks neither after a
//!   discard nor after another erase whose busy time the host has waited out. Here the question
//!   stays, for a discard too: without it, the next response would carry the error of the erase,
//!   and a write would be blamed for it ([late-error-is-the-writes]).
//! - A command that fails is tried again as [`recovery`](super::recovery) says, an erase from its
//!   first command on. An operation that takes longer than its limit is not tried again: the card
//!   is reset, and the operation ends.
//! - **[reset-loss-fails-flush]** A reset may lose what the card's cache holds. If data was written
//!   to the cache since the last flush, flushes fail from then on, up to the first that covers
//!   whatever was lost: one that was requested after the reset, and accepted when all requests that
//!   were in their slots at the reset had been reported. A flush that was requested before the
//!   reset, and waited, does not cover the writes that waited behind it. No flush covers a bio that
//!   was split, if a part of it was done and lost before the other parts came: requests do not say
//!   that they are parts.

use super::act::Context;
use super::claim::{BUSY_LIMIT, BusStep, Claim, LONGEST_PAUSE, Phase, REQUEST_LIMIT};
use super::mmc::Mmc;
use super::operation::Operation;
use super::schedule::Due;
use super::slot::{Kind, Slot, Stage};
use super::tasks::direct_command::DirectEnd;
use crate::card::time::{BKOPS, EXTENSION_WRITE, FLUSH, SANITIZE};
use crate::command::status::Status as CardStatus;
use crate::command::{Command, Opcode, SwitchAccess};
use crate::controller::{HostController, MmcRequest, Part, SlotId};
use crate::exchange::{Cause, Exchange, Failure};
use crate::host::BusyDetect;
use crate::policy::Job;
use crate::register::ext_csd::index;
use crate::register::extension::{ExtensionPlace, byte_block};
use crate::target::Target;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use core::fmt;

/// The number of commands of an erase.
const ERASE_COMMANDS: u8 = 3;

impl Target {
    /// Returns the next command of the operation in `slot`; `None` after the last one.
    fn command_of(&self, operation: Operation, slot: &Slot) -> Option<Command> {
        let (erase, command) = slot.erase_step();
        match operation {
            Operation::Flush => match self.performance {
                Some(place) => extension_flush(slot, place.cache_flush()),
                None => switch_once(slot, index::FLUSH_CACHE),
            },
            Operation::Sanitize => switch_once(slot, index::SANITIZE_START),
            Operation::Background | Operation::CloseTransfer => None,
            Operation::Discard | Operation::WriteZeroes | Operation::SecureErase => {
                let way = operation.erases(self).get(erase)?;
                let commands = way.commands(slot.sector, u64::from(slot.sectors));
                Some(commands.expect("range of an accepted erase")[command])
            }
        }
    }

    /// Returns how long the card may be busy with the present command of the operation in `slot`.
    fn limit_of(&self, operation: Operation, slot: &Slot) -> Duration {
        match operation {
            Operation::Flush if self.performance.is_some() => EXTENSION_WRITE,
            Operation::Flush => FLUSH,
            Operation::Sanitize => SANITIZE,
            Operation::Background => BKOPS,
            Operation::CloseTransfer => REQUEST_LIMIT,
            Operation::Discard | Operation::WriteZeroes | Operation::SecureErase => {
                let way = &operation.erases(self)[slot.erase_step().0];
                way.limit(slot.sector, u64::from(slot.sectors))
            }
        }
    }
}

/// Returns the switch that sets byte `at` of EXT_CSD to 1; `None` if the operation has sent it.
fn switch_once(slot: &Slot, at: u16) -> Option<Command> {
    (slot.commands_done == 0).then(|| Command::switch(SwitchAccess::WriteByte, at, 1))
}

/// Returns the next command of a flush of an SD card: the byte at `flush` is written, and then read
/// until the card has cleared it.
fn extension_flush(slot: &Slot, flush: ExtensionPlace) -> Option<Command> {
    match slot.commands_done {
        0 => Some(Command::write_extension_byte(flush)),
        1 => Some(Command::read_extension_byte(flush)),
        _ => None,
    }
}

/// Why no sanitize can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSanitize {
    /// The card does not support sanitize.
    NotSupported,
    /// The host is disabled, or another exclusive operation waits or is under way.
    Busy,
    /// The card was removed.
    Gone,
}

impl fmt::Display for NoSanitize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSupported => "the card does not support sanitize",
            Self::Busy => "the host is disabled, or another exclusive operation is under way",
            Self::Gone => "the card was removed",
        })
    }
}

impl core::error::Error for NoSanitize {}

impl<H: HostController> Mmc<H> {
    /// Erases everything on the card that was ever discarded or erased, with every copy of it. It
    /// is an exclusive operation: it begins when all requests before it are over, and no request is
    /// accepted until it has ended. [`Self::next_sanitized`] then returns how.
    ///
    /// # Errors
    ///
    /// Fails if the card does not support sanitize, was removed, or cannot begin now.
    pub fn sanitize(&mut self, now: Instant) -> Result<(), NoSanitize> {
        self.tick(now);
        if self.card_gone {
            return Err(NoSanitize::Gone);
        }
        if !self.target.sanitize {
            return Err(NoSanitize::NotSupported);
        }
        if !self.is_enabled() || !self.begin_internal(Operation::Sanitize) {
            return Err(NoSanitize::Busy);
        }
        // A caller that asks for another sanitize has no interest in how the last one ended.
        self.sanitized = None;
        Ok(())
    }

    /// Makes an exclusive operation wait that no request asked for. Returns `false` if another one
    /// waits or is under way.
    pub(super) fn begin_internal(&mut self, operation: Operation) -> bool {
        let at = self.internal_slot();
        let slot = &mut self.slots[at.index()];
        if self.exclusive.is_some() || slot.is_in_use() {
            return false;
        }
        *slot = Slot { stage: Stage::Exclusive, kind: Kind::Operation(operation), ..Slot::FREE };
        self.slots_in_use += 1;
        self.exclusive = Some(at);
        true
    }

    /// Notes that a reset has emptied the card's cache ([reset-loss-fails-flush]).
    pub(super) fn lose_cache(&mut self) {
        if self.cache.note_reset(self.now) {
            self.slots.iter_mut().for_each(|slot| slot.held_at_loss = true);
        }
    }

    /// Notes that a write that had been reported is lost ([late-write-error-fails-flush]).
    pub(super) fn lose_reported_write(&mut self) {
        self.cache.note_loss(self.now);
        if let Some(at_work) = self.exclusive {
            self.slots[at_work.index()].held_at_loss = true;
        }
    }

    /// Makes `slot`, which was requested at the instant `asked`, the exclusive operation that
    /// waits.
    pub(super) fn await_idle(&mut self, at: SlotId, slot: &mut Slot, asked: Instant) {
        debug_assert!(self.exclusive.is_none(), "[exclusive-waits-for-idle]: two operations wait");
        let is_older = self.cache.lost_since(asked);
        // [reset-loss-fails-flush]
        slot.held_at_loss =
            is_older || self.slots.iter().any(|slot| slot.is_in_use() && slot.held_at_loss);
        self.exclusive = Some(at);
    }

    /// Returns how a [sanitize](Self::sanitize) has ended, once.
    pub const fn next_sanitized(&mut self) -> Option<Status> {
        self.sanitized.take()
    }

    /// Returns the slot of operations that no request asked for. It follows those for requests.
    pub(super) const fn internal_slot(&self) -> SlotId {
        SlotId(self.plan.slots)
    }

    /// Returns the operation that holds the claim on the bus, if one does.
    pub(super) fn operation_on_bus(&self) -> Option<Operation> {
        let bus = self.bus.as_ref()?;
        self.slots[bus.slot.index()].kind.operation()
    }

    /// Returns what the thread does for an exclusive operation, beside its jobs.
    pub(super) fn due_exclusive(&self, context: Context, now: Instant) -> Option<Due> {
        if context != Context::Thread {
            return None;
        }
        let on_bus = self.due_on_bus(context, now).map(|at| Due::Slot(Job::Settle, at));
        on_bus
            .or_else(|| self.exclusive_start().map(|at| Due::Slot(Job::Start, at)))
            .or_else(|| self.exclusive_end().map(|at| Due::Slot(Job::Complete, at)))
            .or_else(|| self.stale_open(now).map(|at| Due::Slot(Job::Start, at)))
    }

    /// Returns the exclusive operation that has ended on the card.
    fn exclusive_end(&self) -> Option<SlotId> {
        let mut posted = self.posted.iter();
        posted.find(|slot| self.slots[slot.index()].is_exclusive()).or_else(|| self.empty_flush())
    }

    /// Returns the exclusive operation, if it waits for nothing but the bus
    /// ([exclusive-waits-for-idle]).
    pub(super) fn exclusive_is_next(&self) -> Option<SlotId> {
        let slot = self.exclusive?;
        let waits = self.slots[slot.index()].stage == Stage::Exclusive;
        let others = self.slots.iter().any(|other| other.stage.is_before_its_end());
        (waits && !others && self.previous_allows_start()).then_some(slot)
    }

    /// Returns the exclusive operation that waits, if it may start.
    fn exclusive_start(&self) -> Option<SlotId> {
        let is_free = self.bus.is_none() && self.engine_is_off(); // [one-claim-on-bus]
        self.exclusive_is_next()
            .filter(|slot| !self.has_no_command(*slot) && (is_free || self.goes_direct(*slot)))
    }

    /// Returns the flush that is next, if it has no command to send.
    fn empty_flush(&self) -> Option<SlotId> {
        self.exclusive_is_next().filter(|slot| self.has_no_command(*slot))
    }

    /// Returns whether the operation in `slot` has nothing to send, as there is no cache to flush,
    /// no transfer to close, and no write that a response is still to confirm
    /// ([flush-closes-transfer]).
    fn has_no_command(&self, slot: SlotId) -> bool {
        self.slots[slot.index()].kind == Kind::Operation(Operation::Flush)
            && self.cache.is_off
            && self.open.is_none()
            && !(self.policy.open_limit.is_some() && self.has_unconfirmed_write())
    }

    /// Returns whether the operation in `slot`, which is next, needs the bus for itself.
    pub(super) fn needs_bus(&self, slot: SlotId) -> bool {
        !self.has_no_command(slot) && !self.goes_direct(slot)
    }

    /// Ends the flush in `slot`, which has no command, while its report begins.
    pub(super) fn end_empty_flush(&mut self, slot: SlotId) {
        debug_assert!(self.has_no_command(slot), "{slot:?} has a command to send");
        let status = self.end_exclusive(slot, Status::Ok);
        self.slots[slot.index()].status = status;
    }

    /// Returns whether the operation in `slot`, which is next, goes through the engine.
    pub(super) fn goes_direct(&self, slot: SlotId) -> bool {
        let of = &self.slots[slot.index()];
        let is_first_try = of.kind == Kind::Operation(Operation::Flush) && of.retries == 0;
        // A direct command has no data, and CMD49 has.
        let has_no_data = self.target.performance.is_none();
        is_first_try && has_no_data && !self.retune_needed && self.takes_direct()
    }

    /// Sends the next command of the flush in `slot` through the engine, if the engine still takes
    /// it.
    pub(super) fn send_directly(&mut self, slot: SlotId, now: Instant) {
        debug_assert_eq!(self.exclusive, Some(slot), "a flush that is not the waiting operation");
        if self.card_gone {
            return self.retire(slot, Status::Gone, Context::Thread);
        }
        let of = &self.slots[slot.index()];
        let (command, limit) = match self.target.command_of(Operation::Flush, of) {
            Some(flush) => (flush, self.target.limit_of(Operation::Flush, of)),
            None => (Command::send_status(self.target.rca), REQUEST_LIMIT),
        };
        let is_sent = self.send_direct(&command, limit, now).is_ok();
        self.slots[slot.index()].stage = if is_sent { Stage::Direct } else { Stage::Exclusive };
    }

    /// Returns whether the direct command that was sent is the flush itself, and not the CMD13
    /// after it.
    pub(super) fn flushes_directly(&self) -> bool {
        self.exclusive.is_some_and(|slot| {
            let of = &self.slots[slot.index()];
            of.stage == Stage::Direct && of.commands_done == 0
        })
    }

    /// Acts on the end of a direct command of the flush in `slot`.
    pub(super) fn direct_ended(&mut self, slot: SlotId, end: DirectEnd) {
        let of = &mut self.slots[slot.index()];
        debug_assert_eq!(of.stage, Stage::Direct, "{slot:?} has no direct command");
        of.stage = Stage::Exclusive;
        match end {
            DirectEnd::Done(_) if of.commands_done == 0 => of.commands_done = 1,
            DirectEnd::Done(said) if said.status().is_some_and(CardStatus::is_ready) => {
                self.retire(slot, Status::Ok, Context::Thread);
            }
            // The loss of the card ends all that wait.
            DirectEnd::Failed(Failure { cause: Cause::Gone, .. }) => {}
            DirectEnd::Done(_) | DirectEnd::Failed(_) | DirectEnd::Cleared => {
                of.retries += 1;
                self.counts.failures += 1;
            }
        }
    }

    /// Gives the bus to the exclusive operation in `slot`, for which an act has begun.
    pub(super) fn claim_exclusive(&mut self, slot: SlotId) {
        debug_assert_eq!(self.exclusive, Some(slot), "[exclusive-waits-for-idle]");
        debug_assert!(self.engine_is_off(), "[engine-owns-bus]");
        self.slots[slot.index()].restart_operation();
        let step = self.next_bus_step(slot);
        let mut bus = Claim::starting(slot, step, Context::Thread);
        if self.slots[slot.index()].kind == Kind::Operation(Operation::Background) {
            bus.end_with(Status::Ok); // no request comes before the background operations
        }
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]");
        self.bus = Some(bus);
    }

    /// Returns whether the exclusive operation in `slot` is between two commands that belong
    /// together.
    pub(super) fn is_within_erase(&self, slot: SlotId) -> bool {
        !self.slots[slot.index()].commands_done.is_multiple_of(ERASE_COMMANDS)
    }

    /// Returns how long the card may be busy with the present command, where that has a limit of
    /// its own.
    pub(super) fn busy_limit(&self) -> Option<Duration> {
        let bus = self.bus.as_ref().expect("claim of a command");
        let slot = &self.slots[bus.slot.index()];
        match bus.step {
            BusStep::Command => slot.kind.operation().map(|of| self.target.limit_of(of, slot)),
            BusStep::StartBackground => Some(BKOPS),
            BusStep::InterruptBackground => Some(self.target.interrupt_limit),
            _ => None,
        }
    }

    /// Sends the next command of the operation on the bus.
    pub(super) fn send_operation(&mut self, operation: Operation, context: Context, now: Instant) {
        if operation == Operation::Flush && self.cache.is_off {
            return self.confirm_for_flush(now);
        }
        let slot = self.bus.as_ref().expect("claim of an operation").slot;
        debug_assert_eq!(self.exclusive, Some(slot), "an operation that is not the one under way");
        let command = self.target.command_of(operation, &self.slots[slot.index()]);
        let command = command.expect("next command of an operation under way");
        let limit = self.busy_limit().expect("limit of a command that keeps the card busy");
        if command.opcode == Opcode::WriteExtension {
            self.slots[slot.index()].since = now;
            *self.controller.block() = byte_block(1);
        }
        self.launch(MmcRequest::by_block(command, limit), context, now);
    }

    /// Returns whether the byte that an SD card sent says that it still flushes. Then it is asked
    /// again after a pause, until the flush has taken too long.
    ///
    /// A card that is no longer busy after its 1 s can flush on. Linux does not ask again: its
    /// flush fails there.
    fn still_flushes(&mut self, slot: SlotId, now: Instant) -> bool {
        debug_assert!(self.bus.is_some(), "the card is asked on the bus");
        let of = &self.slots[slot.index()];
        let was_asked = of.kind == Kind::Operation(Operation::Flush) && of.commands_done == 1;
        if !was_asked || self.target.performance.is_none() || self.controller.block()[0] & 1 == 0 {
            return false;
        }
        if now >= self.slots[slot.index()].since + FLUSH {
            self.busy_too_long(now);
        } else {
            let bus = self.bus.as_mut().expect("claim of a flush");
            bus.phase = Phase::Due(now + LONGEST_PAUSE);
        }
        true
    }

    /// Ends the flush on the bus, which has no cache to flush, after a response that confirms the
    /// last write ([flush-closes-transfer]).
    fn confirm_for_flush(&mut self, now: Instant) {
        if !self.has_unconfirmed_write() {
            return self.finish_request(now);
        }
        let bus = self.bus.as_mut().expect("claim of a flush");
        bus.watch(BusStep::Status, now + REQUEST_LIMIT, now);
    }

    /// Acts on the end of a command after which the card works by itself, and may be busy.
    pub(super) fn command_ended(&mut self, exchange: &Exchange, now: Instant) {
        let limit = self.busy_limit().expect("limit of a command that keeps the card busy");
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            let bus = self.bus.as_mut().expect("claim of a failed command");
            // The card may have been busy since the command was sent. Some controllers report
            // nothing before busy ends, so the time that has passed counts.
            let over = bus.started + limit;
            let is_late = failure.part == Part::Busy || over <= now;
            let until = if is_late { over } else { now + limit.max(BUSY_LIMIT) };
            return bus.watch(BusStep::Status, until, now);
        }
        let bus = self.bus.as_mut().expect("claim of a command");
        match self.policy.busy {
            _ if !exchange.ends_busy() => self.transfer_succeeded(now),
            BusyDetect::Line => bus.watch(BusStep::PollLine, now + limit, now),
            BusyDetect::Status | BusyDetect::Hardware => {
                bus.watch(BusStep::Status, now + limit, now); // only CMD13 tells whether it failed
            }
        }
    }

    /// Acts on a command of an operation that is done: the next one follows, or the operation ends.
    pub(super) fn operation_command_done(&mut self, now: Instant) {
        let slot = self.bus.as_ref().expect("claim of a command").slot;
        if self.still_flushes(slot, now) {
            return;
        }
        let slot = &mut self.slots[slot.index()];
        let operation = slot.kind.operation().expect("operation that sent a command");
        slot.commands_done += 1;
        debug_assert!(slot.commands_done <= 2 * ERASE_COMMANDS, "an operation without an end");
        if self.target.command_of(operation, slot).is_some() {
            self.next_transfer(now);
        } else {
            self.finish_request(now);
        }
    }

    /// Ends the exclusive operation in `slot`. Returns its status, if the card has ended it with
    /// `status` ([reset-loss-fails-flush]).
    pub(super) fn end_exclusive(&mut self, slot: SlotId, status: Status) -> Status {
        debug_assert_eq!(self.exclusive, Some(slot), "another operation ends");
        self.exclusive = None;
        match self.slots[slot.index()].kind.operation() {
            Some(Operation::Flush) => {
                self.cache.note_flush(status, !self.slots[slot.index()].held_at_loss)
            }
            _ => status,
        }
    }
}

impl Slot {
    /// Returns which erase is next, and which of its commands.
    fn erase_step(&self) -> (usize, usize) {
        (
            usize::from(self.commands_done / ERASE_COMMANDS),
            usize::from(self.commands_done % ERASE_COMMANDS),
        )
    }

    /// Takes the operation back to the first of the commands that belong together, after one
    /// failed.
    pub(super) const fn restart_operation(&mut self) {
        self.commands_done -= self.commands_done % ERASE_COMMANDS;
    }
}
