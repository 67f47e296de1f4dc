//! Elevators: which request goes next.
//!
//! An [`Elevator`] holds staged requests, lets bios and requests merge into them, and gives them out one
//! at a time. Without an elevator (`none`) requests pass through the software queues alone. An elevator
//! knows nothing of tags, budget or drivers.
//!
//! # Rules
//!
//! - **[dispatched-once]** A request that was inserted comes out of [`Elevator::dispatch`] once, or is
//!   named once as `absorbed` in [`Elevator::joined`].
//! - **[work-is-given]** While [`Elevator::len`] is not zero, [`Elevator::dispatch`] gives a request,
//!   unless the elevator documents a rule that withholds it until a completion.
//! - **[elevator-starves-none]** No stream of newer requests starves a request that the elevator holds.
//! - **[one-finished-per-dispatch]** Each [`Elevator::dispatch`] is answered by one
//!   [`Elevator::finished`], also if the request comes back by [`Elevator::insert`]: `finished` is
//!   called first.

pub mod deadline;
pub mod kyber;
pub mod sector_tree;

use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::request::{Request, Requests};
use crate::time::Instant;
use crate::unit::{CpuId, HctxId, RequestId};

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

/// An I/O scheduler.
pub trait Elevator: core::fmt::Debug {
    /// Returns a held request that `other`, which comes through `ctx`, may join.
    ///
    /// `fronts` is false when `other` is a request that is about to be inserted: such a request
    /// joins only at the back of another.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate>;

    /// Notes that a bio has joined `id` in this way: its place in the order may have changed.
    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge);

    /// Returns the held request that touches `id` on the side where `id` has just grown.
    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId>;

    /// `absorbed`, which begins where `kept` ends (or any discard), is about to be added to `kept`:
    /// forget `absorbed`, and let `kept` take the earlier deadline and place of both. Both still hold
    /// their own ranges during the call; [`Self::merged`] follows with the joined one.
    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId);

    /// Notes that `id` is full: it must not be offered for merging again. Called before the request
    /// is marked.
    fn unmergeable(&mut self, requests: &Requests, id: RequestId);

    /// Inserts `id`.
    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant);

    /// Takes the next request to send, for a run of `hctx` ([work-is-given]). An elevator that
    /// keeps one order for the whole queue may return a request of another hardware queue.
    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId>;

    /// The number of held requests.
    fn len(&self) -> u32;

    /// Whether no request is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a request is held that a run of `hctx` could send, now or after a completion. If
    /// there is none, no completion needs to run `hctx` again.
    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.is_empty()
    }

    /// Notes that a dispatched request has completed or has come back from the driver: its
    /// [`State`](crate::request::State) says which ([one-finished-per-dispatch]).
    fn finished(&mut self, request: &Request, now: Instant);

    /// Returns how many of the `depth` scheduler tags of a hardware queue asynchronous requests may
    /// use.
    fn async_depth(&self, depth: u32) -> u32 {
        depth
    }
}
