//! Jobs that fill the page cache before they begin (`pre_read`).
//!
//! fio opens each file, reads it and closes it. Linux drops the pages of a block device that nobody
//! has open any more, so such a job finds them only if another one uses the device meanwhile.

use super::{Event, World};
use blockyard::time::{Duration, Instant};
use blockyard_trace::observe::TaskId;

impl World<'_> {
    /// Lets a task begin the next read before its job, or the job. Returns the cost.
    pub(super) fn read_before(&mut self, id: TaskId) -> Duration {
        let at = id.0 as usize;
        if self.tasks[at].buffered().begin_pre_read(&mut self.cache) {
            return self.machine.syscall + self.continue_buffered(id);
        }
        let closed = self.disks_to_close(id);
        self.tasks[at].buffered().close_after_pre_read(&closed, &mut self.cache);
        let held = self.pre_reading.extract_if(.., |(of, ..)| *of == id).next();
        let (_, ramp, limit) = held.expect("a job that has not begun is held");
        self.begin_task(id, self.now, ramp, limit);
        Duration::ZERO
    }

    /// Begins the job of a task at `begin` (see [`crate::task::Task::begin`]). The machine and the
    /// device are measured from when the first job is: all of their counts become zero then.
    pub(super) fn begin_task(
        &mut self,
        id: TaskId,
        begin: Instant,
        ramp: Duration,
        limit: Option<Duration>,
    ) {
        let is_first = self.tasks.iter().all(|task| task.measured_from() == Instant::MAX);
        let task = &mut self.tasks[id.0 as usize];
        task.begin(begin, ramp, limit);
        let from = task.measured_from();
        if is_first || from < self.measure_from {
            self.measure_from = from;
            if from > Instant::ZERO {
                self.events.push(from, Event::Measure);
            }
        }
        let stats = &mut self.stats[task.stats];
        stats.started = stats.started.min(task.measured_from());
        let entry = task.stats;
        if let Some(watch) = task.measuring.steady.take() {
            self.watch_for_steady_state(entry, watch, begin);
        }
    }
}
