//! The instances that have not begun. As in fio, each begins once its start delay is over, counted
//! from the start of the run, and the first one of a job with `stonewall` not before all that began
//! earlier have ended.
//!
//! The instances are looked at in the order of the file. One that waits for its delay holds up
//! nobody, so the jobs behind a delayed `stonewall` begin before it; one that waits for others
//! holds up all behind it.

use super::plan::Planned;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard_fio::job::Job;

/// The instances that have not begun, in the order of the file.
#[derive(Debug)]
pub(super) struct Starts {
    left: Vec<Start>,
    /// When they were looked at last.
    seen: Instant,
}

#[derive(Debug)]
struct Start {
    planned: Planned,
    /// The reporting group of its job.
    group: u32,
    /// The end of its start delay.
    from: Instant,
}

impl Starts {
    /// Returns the instances of `jobs` in `planned`, with delays drawn from `seed`.
    pub(super) fn new(planned: Vec<Planned>, jobs: &[Job], seed: u64) -> Self {
        let starts = planned.into_iter().map(|planned| {
            let job = &jobs[planned.job];
            let number = u64::from(job.first_instance + planned.instance.number);
            let from = Instant::ZERO + delay(job, number, seed);
            Start { group: job.group, from, planned }
        });
        Self { left: starts.collect(), seen: Instant::ZERO }
    }

    /// Whether all have begun.
    pub(super) const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the instances.
    pub(super) fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.left.iter().map(|start| &start.planned)
    }

    /// Returns when the next delay ends; [`Instant::MAX`] if none does.
    pub(super) fn next(&self) -> Instant {
        let ends = self.left.iter().map(|start| start.from).filter(|from| *from > self.seen);
        ends.min().unwrap_or(Instant::MAX)
    }

    /// Returns the first instant, from `now` on, at which an instance begins if no other one runs.
    pub(super) fn first_after(&self, now: Instant) -> Instant {
        self.left.iter().map(|start| start.from).min().map_or(now, |from| from.max(now))
    }

    /// Removes the instances of the groups that `has_ended` names.
    pub(super) fn drop_groups(&mut self, has_ended: impl Fn(u32) -> bool) {
        self.left.retain(|start| !has_ended(start.group));
    }

    /// Removes the instances that begin at `now`, and returns them. `others_run` says whether an
    /// instance that began earlier has not ended.
    pub(super) fn take(&mut self, now: Instant, others_run: bool) -> Vec<Planned> {
        debug_assert!(now >= self.seen, "time passes");
        self.seen = now;
        let mut begun = Vec::new();
        let mut is_held_up = false;
        for start in core::mem::take(&mut self.left) {
            let is_delayed = start.from > now;
            is_held_up |= !is_delayed && start.planned.waits && (others_run || !begun.is_empty());
            if is_delayed || is_held_up {
                self.left.push(start);
            } else {
                begun.push(start.planned);
            }
        }
        begun
    }
}

/// Returns the start delay of instance `number` of all. Each has a stream of its own, so that its
/// delay does not depend on how many others there are.
fn delay(job: &Job, number: u64, seed: u64) -> Duration {
    let (least, most) = job.startdelay_ns;
    debug_assert!(least <= most, "a range of start delays must be in order");
    let mut draws = Prng::new(seed).fork(1).fork(number);
    Duration::from_ns(least + draws.below((most - least).saturating_add(1).max(1)))
}
