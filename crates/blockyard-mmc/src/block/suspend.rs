//! Suspend and resume: a host is disabled once it is idle, if that happens in time.

use super::mmc::Mmc;
use super::power::{DISABLE_LIMIT, Idle, Power, StillEnabled};
use crate::controller::HostController;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// Returns whether the host accepts requests.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.power != Power::Off
    }

    /// Returns whether the host is idle. A command queue engine may have the bus nevertheless. It
    /// loses the bus to the next user, or by [`Self::disable`].
    #[must_use]
    pub fn idle(&self) -> Idle {
        match self.slots_in_use {
            0 if !self.has_direct() => Idle::Yes,
            _ if self.is_recovering() => Idle::Halted,
            _ => Idle::NotYet,
        }
    }

    /// Disables the host as soon as it has no request and its command queue engine is off. Until
    /// then the host accepts requests. If that takes longer than [`DISABLE_LIMIT`], the host stays
    /// enabled. [`Self::is_enabled`] returns the result.
    ///
    /// A request that comes while the host is disabled is refused for want of a
    /// [resource](blockyard::driver::Busy::Resource), and offered again after a while.
    ///
    /// No command is sent to the card: its cache is not flushed, it is not put to sleep (CMD5), and
    /// it gets no POWER_OFF_NOTIFICATION. A caller that cuts the power flushes first. When the host
    /// is enabled again, the card must be selected and in its mode, as before; after a loss of
    /// power the controller restores that.
    pub fn disable(&mut self, now: Instant) {
        if self.power == Power::On {
            self.power = Power::Disabling(now + DISABLE_LIMIT);
        }
        self.tick(now);
    }

    /// Enables the host. A tuned bus is tuned again before the first request, as conditions may
    /// have changed.
    ///
    /// # Errors
    ///
    /// Fails if the host is enabled already.
    pub fn enable(&mut self) -> Result<(), StillEnabled> {
        if self.power != Power::Off {
            return Err(StillEnabled);
        }
        self.power = Power::On;
        self.retune_needed = self.controller.is_tuned();
        Ok(())
    }

    /// Disables the host if it is idle, or gives the attempt up.
    #[cold]
    pub(super) fn check_power(&mut self, now: Instant) {
        if let Power::Disabling(limit) = self.power {
            if self.slots_in_use == 0 && self.engine_is_off() && self.open.is_none() {
                self.power = Power::Off;
            } else if limit <= now {
                self.power = Power::On;
            }
        }
    }
}
