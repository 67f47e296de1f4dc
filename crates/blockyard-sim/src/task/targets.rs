//! The bounds and targets that a task is measured against while it runs.

use super::bounds::Watch;
use super::search::Search;
use super::{Task, Violation};
use blockyard::time::Instant;
use blockyard_fio::job::{Job, Op};
use blockyard_fio::measure::Taken;

/// The bounds and targets of a task.
#[derive(Debug)]
pub(super) struct Targets {
    /// The search for a depth that keeps a latency.
    search: Option<Box<Search>>,
    /// The bounds that end the run.
    watch: Option<Box<Watch>>,
}

impl Targets {
    pub(super) fn of(job: &Job) -> Self {
        Self { search: Search::of(job).map(Box::new), watch: Watch::of(job).map(Box::new) }
    }

    /// Whether they depend on each I/O.
    pub(super) const fn look_at_each(&self) -> bool {
        self.search.is_some() || self.watch.is_some()
    }

    pub(super) fn begin(&mut self, now: Instant) {
        if let Some(search) = &mut self.search {
            search.begin(now);
        }
        if let Some(watch) = &mut self.watch {
            watch.begin(now);
        }
    }
}

impl Task {
    /// Returns the number of I/Os that may be in flight now: the depth, or the one that a search
    /// tries.
    #[must_use]
    pub(crate) fn depth(&self) -> u32 {
        let tried = self.targets.search.as_ref().map_or(u32::MAX, |search| search.depth());
        self.shape.depth.min(tried)
    }

    /// Notes the latency of an I/O that was reaped at `now`. Returns the bound that it violates, if
    /// any.
    pub(crate) fn check_bounds(
        &mut self,
        op: Op,
        taken: &Taken,
        now: Instant,
    ) -> Option<Violation> {
        let took = taken.lat();
        if let Some(search) = &mut self.targets.search
            && search.count(took)
        {
            return Some(Violation::Latency { took, most: search.target() });
        }
        self.targets.watch.as_mut().and_then(|watch| watch.check(op, taken, now))
    }

    /// Judges the depth that is tried. Returns whether the last window of a search begins at `now`.
    pub(crate) fn judge_depth(&mut self, now: Instant) -> bool {
        let is_idle = self.outstanding() == 0;
        let Some(search) = &mut self.targets.search else { return false };
        search.judge(now);
        if search.is_done() {
            self.feed.end();
        }
        is_idle && search.end_settling(now)
    }

    /// Returns the depth that a search has found, if the job searches.
    #[must_use]
    pub(crate) fn depth_found(&self) -> Option<u32> {
        self.targets.search.as_ref().map(|search| search.depth())
    }

    /// Whether I/Os of a depth that was tried before are in flight, and no more are issued until
    /// they have ended.
    pub(super) fn settles_depth(&self) -> bool {
        self.targets.search.as_ref().is_some_and(|search| search.settles())
    }
}
