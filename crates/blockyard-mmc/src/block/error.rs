//! What a driver cannot be made with.

use core::fmt;

/// Why there is no driver with these policies on this controller.
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
    /// The processor moves the data: there is nothing to bounce.
    PioNeedsNoBounce,
    /// Bounce buffers are to be copied while a request has the bus, and in this pipeline no thread has
    /// it then.
    NobodyCopies,
    /// The card packs no such requests, or the controller cannot transfer them: it needs three memory
    /// segments, and not one bounce buffer for all. Or there is a command queue, which takes none.
    Packed,
    /// The controller moves data in the other way.
    Transfer,
    /// The controller does not find the end of busy in this way.
    BusyDetect,
    /// A host software queue needs a controller that finds the end of busy in hardware.
    HsqWithoutBusy,
    /// A host software queue for no requests.
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
            Self::BusyDetect => "the controller does not find the end of busy in this way",
            Self::HsqWithoutBusy => "a host software queue needs the end of busy found in hardware",
            Self::NoRequests => "a host software queue must hold at least one request",
        })
    }
}

impl core::error::Error for Unsupported {}
