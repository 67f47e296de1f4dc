//! Measurement of tasks, the machine and the device.

use super::{Event, FailedIo, Failure, Totals, World};
use crate::job::encoded;
use crate::machine::cpu::TaskId;
use crate::machine::lock::Contended;
use crate::observe::Observer;
use crate::task::Taken;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

impl<O: Observer> World<O> {
    /// Plans to reset the counts of the machine and the device at `from`.
    pub fn measure_from(&mut self, from: Instant) {
        assert_eq!(self.now, Instant::ZERO, "the start of measurement must be set before the run");
        self.measure_from = from;
        if from > Instant::ZERO {
            self.events.push(from, Event::Measure);
        }
    }

    /// Resets the counts if all jobs have ended before measurement began.
    pub fn end_measuring(&mut self) {
        if self.now < self.measure_from {
            self.forget();
        }
    }

    pub(super) fn forget(&mut self) {
        self.totals = Totals::default();
        self.locks.iter_mut().for_each(Contended::forget);
        self.host.sink.0.1.clear();
        self.host.driver.model_mut().forget_activity(self.now);
        for cpu in &mut self.cpus {
            cpu.busy = Duration::ZERO;
            if let Some(spin) = &mut cpu.polling {
                spin.counted = self.now;
            }
        }
    }

    /// Charges a task for polling from `begin` to `end`.
    pub(super) fn charge(&mut self, id: TaskId, begin: Instant, end: Instant) {
        debug_assert!(begin <= end, "{id:?} polled from {begin} to {end}");
        let task = &self.tasks[id.0 as usize];
        let measured = end.since(begin.max(task.measured_from()));
        let stats = &mut self.stats[task.stats];
        stats.cpu_ns += measured.as_ns();
        stats.spent.in_calls += measured;
    }

    /// Ends the sleep of a task that runs again.
    pub(super) fn end_rest(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.0 as usize];
        let Some(rest) = task.rest.take() else { return };
        self.stats[task.stats].spent.rested(rest, task.measured_from(), self.now);
    }

    pub(super) fn count(&mut self, id: TaskId, taken: &Taken) {
        self.totals.reaped += 1;
        let task = &self.tasks[id.0 as usize];
        let failed = taken.status != Status::Ok;
        if failed && !task.continues_after_error_of(taken.op) {
            let Taken { op, offset_bytes, len_bytes, status, .. } = *taken;
            let io = FailedIo { op, offset_bytes, len_bytes, status };
            self.failure.get_or_insert(Failure::Io(id, io));
        }
        if let Some(op) = taken.op.filter(|_| !failed)
            && let Some(violation) = self.tasks[id.0 as usize].took(op, taken, self.now)
        {
            self.failure.get_or_insert(Failure::Bound(id, violation));
        }
        let task = &self.tasks[id.0 as usize];
        if taken.completed < task.measured_from() {
            return;
        }
        debug_assert!(taken.completed <= self.now, "{taken:?} is reaped before it completes");
        let (slat, clat) = (taken.slat.as_ns(), taken.clat.as_ns());
        let lat = taken.lat().as_ns();
        let stats = &mut self.stats[task.stats];
        if failed {
            stats.errors += 1;
            stats.first_error.get_or_insert(taken.status);
            return;
        }
        let Some(op) = taken.op else {
            stats.sync_lat_ns.get_or_insert_default().record(lat);
            return;
        };
        let Some(measured) = stats.op_mut(op) else { return };
        self.totals.not_reaped += self.now.since(taken.completed);
        measured.ios += 1;
        measured.bytes += u64::from(taken.len_bytes);
        measured.slat_ns.record(slat);
        measured.clat_ns.record(clat);
        measured.lat_ns.record(lat);
        if let Some(of_job) = task.priority_of_job() {
            let priority =
                taken.priority.map_or(of_job, |(class, level)| encoded(class, Some(level)));
            let latencies = measured.by_priority.entry(priority).or_default();
            latencies.clat_ns.record(clat);
            latencies.lat_ns.record(lat);
        }
        let from_begin = self.now.since(task.measured_from());
        self.sample(id, self.now);
        self.tasks[id.0 as usize].meter.add(op, taken.len_bytes);
        self.logs.io(id, op, taken, from_begin);
    }

    /// Takes the samples of a task that are due now.
    fn sample(&mut self, id: TaskId, now: Instant) {
        while let Some(rate) = self.tasks[id.0 as usize].meter.next(now) {
            self.logs.rate(id, rate);
        }
    }

    /// Makes all tasks end as soon as their I/Os in flight have ended.
    pub fn stop_tasks(&mut self) {
        let now = self.now;
        self.tasks.iter_mut().for_each(|task| task.stop(now));
    }

    /// Ends the measurement of all tasks now, although some of them go on.
    pub fn cut_measuring(&mut self) {
        let now = self.now;
        for at in 0..self.tasks.len() {
            if self.tasks[at].is_over {
                continue;
            }
            let id = self.tasks[at].id;
            self.end_rest(id);
            let (stats, from) = (self.tasks[at].stats, self.tasks[at].measured_from());
            let stats = &mut self.stats[stats];
            stats.ended = stats.ended.max(now);
            stats.spent.alive += now.since(from.min(now));
            self.end_measuring_of(id, now);
        }
        for stats in &mut self.stats {
            stats.started = stats.started.min(stats.ended);
        }
        self.last_end = now;
        self.end_measuring();
    }

    /// Ends the measurement of a task that ended at `end`.
    pub(super) fn end_measuring_of(&mut self, id: TaskId, end: Instant) {
        let task = &self.tasks[id.0 as usize];
        let (stats, from) = (task.stats, task.measured_from());
        if end >= from {
            self.sample(id, end);
            self.logs.end(id, end.since(from));
        }
        self.tasks[id.0 as usize].meter.end(&mut self.stats[stats]);
    }
}
