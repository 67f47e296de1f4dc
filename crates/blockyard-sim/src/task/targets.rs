//! The targets that a task checks while it runs.

use super::{Taken, Task, Violation};
use blockyard::time::{Duration, Instant};
use blockyard_fio::job::Op;

impl Task {
    /// Returns the number of I/Os that may be in flight now: the depth, or the one that a search tries.
    #[must_use]
    pub fn depth(&self) -> u32 {
        let tried = self.search.as_ref().map_or(u32::MAX, |search| search.depth());
        self.shape.depth.min(tried)
    }

    /// Notes the latency of an I/O that was reaped at `now`. Returns the bound that it violates, if any.
    pub fn took(&mut self, op: Op, taken: &Taken, now: Instant) -> Option<Violation> {
        let took = taken.lat();
        if self.search.as_mut().is_some_and(|search| search.took(took)) {
            let most = self.search.as_ref().map_or(Duration::ZERO, |search| search.target());
            return Some(Violation::Latency { took, most });
        }
        self.watch.as_mut().and_then(|watch| watch.took(op, taken, now))
    }

    /// Judges the depth that is tried. Returns whether the last window of a search begins at `now`.
    pub fn look_at_depth(&mut self, now: Instant) -> bool {
        let idle = self.outstanding() == 0;
        let Some(search) = &mut self.search else { return false };
        search.look(now);
        if search.is_done() {
            self.exhausted = true;
            self.drawn = None;
        }
        idle && search.settled(now)
    }

    /// Returns the depth that a search has found, if the job searches.
    #[must_use]
    pub fn depth_found(&self) -> Option<u32> {
        self.search.as_ref().map(|search| search.depth())
    }

    /// Measures from `now` on.
    pub fn measure_anew(&mut self, now: Instant) {
        self.measured_from = now;
        self.meter.begin(now);
    }

    pub(super) fn settles_depth(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.settles())
    }

    /// Returns the priority of the job in Linux's encoding, if its I/Os may have others.
    #[must_use]
    pub const fn priority_of_job(&self) -> Option<u16> {
        self.priority_of_job
    }
}
