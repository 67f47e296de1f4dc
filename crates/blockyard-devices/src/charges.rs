//! The resources whose time the keys of profiles charge.
//!
//! Each list of keys stands next to the table that has them. A key that is in no list describes
//! what a device is, such as its capacity, or chooses among ways of working.

use crate::load::{Parts, Work};

/// Something that keys charge with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The processors, with all steps of an I/O.
    Processors,
    /// Copies between the page cache and the memory of jobs.
    PageCopies,
    /// The single lock of a queue.
    SingleLock,
    /// The soft interrupt that ends a request under the single lock.
    SoftInterrupts,
    /// The lock and the work of an elevator.
    Elevator,
    /// The moves of a lock from one processor to another.
    LockMoves,
    /// The search for requests to merge with.
    Merging,
    /// The start of a run that is left to a worker.
    Runs,
    /// A thread that does what another context did before.
    Handover,
    /// The first sleep state of a processor.
    Sleep,
    /// The deepest sleep state of a processor.
    DeepSleep,
    /// Interrupts and the ends of requests in them.
    Interrupts,
    /// Polled queues.
    Polls,
    /// The path between host and device.
    Link,
    /// The part of a device that takes commands one at a time.
    Controller,
    /// A device whose commands take a time of their own.
    Device,
    /// What reads take on a card.
    CardReads,
    /// What writes take on a card.
    CardWrites,
    /// The room for writes in a medium's buffer or cache.
    Room,
    /// Parts of a medium.
    Parts(Parts),
    /// A kind of work of a medium.
    Work(Work),
}

/// A thread that does what another context did before: it wakes up on a processor that may sleep.
pub const HANDOVER: &[Resource] = &[Resource::Handover, Resource::Sleep, Resource::DeepSleep];
/// Interrupts.
pub const INTERRUPTS: &[Resource] = &[Resource::Interrupts];

/// Keys of a table, each with what it charges.
pub(crate) type Charges = &'static [(&'static str, &'static [Resource])];
