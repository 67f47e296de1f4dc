//! The one seam to a device.
//!
//! A [`Driver`] prepares, takes or refuses, and cleans up after requests. A [`Device`] is a driver
//! whose completions are pulled. Both stack: a [`layer`](crate::layer) that injects faults, delays
//! or watches is a device over a device.
//!
//! # Rules
//!
//! - **D1.** After [`Accept::Queued`] the driver owns the request until its owner calls
//!   [`complete`](crate::request_queue::RequestQueue::complete) with the tag, once. After any
//!   other answer it keeps nothing of it.
//! - **D2.** A run of [`Driver::queue_rq`] calls for a hardware queue ends, before the core's own
//!   call returns, with one whose `last` is set and that the driver takes, or with
//!   [`Driver::commit`]: only then must the driver have told the device.
//! - **D3.** A budget taken is given back exactly once, by the core: when the request completes, or
//!   when it turns out that there is nothing to send.
//! - **D4.** [`Busy::Device`] promises that a request of this queue is in flight whose completion
//!   makes room, [`Busy::Host`] one of some queue of the host. Where none is, the core asks again
//!   after a delay, as for [`Busy::Resource`].
//! - **D5.** A request that [`Driver::timed_out`] has ended is not reported as finished any more: its
//!   tag may be another request's by then.

use crate::request::{Bios, Piece, Request, Requests};
use crate::status::Status;
use crate::time::Instant;
use crate::unit::{Budget, DriverTag, HctxId, QueueId, RequestId};
use core::fmt;

/// What a driver says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Taken: the driver owns it (D1).
    Queued,
    /// Not now.
    Busy(Busy),
    /// Never: the request ends with this status.
    Failed(Status),
}

/// Why a driver refuses for now, which decides when the core asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Busy {
    /// The device is full; a completion of this queue will make room (D4).
    Device,
    /// What all queues of this host share is used up: a completion of any of them makes room.
    Host,
    /// Something that no completion gives back has run out: asked again after
    /// [`RETRY_DELAY`](crate::hardware_queue::RETRY_DELAY).
    Resource,
}

/// How a driver ended its part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done with it: [`complete`](crate::request_queue::RequestQueue::complete) it.
    Done(Status),
    /// Done with a read or write that failed, but for its first `sectors`, fewer than it has:
    /// [`complete_partly`](crate::request_queue::RequestQueue::complete_partly) it.
    Partial {
        /// Sectors, from its first, that are done well.
        sectors: u32,
        /// What the rest failed with.
        status: Status,
    },
    /// The device did not take it after all:
    /// [`requeue`](crate::request_queue::RequestQueue::requeue) it, to be tried again.
    Again,
    /// As [`Self::Again`], and the driver keeps what it prepared:
    /// [`requeue_prepared`](crate::request_queue::RequestQueue::requeue_prepared) it.
    AgainPrepared,
}

/// What a driver says of a request that it has had for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// It has taken the request back from the device, which will not touch it again: it ends, or
    /// goes back to be tried again, now. The driver does not report it later (D5).
    Ended(Outcome),
    /// It still waits for the device: ask again after another timeout.
    Reset,
}

/// A request that a driver is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The request's queue.
    pub queue: QueueId,
    /// Its hardware queue.
    pub hctx: HctxId,
    /// Its driver tag.
    pub tag: DriverTag,
    /// How it ended.
    pub outcome: Outcome,
}

/// What becomes of the data of a request at a device that honours it.
///
/// Payloads are opaque to the core. A layer that spoils data says here what the device below is to
/// do with it; the device then answers as if it had done all that was asked. A device without a
/// model of its data need not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataEffect {
    /// All of it is done: what every request asks for.
    Whole,
    /// Only so many of its first sectors are written (a torn write).
    First(u32),
    /// Nothing is read or written.
    Nowhere,
    /// It is written as if it began at this sector (a misdirected write).
    At(u64),
}

/// A request as it is handed to a driver.
#[derive(Clone, Copy)]
pub struct Issue<'a> {
    /// The request queue it comes from.
    pub queue: QueueId,
    /// The hardware queue it is for.
    pub hctx: HctxId,
    /// The number it is known by until it completes; unique within the hardware queue.
    pub tag: DriverTag,
    /// The device's permit, where the queue takes budget before it dispatches.
    pub budget: Option<Budget>,
    /// No further request follows in this run (D2).
    pub last: bool,
    /// Now.
    pub now: Instant,
    pub(crate) effect: DataEffect,
    pub(crate) id: RequestId,
    pub(crate) requests: &'a Requests,
    pub(crate) bios: &'a Bios,
}

impl<'a> Issue<'a> {
    /// An issue of the request `id` of these pools at `now`, the last of its run and without a budget.
    ///
    /// A request queue makes its own. This is for a driver's unit tests, which offer a request
    /// under a tag of their choice.
    #[must_use]
    pub const fn new(
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
        id: RequestId,
        requests: &'a Requests,
        bios: &'a Bios,
    ) -> Self {
        let (queue, effect) = (QueueId(0), DataEffect::Whole);
        Self { queue, hctx, tag, budget: None, last: true, now, effect, id, requests, bios }
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &'a Request {
        &self.requests[self.id]
    }

    /// What is to become of its data.
    #[must_use]
    pub const fn effect(&self) -> DataEffect {
        self.effect
    }

    /// The same request, of whose data this becomes: for a layer to pass on.
    #[must_use]
    pub const fn with_effect(self, effect: DataEffect) -> Self {
        Self { effect, ..self }
    }

    /// The request's handle within its queue.
    #[must_use]
    pub const fn id(&self) -> RequestId {
        self.id
    }

    /// The parts of callers' bios that the request carries, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + use<'a> {
        self.requests.bios(self.id, self.bios)
    }
}

/// Of the request only its number and range: the pools behind it are long.
impl fmt::Debug for Issue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rq = self.request();
        f.debug_struct("Issue")
            .field("queue", &self.queue)
            .field("hctx", &self.hctx)
            .field("tag", &self.tag)
            .field("id", &self.id)
            .field("range", &(rq.op, rq.sector, rq.sectors))
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Takes requests: a device, or a [`layer`](crate::layer) over one.
///
/// Every call is required, so that a layer that forgets to pass one on does not compile:
///
/// ```compile_fail,E0046
/// # use blockyard::driver::{Accept, Driver, Issue};
/// struct Forgetful<D>(D);
///
/// impl<D: Driver> Driver for Forgetful<D> {
///     fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
///         self.0.queue_rq(issue)
///     }
/// }
/// ```
///
/// A layer passes the calls that it does not change on with [`pass_on!`](crate::pass_on). A device
/// with nothing below it lists the calls that it does not need with
/// [`leaf_calls!`](crate::leaf_calls).
pub trait Driver {
    /// Takes a permit to send one request of `queue`. Returns `None` while the device has no room
    /// for one.
    ///
    /// The core takes a permit before a request leaves the elevator, where the design says
    /// [`Dispatch::Budget`](crate::policy::Dispatch::Budget).
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget>;

    /// Takes back a permit (D3).
    fn return_budget(&mut self, queue: QueueId, budget: Budget);

    /// Prepares a request. The core calls this once for each request before it first offers the
    /// request to [`Self::queue_rq`], and once more after [`Self::finish`] if the request was requeued.
    fn prepare(&mut self, issue: &Issue<'_>);

    /// Undoes [`Self::prepare`] for a request that was not accepted and will not be offered again.
    /// A layer that fails a request itself makes this call on the device below.
    fn unprepare(&mut self, issue: &Issue<'_>);

    /// Offers a request to the device.
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept;

    /// Ends a run whose last call of [`Self::queue_rq`] did not have `last` set (D2).
    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant);

    /// Decides about a `request` that the driver has owned for longer than the queue's timeout.
    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut;

    /// Cleans up after a request that was accepted. The core calls this while it completes the
    /// request, before the bios end, or while it requeues the request (unless the request stays
    /// prepared).
    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request);
}

/// A driver whose completions are pulled.
///
/// After each call on a queue, when [`Self::poll_at`] falls due, and when the device itself rings,
/// drain [`Self::next_finished`] and pass each answer to its queue.
pub trait Device: Driver {
    /// A request it is done with at `now`: each that it took, once (D1), in the order in which they
    /// are to be completed. `now` is not earlier than in any call before.
    fn next_finished(&mut self, now: Instant) -> Option<Finished>;

    /// The earliest instant at which [`Self::next_finished`] may have an answer although nothing
    /// happens before; one that has passed means now. `None` where there is none, or where the
    /// device rings by other means. Once [`Self::next_finished`] has answered `None`, it is later.
    fn poll_at(&self) -> Option<Instant>;
}

/// Implements the calls of a [`Driver`](crate::driver::Driver) that a device with nothing below it
/// does not need.
///
/// `take_budget` always grants a permit, `timed_out` leaves the request in flight, and the others do
/// nothing. `queue_rq` cannot be listed. A layer uses [`pass_on!`](crate::pass_on) instead.
///
/// ```
/// use blockyard::driver::{Accept, Driver, Issue};
/// use blockyard::status::Status;
///
/// /// A device that is gone.
/// struct Gone;
///
/// impl Driver for Gone {
///     blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, timed_out, finish);
///
///     fn queue_rq(&mut self, _issue: &Issue<'_>) -> Accept {
///         Accept::Failed(Status::Gone)
///     }
/// }
/// ```
#[macro_export]
macro_rules! leaf_calls {
    ($($call:ident),+ $(,)?) => { $($crate::leaf_calls!(@$call);)+ };
    (@take_budget) => {
        fn take_budget(&mut self, _: $crate::unit::QueueId) -> Option<$crate::unit::Budget> {
            Some($crate::unit::Budget(0))
        }
    };
    (@return_budget) => {
        fn return_budget(&mut self, _: $crate::unit::QueueId, _: $crate::unit::Budget) {}
    };
    (@prepare) => {
        fn prepare(&mut self, _: &$crate::driver::Issue<'_>) {}
    };
    (@unprepare) => {
        fn unprepare(&mut self, _: &$crate::driver::Issue<'_>) {}
    };
    (@commit) => {
        fn commit(
            &mut self,
            _: $crate::unit::QueueId,
            _: $crate::unit::HctxId,
            _: $crate::time::Instant,
        ) {
        }
    };
    (@timed_out) => {
        fn timed_out(
            &mut self,
            _: $crate::unit::QueueId,
            _: $crate::unit::HctxId,
            _: $crate::unit::DriverTag,
            _: &$crate::request::Request,
            _: $crate::time::Instant,
        ) -> $crate::driver::TimedOut {
            $crate::driver::TimedOut::Reset
        }
    };
    (@finish) => {
        fn finish(
            &mut self,
            _: $crate::unit::QueueId,
            _: $crate::unit::HctxId,
            _: $crate::unit::DriverTag,
            _: &$crate::request::Request,
        ) {
        }
    };
}
