//! The seam to a controller: what it is told to do, and what it tells.
//!
//! A [`HostController`] drives one bus to one card. It is told to do one [`Transaction`] at a time,
//! commands and transfer in one, and its interrupt handler tells how it goes, as [`HostEvent`]s.
//! It decides nothing: not what comes next, not whether to try again.
//!
//! # Rules
//!
//! - **B1.** One transaction at a time is on the bus, and none while the bus is a command queue
//!   engine's (N1 in [`engine`](super::engine)). It is on from
//!   [`start`](HostController::start) until all its parts are reported, or the first
//!   [`HostEvent::Error`] or [`HostEvent::CardGone`], or [`abort`](HostController::abort).
//!   After any of these nothing more of it is reported, and the controller touches its memory no
//!   more.
//! - **B2.** The parts of a transaction are done in the order of [`Part`], each once. After an error
//!   none follows: what the card then needs (CMD13, CMD12) is asked of the controller as a
//!   transaction of its own.
//! - **B3.** Busy is a part where [`Transaction::ends_busy`] and the controller finds its end in
//!   hardware. It is then reported after all others, also where no CMD12 ended the data.
//! - **B4.** A slot's memory is prepared before it is in a transaction, once, and cleaned up after
//!   its last one, once. A task of a command queue engine counts as one.
//! - **B5.** With bounce buffers, transfers use the host's own buffer: what is written is copied
//!   there before the first transfer, and what was read is copied from there after the last, once
//!   each. A host that copies while the bus runs needs a buffer for each slot, any other one in all.
//! - **B6.** Where the card keeps the host waiting for longer than [`Transaction::limit`], the part that it was
//!   waited for times out: the data, or busy where the controller finds its end.

use super::block::Target;
use super::command::packed::MAX_ENTRIES;
use super::command::{Command, Data, Direction, Response};
use super::engine::{EngineEvent, QueueEngine};
use super::host::HostCapabilities;
use blockyard::driver::Issue;
use blockyard::time::{Duration, Instant};
use core::fmt;

/// A place for one request, from its acceptance to its end: below the number of slots that the
/// controller was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u8);

impl SlotId {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whose memory a transfer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing is transferred.
    None,
    /// That of the request in `slot`, from block `skip` on.
    Slot {
        /// The slot.
        slot: SlotId,
        /// Blocks of the request that come before.
        skip: u32,
    },
    /// The controller's [own block](HostController::block).
    Block,
    /// That of several requests, whole and in order; behind the controller's own block where they write.
    Packed(Pack),
}

/// The requests of a packed command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    slots: [SlotId; MAX_ENTRIES as usize],
    count: u8,
}

impl Pack {
    /// That of the requests in `slots`.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_ENTRIES`].
    #[must_use]
    pub fn new(slots: &[SlotId]) -> Self {
        let mut pack = Self { slots: [SlotId(0); MAX_ENTRIES as usize], count: 0 };
        pack.slots[..slots.len()].copy_from_slice(slots);
        pack.count = u8::try_from(slots.len()).expect("no more than the array has");
        pack
    }

    /// Their slots, in order.
    #[must_use]
    pub fn slots(&self) -> &[SlotId] {
        &self.slots[..usize::from(self.count)]
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots()).finish()
    }
}

/// What goes over the bus in one: commands around at most one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What announces the transfer: CMD23.
    pub announce: Option<Command>,
    /// The command, with the transfer if it has one.
    pub command: Command,
    /// What ends the transfer: CMD12.
    pub stop: Option<Command>,
    /// The memory of the transfer.
    pub payload: Payload,
    /// The longest that the card may keep the host waiting: before a block that is read, before it takes one
    /// that is written, and with busy; counted anew for each. Whole nanoseconds, from what the card's
    /// registers grant it. A controller whose counter is coarser rounds up, and one whose counter does not
    /// reach so far leaves it off: the request path has a limit of its own. Zero where the card neither
    /// moves data nor is busy. A response has its own limit, 64 clocks.
    pub limit: Duration,
}

impl Transaction {
    /// A command by itself, which may keep the host waiting up to `limit`, if it moves data or the card may be
    /// busy with it.
    #[must_use]
    pub const fn plain(command: Command, limit: Duration) -> Self {
        let waits = command.data.is_some() || command.response.has_busy();
        let limit = if waits { limit } else { Duration::ZERO };
        Self { announce: None, command, stop: None, payload: Payload::None, limit }
    }

    /// What it consists of, in order: what a controller tells the end of, one by one or at once.
    pub fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let parts = [
            (Part::Announce, self.announce.is_some()),
            (Part::Command, true),
            (Part::Data, self.data().is_some()),
            (Part::Stop, self.stop.is_some()),
            (Part::Busy, self.ends_busy()),
        ];
        parts.into_iter().filter_map(|(part, is_there)| is_there.then_some(part))
    }

    /// The transfer.
    #[must_use]
    pub const fn data(&self) -> Option<Data> {
        self.command.data
    }

    /// Whether the card may be busy when all else is done: after a write, and after a command whose
    /// response says so.
    #[must_use]
    pub fn ends_busy(&self) -> bool {
        let writes = self.data().is_some_and(|data| data.direction == Direction::Write);
        let stops_busy = self.stop.is_some_and(|stop| stop.response.has_busy());
        writes || stops_busy || self.command.response.has_busy()
    }
}

/// A part of a transaction, in the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// [`Transaction::announce`].
    Announce,
    /// [`Transaction::command`].
    Command,
    /// The transfer.
    Data,
    /// [`Transaction::stop`].
    Stop,
    /// The card is busy.
    Busy,
}

/// What went wrong on the bus or in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    /// Nothing came in time.
    Timeout,
    /// It came damaged: CRC, end bit, or index of the command.
    Damaged,
    /// The controller could not reach the memory.
    Memory,
}

/// What the controller's interrupt handler tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The command that is `part` was answered.
    CommandDone {
        /// [`Part::Announce`], [`Part::Command`] or [`Part::Stop`].
        part: Part,
        /// The answer.
        response: Response,
    },
    /// The transfer is over, all its blocks.
    DataDone,
    /// The card is not busy any more.
    BusyReleased,
    /// `part` failed, and the transaction is over (B1).
    Error {
        /// The part.
        part: Part,
        /// How.
        error: HostError,
        /// Whole blocks that were transferred well.
        blocks: u16,
    },
    /// The card is not there any more; the transaction, if there was one, is over (B1).
    CardGone,
    /// The sampling of the bus has drifted, or its time is up: tune before the next transfer. The
    /// transaction goes on.
    RetuneNeeded,
    /// The command queue engine tells something.
    Engine(EngineEvent),
}

/// The bus is not to be used from interrupt context now: say it again where one can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// A controller with one card, which [`identify`](super::identify) has brought to its mode.
///
/// Slots are its caller's: it accepts, prepares, uses, cleans up and accepts again.
pub trait HostController {
    /// What it can do. Does not change.
    fn capabilities(&self) -> &HostCapabilities;

    /// Whether it has bounce buffers, and copies them when told to.
    fn has_bounce_buffers(&self) -> bool {
        false
    }

    /// The request of `issue` has `slot` from now on: note what is needed of its memory.
    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>);

    /// Makes the memory of `slot` ready for transfers: cache maintenance, descriptors. Not called of
    /// a controller that the processor copies for.
    fn prepare(&mut self, slot: SlotId);

    /// Puts `transaction` on the bus, in a context that may wait.
    fn start(&mut self, transaction: &Transaction, now: Instant);

    /// As [`Self::start`], in interrupt context.
    ///
    /// # Errors
    ///
    /// Not now: nothing was started. [`Self::start`] it from another context.
    fn start_atomic(&mut self, transaction: &Transaction, now: Instant) -> Result<(), NotNow>;

    /// A block of 512 bytes of its own, that transfers can use: for registers that are read, and headers
    /// of packed commands. Asked for while no transaction is on the bus.
    fn block(&mut self) -> &mut [u8; 512];

    /// Undoes [`Self::prepare`]: what was read is there for the processor.
    fn cleanup(&mut self, slot: SlotId);

    /// Copies what `slot` is to write into the bounce buffer (B5). Only where the policy has bounce
    /// buffers, as [`Self::copy_out`].
    fn copy_in(&mut self, slot: SlotId) {
        let _ = slot;
    }

    /// Copies what `slot` has read from the bounce buffer to where it belongs (B5).
    fn copy_out(&mut self, slot: SlotId) {
        let _ = slot;
    }

    /// Its command queue engine, if it has one. Does not change.
    fn engine(&mut self) -> Option<&mut dyn QueueEngine> {
        None
    }

    /// Whether the card holds DAT0 low. Asked only of a controller that
    /// [can tell](HostCapabilities::busy_detect).
    fn card_busy(&mut self, now: Instant) -> bool;

    /// Takes off the bus what is on it: a transaction that took too long (B1), or what an engine that
    /// does not halt is at (N4).
    fn abort(&mut self, now: Instant);

    /// Whether the bus is in a mode that is tuned.
    fn is_tuned(&self) -> bool {
        false
    }

    /// Tunes the bus again, with the card ready and nothing on the bus, in a context that may wait.
    /// Only of a bus that [is tuned](Self::is_tuned). What to send is
    /// [`Retune`](super::identify::Retune)'s matter.
    ///
    /// # Errors
    ///
    /// No sampling point works: the caller resets.
    fn retune(&mut self, now: Instant) -> Result<(), HostError> {
        let _ = now;
        Ok(())
    }

    /// Resets controller and card and [identifies](super::identify) the card once more, in a context
    /// that may wait, so that it is in its mode again, and all on that was on. Answers what came back:
    /// the address may be new, as an SD card publishes another each time, and so may the card.
    ///
    /// # Errors
    ///
    /// No card comes back.
    fn reset(&mut self, now: Instant) -> Result<Target, HostError>;
}
