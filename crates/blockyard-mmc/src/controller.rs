//! The seam to a controller: what it is told to do, and what it tells.
//!
//! A [`HostController`] drives one bus to one card. It is told to do one [`MmcRequest`] at a time,
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
//! - **B3.** Busy is a part where [`MmcRequest::ends_busy`] and the controller finds its end in
//!   hardware. It is then reported after all others, also where no CMD12 ended the data.
//! - **B4.** A slot's memory is prepared before it is in a transaction, once, and cleaned up after
//!   its last one, once. A task of a command queue engine counts as one.
//! - **B5.** With bounce buffers, transfers use the host's own buffer: what is written is copied
//!   there before the first transfer, and what was read is copied from there after the last, once
//!   each. A host that copies while the bus runs needs a buffer for each slot, any other one in all.
//! - **B6.** Where the card keeps the host waiting for longer than [`MmcRequest::limit`], the part that it was
//!   waited for times out: the data, or busy where the controller finds its end.

use super::command::Response;
use super::engine::{EngineEvent, QueueEngine};
use super::host::HostCapabilities;
pub use super::request::{HostError, MmcRequest, Pack, Part, Payload, SlotId};
use super::target::Target;
use blockyard::driver::Issue;
use blockyard::time::Instant;

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
    fn start(&mut self, transaction: &MmcRequest, now: Instant);

    /// As [`Self::start`], in interrupt context.
    ///
    /// # Errors
    ///
    /// Not now: nothing was started. [`Self::start`] it from another context.
    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow>;

    /// A block of 512 bytes of its own, that transfers can use: for registers that are read, and headers
    /// of packed commands. Asked for while no transaction is on the bus.
    fn block(&mut self) -> &mut [u8; 512];

    /// Undoes [`Self::prepare`]: what was read is there for the processor.
    fn post(&mut self, slot: SlotId);

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
