//! Suspend and resume: a host is disabled once it is idle, if it becomes so in time.

use super::Mmc;
use crate::controller::HostController;
use blockyard::time::{Duration, Instant};

/// How long a host that is to be disabled is given to become idle. As Linux.
pub const DISABLE_LIMIT: Duration = Duration::from_ms(500);

/// Whether requests are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    On,
    /// To be off when idle, or to stay on from then on.
    Leaving(Instant),
    Off,
}

impl Power {
    pub(super) const fn wakes_at(self) -> Option<Instant> {
        match self {
            Self::Leaving(at) => Some(at),
            Self::On | Self::Off => None,
        }
    }
}

/// Whether a host has nothing to do, for those that want the bus for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It has no request.
    Yes,
    /// It has requests.
    NotYet,
    /// It has requests, and recovers from an error: waiting alone does not help.
    Halted,
}

/// It is not off: enabling does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillEnabled;

impl<H: HostController> Mmc<H> {
    /// Whether it takes requests.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.power != Power::Off
    }

    /// Whether it has nothing to do. A command queue engine may have the bus nevertheless: it loses it
    /// to what comes next, or by [`Self::disable`].
    #[must_use]
    pub fn idle(&self) -> Idle {
        match self.held {
            0 if !self.has_direct() => Idle::Yes,
            _ if self.is_recovering() => Idle::Halted,
            _ => Idle::NotYet,
        }
    }

    /// Takes no more requests as soon as it has none and its command queue engine is off; if that is not
    /// so within [`DISABLE_LIMIT`], it stays enabled. Until then it takes requests. [`Self::is_enabled`] says how it came out.
    ///
    /// A request that comes while it is off is refused for want of a
    /// [resource](blockyard::driver::Busy::Resource): it is offered again after a while.
    ///
    /// Nothing is sent to the card: its cache is not flushed, it is not put to sleep (CMD5), and it is not
    /// told of a loss of power (POWER_OFF_NOTIFICATION). Who cuts its power flushes before. When it is
    /// enabled again, the card is to be selected and in its mode, as it was; after a loss of power the
    /// controller sees to that before.
    pub fn disable(&mut self, now: Instant) {
        if self.power == Power::On {
            self.power = Power::Leaving(now + DISABLE_LIMIT);
        }
        self.tick(now);
    }

    /// Takes requests again. A bus that is tuned is tuned again before the first: what it was tuned for may
    /// have changed.
    ///
    /// # Errors
    ///
    /// It does already.
    pub fn enable(&mut self) -> Result<(), StillEnabled> {
        if self.power != Power::Off {
            return Err(StillEnabled);
        }
        self.power = Power::On;
        self.wants_retune = self.controller.is_tuned();
        Ok(())
    }

    #[cold]
    pub(super) fn look_at_power(&mut self, now: Instant) {
        if let Power::Leaving(limit) = self.power {
            if self.held == 0 && self.engine_is_off() {
                self.power = Power::Off;
            } else if limit <= now {
                self.power = Power::On;
            }
        }
    }
}
