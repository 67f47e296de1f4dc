//! Actors: everything that acts in virtual time.
//!
//! An actor gets pieces of work on processors, submits bios, and learns of their ends. Jobs,
//! workers, pollers, the handlers of completions and the contexts of an MMC host's driver are
//! actors of the world itself. [`Work`] names the one that a piece of work belongs to, so these
//! calls are static. A caller adds further actors with [`World::add_actor`], such as a thread that
//! writes dirty pages back.
//!
//! A run ends with its last job. Actors that were added do not prolong it.

use super::owner::{Owner, RUN_BIT};
use super::{Event, World};
use blockyard::bio::{Bio, Flags};
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use blockyard_devices::profile::DISKS_MAX;
use blockyard_devices::terms::Completion;
use blockyard_trace::observe::{ActorId, Work};
use core::fmt;
use std::collections::VecDeque;

/// The maximum number of actors that can be added to a world: 16, and a flusher and a committer for
/// each disk. Queues have room for so many more waiters.
pub const ADDED_ACTORS_MAX: u32 = 16 + 2 * DISKS_MAX as u32;

/// Something that acts in virtual time.
///
/// A piece of work occupies a processor from its beginning for the time that it costs. Its changes
/// happen at the beginning, in [`act`](Self::act), and its consequences for others at the end. The
/// contexts of an MMC host's driver are the exception: their changes come at the end
/// ([`begin_paying`](Self::begin_paying)).
pub trait Actor: fmt::Debug {
    /// Returns the queue whose lock the next piece of work needs before it begins
    /// ([lock-before-work]).
    fn queue_to_lock(&self, world: &World<'_>) -> Option<QueueId> {
        let _ = world;
        None
    }

    /// Begins work that changes nothing before `cpu` has paid for it. Returns whether the actor
    /// works in this way; otherwise [`Self::act`] does the work.
    fn begin_paying(&mut self, world: &mut World<'_>, cpu: CpuId) -> bool {
        let _ = (world, cpu);
        false
    }

    /// Does a piece of work on `cpu`. Returns its cost, without the locks that it used.
    fn act(&mut self, world: &mut World<'_>, cpu: CpuId) -> Duration {
        let _ = (world, cpu);
        Duration::ZERO
    }

    /// Plans what follows the piece of work on `cpu`, which began now and costs `cost` in all.
    /// Returns how much longer the actor keeps the processor.
    fn plan_next(&mut self, world: &mut World<'_>, cpu: CpuId, cost: Duration) -> Duration {
        let _ = (world, cpu, cost);
        Duration::ZERO
    }

    /// Notes that bio `number` of the actor has ended. Returns whether the actor is to be woken. It
    /// must not submit bios here, in the middle of a completion: it is woken, and submits in
    /// [`act`](Self::act).
    fn on_bio_end(&mut self, world: &mut World<'_>, number: u32, status: Status) -> bool {
        let _ = (world, number, status);
        false
    }
}

/// An actor that was added, and the processor on which it acts.
#[derive(Debug)]
pub(super) struct Added {
    cpu: CpuId,
    /// The actor; `None` while a call of the actor is under way.
    actor: Option<Box<dyn Actor + Send>>,
    /// The bios that ended during such a call. The actor learns of them at its end.
    ended: VecDeque<(u32, Status)>,
    /// The queue at which the actor waits: for a tag, or for a place of throttled writeback.
    waits_at: Option<QueueId>,
    waits_for_tag: bool,
    /// The queue that has woken the actor for a tag, until a bio of the actor enters there.
    woken_by: Option<QueueId>,
    /// Whether the actor is being told of the end of a bio.
    is_told: bool,
}

/// What a message says when an actor is called during its own call.
const BUSY: &str = "an actor should be called by one call at a time";

impl World<'_> {
    fn added(&mut self, id: ActorId) -> &mut Added {
        &mut self.actors[id.0 as usize]
    }

    pub(super) fn queue_to_lock_for(&self, id: ActorId) -> Option<QueueId> {
        self.actors[id.0 as usize].actor.as_ref().and_then(|actor| actor.queue_to_lock(self))
    }
}

impl World<'_> {
    /// Adds an actor, which `make` makes with its number. It acts on `cpu`, for the first time at
    /// `begin`, and for as long as a job runs.
    ///
    /// # Panics
    ///
    /// Panics if the world has [`ADDED_ACTORS_MAX`] such actors, if `cpu` is no processor of the
    /// machine, and if `begin` is in the past.
    pub(crate) fn add_actor(
        &mut self,
        cpu: CpuId,
        begin: Instant,
        make: impl FnOnce(ActorId) -> Box<dyn Actor + Send>,
    ) -> ActorId {
        let id = self.add_sleeping_actor(cpu, make);
        self.wake_actor_at(id, begin);
        id
    }

    /// Adds an actor that acts when it is woken.
    pub(super) fn add_sleeping_actor(
        &mut self,
        cpu: CpuId,
        make: impl FnOnce(ActorId) -> Box<dyn Actor + Send>,
    ) -> ActorId {
        let number = u32::try_from(self.actors.len()).unwrap_or(u32::MAX);
        assert!(number < ADDED_ACTORS_MAX, "a world has at most {ADDED_ACTORS_MAX} added actors");
        assert!(cpu.index() < self.cpus.len(), "an actor on {cpu:?} of {}", self.cpus.len());
        let id = ActorId(number);
        self.actors.push(Added {
            cpu,
            actor: Some(make(id)),
            ended: VecDeque::new(),
            waits_at: None,
            waits_for_tag: false,
            woken_by: None,
            is_told: false,
        });
        id
    }

    /// Wakes actor `id` at `at`. The timer costs no processor time. An actor may have several
    /// wake-ups before it, and acts once for each.
    ///
    /// # Panics
    ///
    /// Panics if `at` is in the past.
    pub fn wake_actor_at(&mut self, id: ActorId, at: Instant) {
        assert!(at >= self.now, "actor {} wants to be woken at {at}, in the past", id.0);
        self.events.push(at, Event::WakeActor(id));
    }

    /// Submits `bio` to `queue` for actor `id`, from its processor. The cookie of the bio is the
    /// number, below 2^31, that [`Actor::on_bio_end`] gets; if data is verified, no other bio of
    /// the actor in flight may have it. Call this only from the actor's own calls. Returns the cost
    /// of what follows now, which belongs to that of the call.
    ///
    /// # Errors
    ///
    /// The queue's. After [`SubmitError::NoTag`] the actor is woken when a tag is free for it, and
    /// after [`SubmitError::Throttled`] when there is a place for its writeback.
    ///
    /// # Panics
    ///
    /// Panics if the bio asks to be polled for, as nobody would poll, and within
    /// [`Actor::on_bio_end`].
    pub fn submit_for_actor(
        &mut self,
        id: ActorId,
        queue: QueueId,
        bio: Bio,
    ) -> Result<Duration, SubmitError> {
        let number = u32::try_from(bio.cookie).ok().filter(|number| number & RUN_BIT == 0);
        let number = number.expect("the number of a bio is below 2^31");
        Ok(self.submit_numbered(id, queue, bio, number)? + self.complete_within_call())
    }

    /// Completes what was submitted, if the device does that within the call. Returns the cost.
    pub(super) fn complete_within_call(&mut self) -> Duration {
        if self.completion == Completion::WithinCall {
            self.complete_at_once()
        } else {
            Duration::ZERO
        }
    }

    /// Submits `bio` as number `number` of actor `id`, which may be that of a run of pages. The
    /// caller completes it ([`Self::complete_within_call`]) when it has noted the bio.
    pub(super) fn submit_numbered(
        &mut self,
        id: ActorId,
        queue: QueueId,
        bio: Bio,
        number: u32,
    ) -> Result<Duration, SubmitError> {
        assert!(!bio.flags.contains(Flags::POLLED), "nobody polls for actor {}", id.0);
        assert!(!self.added(id).is_told, "actor {} submits when it acts", id.0);
        let owner = Owner::Added(id);
        // What the kernel writes back is of the root.
        let bio = Bio { cookie: owner.cookie(number), ..bio }.with_submitter(owner.submitter(0));
        let cpu = self.added(id).cpu;
        if let Err(reason) = self.submit(queue, cpu, bio) {
            if matches!(reason, SubmitError::NoTag | SubmitError::Throttled) {
                self.let_wait(id, queue, &bio, reason);
            }
            return Err(reason);
        }
        if self.added(id).woken_by.take_if(|by| *by == queue).is_some() {
            self.queues[queue.index()].waiter_entered(&mut self.host, cpu, &bio);
        }
        Ok(self.follow_up(queue, false))
    }

    /// Lets actor `id`, which `queue` has refused for `reason`, wait. A waiter registers once,
    /// until it is woken: an actor that is refused again meanwhile, for example because its
    /// timer has woken it, waits already.
    fn let_wait(&mut self, id: ActorId, queue: QueueId, bio: &Bio, reason: SubmitError) {
        if self.added(id).waits_at.is_some() {
            return;
        }
        self.added(id).waits_at = Some(queue);
        self.added(id).waits_for_tag = reason == SubmitError::NoTag;
        let cpu = self.added(id).cpu;
        self.queues[queue.index()]
            .wait(&mut self.host, cpu, bio, Owner::Added(id).waiter(), self.now)
            .expect("every actor should have room to wait");
    }

    /// Wakes actor `id`, which `queue` has named as the next waiter. Returns the cost.
    pub(super) fn wake_waiting_actor(&mut self, id: ActorId, queue: QueueId) -> Duration {
        let added = self.added(id);
        debug_assert_eq!(added.waits_at, Some(queue), "{id:?} waits there");
        added.waits_at = None;
        added.woken_by = added.waits_for_tag.then_some(queue);
        self.wake_actor(id)
    }

    /// Gives an actor that has been woken to its processor.
    pub(super) fn on_actor_wake(&mut self, id: ActorId) {
        let cpu = self.added(id).cpu;
        self.give_work(cpu, Work::Actor(id));
    }

    /// Wakes actor `id` for a processor that is at work. Returns the cost to that processor.
    pub(super) fn wake_actor(&mut self, id: ActorId) -> Duration {
        self.totals.wakeups += 1;
        self.count_interrupt_of(self.actors[id.0 as usize].cpu);
        self.schedule_soon(self.now + self.machine.wakeup, Event::WakeActor(id));
        self.machine.wakeup
    }

    pub(super) fn let_act(&mut self, id: ActorId, cpu: CpuId) -> Duration {
        let mut actor = self.added(id).actor.take().expect(BUSY);
        let cost = actor.act(self, cpu);
        cost + self.put_back(id, actor)
    }

    pub(super) fn let_plan(&mut self, id: ActorId, cpu: CpuId, cost: Duration) -> Duration {
        let mut actor = self.added(id).actor.take().expect(BUSY);
        let more = actor.plan_next(self, cpu, cost);
        more + self.put_back(id, actor)
    }

    /// Ends a call of an actor, and tells it of the bios that ended during the call. Returns the
    /// cost of its wake-up, if one of them wakes it.
    fn put_back(&mut self, id: ActorId, mut actor: Box<dyn Actor + Send>) -> Duration {
        let mut wakes = false;
        while let Some((number, status)) = self.added(id).ended.pop_front() {
            self.added(id).is_told = true;
            wakes |= actor.on_bio_end(self, number, status);
            self.added(id).is_told = false;
        }
        self.added(id).actor = Some(actor);
        if wakes { self.wake_actor(id) } else { Duration::ZERO }
    }

    /// Tells an actor that its bio `number` has ended. Returns the cost of its wake-up, if there is
    /// one.
    pub(super) fn end_bio_of_actor(
        &mut self,
        id: ActorId,
        number: u32,
        status: Status,
    ) -> Duration {
        self.added(id).ended.push_back((number, status));
        // A device that completes within the call ends a bio while its actor still submits.
        let Some(actor) = self.added(id).actor.take() else { return Duration::ZERO };
        self.put_back(id, actor)
    }
}
