//! Errors of making a driver.

use core::fmt;

/// Why these policies do not work on this controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The controller has no command queue engine.
    NoEngine,
    /// The card has no command queue.
    NoCardQueue,
    /// A command queue engine moves data by DMA, not the processor.
    EngineCopiesNothing,
    /// The controller has no bounce buffers.
    NoBounceBuffers,
    /// The processor moves the data, so bounce buffers have no use.
    PioNeedsNoBounce,
    /// Bounce buffers are to be copied while a request has the bus, but in this pipeline no thread
    /// has the bus then.
    NobodyCopies,
    /// The card packs no such requests; or the controller cannot transfer them, as it needs three
    /// memory segments and must not have one bounce buffer for all requests; or there is a command
    /// queue, which takes no packed commands.
    Packed,
    /// The controller moves data in the other way (DMA or PIO).
    Transfer,
    /// Memory is to be prepared beside the access, but the processor moves the data, requests are
    /// bounced or packed, another context than the thread ends requests, or the controller does not
    /// hold data back.
    BesideAccess,
    /// Transfers are to be left open, but requests are packed, there is a command queue, or the
    /// controller cannot continue a transfer.
    LeftOpen,
    /// The controller does not find the end of busy in this way.
    BusyDetect,
    /// A host software queue needs a controller that finds the end of busy in hardware.
    HsqWithoutBusy,
    /// The host software queue has no place for a request.
    NoRequests,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEngine => "the controller has no command queue engine",
            Self::NoCardQueue => "the card has no command queue",
            Self::EngineCopiesNothing => "a command queue engine moves data by DMA",
            Self::NoBounceBuffers => "the controller has no bounce buffers",
            Self::PioNeedsNoBounce => "the processor moves the data, so there is nothing to bounce",
            Self::NobodyCopies => "no thread has the bus in this pipeline, to copy there and then",
            Self::Packed => "card or controller cannot pack such requests",
            Self::Transfer => "the controller does not move data in this way",
            Self::BesideAccess => "memory cannot be prepared during the access",
            Self::LeftOpen => "no transfer can be left open",
            Self::BusyDetect => "the controller does not find the end of busy in this way",
            Self::HsqWithoutBusy => "a host software queue needs the end of busy found in hardware",
            Self::NoRequests => "a host software queue must hold at least one request",
        })
    }
}

impl core::error::Error for Unsupported {}
