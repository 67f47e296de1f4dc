//! The terms between a machine and a device: which thread runs the device's hardware queues, and
//! how its requests complete.

use blockyard::time::Instant;
use std::collections::VecDeque;

/// The largest number of disks on one host.
pub const DISKS_MAX: u16 = 1024;

/// An event that a device scheduled: the number of one of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent(pub u32);

/// Events that a device wants scheduled.
pub type Events = VecDeque<(Instant, DeviceEvent)>;

/// The way in which a device's hardware queues are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// The driver never sleeps. The submitting thread runs the hardware queue, and a worker thread
    /// does the deferred runs.
    Direct,
    /// The driver may sleep, so that every run is left to its thread.
    HostThread,
    /// The driver may sleep, and the submitting thread sleeps in it. Its thread does the deferred
    /// runs.
    HostSubmitter,
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
    /// By an interrupt of the vector of its hardware queue, whose handler ends every request that
    /// has completed by then.
    Vector,
    /// By an act of its host's driver, after the cost of the interrupt handler.
    HostInterrupt,
    /// The request waits until a processor polls its hardware queue.
    Polled,
}
