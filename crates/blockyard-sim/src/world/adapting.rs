//! Jobs that end for a reason other than their own I/Os and time, or search for a depth.

use super::{Event, World};
use blockyard::time::{Duration, Instant};
use blockyard_fio::job::ExitWhat;
use blockyard_fio::measure::steady::SteadyWatch;
use blockyard_trace::observe::TaskId;

impl World<'_> {
    /// Makes the tasks with the statistics of `task` end in the steady state that its job
    /// describes. The task begins at `begin`.
    pub(super) fn watch_for_steady_state(
        &mut self,
        entry: usize,
        watch: SteadyWatch,
        begin: Instant,
    ) {
        let steady = &mut self.stats[entry].steady;
        // The first instance of an entry brings the watch of all of them.
        if steady.is_none() {
            let first = begin + Duration::from_ns(watch.options.ramp_ns);
            *steady = Some(Box::new(watch));
            self.events.push(first, Event::Steady(entry));
        }
    }

    /// Takes a sample of an entry that looks for a steady state.
    pub(super) fn check_steady_state(&mut self, entry: usize) {
        let Some(mut watch) = self.stats[entry].steady.take() else { return };
        let mut tasks = self.tasks.iter().filter(|task| task.stats == entry);
        if tasks.any(|task| !task.is_over()) {
            // Instances that report as one end together.
            watch.look(&self.stats[entry]);
            if watch.attained {
                let tasks = self.tasks.iter_mut().filter(|task| task.stats == entry);
                tasks.for_each(|task| task.stop(self.now));
            } else if watch.goes_on() {
                let next = self.now + Duration::from_ns(watch.options.interval_ns);
                self.events.push(next, Event::Steady(entry));
            }
        }
        self.stats[entry].steady = Some(watch);
    }

    /// Ends the jobs that end with the task, which has ended at `end`.
    pub(super) fn end_jobs_with(&mut self, id: TaskId, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let Some(ends) = task.ends else { return };
        let group = task.group;
        debug_assert!(task.is_over(), "{id:?} must have ended");
        // As in fio, jobs that have not begun end too, unless `exit_what` names those that run.
        match ends {
            ExitWhat::Group => {
                self.ended_groups.insert(group);
            }
            ExitWhat::Running => {}
            ExitWhat::All => self.ends_all = true,
        }
        let others = self.tasks.iter_mut();
        others
            .filter(|task| ends != ExitWhat::Group || task.group == group)
            .for_each(|task| task.stop(end));
    }

    /// Lets the task judge the depth that it tries. When it has found one, its measurement begins
    /// anew.
    pub(super) fn judge_depth(&mut self, id: TaskId, now: Instant) {
        let task = &mut self.tasks[id.0 as usize];
        if task.judge_depth(now) {
            task.measure_anew(now);
            self.stats[task.stats].begin_anew(now);
        }
    }
}
