//! The terms on which a machine and a device work together: who runs the device's hardware queues, and
//! how its requests complete.

/// Who runs a hardware queue, and so calls the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The processor that submits, or that has freed a tag.
    Submitter,
    /// A worker thread of the hardware queue.
    Worker,
    /// The thread of an MMC host's driver.
    HostThread,
}

/// How a device's hardware queues are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// The driver never sleeps: whoever submits runs the hardware queue, and a worker thread runs it when
    /// that run is deferred.
    Direct,
    /// The driver may sleep, so that every run is left to its thread.
    HostThread,
}

impl Dispatch {
    /// Returns who does the next run of a hardware queue.
    #[must_use]
    pub const fn runner(self, is_deferred: bool) -> Runner {
        match self {
            Self::Direct if is_deferred => Runner::Worker,
            Self::Direct => Runner::Submitter,
            Self::HostThread => Runner::HostThread,
        }
    }
}

/// How a device completes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Within the call that hands the request over.
    WithinCall,
    /// At an instant of its own, without an interrupt.
    Uninterrupted,
    /// By an interrupt of the processor that submitted the request.
    Interrupt,
    /// By an act of its host's driver, whose interrupt handler has been paid for.
    HostInterrupt,
    /// The request waits until a processor polls its hardware queue.
    Polled,
}
