//! A server that commands of a drive pass one after another: a processor of the controller, or one
//! direction of a link.

use super::front::FrontUse;
use blockyard::time::{Duration, Instant};

/// A resource that serves one command at a time, in the order of the calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    free_at: Instant,
    used: Duration,
}

impl Line {
    /// Enters a command at `now` that takes `time`, and returns when it is through.
    pub(super) fn pass(&mut self, now: Instant, time: Duration) -> Instant {
        self.free_at = self.free_at.max(now) + time;
        self.used += time;
        self.free_at
    }

    /// Returns whether no command is being served at `now`.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// Returns the time of the commands that have entered.
    pub(super) const fn used(&self) -> Duration {
        self.used
    }

    /// Forgets that time.
    pub(super) fn forget(&mut self) {
        self.used = Duration::ZERO;
    }
}

/// A controller, and both directions of the link between it and the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ways {
    pub(super) controller: Line,
    pub(super) to_device: Line,
    pub(super) to_host: Line,
}

impl Ways {
    /// Returns how long they were in use.
    pub(super) fn used(&self) -> FrontUse {
        FrontUse {
            controller: self.controller.used(),
            link: self.to_device.used().max(self.to_host.used()),
        }
    }

    /// Forgets that.
    pub(super) fn forget(&mut self) {
        [&mut self.controller, &mut self.to_device, &mut self.to_host]
            .into_iter()
            .for_each(Line::forget);
    }
}
