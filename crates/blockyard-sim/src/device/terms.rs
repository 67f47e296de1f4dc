//! The terms between a machine and a device: which thread runs the device's hardware queues, and how its
//! requests complete.

/// The thread or processor that runs a hardware queue, and so calls the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The processor that submits, or that has freed a tag.
    Submitter,
    /// A worker thread of the hardware queue.
    Worker,
    /// The thread of an MMC host's driver.
    HostThread,
}

/// The way in which a device's hardware queues are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// The driver never sleeps. The submitting thread runs the hardware queue, and a worker thread does the
    /// deferred runs.
    Direct,
    /// The driver may sleep, so that every run is left to its thread.
    HostThread,
    /// The driver may sleep, and the submitting thread sleeps in it. Its thread does the deferred runs.
    HostSubmitter,
}

impl Dispatch {
    /// Returns the runner of the next run of a hardware queue.
    #[must_use]
    pub const fn runner(self, is_deferred: bool) -> Runner {
        match self {
            Self::Direct if is_deferred => Runner::Worker,
            Self::HostSubmitter if is_deferred => Runner::HostThread,
            Self::Direct | Self::HostSubmitter => Runner::Submitter,
            Self::HostThread => Runner::HostThread,
        }
    }
}

/// The way in which a device completes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Within the call that hands the request over.
    WithinCall,
    /// At an instant of its own, without an interrupt.
    Uninterrupted,
    /// By an interrupt of the processor that submitted the request.
    Interrupt,
    /// By an interrupt of the vector of its hardware queue, whose handler ends every request that has completed by then.
    Vector,
    /// By an act of its host's driver, after the cost of the interrupt handler.
    HostInterrupt,
    /// The request waits until a processor polls its hardware queue.
    Polled,
}
