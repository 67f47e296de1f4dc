//! Elevators: which request goes next.
//!
//! An [`Elevator`] holds staged requests, lets bios and requests merge into them, and gives them
//! out one at a time. Without an elevator (`none`) requests pass through the software queues alone.
//! An elevator knows nothing of tags, budget or drivers.
//!
//! A queue has [`deadline`], [`kyber`], [`bfq`], [`adios`], or an elevator of the embedder's own
//! ([`RequestQueue::with_elevator`](crate::request_queue::RequestQueue::with_elevator)). This text
//! is all that the author of one needs. [`Checked`](checked::Checked) asserts the rules on every
//! call of a running queue, and [`conformance::elevator`](crate::conformance::elevator) tests them.
//! The examples `reads_first` and `anticipatory` of this crate are whole elevators; the second one
//! idles.
//!
//! # The path of a request through an elevator
//!
//! A queue makes these calls, each from inside one of its own calls, one after the other:
//!
//! 1. A bio arrives: [`find_merge`](Elevator::find_merge). If a held request can take the bio, the
//!    queue adds it and calls [`merged`](Elevator::merged). Then [`neighbour`](Elevator::neighbour)
//!    may name a held request that now touches the grown one. If the two fit together,
//!    [`joined`](Elevator::joined) and a further [`merged`](Elevator::merged) follow.
//! 2. If the request that was found is full, [`unmergeable`](Elevator::unmergeable) follows, and
//!    the bio gets a request of its own.
//! 3. A new request: `find_merge` once more if it has waited on a plug, then
//!    [`insert`](Elevator::insert) with [`Place::Sorted`]. The elevator holds the request from here
//!    on.
//! 4. A hardware queue runs: [`dispatch`](Elevator::dispatch), if [`has_work`](Elevator::has_work).
//!    The elevator no longer holds the request that it gives. The driver may refuse the request for
//!    a while; the queue keeps it then.
//! 5. The request ends or comes back: [`finished`](Elevator::finished). A request that comes back
//!    may be inserted again with [`Place::Head`].
//!
//! # What an elevator may rely on
//!
//! - Requests have numbers below
//!   [`QueueConfig::requests`](crate::request_queue::QueueConfig::requests), and at most as many
//!   are held. The number of a request that was absorbed or has ended may come back for another
//!   one.
//! - A held request is on no list of the queue, so the elevator may keep it on a
//!   [`List`](crate::request::List). It keeps other values in a table by number.
//! - While a request is held, only a merge changes it. `op`, `prio`, `submitter`, `cpu` and `hctx`
//!   never change.
//! - Requests of every op may come, except passthrough, which goes past the elevator.
//! - `now` never goes backwards.
//! - An elevator need not merge, and need not merge across submitters: `find_merge` and `neighbour`
//!   may always return `None`. Then `merged`, `joined` and `unmergeable` are not called.
//! - An elevator that reserves its memory when it is made keeps the queue free of allocations.
//!
//! # Rules
//!
//! - **[dispatched-once]** A request that was inserted comes out of [`Elevator::dispatch`] once, or
//!   is named once as `absorbed` in [`Elevator::joined`].
//! - **[held-requests-counted]** [`Elevator::len`] is the number of held requests, and
//!   [`Elevator::has_work`] is true while a request of that hardware queue is held.
//! - **[work-is-given]** While a request of a hardware queue is held, [`Elevator::dispatch`] for it
//!   gives a request, unless the elevator documents a rule that withholds it until a request that
//!   was dispatched has finished. If no dispatched request is unfinished, [`Elevator::dispatch`]
//!   gives one, or [`Elevator::poll_at`] names an instant.
//! - **[idling-bounded]** An instant that [`Elevator::poll_at`] names is later than the call of
//!   [`Elevator::dispatch`] before it, and at most [`IDLE_MAX`] after the last dispatch or finish
//!   of a request. Without another dispatch or finish, a later answer for the hardware queue names
//!   no later instant. So [`Elevator::dispatch`] gives a request once the instant has come.
//! - **[elevator-starves-none]** No stream of newer requests of the same priority class starves a
//!   request that the elevator holds.
//! - **[one-finished-per-dispatch]** Each [`Elevator::dispatch`] is answered by one
//!   [`Elevator::finished`], also if the request comes back by [`Elevator::insert`]: `finished` is
//!   called first.
//! - **[joins-only-what-fits]** [`Elevator::find_merge`] and [`Elevator::neighbour`] name only held
//!   requests. The former answers as [`fit`](crate::merge::fit) does for the request that it names,
//!   the latter names one that touches.
//! - **[requests-only-lent]** An elevator changes no field of a request. It may link requests on
//!   lists.
//! - **[async-never-shut-out]** [`Elevator::async_depth`] is at least one and at most the depth.

pub mod adios;
pub mod bfq;
pub mod checked;
pub mod deadline;
pub mod kyber;
mod priorities;
pub mod sector_tree;

use crate::bio::Submitter;
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::request::{Request, Requests};
use crate::time::{Duration, Instant};
use crate::unit::{CpuId, HctxId, RequestId};

/// The longest time for which an elevator may hold back every request while the device is idle
/// ([idling-bounded]): 100 ms. Linux's BFQ waits for the next request of a process for 8 ms by
/// default.
pub const IDLE_MAX: Duration = Duration::from_ms(100);

/// The weights that a group of submitters may have: 1 to 1000, as in Linux's `io.bfq.weight`.
pub const GROUP_WEIGHTS: core::ops::RangeInclusive<u32> = 1..=1000;

/// Where an inserted request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into the order that the elevator keeps.
    Sorted,
    /// Before all requests that the elevator holds.
    Head,
}

/// Identifies a software queue by its processor and the hardware queue that it feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctx {
    /// The processor.
    pub cpu: CpuId,
    /// The hardware queue.
    pub hctx: HctxId,
}

impl Ctx {
    /// Returns the one that `request` was submitted through.
    #[must_use]
    pub const fn of(request: &Request) -> Self {
        Self { cpu: request.cpu, hctx: request.hctx }
    }
}

/// What follows from a completion under an elevator that says when it is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterFinish {
    /// Which hardware queue asks for all, now and at the end of the wait: that of the request. (In
    /// Linux, that of the processor that takes the completion, mostly the submitter's.)
    pub asks_on: HctxId,
    /// Whether the completion is a reason to ask for a request.
    pub asks_now: bool,
    /// [`Elevator::poll_at`].
    pub idles_until: Option<Instant>,
}

/// An I/O scheduler. The [module](self) describes the contract.
///
/// No method returns an error. A queue that finds a rule broken may panic or lose a request.
pub trait Elevator: core::fmt::Debug {
    /// Returns a held request that `other`, which comes through `ctx`, may join
    /// ([joins-only-what-fits]), or one that it touches and that is full.
    /// [`candidate`](crate::end_index::candidate) makes the answer for one held request.
    ///
    /// `fronts` is false when `other` is a request that is about to be inserted: such a request
    /// joins only at the back of another, or as a further range of a discard.
    ///
    /// [`Extent::submitter`] says who submitted `other`, and [`Request::submitter`] who began a
    /// held request.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate>;

    /// Notes that `id`, which is held, has grown in this way: its place in the order may have
    /// changed.
    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge);

    /// Returns the held request that touches `id` on the side where `id` has just grown: one that
    /// begins where `id` ends ([`Merge::Back`]) or ends where `id` begins ([`Merge::Front`]).
    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId>;

    /// `absorbed`, which begins where `kept` ends (or any discard), is about to be added to `kept`:
    /// forget `absorbed`, and let `kept` take the earlier deadline and place of both. Both are
    /// held, and still have their own ranges during the call; [`Self::merged`] follows with the
    /// joined one.
    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId);

    /// Notes that `id`, which is held, is full: it must not be offered for merging again. Called
    /// before the request is marked with [`Flags::NO_MERGE`](crate::bio::Flags::NO_MERGE).
    fn unmergeable(&mut self, requests: &Requests, id: RequestId);

    /// Takes hold of `id`, which is not held.
    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant);

    /// Takes the next request to send, for a run of `hctx` ([work-is-given]), out of the elevator
    /// ([dispatched-once]). An elevator that keeps one order for the whole queue may return a
    /// request of another hardware queue.
    ///
    /// An elevator that expects a better request soon may give none although some are held, and the
    /// device is idle; [`Self::poll_at`] then says until when.
    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId>;

    /// After a [`Self::dispatch`] for `hctx` that gave no request although some are held: the
    /// instant from which it gives one, whatever happens before ([idling-bounded]). `None` if it
    /// gives one only after a dispatched request has finished.
    ///
    /// The queue runs `hctx` at that instant
    /// ([`RequestQueue::poll_at`](crate::request_queue::RequestQueue::poll_at)), and earlier if a
    /// request is inserted or finishes. An elevator that never idles leaves this as it is.
    fn poll_at(&self, _hctx: HctxId) -> Option<Instant> {
        None
    }

    /// For an elevator that says by [`Self::after_finish`] which completions are a reason to ask
    /// it: when a hardware queue that got no request at `now`, although some are held, asks again.
    /// It is later than `now`. If it always returns `None`, every completion is a reason.
    ///
    /// Such an elevator keeps one order: [`Self::dispatch`] for any hardware queue may give any
    /// request, and [`Self::poll_at`] is the same for all. So one of them asks for all.
    fn ask_again_at(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// What follows from the completion of which [`Self::finished`] was told last. Not called if
    /// [`Self::ask_again_at`] names no instant. Unless an elevator says more, each completion is a
    /// reason to ask it.
    fn after_finish(&self) -> AfterFinish {
        let asks_on = HctxId(0);
        AfterFinish { asks_on, asks_now: true, idles_until: self.poll_at(asks_on) }
    }

    /// The number of held requests ([held-requests-counted]).
    fn len(&self) -> u32;

    /// Whether no request is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a request is held that a run of `hctx` could send, now or after a completion. If
    /// there is none, no completion needs to run `hctx` again. True for all hardware queues while a
    /// request is held, unless the elevator keeps them apart.
    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.is_empty()
    }

    /// Notes that `id`, which was dispatched, has completed or has come back from the driver: its
    /// [`State`](crate::request::State) says which ([one-finished-per-dispatch]).
    fn finished(&mut self, id: RequestId, request: &Request, now: Instant);

    /// Notes that `submitter` has ended: no bio of it will come. What others have sent for it, such
    /// as read-ahead, may be unfinished. Returns whether that is a reason to ask for a request. An
    /// elevator that does not tell submitters apart leaves this as it is.
    fn submitter_ended(&mut self, _submitter: Submitter, _now: Instant) -> bool {
        false
    }

    /// Returns how many of the `depth` scheduler tags of a hardware queue asynchronous requests may
    /// use ([async-never-shut-out]): all, unless the elevator keeps some for synchronous requests.
    fn async_depth(&self, depth: u32) -> u32 {
        depth
    }

    /// Gives the submitters of [`Submitter::group`](crate::bio::Submitter::group) `group` together
    /// a weight, one of [`GROUP_WEIGHTS`]: their share of the device is to be to the shares of
    /// other groups as the weights are. Returns false if the elevator does not share the device
    /// among groups, or not with this one.
    fn weigh_group(&mut self, _group: u32, _weight: u32) -> bool {
        false
    }

    /// Returns what was done since the elevator was made or [`Self::reset_counts`], if it is
    /// [`bfq`] or an elevator around it.
    fn bfq_counts(&self) -> Option<bfq::Counts> {
        None
    }

    /// Begins to count from `now` on, if the elevator counts what it does.
    fn reset_counts(&mut self, _now: Instant) {}
}
