//! The way in: a bio is checked, cut to the limits, merged, or given a request and staged.
//!
//! A split bio that has begun to enter gets the next tag of its hardware queue: a later bio that
//! merges with nothing is refused a tag until every part of the split bio has one.

use super::RequestQueue;
use super::cursor::Cursor;
use super::number::hctx_id;
use super::turn::Turn;
use crate::bio::{Bio, Flags, Op};
use crate::driver::Driver;
use crate::elevator::{Ctx, Place};
use crate::host::Host;
use crate::merge::{Candidate, Extent, Fit, Merge, fit};
use crate::policy::Plugging;
use crate::request::{BioId, State, Steps, max_part_sectors, segments_of_part};
use crate::status::{Status, SubmitError};
use crate::tag::Full;
use crate::time::Instant;
use crate::trace::{Action, Event, Sink};
use crate::unit::{CpuId, DriverTag, HctxId, RequestId};

impl RequestQueue {
    /// Submits a bio from processor `cpu`.
    ///
    /// The bio is cut to the device's limits. It merges with a waiting request, or gets a request
    /// of its own, which waits on the processor's plug if there is one and is staged otherwise (or,
    /// without an elevator, offered to the driver immediately if the design does so). `now` must
    /// not be earlier than in any previous call.
    ///
    /// # Errors
    ///
    /// Returns a [`SubmitError`] if the bio was not taken; nothing changed. After
    /// [`SubmitError::NoTag`] or [`SubmitError::Throttled`] register with [`Self::wait`].
    pub fn submit<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        cpu: CpuId,
        bio: Bio,
        now: Instant,
    ) -> Result<(), SubmitError> {
        Turn::new(self, host, now).submit(cpu, bio)
    }

    /// Registers `waiter`, whose `bio` from `cpu` was refused for lack of a tag, because writeback
    /// is throttled, or because the queue is frozen. [`Self::next_woken`] names it when it should
    /// submit again. The processor's plug is released, because the submitter is about to sleep.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if the configured number of submitters wait already.
    ///
    /// # Panics
    ///
    /// Panics if `cpu` is not a processor of this queue.
    pub fn wait<D: Driver, S: Sink>(
        &mut self,
        host: &mut Host<D, S>,
        cpu: CpuId,
        bio: &Bio,
        waiter: u64,
        now: Instant,
    ) -> Result<(), Full> {
        Turn::new(self, host, now).wait(cpu, bio, waiter)
    }

    /// Notes that `bio` from `cpu`, which had been refused for lack of a tag, has entered after its
    /// waiter was named. Those that wait later then sleep in the order of Linux
    /// ([woken-takes-next-queue]); without this call their order is another one, as fair.
    ///
    /// # Panics
    ///
    /// Panics if `cpu` is not a processor of this queue.
    pub fn waiter_entered<D, S>(&mut self, host: &mut Host<D, S>, cpu: CpuId, bio: &Bio) {
        let hctx = self.hctx_of(cpu, bio);
        let reserved = bio.flags.contains(Flags::RESERVED);
        match self.sched_tags.get_mut(hctx.index()) {
            Some(tags) => tags.woken_got_tag(reserved),
            None => host.tags.woken_got_tag(hctx, reserved),
        }
    }

    /// Begins a batch on `cpu`: requests are held back until [`Self::unplug`], so that later bios
    /// of the batch can merge with them.
    pub fn plug(&mut self, cpu: CpuId) {
        self.plugs[cpu.index()].active = true;
    }

    /// Ends the batch of `cpu` and stages what it held.
    pub fn unplug<D: Driver, S: Sink>(&mut self, host: &mut Host<D, S>, cpu: CpuId, now: Instant) {
        Turn::new(self, host, now).unplug(cpu);
    }

    /// Returns the hardware queue that serves `bio` from `cpu`.
    fn hctx_of(&self, cpu: CpuId, bio: &Bio) -> HctxId {
        self.map.serving(self.kind_of(bio), cpu)
    }

    /// A tag or bio of this queue has come free: marks a run that lets the oldest split bio
    /// continue.
    pub(super) fn mark_waiting_split(&mut self) {
        if let Some(cursor) = self.cursors.front() {
            self.runs.mark(cursor.hctx, true);
        }
    }

    /// Whether a bio that has not begun to enter must wait behind a split one that has, and lacks a
    /// tag of the same kind.
    fn must_wait_behind_split(&self, bio: BioId, hctx: HctxId) -> bool {
        self.bios.begins_bio(bio) && self.waits_among(self.cursors.iter(), hctx, bio)
    }

    /// Whether one of `cursors` waits for a tag of the kind that `bio` needs on `hctx`.
    fn waits_among<'a>(
        &self,
        mut cursors: impl Iterator<Item = &'a Cursor>,
        hctx: HctxId,
        bio: BioId,
    ) -> bool {
        let reserved = self.is_reserved(bio);
        cursors.any(|other| {
            other.starved && other.hctx == hctx && self.is_reserved(other.whole) == reserved
        })
    }

    /// Whether `bio` may use only reserved tags.
    fn is_reserved(&self, bio: BioId) -> bool {
        self.bios[bio].flags.contains(Flags::RESERVED)
    }

    fn find_in_plug(&self, cpu: CpuId, extent: &Extent) -> Option<Candidate> {
        if self.plugs_by_submitter {
            self.search_plug::<true>(cpu, extent)
        } else {
            self.search_plug::<false>(cpu, extent)
        }
    }

    /// Searches a plug, among the requests of the submitter alone or among all.
    fn search_plug<const OWN: bool>(&self, cpu: CpuId, extent: &Extent) -> Option<Candidate> {
        let plug = &self.plugs[cpu.index()];
        plug.list.iter_back(&self.requests).find_map(|id| {
            if OWN && self.requests[id].submitter != extent.submitter {
                return None;
            }
            match fit(&self.requests[id].extent(), extent, &self.limits) {
                Fit::Join(merge) => Some(Candidate::Join(id, merge)),
                Fit::TooBig => Some(Candidate::TooBig(id)),
                Fit::No => None,
            }
        })
    }

    fn find_staged(&mut self, cpu: CpuId, kind: usize, extent: &Extent) -> Option<Candidate> {
        match &mut self.elevator {
            Some(_) if self.elevator_taken => None,
            Some(elevator) => {
                let from = Ctx { cpu, hctx: self.map.serving(kind, cpu) };
                elevator.find_merge(&self.requests, &self.limits, from, extent, true)
            }
            None => {
                let ctx = self.ctx_of(kind, cpu);
                self.ctxs[ctx].find_merge(&self.end_nodes, &self.requests, &self.limits, extent)
            }
        }
    }

    /// Takes a request that is full out of the index of its stage.
    fn leave_index(&mut self, ctx: usize, id: RequestId) {
        match &mut self.elevator {
            Some(elevator) => elevator.unmergeable(&self.requests, id),
            None => self.ctxs[ctx].unmergeable(&mut self.end_nodes, id),
        }
    }

    fn bio_event(
        &self,
        at: Instant,
        action: Action,
        cpu: CpuId,
        hctx: HctxId,
        bio: &Bio,
    ) -> Event<'static> {
        Event {
            at,
            action,
            queue: self.id,
            cpu,
            hctx,
            op: bio.op,
            flags: bio.flags,
            sector: bio.sector,
            sectors: bio.sectors,
            request: None,
        }
    }
}

impl<D: Driver, S: Sink> Turn<'_, D, S> {
    fn submit(&mut self, cpu: CpuId, mut bio: Bio) -> Result<(), SubmitError> {
        let (flags, fits) = self.queue.check(cpu, &bio)?;
        bio.flags = flags;
        let nowait = bio.flags.contains(Flags::NOWAIT);
        if self.queue.is_frozen() {
            return Err(match self.queue.pauses.draining {
                true => SubmitError::Draining,
                false if nowait => SubmitError::WouldBlock,
                false => SubmitError::Frozen,
            });
        }
        let whole = self.queue.bios.take(bio).ok_or(SubmitError::TooManyBios)?;
        if bio.op == Op::Flush && !self.queue.limits.write_cache {
            // Writes that have ended are durable already ([steps-from-flags]): the flush never
            // enters the queue, and emits no event.
            self.queue.bios.drop_part(whole, Status::Ok);
            return Ok(());
        }
        let entered = if fits {
            self.enter_bio(cpu, whole, &bio, true)
        } else if nowait {
            Err(SubmitError::WouldBlock)
        } else {
            let hctx = self.queue.hctx_of(cpu, &bio);
            self.enter_split(Cursor {
                whole,
                cpu,
                hctx,
                sector: bio.sector,
                starved: false,
                plugs: true,
            })
        };
        if let Err(refused) = entered {
            self.queue.bios.give_back(whole);
            return Err(if nowait { SubmitError::WouldBlock } else { refused });
        }
        Ok(())
    }

    fn wait(&mut self, cpu: CpuId, bio: &Bio, waiter: u64) -> Result<(), Full> {
        let hctx = self.queue.hctx_of(cpu, bio);
        let reserved = bio.flags.contains(Flags::RESERVED);
        let frozen = self.queue.is_frozen();
        let throttled = self.queue.is_throttled(bio, self.now);
        match self.queue.sched_tags.get_mut(hctx.index()) {
            // Nobody waits for a queue that ends: the waiter is woken, submits again, and is
            // refused for good.
            _ if self.queue.pauses.draining => {
                let woken = &mut self.queue.woken;
                if woken.len() == woken.capacity() {
                    return Err(Full);
                }
                woken.push_back(waiter);
            }
            _ if frozen => self.queue.pauses.wait(waiter)?,
            _ if throttled => self.queue.wait_for_place(bio, waiter, self.now)?,
            Some(tags) => {
                tags.wait(waiter, reserved)?;
                // All tags may have come back since the refusal; then the waiter does not sleep.
                while let Some(woken) = tags.next_woken() {
                    self.queue.woken.push_back(woken);
                }
            }
            None => self.host.tags.wait(hctx, waiter, reserved)?,
        }
        if self.host.sink.listens() {
            self.host.sink.event(&self.queue.bio_event(self.now, Action::Sleep, cpu, hctx, bio));
        }
        self.release_plug(cpu, true);
        Ok(())
    }

    fn unplug(&mut self, cpu: CpuId) {
        self.queue.plugs[cpu.index()].active = false;
        self.release_plug(cpu, false);
    }

    /// Enters the first part of a split bio, then as many as there are tags for. The rest follows
    /// as tags come free.
    fn enter_split(&mut self, mut cursor: Cursor) -> Result<(), SubmitError> {
        self.enter_part(&mut cursor)?;
        // From here on the bio has entered, and is not refused any more.
        if let Err(refused) = self.enter_parts(&mut cursor) {
            self.await_room(&mut cursor, refused);
            self.queue.cursors.push_back(Cursor { plugs: false, ..cursor });
        }
        Ok(())
    }

    /// Enters parts until none is left, which ends the cursor's own hold on the bio.
    fn enter_parts(&mut self, cursor: &mut Cursor) -> Result<(), SubmitError> {
        while cursor.sector < self.queue.bios[cursor.whole].end_sector() {
            self.enter_part(cursor)?;
        }
        self.queue.bios.drop_part(cursor.whole, Status::Ok);
        Ok(())
    }

    fn enter_part(&mut self, cursor: &mut Cursor) -> Result<(), SubmitError> {
        let bio = self.queue.bios[cursor.whole];
        debug_assert!(cursor.sector < bio.end_sector(), "cursor with no part left: {cursor:?}");
        // 100 sectors from sector 20 on, with chunks of 64 and at most 48 in a request: 44, 48, 8.
        let left = bio.end_sector() - cursor.sector;
        let max = max_part_sectors(&bio, cursor.sector, &self.queue.limits);
        let sectors = u32::try_from(left).map_or(max, |left| left.min(max));
        debug_assert!(sectors > 0, "empty part of {bio:?}");
        let segments = segments_of_part(&bio, sectors);
        let part = self
            .queue
            .bios
            .take_part(cursor.whole, cursor.sector, sectors, segments)
            .ok_or(SubmitError::TooManyBios)?;
        let carried = self.queue.bios[part];
        if let Err(refused) = self.enter_bio(cursor.cpu, part, &carried, cursor.plugs) {
            self.queue.bios.give_back(part);
            return Err(refused);
        }
        cursor.sector += u64::from(sectors);
        Ok(())
    }

    /// Arranges for a run when the resource that a part of `cursor` lacks may have come free.
    /// Resources of this queue alone need nothing here: see [`RequestQueue::mark_waiting_split`].
    fn await_room(&mut self, cursor: &mut Cursor, refused: SubmitError) {
        cursor.starved = refused == SubmitError::NoTag;
        if cursor.starved && self.queue.keeps_driver_tag() {
            let reserved = self.queue.bios[cursor.whole].flags.contains(Flags::RESERVED);
            self.host.tags.starve(self.queue.id, cursor.hctx, reserved);
        }
    }

    /// A tag or bio has come free: split bios that wait continue, for each hardware queue the
    /// oldest first.
    pub(super) fn enter_waiting_splits(&mut self) {
        for waiting in (0..self.queue.cursors.len()).rev() {
            let Some(mut cursor) = self.queue.cursors.pop_front() else { return };
            // The cursors rotate once. Those that were looked at before are behind the first
            // `waiting` ones: they are older, and wait on.
            let older = self.queue.cursors.iter().skip(waiting);
            let stands_behind = self.queue.waits_among(older, cursor.hctx, cursor.whole);
            if stands_behind {
                self.queue.cursors.push_back(cursor);
            } else if let Err(refused) = self.enter_parts(&mut cursor) {
                self.await_room(&mut cursor, refused);
                self.queue.cursors.push_back(cursor);
            }
        }
    }

    /// Merges a bio within the limits, or gives it a request, which may wait on the plug if it
    /// `plugs`.
    #[inline(always)]
    fn enter_bio(
        &mut self,
        cpu: CpuId,
        bio: BioId,
        carried: &Bio,
        plugs: bool,
    ) -> Result<(), SubmitError> {
        let kind = self.queue.kind_of(carried);
        // Most bios find no request that waits, and nothing to merge with.
        if self.queue.waiting() > 0 && self.merge_bio(cpu, kind, bio) {
            return Ok(());
        }
        let hctx = self.queue.map.serving(kind, cpu);
        debug_assert!(
            !self.queue.is_frozen()
                || !self.queue.bios.begins_bio(bio)
                || self.queue.bios.whole_of(bio).is_some(),
            "[frozen-admits-none]: bio {bio:?} enters a frozen queue"
        );
        if !self.queue.cursors.is_empty() && self.queue.must_wait_behind_split(bio, hctx) {
            return Err(SubmitError::NoTag);
        }
        if self.queue.wbt.is_some() && !self.take_place(bio, carried) {
            return Err(SubmitError::Throttled);
        }
        let Some((id, driver_tag)) = self.take_request(hctx, carried) else {
            // A queue that asks for a tag shares the tags, even if it gets none
            // ([tags-shared-fairly]).
            self.note_idle();
            self.queue.put_place(carried.op, carried.flags, self.now);
            return Err(SubmitError::NoTag);
        };
        self.emit_entered(cpu, bio);
        self.queue.held += 1;
        self.queue.idle_at = Instant::MAX;
        let steps = Steps::of(carried, &self.queue.limits);
        let rq = self.queue.requests.start(id, bio, carried, cpu, hctx, self.now);
        rq.driver_tag = driver_tag;
        rq.steps = steps;
        self.emit_request(Action::GetRequest, id);
        if !steps.is_empty() && !self.begin_sequence(id) {
            return Ok(());
        }
        if carried.op.is_passthrough() {
            self.bypass_elevator(id);
            self.queue.runs.mark(hctx, false);
        } else if plugs && self.queue.plugs[cpu.index()].active {
            self.add_to_plug(cpu, id);
        } else {
            match self.queue.policies.plug {
                Plugging::EveryBio => self.stage_batch_of_one(kind, hctx, id),
                Plugging::Batches | Plugging::Calls => self.stage_alone(kind, hctx, id),
            }
        }
        Ok(())
    }

    /// Takes a tag, and with it the number of a request. Without an elevator it is a driver tag.
    #[inline(always)]
    fn take_request(&mut self, hctx: HctxId, bio: &Bio) -> Option<(RequestId, Option<DriverTag>)> {
        let reserved = bio.flags.contains(Flags::RESERVED);
        let per_hctx = self.queue.tags_per_hctx;
        let first = u32::from(hctx.0) * per_hctx;
        let Some(tags) = self.queue.sched_tags.get_mut(hctx.index()) else {
            let tag = self.host.tags.take_for(self.queue.id, hctx, reserved, |tag| {
                RequestId(first + u32::from(tag.0))
            })?;
            return Some((RequestId(first + u32::from(tag.0)), Some(tag)));
        };
        // With 64 tags, kyber lets asynchronous requests have 48, so that a synchronous one mostly
        // finds a tag.
        let tag = if reserved {
            tags.take_reserved()?
        } else {
            let limit = match &self.queue.elevator {
                Some(elevator) if !bio.is_sync() => {
                    elevator.async_depth(per_hctx - self.queue.reserved)
                }
                _ => u32::MAX,
            };
            tags.take(limit)?
        };
        debug_assert!(tag < per_hctx, "tag {tag} of {per_hctx}");
        Some((RequestId(first + tag), None))
    }

    /// Merges a bio into a request of the plug, elevator or software queue. Returns whether it did.
    fn merge_bio(&mut self, cpu: CpuId, kind: usize, bio: BioId) -> bool {
        let extent = Extent::from(&self.queue.bios[bio]);
        if !extent.is_mergeable() {
            return false;
        }
        let plugged = self.queue.find_in_plug(cpu, &extent);
        let found = plugged.or_else(|| self.queue.find_staged(cpu, kind, &extent));
        let (id, merge) = match found {
            None => return false,
            // The request touches the bio and has no room: it is not tried for another one.
            Some(Candidate::TooBig(id)) => {
                if plugged.is_none() {
                    self.queue.leave_index(self.queue.ctx_of(kind, cpu), id);
                }
                self.queue.requests[id].flags |= Flags::NO_MERGE;
                return false;
            }
            Some(Candidate::Join(id, merge)) => (id, merge),
        };
        self.emit_entered(cpu, bio);
        self.queue.requests.add_bio(id, &mut self.queue.bios, bio, merge);
        self.emit_merged(cpu, bio, (id, merge));
        if plugged.is_some() {
            return true;
        }
        match &mut self.queue.elevator {
            Some(elevator) => {
                elevator.merged(&self.queue.requests, id, merge);
                self.join_neighbour(id, merge);
            }
            None => {
                let ctx = self.queue.ctx_of(kind, cpu);
                self.queue.ctxs[ctx].merged(&mut self.queue.end_nodes, &self.queue.requests, id);
            }
        }
        true
    }

    /// Joins `id`, which has grown, with the request of the elevator that it may now touch.
    fn join_neighbour(&mut self, id: RequestId, merge: Merge) {
        let Some(elevator) = &mut self.queue.elevator else { return };
        let Some(neighbour) = elevator.neighbour(&self.queue.requests, id, merge) else { return };
        // Whichever begins earlier takes the other one in behind it.
        let (kept, absorbed) =
            if merge == Merge::Front { (neighbour, id) } else { (id, neighbour) };
        let front = self.queue.requests[kept].extent();
        let back = self.queue.requests[absorbed].extent();
        let Fit::Join(how) = fit(&front, &back, &self.queue.limits) else { return };
        elevator.joined(&mut self.queue.requests, kept, absorbed);
        debug_assert_ne!(kept, absorbed, "a request is its own neighbour");
        self.emit_request(Action::Join, absorbed);
        self.queue.requests.join_bios(kept, absorbed, &mut self.queue.bios, how);
        if let Some(elevator) = &mut self.queue.elevator {
            elevator.merged(&self.queue.requests, kept, how);
        }
        self.put_request_tag(self.queue.requests[absorbed].hctx, absorbed);
    }

    fn add_to_plug(&mut self, cpu: CpuId, id: RequestId) {
        debug_assert_eq!(
            self.queue.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        let plug = &self.queue.plugs[cpu.index()];
        let holds_one = self.queue.policies.plug == Plugging::Calls && self.queue.hctxs.len() > 1;
        if plug.is_full(&self.queue.requests) || (holds_one && !plug.list.is_empty()) {
            self.release_plug(cpu, false);
        }
        if self.queue.plugs[cpu.index()].list.is_empty() {
            self.emit_request(Action::Plug, id);
        }
        self.queue.plugs[cpu.index()].add(&mut self.queue.requests, id);
    }

    /// Stages all requests on the plug of `cpu`. If the submitter is about to sleep (`sleeping`),
    /// runs are left to a worker.
    pub(super) fn release_plug(&mut self, cpu: CpuId, sleeping: bool) {
        let mut list = core::mem::take(&mut self.queue.plugs[cpu.index()].list);
        if let Some(first) = list.first() {
            let requests = u16::try_from(list.len()).expect("a plug holds 32 requests at most");
            self.emit_request(Action::Unplug { requests, sleeping }, first);
        }
        // A submitter that is about to sleep leaves the work to others. Otherwise the batch goes
        // straight to the driver, until the driver refuses one: those behind it are staged, where
        // they can merge.
        let mut direct = self.queue.issues_directly && !sleeping;
        let mut uncommitted = None;
        while let Some(id) = list.pop_front(&mut self.queue.requests) {
            let hctx = self.queue.requests[id].hctx;
            if direct {
                self.end_run(&mut uncommitted, Some(hctx));
                direct = self.issue_directly(id, hctx, list.is_empty());
                if direct && !list.is_empty() {
                    uncommitted = Some(hctx);
                } else if !direct {
                    self.end_run(&mut uncommitted, None);
                }
            } else {
                // A neighbour may have been inserted since this request was plugged.
                if self.queue.lists_insertions || !self.join_staged(id) {
                    self.insert_request(self.queue.map.kind_serving(cpu, hctx), id);
                }
                self.queue.runs.mark(hctx, sleeping);
            }
        }
    }

    /// Stages a lone request as a batch of one. Its bio has just been tried for merges: unlike a
    /// request from a plug, it cannot touch anything that came since.
    #[inline(always)]
    fn stage_batch_of_one(&mut self, kind: usize, hctx: HctxId, id: RequestId) {
        self.emit_request(Action::Plug, id);
        self.emit_request(Action::Unplug { requests: 1, sleeping: false }, id);
        if self.queue.issues_directly {
            self.issue_directly(id, hctx, true);
            return;
        }
        self.insert_request(kind, id);
        self.queue.runs.mark(hctx, false);
    }

    /// Stages a request that is not part of a batch. Where it may wait for others to join it, its
    /// run is left to a worker.
    fn stage_alone(&mut self, kind: usize, hctx: HctxId, id: RequestId) {
        // On a device that was busy, the request waits, so that others can join it; but a
        // synchronous one, among several hardware queues, goes immediately.
        let state = &self.queue.hctxs[hctx.index()];
        let lone_queue = self.queue.hctxs.len() == 1;
        let held_back = state.busy.is_busy() && (lone_queue || !self.queue.requests[id].is_sync());
        if self.queue.issues_directly && !held_back {
            self.issue_directly(id, hctx, true);
            return;
        }
        self.insert_request(kind, id);
        let policies = &self.queue.policies;
        let deferred = match policies.plug {
            Plugging::Calls => lone_queue || !self.queue.requests[id].is_sync(),
            _ => self.queue.issues_directly || policies.runs_deferred(),
        };
        self.queue.runs.mark(hctx, deferred);
    }

    /// Puts a request into the elevator, or the software queue of its processor for `kind`.
    pub(super) fn insert_request(&mut self, kind: usize, id: RequestId) {
        debug_assert_eq!(
            self.queue.requests[id].state(),
            State::Staged,
            "[request-life-cycle]: request {}",
            id.0
        );
        self.emit_request(Action::Insert, id);
        if let Some(elevator) = &mut self.queue.elevator {
            if self.queue.lists_insertions {
                return self.queue.insertions.push_back(&mut self.queue.requests, id);
            }
            return elevator.insert(&mut self.queue.requests, id, Place::Sorted, self.now);
        }
        let ctx = self.queue.ctx_of(kind, self.queue.requests[id].cpu);
        self.queue.ctxs[ctx].insert(&mut self.queue.end_nodes, &mut self.queue.requests, id);
        let feeder = self.queue.feeder_at[ctx] as usize;
        self.queue.hctxs[self.queue.requests[id].hctx.index()].pending.insert(feeder);
    }

    /// Joins a request that is about to be filed to the back of a waiting one. Returns whether it
    /// did.
    pub(super) fn join_staged(&mut self, id: RequestId) -> bool {
        let extent = self.queue.requests[id].extent();
        let Some(elevator) = &mut self.queue.elevator else { return false };
        let from = Ctx::of(&self.queue.requests[id]);
        let found =
            elevator.find_merge(&self.queue.requests, &self.queue.limits, from, &extent, false);
        let Some(Candidate::Join(kept, merge)) = found else { return false };
        debug_assert_ne!(kept, id, "[on-one-list]: a request to insert is staged already");
        self.emit_request(Action::Join, id);
        self.queue.requests.join_bios(kept, id, &mut self.queue.bios, merge);
        if let Some(elevator) = &mut self.queue.elevator {
            elevator.merged(&self.queue.requests, kept, merge);
        }
        self.put_request_tag(self.queue.requests[id].hctx, id);
        self.join_neighbour(kept, merge);
        true
    }

    /// Emits that a submitted bio enters, with its first part if it is split, and that it is cut,
    /// unless the part is its last.
    fn emit_entered(&mut self, cpu: CpuId, bio: BioId) {
        if !self.host.sink.listens() {
            return;
        }
        let Some(whole) = self.queue.bios.whole_of(bio) else {
            return self.emit_bio(Action::Queue, cpu, bio);
        };
        if self.queue.bios.begins_bio(bio) {
            self.emit_bio(Action::Queue, cpu, whole);
        }
        if self.queue.bios[bio].end_sector() < self.queue.bios[whole].end_sector() {
            self.emit_bio(Action::Split, cpu, bio);
        }
    }

    /// Emits that `bio`, submitted from `cpu`, has joined a request on one side.
    fn emit_merged(&mut self, cpu: CpuId, bio: BioId, (id, side): (RequestId, Merge)) {
        if self.host.sink.listens() {
            let action = if side == Merge::Front { Action::FrontMerge } else { Action::BackMerge };
            let rq = &self.queue.requests[id];
            let event = self.queue.bio_event(self.now, action, cpu, rq.hctx, &self.queue.bios[bio]);
            self.host.sink.event(&Event { request: Some((id, rq)), ..event });
        }
    }

    fn emit_bio(&mut self, action: Action, cpu: CpuId, bio: BioId) {
        let bio = &self.queue.bios[bio];
        self.host.sink.event(&self.queue.bio_event(self.now, action, cpu, hctx_id(0), bio));
    }
}
