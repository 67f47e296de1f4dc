//! What a driver cannot be made with.

use core::fmt;

/// Why there is no driver with these policies on this controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The command queue engine is not driven yet.
    CommandQueue,
    /// The controller has no bounce buffers, or no thread to copy in, or the processor copies anyway.
    Bounce,
    /// Packed commands are not there yet.
    Packed,
    /// The card's cache is on, and flushes are not there yet.
    Cache,
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
            Self::CommandQueue => "the command queue engine is not driven yet",
            Self::Bounce => "there are no bounce buffers here, or nobody to copy",
            Self::Packed => "packed commands are not there yet",
            Self::Cache => "the card's cache is on, and flushes are not there yet",
            Self::Transfer => "the controller does not move data in this way",
            Self::BusyDetect => "the controller does not find the end of busy in this way",
            Self::HsqWithoutBusy => "a host software queue needs the end of busy found in hardware",
            Self::NoRequests => "a host software queue must hold at least one request",
        })
    }
}

impl core::error::Error for Unsupported {}
