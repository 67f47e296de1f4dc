//! How a host path works: every choice in which one design differs from another, and the table of
//! what each pipeline means.
//!
//! # The pipelines
//!
//! `A` has just left the bus, `B` waits. What a context may do, it does in the order given.
//!
//! | pipeline | requests | thread | deferred | interrupt | `B` starts |
//! |---|---|---|---|---|---|
//! | serial | 1 | settle, cleanup, complete, prepare, start | | | after `A` is complete |
//! | two-slot-map-overlap | 2 | settle, cleanup, complete, start, prepare | | | after `A` is complete |
//! | post-before-start | 2 | settle, cleanup, start, complete, prepare | | | after `A` is cleaned up |
//! | two-slot-full | 2 | start, prepare, settle, cleanup, complete | | | at once |
//! | issue-on-completion | 2 | start, prepare | settle, cleanup, complete, start | | after `A` is complete |
//! | blkmq-wait | 2 | start, prepare, settle, cleanup, complete | settle, cleanup, complete | | at once |
//! | hsq | limit | start, prepare | settle, start, cleanup, complete | start | at once |
//! | cqe | depth | start, prepare | settle, cleanup, complete | | beside `A` |
//!
//! *Settle* is what the card needs before the bus is free: questions whether it is still busy, and
//! recovery after an error. A bus that is to be tuned again is so right before the next start, which
//! then is deferred work's where that can start at all, as it takes long. In two pipelines more than one context can end `A`: with
//! issue-on-completion and hsq it is deferred work; with blkmq-wait the dispatching thread, which
//! sleeps for the bus, where there is a `B`, and else deferred work. The thread starts a request of
//! those pipelines when it finds the bus free, as at the beginning of a burst.
//!
//! With cqe the bus is the engine's of the controller, and to start a request is to give it to the
//! engine, which has as many at a time as card and host have places for, and ends them in any order.
//! To settle is then to turn the engine on and off, to recover from an error, and to tune the bus,
//! for which the engine must be off.
//!
//! After a write only [`BusyDetect::Status`] asks the card how it is. With the others a page that could not be
//! programmed shows in the next response, when the write may have been reported as done: that is the price
//! of these policies, as in Linux, and is [counted](super::block::Counts::lost_writes).
//!
//! Where requests are [packed](Packed), the pipelines of two requests take as many as two packed
//! commands hold, 64 at most: while one is on the bus, another gathers. A command queue is not packed.
//!
//! With hsq the interrupt handler starts `B`, or deferred work does ([`HsqDefer`]). It cannot ask a
//! card whether it is busy, so only controllers that find the end of busy in hardware can have it.

use super::host::{BusyDetect, Transfer};

/// Who does what, and when the next request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// One request after the other, as before 2010.
    Serial,
    /// The next is prepared while the bus runs; it starts when the one before is done with. The
    /// first form of double buffering (2010).
    TwoSlotMapOverlap,
    /// As [`Self::TwoSlotMapOverlap`], and the next starts before the one before is cleaned up. As
    /// Linux 3.1 to 4.15.
    TwoSlotFull,
    /// As [`Self::TwoSlotFull`], but a request is cleaned up before the next starts: the fourth step
    /// of the multiqueue series of 2017.
    PostBeforeStart,
    /// Deferred work at the end of a request completes it and starts the next: the fifteenth step
    /// of that series.
    IssueOnCompletion,
    /// The dispatching thread prepares its request, sleeps until the bus is free, starts it and
    /// ends the one before: blk-mq since Linux 4.16.
    BlkMqWait,
    /// A software queue of prepared requests, of which the interrupt handler starts the next: since
    /// Linux 5.7.
    Hsq(HsqPolicy),
    /// The command queue engine of the controller, to which requests are tasks, each with the number
    /// of its driver tag: there are no more tags than places.
    Cqe,
}

/// How a host software queue works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsqPolicy {
    /// Which request is next.
    pub order: HsqOrder,
    /// How many there may be between acceptance and end.
    pub limit: HsqLimit,
    /// Whether the limit is tested before the new one is counted, which admits one more: as Linux
    /// does.
    ///
    /// [`HsqLimit::Dynamic`] depends on it: two writes that wait, beside one that is being completed,
    /// are three, so a strict limit of 2 never sees what it is to grow for.
    pub limit_off_by_one: bool,
    /// From where the next one starts.
    pub defer: HsqDefer,
}

/// Which request of a host software queue is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqOrder {
    /// The next slot by number, if it is in use; else the first in use from 0. A request can wait
    /// for ever. As posted in 2020 and until Linux 6.0.
    TagWalk,
    /// They go in the order in which they came.
    Fifo,
}

/// How many requests a host software queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqLimit {
    /// This many, at least 1.
    Fixed(u8),
    /// 5 when, as a request is sent, two or more are writes of 4096 bytes; else 2. Since Linux 6.7.
    Dynamic,
}

/// From where a host software queue starts the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqDefer {
    /// Deferred work, always: as posted in 2020.
    Always,
    /// Deferred work for cards that can be removed, else the interrupt handler: since Linux 5.8.
    Removable,
    /// The interrupt handler.
    Never,
}

impl HsqPolicy {
    /// As posted in 2020 (version 8).
    pub const V8: Self = Self {
        order: HsqOrder::TagWalk,
        limit: HsqLimit::Fixed(2),
        limit_off_by_one: true,
        defer: HsqDefer::Always,
    };

    /// As Linux has it today.
    pub const TODAY: Self = Self {
        order: HsqOrder::Fifo,
        limit: HsqLimit::Dynamic,
        limit_off_by_one: true,
        defer: HsqDefer::Removable,
    };

    /// How many requests `limit` admits.
    pub(super) const fn admits(&self, limit: u8) -> u8 {
        limit + self.limit_off_by_one as u8
    }
}

/// Whether data goes through a buffer of the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounce {
    /// No.
    None,
    /// Yes; the processor copies while the request has the bus, right before and after its
    /// transfer. Only where the thread settles what follows a transfer.
    Sync,
    /// Yes; the processor copies before it prepares and after it has cleaned up, while the bus may
    /// be another request's.
    Async,
}

/// Which requests go in one packed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// None.
    Off,
    /// Writes.
    Write,
    /// Writes, and reads.
    ReadWrite,
}

/// The policies of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// How data moves.
    pub transfer: Transfer,
    /// Who does what when.
    pub pipeline: Pipeline,
    /// How the end of busy is found. A host that can do better may be told to do worse.
    pub busy: BusyDetect,
    /// Whether transfers of several blocks are announced (CMD23) where the card knows that, or
    /// stopped (CMD12) always.
    pub close_ended: bool,
    /// Bounce buffers.
    pub bounce: Bounce,
    /// Packed commands.
    pub packed: Packed,
}

impl HostPolicy {
    /// `pipeline` with DMA, transfers announced, no bounce buffers and nothing packed; the end of
    /// busy is found by `busy`.
    #[must_use]
    pub const fn new(pipeline: Pipeline, busy: BusyDetect) -> Self {
        Self {
            transfer: Transfer::Dma,
            pipeline,
            busy,
            close_ended: true,
            bounce: Bounce::None,
            packed: Packed::Off,
        }
    }
}

/// When the next request may start, seen from the one that left the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// It is complete.
    AfterComplete,
    /// It is cleaned up.
    AfterPost,
    /// At once.
    AtOnce,
}

/// Something to be done for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// See to what the card needs before the bus is free.
    Settle,
    /// Put the next one on the bus.
    Start,
    /// Prepare its memory.
    Prepare,
    /// Clean up its memory.
    Post,
    /// Report its end.
    Complete,
}

/// A set of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jobs(u8);

impl Jobs {
    pub(super) const NONE: Self = Self(0);

    /// The set with `job`, where `is` so.
    #[inline]
    pub(super) const fn with(self, job: Job, is: bool) -> Self {
        Self(self.0 | (is as u8) << job as u8)
    }

    #[inline]
    pub(super) const fn has(self, job: Job) -> bool {
        self.0 >> job as u8 & 1 != 0
    }
}

/// Who ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The thread.
    Thread,
    /// Deferred work.
    Deferred,
    /// The thread where a request waits for the bus, else deferred work.
    WaitingThread,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Places for requests.
    pub slots: u8,
    /// When the next one may start.
    pub overlap: Overlap,
    /// Who ends a request.
    pub ended_by: EndedBy,
    /// What the thread does, what it prefers first.
    pub thread: &'static [Job],
    /// As [`Self::thread`], of deferred work.
    pub deferred: &'static [Job],
    /// As [`Self::thread`], of the interrupt handler.
    pub interrupt: &'static [Job],
}

/// Slots of a host software queue: one for each driver tag. A host that has more tags panics when the
/// first of those is used.
pub const HSQ_SLOTS: u8 = 64;

impl Plan {
    /// The same where up to `most` requests go in one packed command: pipelines of two requests then
    /// have two packs, the one on the bus and the one that gathers. Linux's thread fetched as many as
    /// its queue had. A host software queue has its limit, and one request at a time is no pack.
    pub(super) const fn packing(self, most: u8) -> Self {
        let slots = match self.slots {
            2 if most > HSQ_SLOTS / 2 => HSQ_SLOTS,
            2 if most > 1 => 2 * most,
            slots => slots,
        };
        Self { slots, ..self }
    }

    /// The line of `pipeline`, with a command queue of `queue_depth` places.
    pub(super) fn of(pipeline: Pipeline, queue_depth: u8) -> Self {
        use Job::{Complete, Post, Prepare, Settle, Start};
        let by_thread = |slots, overlap, thread| Self {
            slots,
            overlap,
            ended_by: EndedBy::Thread,
            thread,
            deferred: &[],
            interrupt: &[],
        };
        match pipeline {
            Pipeline::Serial => {
                by_thread(1, Overlap::AfterComplete, &[Settle, Post, Complete, Prepare, Start])
            }
            Pipeline::TwoSlotMapOverlap => {
                by_thread(2, Overlap::AfterComplete, &[Settle, Post, Complete, Start, Prepare])
            }
            Pipeline::PostBeforeStart => {
                by_thread(2, Overlap::AfterPost, &[Settle, Post, Start, Complete, Prepare])
            }
            Pipeline::TwoSlotFull => {
                by_thread(2, Overlap::AtOnce, &[Start, Prepare, Settle, Post, Complete])
            }
            Pipeline::IssueOnCompletion => Self {
                slots: 2,
                overlap: Overlap::AfterComplete,
                ended_by: EndedBy::Deferred,
                thread: &[Start, Prepare],
                deferred: &[Settle, Post, Complete, Start],
                interrupt: &[],
            },
            Pipeline::BlkMqWait => Self {
                slots: 2,
                overlap: Overlap::AtOnce,
                ended_by: EndedBy::WaitingThread,
                thread: &[Start, Prepare, Settle, Post, Complete],
                deferred: &[Settle, Post, Complete],
                interrupt: &[],
            },
            Pipeline::Hsq(_) => Self {
                slots: HSQ_SLOTS,
                overlap: Overlap::AtOnce,
                ended_by: EndedBy::Deferred,
                thread: &[Start, Prepare],
                deferred: &[Settle, Start, Post, Complete],
                interrupt: &[Start],
            },
            Pipeline::Cqe => Self {
                slots: queue_depth,
                overlap: Overlap::AtOnce,
                ended_by: EndedBy::Deferred,
                thread: &[Start, Prepare],
                deferred: &[Settle, Post, Complete],
                interrupt: &[],
            },
        }
    }
}
