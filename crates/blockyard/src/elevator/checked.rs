//! [`Checked`]: asserts on every call the contract between an elevator and its queue.
//!
//! It stands between a queue and an elevator of any kind. Calls from the queue are checked against
//! the queue's duties, answers of the elevator against its rules. It changes nothing, decides
//! nothing itself, and costs a few look-ups for each call and a look at every request for each
//! refusal: use it in every test.
//!
//! A broken rule panics with its name in brackets. The rules of
//! [`elevator`](crate::elevator) are checked like this:
//!
//! - [dispatched-once]: a request that is dispatched, merged, joined or full is held; one that is
//!   inserted is not.
//! - [held-requests-counted]: after each insert, join and dispatch, and when there is no work.
//! - [work-is-given]: nothing is withheld from a hardware queue while no dispatched request is
//!   unfinished, unless the elevator idles.
//! - [idling-bounded]: after each dispatch that gave nothing although requests were held.
//! - [one-finished-per-dispatch]: a request that finishes was dispatched, and has not finished
//!   since.
//! - [joins-only-what-fits]: every request that the elevator names for a merge is held, and fits as
//!   it says.
//! - [requests-only-lent]: a request that is dispatched is as it was when it was inserted or last
//!   grew.
//! - [async-never-shut-out]: every answer is within its bounds.
//!
//! [elevator-starves-none] needs a stream of requests:
//! [`conformance::elevator`](crate::conformance::elevator) has one.

use super::{AfterFinish, Ctx, Elevator, GROUP_WEIGHTS, IDLE_MAX, Place, bfq};
use crate::bio::{Flags, Submitter};
use crate::end_index::candidate;
use crate::limits::Limits;
use crate::merge::{Candidate, Extent, Merge};
use crate::request::{Request, Requests};
use crate::time::Instant;
use crate::unit::{HctxId, RequestId};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Where a request is, as far as the elevator is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    /// Anywhere else.
    Elsewhere,
    /// Held, with this content, for this hardware queue.
    Held(Extent, HctxId),
    /// Dispatched and not finished.
    Dispatched,
}

/// The wrapper.
#[derive(Debug)]
pub struct Checked {
    below: Box<dyn Elevator + Send>,
    /// By number of the request.
    requests: Vec<Whereabouts>,
    held: u32,
    dispatched: u32,
    now: Instant,
    /// How often a request was dispatched or has finished, and the instant of the last time.
    moves: u64,
    moved_at: Instant,
    /// For each hardware queue, the last instant that the elevator named for it.
    idling: Vec<Idling>,
}

/// An instant until which an elevator idles, and [`Checked::moves`] when it named the instant.
#[derive(Clone, Copy, Debug)]
struct Idling {
    until: Instant,
    at_move: u64,
}

impl Checked {
    /// Checks `below`, which holds nothing, in a queue of `requests` requests
    /// ([`QueueConfig::requests`](crate::request_queue::QueueConfig::requests)). Reserves all
    /// memory.
    #[must_use]
    pub fn new(below: Box<dyn Elevator + Send>, requests: usize) -> Self {
        Self {
            below,
            requests: alloc::vec![Whereabouts::Elsewhere; requests],
            held: 0,
            dispatched: 0,
            now: Instant::ZERO,
            moves: 0,
            moved_at: Instant::ZERO,
            // A hardware queue has at least one request, so there are at most as many of them.
            idling: alloc::vec![Idling { until: Instant::ZERO, at_move: 0 }; requests],
        }
    }

    fn is_held(&self, id: RequestId) -> bool {
        matches!(self.requests[id.index()], Whereabouts::Held(..))
    }

    fn check_held(&self, id: RequestId) {
        let at = self.requests[id.index()];
        assert!(self.is_held(id), "[dispatched-once] the queue names {id:?}, which is {at:?}");
    }

    fn check_len(&self) {
        let len = self.below.len();
        assert_eq!(len, self.held, "[held-requests-counted] the length, and the held requests");
        assert_eq!(self.below.is_empty(), len == 0, "[held-requests-counted] empty with {len}");
    }

    fn check_time(&mut self, now: Instant) {
        assert!(now >= self.now, "[time-moves-forward] {now} after {}", self.now);
        self.now = now;
    }

    /// Whether a request of `hctx` is held.
    fn holds_for(&self, hctx: HctxId) -> bool {
        let mut requests = self.requests.iter();
        self.held > 0 && requests.any(|at| matches!(at, Whereabouts::Held(_, of) if *of == hctx))
    }

    /// Notes that a request was dispatched, or has finished.
    fn note_move(&mut self) {
        self.moves += 1;
        self.moved_at = self.now;
    }

    /// Checks that an elevator that holds requests and gave none to `hctx` waits for a completion,
    /// or idles.
    fn check_withheld(&mut self, hctx: HctxId) {
        let Some(until) = self.below.poll_at(hctx) else {
            let may_withhold = self.dispatched > 0 || !self.holds_for(hctx);
            assert!(may_withhold, "[work-is-given] nothing for {hctx:?}, with nothing dispatched");
            return;
        };
        // The queue would ask again and again at an instant that is not in the future. Nobody's
        // next request can be expected before the first one has gone.
        let latest = self.moved_at + IDLE_MAX;
        assert!(
            self.moves > 0 && self.now < until && until <= latest,
            "[idling-bounded] {hctx:?} gets nothing at {} until {until}, after {latest}",
            self.now
        );
        // A later instant than before, with nothing gone in between: so an elevator could idle for
        // ever.
        let now_named = Idling { until, at_move: self.moves };
        let before = core::mem::replace(&mut self.idling[hctx.index()], now_named);
        assert!(
            before.at_move != self.moves || until <= before.until,
            "[idling-bounded] {hctx:?} gets nothing until {until}, but it was {}",
            before.until
        );
    }

    /// Notes that `id`, which was held, has left.
    fn remove_held(&mut self, id: RequestId, to: Whereabouts) {
        self.requests[id.index()] = to;
        self.held -= 1;
        self.check_len();
    }
}

/// Returns what an elevator holds of `request`: the properties that only a merge changes. The queue
/// marks full requests by a flag.
const fn held_content(request: &Request) -> Whereabouts {
    Whereabouts::Held(Extent { flags: Flags::NONE, ..request.extent() }, request.hctx)
}

impl Elevator for Checked {
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let found = self.below.find_merge(requests, limits, ctx, other, fronts)?;
        let (Candidate::Join(id, _) | Candidate::TooBig(id)) = found;
        assert!(self.is_held(id), "[joins-only-what-fits] {found:?} is not held");
        let fits = candidate(requests, limits, id, other, fronts);
        assert_eq!(Some(found), fits, "[joins-only-what-fits] for {other:?}");
        Some(found)
    }

    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        self.check_held(id);
        self.requests[id.index()] = held_content(&requests[id]);
        self.below.merged(requests, id, merge);
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId> {
        self.check_held(id);
        let named = self.below.neighbour(requests, id, merge)?;
        let own = &requests[id];
        let other = &requests[named];
        let touches = match merge {
            Merge::Back => other.sector == own.end_sector(),
            Merge::Front => other.end_sector() == own.sector,
            Merge::Discard => false,
        };
        assert!(
            self.is_held(named) && named != id && touches,
            "[joins-only-what-fits] {named:?} is named beside {id:?}: {other:?}"
        );
        Some(named)
    }

    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId) {
        self.check_held(kept);
        self.check_held(absorbed);
        self.below.joined(requests, kept, absorbed);
        self.remove_held(absorbed, Whereabouts::Elsewhere);
    }

    fn unmergeable(&mut self, requests: &Requests, id: RequestId) {
        self.check_held(id);
        self.below.unmergeable(requests, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.check_time(now);
        let at = core::mem::replace(&mut self.requests[id.index()], held_content(&requests[id]));
        assert_eq!(at, Whereabouts::Elsewhere, "[dispatched-once] the queue inserts {id:?}");
        self.below.insert(requests, id, place, now);
        self.held += 1;
        self.check_len();
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        self.check_time(now);
        let Some(id) = self.below.dispatch(requests, hctx, now) else {
            if self.held > 0 {
                self.check_withheld(hctx);
            }
            self.check_len();
            return None;
        };
        let before = self.requests[id.index()];
        assert!(self.is_held(id), "[dispatched-once] {id:?} is dispatched, which is {before:?}");
        assert_eq!(held_content(&requests[id]), before, "[requests-only-lent] {id:?}");
        self.dispatched += 1;
        self.note_move();
        self.remove_held(id, Whereabouts::Dispatched);
        Some(id)
    }

    fn poll_at(&self, hctx: HctxId) -> Option<Instant> {
        self.below.poll_at(hctx)
    }

    fn ask_again_at(&self, now: Instant) -> Option<Instant> {
        let at = self.below.ask_again_at(now);
        assert!(at.is_none_or(|at| at > now), "[idling-bounded] asked at {now}, and at {at:?}");
        at
    }

    fn after_finish(&self) -> AfterFinish {
        self.below.after_finish()
    }

    fn len(&self) -> u32 {
        self.check_len();
        self.held
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        let has_work = self.below.has_work(hctx);
        let hides = !has_work && self.holds_for(hctx);
        assert!(
            !hides,
            "[held-requests-counted] no work for {hctx:?}, but a request of it is held"
        );
        has_work
    }

    fn finished(&mut self, id: RequestId, request: &Request, now: Instant) {
        self.check_time(now);
        let at = core::mem::replace(&mut self.requests[id.index()], Whereabouts::Elsewhere);
        assert_eq!(at, Whereabouts::Dispatched, "[one-finished-per-dispatch] {id:?}");
        self.dispatched -= 1;
        self.note_move();
        self.below.finished(id, request, now);
    }

    fn submitter_ended(&mut self, submitter: Submitter, now: Instant) -> bool {
        self.check_time(now);
        self.below.submitter_ended(submitter, now)
    }

    fn async_depth(&self, depth: u32) -> u32 {
        let of = self.below.async_depth(depth);
        assert!((1..=depth).contains(&of), "[async-never-shut-out] {of} of {depth} tags");
        of
    }

    fn weigh_group(&mut self, group: u32, weight: u32) -> bool {
        assert!(GROUP_WEIGHTS.contains(&weight), "group {group} of weight {weight}");
        self.below.weigh_group(group, weight)
    }

    fn bfq_counts(&self) -> Option<bfq::Counts> {
        self.below.bfq_counts()
    }

    fn reset_counts(&mut self, now: Instant) {
        self.check_time(now);
        self.below.reset_counts(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Bio;
    use crate::elevator::deadline::Deadline;
    use crate::policy::DeadlineTunables;
    use crate::request::Bios;
    use crate::unit::CpuId;
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    const REQUESTS: usize = 3;
    const HCTX: HctxId = HctxId(0);
    const ID: RequestId = RequestId(0);
    const NOW: Instant = Instant::from_ns(1000);

    /// An elevator that holds request 1, between calls of a queue that breaks the contract.
    struct Rig {
        elevator: Checked,
        requests: Requests,
    }

    impl Rig {
        fn new() -> Self {
            let below = Deadline::new(REQUESTS, DeadlineTunables::default());
            let mut bios = Bios::new(3);
            let mut requests = Requests::new(REQUESTS);
            for (id, sector) in (0..).map(RequestId).zip([0, 8, 16]) {
                let bio = bios.take(Bio::read(sector, 8, 0)).expect("room for three");
                requests.start(id, bio, &bios[bio], CpuId(0), HCTX, NOW);
            }
            let mut elevator = Checked::new(Box::new(below), REQUESTS);
            elevator.insert(&mut requests, RequestId(1), Place::Sorted, NOW);
            Self { elevator, requests }
        }

        fn insert(&mut self, id: RequestId, now: Instant) {
            self.elevator.insert(&mut self.requests, id, Place::Sorted, now);
        }

        fn finish(&mut self, id: RequestId) {
            self.elevator.finished(id, &self.requests[id], NOW);
        }

        fn dispatch(&mut self) -> RequestId {
            self.elevator.dispatch(&mut self.requests, HCTX, NOW).expect("a request is held")
        }
    }

    /// What a queue does to an elevator.
    type Deed = fn(&mut Rig);

    /// The queue's side of the contract: each deed, and the rule that it breaks.
    #[test]
    fn a_queue_that_breaks_the_contract_is_caught() {
        let deeds: [(&str, Deed); 9] = [
            ("[dispatched-once]", |rig| rig.insert(RequestId(1), NOW)),
            ("[dispatched-once]", |rig| {
                let id = rig.dispatch();
                rig.insert(id, NOW); // without `finished`
            }),
            ("[dispatched-once]", |rig| rig.elevator.merged(&rig.requests, ID, Merge::Back)),
            ("[dispatched-once]", |rig| rig.elevator.unmergeable(&rig.requests, ID)),
            ("[dispatched-once]", |rig| {
                rig.elevator.joined(&mut rig.requests, RequestId(1), ID);
            }),
            ("[dispatched-once]", |rig| {
                rig.elevator.joined(&mut rig.requests, ID, RequestId(1));
            }),
            ("[one-finished-per-dispatch]", |rig| rig.finish(RequestId(1))),
            ("[one-finished-per-dispatch]", |rig| {
                let id = rig.dispatch();
                rig.finish(id);
                rig.finish(id);
            }),
            ("[time-moves-forward]", |rig| rig.insert(ID, Instant::ZERO)),
        ];
        for (number, (rule, deed)) in deeds.into_iter().enumerate() {
            let panic = catch_unwind(AssertUnwindSafe(|| deed(&mut Rig::new())));
            let panic = panic.expect_err("a broken contract");
            let words = panic.downcast_ref::<std::string::String>().expect("words");
            assert!(words.contains(rule), "deed {number}: {words}");
        }
    }

    #[test]
    fn a_queue_that_keeps_the_contract_is_not_disturbed() {
        let mut rig = Rig::new();
        rig.insert(ID, NOW);
        assert_eq!(rig.elevator.neighbour(&rig.requests, ID, Merge::Back), Some(RequestId(1)));
        assert_eq!((rig.elevator.len(), rig.elevator.has_work(HCTX)), (2, true));
        let first = rig.dispatch();
        rig.finish(first);
        rig.elevator.insert(&mut rig.requests, first, Place::Head, NOW);
        assert_eq!(rig.dispatch(), first, "a request that came back goes first");
        assert_eq!(rig.dispatch(), RequestId(1));
        assert_eq!(rig.elevator.dispatch(&mut rig.requests, HCTX, NOW), None);
        assert!(rig.elevator.is_empty() && !rig.elevator.has_work(HCTX));
        assert_eq!(rig.elevator.async_depth(8), 8);
    }
}
