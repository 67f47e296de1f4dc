//! The pauses of a job: between its I/Os (`thinktime`), and because it is ahead of its rate.

use blockyard::time::{Duration, Instant};
use blockyard_fio::job::{Job, ThinktimeBlocks};

/// A pause that is due. It begins once no I/O is in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) length: Duration,
    /// Its first part, which the task spends computing.
    pub(super) spin: Duration,
    /// A rate does not catch up with what was not issued meanwhile.
    pub(super) is_not_caught_up: bool,
}

impl Pause {
    /// Returns a pause that only waits.
    pub(super) const fn of(length: Duration) -> Self {
        Self { length, spin: Duration::ZERO, is_not_caught_up: false }
    }
}

/// The pauses of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    think: Think,
    /// A pause that is due: the task reaps results one by one, and issues nothing, until none is
    /// left, and then pauses.
    due: Option<Pause>,
    /// The end of the last pause that began.
    until: Instant,
    /// The computing part of the pause that has just begun.
    spin: Duration,
}

impl Pauses {
    pub(super) fn of(job: &Job) -> Self {
        Self { think: Think::of(job), due: None, until: Instant::ZERO, spin: Duration::ZERO }
    }

    /// Begins the job at `now`.
    pub(super) const fn begin_job(&mut self, now: Instant) {
        self.think.paused_at = now;
    }

    /// Returns the end of the last pause that began.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// Whether a pause is due.
    pub(super) const fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// Counts an I/O that was issued or reaped at `now`, which may make a pause due.
    pub(super) fn count(&mut self, event: ThinktimeBlocks, now: Instant) {
        self.think.since += u32::from(self.think.counts == event);
        if self.due.is_none() {
            self.due = self.think.due(now);
        }
    }

    /// Makes `pause` due, unless another one is.
    pub(super) fn begin_early(&mut self, pause: Pause) {
        self.due.get_or_insert(pause);
    }

    /// Begins the pause that is due, if one is, and returns it.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Pause> {
        let pause = self.due.take()?;
        debug_assert!(pause.spin <= pause.length, "{pause:?}");
        // The period of the next pause counts from the end of this one.
        self.until = now + pause.length;
        self.spin = pause.spin;
        self.think.paused_at = self.until;
        Some(pause)
    }

    /// Returns how long the pause that has just begun keeps the processor busy.
    pub(super) fn take_spin(&mut self) -> Duration {
        core::mem::take(&mut self.spin)
    }
}

/// When a job thinks.
#[derive(Clone, Copy, Debug)]
struct Think {
    pause: Pause,
    /// I/Os from the decision to pause until the next one.
    every: u32,
    counts: ThinktimeBlocks,
    since: u32,
    /// Whether the number of I/Os makes a pause due. As in fio, with a period it does only if
    /// `thinktime_blocks` is set, be it to its default, 1.
    counts_ios: bool,
    /// The time from pause to pause, if the job states one.
    period: Option<Duration>,
    /// When the job began, or the last pause ended.
    paused_at: Instant,
}

impl Think {
    fn of(job: &Job) -> Self {
        let length = Duration::from_ns(job.thinktime_ns);
        let period = Duration::from_ns(job.thinktime_iotime_ns);
        Self {
            pause: Pause {
                length,
                spin: Duration::from_ns(job.thinktime_spin_ns).min(length),
                is_not_caught_up: job.rate_ignore_thinktime,
            },
            every: job.thinktime_blocks.max(1),
            counts: job.thinktime_blocks_type,
            since: 0,
            counts_ios: period == Duration::ZERO || job.is_set("thinktime_blocks"),
            period: (period > Duration::ZERO).then_some(period),
            paused_at: Instant::ZERO,
        }
    }

    /// Returns the pause that is due at `now`, if one is. What completes until it begins counts
    /// towards the next.
    fn due(&mut self, now: Instant) -> Option<Pause> {
        debug_assert!(self.every > 0, "a job counts to one at least");
        if self.pause.length == Duration::ZERO {
            return None;
        }
        let by_time = self.period.is_some_and(|period| now.since(self.paused_at) >= period);
        let by_count = self.counts_ios && self.since >= self.every;
        if !by_time && !by_count {
            return None;
        }
        self.since = 0;
        Some(self.pause)
    }
}
