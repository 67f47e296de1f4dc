//! Runs of equal calls: a job that writes within dirty pages, alone on its processor.
//!
//! The world makes such calls without an event and a piece of work for each, until something else
//! is to happen. It does so for jobs on raw disks whose submitters take no lock of a queue. An MMC
//! host's driver, an observer and a log look at each call, so there are no runs with them.
//!
//! # Rules
//!
//! - **[run-is-its-calls]** What a run of calls counts, and what it leaves behind, is what its
//!   calls would have, one by one.

use super::World;
use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use blockyard_fio::measure::Taken;
use blockyard_fio::measure::call_time::CallClock;
use blockyard_fio::measure::depth::Depths;
use blockyard_trace::observe::TaskId;

impl World<'_> {
    /// Whether task `id` may make runs of calls.
    pub(super) fn allows_runs(&self, id: TaskId) -> bool {
        let is_seen = self.host.sink.1.is_some() || self.logs.any();
        let is_plain = self.mmc.is_none() && !self.locking.submitting;
        let is_raw = !self.cache.has_file_system();
        self.tasks[id.0 as usize].may_repeat && is_plain && is_raw && !is_seen
    }

    /// Makes up to `most` calls of the job that alone has work on `cpu`, which is free now, if they
    /// are like its last one, and begin and end before `until` and before everything else that
    /// happens. Returns their number. `now` is then the end of the last one
    /// ([run-is-its-calls]).
    #[inline(never)] // few worlds have runs
    pub(super) fn repeat_calls(&mut self, cpu: CpuId, until: Instant, most: u64) -> u64 {
        let now = self.now;
        let Some(id) = self.cpus[cpu.index()].only_task(now) else { return 0 };
        if self.next_event.is_some() || self.self_check {
            return 0;
        }
        let syscall = self.machine.syscall;
        let task = &self.tasks[id.0 as usize];
        let taken = task.repeatable(|bytes| syscall + self.cost_of_copy(bytes.into()), now);
        let Some(taken) = taken.filter(|taken| taken.slat > Duration::ZERO) else { return 0 };
        let until = until.min(task.repeatable_until()).min(self.events.next_at().unwrap_or(until));
        // Of calls of 3 ns from 10 ns on, three end before 20 ns.
        let room = until.as_ns().saturating_sub(now.as_ns() + 1) / taken.slat.as_ns();
        let task = &mut self.tasks[id.0 as usize];
        let calls = task.repeat(&taken, most.min(room), now, &self.cache);
        if calls > 0 {
            self.count_run(id, cpu, &taken, calls);
        }
        calls
    }

    /// Counts `calls` calls of task `id` on `cpu` that are like that of `taken`, and lets their
    /// time pass.
    fn count_run(&mut self, id: TaskId, cpu: CpuId, taken: &Taken, calls: u64) {
        let time = Duration::from_ns(taken.slat.as_ns() * calls);
        let task = &mut self.tasks[id.0 as usize];
        let stats = &mut self.stats[task.stats];
        stats.cpu_ns += time.as_ns();
        stats.spent.in_calls += time;
        let mut depths = Depths::default();
        depths.submitted(1, 1, 1);
        depths.completed(1);
        stats.depths.add_times(&depths, calls);
        let times = CallClock::start(Instant::ZERO).stop(Instant::ZERO + taken.slat);
        stats.calls.get_or_insert_default().add_times(&times, calls);
        if let Some(op) = taken.op
            && let Some(measured) = stats.op_mut(op)
        {
            measured.record(taken, calls);
            task.measuring.meter.add(op, taken.len_bytes, calls);
        }
        self.totals.events += calls;
        self.totals.reaped += calls;
        self.totals.cpu += time;
        self.now = self.now + time;
        self.cpus[cpu.index()].go_on(time, self.now);
        self.calls_in_runs += calls;
    }

    /// Returns the number of calls that were made in runs.
    #[must_use]
    pub const fn calls_in_runs(&self) -> u64 {
        self.calls_in_runs
    }
}
