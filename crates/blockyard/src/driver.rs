//! The seam to a device.
//!
//! A [`Driver`] prepares requests, accepts or refuses them, and cleans up after them. A [`Device`]
//! is a driver whose completions are pulled. Both stack: a [`layer`](crate::layer) that injects
//! faults, adds delays or records calls is a device over a device.
//!
//! # Rules
//!
//! - **[owned-until-completed]** After [`Accept::Queued`] the driver owns the request until its
//!   owner calls [`complete`](crate::request_queue::RequestQueue::complete) with the tag, once.
//!   After any other answer the driver owns nothing of the request; at most its preparation is
//!   left.
//! - **[prepared-until-undone]** A request is prepared once before it is offered. It stays
//!   prepared, and does not change, while the driver refuses it for now ([`Accept::Busy`]) or gives
//!   it back prepared ([`Outcome::AgainPrepared`]). The preparation is undone once: by
//!   [`Driver::finish`] after the driver owned the request, or by [`Driver::unprepare`] after
//!   [`Accept::Failed`], before any other call for the queue.
//! - **[last-or-commit]** A run of [`Driver::queue_rq`] calls for a hardware queue ends, before the
//!   core's own call returns, with an accepted request whose `last` is set, or with
//!   [`Driver::commit`]. The driver may wait until then before it notifies the device.
//! - **[busy-promise-kept]** [`Busy::Device`] promises that a request of this queue is in flight
//!   whose completion makes room, and [`Busy::Host`] that one of some queue of the host is. If none
//!   is in flight, the core tries again after a delay, as for [`Busy::Resource`].
//! - **[timed-out-not-finished]** A driver does not report a request as finished after
//!   [`Driver::timed_out`] has ended it: its tag may already belong to another request.
//!
//! Budget is given back once, see [budget-given-back] in [`hardware_queue`](crate::hardware_queue).

use crate::request::{Bios, Piece, Request, Requests};
use crate::status::Status;
use crate::time::Instant;
use crate::unit::{Budget, DriverTag, HctxId, QueueId, RequestId};
use core::fmt;

/// The answer of a driver to an offered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Accepted: the driver owns the request ([owned-until-completed]).
    Queued,
    /// Refused for now.
    Busy(Busy),
    /// Refused for good: the request ends with this status, after [`Driver::unprepare`].
    Failed(Status),
}

/// Why a driver refuses for now. The reason decides when the core tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Busy {
    /// The device is full; a completion of this queue will make room ([busy-promise-kept]).
    Device,
    /// A resource that all queues of the host share is used up; a completion of any of them makes
    /// room.
    Host,
    /// A resource that no completion gives back has run out. The core tries again after
    /// [`RETRY_DELAY`](crate::hardware_queue::RETRY_DELAY).
    Resource,
}

/// How a driver's work on a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The driver is done: [`complete`](crate::request_queue::RequestQueue::complete) the request.
    Done(Status),
    /// A read or write failed except for its first `sectors`, which are fewer than all:
    /// [`complete_partly`](crate::request_queue::RequestQueue::complete_partly) it.
    Partial {
        /// Sectors, from the first, that were transferred.
        sectors: u32,
        /// The status of the remaining sectors.
        status: Status,
    },
    /// The device did not take the request after all:
    /// [`requeue`](crate::request_queue::RequestQueue::requeue) it for another try.
    Again,
    /// Like [`Self::Again`], but the request stays prepared:
    /// [`requeue_prepared`](crate::request_queue::RequestQueue::requeue_prepared) it.
    AgainPrepared,
}

/// The answer of a driver about a request that it has owned for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// The driver has taken the request back from the device, which will not touch it again. The
    /// request ends or is requeued now, and the driver does not report it later
    /// ([timed-out-not-finished]).
    Ended(Outcome),
    /// The driver still waits for the device: ask again after another timeout.
    Reset,
}

/// A request that a driver is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The request queue.
    pub queue: QueueId,
    /// The hardware queue.
    pub hctx: HctxId,
    /// The driver tag.
    pub tag: DriverTag,
    /// How the work ended.
    pub outcome: Outcome,
}

/// What a device that models data does with the data of a request.
///
/// Payloads are opaque to the core. A layer that corrupts data sets the effect that the device
/// below is to have; the device then answers as if it had done all of the request. A device without
/// a model of its data may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataEffect {
    /// All data is transferred: the effect of every ordinary request.
    Whole,
    /// Only this many of the first sectors are written (a torn write).
    First(u32),
    /// Nothing is read or written.
    Nowhere,
    /// The data is written as if the request began at this sector (a misdirected write).
    At(u64),
}

/// A request as it is offered to a driver.
#[derive(Clone, Copy)]
pub struct Issue<'a> {
    /// The request queue that it comes from.
    pub queue: QueueId,
    /// The hardware queue that it is for.
    pub hctx: HctxId,
    /// Identifies the request until it completes; unique within the hardware queue.
    pub tag: DriverTag,
    /// The device's permit, if the queue takes budget before it dispatches.
    pub budget: Option<Budget>,
    /// No further request follows in this run ([last-or-commit]).
    pub last: bool,
    /// The time of the offer.
    pub now: Instant,
    pub(crate) effect: DataEffect,
    pub(crate) id: RequestId,
    pub(crate) requests: &'a Requests,
    pub(crate) bios: &'a Bios,
}

impl<'a> Issue<'a> {
    /// Returns an issue of request `id` of these pools at `now`, last of its run and without
    /// budget.
    ///
    /// A request queue makes its own issues. This is for unit tests of drivers, which offer a
    /// request under a tag of their choice.
    #[must_use]
    pub const fn new(
        hctx: HctxId,
        tag: DriverTag,
        now: Instant,
        id: RequestId,
        requests: &'a Requests,
        bios: &'a Bios,
    ) -> Self {
        Self {
            queue: QueueId(0),
            hctx,
            tag,
            budget: None,
            last: true,
            now,
            effect: DataEffect::Whole,
            id,
            requests,
            bios,
        }
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &'a Request {
        &self.requests[self.id]
    }

    /// Returns what is to happen to the data.
    #[must_use]
    pub const fn effect(&self) -> DataEffect {
        self.effect
    }

    /// Returns the same issue with another effect, for a layer to pass on.
    #[must_use]
    pub const fn with_effect(self, effect: DataEffect) -> Self {
        Self { effect, ..self }
    }

    /// Returns the request's handle within its queue.
    #[must_use]
    pub const fn id(&self) -> RequestId {
        self.id
    }

    /// Returns the parts of callers' bios that the request carries, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + use<'a> {
        self.requests.bios(self.id, self.bios)
    }
}

/// Prints only the number and range of the request: the pools behind it are long.
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

    /// Takes back a permit ([budget-given-back]).
    fn return_budget(&mut self, queue: QueueId, budget: Budget);

    /// Prepares a request ([prepared-until-undone]). The core calls this once for each request
    /// before it first offers the request to [`Self::queue_rq`], and once more after
    /// [`Self::finish`] if the request was requeued.
    fn prepare(&mut self, issue: &Issue<'_>);

    /// Undoes [`Self::prepare`] for a request that the driver does not own and that will not be
    /// offered again ([prepared-until-undone]). The core makes this call after [`Accept::Failed`];
    /// a layer that fails a request itself only passes the call on. A layer that accepts a request
    /// which the device below did not accept makes the call itself.
    fn unprepare(&mut self, issue: &Issue<'_>);

    /// Offers a request to the device.
    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept;

    /// Ends a run whose last call of [`Self::queue_rq`] did not have `last` set ([last-or-commit]).
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
/// After each call on a queue, when [`Self::poll_at`] falls due, and when the device signals, drain
/// [`Self::next_finished`] and pass each answer to its queue.
pub trait Device: Driver {
    /// Returns a request that the device is done with at `now`. Each accepted request is returned
    /// once ([owned-until-completed]), in the order in which they are to be completed. `now` is not
    /// earlier than in any previous call.
    fn next_finished(&mut self, now: Instant) -> Option<Finished>;

    /// Returns the earliest instant at which [`Self::next_finished`] may have an answer although
    /// nothing happens before; an instant in the past means now. Returns `None` if there is no such
    /// instant, or if the device signals by other means. Once [`Self::next_finished`] has returned
    /// `None`, the instant is in the future.
    fn poll_at(&self) -> Option<Instant>;
}

/// Implements the calls of a [`Driver`](crate::driver::Driver) that a device with nothing below it
/// does not need.
///
/// `take_budget` always grants a permit, `timed_out` leaves the request in flight, and the others
/// do nothing. `queue_rq` cannot be listed. A layer uses [`pass_on!`](crate::pass_on) instead.
///
/// ```
/// use blockyard::driver::{Accept, Driver, Issue};
/// use blockyard::status::Status;
///
/// /// A device that is gone.
/// struct Gone;
///
/// impl Driver for Gone {
///     blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare);
///     blockyard::leaf_calls!(commit, timed_out, finish);
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
