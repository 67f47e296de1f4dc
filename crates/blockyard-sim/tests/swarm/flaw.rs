//! Canaries: one flaw is planted on purpose, and a checker must catch it.

use crate::device::Target;
use crate::recorder::Recorder;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, TimedOut};
use blockyard::layer::checked::Checked;
use blockyard::layer::fault::Faulty;
use blockyard::layer::trace::Traced;
use blockyard::request::Request;
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_devices::data::medium::{Media, Medium};

/// A flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The loop forgets a hardware queue that it should run.
    ForgetRun,
    /// The loop forgets to wake a submitter of throttled writeback.
    ForgetThrottled,
    /// The loop forgets the instants at which the queues are to run.
    ForgetPolls,
    /// The device completes a command twice.
    CompleteTwice,
    /// The device never completes a command.
    LoseCompletion,
    /// The device never completes a command, but its bios are reported as ended.
    PretendEnd,
    /// The run ends with bios in flight.
    StopEarly,
    /// A bio is reported as ended twice.
    EndTwice,
    /// An error of the device is reported as success.
    HideError,
    /// Flushes fail, and one of them is reported as success.
    HideFlushError,
    /// A budget is not given back.
    KeepBudget,
    /// The driver is not notified of the end of a run.
    DropCommit,
    /// A request is prepared twice.
    PrepareTwice,
    /// A piece lies one sector too high.
    ShiftPiece,
    /// A request comes out of the elevator twice.
    DuplicateRequest,
    /// A request is lost on its way and yet completes.
    LoseRequest,
    /// A bio merges into a request of another op.
    MixOps,
    /// The queue gets larger limits than the device has.
    WrongLimits,
    /// The elevator prefers reads without end.
    StarveWrites,
    /// Without faults the device is much slower than the plan says.
    SlowDevice,
    /// The service time of a command depends on something other than the seed.
    OutsideInfluence,
    /// The loop runs a hardware queue over and over.
    Spin,
    /// A flush is offered twice.
    FlushTwice,
    /// A flush begins too late.
    LateFlush,
    /// The completion of a sequence's data is not reported.
    HideDataEnd,
    /// The queue is configured without FUA, which the device has.
    DenyFua,
    /// The device has a volatile cache and denies it.
    LyingCache,
    /// Some writes do not reach the medium.
    LoseWrites,
    /// The queue gets a shorter timeout.
    AskEarly,
    /// The queue gets a longer timeout.
    AskLate,
    /// A stray completion hits a request that the driver owns.
    StrayHits,
    /// A queue that should be frozen is not.
    ForgetFreeze,
    /// A queue that should be quiesced is not.
    ForgetQuiesce,
    /// The design pulls although the dispatch list is not empty.
    PullOverLeftovers,
    /// The issue of passthrough is not reported.
    HideDirect,
    /// The exit of a request from its software queue is not reported.
    HideSchedule,
    /// The queue has no elevator, so requests that wait keep their driver tags.
    KeepTags,
    /// The host has twice the tags.
    DoubleTags,
    /// Bfq gives group 1 a hundredth of the weight of which the auditor knows.
    ForgetGroup,
    /// Bfq holds the device for 50 ms.
    IdleOn,
    /// The device reports that it is full with nothing in flight, and the plan does not allow this.
    EmptyPromise,
}

/// The device with its medium.
type Filled = Medium<Target>;
/// The device under its layers: faults, contract checks above and below them, and the recorder.
pub(crate) type Stack = Traced<Checked<Faulty<Checked<Filled>>>, Recorder>;

/// The chance at which a flaw strikes. It is not the first, so many requests are in flight by then.
const CHANCE: u32 = 5;

/// Counts a flaw's chances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Striker {
    pub(crate) flaw: Option<Flaw>,
    chances: u32,
}

impl Striker {
    pub(crate) const fn new(flaw: Option<Flaw>) -> Self {
        Self { flaw, chances: 0 }
    }

    /// Returns whether `flaw` strikes now. A flaw strikes once.
    pub(crate) fn strikes(&mut self, flaw: Flaw) -> bool {
        if self.flaw != Some(flaw) {
            return false;
        }
        self.chances += 1;
        self.chances == CHANCE
    }
}

/// Breaks the calls of the core that a flaw selects, and passes all others on.
#[derive(Debug)]
pub(crate) struct Meddler {
    pub(crate) inner: Stack,
    pub(crate) striker: Striker,
}

impl Driver for Meddler {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.inner.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        if !self.striker.strikes(Flaw::KeepBudget) {
            self.inner.return_budget(queue, budget);
        }
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        self.inner.unprepare(issue);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        self.inner.prepare(issue);
        if self.striker.strikes(Flaw::PrepareTwice) {
            self.inner.prepare(issue);
        }
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.inner.queue_rq(issue)
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        if !self.striker.strikes(Flaw::DropCommit) {
            self.inner.commit(queue, hctx, now);
        }
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        self.inner.timed_out(queue, hctx, tag, request, now)
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.inner.finish(queue, hctx, tag, request);
    }
}

impl Device for Meddler {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        self.inner.next_finished(now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.inner.poll_at()
    }
}

impl Meddler {
    /// Returns the contract check above the faults.
    pub(crate) const fn checked(&self) -> &Checked<Faulty<Checked<Filled>>> {
        &self.inner.below
    }

    /// Returns the contract check below the faults.
    pub(crate) const fn checked_below(&self) -> &Checked<Filled> {
        &self.inner.below.below.below
    }

    pub(crate) const fn media(&mut self) -> &mut Media {
        &mut self.inner.below.below.below.below.media
    }

    pub(crate) fn lift_faults(&mut self) {
        self.inner.below.below.lift();
        let target = &mut self.inner.below.below.below.below.below;
        target.misbehaves = false;
        if self.striker.flaw == Some(Flaw::SlowDevice) {
            target.slow_down();
        }
    }
}
