//! The calls of a task: how many I/Os each one submits and reaps.

use super::durable::Tail;
use super::source::Source;
use super::{Slot, Task};
use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use blockyard_fio::job::{ContinueOnError, Engine, Job, ThinktimeBlocks, encoded};
use blockyard_fio::measure::Taken;
use blockyard_fio::measure::call_time::{CallPart, CallTimes};

use super::state::State;

/// A call that submits more I/Os than this plugs them, as Linux does for libaio and `io_uring`.
const UNPLUGGED_MAX: u32 = 2;

/// The options of the job that decide how an instance proceeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) engine: Engine,
    pub(super) depth: u32,
    pub(super) batch: u32,
    pub(super) complete_min: u32,
    pub(super) complete_max: u32,
    pub(super) low: u32,
    /// Other threads submit, so that a pause does not wait for I/O in flight.
    pub(super) offload: bool,
    pub(super) continue_on_error: ContinueOnError,
    /// The priority of the job in Linux's encoding, if its I/Os may have others.
    pub(super) priority_of_job: Option<u16>,
}

impl Shape {
    pub(super) fn of(job: &Job) -> Self {
        let depth = job.depth();
        let complete_min = job.iodepth_batch_complete_min.max(1).min(depth);
        let complete_max = job.iodepth_batch_complete_max;
        let complete_max = complete_max.map_or(complete_min, |count| at_most(count, depth));
        Self {
            engine: job.engine,
            depth,
            batch: at_most(job.iodepth_batch_submit, depth),
            complete_min,
            complete_max: complete_max.max(complete_min),
            low: at_most(job.iodepth_low.unwrap_or(depth), depth),
            offload: job.offload,
            continue_on_error: job.continue_on_error,
            priority_of_job: job
                .command_priority
                .is_used()
                .then(|| encoded(job.priority_class, job.priority)),
        }
    }
}

/// Returns `count` I/Os within `depth`. In a job file, 0 is the depth.
const fn at_most(count: u32, depth: u32) -> u32 {
    if count == 0 || count > depth { depth } else { count }
}

/// A call that submits I/Os. It may sleep for a tag and then continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The number of I/Os that the call has yet to submit.
    pub left: u32,
    /// Whether the call plugs its I/Os.
    pub plugs: bool,
}

/// The I/O of a call that returns when it has ended, while other I/Os may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InCall {
    /// No such call is under way.
    None,
    /// The I/O of this slot is in flight.
    Waits(u32),
    /// The I/O of this slot has ended.
    Returns(u32),
}

/// The calls of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) current: Call,
    pub(super) in_call: InCall,
    /// The engine refused the next I/O until others have completed.
    pub(super) is_busy: bool,
}

impl Calls {
    pub(super) const NONE: Self =
        Self { current: Call { left: 0, plugs: false }, in_call: InCall::None, is_busy: false };
}

impl Task {
    /// Whether more than one I/O can be in flight, so that a separate call reaps completions.
    #[must_use]
    pub(crate) const fn is_async(&self) -> bool {
        self.shape.engine.is_async()
    }

    /// Whether the task polls while it waits, because polled I/Os are in flight.
    #[must_use]
    pub(crate) fn polls(&self) -> bool {
        let awaits_bio =
            self.calls.in_call != InCall::None || matches!(self.tail, Tail::Flushing(_));
        let in_call = self.buffered.as_ref().is_some_and(|buffered| buffered.in_call());
        self.slots.has_polled() && !awaits_bio && !in_call
    }

    /// Whether this step reaps results. A call that slept for a tag comes first.
    #[must_use]
    pub(crate) fn reaps_now(&self) -> bool {
        self.state == State::Reaping && self.calls.current.left == 0
    }

    /// Returns the maximum number of results that one step reaps.
    #[must_use]
    pub(crate) const fn reap_max(&self) -> u32 {
        self.shape.complete_max
    }

    /// Returns the result of a call that has returned.
    pub(crate) fn take_returned(&mut self, now: Instant) -> Option<Taken> {
        let InCall::Returns(at) = self.calls.in_call else { return None };
        self.calls.in_call = InCall::None;
        Some(self.take_result(at, now))
    }

    /// Reaps one result. A step reaps at most [`Self::reap_max`].
    pub(crate) fn take_completed(&mut self, now: Instant) -> Option<Taken> {
        self.slots.pop_completed().map(|at| self.take_result(at, now))
    }

    /// Returns the times of the call whose result was taken last, if it used the page cache and was
    /// no read.
    #[inline]
    pub(crate) fn take_call_times(&mut self) -> Option<CallTimes> {
        self.buffered.as_mut()?.clocks.take_stopped()
    }

    fn take_result(&mut self, at: u32, now: Instant) -> Taken {
        let taken = self.slots.take(at, now);
        if let Some(buffered) = &mut self.buffered {
            buffered.clocks.stop(at, now);
        }
        // A sync is no I/O of `thinktime_blocks`.
        if taken.op.is_some() {
            self.pauses.count(ThinktimeBlocks::Complete, now);
        }
        taken
    }

    /// Returns the call of this step: a new call, or one that slept.
    pub(crate) fn call(&mut self, now: Instant) -> Call {
        if self.calls.current.left == 0 {
            self.draw(now);
            let room = self.depth().saturating_sub(self.outstanding());
            debug_assert!(self.shape.batch > 0, "a batch must have an I/O");
            self.calls.current = self.new_call(room);
        }
        self.calls.current
    }

    /// Returns a new call with room for so many I/Os.
    fn new_call(&self, room: u32) -> Call {
        match &self.feed.source {
            // A call submits what the trace's call submitted: one record, and those that joined it.
            Source::Recorded(recorded) => {
                let joined = u32::try_from(recorded.joined()).unwrap_or(u32::MAX - 1);
                Call { left: room.min(1 + joined), plugs: joined > 0 }
            }
            Source::Generated(_) => {
                // A call that returns at the end of its I/O submits nothing else.
                let is_alone = self.feed.next().is_some_and(|io| io.in_call);
                let left = room.min(if is_alone { 1 } else { self.shape.batch });
                Call { left, plugs: left > UNPLUGGED_MAX }
            }
        }
    }

    /// Notes that the call has returned.
    pub(crate) const fn end_call(&mut self) {
        self.calls.current.left = 0;
    }

    /// Returns the next I/O to submit at `now`, as a bio for its queue, with the slot as its
    /// cookie; `None` if there is no room, no I/O is left, or it is too early. The same I/O is
    /// returned until [`Self::submitted`].
    pub(crate) fn next_bio(&mut self, now: Instant) -> Option<(QueueId, Bio)> {
        if self.outstanding() <= self.shape.low.min(self.depth() - 1) {
            self.draining = false;
        }
        // Each of these lets the I/Os in flight end first.
        if self.draining || self.pauses.is_due() || self.settles_depth() {
            return None;
        }
        let slot = self.slots.next_free()?;
        self.draw(now);
        let in_call = self.feed.next()?.in_call;
        // libaio submits a sync or a trim within a call of its own, after the I/Os before it.
        if in_call && self.slots.has_submitted() {
            self.calls.is_busy = true;
            return None;
        }
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        let io = self.feed.next()?;
        let cookie = u64::from(self.id.0) << 32 | u64::from(slot);
        Some((io.queue, Bio { cookie, ..io.bio }))
    }

    /// Whether the next I/O at `now` is a call through the page cache. Of a direct job only its
    /// syncs are.
    #[inline]
    pub(crate) fn is_buffered_next(&mut self, now: Instant) -> bool {
        let Some(buffered) = &self.buffered else { return false };
        let only_syncs = buffered.is_direct();
        self.next_bio(now).is_some_and(|(_, bio)| !only_syncs || bio.op == Op::Flush)
    }

    /// Returns the queue of the next I/O, or if that is not known yet, of the one before.
    #[must_use]
    pub(crate) fn likely_queue(&self) -> QueueId {
        match self.tail {
            Tail::Due(..) => self.feed.last_queue(),
            Tail::None | Tail::Idle | Tail::Flushing(_) => self.feed.likely_queue(),
        }
    }

    /// Notes that the queue has accepted the bio of [`Self::next_bio`], in a step that began at
    /// `now`. Returns how long its call had waited for a tag.
    pub(crate) fn submitted(&mut self, now: Instant) -> Duration {
        let waited = self.end_tag_wait(now);
        // Submission latency counts from the first attempt.
        let begun = Instant::from_ns(now.as_ns() - waited.as_ns());
        let begun = self.end_meeting().map_or(begun, |since| since.min(begun));
        let io = self.feed.take();
        let due = match &mut self.feed.source {
            Source::Generated(generated) => {
                generated.submitted(&io);
                if now >= self.measuring.from() {
                    generated.end_ramp(u64::from(self.slots.outstanding()) + 1);
                }
                begun
            }
            Source::Recorded(recorded) => recorded.submitted(&io, now).min(begun),
        };
        let at = self.slots.begin(Slot {
            op: io.kind,
            file: io.file,
            len_bytes: io.len_bytes,
            offset_bytes: io.offset_bytes,
            due,
            begun,
            submitted: now,
            completed: now,
            status: Status::Ok,
            priority: io.priority,
            polled: io.bio.flags.contains(Flags::POLLED),
            recorded_end: io.recorded_end,
        });
        if self.take_wait_in_call() || io.in_call {
            self.calls.in_call = InCall::Waits(at);
        }
        debug_assert!(self.calls.current.left > 0, "a call must not submit more than its batch");
        self.calls.current.left -= 1;
        if io.kind.is_some() {
            self.pauses.count(ThinktimeBlocks::Issue, now);
        }
        waited
    }

    /// Ends a step at `now`: the I/Os of the step count as submitted now.
    pub(crate) fn end_step(&mut self, now: Instant) {
        self.slots.end_step(now);
    }

    /// Notes that the I/O of `slot` has completed at `now`. Returns whether the task must be woken.
    pub(crate) fn completed(&mut self, slot: u32, status: Status, now: Instant) -> bool {
        if self.goes_on_to_flush(slot, status, now) {
            return self.wake_for_flush();
        }
        self.slots.end(slot, status, now);
        if let Some(buffered) = &mut self.buffered {
            buffered.clocks.turn(slot, CallPart::NotReaped, now);
        }
        // The call that waits for this I/O returns its result, so nobody reaps it.
        if self.calls.in_call == InCall::Waits(slot) {
            self.calls.in_call = InCall::Returns(slot);
            return self.wake_for_call();
        }
        self.slots.push_completed(slot);
        if let Source::Recorded(recorded) = &mut self.feed.source {
            recorded.completed(now);
        }
        self.wake_for_completion()
    }
}
