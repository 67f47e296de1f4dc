//! The request queue: every stage between a submitter and a driver, and the branches between them.
//!
//! ```text
//! bio -> split -> plug -> software queue -> elevator -> budget -> driver tag -> Driver::queue_rq
//! bio end <- end <- completion <- requeue
//! ```
//!
//! A stage takes values from the one before it and does not name the one after it. All branching
//! between stages is in this module: [`enter`] is the way in, up to staging, with `check`;
//! [`dispatch`] with `send` the way from there to the driver; [`end`] the way back; `sequence`
//! moves requests through flush sequences. `expire` handles timeouts, [`pause`] freezes and
//! quiesces, and `run_list` holds the runs to come. The stages are methods of a `Turn`: the queue,
//! its host and the instant, for the time of one call. Those that every I/O passes are inlined
//! where `bench/instructions.sh` showed that the calls cost a tenth of its instructions.
//!
//! # The contract
//!
//! A queue is a value with one owner. It reads no clock, starts no thread and makes no system call.
//! Five calls drive it, the same in real and in virtual time:
//!
//! - [`RequestQueue::submit`]: a bio enters.
//! - [`RequestQueue::run`]: passes requests to the driver. After every other call,
//!   [`RequestQueue::next_run`] names the hardware queues to run.
//! - [`RequestQueue::complete`]: the driver is done with a request.
//! - [`RequestQueue::next_ended`]: returns each bio that has ended, exactly once.
//! - [`RequestQueue::poll_at`]: when to look again if nothing happens before.
//!
//! [`RequestQueue::new`] reserves all memory; no call allocates. A refused call leaves the state
//! unchanged.
//!
//! Every call that takes a host wants the one that the queue was made for, and panics if it is
//! another.
//!
//! # Examples
//!
//! ```
//! use blockyard::bio::Bio;
//! use blockyard::device::null::NullDevice;
//! use blockyard::driver::Device;
//! use blockyard::host::Host;
//! use blockyard::limits::Limits;
//! use blockyard::policy::Policies;
//! use blockyard::request_queue::{QueueConfig, RequestQueue};
//! use blockyard::status::Status;
//! use blockyard::tag::TagSetConfig;
//! use blockyard::time::Instant;
//! use blockyard::unit::{CpuId, QueueId};
//!
//! let tags = TagSetConfig::single(32);
//! let mut host = Host::new(NullDevice::new(1, 32), (), tags);
//! let config = QueueConfig::new(1, 1, Limits::new(1 << 21), Policies::mq_deadline());
//! let mut queue = RequestQueue::new(QueueId(0), config, &host);
//!
//! let now = Instant::ZERO;
//! queue.submit(&mut host, CpuId(0), Bio::read(8, 8, 7), now).unwrap();
//! queue.turn(&mut host, now); // dispatches, and collects completions
//! let ended = queue.next_ended().unwrap();
//! assert_eq!((ended.bio.cookie, ended.status), (7, Status::Ok));
//! ```

mod check;
mod config;
mod cursor;
pub mod dispatch;
pub mod end;
pub mod enter;
mod expire;
mod memory;
mod number;
pub mod pause;
mod pauses;
mod run_list;
mod send;
mod sequence;
mod throttle;
mod turn;

use crate::bio::{Bio, Submitter};
use crate::driver::Driver;
use crate::elevator::{AfterFinish, Elevator, GROUP_WEIGHTS, bfq};
use crate::hardware_queue::{HardwareQueue, QueueMap, Run};
use crate::host::{Host, Seat};
use crate::limits::Limits;
use crate::plug::Plug;
use crate::policy::{Dispatch, ElevatorKind, Policies, SwqMerge};
use crate::request::{Bios, Ended, List, Request, Requests, State};
use crate::sector_hash::HashNodes;
use crate::software_queue::SoftwareQueue;
use crate::tag::TagPool;
use crate::time::{Duration, Instant, earlier};
use crate::trace::Sink;
use crate::unit::{CpuId, DriverTag, HctxId, QueueId, RequestId};
use crate::wbt::{Class, Throttle};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
pub use config::QueueConfig;
use cursor::Cursor;
use number::{index32, request_id};
use pauses::Pauses;
use run_list::RunList;
use turn::Turn;

/// A completion named a tag under which the driver owns no request of this queue. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotInFlight;

impl core::fmt::Display for NotInFlight {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the driver owns no request of this queue under that tag")
    }
}

impl core::error::Error for NotInFlight {}

/// The queue of one disk: software queues, elevator, hardware queues, and the requests in them.
#[derive(Debug)]
pub struct RequestQueue {
    id: QueueId,
    seat: Seat,
    policies: Policies,
    /// [`Policies::issues_directly`].
    issues_directly: bool,
    /// Whether requests in a plug take bios of their own submitter only.
    plugs_by_submitter: bool,
    /// Whether requests are listed before they are filed in the elevator.
    lists_insertions: bool,
    limits: Limits,
    map: QueueMap,
    /// Whether the map is the same for all kinds of bios.
    one_map: bool,
    run_batch_max: u32,
    timeout: Duration,
    requests: Requests,
    bios: Bios,
    /// One for each processor.
    plugs: Vec<Plug>,
    /// One for each processor and each kind of map that is in use; see [`Self::ctx_of`].
    ctxs: Vec<SoftwareQueue>,
    /// The position of each software queue among the feeders of its hardware queue.
    feeder_at: Vec<u32>,
    end_nodes: HashNodes,
    /// Called through a table: an enum of the built-in ones took up to 37 instructions more for
    /// each I/O.
    elevator: Option<Box<dyn Elevator + Send>>,
    /// Requests that no run has filed in the elevator, if the design lists them.
    insertions: List,
    /// [`Self::note_elevator`].
    elevator_taken: bool,
    /// One for each hardware queue; empty without an elevator.
    sched_tags: Vec<TagPool>,
    /// Requests that each hardware queue may hold: scheduler tags, or driver tags without an
    /// elevator. The number of a request is the hardware queue times this plus the tag. Behind all
    /// those come the flush commands, one for each hardware queue.
    tags_per_hctx: u32,
    /// The reserved ones among them.
    reserved: u32,
    hctxs: Vec<HardwareQueue>,
    /// The dispatch list of all hardware queues, if the design shares one.
    shared_dispatch: List,
    runs: RunList,
    /// Split bios with a part that has not entered, oldest first.
    cursors: VecDeque<Cursor>,
    /// Submitters to wake.
    woken: VecDeque<u64>,
    /// Requests that are not idle.
    held: u32,
    in_flight: u32,
    /// When to look for requests that timed out, for flushes held back for too long, and at the
    /// window of throttled writeback.
    /// [`Instant::MAX`]: never.
    timer: Instant,
    pauses: Pauses,
    /// The throttle of writeback, if the design has one.
    wbt: Option<Box<Throttle>>,
    /// When the queue stops counting as one that shares the host's tags, while it holds nothing.
    /// [`Instant::MAX`]: never.
    idle_at: Instant,
}

/// The time for which a queue that holds nothing still counts as one that shares its host's tags:
/// 30 s, the request timeout whose timer notices it in Linux.
pub const IDLE_AFTER: Duration = Duration::from_secs(30);

impl RequestQueue {
    /// Returns a queue with the number `id` on `host`. Reserves all its memory. The number is free
    /// again when the queue is dropped.
    ///
    /// # Panics
    ///
    /// Panics if the host has no such number, if another queue has it, or if a queue that had it
    /// was dropped while its requests had driver tags. Panics if the map names a hardware queue
    /// that the host does not have, if its kinds serve different numbers of processors, if the
    /// single-lock model gets more than one hardware queue, if the limits contradict each other
    /// ([`Limits::check`]), or if a depth of kyber is 0. Panics if the design has an elevator of
    /// the embedder's own ([`Self::with_elevator`]).
    #[must_use]
    pub fn new<D, S>(id: QueueId, config: QueueConfig, host: &Host<D, S>) -> Self {
        let elevator = config.elevator(host.tags.config());
        Self::build(id, config, host, elevator)
    }

    /// Like [`Self::new`], with an elevator of the embedder's own. The design says so by
    /// [`ElevatorKind::Other`]. [`QueueConfig::requests`] says how many requests the elevator must
    /// be able to hold.
    ///
    /// [`elevator`](crate::elevator) has the contract,
    /// [`elevator::checked`](crate::elevator::checked) asserts it, and
    /// [`conformance`](crate::conformance) tests it.
    ///
    /// # Panics
    ///
    /// Panics like [`Self::new`], or if the design has another elevator or none, or if `elevator`
    /// holds requests.
    #[must_use]
    pub fn with_elevator<D, S>(
        id: QueueId,
        config: QueueConfig,
        host: &Host<D, S>,
        elevator: Box<dyn Elevator + Send>,
    ) -> Self {
        let kind = config.policies.elevator;
        assert_eq!(kind, ElevatorKind::Other, "the design of a queue with an elevator of its own");
        assert!(elevator.is_empty(), "an elevator that holds requests of another queue");
        Self::build(id, config, host, Some(elevator))
    }

    /// Gives the submitters of `group` together a weight in the elevator: see
    /// [`Elevator::weigh_group`]. Returns false if the queue has no elevator, or if its elevator
    /// does not share the device among groups.
    ///
    /// # Panics
    ///
    /// Panics if `weight` is not one of [`GROUP_WEIGHTS`].
    pub fn weigh_group(&mut self, group: u32, weight: u32) -> bool {
        assert!(GROUP_WEIGHTS.contains(&weight), "group {group} of weight {weight}");
        self.elevator.as_mut().is_some_and(|elevator| elevator.weigh_group(group, weight))
    }

    /// Whether the elevator tells submitters apart, and so is to be told when one ends
    /// ([`Self::submitter_ended`]).
    #[must_use]
    pub const fn knows_submitters(&self) -> bool {
        self.plugs_by_submitter
    }

    /// Notes that `submitter`, which ran on `cpu`, has ended: no bio of it will come. Bfq then no
    /// longer holds the device for it, unless requests of it are unfinished, such as read-ahead.
    /// Drain [`Self::next_run`] afterwards. `now` must not be earlier than in any previous call.
    pub fn submitter_ended(&mut self, cpu: CpuId, submitter: Submitter, now: Instant) {
        let Some(elevator) = &mut self.elevator else { return };
        let asks_now = elevator.submitter_ended(submitter, now);
        let asks_on = self.map.serving(0, cpu);
        if self.runs.is_paced() {
            let idles_until = elevator.poll_at(asks_on);
            self.runs.follow(AfterFinish { asks_on, asks_now, idles_until }, now);
        } else if asks_now {
            self.runs.mark(asks_on, true);
        }
    }

    /// Returns what the elevator has done since the queue was made or [`Self::reset_counts`], if it
    /// is BFQ.
    #[must_use]
    pub fn bfq_counts(&self) -> Option<bfq::Counts> {
        self.elevator.as_ref()?.bfq_counts()
    }

    /// Lets the elevator count what it does from `now` on.
    pub fn reset_counts(&mut self, now: Instant) {
        if let Some(elevator) = &mut self.elevator {
            elevator.reset_counts(now);
        }
    }

    fn build<D, S>(
        id: QueueId,
        config: QueueConfig,
        host: &Host<D, S>,
        elevator: Option<Box<dyn Elevator + Send>>,
    ) -> Self {
        let tags = host.tags.config();
        config.check(tags);
        let (ctxs, feeder_at, feeders) = software_queues(&config.map, config.policies.swq_merge);
        let busy = config.policies.busy;
        // In Linux a plug belongs to one thread. Bfq charges a request to the one who began it.
        let plugs_by_submitter = elevator.as_ref().is_some_and(|of| of.bfq_counts().is_some());
        let paced = elevator.as_ref().is_some_and(|of| of.ask_again_at(Instant::ZERO).is_some());
        Self {
            id,
            seat: host.take_seat(id),
            requests: Requests::new(config.requests(tags)),
            bios: Bios::new(config.max_bios),
            plugs: config.map.default.iter().map(|_| Plug::default()).collect(),
            ctxs,
            feeder_at,
            end_nodes: HashNodes::new(config.hashed_requests(tags)),
            elevator,
            insertions: List::new(),
            elevator_taken: false,
            sched_tags: config.sched_tags(tags),
            tags_per_hctx: config.tags_per_hctx(tags),
            reserved: u32::from(tags.reserved),
            runs: RunList::new(feeders.len(), paced),
            hctxs: feeders
                .into_iter()
                .map(|feeders| HardwareQueue::new(busy, feeders.into_boxed_slice()))
                .collect(),
            shared_dispatch: List::new(),
            cursors: VecDeque::with_capacity(config.max_bios as usize),
            woken: VecDeque::with_capacity(config.max_woken(tags)),
            held: 0,
            in_flight: 0,
            timer: Instant::MAX,
            pauses: Pauses::new(config.max_waiters),
            wbt: config.throttle().map(Box::new),
            idle_at: Instant::MAX,
            run_batch_max: config.run_batch_max,
            timeout: config.timeout,
            one_map: config.map.read.is_empty() && config.map.poll.is_empty(),
            map: config.map,
            issues_directly: config.policies.issues_directly(),
            plugs_by_submitter,
            lists_insertions: config.policies.elevator.lists_insertions(),
            policies: config.policies,
            limits: config.limits,
        }
    }

    /// Says whether another processor has the lock of the elevator, for the calls that follow. The
    /// core has no locks: this is for callers that model them, under a design with
    /// [`Insertion::Listed`](crate::policy::Insertion::Listed). A run then takes nothing from an
    /// elevator that is taken, and the next completion runs the hardware queue again.
    pub const fn note_elevator(&mut self, taken: bool) {
        self.elevator_taken = taken;
    }

    /// Returns the limits that bios are split to.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of this queue among the queues of its host.
    #[must_use]
    pub const fn id(&self) -> QueueId {
        self.id
    }

    /// The number of requests that the driver owns.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the request that the driver owns as `tag` of `hctx`, if it is one of this queue.
    #[must_use]
    pub fn in_flight_request<D, S>(
        &self,
        host: &Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
    ) -> Option<&Request> {
        self.check_host(host);
        self.in_flight_id(host, hctx, tag).map(|id| &self.requests[id])
    }

    fn in_flight_id<D, S>(
        &self,
        host: &Host<D, S>,
        hctx: HctxId,
        tag: DriverTag,
    ) -> Option<RequestId> {
        let (queue, id) = host.tags.owner(hctx, tag)?;
        // Queues of the host share its tags, and hardware queues may; without an elevator, requests
        // that wait have tags.
        let is_own = queue == self.id && {
            let request = &self.requests[id];
            is_in_flight(request) && request.hctx == hctx
        };
        is_own.then_some(id)
    }

    /// Checks that the caller passes the host that the queue was made for.
    fn check_host<D, S>(&self, host: &Host<D, S>) {
        assert!(self.seat.is_on(host), "{:?} belongs to another host", self.id);
    }

    /// The number of bios, and parts of split ones, that [`Self::next_ended`] has not returned yet.
    #[must_use]
    pub const fn bios_in_use(&self) -> u32 {
        self.bios.in_use()
    }

    /// Whether the queue holds nothing: [`Self::next_ended`] has returned every bio that entered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bios.in_use() == 0
    }

    /// Returns a bio that has ended, each exactly once.
    #[inline]
    pub fn next_ended(&mut self) -> Option<Ended> {
        // A split bio may wait for the memory of this one.
        let was_full = self.bios.is_full();
        let ended = self.bios.next_ended()?;
        if was_full {
            self.mark_waiting_split();
        }
        Some(ended)
    }

    /// Returns a submitter that waited ([`Self::wait`]) and should submit again. Drain this after
    /// every call on this queue: no other call names a waiter.
    ///
    /// The queue's own waiters come first: for a scheduler tag, or for the end of a freeze. Then
    /// come those for a driver tag, of every queue of the host: a call on this queue may have made
    /// room for the submitter of another. A submitter that may wait at several queues needs a
    /// number that says at which.
    pub fn next_woken<D, S>(&mut self, host: &mut Host<D, S>) -> Option<u64> {
        self.check_host(host);
        self.woken.pop_front().or_else(|| host.tags.next_woken())
    }

    /// Returns a hardware queue to run now: an earlier call marked it, or its retry instant has
    /// come. Drain this after every other call and at [`Self::poll_at`].
    ///
    /// If requests have timed out, this asks the driver about them. Other calls name those that
    /// then end, as after [`Self::complete`].
    pub fn next_run<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        now: Instant,
    ) -> Option<Run> {
        self.check_host(host);
        if self.timer <= now {
            Turn::new(self, host, now).handle_timer();
        }
        self.runs.mark_due(now);
        if self.idle_at <= now {
            self.idle_at = Instant::MAX;
            host.tags.idle(self.id);
        }
        self.runs.next()
    }

    /// Returns the earliest instant at which [`Self::next_run`] has work although no call was made
    /// before, if there is one.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        let timer = self.timer.min(self.idle_at);
        earlier((timer < Instant::MAX).then_some(timer), self.runs.poll_at())
    }

    /// Checks the accounts: every request is idle or in one place, and every tag has a request.
    /// Slow; for tests and the simulator's checkers.
    ///
    /// # Panics
    ///
    /// Panics if the accounts do not agree.
    pub fn self_check<D, S>(&self, host: &Host<D, S>) {
        let mut in_flight = 0;
        let mut listed = 0;
        for id in (0..self.requests.capacity()).map(request_id) {
            let rq = &self.requests[id];
            match rq.state {
                State::Idle => continue,
                State::InFlight => in_flight += 1,
                State::Staged => listed += 1,
                State::Complete => panic!("request {} completes between two calls", id.0),
            }
            assert_eq!(
                self.requests.bios(id, &self.bios).map(|piece| piece.sectors).sum::<u32>(),
                rq.sectors,
                "request {} carries what its bios carry",
                id.0
            );
            if let Some(tag) = rq.driver_tag {
                assert_eq!(host.tags.owner(rq.hctx, tag), Some((self.id, id)), "tag owner");
            }
            let lends = self.lends_tag(id);
            let holds = rq.state == State::InFlight || (self.elevator.is_none() && !lends);
            assert_eq!(rq.driver_tag.is_some(), holds, "[tag-only-in-driver]: request {}", id.0);
        }
        assert_eq!(in_flight, self.in_flight, "requests in flight");
        self.check_throttled();
        assert_eq!(in_flight + listed, self.held, "requests held");
        let lists = self.hctxs.iter().map(HardwareQueue::len).sum::<u32>();
        let staged = self.ctxs.iter().map(SoftwareQueue::len).sum::<u32>();
        let plugged = self.plugs.iter().map(|plug| plug.list.len()).sum::<u32>();
        let scheduled = self.elevator.as_ref().map_or(0, |elevator| elevator.len());
        assert_eq!(
            listed,
            lists
                + self.shared_dispatch.len()
                + staged
                + plugged
                + self.insertions.len()
                + scheduled,
            "every staged request is in one place"
        );
        self.runs.self_check();
        if self.elevator.is_some() {
            // A flush command is no bio's request, and has no scheduler tag.
            let flushes = self.hctxs.iter().filter(|hctx| hctx.flush.is_under_way()).count();
            let maps = self.sched_tags.iter().map(TagPool::map);
            let sched_tags = maps.map(|map| map.in_use() + map.reserved_in_use()).sum::<u32>();
            let tagged = in_flight + listed - index32(flushes);
            assert_eq!(sched_tags, tagged, "a scheduler tag for each request");
        }
    }

    /// The kind of map that serves `bio`.
    #[inline]
    fn kind_of(&self, bio: &Bio) -> usize {
        if self.one_map { 0 } else { self.map.kind_of(bio) }
    }

    /// The software queue of `cpu` for the map of `kind`.
    fn ctx_of(&self, kind: usize, cpu: CpuId) -> usize {
        kind * self.plugs.len() + cpu.index()
    }

    /// Whether all refused requests wait on one list for all hardware queues.
    const fn shares_dispatch(&self) -> bool {
        matches!(self.policies.dispatch, Dispatch::SharedList)
    }

    fn dispatch_list(&mut self, hctx: HctxId) -> &mut List {
        debug_assert!(
            !self.shares_dispatch() || self.hctxs[hctx.index()].dispatch.is_empty(),
            "[on-one-list]: {hctx:?} has a list beside the shared one"
        );
        if self.shares_dispatch() {
            &mut self.shared_dispatch
        } else {
            &mut self.hctxs[hctx.index()].dispatch
        }
    }

    /// Returns the tag of `hctx` that belongs to the number `id`.
    const fn tag_on(&self, hctx: HctxId, id: RequestId) -> u32 {
        id.0 - hctx.0 as u32 * self.tags_per_hctx
    }

    /// The number of requests that wait somewhere before the driver. Most bios find none: nothing
    /// to join, nobody to stand behind.
    const fn waiting(&self) -> u32 {
        self.held - self.in_flight
    }

    /// Whether `rq` keeps its driver tag while it waits ([tag-only-in-driver]).
    fn keeps_driver_tag(&self) -> bool {
        self.elevator.is_none()
    }
}

impl Drop for RequestQueue {
    /// The driver would complete requests of a queue that is gone, and their submitters would wait
    /// for ever. So a queue is dropped after a [`RequestQueue::drain`], or after its host with the
    /// driver.
    ///
    /// # Panics
    ///
    /// Panics in debug builds if the driver owns requests and was not dropped, unless the thread is
    /// panicking already. Only the feature `std` can see that. Without it this panics only where a
    /// panic aborts, and so drops no queue.
    fn drop(&mut self) {
        debug_assert!(
            self.in_flight == 0 || self.seat.is_orphaned() || !may_panic(),
            "the driver owns {} requests of {:?}, which is dropped",
            self.in_flight,
            self.id
        );
    }
}

/// Whether it is known that the thread is not panicking.
fn may_panic() -> bool {
    #[cfg(feature = "std")]
    return !std::thread::panicking();
    #[cfg(not(feature = "std"))]
    return cfg!(panic = "abort");
}

/// Returns the software queues of `map`, the position of each among the feeders of its hardware
/// queue, and the feeders of each hardware queue.
fn software_queues(
    map: &QueueMap,
    merge: SwqMerge,
) -> (Vec<SoftwareQueue>, Vec<u32>, Vec<Vec<u32>>) {
    let mut feeders = alloc::vec![Vec::new(); map.hctxs()];
    let mut feeder_at = alloc::vec![0; map.ctxs()];
    let cpus = map.default.len();
    for (kind, hctx_of) in map.kinds().into_iter().enumerate() {
        for (cpu, hctx) in hctx_of.iter().enumerate() {
            let of_hctx = &mut feeders[hctx.index()];
            feeder_at[kind * cpus + cpu] = index32(of_hctx.len());
            of_hctx.push(index32(kind * cpus + cpu));
        }
    }
    (feeder_at.iter().map(|_| SoftwareQueue::new(merge)).collect(), feeder_at, feeders)
}

/// Whether the driver owns `rq`.
fn is_in_flight(rq: &Request) -> bool {
    rq.state == State::InFlight
}

#[cfg(test)]
mod tests;
