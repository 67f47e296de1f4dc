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

/// When a job thinks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Think {
    pause: Pause,
    /// I/Os from the decision to pause until the next one.
    every: u32,
    counts: ThinktimeBlocks,
    since: u32,
    /// The time from pause to pause, if the job states one. Then only `every` above 1, fio's default, counts too.
    period: Option<Duration>,
    paused_at: Instant,
}

impl Think {
    pub(super) fn of(job: &Job) -> Self {
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
            period: (period > Duration::ZERO).then_some(period),
            paused_at: Instant::ZERO,
        }
    }

    /// Notes that the job began, or that a pause ended, at `now`.
    pub(super) const fn goes_on(&mut self, now: Instant) {
        self.paused_at = now;
    }

    /// Counts an I/O that was issued or has completed.
    pub(super) fn count(&mut self, event: ThinktimeBlocks) {
        self.since += u32::from(self.counts == event);
    }

    /// Returns the pause that is due at `now`, if one is. What completes until it begins counts towards the next.
    pub(super) fn due(&mut self, now: Instant) -> Option<Pause> {
        debug_assert!(self.every > 0, "a job counts to one at least");
        if self.pause.length == Duration::ZERO {
            return None;
        }
        let by_time = self.period.is_some_and(|period| now.since(self.paused_at) >= period);
        let by_count = (self.period.is_none() || self.every > 1) && self.since >= self.every;
        if !by_time && !by_count {
            return None;
        }
        self.since = 0;
        Some(self.pause)
    }
}
