//! The worker of a processor, which shares it with other threads by its lag, as since Linux 6.6.
//!
//! Linux leaves a run of a hardware queue to a kernel thread of nice -20, which is bound to a
//! processor. EEVDF, the scheduler since 6.6, gives that thread the processor by its **lag**: how
//! much less it has had than its share. A thread that sleeps keeps its lag.
//!
//! - A worker with lag is eligible, and the thread that runs is not. So the worker takes the
//!   processor as soon as the call of that thread returns.
//! - A worker without lag does not take it from a thread that has some of its slice left
//!   (`RUN_TO_PARITY`). It waits until that thread sleeps or has used its slice. It is next then,
//!   because the deadline of a thread is earlier the heavier it is.
//! - The time for which others run while it waits becomes its lag. Its own time reduces the lag, by
//!   little: it weighs 87 times as much as they do.
//! - A worker that is woken while no other thread is ready has no lag afterwards: there is nobody
//!   to lag behind.
//!
//! The slice is 0.7 ms on one processor, and for n processors, of which 8 count, `1 + log2(n)`
//! times as long: `sysctl_sched_base_slice` of Linux 6.12 and 7.3 under logarithmic scaling. Linux
//! 7.3 ends it by a timer. Older kernels look at the next tick only, up to 4 ms later; here a slice
//! ends at the end of a call in all of them. All other threads have nice 0. Those of one processor
//! use its slice together: here they take turns after each call, unlike in Linux.

use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, QueueId};
use blockyard_trace::observe::Work;
use std::collections::VecDeque;

/// The slice of a thread on a machine with one processor: 700,000 ns in Linux 6.12 and 7.3.
const BASE_SLICE: Duration = Duration::from_us(700);

/// Processors that make the slice longer, at most: `get_update_sysctl_factor`.
const SCALING_CPUS_MAX: u16 = 8;

/// The weights of threads of nice 0 and of nice -20 in Linux: `sched_prio_to_weight`.
const WEIGHT: u64 = 1024;
const WEIGHT_OF_WORKER: u64 = 88_761;

/// The worker of one processor: its work, and its lag.
#[derive(Debug)]
pub(crate) struct Worker {
    slice: Duration,
    /// Runs of hardware queues, of which the worker does one after another.
    works: VecDeque<Work>,
    /// Whether it waits until the thread that runs sleeps or has used its slice.
    is_held: bool,
    /// How much longer other threads have run while it waited than it has run itself, in their
    /// time.
    lag: Duration,
    /// The time that other threads have run of their slice.
    used: Duration,
    /// The end of the last piece of another thread, and of the worker.
    others_until: Instant,
    own_until: Instant,
    /// When the thread that was woken last is there.
    others_there_at: Instant,
}

impl Worker {
    /// Returns the worker of a processor of a machine with `cpus` of them, without lag.
    #[must_use]
    pub(crate) fn new(cpus: u16) -> Self {
        assert!(cpus > 0, "a machine must have processors");
        let factor = 1 + cpus.min(SCALING_CPUS_MAX).ilog2();
        Self {
            slice: Duration::from_ns(BASE_SLICE.as_ns() * u64::from(factor)),
            works: VecDeque::new(),
            is_held: false,
            lag: Duration::ZERO,
            used: Duration::ZERO,
            others_until: Instant::ZERO,
            own_until: Instant::ZERO,
            others_there_at: Instant::ZERO,
        }
    }

    /// Whether it has work.
    #[must_use]
    pub(crate) fn has_work(&self) -> bool {
        !self.works.is_empty()
    }

    /// Whether it has no work, and another thread that goes on changes nothing but its time.
    #[must_use]
    pub(crate) fn rests(&self) -> bool {
        self.works.is_empty() && !self.is_held
    }

    /// Gives the worker a run at `now`, which wakes it if it sleeps. `others_ready` says whether
    /// other threads wait for the processor.
    pub(crate) fn wake(&mut self, work: Work, now: Instant, others_ready: bool) {
        debug_assert!(matches!(work, Work::Run { .. }), "{work:?} is no work of a worker");
        let is_awake = self.has_work() || now < self.own_until;
        self.works.push_back(work);
        if is_awake {
            return;
        }
        self.is_held = false;
        if now >= self.others_until && !others_ready {
            // A completion wakes the submitter before the worker, so they are two. The worker goes
            // first.
            if now >= self.others_there_at {
                self.lag = Duration::ZERO;
            }
            return;
        }
        // A thread that has used its slice is not protected, and gets a new slice.
        let has_used = self.used >= self.slice;
        self.is_held = self.lag == Duration::ZERO && !has_used;
        if has_used {
            self.used = Duration::ZERO;
        }
        // `used` already has the whole piece that runs now. Its rest is time for which the worker
        // waits: one that is woken 2 us after the start of a call of 5 us lags behind by 3 us.
        if now < self.others_until {
            self.lag += self.others_until.since(now);
        }
    }

    /// Takes back the run of a hardware queue. Returns whether it was there.
    pub(crate) fn withdraw(&mut self, queue: QueueId, hctx: HctxId) -> bool {
        let before = self.works.len();
        self.works.retain(|work| match work {
            Work::Run { queue: disk, hctx: of, .. } => (*disk, *of) != (queue, hctx),
            _ => true,
        });
        self.works.len() < before
    }

    /// Takes the next run, if the worker goes before the other threads. `sleeps` says whether the
    /// thread that ran last sleeps now, or none is ready.
    pub(crate) fn take(&mut self, sleeps: bool) -> Option<Work> {
        let has_used = self.used >= self.slice;
        if self.is_held && !sleeps && !has_used {
            return None;
        }
        if has_used && self.has_work() {
            self.used = Duration::ZERO;
        }
        self.is_held = false;
        self.works.pop_front()
    }

    /// Notes that another thread has been woken, and is there `at`.
    pub(crate) fn note_woken(&mut self, at: Instant) {
        self.others_there_at = self.others_there_at.max(at);
    }

    /// Notes that a thread continues with a new slice: it has slept, or another one did.
    pub(crate) const fn begin_slice(&mut self) {
        self.used = Duration::ZERO;
    }

    /// Notes that the worker or another thread runs until `end`, for `time`.
    pub(crate) fn note(&mut self, is_worker: bool, time: Duration, end: Instant) {
        debug_assert!(end >= self.others_until, "a piece ends at {end}, before the one before it");
        debug_assert!(end >= self.own_until, "a piece ends at {end}, before the last run");
        if is_worker {
            let own_ns = time.as_ns() * WEIGHT / WEIGHT_OF_WORKER;
            self.lag = Duration::from_ns(self.lag.as_ns().saturating_sub(own_ns));
            self.own_until = end;
            return;
        }
        self.used += time;
        self.others_until = end;
        if self.has_work() {
            self.lag += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_trace::observe::Runner;

    const RUN: Work = Work::Run { by: Runner::Worker, queue: QueueId(0), hctx: HctxId(0) };

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// Lets another thread run for `us` microseconds from `begin_us` on.
    fn other_runs(worker: &mut Worker, begin_us: u64, us: u64) {
        worker.note(false, Duration::from_us(us), at(begin_us + us));
    }

    fn worker_runs(worker: &mut Worker, begin_us: u64, us: u64) {
        worker.note(true, Duration::from_us(us), at(begin_us + us));
    }

    /// A submitter calls every 10 us. The worker is woken in the first call, and waits until the
    /// submitter sleeps. From then on it runs after each call, until it is woken on an idle
    /// processor.
    #[test]
    fn a_worker_that_has_waited_goes_first_until_it_has_run_alone() {
        let mut worker = Worker::new(1);
        other_runs(&mut worker, 0, 10);
        worker.wake(RUN, at(2), true);
        assert!(worker.take(false).is_none());
        other_runs(&mut worker, 10, 10);
        assert!(worker.take(false).is_none());
        assert!(worker.take(true).is_some(), "the submitter sleeps");
        worker_runs(&mut worker, 20, 5);
        // It has waited for 18 us, and has run for 5 us, which are 57 ns of the others.
        assert_eq!(worker.lag, Duration::from_ns(18_000 - 57));
        other_runs(&mut worker, 100, 10);
        worker.wake(RUN, at(102), true);
        assert!(worker.take(false).is_some(), "it lags behind");
        worker_runs(&mut worker, 110, 5);
        worker.wake(RUN, at(200), false);
        assert!(worker.take(true).is_some());
        worker_runs(&mut worker, 200, 5);
        other_runs(&mut worker, 300, 10);
        worker.wake(RUN, at(302), true);
        assert!(worker.take(false).is_none(), "it ran alone, so it has no lag");
    }

    /// A thread of one processor is protected for 0.7 ms; of four, for 2.1 ms; of eight and more,
    /// for 2.8 ms. A worker that is woken later goes first at once.
    #[test]
    fn a_thread_that_has_used_its_slice_gives_way() {
        for (cpus, slice_us) in [(1, 700), (4, 2_100), (8, 2_800), (64, 2_800)] {
            let mut worker = Worker::new(cpus);
            other_runs(&mut worker, 0, 100);
            worker.wake(RUN, at(0), true);
            other_runs(&mut worker, 100, slice_us - 101);
            assert!(worker.take(false).is_none(), "{cpus}");
            other_runs(&mut worker, slice_us - 1, 1);
            assert!(worker.take(false).is_some(), "{cpus}");
            let mut late = Worker::new(cpus);
            other_runs(&mut late, 0, slice_us);
            late.wake(RUN, at(slice_us), true);
            assert!(late.take(false).is_some(), "{cpus}");
        }
    }

    /// The completion that wakes the worker has woken the submitter before, so the worker keeps its
    /// lag.
    #[test]
    fn a_worker_that_is_woken_beside_a_submitter_keeps_its_lag() {
        let mut worker = Worker::new(1);
        other_runs(&mut worker, 0, 10);
        worker.wake(RUN, at(2), true);
        assert!(worker.take(true).is_some());
        worker_runs(&mut worker, 10, 5);
        worker.note_woken(at(101));
        worker.wake(RUN, at(100), false);
        assert!(worker.take(false).is_some(), "it goes before the submitter");
        worker_runs(&mut worker, 100, 5);
        other_runs(&mut worker, 105, 10);
        worker.wake(RUN, at(106), true);
        assert!(worker.take(false).is_some(), "it has its lag");
    }

    /// A worker that gets more work while it runs goes on.
    #[test]
    fn a_worker_that_runs_goes_on_with_what_comes_meanwhile() {
        let mut worker = Worker::new(1);
        worker.wake(RUN, at(0), false);
        assert!(worker.take(true).is_some());
        worker_runs(&mut worker, 0, 10);
        worker.wake(RUN, at(5), true);
        assert!(worker.take(false).is_some());
        assert!(worker.take(false).is_none(), "there were two runs");
    }
}
