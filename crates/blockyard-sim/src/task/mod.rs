//! Job instances: when each one issues its next I/O, and which event it waits for until then.
//!
//! A `Task` is a value that the world steps on a processor. `Task::plan` returns the
//! task's next action. The world does it and reports the result to the task. The I/Os are generated
//! from a job, or recorded in a trace and delivered one by one (`Task::deliver`).
//!
//! ```text
//! feed: source ─► next I/O ─► calls: a bio ─► slots: in flight ─► completed ─► reaped
//!                    ▲                                │
//!             pauses, targets        state: ready, asleep, over ◄─ plan
//! ```

mod bounds;
mod buffered;
mod calls;
mod direct;
mod durable;
mod feed;
mod measuring;
mod plan;
mod recorded;
mod search;
mod share;
mod slots;
mod source;
mod state;
mod targets;
mod think;

pub use bounds::Violation;
pub use buffered::{Buffered, BufferedStep, READER_BIOS_MAX, SYNC_PAGES_MAX};
pub(crate) use buffered::{has_data, may_repeat, start_of_files};
pub use calls::Call;
pub(crate) use direct::Met;
pub(crate) use durable::{syncs_behind_writes, waits_for_durable_writes};
pub use measuring::Measuring;
pub use plan::Plan;
pub use share::Share;

use crate::placement::Placement;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_fio::job::{ExitWhat, Job, Op, Resolved};
use blockyard_trace::observe::TaskId;
use calls::{Calls, Shape};
use durable::Tail;
use feed::Feed;
use slots::{Slot, Slots};
use source::{Generated, Recorded, Source};
use state::{Sleep, State, TagWait};
use targets::Targets;
use think::Pauses;

/// The properties of one instance of a job.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// The number among the instances of its job, from 0.
    pub number: u32,
    /// The source of the I/Os.
    pub origin: Origin,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// The index of its statistics.
    pub stats: usize,
}

/// The source of an instance's I/Os.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Generated from its job.
    Generated {
        /// The regions of its files.
        resolved: Resolved,
        /// The places of its files on the disks.
        placements: Vec<Placement>,
        /// Whether its files are those of a file system, or others use the page cache. Direct I/O
        /// then looks at their pages.
        meets_cache: bool,
        /// Whether a write with FUA needs no flush: the disks have FUA, or no volatile cache.
        has_fua: bool,
    },
    /// Recorded in a trace, and delivered to the task.
    Recorded,
}

/// One instance of a job.
#[derive(Debug)]
pub(crate) struct Task {
    /// The number of the task.
    pub id: TaskId,
    /// The processor it runs on.
    pub cpu: CpuId,
    /// Whether its job leaves the choice of processors to the system.
    pub(crate) may_move: bool,
    /// The index of its statistics.
    pub stats: usize,
    /// Its number among the instances of all jobs, from 0.
    pub instance: u32,
    /// The reporting group of its job.
    pub group: u32,
    /// The number of its control group.
    pub(crate) cgroup: u32,
    /// The jobs that end with this instance (`exitall`).
    pub ends: Option<ExitWhat>,
    /// Its share in a flow.
    pub share: Option<Share>,
    /// Whether its job has ended. It may still write back what it dirtied, which nobody measures.
    pub(crate) has_ended: bool,
    /// Whether it may make runs of equal calls.
    pub(crate) may_repeat: bool,
    /// What is measured of it.
    pub(crate) measuring: Measuring,
    shape: Shape,
    feed: Feed,
    /// The buffered I/O, if the task uses the page cache.
    buffered: Option<Box<Buffered>>,
    slots: Slots,
    calls: Calls,
    tail: Tail,
    /// Whether the depth was reached and the number in flight is still above the low mark.
    draining: bool,
    state: State,
    /// The wait for a tag that the next bio has begun and not ended.
    tag_wait: Option<TagWait>,
    /// The task issues no I/O from this instant on.
    stop_at: Instant,
    pauses: Pauses,
    targets: Targets,
}

impl Task {
    /// Returns `instance` of `job` as task `id`. `seed` is the seed of the run.
    #[must_use]
    pub(crate) fn new(id: TaskId, job: &Job, instance: Instance, seed: u64) -> Self {
        let Instance { number, origin, cpu, stats } = instance;
        let depth = job.depth();
        assert!(depth > 0, "a job must have a depth of at least 1");
        // Direct I/O passes the page cache by; traces have no files.
        let buffered = match &origin {
            Origin::Generated { placements, resolved, .. } if !job.direct => {
                let buffered = Buffered::new(job, placements.clone());
                Some(Box::new(buffered.read_before(job, resolved)))
            }
            Origin::Generated { placements, meets_cache: true, has_fua, .. } => {
                Some(Box::new(Buffered::of_direct(job, placements.clone(), *has_fua)))
            }
            _ => None,
        };
        let source = match origin {
            Origin::Generated { resolved, placements, .. } => Source::Generated(Box::new(
                Generated::new(job, number, &resolved, placements, seed),
            )),
            Origin::Recorded => Source::Recorded(Recorded::new(depth)),
        };
        Self {
            id,
            cpu,
            may_move: job.cpus_allowed.is_empty(),
            stats,
            instance: job.first_instance + number,
            group: job.group,
            cgroup: job.cgroup_number,
            ends: job.exitall.then_some(job.exit_what),
            share: Share::of(&job.flow),
            has_ended: false,
            may_repeat: may_repeat(job),
            measuring: Measuring::of(job),
            shape: Shape::of(job),
            feed: Feed::new(source),
            buffered,
            slots: Slots::new(depth),
            calls: Calls::NONE,
            tail: Tail::None,
            draining: false,
            // The world wakes the task when it begins.
            state: State::Asleep(Sleep::Instant),
            tag_wait: None,
            stop_at: Instant::MAX,
            pauses: Pauses::of(job),
            targets: Targets::of(job),
        }
    }

    /// Starts the instance at `now`. Measurement begins after `ramp`. The instance stops issuing
    /// I/Os `limit` later.
    pub(crate) fn begin(&mut self, now: Instant, ramp: Duration, limit: Option<Duration>) {
        debug_assert!(self.outstanding() == 0, "an instance must begin without I/Os");
        self.measuring.begin(now, ramp);
        self.pauses.begin_job(now);
        self.targets.begin(now);
        let end = limit.map_or(Instant::MAX, |limit| self.measured_from() + limit);
        // A job that was stopped while it filled the cache stays so.
        self.stop_at = self.stop_at.min(end);
    }

    /// Whether the job has not begun, because its files are still being read (`pre_read`).
    #[inline]
    #[must_use]
    pub(crate) fn is_pre_reading(&self) -> bool {
        self.buffered.as_ref().is_some_and(|buffered| buffered.is_pre_reading())
    }

    /// Ends the job: it issues no I/O from `now` on.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stop_at = self.stop_at.min(now);
    }

    /// Returns the number of I/Os that were submitted and not reaped.
    #[must_use]
    pub(crate) fn outstanding(&self) -> u32 {
        self.slots.outstanding()
    }

    /// Whether the job continues after an error of `op`; `None` is a sync.
    #[must_use]
    pub(crate) const fn continues_after_error_of(&self, op: Option<Op>) -> bool {
        match op {
            Some(Op::Read) => self.shape.continue_on_error.reads,
            Some(Op::Write | Op::Trim) | None => self.shape.continue_on_error.writes,
        }
    }

    /// Returns the priority of the job in Linux's encoding, if its I/Os may have others.
    #[must_use]
    pub(crate) const fn priority_of_job(&self) -> Option<u16> {
        self.shape.priority_of_job
    }

    /// Whether the task keeps to a rate, or to the pace of a trace.
    #[must_use]
    pub(crate) fn keeps_pace(&self) -> bool {
        match &self.feed.source {
            Source::Generated(generated) => generated.has_rate(),
            Source::Recorded(recorded) => recorded.timed(),
        }
    }

    /// Returns how long the pause that [`Self::plan`] has just begun keeps the processor busy.
    pub(crate) fn take_spin(&mut self) -> Duration {
        self.pauses.take_spin()
    }

    /// Draws the next I/O from the source, unless it is known.
    #[inline]
    fn draw(&mut self, now: Instant) {
        self.feed.draw(now.max(self.pauses.until()), self.measuring.begun());
    }

    /// Returns the earliest instant for the next I/O; `None` if it must wait for a completion.
    fn next_due(&mut self) -> Option<Instant> {
        self.feed.next_due(self.pauses.until(), self.measuring.begun())
    }
}
