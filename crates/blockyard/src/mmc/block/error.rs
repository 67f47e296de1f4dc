//! What a driver cannot be made with.

use core::fmt;

/// Why there is no driver with these policies on this controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// Card or controller has no command queue.
    CommandQueue,
    /// The controller has no bounce buffers, or no thread to copy in, or the processor copies anyway.
    Bounce,
    /// The card packs no such requests, or the controller cannot transfer them: it needs three memory
    /// segments, and not one bounce buffer for all. Or there is a command queue, which takes none.
    Packed,
    /// The controller moves data in the other way, or has an engine to do it.
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
            Self::CommandQueue => "card or controller has no command queue",
            Self::Bounce => "there are no bounce buffers here, or nobody to copy",
            Self::Packed => "card or controller cannot pack such requests",
            Self::Transfer => "the controller does not move data in this way",
            Self::BusyDetect => "the controller does not find the end of busy in this way",
            Self::HsqWithoutBusy => "a host software queue needs the end of busy found in hardware",
            Self::NoRequests => "a host software queue must hold at least one request",
        })
    }
}

impl core::error::Error for Unsupported {}
