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
    /// Into the order the elevator keeps.
    Sorted,
    /// Before everything the elevator holds.
    Head,
}

/// A software queue, by the processor it is of and the hardware queue it feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctx {
    /// Whose it is.
    pub cpu: CpuId,
    /// Where its requests go.
    pub hctx: HctxId,
}

impl Ctx {
    /// The one that `request` was submitted through.
    #[must_use]
    pub const fn of(request: &Request) -> Self {
        Self { cpu: request.cpu, hctx: request.hctx }
    }
}

/// An I/O scheduler.
pub trait Elevator: core::fmt::Debug {
    /// A request held here that `other`, which comes through `ctx`, may join.
    ///
    /// `fronts` is false when `other` is a request that is about to be inserted: those join at
    /// backs only.
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate>;

    /// A bio has joined `id` this way: its place in the order may have changed.
    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge);

    /// The request that touches `id` on the side where it has just grown, if one is held here.
    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId>;

    /// `gone`, which begins where `kept` ends (or any discard), is about to be added to `kept`:
    /// forget `gone`, and let `kept` take the earlier deadline and place of both. Both still hold
    /// their own ranges during the call; [`Self::merged`] follows with the joined one.
    fn joined(&mut self, requests: &mut Requests, kept: RequestId, gone: RequestId);

    /// `id` has grown as far as it can: do not offer it for merging again. Called before the
    /// request is marked.
    fn unmergeable(&mut self, requests: &Requests, id: RequestId);

    /// Takes `id`.
    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant);

    /// The next request to send, asked for by a run of `hctx`, or `None` ([work-is-given]). An elevator that
    /// keeps one order for the whole queue may give a request of another hardware queue.
    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId>;

    /// How many requests are held.
    fn len(&self) -> u32;

    /// Whether none is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether anything is held that a run of `hctx` could send, now or after a completion. Where
    /// there is nothing no completion need run `hctx` again.
    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.is_empty()
    }

    /// A request that came from here has completed, or has come back from the driver: its
    /// [`State`](crate::request::State) says which.
    fn finished(&mut self, request: &Request, now: Instant);

    /// How many scheduler tags of a hardware queue requests nobody waits for may use, out of
    /// `depth`.
    fn async_depth(&self, depth: u32) -> u32 {
        depth
    }
}
