//! The times at which a device was busy, and the gaps between them.

use blockyard::time::{Duration, Instant};

/// Counts the time during which a device had at least one command, and the gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    outstanding: u32,
    changed: Instant,
    busy: Duration,
    idle: Duration,
    gaps: u64,
    /// The sum over time of outstanding commands, in command-nanoseconds.
    held: u128,
    started: bool,
}

impl Activity {
    /// Counts the start of a command.
    pub(crate) fn begin(&mut self, now: Instant) {
        if self.outstanding == 0 {
            if self.started {
                self.idle += now.since(self.changed);
                self.gaps += 1;
            }
            self.started = true;
            self.changed = now;
        }
        self.advance(now);
        self.outstanding += 1;
    }

    /// Counts the end of a command.
    pub(crate) fn end(&mut self, now: Instant) {
        debug_assert!(self.outstanding > 0, "a command ends that never began");
        self.advance(now);
        self.outstanding -= 1;
    }

    /// Counts a whole command from `begin` to `end`. Not to be used together with [`Self::begin`].
    pub(crate) fn span(&mut self, begin: Instant, end: Instant) {
        debug_assert_eq!(self.outstanding, 0, "commands are counted in two ways");
        debug_assert!(begin <= end, "a command from {begin} to {end}");
        if self.started && begin > self.changed {
            self.idle += begin.since(self.changed);
            self.gaps += 1;
        }
        self.started = true;
        self.held += u128::from(end.since(begin).as_ns());
        self.busy += end.since(begin.max(self.changed).min(end));
        self.changed = self.changed.max(end);
    }

    /// Starts counting again at `now`, with the commands that are outstanding then.
    pub(crate) fn forget(&mut self, now: Instant) {
        *self = Self {
            outstanding: self.outstanding,
            changed: now,
            started: self.started,
            ..Self::default()
        };
    }

    /// Whether no command is outstanding.
    #[must_use]
    pub(crate) const fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    fn advance(&mut self, now: Instant) {
        let span = now.since(self.changed);
        self.held += u128::from(span.as_ns()) * u128::from(self.outstanding);
        if self.outstanding > 0 {
            self.busy += span;
        }
        debug_assert!(
            self.held >= u128::from(self.busy.as_ns()),
            "a command is outstanding while the device is busy"
        );
        self.changed = self.changed.max(now);
    }

    /// Returns the time with at least one command outstanding.
    #[must_use]
    pub(crate) const fn busy(&self) -> Duration {
        self.busy
    }

    /// Returns the mean length of the gaps without a command between the first command and the
    /// last; zero if there were none.
    #[must_use]
    pub(crate) fn mean_gap(&self) -> Duration {
        debug_assert!(self.gaps > 0 || self.idle == Duration::ZERO, "idle time lies in gaps");
        Duration::from_ns(self.idle.as_ns().checked_div(self.gaps).unwrap_or_default())
    }

    /// Returns the sum over time of the commands outstanding, in command-nanoseconds.
    #[must_use]
    pub(crate) const fn held_ns(&self) -> u128 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_and_gaps_add_up_to_the_time_from_first_to_last_command() {
        let at = Instant::from_ns;
        let mut activity = Activity::default();
        activity.begin(at(10));
        activity.begin(at(15));
        activity.end(at(20));
        activity.end(at(30));
        activity.begin(at(50));
        activity.end(at(60));
        assert_eq!(activity.busy(), Duration::from_ns(30));
        assert_eq!(activity.mean_gap(), Duration::from_ns(20));
        assert_eq!(activity.held_ns(), 5 + 2 * 5 + 10 + 10);
    }

    #[test]
    fn commands_known_whole_count_once_where_they_overlap() {
        let at = Instant::from_ns;
        let mut activity = Activity::default();
        activity.span(at(10), at(30));
        activity.span(at(15), at(20));
        activity.span(at(25), at(40));
        activity.span(at(60), at(70));
        assert_eq!(activity.busy(), Duration::from_ns(40));
        assert_eq!(activity.mean_gap(), Duration::from_ns(20));
        assert_eq!(activity.held_ns(), 20 + 5 + 15 + 10);
    }
}
