//! Measurement of tasks, the machine and the device.

use super::{FailedIo, Failure, Totals, World};
use crate::machine::lock::Contended;
use crate::task::Task;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard_fio::job::encoded;
use blockyard_fio::measure::{JobStats, Taken};
use blockyard_trace::observe::TaskId;

impl World<'_> {
    /// Ends the measurement. If all jobs have ended before it began, the whole run counts.
    pub(crate) fn end_measuring(&mut self) {
        if self.now < self.measure_from {
            // All jobs ended before measurement began, so the whole run counts.
            let begun = self.tasks.iter().map(Task::begun).min();
            self.measure_from = begun.unwrap_or(self.now).min(self.now);
        }
    }

    /// Returns where task `id` counts what happens at `at`: in its ramp time apart, and nowhere
    /// without one.
    pub(super) fn stats_at(&mut self, id: TaskId, at: Instant) -> Option<&mut JobStats> {
        let task = &mut self.tasks[id.0 as usize];
        if task.is_pre_reading() {
            return None;
        }
        if at >= task.measured_from() {
            return Some(&mut self.stats[task.stats]);
        }
        task.ramp_mut()
    }

    /// Reports a task that has ended at `end`, before its ramp time was over, as a whole, as fio
    /// does.
    pub(super) fn report_ramp(&mut self, id: TaskId, end: Instant) {
        let task = &mut self.tasks[id.0 as usize];
        let begun = task.begun();
        // A job that was stopped before its start delay was over has `begun` in the future, and
        // nothing to report.
        if end >= task.measured_from() || begun > end {
            return;
        }
        let Some(ramp) = task.ramp_mut() else { return };
        ramp.spent.alive += end.since(begun);
        let stats = &mut self.stats[task.stats];
        stats.started = stats.started.min(begun);
        stats.ended_in_ramp = true;
        if let Some(ramp) = task.ramp_mut() {
            stats.add(ramp);
        }
    }

    /// Begins measurement: all counts of the machine and the device become zero.
    pub(super) fn reset_counts(&mut self) {
        self.totals = Totals::default();
        self.locks.iter_mut().for_each(Contended::forget);
        self.queues.iter_mut().for_each(|queue| queue.reset_counts(self.now));
        self.host.sink.0.1.clear();
        self.host.driver.model_mut().forget_activity(self.now);
        for cpu in &mut self.cpus {
            cpu.busy = Duration::ZERO;
            // A spin continues, and what is left of it counts from here.
            if let Some(spin) = &mut cpu.polling {
                spin.counted = self.now;
            }
        }
    }

    /// Charges a task for polling from `begin` to `end`.
    pub(super) fn charge_polling(&mut self, id: TaskId, begin: Instant, end: Instant) {
        debug_assert!(begin <= end, "{id:?} polled from {begin} to {end}");
        let from = self.tasks[id.0 as usize].measured_from();
        // A spin from 9 s to 11 s of a job that is measured from 10 s on counts for 1 s.
        let begin = if end < from { begin } else { begin.max(from) };
        if let Some(stats) = self.stats_at(id, end) {
            let measured = end.since(begin);
            stats.cpu_ns += measured.as_ns();
            stats.spent.in_calls += measured;
        }
    }

    /// Ends the sleep of a task that runs again.
    pub(super) fn end_rest(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.0 as usize];
        let Some(rest) = task.measuring.rest.take().filter(|_| !task.has_ended) else { return };
        let now = self.now;
        // In its ramp time a task counts apart, from its beginning.
        let from = if now < task.measured_from() { task.begun() } else { task.measured_from() };
        if let Some(stats) = self.stats_at(id, now) {
            stats.spent.rested(rest, from, now);
        }
    }

    /// Counts a result that the task has reaped, and fails the run where the job does not bear the
    /// result.
    pub(super) fn count_result(&mut self, id: TaskId, taken: &Taken) {
        self.totals.reaped += 1;
        let task = &self.tasks[id.0 as usize];
        let failed = taken.status != Status::Ok;
        if failed && !task.continues_after_error_of(taken.op) {
            let Taken { op, offset_bytes, len_bytes, status, .. } = *taken;
            let io = FailedIo { op, offset_bytes, len_bytes, status };
            self.failure.get_or_insert(Failure::Io(id, io));
        }
        // The bounds of a job are about I/Os that succeed; syncs have none.
        if let Some(op) = taken.op.filter(|_| !failed)
            && let Some(violation) = self.tasks[id.0 as usize].check_bounds(op, taken, self.now)
        {
            self.failure.get_or_insert(Failure::Bound(id, violation));
        }
        debug_assert!(taken.completed <= self.now, "{taken:?} is reaped before it completes");
        let clat = taken.clat.as_ns();
        let lat = taken.lat().as_ns();
        let of_job = self.tasks[id.0 as usize].priority_of_job();
        let call = self.tasks[id.0 as usize].take_call_times();
        let from = self.tasks[id.0 as usize].measured_from();
        let now = self.now;
        let Some(stats) = self.stats_at(id, taken.completed) else { return };
        if failed {
            stats.errors += 1;
            stats.first_error.get_or_insert(taken.status);
            return;
        }
        if let Some(call) = call {
            stats.calls.get_or_insert_default().add(&call);
        }
        let Some(op) = taken.op else {
            stats.sync_lat_ns.get_or_insert_default().record(lat);
            return;
        };
        let Some(measured) = stats.op_mut(op) else { return };
        measured.record(taken, 1);
        if let Some(of_job) = of_job {
            let priority =
                taken.priority.map_or(of_job, |(class, level)| encoded(class, Some(level)));
            let latencies = measured.by_priority.entry(priority).or_default();
            latencies.clat_ns.record(clat);
            latencies.lat_ns.record(lat);
        }
        // What completed in the ramp time has no place in logs and samples, which begin after it.
        if taken.completed < from {
            return;
        }
        self.totals.not_reaped += now.since(taken.completed);
        let from_begin = now.since(from);
        self.take_samples(id, self.now);
        let task = &mut self.tasks[id.0 as usize];
        task.measuring.meter.add(op, taken.len_bytes, 1);
        self.logs.io(task.instance, op, taken, from_begin);
    }

    /// Takes the samples of a task that are due now.
    fn take_samples(&mut self, id: TaskId, now: Instant) {
        let task = &mut self.tasks[id.0 as usize];
        while let Some(rate) = task.measuring.meter.next(now) {
            self.logs.rate(task.instance, rate);
        }
    }

    /// Makes all tasks end as soon as their I/Os in flight have ended.
    pub(crate) fn stop_tasks(&mut self) {
        let now = self.now;
        self.tasks.iter_mut().for_each(|task| task.stop(now));
    }

    /// Ends the measurement of all tasks now, although some of them have not ended.
    pub(crate) fn cut_measuring(&mut self) {
        let now = self.now;
        for at in 0..self.tasks.len() {
            if self.tasks[at].has_ended {
                continue;
            }
            let id = self.tasks[at].id;
            self.end_rest(id);
            let from = self.tasks[at].measured_from();
            let stats = &mut self.stats[self.tasks[at].stats];
            stats.ended = stats.ended.max(now);
            stats.spent.alive += now.since(from.min(now));
            self.report_ramp(id, now);
            self.end_measuring_of(id, now);
        }
        // An entry whose instances had not begun has no span, rather than a negative one.
        for stats in &mut self.stats {
            stats.started = stats.started.min(stats.ended);
        }
        self.last_end = now;
        self.end_measuring();
    }

    /// Ends the measurement of a task that ended at `end`.
    pub(super) fn end_measuring_of(&mut self, id: TaskId, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let stats = task.stats;
        let from = task.measured_from();
        if end >= from {
            self.take_samples(id, end);
            self.logs.end(self.tasks[id.0 as usize].instance, end.since(from));
        }
        self.tasks[id.0 as usize].measuring.meter.end(&mut self.stats[stats]);
    }
}
