//! The interface to a controller: the calls that it carries out, and the events that it reports.
//!
//! A [`HostController`] drives one bus to one card. It performs one [`MmcRequest`] at a time,
//! commands and transfer as one unit, and its interrupt handler reports progress as [`HostEvent`]s.
//! It decides nothing: neither what comes next, nor whether to try again.
//!
//! The parts of an MMC request are done in the order of [`Part`], each once. After an error no
//! further part is done; CMD13 and CMD12 that the card then needs are MMC requests of their own.
//! Busy is a part if [`MmcRequest::ends_busy`] and the controller finds its end in hardware. It is
//! reported after all other parts, even if no CMD12 ended the data. If the card keeps the host
//! waiting for longer than [`MmcRequest::limit`], the part that the host waits for times out: the
//! data, or busy if the controller finds its end.
//!
//! # Rules
//!
//! - **[one-request-on-bus]** One MMC request at a time is on the bus, and none while a command
//!   queue engine has the bus ([engine-owns-bus]). A request is on the bus from
//!   [`start`](HostController::start) until all its parts are reported, or the first
//!   [`HostEvent::Error`] or [`HostEvent::CardGone`], or [`abort`](HostController::abort). After
//!   any of these nothing more of it is reported, and the controller leaves its memory alone.
//! - **[prepared-while-in-use]** A slot's memory is prepared once, before its first MMC request or
//!   [beside](HostController::prepare_beside) it, and posted once, after its last. A task of a
//!   command queue engine counts as an MMC request.
//! - **[data-waits-for-memory]** A controller [that can](HostCapabilities::holds_data) starts a
//!   read before its memory is prepared. No block of it reaches memory that is not prepared: the
//!   controller holds the data back.
//! - **[bounced-once]** With bounce buffers, transfers use the host's own buffer. The data of a
//!   write is copied there once, before the first transfer; the data of a read is copied from there
//!   once, after the last. A host that copies while the bus runs needs a buffer for each slot, any
//!   other host one in all.

use super::command::Response;
use super::engine::{EngineEvent, QueueEngine};
use super::host::HostCapabilities;
pub use super::request::{HostError, MmcRequest, Pack, Part, Payload, SlotId};
use super::target::Target;
use blockyard::driver::Issue;
use blockyard::time::Instant;

/// An event that the controller's interrupt handler reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The command of `part` was answered.
    CommandDone {
        /// [`Part::Announce`], [`Part::Command`] or [`Part::Stop`].
        part: Part,
        /// The response.
        response: Response,
    },
    /// The transfer is over, with all its blocks.
    DataDone,
    /// The card is no longer busy.
    BusyReleased,
    /// `part` failed, and the MMC request is over ([one-request-on-bus]).
    Error {
        /// The part that failed.
        part: Part,
        /// The error.
        error: HostError,
        /// The number of whole blocks that were transferred well.
        blocks: u16,
    },
    /// The card was removed. The MMC request on the bus, if there was one, is over
    /// ([one-request-on-bus]).
    CardGone,
    /// The sampling point of the bus has drifted, or its time is up: tune the bus before the next
    /// transfer. The MMC request continues.
    RetuneNeeded,
    /// An event of the command queue engine.
    Engine(EngineEvent),
}

/// The bus cannot be used from interrupt context now. Try again in a context that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// A controller with one card, which [`identify`](super::identify) has brought to its mode.
///
/// The caller manages the slots: it accepts, prepares, uses, posts, and accepts again.
pub trait HostController {
    /// Returns what the controller can do. The answer never changes.
    fn capabilities(&self) -> &HostCapabilities;

    /// Returns whether the controller has bounce buffers, and copies them when told to.
    fn has_bounce_buffers(&self) -> bool {
        false
    }

    /// Takes note of the memory of the request of `issue`, which has `slot` from now on.
    fn accept(&mut self, slot: SlotId, issue: &Issue<'_>);

    /// Prepares the memory of `slot` for transfers: cache maintenance, descriptors. Not called if
    /// the processor moves the data.
    fn prepare(&mut self, slot: SlotId);

    /// Prepares the memory of the next `blocks` blocks of `slot`, whose read is on the bus and
    /// waits for it ([data-waits-for-memory]): first some blocks, then more. If the read has failed
    /// meanwhile, its memory is prepared all the same. Called instead of [`Self::prepare`], and
    /// only if the controller [holds data back](HostCapabilities::holds_data).
    fn prepare_beside(&mut self, slot: SlotId, blocks: u32, now: Instant) {
        unreachable!("{blocks} blocks of {slot:?} at {now}: this controller holds no data back");
    }

    /// Puts `transaction` on the bus, in a context that may wait.
    fn start(&mut self, transaction: &MmcRequest, now: Instant);

    /// Does the same as [`Self::start`] in interrupt context.
    ///
    /// # Errors
    ///
    /// Fails if the bus cannot be used now. Nothing was started: [`Self::start`] the request in
    /// another context.
    fn start_atomic(&mut self, transaction: &MmcRequest, now: Instant) -> Result<(), NotNow>;

    /// Returns a block of 512 bytes of the controller's own that transfers can use. The host reads
    /// registers from it, and writes into it what a [block](MmcRequest::by_block) that goes to the
    /// card is to contain: the header of a packed command, or the byte of CMD49 before 511 zeros.
    /// Called only while no MMC request is on the bus.
    fn block(&mut self) -> &mut [u8; 512];

    /// Posts the memory of `slot`, which undoes [`Self::prepare`], or as much as was
    /// [prepared](Self::prepare_beside): the processor can use the data.
    fn post(&mut self, slot: SlotId);

    /// Copies the data of the write in `slot` into the bounce buffer ([bounced-once]). Called only
    /// if the policy has bounce buffers, like [`Self::copy_out`].
    fn copy_in(&mut self, slot: SlotId) {
        let _ = slot;
    }

    /// Copies the data that `slot` has read from the bounce buffer to the request's memory
    /// ([bounced-once]).
    fn copy_out(&mut self, slot: SlotId) {
        let _ = slot;
    }

    /// Returns the command queue engine, if the controller has one. The answer never changes.
    fn engine(&mut self) -> Option<&mut dyn QueueEngine> {
        None
    }

    /// Returns whether the card holds DAT0 low. Called only if the controller [can
    /// tell](HostCapabilities::busy_detect).
    fn card_busy(&mut self, now: Instant) -> bool;

    /// Takes off the bus whatever is on it: an MMC request that took too long
    /// ([one-request-on-bus]), or the command of an engine that does not halt ([halt-frees-bus]).
    fn abort(&mut self, now: Instant);

    /// Returns whether the bus is in a mode that is tuned.
    fn is_tuned(&self) -> bool {
        false
    }

    /// Tunes the bus again, in a context that may wait, while the card is ready and nothing is on
    /// the bus. Called only if the bus [is tuned](Self::is_tuned).
    /// [`Retune`](super::identify::Retune) lists the steps.
    ///
    /// # Errors
    ///
    /// Fails if no sampling point works. The caller then resets the card.
    fn retune(&mut self, now: Instant) -> Result<(), HostError> {
        let _ = now;
        Ok(())
    }

    /// Resets controller and card and [identifies](super::identify) the card again, in a context
    /// that may wait, so that the card is in its mode and everything that was on is on again.
    /// Returns the card that came back. Its address may be new, as an SD card publishes another one
    /// each time, and it may be another card.
    ///
    /// # Errors
    ///
    /// Fails if no card comes back.
    fn reset(&mut self, now: Instant) -> Result<Target, HostError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller that implements only what every controller has.
    struct Plain;

    impl HostController for Plain {
        fn capabilities(&self) -> &HostCapabilities {
            unreachable!("not asked")
        }
        fn accept(&mut self, _: SlotId, _: &Issue<'_>) {}
        fn prepare(&mut self, _: SlotId) {}
        fn start(&mut self, _: &MmcRequest, _: Instant) {}
        fn start_atomic(&mut self, _: &MmcRequest, _: Instant) -> Result<(), NotNow> {
            Err(NotNow)
        }
        fn block(&mut self) -> &mut [u8; 512] {
            unreachable!("not asked")
        }
        fn post(&mut self, _: SlotId) {}
        fn card_busy(&mut self, _: Instant) -> bool {
            false
        }
        fn abort(&mut self, _: Instant) {}
        fn reset(&mut self, _: Instant) -> Result<Target, HostError> {
            Err(HostError::Timeout)
        }
    }

    #[test]
    fn a_controller_that_does_not_say_so_has_no_buffers_no_engine_and_no_tuned_bus() {
        assert!(!Plain.has_bounce_buffers() && Plain.engine().is_none() && !Plain.is_tuned());
    }
}
