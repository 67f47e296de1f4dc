//! The policy of a host path: every choice in which one design differs from another, and a table of
//! the pipelines.
//!
//! # The pipelines
//!
//! `A` has just left the bus, and `B` waits. A context does its jobs in the order given. To end
//! `A` is cleanup and complete.
//!
//! | pipeline | requests | thread | deferred | interrupt | `B` starts |
//! |---|---|---|---|---|---|
//! | serial | 1 | settle, end, prepare, start | | | after `A` is complete |
//! | two-slot-map-overlap | 2 | settle, end, start, prepare | | | after `A` is complete |
//! | post-before-start | 2 | settle, cleanup, start, complete, prepare | | | after cleanup of `A` |
//! | two-slot-full | 2 | start, prepare, settle, end | | | immediately |
//! | issue-on-completion | 2 | start, prepare | settle, end | | when the cleanup of `A` begins |
//! | blkmq-wait | 2 | start, prepare, settle, end | settle, end | | immediately |
//! | hsq | limit | start, prepare | settle, start, end | start, end | immediately |
//! | cqe | depth | start, prepare | settle, end | | during `A` |
//!
//! *Settle* is what the card needs before the bus is free: checks whether it is still busy, and
//! recovery after an error. A bus that is to be tuned is tuned right before the next start. Tuning
//! takes long, so that start is deferred work's, if deferred work can start requests at all. With
//! blkmq-wait, the dispatching thread ends `A` if a `B` waits, as that thread sleeps for the bus,
//! and otherwise deferred work. With issue-on-completion, deferred work takes up `A` and wakes the
//! thread, which starts `B`: two wake-ups in a row. With hsq, the thread starts a request when it
//! finds the bus free, as at the beginning of a burst.
//!
//! With cqe the controller's engine has the bus, and to start a request is to give it to the
//! engine. The engine holds as many requests as card and host have places for, and ends them in any
//! order. To settle is then to turn the engine on and off, to recover from an error, and to tune
//! the bus, for which the engine must be off.
//!
//! With [`LoneRead::BesideAccess`], a read that finds the bus free starts first and is prepared
//! then.
//!
//! Only with [`BusyDetect::Status`] does CMD13 follow each write. Otherwise a page that could not
//! be programmed shows in the next response, when the write may have been reported as done. This
//! late write error is the price of these policies, as in Linux, and is
//! [counted](super::block::Counts::lost_writes).
//!
//! If requests are [packed](Packed), the pipelines of two requests hold as many as two packed
//! commands do, at most 64: one pack is on the bus while another gathers. A command queue is not
//! packed.
//!
//! With hsq the interrupt handler starts `B` and ends `A`, or deferred work does both
//! ([`HsqDefer`]). A request that failed, and one whose data the processor copies, is always ended
//! by deferred work. The interrupt handler cannot ask a card whether it is busy, so hsq needs a
//! controller that finds the end of busy in hardware.

use super::host::{BusyDetect, Transfer};
use blockyard::time::Duration;

/// Which context does what, and when the next request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// One request after the other, as before 2010.
    Serial,
    /// The next request is prepared while the bus runs. It starts when the one before is complete.
    /// The first form of double buffering (2010).
    TwoSlotMapOverlap,
    /// As [`Self::TwoSlotMapOverlap`], but the next request starts before the one before is posted.
    /// As in Linux 3.1 to 4.15.
    TwoSlotFull,
    /// As [`Self::TwoSlotFull`], but a request is posted before the next one starts: the fourth
    /// step of the multiqueue series of 2017.
    PostBeforeStart,
    /// At the end of a request, deferred work wakes the thread, which starts the next one while
    /// deferred work cleans up and completes the first: the fifteenth step of that series.
    IssueOnCompletion,
    /// The dispatching thread prepares its request, sleeps until the bus is free, starts the
    /// request, and ends the one before: blk-mq since Linux 4.16.
    BlkMqWait,
    /// A software queue of prepared requests. The interrupt handler starts the next one: since
    /// Linux 5.7.
    Hsq(HsqPolicy),
    /// The command queue engine of the controller. Each request is a task with the number of its
    /// driver tag, so there are no more tags than places.
    Cqe,
}

/// The policy of a host software queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsqPolicy {
    /// Which request is next.
    pub order: HsqOrder,
    /// How many requests the queue holds between acceptance and end.
    pub limit: HsqLimit,
    /// Whether the limit is tested before the new request is counted, which admits one more, as in
    /// Linux.
    ///
    /// [`HsqLimit::Dynamic`] depends on it: two writes that wait, together with one that is being
    /// completed, are three requests, so with a strict limit of 2 the limit would never grow.
    pub limit_off_by_one: bool,
    /// The context that starts the next request.
    pub defer: HsqDefer,
}

/// Which request of a host software queue is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqOrder {
    /// The slot with the next number, if it is in use; otherwise the first slot in use from 0. A
    /// request can wait for ever. As posted in 2020 and until Linux 6.0.
    TagWalk,
    /// First come, first served.
    Fifo,
}

/// The limit of requests in a host software queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqLimit {
    /// This many, at least 1.
    Fixed(u8),
    /// 5 if at least two writes of 4096 bytes wait when a request is sent, that one included,
    /// otherwise 2. Decided at no other time. Since Linux 6.7.
    Dynamic,
}

/// The context in which a host software queue starts the next request and ends the one before.
/// Linux ends it in the soft interrupt right behind the interrupt, where no thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HsqDefer {
    /// Always deferred work, as posted in 2020.
    Always,
    /// Deferred work for removable cards, otherwise the interrupt handler: sdhci-sprd since Linux
    /// 5.8, whose driver asks for it with `always_defer_done`.
    Removable,
    /// The interrupt handler, for removable cards too: sdhci-of-dwcmshc, which does not set that
    /// flag.
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

    /// As in today's Linux.
    pub const TODAY: Self = Self {
        order: HsqOrder::Fifo,
        limit: HsqLimit::Dynamic,
        limit_off_by_one: true,
        defer: HsqDefer::Removable,
    };

    /// Returns how many requests `limit` admits.
    pub(super) const fn admits(&self, limit: u8) -> u8 {
        debug_assert!(limit > 0, "a limit of no requests");
        limit + self.limit_off_by_one as u8
    }
}

/// When the memory of a read is prepared that finds the bus free.
///
/// Every other request is prepared before its command: it waits for the bus anyway, or it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoneRead {
    /// Before its command: the bus waits.
    BeforeCommand,
    /// While the card accesses the data: first the memory of a page, then as much again as is
    /// prepared, while the blocks before pass. Only with DMA, without bounce buffers and packing,
    /// on a controller [that holds data back](super::host::HostCapabilities::holds_data), in
    /// pipelines whose thread ends requests.
    BesideAccess,
}

/// Whether data goes through a buffer of the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounce {
    /// No.
    None,
    /// Yes; the processor copies while the request has the bus, right before and after its
    /// transfer. Only in pipelines whose thread settles requests.
    Sync,
    /// Yes; the processor copies before it prepares and after it has posted, while another request
    /// may have the bus.
    Async,
}

/// The requests that may go in one packed command.
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
    /// The pipeline: which context does what, and when.
    pub pipeline: Pipeline,
    /// When the memory of a read is prepared that finds the bus free.
    pub lone_read: LoneRead,
    /// How the end of busy is found. A host may be told to use a worse way than its best: a
    /// controller that reports the end of busy reports it all the same, and the card is checked
    /// afterwards.
    pub busy: BusyDetect,
    /// Whether transfers of several blocks are announced (CMD23) if the card supports it; otherwise
    /// they are always stopped (CMD12).
    pub close_ended: bool,
    /// Whether, and how, data goes through bounce buffers.
    pub bounce: Bounce,
    /// Which requests are packed.
    pub packed: Packed,
    /// How long a transfer stays open after a request, so that the next one in sequence continues
    /// it; `None`: each request ends its transfer. Only on a controller [that
    /// can](super::host::HostCapabilities::keeps_open), without packing and command queue.
    pub open_limit: Option<Duration>,
}

impl HostPolicy {
    /// `pipeline` with DMA, memory prepared before commands, announced transfers that end with
    /// their requests, no bounce buffers and no packing; `busy` is how the end of busy is found.
    #[must_use]
    pub const fn new(pipeline: Pipeline, busy: BusyDetect) -> Self {
        Self {
            transfer: Transfer::Dma,
            pipeline,
            lone_read: LoneRead::BeforeCommand,
            busy,
            close_ended: true,
            bounce: Bounce::None,
            packed: Packed::Off,
            open_limit: None,
        }
    }
}

/// What must have happened to the request that left the bus before the next one may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// The request is complete.
    AfterComplete,
    /// The request is posted.
    AfterPost,
    /// The context that ends the request has taken it up.
    AfterTaken,
    /// Nothing: the next request may start immediately.
    AtOnce,
}

/// A kind of work for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Do what the card needs before the bus is free.
    Settle,
    /// Start the next request.
    Start,
    /// Prepare its memory.
    Prepare,
    /// Post its memory.
    Post,
    /// Report its end.
    Complete,
}

/// A set of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jobs(u8);

impl Jobs {
    pub(super) const NONE: Self = Self(0);

    /// Returns the set with `job`, if `is` holds.
    #[inline]
    pub(super) const fn with(self, job: Job, is: bool) -> Self {
        Self(self.0 | (is as u8) << job as u8)
    }

    #[inline]
    pub(super) const fn has(self, job: Job) -> bool {
        self.0 >> job as u8 & 1 != 0
    }
}

/// The context that ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The thread.
    Thread,
    /// Deferred work.
    Deferred,
    /// The thread if a request waits for the bus, otherwise deferred work.
    WaitingThread,
    /// The interrupt handler if the transfer went well, otherwise deferred work.
    Interrupt,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The number of slots.
    pub slots: u8,
    /// When the next one may start.
    pub overlap: Overlap,
    /// The context that ends a request.
    pub ended_by: EndedBy,
    /// The jobs of the thread, the preferred ones first.
    pub thread: &'static [Job],
    /// The jobs of deferred work.
    pub deferred: &'static [Job],
    /// The jobs of the interrupt handler.
    pub interrupt: &'static [Job],
}

/// The slots of a host software queue: one for each driver tag. A request with a higher tag panics.
pub const HSQ_SLOTS: u8 = 64;

impl Plan {
    /// Returns the plan for up to `most` requests in one packed command: pipelines of two requests
    /// then hold two packs, the one on the bus and the one that gathers. Linux's thread fetched as
    /// many requests as its queue had. A host software queue has its own limit, and one request at
    /// a time is no pack.
    pub(super) const fn packing(self, most: u8) -> Self {
        debug_assert!(most <= HSQ_SLOTS, "a pack of more requests than a header lists");
        let slots = match self.slots {
            2 if most > HSQ_SLOTS / 2 => HSQ_SLOTS,
            2 if most > 1 => 2 * most,
            slots => slots,
        };
        Self { slots, ..self }
    }

    /// Returns the plan of a host software queue whose interrupt handler ends requests.
    pub(super) const fn ending_in_interrupt(self) -> Self {
        Self { ended_by: EndedBy::Interrupt, ..self }
    }

    /// Returns the row of `pipeline`, with a command queue of `queue_depth` places.
    pub(super) fn of(pipeline: Pipeline, queue_depth: u8) -> Self {
        use Job::{Complete, Post, Prepare, Settle, Start};
        match pipeline {
            Pipeline::Serial => Self::by_thread(
                1,
                Overlap::AfterComplete,
                &[Settle, Post, Complete, Prepare, Start],
            ),
            Pipeline::TwoSlotMapOverlap => Self::by_thread(
                2,
                Overlap::AfterComplete,
                &[Settle, Post, Complete, Start, Prepare],
            ),
            Pipeline::PostBeforeStart => {
                Self::by_thread(2, Overlap::AfterPost, &[Settle, Post, Start, Complete, Prepare])
            }
            Pipeline::TwoSlotFull => {
                Self::by_thread(2, Overlap::AtOnce, &[Start, Prepare, Settle, Post, Complete])
            }
            Pipeline::IssueOnCompletion => Self {
                slots: 2,
                overlap: Overlap::AfterTaken,
                ended_by: EndedBy::Deferred,
                thread: &[Start, Prepare],
                deferred: &[Settle, Post, Complete],
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
                interrupt: &[Start, Post, Complete],
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

    fn by_thread(slots: u8, overlap: Overlap, thread: &'static [Job]) -> Self {
        Self { slots, overlap, ended_by: EndedBy::Thread, thread, deferred: &[], interrupt: &[] }
    }
}
